"""Sound files of every kind, small and always the same: what the damaged ones are made from."""

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
from scipy import sparse

from saddlesvm import SVC, SVR, KernelSVC, LinearSVC, LinearSVR
from saddlesvm.data import Store
from saddlesvm.estimators.model_files import save_libsvm
from saddlesvm.estimators.persistence import save, save_liblinear
from saddlesvm.fit.checkpoint import Checkpoint
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits
from saddlesvm.problem.crammer_singer import make_joint_problem
from saddlesvm.problem.losses import Hinge, SquaredHinge
from saddlesvm.problem.problem import make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers import DCD, SDCA, Auto, Newton, Pegasos
from saddlesvm.solvers.crammer_singer import CrammerSinger
from saddlesvm.solvers.threaded.descent import ParallelDCD

N, D = 24, 5
PACKERS: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
SOLVERS: dict[str, Any] = {
    "dcd": DCD(),
    "sdca": SDCA(output="average"),
    "pegasos": Pegasos(),
    "newton": Newton(),
    "auto": Auto(),
    "threads": ParallelDCD(2),
    "joint": CrammerSinger(),
}
LIMITS = Limits(tol=0.0, max_epochs=8, certify_every=2)


def data() -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels of two classes."""
    random = np.random.default_rng(7)
    X = np.round(random.normal(size=(N, D)), 3) * (random.random((N, D)) < 0.7)
    return X, np.where(X[:, 0] + 0.5 * random.normal(size=N) > 0, 1, -1)


def problem(solver: str) -> Any:
    """The problem whose checkpoints are attacked."""
    X, y = data()
    if solver == "joint":
        return make_joint_problem(
            as_rows(X, 1.0), (y > 0).astype(int) + (np.arange(N) % 3 == 0), 3, Hinge(), C=1.0, intercept="regularized"
        )
    loss = SquaredHinge() if solver in ("newton", "auto") else Hinge()
    return make_problem(as_rows(sparse.csr_matrix(X), 1.0), y.astype(float), loss, C=1.0, intercept="regularized")


def checkpoint(path: Path, solver: str) -> None:
    """A checkpoint of a run that is under way."""
    given = SOLVERS[solver]
    ended = Checkpoint(path, every=1e9)
    fit(problem(solver), given, Limits(tol=0.0, max_epochs=4, certify_every=2), seed=1, checkpoint=ended)


def models(folder: Path) -> None:
    """Models of every kind."""
    X, y = data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = np.array(["no", "yes", "é<\u202e"])
        three = names[(y > 0).astype(int) + (np.arange(N) % 3 == 0)]
        save(LinearSVC(random_state=0, class_weight={1: 2.0, -1: 1.0}).fit(X, y), folder / "two.model")
        save(LinearSVC(random_state=0, solver=DCD(), multi_class="ovo").fit(X, three), folder / "three.model")
        save(LinearSVR(random_state=0).fit(X, X @ np.arange(D)), folder / "targets.model")
        save(KernelSVC(random_state=0).fit(X, three), folder / "kernel.model")
        save(KernelSVC(random_state=0).fit(sparse.csr_matrix(X), y), folder / "sparse.model")
        save_liblinear(LinearSVC(random_state=0).fit(X, y), folder / "two.liblinear")
        codes = (y > 0).astype(int) + (np.arange(N) % 3 == 0)
        save_liblinear(LinearSVC(random_state=0).fit(X, codes), folder / "three.liblinear")
        save_libsvm(SVC(probability=True, random_state=0).fit(X, codes), folder / "three.libsvm-model")
        save_libsvm(SVR(kernel="poly").fit(sparse.csr_matrix(X), X[:, 0]), folder / "targets.libsvm-model")
        proof = LinearSVC(random_state=0).fit(X, y).proof(X, y, read={"zero_based": False})
        (folder / "two.proof").write_text(json.dumps(proof))


def libsvm_text() -> str:
    """The data as LIBSVM text."""
    return "".join(
        f"{label} " + " ".join(f"{j + 1}:{x}" for j, x in enumerate(row) if x) + "\n"
        for row, label in zip(*data(), strict=True)
    )


def texts(folder: Path) -> None:
    """Text files, plain and compressed."""
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
    named = ({**dict(zip("abcde", row, strict=True)), "label": int(k)} for row, k in zip(X.tolist(), y, strict=True))
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in named))


def binaries(folder: Path) -> None:
    """Arrays, images and tables."""
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


def stores(folder: Path) -> None:
    """Stores, dense and sparse."""
    X, y = data()
    Store.create(folder / "dense.store", X, np.where(y > 0, "yes", "no"), np.ones(N))
    Store.create(folder / "csr.store", sparse.csr_matrix(X.astype(np.float32)), y)


def make(folder: Path, solvers: tuple[str, ...] = tuple(SOLVERS)) -> None:
    """Write all sound files."""
    folder.mkdir(parents=True, exist_ok=True)
    for write in (models, texts, binaries, stores):
        write(folder)
    for solver in solvers:
        checkpoint(folder / f"{solver}.checkpoint", solver)


PATTERNS = {
    "model": ("*.model",),
    "checkpoint": ("*.checkpoint",),
    "store": ("*.store",),
    "liblinear": ("*.liblinear",),
    "libsvm model": ("*.libsvm-model",),
    "proof": ("*.proof",),
    "libsvm": ("rows.libsvm",),
    "csv": ("table.csv",),
    "compressed": ("*.gz", "*.bz2", "*.xz"),
    "npz": ("*.npz",),
    "idx": ("t-images*",),
    "parquet": ("*.parquet",),
    "arrow": ("*.arrow",),
    "npy": ("rows.npy",),
    "jsonl": ("*.jsonl",),
    "lying": ("*.npz", "*.model", "*.checkpoint", "*.gz"),
}


def kinds_in(folder: Path) -> dict[str, list[Path]]:
    """The sound files by their kind; folders for stores."""
    return {
        kind: sorted(path for pattern in patterns for path in folder.glob(pattern))
        for kind, patterns in PATTERNS.items()
    }
