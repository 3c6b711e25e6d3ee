"""Damaged files of every kind are read, or refused in one line, without a crash or much memory."""

from __future__ import annotations

import contextlib
import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from saddlesvm import LinearSVC, checker, load
from saddlesvm.data import Store, read
from saddlesvm.estimators.preparation import Preparation
from saddlesvm.estimators.training_data import read_training

from . import damage, examples, sound

ALLOWED_BYTES = 64 << 20  # beyond twice the size of the file


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of sound files."""
    made = tmp_path_factory.mktemp("files") / "sound"
    sound.make(made)
    return made


def use_model(path: Path) -> None:
    """Load a model, and predict with it."""
    model, preparation = Preparation.from_model(load(path))
    if preparation.kinds:
        preparation.read(str(words_beside(path)))
        return
    model.predict(np.zeros((2, min(model.n_features_in_, 1000))))


def words_beside(path: Path) -> Path:
    """A table that a model with words reads."""
    table = path.with_name("words.csv")
    if not table.exists():
        table.write_text('a,c,paid,day,note\n1.5,uv,"$1,250.00",2024-02-01 09:00,a note\n,w,$3.00,,\n')
    return table


def use_store(path: Path) -> None:
    """Open a store, read its rows, and train on it."""
    store = Store(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        LinearSVC(random_state=0, solver="dcd", max_iter=2).fit(store)


def use_proof(path: Path) -> None:
    """Check a proof over the data that it was made for."""
    data = path.with_name("rows.libsvm")
    data.write_text(sound.libsvm_text())
    # Whatever is wrong with a proof, it proves nothing; test_proofs.py has the forgeries.
    with contextlib.suppress(Exception):
        proof = json.loads(path.read_text("utf-8"))
        checker.check(proof, *checker.read(str(data), proof["read"]))


def use_archive(path: Path) -> None:
    """Load a model, or read data."""
    use_model(path) if path.suffix == ".model" else read(path)


def use_checkpoint(path: Path) -> None:
    """Go on from a checkpoint: whatever it holds, the certificate is of the data."""
    X, y = sound.data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = sound.CHECKPOINTED[path.name](path).set_params(max_iter=4).fit(X, y)
    assert model.certificate_.sound


USES: dict[str, Callable[[Path], Any]] = {
    "model": use_model,
    "store": use_store,
    "checkpoint": use_checkpoint,
    "liblinear": load,
    "npy": lambda path: read(path, label=False),
    "proof": use_proof,
    "lying": use_archive,
    "words": lambda path: Preparation.learn(read_training(str(path))),
}


def memory_in_use(field: str) -> int:
    """Read the process's memory in bytes; 0 if the system does not tell."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(field):
                return 1024 * int(line.split()[1])
    return 0


def forget_peak() -> None:
    """Measure the peak of the memory from here on, if the system can."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def make_damaged(kind: str, source: Path, folder: Path, random: np.random.Generator) -> Path:
    """Write a damaged copy of a sound file, and what it needs beside it."""
    target = folder / source.name
    if kind == "store":
        damage.damaged_store(source, target, random)
    else:
        target.write_bytes(damage.damaged_file(source, kind, random))
    if kind == "idx":
        labels = source.name.replace("images-idx3", "labels-idx1")
        shutil.copy(source.with_name(labels), folder / labels)
    return target


@pytest.mark.parametrize("kind", [*sound.PATTERNS])
def test_a_damaged_file_is_read_or_refused_in_one_line(
    kind: str, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if kind in ("parquet", "arrow"):
        pytest.importorskip("pyarrow")
    sources = sound.files_of(folder, kind)
    use = USES.get(kind, read)
    for source in sources:
        use(source)  # the sound files are accepted; this also compiles what they need

    @examples(40)
    @given(number=st.integers(0, 2**31))
    def attack(number: int) -> None:
        random = np.random.default_rng([number, *kind.encode()])
        source = sources[int(random.integers(len(sources)))]
        work = tmp_path_factory.mktemp("work")
        path = make_damaged(kind, source, work, random)
        size = sum(file.stat().st_size for file in work.rglob("*") if file.is_file())
        forget_peak()
        before = memory_in_use("VmRSS")
        try:
            with np.errstate(all="ignore"):
                use(path)
        except (ValueError, MemoryError) as error:
            # Weights take memory for every feature that a store says it has: that may be refused by the system.
            assert str(error) or isinstance(error, MemoryError), "refused without a word"
            assert "\n" not in str(error), str(error)
        peak = memory_in_use("VmHWM") - before
        shutil.rmtree(work)
        assert peak <= ALLOWED_BYTES + 2 * size, f"{peak} bytes of memory for a file of {size}"

    attack()
