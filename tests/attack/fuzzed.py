"""The process that Atheris drives: it uses damaged files, and keeps those that reach new branches of the readers.

    python -m tests.attack.fuzzed KIND FOLDER FAILURES [libFuzzer's options and corpus]

Each input is the contents of one file (of a store, of its header). Half of the mutations are libFuzzer's, the others
damage a file by its kind (:mod:`tests.attack.damage`), so that archives keep their checksums.
"""

from __future__ import annotations

import json
import resource
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import atheris
import numpy as np

KERNELS = ["saddlesvm.data.libsvm_kernel"]  # compiled: they have no branches that Python could count
READERS = ["saddlesvm.data", "saddlesvm.estimators.persistence", "saddlesvm.fit.checkpoint", "saddlesvm.fit.restored"]

with atheris.instrument_imports(include=READERS, exclude=KERNELS):
    import saddlesvm.data  # noqa: F401

    from . import damage, seeds, victim

NAMES = {"compressed": "rows.libsvm.gz", "lying": "csr.npz", "store": "store.json"}


def main() -> None:
    """Let Atheris choose inputs until its options end it."""
    kind, folder, failures, *words = sys.argv[1:]
    sources = seeds.kinds_in(Path(folder) / "sound")[kind]
    work = Path(folder) / f"fuzzed-{kind}"
    victim.check_sound(kind, sources, work)
    seen: set[str] = set()

    def use(body: bytes) -> None:
        found = victim.attempt(kind, placed(kind, sources, body, work))
        outcome = found["outcome"]
        if outcome.startswith("FAILED") and (mark := outcome[:60]) not in seen:
            seen.add(mark)
            with Path(failures).open("a") as lines:
                lines.write(json.dumps({"kind": kind, "outcome": outcome, "input": body.hex()}) + "\n")

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
