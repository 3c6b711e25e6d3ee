"""Training on a store larger than the memory given: certified, in bounded memory, at what share of the reading speed.

python -m benchmarks.makers.make_store big.store --gigabytes 4 --features 512
python -m benchmarks.claims.out_of_core big.store --memory 1G

Disks that are shared with others change their speed from one minute to the next. So a plain reading of the file follows
each sweep of the training, and a sweep is compared with the readings before and after it. Plain reading is `readinto`
into one buffer of 4 MB; with ``--ahead 8`` it asks the system for the next eight buffers, as a sweep does. Before each,
and before every sweep, the system is asked to drop the file's pages ("cold"); with ``--warm`` the file is read once
first. The bytes of a sweep are those that the process has read meanwhile, as /proc/self/io tells. Memory is what
/proc/self/status calls RssAnon, sampled every 5 ms, above what the process had before the store was opened.
``--kill 20`` lets a training run with checkpoints be killed at 20 random moments instead (the file drops nothing then).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from saddlesvm import LinearSVC, Store
from saddlesvm.fit.checkpoint import Checkpoint
from saddlesvm.rows.memory_plan import memory_bytes

BUFFER_BYTES = 1 << 22


def anonymous_bytes() -> int:
    """Anonymous memory of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


class MemoryWatch:
    """The most memory between entering and leaving, above that at entering; anonymous memory unless `used` is given."""

    def __init__(self, used: Callable[[], int] = anonymous_bytes) -> None:
        self.used = used

    def __enter__(self) -> MemoryWatch:
        self.before = self.used()
        self.most = 0
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()
        return self

    def _watch(self) -> None:
        while not self.done.wait(0.005):
            self.most = max(self.most, self.used() - self.before)

    def __exit__(self, *error: Any) -> None:
        self.done.set()
        self.thread.join()


def drop(path: Path) -> None:
    """Ask the system to forget the pages of a file."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def reading_speed(path: Path, cold: bool, ahead: int = 0) -> float:
    """Bytes a second of reading a file from its beginning to its end, so many buffers asked for ahead."""
    if cold:
        drop(path)
    room = memoryview(bytearray(BUFFER_BYTES))
    total = 0
    began = time.perf_counter()
    with path.open("rb", buffering=0) as file:
        if ahead:
            os.posix_fadvise(file.fileno(), 0, ahead * BUFFER_BYTES, os.POSIX_FADV_WILLNEED)
        while done := file.readinto(room):
            total += done
            if ahead:
                place = total + (ahead - 1) * BUFFER_BYTES
                os.posix_fadvise(file.fileno(), place, BUFFER_BYTES, os.POSIX_FADV_WILLNEED)
    return total / (time.perf_counter() - began)


def bytes_read() -> int:
    """What this process has read so far, from wherever."""
    return int(Path("/proc/self/io").read_text().split()[1])


def wait_for_reader() -> None:
    """Wait until no rows are read ahead any more (the watch of the memory goes on reading)."""
    before = -BUFFER_BYTES
    while bytes_read() - before >= BUFFER_BYTES:
        before = bytes_read()
        time.sleep(0.1)


class Sweeps:
    """A callback of the fit: the speed of each whole sweep, and of a plain reading before it and after it.

    Attributes
    ----------
    speeds, work : list of float
        Bytes a second of each sweep, by the clock and by the processor.
    readings : list of float
        Bytes a second of the plain readings: one more than there are sweeps.
    paused : float
        Seconds that the readings took.
    """

    def __init__(self, path: Path, cold: bool, ahead: int) -> None:
        self.path = path
        self.cold = cold
        self.ahead = ahead
        self.speeds: list[float] = []
        self.work: list[float] = []
        self.readings: list[float] = []
        self.sweep = 0
        self.paused = 0.0
        self._read()

    def _read(self) -> None:
        """A plain reading; a sweep begins after it."""
        began = time.perf_counter()
        wait_for_reader()
        self.readings.append(reading_speed(self.path, self.cold, self.ahead))
        if self.cold:
            drop(self.path)
        self.began = time.perf_counter()
        self.paused += self.began - began
        self.worked = time.process_time()
        self.read = bytes_read()

    def tick(self, epoch: float, estimate: float, seconds: float) -> None:
        """Note the end of a sweep, and read plainly."""
        if int(epoch + 1e-9) > self.sweep:
            self.sweep = int(epoch + 1e-9)
            read = bytes_read() - self.read
            self.speeds.append(read / (time.perf_counter() - self.began))
            self.work.append(read / (time.process_time() - self.worked))
            self._read()

    def __call__(self, record: Any) -> None:
        """Nothing to do at a certificate."""

    def shares(self) -> list[float]:
        """Each sweep's speed as a share of the mean speed of its two neighbours."""
        pairs = zip(self.readings, self.readings[1:], strict=False)
        return [speed / statistics.mean(pair) for speed, pair in zip(self.speeds, pairs, strict=True)]


def measure(options: argparse.Namespace) -> None:
    """Train, with plain readings between the sweeps; say what came of it."""
    store = Store(options.store)
    values = Path(options.store) / "values.npy"
    cold = not options.warm
    if options.warm:
        reading_speed(values, False)
    sweeps = Sweeps(values, cold, options.ahead)
    model = LinearSVC(
        loss=options.loss, C=options.C, tol=options.tol, solver=options.solver, random_state=0, memory=options.memory,
        callbacks=[sweeps],
    )  # fmt: skip
    del store
    with MemoryWatch() as watch:
        sweeps.paused = 0.0
        sweeps.began = time.perf_counter()
        began = time.perf_counter()
        store = Store(options.store)
        model.fit(store)
        spent = time.perf_counter() - began - sweeps.paused
    size = values.stat().st_size
    shares = sweeps.shares()
    limit = memory_bytes(options.memory)
    print(
        f"store           {size / 1e9:.2f} GB, {store.shape[0]:,} x {store.shape[1]}; {size / limit:.1f} x the memory"
    )
    print(f"files           {'cold: pages dropped before each pass' if cold else 'warm: in the page cache'}")
    print(f"outcome         {model.outcome_}, {model.certificate_}")
    print(f"time            {spent:.1f} s without the plain readings, {len(shares)} sweeps")
    print(f"memory          {watch.most / 2**20:.0f} MB of {limit / 2**20:.0f} MB anonymous above the start")
    for what, speeds in (("readings", sweeps.readings), ("sweeps", sweeps.speeds), ("by processor", sweeps.work)):
        print(f"{what:15s} {', '.join(f'{one / 1e9:.2f}' for one in speeds)} GB/s")
    each = ", ".join(f"{one:.0%}" for one in shares)
    print(f"shares          {each}; median {statistics.median(shares):.0%} of the readings before and after")


TRAIN = """
import json, sys
from saddlesvm import LinearSVC, Store
from saddlesvm.fit.checkpoint import Checkpoint
store, path, given = sys.argv[1:]
checkpoint = Checkpoint(path, every_steps=2)
print("ready", flush=True)
LinearSVC(**json.loads(given), checkpoint=checkpoint).fit(Store(store))
"""


def kill_and_resume(options: argparse.Namespace) -> None:
    """Kill training runs at random moments, resume them each time, and compare what they end with."""
    store = Store(options.store)
    given = {"C": options.C, "tol": options.tol, "random_state": 0, "memory": options.memory, "solver": options.solver}
    given |= {"multi_class": options.multi_class} if options.multi_class != "ovr" else {"loss": options.loss}
    began = time.perf_counter()
    undisturbed = LinearSVC(**given).fit(store)
    usual = time.perf_counter() - began
    print(f"undisturbed     {undisturbed.certificate_}")
    random = np.random.default_rng(options.seed)
    killed = 0
    with tempfile.TemporaryDirectory(dir=Path(options.store).resolve().parent) as folder:
        path = Path(folder) / "run.ckpt"
        arguments = [options.store, str(path), json.dumps(given)]
        while killed < options.kill:
            moment = float(random.uniform(0.0, 0.5 * usual))
            if run_and_kill([sys.executable, "-c", TRAIN, *arguments], moment):
                killed += 1
                held = f"{path.stat().st_size:,} bytes" if path.exists() else "none yet"
                print(f"{killed:3}. killed after {moment:.2f} s; checkpoint: {held}")
            if not path.exists() or (killed < options.kill and not ended(path)):
                continue
            resumed = LinearSVC(**given, checkpoint=Checkpoint(path)).fit(store)
            allowed = sum(np.sqrt(2.0 * model.certificate_.gap) for model in (undisturbed, resumed))
            away = float(np.linalg.norm(undisturbed.coef_ - resumed.coef_))
            print(f"resumed         {resumed.outcome_}, {resumed.certificate_}")
            print(f"apart           {away:.3g}; the two gaps allow {allowed:.3g}")
            path.unlink()


def run_and_kill(arguments: list[str], moment: float) -> bool:
    """Start a run and kill it so many seconds after it has begun to train; False when it had ended by then."""
    with subprocess.Popen(arguments, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            process.wait(moment)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            return True
    if process.returncode:
        raise SystemExit(f"a run failed with code {process.returncode}")
    return False


def ended(path: Path) -> bool:
    """Whether the run that wrote a checkpoint had proven its gap."""
    with np.load(path) as stored:
        header = json.loads(stored["header"].tobytes())
    return bool(header["trace"])


def main() -> None:
    """Measure, or kill and resume."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store")
    parser.add_argument("--memory", default="1G")
    parser.add_argument("--loss", default="squared_hinge")
    parser.add_argument("--C", type=float, default=0.01)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--solver", default="auto")
    parser.add_argument("--multi-class", default="ovr", help="with --kill: a joint machine, of several classes")
    parser.add_argument("--ahead", type=int, default=0, help="buffers that plain reading asks for ahead")
    parser.add_argument("--warm", action="store_true")
    parser.add_argument("--kill", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    kill_and_resume(options) if options.kill else measure(options)


if __name__ == "__main__":
    main()
