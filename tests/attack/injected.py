"""Every call of the system on a file fails in turn, and every large allocation: nothing is lost, one line is said.

A work reads or writes files. Its calls (write, read, sync, rename, open, map, allocate) are counted; then each of them
fails once, with each error. A case holds where the work ends as it does undisturbed, or with one line; where the file
of its name is the old one or the whole new one afterwards, and nothing else lies beside it; and where the work, done
once more, succeeds. The faults are in the C library (``faulty.c``), so that NumPy, Arrow and the decompressors meet
them.
"""

from __future__ import annotations

import ctypes
import errno
import io
import json
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from saddlesvm import LinearSVC
from saddlesvm.cli import main
from saddlesvm.data import DataError, Store, convert, read
from saddlesvm.data.blocks import Reading
from saddlesvm.data.conversion import cached
from saddlesvm.data.errors import write_page
from saddlesvm.estimators.persistence import load, save, save_liblinear
from saddlesvm.fit.checkpoint import Checkpoint, CheckpointWarning
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits

from . import seeds
from .tally import Tally

WRITE, READ, SYNC, NAME, MAP, ALLOCATE, OPEN = (1 << k for k in range(7))
KINDS = {"write": WRITE, "read": READ, "sync": SYNC, "name": NAME, "map": MAP, "allocate": ALLOCATE, "open": OPEN}
SHORT = 0
# What may come of each kind of call; an interrupted call is made again by Python, and so must be by all others.
ERRORS = {
    "write": (errno.ENOSPC, errno.EIO, errno.EINTR, SHORT),
    "read": (errno.EIO, errno.EINTR, SHORT),
    "sync": (errno.EIO, errno.ENOSPC, errno.EINTR),
    "name": (errno.EIO, errno.ENOSPC),
    "open": (errno.EIO, errno.EMFILE, errno.EINTR),
    "map": (errno.ENOMEM,),
    "allocate": (errno.ENOMEM,),
}
LARGE = 1 << 20  # bytes of an allocation that may fail
MOST = 60  # calls of a kind that fail in turn; evenly chosen where there are more
HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@dataclass
class Work:
    """Something that is done with files in a folder.

    Attributes
    ----------
    begin : callable
        Puts into an empty folder what is there before.
    act : callable
        Does the work; returns something to compare.
    result : str
        The name of the file or folder that it makes, or "".
    check : callable
        Raises where what has that name is neither the old one nor the new one.
    """

    begin: Callable[[Path], Any]
    act: Callable[[Path], Any]
    result: str = ""
    check: Callable[[Path], Any] = lambda folder: None


def large() -> tuple[np.ndarray, np.ndarray]:
    """Rows whose arrays are above :data:`LARGE`."""
    random = np.random.default_rng(3)
    X = random.normal(size=(30_000, 6))
    return X, np.where(X[:, 0] + random.normal(size=len(X)) > 0.0, 1.0, -1.0)


def small_model(C: float = 1.0) -> Any:
    """A fitted model."""
    return LinearSVC(random_state=0, C=C).fit(*seeds.data())


def sound_of(name: str, folder: Path) -> None:
    """Copy a sound file."""
    source = ROOT_OF_SOUND / name
    shutil.copytree(source, folder / name) if source.is_dir() else shutil.copy(source, folder / name)
    for beside in source.parent.glob("t-labels*") if "images" in name else ():
        shutil.copy(beside, folder)


def is_old_or_new(folder: Path) -> None:
    """A model file that is whole."""
    assert load(folder / "m").C in (1.0, 2.0)


def trained(folder: Path) -> bytes:
    """A run with a checkpoint after every step."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", CheckpointWarning)
        kept = Checkpoint(folder / "run", every_steps=1)
        result = fit(seeds.problem("dcd"), seeds.SOLVERS["dcd"], Limits(tol=0.0, max_epochs=4), seed=1, checkpoint=kept)
    return bytes(np.asarray(result.coef).tobytes())


def ended(folder: Path) -> bytes:
    """The weights of a run that goes on from a checkpoint."""
    kept = Checkpoint(folder / "dcd.checkpoint", every=1e9)
    result = fit(seeds.problem("dcd"), seeds.SOLVERS["dcd"], seeds.LIMITS, seed=1, checkpoint=kept)
    return bytes(np.asarray(result.coef).tobytes())


def values_of(found: Any) -> list[bytes]:
    """What was read, as bytes."""
    X = found.X.toarray() if hasattr(found.X, "toarray") else np.asarray(found.X)
    return [np.ascontiguousarray(X).tobytes(), np.asarray(found.y).astype(str).tobytes()]


def stored(folder: Path, overwrite: bool = False) -> list[bytes]:
    """A store of a few rows."""
    X, y = seeds.data()
    made = Store.create(folder / "s", X, y, overwrite=overwrite)
    return values_of(made)


def whole_store(folder: Path) -> None:
    """A store that its checksums fit, where there is one."""
    if (folder / "s").exists():
        Store(folder / "s").verify()


def by_blocks(folder: Path) -> bytes:
    """A fit that reads its rows block by block."""
    model = LinearSVC(solver="blocks", memory="16M", loss="hinge", C=1e-4, tol=1e-2, random_state=0)
    return bytes(model.fit(Store(folder / "s")).coef_.tobytes())


def command(*words: str) -> Callable[[Path], Any]:
    """A command, which returns the weights of its model, or its output; an error is its one line."""

    def act(folder: Path) -> Any:
        out, err = io.StringIO(), io.StringIO()
        given = [word.replace("@", f"{folder}/") for word in words]
        with redirect_stdout(out), redirect_stderr(err):
            try:
                code = main(given)
            except SystemExit as end:
                code = int(end.code or 0)
        if code:
            raise DataError("\n".join(line for line in err.getvalue().splitlines() if line.strip()))
        return load(folder / "m").coef_.tobytes() if "--model" in words else out.getvalue()

    return act


def nothing(folder: Path) -> None:
    """Nothing is there before."""


def works() -> dict[str, Work]:
    """What is attacked, by name."""
    found = {
        "model saved over another": Work(
            lambda folder: save(small_model(1.0), folder / "m"),
            lambda folder: save(small_model(2.0), folder / "m"),
            "m",
            is_old_or_new,
        ),
        "model loaded": Work(
            lambda folder: save(small_model(), folder / "m"), lambda folder: load(folder / "m").coef_.tobytes(), "m"
        ),
        "LIBLINEAR model saved": Work(nothing, lambda folder: save_liblinear(small_model(), folder / "m"), "m"),
        "run with a checkpoint": Work(nothing, trained, "run"),
        "run that goes on": Work(partial(sound_of, "dcd.checkpoint"), ended, "dcd.checkpoint"),
        "store made": Work(nothing, stored, "s", whole_store),
        "store made over another": Work(stored, partial(stored, overwrite=True), "s", whole_store),
        "store read": Work(stored, lambda folder: values_of(Store(folder / "s").verify()), "s", whole_store),
        "large store made": Work(
            nothing, lambda folder: values_of(Store.create(folder / "s", *large())), "s", whole_store
        ),
        "fit by blocks": Work(lambda folder: Store.create(folder / "s", *large()), by_blocks, "s", whole_store),
        "cache made": Work(
            partial(sound_of, "table.csv"),
            lambda folder: values_of(cached(folder / "table.csv", Reading())),
            "table.csv.store",
            lambda folder: (folder / "table.csv.store").exists() and Store(folder / "table.csv.store").verify(),
        ),
        "page written": Work(nothing, lambda folder: write_page(folder / "page.html", "whole " * 99).name, "page.html"),
        "training by command": Work(
            partial(sound_of, "table.csv"),
            command("train", "@table.csv", "--model", "@m", "--seed", "0"),
            "m",
        ),
    }
    for name in ("rows.libsvm", "table.csv", "table.csv.gz", "table.csv.bz2", "table.csv.xz", "plain.npz", "csr.npz",
                 "packed.npz", "t-images-idx3-ubyte", "table.parquet"):  # fmt: skip
        if (ROOT_OF_SOUND / name).exists():
            act = partial(lambda folder, name: values_of(read(folder / name)), name=name)
            found[f"{name} read"] = Work(partial(sound_of, name), act)
            act = partial(lambda folder, name: values_of(convert(folder / name, folder / "s")), name=name)
            found[f"{name} converted"] = Work(partial(sound_of, name), act, "s", whole_store)
    return found


ROOT_OF_SOUND = Path(os.environ.get("SADDLESVM_SOUND", "."))


def library(folder: Path) -> Path | None:
    """The compiled faults; None where there is no C compiler, or no preloading."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        return None
    made = folder / "faulty.so"
    words = [compiler, "-O1", "-w", "-shared", "-fPIC", "-o", str(made), str(HERE / "faulty.c"), "-ldl"]
    return made if subprocess.run(words, capture_output=True, check=False).returncode == 0 else None


def injected(folder: Path, seed: int, first: int, count: int, only: tuple[str, ...] = (), most: int = MOST) -> Tally:
    """Let the calls of each work from number `first` on fail; `only` some works, or all."""
    tally = Tally("injected")
    made = library(folder)
    if made is None:
        tally.outcomes["skipped: no C compiler, or no Linux"] += 1
        return tally
    if not (folder / "sound").exists():
        seeds.make(folder / "sound", ("dcd",))
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), str(ROOT / "tests")])
    environment = os.environ | {
        "PYTHONPATH": path, "LD_PRELOAD": str(made), "SADDLESVM_SOUND": str(folder / "sound"), "OMP_NUM_THREADS": "1"
    }  # fmt: skip
    start = 0
    while True:
        words = [sys.executable, "-m", __name__, str(folder), json.dumps([first, count, list(only), most, start])]
        child = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=ROOT, check=False)
        cases = [json.loads(line) for line in child.stdout.splitlines() if line.startswith("{")]
        for case in cases:
            if "outcome" in case:
                tally.cases += 1
                tally.outcomes[f"{case['kind']} {case['outcome']}"] += 1
                if case["failure"]:
                    tally.failures.append(f"injected {case['name']}: {case['failure']}")
        if child.returncode == 0 or not cases:
            if not cases and child.returncode:
                raise RuntimeError(child.stderr[-2000:])
            return tally
        last = cases[-1]
        tally.failures.append(
            f"injected {last['name']}: the process ended with {child.returncode}: {child.stderr[-300:]}"
        )
        start = last["case"] + 1


class Faults:
    """The faults of the C library of this process."""

    def __init__(self) -> None:
        self.c = ctypes.CDLL(None)
        self.c.fault_arm.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_long, ctypes.c_int, ctypes.c_long]
        self.c.fault_disarm.restype = ctypes.c_long

    def during(
        self, act: Callable[[Path], Any], folder: Path, kind: int, number: int, error: int
    ) -> tuple[Any, Any, int]:
        """What the work returned, what it raised, and how many calls of a kind it made."""
        value, raised = None, None
        self.c.fault_arm(os.fsencode(folder), kind, number, error, LARGE)
        try:
            value = act(folder)
        except BaseException as caught:  # all that may come of a fault is judged
            raised = caught
        return value, raised, self.c.fault_disarm()


def judged(work: Work, folder: Path, sound: Any, value: Any, raised: BaseException | None) -> str:
    """What is wrong after a fault; "" for nothing."""
    if raised is None:
        if value != sound:
            return "it returned something else than undisturbed"
    elif not isinstance(raised, ValueError | MemoryError) and not getattr(raised, "filename", None):
        return f"it raised {type(raised).__name__}: {raised}"
    elif "\n" in str(raised):
        return f"it said more than a line: {raised}"
    try:
        work.check(folder)
    except Exception as error:  # whatever a half file leads to
        return f"what is there afterwards is neither old nor new: {error!r} (after {raised!r})"
    # what is to be removed stays where the system does not let it be removed; the next store of its name removes it
    left = [name for name in os.listdir(folder) if name.endswith((".tmp", ".partial"))]
    left = [] if raised is None and left == [f"{work.result}.replaced.partial"] else left
    return f"it left {left} (after {raised!r})" if left else ""


def attack(folder: Path, first: int, count: int, only: list[str], most: int, start: int) -> None:
    """Do every work with every fault, and say a line of JSON of each."""
    faults, case, place = Faults(), 0, folder / "injected"
    chosen = {name: work for name, work in works().items() if not only or name in only}
    for name, work in list(chosen.items())[first : first + count]:

        def anew(work: Work = work) -> None:
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            work.begin(place)

        anew()
        work.act(place)  # compiles, imports
        for kind, number in KINDS.items():
            anew()
            sound, raised, calls = faults.during(work.act, place, number, -1, 0)
            if raised is not None:
                raise raised
            for error in ERRORS[kind]:
                for k in np.unique(np.linspace(0, calls - 1, min(calls, most)).astype(int)).tolist() if calls else ():
                    case += 1
                    if case <= start:
                        continue
                    told = f"{name}, {kind} {k} of {calls}, {errno.errorcode.get(error, 'short')}"
                    print(json.dumps({"case": case - 1, "name": told}), flush=True)
                    anew()
                    value, raised, _ = faults.during(work.act, place, number, k, error)
                    outcome = "as undisturbed" if raised is None else f"one line ({type(raised).__name__})"
                    failure = judged(work, place, sound, value, raised)
                    if not failure:
                        _, raised, _ = faults.during(partial(once_more, work), place, 0, -1, 0)
                        failure = f"once more it raised {raised!r}" if raised is not None else ""
                    said = {"case": case - 1, "name": told, "kind": kind, "outcome": outcome, "failure": failure}
                    print(json.dumps(said), flush=True)


def once_more(work: Work, folder: Path) -> Any:
    """The work after the fault is gone, beginning with what there is; with nothing where a store has its name now."""
    if work.result and (folder / work.result).is_dir():
        shutil.rmtree(folder / work.result)
        work.begin(folder)
    return work.act(folder)


if __name__ == "__main__":
    warnings.simplefilter("ignore", ResourceWarning)
    attack(Path(sys.argv[1]), *json.loads(sys.argv[2]))
