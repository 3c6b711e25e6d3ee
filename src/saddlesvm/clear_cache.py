"""``python -m saddlesvm.clear_cache`` removes the cached kernels, after a developer's change."""

from saddlesvm.runtime.kernel_files import clear_cache

if __name__ == "__main__":
    print(f"removed {clear_cache()} cached kernel files")
