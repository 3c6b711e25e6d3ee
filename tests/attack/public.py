"""What a fitted estimator claims, read from its public attributes alone, and what is so.

The certificates say of each sub-problem what its model's objective is at most, and what every model's is at least. Here
both are computed anew from ``coef_``, ``intercept_``, ``dual_coef_``, ``support_``, ``kernel_``, the
parameters and the data.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm import SVR
from saddlesvm.estimators.register import entry_of

from . import judge, nu
from .exact import ONE, ZERO, exact, matrix, numbers
from .textbook import DEFINITE, Textbook, joint_textbook, kernel_value, textbook

JOINT = ("crammer_singer", "multinomial")


@dataclass(frozen=True)
class Claim:
    """What is so where a certificate claims something.

    Attributes
    ----------
    certificate : Certificate
    primal : Decimal
        The objective of the model.
    dual : Decimal or None
        No dual point near the published one proves a higher bound. None where none is published.
    problem : hashable
        The same for claims about one problem: the bound of each must hold for the models of all.
    bounded : bool
        Whether the dual is a bound: the kernel is positive semi-definite.
    whole : bool
        Whether the public attributes determine the objective: epsilon of NuSVR and rho of NuSVC are not published.
    """

    certificate: Any
    primal: Decimal
    dual: Decimal | None
    problem: Hashable
    bounded: bool = True
    whole: bool = True


@dataclass
class Data:
    """The rows, labels or targets, and row weights that models were fitted to; their decimals are kept."""

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None = None
    kept: dict[Hashable, Any] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.X)

    def once(self, name: Hashable, make: Callable[[], Any]) -> Any:
        """What was made under a name before, or is made now."""
        if name not in self.kept:
            self.kept[name] = make()
        return self.kept[name]

    @property
    def rows(self) -> list[list[Decimal]]:
        """All rows."""
        found: list[list[Decimal]] = self.once("rows", lambda: matrix(self.X))
        return found

    def gram(self, kernel: Any) -> list[list[Decimal]]:
        """The values of a kernel for all pairs of rows."""

        def make() -> list[list[Decimal]]:
            if kernel.precomputed:
                return self.rows
            name = "linear" if callable(kernel.metric) else kernel.metric  # the only function that the attack gives
            spread = Decimal(float(kernel.gamma)), Decimal(float(kernel.coef0)), kernel.degree
            lower = [[kernel_value(name, x, t, *spread) for t in self.rows[: i + 1]] for i, x in enumerate(self.rows)]
            return [[lower[max(i, j)][min(i, j)] for j in range(self.n)] for i in range(self.n)]

        found: list[list[Decimal]] = self.once(("gram", kernel), make)
        return found


@dataclass(frozen=True)
class Part:
    """A sub-problem: the rows that take part, with signs or targets and weights, and its name."""

    members: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    name: Hashable


@exact
def claims_of(model: Any, data: Data) -> list[Claim]:
    """All claims of a fitted estimator about its sub-problems.

    Raises
    ------
    KeyError
        The judge has no reader for this kind of estimator.
    """
    entry = entry_of(model)
    assert entry is not None, f"{type(model).__name__} is not registered"
    claims = list(READERS[entry.name](model, data))
    assert len(claims) == len(model.certificates_), "certificates_ and sub-problems are not as many"
    return claims


def strength_of(model: Any, n: int) -> tuple[Decimal, Callable[[Any], Decimal]]:
    """C, and the function that says what an objective in the C form is multiplied by to be told in a certificate."""
    lam = getattr(model, "lam", None)
    C = Decimal(float(getattr(model, "C_", None) or getattr(model, "C", 1.0) or 1.0)) if lam is None else None
    strength = 1 / (Decimal(float(lam)) * n) if C is None else C
    return strength, lambda certificate: 1 / (strength * n) if certificate.form == "lambda" else ONE


def loss_of(model: Any) -> Textbook:
    """The loss of an estimator: its name may carry an option, as in "huber:delta=2.0"."""
    only = "epsilon_insensitive" if isinstance(model, SVR) else "hinge"  # of kernel machines
    name, _, option = getattr(model, "loss", only).partition(":")
    usual = {"smooth_hinge": 1.0, "huber": 1.0, "pinball": 0.5}.get(name, 0.0)
    if name.endswith("epsilon_insensitive"):
        usual = model.epsilon
    return textbook(name, float(option.partition("=")[2] or usual))


def intercept_of(model: Any) -> tuple[str, Decimal]:
    """The kind of intercept, and the value of the constant feature."""
    kind = getattr(model, "intercept", "free") if getattr(model, "fit_intercept", True) else "none"
    return kind, Decimal(float(getattr(model, "intercept_scaling", 1.0)))


def row_weights(data: Data) -> np.ndarray:
    """Of all rows, without those of the classes."""
    return np.ones(data.n) if data.weights is None else np.asarray(data.weights, dtype=np.float64)


def class_weights(model: Any, data: Data, codes: np.ndarray) -> np.ndarray:
    """What the weights of each class's rows are multiplied by."""
    given, K = getattr(model, "class_weight", None), model.classes_.size
    if given is None:
        return np.ones(K)
    if given == "balanced":
        totals = np.bincount(codes, row_weights(data), K)
        return np.asarray(totals.sum() / (K * totals))
    return np.array([given.get(label, 1.0) for label in model.classes_.tolist()])


def parts_of(model: Any, data: Data, way: str) -> Iterator[Part]:
    """The two-class problems of labels, the columns of an indicator matrix, or the problems of targets."""
    everything, weights = np.arange(data.n), row_weights(data)
    if not hasattr(model, "classes_"):
        columns = data.y[:, None] if data.y.ndim == 1 else data.y
        yield from (Part(everything, column, weights, k) for k, column in enumerate(columns.T))
        return
    if data.y.ndim == 2:
        yield from (Part(everything, np.where(column, 1.0, -1.0), weights, k) for k, column in enumerate(data.y.T))
        return
    codes = np.searchsorted(model.classes_, data.y)
    factors = class_weights(model, data, codes)
    if way == "ovr" and model.classes_.size > 2:  # a class's weight counts in its own problem only, as in LIBLINEAR
        for k in range(model.classes_.size):
            yield Part(everything, np.where(codes == k, 1.0, -1.0), np.where(codes == k, factors[k], 1.0) * weights, k)
        return
    weights = factors[codes] * weights
    for i, j in combinations(range(model.classes_.size), 2):
        members = np.flatnonzero((codes == i) | (codes == j))
        yield Part(members, np.where(codes[members] == j, 1.0, -1.0), weights[members], (i, j))


def in_force(part: Part) -> tuple[np.ndarray, list[Decimal], list[Decimal]]:
    """The rows of a part that have a weight, their signs or targets, and their weights."""
    kept = part.weights > 0.0
    return part.members[kept], numbers(part.y[kept]), numbers(part.weights[kept])


def dense(given: Any) -> np.ndarray:
    """An array of at least two dimensions from a dense or sparse one."""
    return np.atleast_2d(given.toarray() if sparse.issparse(given) else np.asarray(given))


def linear(model: Any, data: Data) -> Iterator[Claim]:
    """The claims of LinearSVC and LinearSVR."""
    if getattr(model, "multi_class", "ovr") in JOINT:
        yield joint(model, data)
        return
    ratio = {"l2": ZERO, "l1": ONE, "elasticnet": Decimal(float(model.l1_ratio))}[model.penalty]
    square = 1 - ratio
    shared = square or ONE  # solvers divide the objective by it, and multipliers are of that
    coef, intercept = dense(model.coef_), np.ravel(model.intercept_)
    duals = dense(model.dual_coef_) if hasattr(model, "dual_coef_") else None
    for k, part in enumerate(parts_of(model, data, getattr(model, "multi_class", "ovr"))):
        rows, y, weights = in_force(part)
        C, unit = strength_of(model, part.members.size)
        space = judge.LinearSpace([data.rows[i] for i in rows], square, ratio)
        case = judge.Case(space, y, weights, C, loss_of(model), *intercept_of(model), square, ratio)
        certificate, bound = model.certificates_[k], None
        told = unit(certificate)
        if duals is not None:
            bound = told * judge.dual_at_most(case, [one * shared / C for one in numbers(duals[k][rows])])
        yield Claim(certificate, told * judge.primal(case, coef[k], intercept[k]), bound, (C, part.name))


def joint(model: Any, data: Data) -> Claim:
    """The claim of a machine that trains all classes together."""
    C, unit = strength_of(model, data.n)
    codes = np.searchsorted(model.classes_, data.y)
    weights = class_weights(model, data, codes)[codes] * row_weights(data)
    coef, intercept = dense(model.coef_), np.ravel(model.intercept_)
    loss = joint_textbook(model.multi_class)
    rows, _, s = in_force(Part(np.arange(data.n), codes, weights, 0))
    own = codes[rows].tolist()
    case = judge.JointCase([data.rows[i] for i in rows], own, s, C, loss, *intercept_of(model))
    two = model.classes_.size == 2
    if two:  # the second class against the first
        coef, intercept = np.vstack([-0.5 * coef, 0.5 * coef]), np.hstack([-0.5 * intercept, 0.5 * intercept])
    certificate, bound = model.certificate_, None
    told = unit(certificate)
    if hasattr(model, "dual_coef_"):
        duals = dense(model.dual_coef_)
        duals = np.vstack([-0.5 * duals, 0.5 * duals]) if two else duals
        alpha = [[one / C for one in numbers(duals[:, i])] for i in rows]
        bound = told * judge.joint_dual_at_most(case, alpha)
    return Claim(certificate, told * judge.joint_primal(case, coef, intercept), bound, (C, "joint"))


@dataclass(frozen=True)
class Expansion:
    """A function of a kernel's space: coefficients of rows, positive for the later class, and the intercept."""

    coef: np.ndarray
    intercept: float


def expansions(model: Any) -> Iterator[Expansion]:
    """The functions of a kernel machine's sub-problems, with a coefficient of each support vector."""
    duals, intercepts = dense(model.dual_coef_), np.ravel(model.intercept_)
    K = model.classes_.size if hasattr(model, "classes_") else 0
    if K <= 2:
        yield from (Expansion(row, b) for row, b in zip(duals, intercepts, strict=True))
        return
    own = np.repeat(np.arange(K), model.n_support_)
    for (i, j), b in zip(combinations(range(K), 2), intercepts, strict=True):
        row = np.where(own == i, duals[j - 1], 0.0) + np.where(own == j, duals[i], 0.0)
        yield Expansion(-row, -b)


def kernel_space(data: Data, model: Any, rows: np.ndarray, centres: np.ndarray) -> judge.KernelSpace:
    """The space of a kernel machine: all functions over its rows."""
    K = data.gram(model.kernel_)
    across, among = ([[K[i][j] for j in centres] for i in some] for some in (rows, centres))
    return judge.KernelSpace(across, among, [[K[i][j] for j in rows] for i in rows])


def definite(kernel: Any) -> bool:
    """Whether the kernel is positive semi-definite."""
    if kernel.metric == "poly":
        return bool(kernel.coef0 >= 0.0)
    return callable(kernel.metric) or kernel.precomputed or kernel.metric in DEFINITE


def kernel(model: Any, data: Data) -> Iterator[Claim]:
    """The claims of SVC and SVR."""
    support = np.asarray(model.support_)
    parts = parts_of(model, data, "ovo")
    for k, (part, one) in enumerate(zip(parts, expansions(model), strict=True)):
        rows, y, weights = in_force(part)
        C, unit = strength_of(model, part.members.size)
        case = judge.Case(kernel_space(data, model, rows, support), y, weights, C, loss_of(model), *intercept_of(model))
        certificate = model.certificates_[k]
        told = unit(certificate)
        true = told * judge.primal(case, one.coef, one.intercept)
        yield Claim(certificate, true, None, (C, part.name), definite(model.kernel_))


def with_nu(model: Any, data: Data) -> Iterator[Claim]:
    """The claims of NuSVC, NuSVR and OneClassSVM."""
    name = entry_of(model).name  # type: ignore[union-attr]
    C = Decimal(float(getattr(model, "C", None) or 1.0)) if name == "NuSVR" else ONE
    support = np.asarray(model.support_)
    if name == "OneClassSVM":
        parts = iter([Part(np.arange(data.n), np.zeros(data.n), row_weights(data), 0)])
    else:
        parts = parts_of(model, data, "ovo")
    for k, (part, one) in enumerate(zip(parts, expansions(model), strict=True)):
        rows, y, weights = in_force(part)
        case = nu.Case(kernel_space(data, model, rows, support), y, weights, C, Decimal(float(model.nu)))
        true = nu.PRIMALS[name](case, one.coef, one.intercept)
        label = (C, part.name)
        yield Claim(model.certificates_[k], true, None, label, definite(model.kernel_), name == "OneClassSVM")


READERS: dict[str, Callable[[Any, Data], Iterator[Claim]]] = {
    "LinearSVC": linear,
    "LinearSVR": linear,
    "SVC": kernel,
    "SVR": kernel,
    "NuSVC": with_nu,
    "NuSVR": with_nu,
    "OneClassSVM": with_nu,
}
