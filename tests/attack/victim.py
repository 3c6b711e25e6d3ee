"""The process that opens damaged files, one after the other, and says a line of JSON of each; it may die of them."""

from __future__ import annotations

import contextlib
import io
import json
import resource
import shutil
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from saddlesvm import LinearSVC
from saddlesvm.cli import main
from saddlesvm.data import DataError, Store, convert, read, read_liblinear
from saddlesvm.estimators import persistence
from saddlesvm.fit.checkpoint import Checkpoint
from saddlesvm.fit.loop import fit
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.runtime.clock import WORDS

from . import damage, seeds
from .hunt import Job

ADDRESS_SPACE = 6 << 30  # bytes beyond which a bomb is a MemoryError, and not the machine's trouble
ALLOWED_PEAK = 64 << 20


def of_command(*words: str) -> str:
    """What a command makes of a file: facts, or one line and exit code 2."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(list(words))
    said = err.getvalue().replace(f"{WORDS}\n", "")  # a kernel's first use is told of, too
    shown = out.getvalue()
    known = (0, 2, 3) if words[0] == "verify" else (0, 2)  # 3: the proof does not hold
    if code not in known or (code == 2) != (said.count("\n") == 1) or "Traceback" in said:
        raise AssertionError(f"exit code {code}, standard error {said[:300]!r}")
    if any(mark in shown + said for mark in ("\x1b", "\u202e", "\0")):
        raise AssertionError("a character that steers a terminal was shown")
    return "refused" if code else "accepted"


def of_model(path: Path) -> str:
    """Load, describe and use a model."""
    outcome = of_command("info", str(path))
    with contextlib.suppress(DataError):
        model = persistence.load(path)
        X = np.zeros((2, min(model.n_features_in_, 1000)))
        with contextlib.suppress(ValueError):
            model.predict(X)
    return outcome


def of_data(path: Path) -> str:
    """Describe data; read and convert them."""
    outcome = of_command("info", str(path))
    with contextlib.suppress(DataError):
        read(path, label=False if path.suffix == ".libsvm" else None)
    if outcome == "accepted" or path.stat().st_size % 4 == 0:
        with contextlib.suppress(DataError):
            convert(path, path.with_name("converted.store"), overwrite=True)
    return outcome


def of_store(path: Path) -> str:
    """Open, describe, verify and train on a store."""
    outcome = of_command("info", str(path))
    with contextlib.suppress(DataError):
        Store(path).verify()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            LinearSVC(random_state=0, solver="dcd", max_iter=2).fit(Store(path))
    except (ValueError, MemoryError):  # weights take memory for every feature that a store says it has
        return "refused"
    return outcome


def of_checkpoint(path: Path) -> str:
    """Go on with a run, and weigh its model again."""
    solver = path.name.split(".")[0]
    problem = seeds.problem(solver)
    try:
        result = fit(problem, seeds.SOLVERS[solver], seeds.LIMITS, seed=1, checkpoint=Checkpoint(path, every=1e9))
    except ValueError as error:
        return "refused" if "\n" not in str(error) else f"two lines: {error}"
    if not np.isfinite(result.certificate.primal):
        return "failed"
    with np.errstate(all="ignore"):
        weighed = evaluate(problem, Point(alpha=result.alpha)).certificate
    if result.certificate.dual > weighed.dual + 1e-6 * abs(weighed.primal):
        raise AssertionError(f"a dual bound of {result.certificate.dual} is claimed; it is {weighed.dual}")
    return "accepted"


def of_liblinear(path: Path) -> str:
    """Read and describe a LIBLINEAR model."""
    outcome = of_model(path)
    with contextlib.suppress(DataError):
        read_liblinear(path)
    return outcome


def of_npy(path: Path) -> str:
    """Describe, read and convert rows whose labels are in another file."""
    labels = path.with_name("labels.npy")
    np.save(labels, seeds.data()[1])
    outcome = of_command("info", str(path), "--label", str(labels))
    with contextlib.suppress(DataError):
        read(path, label=False)
    with contextlib.suppress(DataError):
        convert(path, path.with_name("converted.store"), label=str(labels), overwrite=True)
    return outcome


def of_proof(path: Path) -> str:
    """Verify a proof over the data that it was made for."""
    data = path.with_name("rows.libsvm")
    data.write_text(seeds.libsvm_text())
    return of_command("verify", str(path), str(data))


def of_archive(path: Path) -> str:
    """What is done with a packed file of its name."""
    return {".model": of_model, ".checkpoint": of_checkpoint}.get(path.suffix, of_data)(path)


USES = {
    "model": of_model,
    "checkpoint": of_checkpoint,
    "store": of_store,
    "liblinear": of_liblinear,
    "libsvm model": of_model,
    "npy": of_npy,
    "proof": of_proof,
    "lying": of_archive,
}


def memory(name: str) -> int:
    """Bytes of a line of the process's status; 0 where the system has none."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(name):
                return 1024 * int(line.split()[1])
    return 0


def forget_peak() -> None:
    """Begin to measure the peak of the memory anew, where the system can."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def attempt(kind: str, path: Path) -> dict[str, Any]:
    """What became of one file."""
    size = sum(file.stat().st_size for file in path.iterdir()) if path.is_dir() else path.stat().st_size
    forget_peak()
    before, began = memory("VmRSS"), time.process_time()
    try:
        outcome = USES.get(kind, of_data)(path)
    except BaseException as error:  # whatever it is, it should have been one line
        outcome = f"FAILED: {type(error).__name__}: {error}"[:400]
    peak = max(memory("VmHWM") - before, 0)
    if peak > ALLOWED_PEAK + 2 * size:
        outcome = f"FAILED: {peak} bytes of memory for a file of {size}; it was {outcome}"
    return {"outcome": outcome, "seconds": time.process_time() - began, "peak": peak, "size": size}


def case(kind: str, sources: list[Path], number: int, seed: int, folder: Path) -> Path:
    """The damaged file of a number; with a negative seed, byte ``number // 256`` of one is ``number % 256``."""
    if seed < 0 and kind != "store":
        source = sources[-(seed + 1) % len(sources)]
        whole = bytearray(source.read_bytes())
        whole[number // 256 % len(whole)] = number % 256
        (folder / source.name).write_bytes(whole)
        return beside(kind, source, folder)
    random = np.random.default_rng([seed, number, *kind.encode()])
    source = sources[int(random.integers(len(sources)))]
    target = folder / source.name
    if kind == "store":
        damage.damaged_store(source, target, random)
    else:
        target.write_bytes(damage.damaged_file(source, kind, random))
    return beside(kind, source, folder)


def beside(kind: str, source: Path, folder: Path) -> Path:
    """The damaged file, with the sound ones that it needs beside it."""
    if kind == "idx":
        labels = source.name.replace("images-idx3", "labels-idx1")
        shutil.copy(source.with_name(labels), folder / labels)
    return folder / source.name


def check_sound(kind: str, sources: list[Path], work: Path) -> None:
    """Use the sound files of a kind, twice: they must be accepted, and what they need is compiled then."""
    for source in (*sources, *sources):
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        target = work / source.name
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
        for beside in source.parent.glob("*labels-idx1*") if "images" in source.name else ():
            shutil.copy(beside, work / beside.name)
        found = attempt(kind, target)
        compiled = "bytes of memory" in found["outcome"]  # the first time takes the memory of a compilation
        if found["outcome"] != "accepted" and not compiled:
            raise SystemExit(f"the sound file {source.name} is not accepted: {found}")


def run(folder: Path, jobs: list[Job]) -> None:
    """Attack with the cases of each job; the sound files come before."""
    known = seeds.kinds_in(folder / "sound")
    checked: set[str] = set()
    for job, (kind, seed, first, last) in enumerate(jobs):
        sources, work = known[kind], folder / f"work-{kind}"
        print(json.dumps({"job": job}), flush=True)  # what comes next may compile, which takes its time
        # a damaged model of LIBLINEAR or LIBSVM may look like LIBSVM text, whose reader is to be loaded by then
        for one in {kind, "libsvm"} - checked if kind in ("liblinear", "libsvm model") else {kind} - checked:
            check_sound(one, known[one], work)
            checked.add(one)
        for number in range(first, last):
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir()
            path = case(kind, sources, number, seed, work)
            begun = {"job": job, "kind": kind, "number": number, "name": path.name}
            print(json.dumps(begun), flush=True)
            print(json.dumps({**begun, **attempt(kind, path)}), flush=True)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    run(Path(sys.argv[1]), json.loads(sys.argv[2]))
