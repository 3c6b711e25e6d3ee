"""LIBSVM's model files: a text header, then a line for each support vector.

A line has the coefficients of the vector before its values. Support vectors come class by class, in
the order of the labels. A vector of class i has a coefficient against each other class j, in
position ``j - 1`` if j is later, else in position j; the score of the pair (i, j), which is
positive for i, is ``sum coefficient k(x, .) - rho``. Vectors have indices from 1 and leave zeros
out; vectors of a precomputed kernel are ``0:number``, the number of a training row from 1. This is
the format of LIBSVM 3.x.
"""

from __future__ import annotations

import io
import os
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from saddlesvm.data.errors import DataError, refuse_special
from saddlesvm.data.model_text import find_numbers, find_whole_numbers, read_header
from saddlesvm.data.streams import reading

LIBSVM_TYPES = ("c_svc", "nu_svc", "one_class", "epsilon_svr", "nu_svr")
# LIBSVM's kernels: their names in this package, and the parameters that each has.
LIBSVM_KERNELS = {
    "linear": ("linear", ()),
    "poly": ("polynomial", ("degree", "gamma", "coef0")),
    "polynomial": ("polynomial", ("degree", "gamma", "coef0")),
    "rbf": ("rbf", ("gamma",)),
    "sigmoid": ("sigmoid", ("gamma", "coef0")),
    "precomputed": ("precomputed", ()),
}
_KERNEL_NAMES = {"polynomial": "poly"}  # names that :class:`LibsvmModel` has for LIBSVM's
_DEFAULTS = {"degree": 3.0, "gamma": 1.0, "coef0": 0.0}  # for kernels without the parameter
_LINES = (
    "svm_type", "kernel_type", "degree", "gamma", "coef0", "nr_class", "total_sv", "rho", "label",
    "probA", "probB", "prob_density_marks", "nr_sv",
)  # fmt: skip
_LARGEST_INDEX = 2**31 - 1


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
        Numbers of the training rows, from 0; if the file does not state them, the positions of the
        vectors.
    labels : int64 ndarray of shape (n_classes,), or None
        In the order of the file.
    n_support : int32 ndarray of shape (n_classes,), or None
    """

    svm_type: str
    kernel: str
    degree: float
    gamma: float
    coef0: float
    dual_coef: np.ndarray
    rho: np.ndarray
    vectors: Any
    rows: np.ndarray
    labels: np.ndarray | None = None
    n_support: np.ndarray | None = None

    def with_ascending_labels(self) -> LibsvmModel:
        """Return the model with its classes in ascending order.

        The scores of a pair whose order is reversed change their sign.
        """
        if self.labels is None or self.n_support is None:
            return self
        K = self.labels.size
        order = np.argsort(self.labels)
        ends = np.concatenate([[0], np.cumsum(self.n_support)])
        # The file lists the vectors class by class.
        positions = [np.arange(ends[c], ends[c + 1]) for c in range(K)]
        vector_order = np.concatenate([positions[c] for c in order])
        dual = np.empty_like(self.dual_coef)
        rho = np.empty_like(self.rho)
        pair_number = {pair: k for k, pair in enumerate(combinations(range(K), 2))}

        # (i, j) is a pair in the ascending order, (a, b) the same pair in the order of the file.
        for (i, j), k in pair_number.items():
            a = int(order[i])
            b = int(order[j])
            # The file may have the pair the other way round: scores then change their sign.
            sign = -1.0
            if a < b:
                sign = 1.0
            old_k = pair_number[min(a, b), max(a, b)]
            rho[k] = sign * self.rho[old_k]
            dual[j - 1, positions[a]] = sign * self.dual_coef[b - (b > a), positions[a]]
            dual[i, positions[b]] = sign * self.dual_coef[a - (a > b), positions[b]]
        return replace(
            self,
            dual_coef=dual[:, vector_order],
            rho=rho,
            vectors=self.vectors[vector_order],
            rows=self.rows[vector_order],
            labels=self.labels[order],
            n_support=self.n_support[order],
        )


def is_libsvm_model(path: str | os.PathLike[str]) -> bool:
    """Return True if a file begins as LIBSVM's models do."""
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
        lines = read_header(file, where, _LINES, "SV", "LIBSVM")
        facts, total = _check_header(lines, where)
        labels = facts["labels"]
        # Coefficients of a vector: against each of the other classes, or one.
        height = 1
        if labels is not None:
            height = labels.size - 1
        # A digit and a space for each coefficient: do not allocate memory for a false header.
        line_bytes = max(3, 2 * height)
        if line_bytes * total > os.fstat(file.fileno()).st_size:
            raise DataError(
                f"{where}: says {total} support vectors, more than the file has room for"
            )
        is_precomputed = facts["kernel"] == "precomputed"
        dual, rows, vectors = _read_vectors(file, height, total, is_precomputed, where)
        return LibsvmModel(**facts, dual_coef=dual, rows=rows, vectors=vectors)


def _check_header(lines: dict[str, str], where: str) -> tuple[dict[str, Any], int]:
    """Return what the header says of a :class:`LibsvmModel`, and the number of its vectors."""
    kernels = {name: _KERNEL_NAMES.get(name, name) for name, _ in LIBSVM_KERNELS.values()}
    svm_type = lines.get("svm_type")
    kernel = kernels.get(lines.get("kernel_type", ""))
    if svm_type not in LIBSVM_TYPES or kernel is None:
        raise DataError(
            f"{where}: has svm_type {svm_type!r} and kernel_type {lines.get('kernel_type')!r}; "
            f"allowed are {', '.join(LIBSVM_TYPES)} and {', '.join(kernels)}"
        )
    # The header has the parameters of this kernel only; the others keep their defaults.
    parameters = dict(_DEFAULTS)
    for name in LIBSVM_KERNELS[kernel][1]:
        (parameters[name],) = find_numbers(lines, name, 1, where)
    degree = parameters["degree"]
    if degree < 0.0 or parameters["gamma"] < 0.0 or not degree.is_integer():
        raise DataError(
            f"{where}: degree and gamma must not be negative, and the degree must be whole"
        )
    (K,) = find_whole_numbers(lines, "nr_class", 1, where)
    (total,) = find_whole_numbers(lines, "total_sv", 1, where)
    has_classes = svm_type in ("c_svc", "nu_svc")
    # Models of regression and of one class say that they have two classes.
    if K < 2 or total < 0 or (K != 2 and not has_classes):
        raise DataError(f"{where}: has nr_class {K} and total_sv {total} for {svm_type}")
    n_pairs = K * (K - 1) // 2
    # A number for each pair takes a character at least.
    if len(lines.get("rho", "")) < n_pairs:
        raise DataError(f"{where}: has {K} classes; its rho must have a number for each pair")

    facts: dict[str, Any] = {
        "svm_type": svm_type,
        "kernel": kernel,
        **parameters,
        "rho": np.array(find_numbers(lines, "rho", n_pairs, where)),
        "labels": None,
        "n_support": None,
    }
    if has_classes:
        labels = np.array(find_whole_numbers(lines, "label", K, where), np.int64)
        n_support = np.array(find_whole_numbers(lines, "nr_sv", K, where), np.int64)
        if np.unique(labels).size < K or n_support.min() < 0 or n_support.sum() != total:
            raise DataError(
                f"{where}: its labels must differ, and its nr_sv add up to total_sv {total}"
            )
        facts["labels"] = labels
        facts["n_support"] = n_support.astype(np.int32)
    return facts, total


def _read_vectors(
    file: IO[str], height: int, total: int, is_precomputed: bool, where: str
) -> tuple[np.ndarray, np.ndarray, Any]:
    """Return coefficients, row numbers and values of the vectors, `height` coefficients each."""
    lines = [line.split() for line in file if not line.isspace()]
    if len(lines) != total:
        raise DataError(f"{where}: has {len(lines)} support vectors; its header says {total}")
    if any("_" in word for words in lines for word in words):
        raise DataError(f"{where}: its support vectors must be plain numbers, without '_'")
    # What follows the coefficients of a vector is LIBSVM text, when a label is put before it.
    text = "\n".join(" ".join(["0", *words[height:]]) for words in lines)
    try:
        dual = np.array([words[:height] for words in lines], dtype=np.float64)
        dual = dual.reshape(total, height).T.copy()
        vectors, _ = load_svmlight_file(io.BytesIO(text.encode()), zero_based=is_precomputed)
    except (ValueError, OverflowError) as error:
        raise DataError(
            f"{where}: coefficients and INDEX:VALUE are needed, with indices that ascend from 1: "
            f"{error}"
        ) from None
    if not (np.isfinite(dual).all() and np.isfinite(vectors.data).all()):
        raise DataError(f"{where}: its support vectors hold NaN or infinity")
    if not is_precomputed:
        return dual, np.arange(total, dtype=np.int32), sparse.csr_array(vectors)

    # Training rows by their numbers, counted from 1.
    numbers = vectors.data
    is_number = vectors.shape[1] == 1 and numbers.size == total
    is_row = (numbers >= 1) & (numbers <= _LARGEST_INDEX) & (numbers == np.floor(numbers))
    if not (is_number and is_row.all()):
        raise DataError(f"{where}: 0:NUMBER of a training row is needed for each support vector")
    return dual, numbers.astype(np.int32) - 1, sparse.csr_array((total, 0))
