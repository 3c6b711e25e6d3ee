"""The grid: data sets, losses, values of C, and which cells to run first."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

sys.path.append(str(Path(__file__).resolve().parents[3]))

from benchmarks.common import embedding_like, text_like
from saddlesvm.data import read

LOSSES = ("hinge", "squared_hinge", "logistic")
STRENGTHS = (0.01, 1.0, 100.0)
NOISE = 0.1  # share of labels that are flipped
QUICK_ROWS = 400
Pair = tuple[Any, np.ndarray]


def fashion(folder: Path) -> Pair:
    """Fashion-MNIST 2 (pullover) against 0 (T-shirt), float32 in [0, 1]: 12,000 x 784."""
    table = read(folder / "fashion-mnist" / "train-images-idx3-ubyte.gz")
    chosen = np.isin(table.y.astype(int), (0, 2))
    X = table.X[chosen].astype(np.float32) * np.float32(1 / 255)
    return X, np.where(table.y[chosen].astype(int) == 2, 1.0, -1.0)


def libsvm(folder: Path, name: str) -> Pair:
    """A LIBSVM text file."""
    table = read(folder / name)
    return table.X, np.where(table.y > 0, 1.0, -1.0)


def noisy_embedding(folder: Path, n: int, d: int) -> Pair:
    """Dense float32 rows with a tenth of the labels flipped."""
    X, y = embedding_like(n, d, np.float32)
    return X, np.where(np.random.default_rng(1).random(n) < NOISE, -y, y)


def synthetic_text(folder: Path, n: int, d: int, per_row: int) -> Pair:
    """TF-IDF-like sparse rows."""
    return text_like(n, d, per_row)


def embedding(folder: Path, n: int, d: int, dtype: Any) -> Pair:
    """Dense Gaussian rows."""
    return embedding_like(n, d, dtype)


@dataclass(frozen=True)
class Source:
    """A data set of the grid.

    Attributes
    ----------
    name, title : str
    make : callable
        Takes the data folder, gives rows and labels -1 and 1.
    small : callable
        The same for ``--quick``, before rows are left out.
    """

    name: str
    title: str
    make: Callable[[Path], Pair]
    small: Callable[[Path], Pair] | None = None


SOURCES: dict[str, Source] = {
    source.name: source
    for source in (
        Source("fashion", "Fashion-MNIST, pullover against T-shirt, dense", fashion),
        Source(
            "dense-noise", "synthetic embedding, dense, a tenth of the labels flipped",
            partial(noisy_embedding, n=200_000, d=512), partial(noisy_embedding, n=QUICK_ROWS, d=32),
        ),
        Source(
            "text", "synthetic TF-IDF-like text, sparse",
            partial(synthetic_text, n=200_000, d=50_000, per_row=70),
            partial(synthetic_text, n=QUICK_ROWS, d=500, per_row=20),
        ),
        Source(
            "sparse-100k", "synthetic TF-IDF-like text, sparse",
            partial(synthetic_text, n=100_000, d=47_000, per_row=70),
            partial(synthetic_text, n=QUICK_ROWS, d=470, per_row=20),
        ),
        Source(
            "dense-100k-f64", "synthetic embedding, dense", partial(embedding, n=100_000, d=512, dtype=np.float64),
            partial(embedding, n=QUICK_ROWS, d=32, dtype=np.float64),
        ),
        Source(
            "dense-100k-f32", "synthetic embedding, dense", partial(embedding, n=100_000, d=512, dtype=np.float32),
            partial(embedding, n=QUICK_ROWS, d=32, dtype=np.float32),
        ),
        Source("a9a", "Adult as indicators, sparse", partial(libsvm, name="a9a.bz2")),
        Source("rcv1", "Reuters news as TF-IDF, sparse", partial(libsvm, name="rcv1-binary.bz2")),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One problem of the grid."""

    data: str
    loss: str
    C: float

    def __str__(self) -> str:
        return f"{self.data}, {self.loss}, C = {self.C:g}"


# The cells that say most come first, so that a run that is cut short is still worth reading.
FIRST = (
    *(Cell("fashion", "hinge", C) for C in (0.01, 1.0, 100.0)),
    *(Cell("fashion", "squared_hinge", C) for C in (1.0, 100.0)),
    *(Cell("text", "hinge", C) for C in (1.0, 0.01)),
    *(Cell("sparse-100k", loss, 1.0) for loss in ("hinge", "squared_hinge")),
    *(Cell(f"dense-100k-{kind}", loss, 1.0) for loss in ("hinge", "squared_hinge") for kind in ("f64", "f32")),
    *(Cell("dense-noise", "hinge", C) for C in (0.01, 1.0)),
    *(Cell(data, loss, C) for data in ("a9a", "rcv1") for loss in ("hinge", "squared_hinge") for C in STRENGTHS),
    *(Cell(data, "logistic", 1.0) for data in ("fashion", "a9a", "rcv1", "sparse-100k", "dense-100k-f32")),
    Cell("text", "squared_hinge", 1.0),
    Cell("dense-noise", "hinge", 100.0),
    Cell("text", "hinge", 100.0),
    *(Cell(data, "logistic", C) for data in ("a9a", "rcv1", "fashion") for C in (0.01, 100.0)),
)
QUICK = (
    Cell("fashion", "hinge", 1.0),
    Cell("a9a", "squared_hinge", 1.0),
    Cell("text", "hinge", 1.0),
    Cell("dense-noise", "logistic", 1.0),
)


def every_cell() -> list[Cell]:
    """The whole grid, the cells of :data:`FIRST` first."""
    rest = (Cell(data, loss, C) for data in SOURCES for loss in LOSSES for C in STRENGTHS)
    return list(dict.fromkeys((*FIRST, *rest)))


def write_arrays(source: Source, folder: Path, scratch: Path, quick: bool) -> tuple[Path, dict[str, Any]]:
    """Put the plain arrays of a data set where the workers read them; the folder, and the sizes."""
    place = scratch / source.name
    X, y = (source.small or source.make)(folder) if quick else source.make(folder)
    if quick:
        few = np.random.default_rng(0).permutation(X.shape[0])[:QUICK_ROWS]
        X = X[few]
        y = y[few]
    place.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, np.ndarray] = {"y": np.asarray(y, dtype=np.float64)}
    if sparse.issparse(X):
        arrays |= {"data": X.data, "indices": X.indices.astype(np.int32), "indptr": X.indptr.astype(np.int32)}
        arrays["shape"] = np.array(X.shape)
    else:
        arrays["values"] = X
    for name, array in arrays.items():
        np.save(place / f"{name}.npy", array)
    stored = int(X.nnz) if sparse.issparse(X) else int(X.size)
    return place, {"rows": X.shape[0], "features": X.shape[1], "values": stored, "dtype": X.dtype.name}
