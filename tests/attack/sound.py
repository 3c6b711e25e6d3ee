"""Sound files of every kind, small and always the same, from which damaged files are made."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import shutil
import struct
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from saddlesvm import SVC, LinearSVC, LinearSVR
from saddlesvm.data import Store
from saddlesvm.estimators.preparation import Preparation
from saddlesvm.estimators.training_data import read_training
from saddlesvm.models.liblinear_models import save_liblinear
from saddlesvm.models.persistence import save

N = 24
D = 5
PACKERS: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


def data() -> tuple[np.ndarray, np.ndarray]:
    """Draw rows and labels of two classes."""
    random = np.random.default_rng(7)
    X = np.round(random.normal(size=(N, D)), 3) * (random.random((N, D)) < 0.7)
    return X, np.where(X[:, 0] + 0.5 * random.normal(size=N) > 0, 1, -1)


def models(folder: Path) -> None:
    """Write models of every kind."""
    X, y = data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = np.array(["no", "yes", "é<\u202e"])
        three = names[(y > 0).astype(int) + (np.arange(N) % 3 == 0)]
        save(LinearSVC(random_state=0, class_weight={1: 2.0, -1: 1.0}).fit(X, y), folder / "two.model")
        save(LinearSVC(random_state=0, solver="dcd", multi_class="ovo").fit(X, three), folder / "three.model")
        save(LinearSVR(random_state=0).fit(X, X @ np.arange(D)), folder / "targets.model")
        save(SVC(random_state=0).fit(X, three), folder / "kernel.model")
        save(SVC(random_state=0).fit(sparse.csr_matrix(X), y), folder / "sparse.model")
        save_liblinear(LinearSVC(random_state=0).fit(X, y), folder / "two.liblinear")
        codes = (y > 0).astype(int) + (np.arange(N) % 3 == 0)
        save_liblinear(LinearSVC(random_state=0).fit(X, codes), folder / "three.liblinear")
        proof = LinearSVC(random_state=0).fit(X, y).proof(X, y, read={"zero_based": False})
        (folder / "two.proof").write_text(json.dumps(proof))


def libsvm_text() -> str:
    """Return the data as LIBSVM text."""
    return "".join(
        f"{label} " + " ".join(f"{j + 1}:{x}" for j, x in enumerate(row) if x) + "\n"
        for row, label in zip(*data(), strict=True)
    )


def texts(folder: Path) -> None:
    """Write text files, plain and compressed."""
    X, y = data()
    lines = [
        "a,b,c,d,e,label",
        *(",".join(map(str, row)) + f",{'yes' if k > 0 else 'no'}" for row, k in zip(X, y, strict=True)),
    ]
    for name, text in (("rows.libsvm", libsvm_text()), ("table.csv", "".join(f"{line}\n" for line in lines))):
        whole = text.encode()
        (folder / name).write_bytes(whole)
        for ending, pack in PACKERS.items():
            (folder / f"{name}.{ending}").write_bytes(pack(whole))


def binaries(folder: Path) -> None:
    """Write arrays, images and tables."""
    X, y = data()
    for name, write in (("plain", np.savez), ("packed", np.savez_compressed)):
        write(folder / f"{name}.npz", X=X, y=y)  # type: ignore[operator]
    np.save(folder / "rows.npy", X)
    csr = sparse.csr_matrix(X)
    parts = {"data": csr.data, "indices": csr.indices, "indptr": csr.indptr, "shape": np.array(csr.shape)}
    np.savez(folder / "csr.npz", **parts, format=np.array(b"csr"), y=y)
    images = np.arange(N * 6, dtype=np.uint8)
    head = b"\0\0\x08\x03" + struct.pack(">III", N, 2, 3)
    (folder / "t-images-idx3-ubyte").write_bytes(head + images.tobytes())
    (folder / "t-labels-idx1-ubyte").write_bytes(
        b"\0\0\x08\x01" + struct.pack(">I", N) + (y > 0).astype(np.uint8).tobytes()
    )
    (folder / "z-images-idx3-ubyte.gz").write_bytes(gzip.compress(head + images.tobytes()))
    shutil.copy(folder / "t-labels-idx1-ubyte", folder / "z-labels-idx1-ubyte")
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        return
    table = pa.table({**{f"f{j}": X[:, j] for j in range(D)}, "label": y})
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    (folder / "table.parquet").write_bytes(buffer.getvalue())
    with pa.OSFile(str(folder / "table.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def words(folder: Path) -> None:
    """Write tables with words and gaps, a model of them, and a store."""
    pd = pytest.importorskip("pandas")
    pytest.importorskip("skops")
    X, y = data()
    frame = pd.DataFrame({"a": np.where(X[:, 0] == 0, np.nan, X[:, 0]), "c": np.where(X[:, 1] > 0, "uv", "w")})
    frame["paid"] = 1000 * X[:, 2]
    frame["note"] = [f"note of row {k} in words" for k in range(N)]
    frame["label"] = np.where(y > 0, "yes", "no")
    frame.to_csv(folder / "words.csv", index=False)
    frame.to_parquet(folder / "words.parquet")
    table = read_training(str(folder / "words.csv"))
    preparation = Preparation.learn(table)
    rows = preparation.apply(table)
    save(
        preparation.prepend_to(LinearSVC(random_state=0).fit(rows.X, rows.y)), folder / "words.model", preparation.notes
    )


def stores(folder: Path) -> None:
    """Write a dense and a sparse store."""
    X, y = data()
    Store.create(folder / "dense.store", X, np.where(y > 0, "yes", "no"), np.ones(N))
    Store.create(folder / "csr.store", sparse.csr_matrix(X.astype(np.float32)), y)


def checkpoints(folder: Path) -> None:
    """Write the checkpoints of a dual solver, and of one that carries more than its solution."""
    X, y = data()
    for name, model in CHECKPOINTED.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model(folder / name).fit(X, y)


CHECKPOINTED: dict[str, Callable[[Path], Any]] = {
    "dcd.checkpoint": lambda path: LinearSVC(solver="dcd", max_iter=2, random_state=0, checkpoint=path),
    "pegasos.checkpoint": lambda path: LinearSVC(solver="pegasos", max_iter=2, random_state=0, checkpoint=path),
}


def make(folder: Path) -> None:
    """Write all sound files into a new folder."""
    folder.mkdir(parents=True)
    for write in (models, texts, binaries, stores, words, checkpoints):
        write(folder)


PATTERNS = {
    "model": ("*.model",),
    "store": ("*.store",),
    "checkpoint": ("*.checkpoint",),
    "liblinear": ("*.liblinear",),
    "proof": ("*.proof",),
    "libsvm": ("rows.libsvm",),
    "csv": ("table.csv",),
    "compressed": ("*.gz", "*.bz2", "*.xz"),
    "npz": ("*.npz",),
    "idx": ("t-images*",),
    "parquet": ("table.parquet",),
    "arrow": ("*.arrow",),
    "npy": ("rows.npy",),
    "words": ("words.csv", "words.parquet"),
    "lying": ("*.npz", "*.model", "*.gz"),
}


def files_of(folder: Path, kind: str) -> list[Path]:
    """List the sound files of a kind; folders for stores."""
    return sorted(path for pattern in PATTERNS[kind] for path in folder.glob(pattern))
