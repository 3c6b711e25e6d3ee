"""Kernel machines from LIBSVM's text models: a header, then a line for each support vector.

A line has the coefficients of the vector before its values. Support vectors come class by class, in
the order of the labels. A vector of class i has a coefficient against each other class j, in
position ``j - 1`` if j is later, else in position j; the score of the pair (i, j), which is
positive for i, is ``sum coefficient k(x, .) - rho``. Vectors have indices from 1 and leave zeros
out. This is the format of LIBSVM 3.x.
"""

from __future__ import annotations

import io
import os
from itertools import combinations, permutations
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from saddlesvm.data.errors import DataError, refuse_special
from saddlesvm.data.model_text import find_numbers, find_whole_numbers, read_header
from saddlesvm.data.streams import reading
from saddlesvm.estimators.base import Labels
from saddlesvm.kernel.kernel_fitted import KernelFitted, make_machine
from saddlesvm.kernel.mercer import Kernel, dense_if_quicker
from saddlesvm.kernel.svc import SVC, NuSVC
from saddlesvm.kernel.svm import SVR, NuSVR, OneClassSVM

if TYPE_CHECKING:
    from saddlesvm.kernel.kernel_machine import KernelMachine

MACHINES: dict[str, type] = {
    "c_svc": SVC, "nu_svc": NuSVC, "one_class": OneClassSVM, "epsilon_svr": SVR, "nu_svr": NuSVR,
}  # fmt: skip
# LIBSVM's kernels: their names here, and the parameters that each has.
KERNELS: dict[str, tuple[str, tuple[str, ...]]] = {
    "linear": ("linear", ()),
    "polynomial": ("poly", ("degree", "gamma", "coef0")),
    "rbf": ("rbf", ("gamma",)),
    "sigmoid": ("sigmoid", ("gamma", "coef0")),
}
DEFAULTS = {"degree": 3.0, "gamma": 1.0, "coef0": 0.0}  # for kernels without the parameter
LINES = (
    "svm_type", "kernel_type", "degree", "gamma", "coef0", "nr_class", "total_sv", "rho", "label",
    "probA", "probB", "prob_density_marks", "nr_sv",
)  # fmt: skip


def load_libsvm(path: str | os.PathLike[str], n_features: int | None = None) -> KernelMachine:
    """Read a LIBSVM text model: SVC, NuSVC, SVR, NuSVR or OneClassSVM, ready to predict.

    Parameters
    ----------
    path : path-like
    n_features : int, optional
        Of the rows to predict; the largest index of a support vector when left out, since the file
        does not state it.

    Returns
    -------
    estimator
        Its parameters beside the kernel's are defaults, its ``support_`` counts the vectors, and it
        has no certificate: the file holds none of that. ``notes_`` names the source.

    Raises
    ------
    DataError
        The file is damaged or foreign, has a precomputed kernel, or has more features than
        `n_features`.
    """
    where = os.fspath(path)
    refuse_special(path)
    with reading(Path(path)), open(path, encoding="utf-8-sig") as file:
        header = read_header(file, where, LINES, "SV", "LIBSVM")
        template, kernel = _read_machine(header, where)
        K, total = _read_sizes(header, where)
        rho = _read_pairs(header, K, where)
        n_support = np.array([total], dtype=np.int32)
        if has_classes(header):
            classes, n_support = _read_classes(header, K, total, where)
        # A digit and a space for each coefficient: do not allocate memory for a false header.
        if max(3, 2 * (K - 1)) * total > os.fstat(file.fileno()).st_size:
            raise DataError(
                f"{where}: says {total} support vectors, more than the file has room for"
            )
        duals, vectors = _read_vectors(file, K - 1, total, where)
    width = vectors.shape[1] if n_features is None else n_features
    if width < vectors.shape[1]:
        raise DataError(
            f"{where}: the model has {vectors.shape[1]} features; n_features={n_features} is too "
            "small"
        )
    template.n_features_in_ = width

    # Classifiers have classes, here in ascending order.
    labels = None
    sign = 1.0
    if has_classes(header):
        order = np.argsort(classes)
        ends = np.cumsum(n_support)
        positions = [np.arange(end - n, end) for n, end in zip(n_support, ends, strict=True)]
        duals = _sort_duals(duals, positions, order)
        rho = _sort_pairs(rho, order)
        vectors = vectors[np.concatenate([positions[c] for c in order])]
        labels = Labels(classes[order])
        n_support = n_support[order]
        # Scores of two classes are positive for the later class here, for the earlier one there.
        if K == 2:
            sign = -1.0
    rows = sparse.csr_array((vectors.data, vectors.indices, vectors.indptr), shape=(total, width))
    fitted = KernelFitted(
        template=template,
        kernel=kernel,
        support=np.arange(total, dtype=np.int32),
        vectors=dense_if_quicker(rows),
        n_support=n_support,
        duals=sign * duals,
        # LIBSVM's score is a sum less rho.
        intercept=-sign * rho,
        labels=labels,
        notes={"written by": f"LIBSVM ({header['svm_type']})"},
    )
    return make_machine(fitted)


def has_classes(header: dict[str, str]) -> bool:
    """Return True if a header is of a classifier."""
    return header["svm_type"] in ("c_svc", "nu_svc")


def _read_machine(header: dict[str, str], where: str) -> tuple[Any, Kernel]:
    """Return the estimator that a header names, and its kernel."""
    svm_type = header.get("svm_type", "")
    kernel_type = header.get("kernel_type", "")
    if svm_type not in MACHINES or kernel_type not in KERNELS:
        raise DataError(
            f"{where}: has svm_type {svm_type!r} and kernel_type {kernel_type!r}; "
            f"allowed are {', '.join(MACHINES)} and {', '.join(KERNELS)}"
        )
    # The header has the parameters of this kernel only; the others keep their defaults.
    name, needed = KERNELS[kernel_type]
    parameters = dict(DEFAULTS)
    for parameter in needed:
        (parameters[parameter],) = find_numbers(header, parameter, 1, where)
    degree = parameters["degree"]
    if degree < 0.0 or parameters["gamma"] < 0.0 or not degree.is_integer():
        raise DataError(
            f"{where}: degree and gamma must not be negative, and the degree must be whole"
        )
    kernel = Kernel(name, parameters["gamma"], degree, parameters["coef0"])
    return MACHINES[svm_type](kernel=name, **parameters), kernel


def _read_sizes(header: dict[str, str], where: str) -> tuple[int, int]:
    """Return the numbers of classes and of support vectors."""
    (K,) = find_whole_numbers(header, "nr_class", 1, where)
    (total,) = find_whole_numbers(header, "total_sv", 1, where)
    # Models of regression and of one class say that they have two classes.
    if K < 2 or total < 0 or (K != 2 and not has_classes(header)):
        raise DataError(f"{where}: has nr_class {K} and total_sv {total} for {header['svm_type']}")
    return K, total


def _read_pairs(header: dict[str, str], K: int, where: str) -> np.ndarray:
    """Return rho of each pair of classes."""
    n_pairs = K * (K - 1) // 2
    # A number for each pair takes a character at least.
    if len(header.get("rho", "")) < n_pairs:
        raise DataError(f"{where}: has {K} classes; its rho must have a number for each pair")
    return np.array(find_numbers(header, "rho", n_pairs, where))


def _read_classes(
    header: dict[str, str], K: int, total: int, where: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes in the order of the file, and the number of support vectors of each."""
    classes = np.array(find_whole_numbers(header, "label", K, where), np.int64)
    n_support = np.array(find_whole_numbers(header, "nr_sv", K, where), np.int64)
    if np.unique(classes).size < K or n_support.min() < 0 or n_support.sum() != total:
        raise DataError(
            f"{where}: its labels must differ, and its nr_sv add up to total_sv {total}"
        )
    return classes, n_support.astype(np.int32)


def _read_vectors(
    file: IO[str], height: int, total: int, where: str
) -> tuple[np.ndarray, sparse.csr_array]:
    """Return the coefficients, `height` for each vector, and the vectors."""
    lines = [line.split() for line in file if not line.isspace()]
    if len(lines) != total:
        raise DataError(f"{where}: has {len(lines)} support vectors; its header says {total}")
    if any("_" in word for words in lines for word in words):
        raise DataError(f"{where}: its support vectors must be plain numbers, without '_'")
    # What follows the coefficients of a vector is LIBSVM text, when a label is put before it.
    text = "\n".join(" ".join(["0", *words[height:]]) for words in lines)
    try:
        duals = np.array([words[:height] for words in lines], dtype=np.float64)
        duals = duals.reshape(total, height).T.copy()
        vectors, _ = load_svmlight_file(io.BytesIO(text.encode()), zero_based=False)
    except (ValueError, OverflowError) as error:
        raise DataError(
            f"{where}: coefficients and INDEX:VALUE are needed, with indices that ascend from 1: "
            f"{error}"
        ) from None
    if not (np.isfinite(duals).all() and np.isfinite(vectors.data).all()):
        raise DataError(f"{where}: its support vectors hold NaN or infinity")
    return duals, sparse.csr_array(vectors)


def _sort_duals(duals: np.ndarray, positions: list[np.ndarray], order: np.ndarray) -> np.ndarray:
    """Return the coefficients with the classes in `order`; `positions` are the vectors of each."""
    turned = np.empty_like(duals)
    for i, j in permutations(range(order.size), 2):
        # The same pair in the order of the file. If it is the other way round there, scores change
        # their sign.
        a = int(order[i])
        b = int(order[j])
        sign = 1.0 if (a < b) == (i < j) else -1.0
        turned[j - (j > i), positions[a]] = sign * duals[b - (b > a), positions[a]]
    return turned[:, np.concatenate([positions[c] for c in order])]


def _sort_pairs(rho: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return rho of the pairs with the classes in `order`."""
    pair_number = {pair: k for k, pair in enumerate(combinations(range(order.size), 2))}
    pairs = [(int(order[i]), int(order[j])) for i, j in pair_number]
    taken = [pair_number[min(pair), max(pair)] for pair in pairs]
    signs = np.array([1.0 if a < b else -1.0 for a, b in pairs])
    return signs * rho[taken]
