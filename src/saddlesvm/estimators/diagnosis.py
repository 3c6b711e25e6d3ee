"""Why a problem may be hard, and what to do about it: scales, constant and repeated columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.rows.passes import Passes
from saddlesvm.rows.scores import dense_weights, parts_of_rows
from saddlesvm.rows.small_types import widened

SPREAD = 100.0  # quotient of the largest and the smallest feature norm above which scaling helps
NAMED = 5
SAMPLED_ROWS = 1_000
HARDLY = 0.01  # share of the losses in the objective; below it C is larger than separable data need


@dataclass(frozen=True)
class Finding:
    """One property that makes a problem hard, and its remedy."""

    problem: str
    cure: str

    def __str__(self) -> str:
        return f"{self.problem}. {self.cure}"


def diagnose(X: Any) -> list[Finding]:
    """Check the columns of a design matrix.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)

    Returns
    -------
    list of Finding
        Empty when nothing was found.
    """
    norms, low, high, print_ = column_facts(X)
    used = norms > 0.0
    found = _spread(norms)
    constant = np.flatnonzero((low == high) & used)
    if constant.size:
        found.append(Finding(f"{_listed(constant)} constant", "An intercept does the same: leave them out"))
    empty = np.flatnonzero(~used)
    if empty.size and not sparse.issparse(X):
        found.append(Finding(f"{_listed(empty)} zero everywhere", "They have no effect"))
    repeated = _repeated(X, print_, used & (low != high))
    if repeated.size:
        found.append(
            Finding(f"{_listed(repeated)} a copy of an earlier column", "Leave copies out: they share one weight")
        )
    return found


def scale_hint(X: Any) -> list[Finding]:
    """A hint on the scales of the features, from some rows: cheap enough for the end of a fit."""
    if isinstance(X, Passes):
        return []
    n = X.shape[0]
    some = X[np.unique(np.linspace(0, n - 1, min(n, SAMPLED_ROWS)).astype(np.int64))]
    if not sparse.issparse(X):
        some = widened(some, np.float64)
        return _spread(np.sqrt(np.einsum("ij,ij->j", some, some)))
    used, place = np.unique(some.indices, return_inverse=True)
    return _spread(np.sqrt(np.bincount(place, np.square(some.data, dtype=np.float64))), used)


def separability(model: Any) -> list[Finding]:
    """A finding where the losses hardly count in the objective of a fitted model: C is then larger than needed."""
    certificate = model.certificate_
    scale = 1.0 if certificate.form == "C" else (model.lam or 1.0)
    norm = 0.5 * float(np.sum(np.square(dense_weights(model.coef_)))) * scale
    if certificate.primal <= 0.0 or norm < (1.0 - HARDLY) * certificate.primal:
        return []
    return [
        Finding(
            f"the losses are under {100 * HARDLY:g} % of the objective: the classes are (nearly) separable",
            "A larger C only takes longer; a smaller C is faster, and may generalise better",
        )
    ]


def _spread(norms: np.ndarray, columns: np.ndarray | None = None) -> list[Finding]:
    """Whether the norms of the features, those of some columns or of all, spread over orders of magnitude."""
    if not norms.any():
        return []
    used = np.where(norms > 0.0, norms, np.inf)
    largest, smallest = int(np.argmax(norms)), int(np.argmin(used))
    if norms[largest] <= SPREAD * used[smallest]:
        return []
    first, last = (k if columns is None else int(columns[k]) for k in (largest, smallest))
    return [
        Finding(
            f"the norms of the features spread over a factor of {norms[largest] / used[smallest]:.1e} "
            f"(largest: column {first}, smallest: column {last})",
            "Scale them to similar size before training (saddlesvm train --standardize; in Python StandardScaler, or "
            "MaxAbsScaler for sparse data): coordinate methods then need far fewer epochs, and the penalty treats the "
            "features alike",
        )
    ]


def column_facts(X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Norm, smallest and largest value of each column, and a random projection that equal columns share."""
    n, d = X.shape
    probe = np.random.default_rng(0).standard_normal(n)
    squares, print_, low, high = np.zeros(d), np.zeros(d), np.full(d, np.inf), np.full(d, -np.inf)
    for rows in parts_of_rows(X, least=d):
        part = X[rows]
        if sparse.issparse(part):
            squares += np.bincount(part.indices, np.square(part.data, dtype=np.float64), d)
            least, most = (one.toarray().ravel() for one in (part.min(axis=0), part.max(axis=0)))
        else:
            part = widened(part, np.float64)
            squares += np.einsum("ij,ij->j", part, part)
            least, most = part.min(axis=0), part.max(axis=0)
        print_ += part.T @ probe[rows]
        low, high = np.minimum(low, least), np.maximum(high, most)
    return np.sqrt(squares), low, high, print_


def _repeated(X: Any, print_: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Columns that equal an earlier one: same projection first, then value by value."""
    candidates = np.flatnonzero(among)
    order = candidates[np.argsort(print_[candidates], kind="stable")]
    apart = np.abs(np.diff(print_[order]))
    close = np.flatnonzero(apart <= 1e-12 * np.abs(print_[order[1:]]))
    pairs = np.sort(np.stack([order[close], order[close + 1]], axis=1), axis=1)
    for rows in parts_of_rows(X):
        if not len(pairs):
            break
        pairs = np.delete(pairs, _columns_apart(X[rows], *pairs.T), axis=0)
    return np.unique(pairs[:, 1])


def _columns_apart(X: Any, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The positions of the pairs of columns that have different values in some row."""
    if sparse.issparse(X):
        return np.unique((X[:, first] - X[:, second]).nonzero()[1])
    return np.flatnonzero((widened(X[:, first], np.float64) != widened(X[:, second], np.float64)).any(axis=0))


def _listed(columns: np.ndarray) -> str:
    """Columns by number, a few of them named."""
    named = ", ".join(map(str, columns[:NAMED].tolist()))
    if columns.size == 1:
        return f"column {named} is"
    return f"{columns.size} columns ({named}{', ...' if columns.size > NAMED else ''}) are"
