"""What the tests share: the losses, small data sets, plain references."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from saddlesvm.problem.losses import (
    LOSSES,
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Loss,
    SquaredHinge,
    make_loss,
    traits_of,
)
from saddlesvm.problem.problem import Problem, is_classification, make_problem
from saddlesvm.rows.layouts import as_rows
from support.own_losses import Expectile, SteepLogistic

OPTIONS = {"width": 0.5, "epsilon": 0.2, "delta": 0.6, "tau": 0.3}
PACKAGED = [make_loss(name, **OPTIONS) for name, kind in LOSSES.items() if not traits_of(kind).is_outside]
CLASSIFIERS = [loss for loss in PACKAGED if is_classification(loss)]
REGRESSORS = [loss for loss in PACKAGED if not is_classification(loss)]
OWN_LOSSES: list[Loss] = [Expectile(0.8), SteepLogistic(3.0)]
ALL_LOSSES = [*PACKAGED, Expectile(0.8)]
# One loss of each task and shape, for laws in which the kind of a loss matters. What rests on a loss's own arithmetic
# is tested for all of them, by its methods and by each family of solvers: every further signature takes seconds to
# compile.
KINDS_OF_LOSSES: list[Loss] = [Hinge(), SquaredHinge(), Logistic(), EpsilonInsensitive(0.2), Huber(0.6)]


def others_nightly(cases: Iterable[Any], kept: Callable[[Any], bool]) -> list[Any]:
    """The cases of a parametrised test, tuples for several parameters; those marked nightly that are not `kept`."""
    listed = [(case, case if type(case) is tuple else (case,)) for case in cases]  # losses are tuples of another type
    return [case if kept(case) else pytest.param(*each, marks=pytest.mark.nightly) for case, each in listed]


LOSSES_BY_KIND = others_nightly(ALL_LOSSES, lambda loss: type(loss) in map(type, KINDS_OF_LOSSES))


def named(loss: Loss) -> str:
    """A short name for a parametrised test."""
    return type(loss).__name__


def matrix(n: int = 60, d: int = 5, seed: int = 0, density: float = 1.0) -> np.ndarray:
    """Features of different sizes, correlated with their neighbours, some of them zero; (n, d) float64."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)) @ (np.eye(d) + 0.5 * np.eye(d, k=1)) * np.linspace(0.5, 1.5, d)
    return np.where(random.random((n, d)) < density, X, 0.0)


def labels(X: np.ndarray, loss: Loss, seed: int = 0) -> np.ndarray:
    """Noisy labels -1 and +1, or noisy targets, that a linear model explains in part; with an offset."""
    random = np.random.default_rng(seed + 1000)
    target = X @ np.cos(np.arange(X.shape[1])) + 0.4 + 0.7 * random.normal(size=len(X))
    return np.where(target > 0, 1.0, -1.0) if is_classification(loss) else target


def csr(X: np.ndarray, index: type = np.int32) -> sparse.csr_array:
    """CSR form of X with 32- or 64-bit indices."""
    S = sparse.csr_array(X)
    S.indices, S.indptr = S.indices.astype(index), S.indptr.astype(index)
    return S


def shuffled(S: sparse.csr_array, seed: int = 0) -> sparse.csr_array:
    """A copy with the stored values of each row in another order."""
    random, mixed = np.random.default_rng(seed), S.copy()
    for start, stop in itertools.pairwise(S.indptr):
        order = start + random.permutation(stop - start)
        mixed.indices[start:stop], mixed.data[start:stop] = S.indices[order], S.data[order]
    return mixed


def small_problem(loss: Loss, *, n: int = 60, d: int = 5, seed: int = 0, C: float = 0.5, **options: object) -> Problem:
    """A small dense float64 problem; `options` are those of ``make_problem``."""
    X = matrix(n, d, seed)
    if "lam" not in options:
        options["C"] = C
    bias = 0.0 if options.get("intercept", "none") == "none" else 1.0
    return make_problem(as_rows(X, bias), labels(X, loss, seed), loss, **options)  # type: ignore[arg-type]


def weight(problem: Problem, i: int) -> float:
    """Weight of row i."""
    return float(problem.weights[i]) if problem.weights.size else 1.0


def features(problem: Problem) -> np.ndarray:
    """The rows of a dense problem, the virtual feature appended; (n_all, d + 1) float64."""
    values = np.asarray(problem.X.values, dtype=np.float64)  # type: ignore[union-attr]
    return np.hstack([values, np.full((len(values), 1), problem.scale)])


def plain_primal(problem: Problem, coef: np.ndarray, intercept: float) -> float:
    """The objective of a model in the C form, written without the package's certificate."""
    z = features(problem)[:, :-1] @ coef + intercept
    paid = sum(weight(problem, i) * problem.loss.value(z[i], problem.y[i]) for i in problem.members)
    norm = coef @ coef + ((intercept / problem.scale) ** 2 if problem.intercept.name == "regularized" else 0.0)
    return float(0.5 * norm + problem.C * paid)


def plain_dual(problem: Problem, alpha: np.ndarray) -> float:
    """The dual objective of a point in the C form, written without the package's certificate."""
    members = problem.members
    paid = sum(problem.loss.conjugate(alpha[i], problem.y[i], weight(problem, i)) for i in members)
    w = problem.C * alpha[members] @ features(problem)[members]
    if problem.intercept.name == "free":
        w = w[:-1]
    return float(-problem.C * paid - 0.5 * w @ w)


def plain_bound(problem: Problem, alpha: np.ndarray) -> float:
    """The bound that a certificate tells of a dual point: its objective, or that of the point zero if it is better."""
    return max(plain_dual(problem, alpha), plain_dual(problem, np.zeros(problem.y.size)))


def distance_bound(*gaps: float) -> float:
    """How far apart the weights of certified models (C form) can be, by strong convexity; with rounding's share."""
    return sum(np.sqrt(2.0 * max(gap, 0.0)) for gap in gaps) + 1e-7


class Every:
    """A callback that asks for a certificate after so many epochs, and hands each record to others."""

    def __init__(self, every: float, *others: Callable[[Any], Any]) -> None:
        self.every = every
        self.others = others

    def __call__(self, record: Any) -> bool:
        asked = [other(record) for other in self.others]
        return any(asked)
