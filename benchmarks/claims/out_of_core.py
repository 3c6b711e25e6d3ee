"""Training on a store larger than the memory given: certified, in bounded memory, at what share of the reading speed.

python -m benchmarks.makers.make_store big.store --gigabytes 4 --features 512
python -m benchmarks.claims.out_of_core big.store --memory 1G

Reading is timed with plain `readinto` of the same file into one buffer of 4 MB, before and after the training, and a
sweep with training at work counts the same bytes. Before each, and before every sweep, the system is asked to drop the
file's pages ("cold"); with ``--warm`` it is asked to keep them: the file is read once first. Memory is what
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
    """The largest anonymous memory seen between entering and leaving, above that at entering."""

    def __enter__(self) -> MemoryWatch:
        self.before, self.most = anonymous_bytes(), 0
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()
        return self

    def _watch(self) -> None:
        while not self.done.wait(0.005):
            self.most = max(self.most, anonymous_bytes() - self.before)

    def __exit__(self, *error: Any) -> None:
        self.done.set()
        self.thread.join()


def drop(path: Path) -> None:
    """Ask the system to forget the pages of a file."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def reading_speed(path: Path, cold: bool) -> float:
    """Bytes a second of reading a file from its beginning to its end."""
    if cold:
        drop(path)
    room = memoryview(bytearray(BUFFER_BYTES))
    total, began = 0, time.perf_counter()
    with path.open("rb", buffering=0) as file:
        while done := file.readinto(room):
            total += done
    return total / (time.perf_counter() - began)


class Sweeps:
    """A callback of the fit: seconds of each whole sweep, the file's pages dropped at its beginning."""

    def __init__(self, path: Path, cold: bool) -> None:
        self.path, self.cold, self.seconds, self.ended = path, cold, [], 0.0
        self.sweep, self.began = 0, time.perf_counter()

    def tick(self, epoch: float, estimate: float, seconds: float) -> None:
        """Note the end of a sweep."""
        if int(epoch + 1e-9) > self.sweep:
            self.sweep = int(epoch + 1e-9)
            self.seconds.append(time.perf_counter() - self.began)
            if self.cold:
                drop(self.path)
            self.began = time.perf_counter()

    def __call__(self, record: Any) -> None:
        """Nothing to do at a certificate."""


def measure(options: argparse.Namespace) -> None:
    """Read, train, read; say what came of it."""
    store, values = Store(options.store), Path(options.store) / "values.npy"
    cold = not options.warm
    reading_speed(values, False)
    before = [reading_speed(values, cold) for _ in range(options.repeats)]
    sweeps = Sweeps(values, cold)
    model = LinearSVC(
        loss=options.loss, C=options.C, tol=options.tol, random_state=0, memory=options.memory, callbacks=[sweeps]
    )
    del store
    if cold:
        drop(values)
    with MemoryWatch() as watch:
        sweeps.began = began = time.perf_counter()
        store = Store(options.store)
        model.fit(store)
        spent = time.perf_counter() - began
    after = [reading_speed(values, cold) for _ in range(options.repeats)]
    reading = statistics.median(before + after)
    size = values.stat().st_size
    speeds = [size / seconds for seconds in sweeps.seconds]
    limit = memory_bytes(options.memory)
    print(
        f"store           {size / 1e9:.2f} GB, {store.shape[0]:,} x {store.shape[1]}; {size / limit:.1f} x the memory"
    )
    print(f"files           {'cold: pages dropped before each pass' if cold else 'warm: in the page cache'}")
    print(f"outcome         {model.outcome_}, {model.certificate_}")
    print(f"time            {spent:.1f} s, {len(speeds)} sweeps, solving {model.seconds_solving_:.1f} s")
    print(f"memory          {watch.most / 2**20:.0f} MB of {limit / 2**20:.0f} MB anonymous above the start")
    print(f"reading         {reading / 1e9:.2f} GB/s ({', '.join(f'{one / 1e9:.2f}' for one in before + after)})")
    print(f"sweeps          {', '.join(f'{one / 1e9:.2f}' for one in speeds)} GB/s")
    print(f"share           {statistics.median(speeds) / reading:.0%} of the reading speed (the median sweep)")


TRAIN = """
import sys
from saddlesvm import LinearSVC, Store
from saddlesvm.fit.checkpoint import Checkpoint
store, memory, path, C, tol, loss = sys.argv[1:]
checkpoint = Checkpoint(path, every_steps=2)
print("ready", flush=True)
LinearSVC(loss=loss, C=float(C), tol=float(tol), random_state=0, memory=memory, checkpoint=checkpoint).fit(Store(store))
"""


def kill_and_resume(options: argparse.Namespace) -> None:
    """Kill training runs at random moments, resume them each time, and compare what they end with."""
    store = Store(options.store)
    given = {"loss": options.loss, "C": options.C, "tol": options.tol, "random_state": 0, "memory": options.memory}
    began = time.perf_counter()
    undisturbed = LinearSVC(**given).fit(store)
    usual = time.perf_counter() - began
    print(f"undisturbed     {undisturbed.certificate_}")
    random, killed = np.random.default_rng(options.seed), 0
    with tempfile.TemporaryDirectory(dir=Path(options.store).resolve().parent) as folder:
        path = Path(folder) / "run.ckpt"
        arguments = [options.store, options.memory, str(path), str(options.C), str(options.tol), options.loss]
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
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--warm", action="store_true")
    parser.add_argument("--kill", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    kill_and_resume(options) if options.kill else measure(options)


if __name__ == "__main__":
    main()
