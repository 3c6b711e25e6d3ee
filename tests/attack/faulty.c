/* Calls of the C library that fail on purpose: those on files below a folder, and large allocations.

   Loaded by LD_PRELOAD. `fault_arm` says which of the calls fails, counted from 0, and how: by an error, or with 0 by
   giving only a third of what was asked for. `fault_disarm` says how many calls there were. Nothing fails before. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITE = 1, READ = 2, SYNC = 4, NAME = 8, MAP = 16, ALLOCATE = 32, OPEN = 64 };

static char folder[4096];
static size_t folder_size;
static int armed, kinds, error;
static long wanted, seen;
static size_t least;

void fault_arm(const char *where, int which, long number, int with, long bytes)
{
    strncpy(folder, where, sizeof folder - 1);
    folder_size = strlen(folder);
    kinds = which, wanted = number, error = with, least = (size_t)bytes, seen = 0;
    __atomic_store_n(&armed, 1, __ATOMIC_SEQ_CST);
}

long fault_disarm(void)
{
    __atomic_store_n(&armed, 0, __ATOMIC_SEQ_CST);
    return seen;
}

static int strikes(int kind)
{
    return (kinds & kind) && __atomic_fetch_add(&seen, 1, __ATOMIC_SEQ_CST) == wanted;
}

static int is_below(const char *path)
{
    return armed && path && strncmp(path, folder, folder_size) == 0;
}

static int of_folder(int handle)
{
    char link[64], path[4096];
    if (!armed || handle < 0)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size <= 0)
        return 0;
    path[size] = 0;
    return is_below(path);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FAIL(kind, condition) \
    if ((condition) && strikes(kind)) \
        return errno = error ? error : EIO, -1
#define FAIL_OR_SHORTEN(kind, handle, size) \
    if (of_folder(handle) && strikes(kind)) { \
        if (error) \
            return errno = error, -1; \
        size = size > 3 ? size / 3 : size; \
    }

ssize_t write(int h, const void *p, size_t n) { FAIL_OR_SHORTEN(WRITE, h, n) return NEXT(write)(h, p, n); }
ssize_t pwrite(int h, const void *p, size_t n, off_t o) { FAIL_OR_SHORTEN(WRITE, h, n) return NEXT(pwrite)(h, p, n, o); }
ssize_t pwrite64(int h, const void *p, size_t n, off64_t o) { FAIL_OR_SHORTEN(WRITE, h, n) return NEXT(pwrite64)(h, p, n, o); }
ssize_t read(int h, void *p, size_t n) { FAIL_OR_SHORTEN(READ, h, n) return NEXT(read)(h, p, n); }
ssize_t pread(int h, void *p, size_t n, off_t o) { FAIL_OR_SHORTEN(READ, h, n) return NEXT(pread)(h, p, n, o); }
ssize_t pread64(int h, void *p, size_t n, off64_t o) { FAIL_OR_SHORTEN(READ, h, n) return NEXT(pread64)(h, p, n, o); }

ssize_t preadv64(int h, const struct iovec *v, int count, off64_t o)
{
    struct iovec first = v[0];
    FAIL_OR_SHORTEN(READ, h, first.iov_len)
    return first.iov_len < v[0].iov_len ? NEXT(preadv64)(h, &first, 1, o) : NEXT(preadv64)(h, v, count, o);
}
ssize_t preadv(int h, const struct iovec *v, int count, off_t o) { return preadv64(h, v, count, o); }

size_t fwrite(const void *p, size_t size, size_t n, FILE *file)
{
    if (of_folder(fileno(file)) && strikes(WRITE)) {
        if (error)
            return errno = error, 0;
        n = n > 3 ? n / 3 : n;
    }
    return NEXT(fwrite)(p, size, n, file);
}
size_t fread(void *p, size_t size, size_t n, FILE *file)
{
    if (of_folder(fileno(file)) && strikes(READ)) {
        if (error)
            return errno = error, 0;
        n = n > 3 ? n / 3 : n;
    }
    return NEXT(fread)(p, size, n, file);
}

int fsync(int h) { FAIL(SYNC, of_folder(h)); return NEXT(fsync)(h); }
int fdatasync(int h) { FAIL(SYNC, of_folder(h)); return NEXT(fdatasync)(h); }
int rename(const char *a, const char *b) { FAIL(NAME, is_below(a)); return NEXT(rename)(a, b); }
int renameat(int x, const char *a, int y, const char *b) { FAIL(NAME, is_below(a)); return NEXT(renameat)(x, a, y, b); }
int mkdir(const char *a, mode_t m) { FAIL(NAME, is_below(a)); return NEXT(mkdir)(a, m); }
int ftruncate(int h, off_t n) { FAIL(WRITE, of_folder(h)); return NEXT(ftruncate)(h, n); }
int ftruncate64(int h, off64_t n) { FAIL(WRITE, of_folder(h)); return NEXT(ftruncate64)(h, n); }

#define OPENED(name, path, flags) \
    mode_t mode = 0; \
    if ((flags) & O_CREAT) { \
        va_list rest; \
        va_start(rest, flags); \
        mode = va_arg(rest, mode_t); \
        va_end(rest); \
    } \
    FAIL(OPEN, is_below(path));

int open(const char *path, int flags, ...) { OPENED(open, path, flags) return NEXT(open)(path, flags, mode); }
int open64(const char *path, int flags, ...) { OPENED(open64, path, flags) return NEXT(open64)(path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { OPENED(openat, path, flags) return NEXT(openat)(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { OPENED(openat64, path, flags) return NEXT(openat64)(at, path, flags, mode); }

void *mmap(void *at, size_t n, int p, int f, int h, off_t o)
{
    if (!(f & MAP_ANONYMOUS) && of_folder(h) && strikes(MAP))
        return errno = error ? error : ENOMEM, MAP_FAILED;
    return NEXT(mmap)(at, n, p, f, h, o);
}
void *mmap64(void *at, size_t n, int p, int f, int h, off64_t o) { return mmap(at, n, p, f, h, o); }

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
static int no_room(size_t n) { return armed && n >= least && strikes(ALLOCATE); }
void *malloc(size_t n) { return no_room(n) ? (errno = ENOMEM, NULL) : __libc_malloc(n); }
void *calloc(size_t k, size_t n) { return no_room(k * n) ? (errno = ENOMEM, NULL) : __libc_calloc(k, n); }
void *realloc(void *p, size_t n) { return no_room(n) ? (errno = ENOMEM, NULL) : __libc_realloc(p, n); }
