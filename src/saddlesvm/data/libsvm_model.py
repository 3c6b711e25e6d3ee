"""LIBSVM's model files: a text header, then a line for each support vector, its coefficients before its values.

Support vectors stand class by class, in the order of the labels. One of class i has a coefficient against each other
class j, in place ``j - 1`` where j is later, else in place j; the score of the pair (i, j), which is positive for i, is
``sum coefficient k(x, .) - rho``. Vectors have indices from 1 and leave zeros out; those of a precomputed kernel are
``0:number``, the number of a training row from 1. This is the format of LIBSVM 3.x.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy import sparse

from saddlesvm.data.errors import DataError, refuse_special
from saddlesvm.data.liblinear import header_of, numbered_lines, numbers_in, wholes_in
from saddlesvm.data.streams import reading
from saddlesvm.data.table import is_number

LIBSVM_TYPES = ("c_svc", "nu_svc", "one_class", "epsilon_svr", "nu_svr")
# LIBSVM's names of kernels with the parameters that each has, by this package's names.
LIBSVM_KERNELS = {
    "linear": ("linear", ()),
    "poly": ("polynomial", ("degree", "gamma", "coef0")),
    "polynomial": ("polynomial", ("degree", "gamma", "coef0")),
    "rbf": ("rbf", ("gamma",)),
    "sigmoid": ("sigmoid", ("gamma", "coef0")),
    "precomputed": ("precomputed", ()),
}
_OWN_KERNELS = {"polynomial": "poly"}
_LINES = (
    "svm_type", "kernel_type", "degree", "gamma", "coef0", "nr_class", "total_sv", "rho", "label", "probA", "probB",
    "prob_density_marks", "nr_sv",
)  # fmt: skip
_ENTRY = re.compile(r"([0-9]{1,9}):(\S+)")
PROB = ("probA", "probB")
_MOST_INDEX = 2**31 - 1


@dataclass(frozen=True)
class LibsvmModel:
    """A model in the terms of LIBSVM.

    Attributes
    ----------
    svm_type : str
        One of "c_svc", "nu_svc", "one_class", "epsilon_svr", "nu_svr".
    kernel : str
        "linear", "poly", "rbf", "sigmoid" or "precomputed".
    degree, gamma, coef0 : float
        Parameters of the kernels that have them.
    dual_coef : ndarray of shape (n_classes - 1, n_support), or (1, n_support)
    rho : ndarray of shape (n_pairs,)
    vectors : CSR array of shape (n_support, n_features); (n_support, 0) for a precomputed kernel
    rows : int32 ndarray of shape (n_support,)
        Numbers of the training rows, from 0; where the file does not state them, the places of the vectors.
    labels : int64 ndarray of shape (n_classes,), or None
        In the order of the file.
    n_support : int32 ndarray of shape (n_classes,), or None
    sigmoids : ndarray of shape (2, n_pairs), or None
        A and B of each pair: the probability of its first class is ``1 / (1 + exp(A f + B))`` for the decision value f.
    """

    svm_type: str
    kernel: str
    degree: float
    gamma: float
    coef0: float
    dual_coef: np.ndarray[Any, Any]
    rho: np.ndarray[Any, Any]
    vectors: Any
    rows: np.ndarray[Any, Any]
    labels: np.ndarray[Any, Any] | None = None
    n_support: np.ndarray[Any, Any] | None = None
    sigmoids: np.ndarray[Any, Any] | None = None

    def with_labels_ascending(self) -> LibsvmModel:
        """The same model with its classes in ascending order; scores of pairs that are thereby turned change signs."""
        if self.labels is None or self.n_support is None:
            return self
        order, K = np.argsort(self.labels), self.labels.size
        ends = np.concatenate([[0], np.cumsum(self.n_support)])
        places = [np.arange(ends[c], ends[c + 1]) for c in range(K)]
        at = np.concatenate([places[c] for c in order])
        dual = np.empty_like(self.dual_coef)
        rho, sigmoids = np.empty_like(self.rho), None if self.sigmoids is None else np.empty_like(self.sigmoids)
        number = {pair: k for k, pair in enumerate(combinations(range(K), 2))}
        for (i, j), k in number.items():  # of the ascending order
            a, b = int(order[i]), int(order[j])
            sign = 1.0 if a < b else -1.0
            before = number[min(a, b), max(a, b)]
            rho[k] = sign * self.rho[before]
            if sigmoids is not None and self.sigmoids is not None:
                sigmoids[:, k] = self.sigmoids[:, before] * (1.0, sign)
            dual[j - 1, places[a]] = sign * self.dual_coef[b - (b > a), places[a]]
            dual[i, places[b]] = sign * self.dual_coef[a - (a > b), places[b]]
        return LibsvmModel(
            self.svm_type, self.kernel, self.degree, self.gamma, self.coef0, dual[:, at], rho, self.vectors[at],
            self.rows[at], self.labels[order], self.n_support[order], sigmoids,
        )  # fmt: skip


def is_libsvm_model(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as LIBSVM's models do."""
    with open(path, "rb") as file:
        return file.read(9) == b"svm_type "


def read_libsvm_model(path: str | os.PathLike[str]) -> LibsvmModel:
    """Read a LIBSVM text model.

    Raises
    ------
    DataError
        Naming what is not as it must be.
    """
    where = os.fspath(path)
    refuse_special(path)
    with reading(Path(path)), open(path, encoding="utf-8-sig") as file:
        header, start = header_of(file, where, _LINES, "SV", "LIBSVM")
        model = _Header.of(header, where)
        of_a_line = max(3, 2 * model.height)  # bytes: a digit and a space for each coefficient
        if of_a_line * model.total > os.fstat(file.fileno()).st_size:
            raise DataError(f"{where}: says {model.total} support vectors, more than the file has room for")
        return _read_vectors(model, file, start, where)


@dataclass(frozen=True)
class _Header:
    """The header: the checked lines before the vectors."""

    svm_type: str
    kernel: str
    degree: float
    gamma: float
    coef0: float
    total: int
    rho: np.ndarray[Any, Any]
    labels: np.ndarray[Any, Any] | None
    n_support: np.ndarray[Any, Any] | None
    sigmoids: np.ndarray[Any, Any] | None

    @property
    def height(self) -> int:
        """Coefficients of each support vector."""
        return 1 if self.labels is None else self.labels.size - 1

    @classmethod
    def of(cls, lines: dict[str, str], where: str) -> _Header:
        kinds = {ours: _OWN_KERNELS.get(ours, ours) for ours, _ in LIBSVM_KERNELS.values()}
        kind, kernel = lines.get("svm_type"), kinds.get(lines.get("kernel_type", ""))
        if kind not in LIBSVM_TYPES or kernel is None:
            found = f"svm_type {kind!r} and kernel_type {lines.get('kernel_type')!r}"
            raise DataError(f"{where}: has {found}; allowed are {', '.join(LIBSVM_TYPES)} and {', '.join(kinds)}")
        numbers = {
            name: numbers_in(lines, name, 1, where)[0] if name in LIBSVM_KERNELS[kernel][1] else default
            for name, default in (("degree", 3.0), ("gamma", 1.0), ("coef0", 0.0))
        }
        if numbers["degree"] < 0.0 or numbers["gamma"] < 0.0 or not numbers["degree"].is_integer():
            raise DataError(f"{where}: degree and gamma must not be negative, and the degree must be whole")
        K, total = (wholes_in(lines, name, 1, where)[0] for name in ("nr_class", "total_sv"))
        of_classes = kind in ("c_svc", "nu_svc")
        if K < 2 or total < 0 or (K != 2 and not of_classes):
            raise DataError(f"{where}: has nr_class {K} and total_sv {total} for {kind}")
        if len(lines.get("rho", "")) < K * (K - 1) // 2:
            raise DataError(f"{where}: has {K} classes; its rho must have a number for each pair")
        rho = np.array(numbers_in(lines, "rho", K * (K - 1) // 2, where))
        labels = n_support = sigmoids = None
        if of_classes:
            labels, n_support = (np.array(wholes_in(lines, name, K, where), np.int64) for name in ("label", "nr_sv"))
            if np.unique(labels).size < K or n_support.min() < 0 or n_support.sum() != total:
                raise DataError(f"{where}: its labels must differ, and its nr_sv add up to total_sv {total}")
            if PROB[0] in lines or PROB[1] in lines:
                sigmoids = np.array([numbers_in(lines, name, rho.size, where) for name in PROB])
        return cls(kind, kernel, **numbers, total=total, rho=rho, labels=labels, n_support=n_support, sigmoids=sigmoids)


def _read_vectors(header: _Header, file: IO[str], start: int, where: str) -> LibsvmModel:
    height = header.height
    dual, rows = np.empty((height, header.total)), np.arange(header.total, dtype=np.int32)
    indices: list[int] = []
    values: list[float] = []
    ends = [0]
    given = header.kernel == "precomputed"
    for number, line in numbered_lines(file, where, start):
        k, words = len(ends) - 1, line.split()
        if not words:
            continue
        if k == header.total:
            raise DataError(f"{where}: line {number}: there are more support vectors than total_sv {header.total}")
        coefficients, entries = words[:height], [_ENTRY.fullmatch(word) for word in words[height:]]
        fine = len(coefficients) == height and all(map(is_number, coefficients))
        if not (fine and all(one is not None and is_number(one[2]) for one in entries)):
            raise DataError(f"{where}: line {number}: found {line[:60]!r}; coefficients and INDEX:VALUE are needed")
        dual[:, k] = [float(word) for word in coefficients]
        places, found = [int(one[1]) for one in entries if one], [float(one[2]) for one in entries if one]
        if given:
            if places != [0] or not (1 <= found[0] <= _MOST_INDEX and found[0].is_integer()):
                raise DataError(f"{where}: line {number}: found {line[:60]!r}; 0:NUMBER of a training row is needed")
            rows[k] = int(found[0]) - 1
        else:
            if any(b <= a for a, b in zip([0, *places], places, strict=False)):
                raise DataError(f"{where}: line {number}: indices must ascend from 1")
            indices += [place - 1 for place in places]
            values += found
        ends.append(len(indices))
    if len(ends) - 1 != header.total:
        raise DataError(f"{where}: has {len(ends) - 1} support vectors; its header says {header.total}")
    if not (np.isfinite(dual).all() and np.isfinite(values).all()):
        raise DataError(f"{where}: its support vectors hold NaN or infinity")
    parts = np.array(values, np.float64), np.array(indices, np.int32), np.array(ends, np.int32)
    width = max(indices, default=-1) + 1
    vectors = sparse.csr_array(parts, shape=(header.total, width))
    n_support = None if header.n_support is None else header.n_support.astype(np.int32)
    return LibsvmModel(
        header.svm_type, header.kernel, header.degree, header.gamma, header.coef0, dual, header.rho, vectors, rows,
        header.labels, n_support, header.sigmoids,
    )  # fmt: skip
