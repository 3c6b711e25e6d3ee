"""The processes that Atheris drives: they use damaged files, and keep those that reach new branches of the readers.

    python -m tests.attack.fuzzed FOLDER JOBS

A job is a kind of files, and libFuzzer's options; each is done by a process forked from one that has loaded all that is
needed, and what libFuzzer says goes to ``FOLDER/said-KIND``.

Each input is the contents of one file (of a store, of its header). Half of the mutations are libFuzzer's, the others
damage a file by its kind (:mod:`tests.attack.damage`), so that archives keep their checksums.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import atheris
import numpy as np

from .hunt import ROOT

SOURCE = ROOT / "src" / "saddlesvm"

READERS = (
    "data.",
    "checker",
    "cli.proofs",
    "estimators.libsvm",
    "estimators.model_checks",
    "estimators.persistence",
    "fit.checkpoint",
    "fit.restored",
)
KERNELS = "data.libsvm_kernel"  # compiled: it has no branches that Python could count


def others() -> list[str]:
    """The modules of the package whose branches are not counted; Atheris takes packages whole, but for these."""
    files = (file.relative_to(SOURCE).with_suffix("") for file in SOURCE.rglob("*.py"))
    names = [".".join(file.parts).removesuffix(".__init__") for file in files]
    return [f"saddlesvm.{name}" for name in names if name == KERNELS or not name.startswith(READERS)]


with atheris.instrument_imports(include=["saddlesvm"], exclude=others()):
    import saddlesvm.data  # noqa: F401

    from . import damage, seeds, victim


def main() -> None:
    """Do all jobs, one after the other."""
    folder = Path(sys.argv[1])
    sound = seeds.kinds_in(folder / "sound")
    # damaged files of other kinds may look like LIBSVM text, whose compiled reader is to be loaded by then
    victim.check_sound("libsvm", sound["libsvm"], folder / "fuzzed-libsvm")
    for kind, *words in json.loads(sys.argv[2]):
        child = os.fork()
        if child == 0:
            with (folder / f"said-{kind}").open("wb") as said:
                os.dup2(said.fileno(), sys.stderr.fileno())
            fuzz(kind, sound[kind], folder, words)
            os._exit(1)  # where Atheris returns
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        with (folder / f"said-{kind}").open("a") as said:
            said.write(f"\nended with {code}\n")


def fuzz(kind: str, sources: list[Path], folder: Path, words: list[str]) -> None:
    """Let Atheris choose inputs until its options end it."""
    work, failures = folder / f"fuzzed-{kind}", folder / f"failures-{kind}"
    victim.check_sound(kind, sources, work)
    seen: set[str] = set()

    def use(body: bytes) -> None:
        outcome = victim.attempt(kind, placed(kind, sources, body, work))["outcome"]
        if outcome.startswith("FAILED") and (mark := outcome[:60]) not in seen:
            seen.add(mark)
            with failures.open("a") as lines:
                lines.write(json.dumps({"outcome": outcome, "input": body.hex()}) + "\n")

    atheris.Setup([sys.argv[0], *words], use, custom_mutator=mutated(kind, sources, work))
    atheris.Fuzz()


def mutated(kind: str, sources: list[Path], work: Path) -> Callable[[bytes, int, int], bytes]:
    """Mutates an input for libFuzzer."""

    def mutate(body: bytes, most: int, seed: int) -> bytes:
        random = np.random.default_rng(seed)
        if random.random() < 0.5 or not body:
            return bytes(atheris.Mutate(body, most))
        file = work.with_name(f"{work.name}-mutated{sources[0].suffix}")
        file.write_bytes(body)
        try:
            if kind == "store":
                return json.dumps(damage.damaged_json(json.loads(body), random)).encode()[:most]
            return damage.damaged_file(file, kind, random)[:most]
        except Exception:  # it is damaged too much already to be damaged by its kind
            return damage.damaged_bytes(body, random)[:most]

    return mutate


def placed(kind: str, sources: list[Path], body: bytes, work: Path) -> Path:
    """A file of a kind with these contents, or a store with this header."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    source = source_of(kind, sources, body)
    if kind == "store":
        shutil.copytree(source, work / source.name)
        (work / source.name / "store.json").write_bytes(body)
    else:
        (work / source.name).write_bytes(body)
    return victim.beside(kind, source, work)


def source_of(kind: str, sources: list[Path], body: bytes) -> Path:
    """The sound file whose name the contents take: that which is most like them, by their first bytes."""

    def alike(source: Path) -> int:
        whole = header(source)
        return sum(a == b for a, b in zip(whole[:400], body[:400], strict=False))

    return max(sources, key=alike)


def header(source: Path) -> bytes:
    """The contents of a file; of a store, those of its header."""
    return (source / "store.json" if source.is_dir() else source).read_bytes()


def limited() -> None:
    """Let a bomb be a MemoryError, and not the machine's trouble."""
    resource.setrlimit(resource.RLIMIT_AS, (victim.ADDRESS_SPACE, victim.ADDRESS_SPACE))


if __name__ == "__main__":
    limited()
    main()
