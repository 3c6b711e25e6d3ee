"""The regularised risk problem over a kernel's feature space, and the certificate of a point of it.

    P(b, f) = C sum_i s_i phi_i(f_i + b) + (1/2) sum_i beta_i f_i,      f = K beta,  beta = C a
    D(a)    = -C sum_i s_i phi_i*(-a_i / s_i) - (1/2) sum_i beta_i f_i

This is :class:`saddlesvm.problem.problem.Problem` with ``w = sum_i beta_i k(x_i, .)`` known through its
coefficients only.
The gap bounds the distance to the optimum for positive semi-definite kernels. For others (sigmoid, some callables) the
problem is not convex: the gap is then still not negative and zero exactly at stationary points, but bounds nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from saddlesvm.problem.certificate import Certificate, Evaluation, evaluate
from saddlesvm.problem.intercepts import Intercept, InterceptName, make_intercept
from saddlesvm.problem.losses import LOSSES, Loss, loss_name, traits_of
from saddlesvm.problem.penalties import L2, Penalty
from saddlesvm.problem.problem import Strength, resolve_C
from saddlesvm.problem.proven_sums import Sums
from saddlesvm.problem.rounding import (
    SLACK,
    UNIT,
    MarginErrors,
    PointSizes,
    RowSizes,
    conjugate_rounding,
    gamma,
    paid_rounding,
    unbalance,
)
from saddlesvm.problem.sums import loss_sums
from saddlesvm.problem.terms import Pointwise
from saddlesvm.rows.kernel_errors import KernelErrors, kernel_errors
from saddlesvm.rows.kernels import Kernel, Matrix, expand


def has_kernel_solver(loss: Any) -> bool:
    """Whether kernel solvers can have a loss, or its class: ``phi*(-a) = -a y + r a^2 / 2`` within the bounds of a."""
    return traits_of(loss).task == "classification" and hasattr(loss, "ridge")


def check_kernel_loss(loss: Loss) -> Loss:
    """The loss itself.

    Raises
    ------
    ValueError
        It has no kernel solver.
    """
    if not has_kernel_solver(loss):
        able = [name for name, kind in LOSSES.items() if has_kernel_solver(kind)]
        raise ValueError(f"loss {loss_name(loss)!r} has no kernel solver: use one of {', '.join(able)}")
    return loss


@dataclass(frozen=True, eq=False)
class KernelProblem:
    """A two-class problem in the feature space of a kernel.

    Attributes
    ----------
    X : array or CSR matrix of shape (n, d); the n x n kernel matrix when it is precomputed
    kernel : Kernel
    y : ndarray of shape (n,), float64
        Labels -1 and +1.
    weights : ndarray of shape (n,) or (0,), float64
        Positive row weights; empty when all are 1.
    loss : Loss
        One with a ``ridge``, such as the hinge.
    C : float
    n_lambda : int
        Number of rows that define ``lambda = 1 / (n C)``: all of them, and those of weight zero that were left out.
    intercept : Absent, Regularized or Free
    cache_size : float
        Megabytes for rows of the kernel matrix.
    uses_lambda : bool
        Report objectives in the lambda form instead of the C form.
    threads : int
        That the fit may use.
    """

    X: Matrix
    kernel: Kernel
    y: np.ndarray
    weights: np.ndarray
    loss: Loss
    C: float
    n_lambda: int
    intercept: Intercept
    cache_size: float = 200.0
    uses_lambda: bool = False
    threads: int = 1

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.y.size

    @property
    def strength(self) -> Strength:
        """C, lambda and the form in which objectives are told."""
        return Strength(self.C, self.n_lambda, self.uses_lambda)

    @property
    def lam(self) -> float:
        """lambda = 1 / (n C)."""
        return self.strength.lam

    @property
    def unit(self) -> float:
        """What an objective in the C form is multiplied by to be reported: 1, or lambda in the lambda form."""
        return self.strength.unit

    @property
    def offset(self) -> float:
        """What a regularized intercept adds to every kernel value."""
        return self.intercept.in_kernel

    @property
    def penalty(self) -> Penalty:
        """Half the squared norm in the feature space: there is no other."""
        return L2()

    @cached_property
    def errors(self) -> KernelErrors:
        """What bounds on the rounding of kernel values need to know of the rows."""
        return kernel_errors(self.kernel, self.X)

    @cached_property
    def members(self) -> np.ndarray:
        """The rows that take part: all."""
        return np.arange(self.n, dtype=np.int32)

    @cached_property
    def terms(self) -> Pointwise:
        """Loss, labels and weights as compiled kernels take them."""
        return Pointwise(self.loss, self.y, self.weights)

    @cached_property
    def row_weights(self) -> np.ndarray:
        """Weights of all rows."""
        return self.weights if self.weights.size else np.ones(self.n)

    @property
    def n_features(self) -> int:
        """Number of features; of rows, for a precomputed kernel."""
        return self.X.shape[1]

    @property
    def values_per_row(self) -> float:
        """Mean number of stored values a row."""
        return max(1.0, (self.X.nnz if sparse.issparse(self.X) else self.X.size) / max(1, self.n))

    def box(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds of ``beta_i``, C times those of ``a_i``, shape (n,) each."""
        low, high = self.bounds()
        return self.C * low, self.C * high

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds of ``a_i``, shape (n,) each; they are proportional to the row weights."""
        negative, positive = (self.loss.bounds(sign, 1.0) for sign in (-1.0, 1.0))
        of_unit = (np.where(self.y > 0.0, *ends) for ends in zip(positive, negative, strict=True))
        low, high = (end * self.row_weights for end in of_unit)
        return low, high

    def ridge(self) -> np.ndarray:
        """What the conjugate of the loss adds to the diagonal of the kernel matrix, shape (n,); zero for the hinge."""
        loss: Any = self.loss
        return loss.ridge() / (self.C * self.row_weights)

    def margins(self, beta: np.ndarray) -> np.ndarray:
        """``f = K beta`` in float64, the virtual feature included; `beta` has shape (n,) or (n, points)."""
        support = np.flatnonzero(beta.any(axis=1) if beta.ndim == 2 else beta)
        f = expand(self.kernel, self.X, self.kernel.centres(self.X, support), beta[support])
        return f + self.offset * beta.sum(axis=0)

    def describe(self) -> str:
        """A line that says which problem this is."""
        return (
            f"{loss_name(self.loss)} loss, {self.kernel.name} kernel, {self.n:,} rows, "
            f"C = {self.C:g} (lambda = {self.lam:g}), intercept {self.intercept}"
        )


def make_kernel_problem(
    X: Matrix,
    kernel: Kernel,
    y: np.ndarray,
    loss: Loss,
    *,
    C: float | None = None,
    lam: float | None = None,
    weights: np.ndarray | None = None,
    members: np.ndarray | None = None,
    intercept: InterceptName | Intercept = "free",
    scale: float = 1.0,
    cache_size: float = 200.0,
) -> tuple[KernelProblem, np.ndarray]:
    """Assemble a problem from checked parts; also the numbers of the rows that take part.

    Parameters
    ----------
    y : ndarray of shape (n_all,)
        -1 and +1; anything for rows that are not members.
    weights : ndarray of shape (n_all,), optional
        Not negative; rows of weight zero are left out.
    members : ndarray, optional
        Ascending row numbers; all rows when left out.
    intercept : {"none", "regularized", "free"} or an intercept
    scale : float, default=1.0
        Value of the virtual constant feature of an intercept that is given by name.

    Raises
    ------
    ValueError
        The loss has no kernel solver, the intercept is unknown, or C and lam do not fit together.
    """
    check_kernel_loss(loss)
    kind = make_intercept(intercept, scale)
    chosen = np.arange(y.size) if members is None else members
    n_lambda = chosen.size
    uses_lambda = lam is not None
    C, _ = resolve_C(C, lam, n_lambda)
    s = np.empty(0)
    if weights is not None:
        chosen = chosen[weights[chosen] > 0.0]
        s = np.asarray(weights, dtype=np.float64)[chosen]
    if chosen.size < y.size:
        X = X[np.ix_(chosen, chosen)] if kernel.precomputed else X[chosen]
    problem = KernelProblem(
        X=X,
        kernel=kernel,
        y=np.ascontiguousarray(y[chosen], dtype=np.float64),
        weights=s,
        loss=loss,
        C=C,
        n_lambda=n_lambda,
        intercept=kind,
        cache_size=cache_size,
        uses_lambda=uses_lambda,
    )
    return problem, chosen


@dataclass(frozen=True)
class KernelPoint:
    """The result of a kernel solver.

    Attributes
    ----------
    beta : ndarray of shape (n,)
        Coefficients of the model ``sum_i beta_i k(x_i, .)``.
    dual : ndarray of shape (n,), optional
        A feasible point of the dual; left out: beta is one.
    """

    beta: np.ndarray
    dual: np.ndarray | None = None

    @property
    def tracks(self) -> bool:
        """False: a solver's running values come from float32 kernel values, which prove nothing."""
        return False


@dataclass(frozen=True)
class KernelEvaluation(Evaluation):
    """A certified model: `coef` holds beta, `margins` ``K beta`` (virtual feature included, free intercept not)."""

    margins: np.ndarray


def evaluate_kernel(problem: KernelProblem, point: KernelPoint, *, exact: bool = True) -> KernelEvaluation:
    """Certify a point.

    Parameters
    ----------
    problem : KernelProblem
    point : KernelPoint
    exact : bool, default=True
        Makes no difference: there is no cheaper certificate than the exact one.
    """
    beta = point.beta
    if point.dual is None or np.array_equal(point.dual, beta):
        f = problem.margins(beta)
        return _certify(problem, beta, f, beta, f)
    f, dual_f = problem.margins(np.column_stack([beta, point.dual])).T
    return _certify(problem, beta, np.ascontiguousarray(f), point.dual, dual_f)


def _certify(
    problem: KernelProblem, beta: np.ndarray, f: np.ndarray, dual: np.ndarray, dual_f: np.ndarray
) -> KernelEvaluation:
    """The model ``f = K beta``, with the best free intercept, against the dual point with ``dual_f = K dual``."""
    offset = problem.intercept.best(problem.terms, problem.members, f, 0.0)
    alpha = alpha_of(problem, dual)
    paid, conjugates, _, charged, _ = loss_sums(problem.terms, problem.members, f, offset, alpha)
    found = Sums(paid, conjugates, half_norm(beta, f), half_norm(dual, dual_f))
    sums = _rounded(problem, found, Expansion(beta, f, offset), Expansion(dual, dual_f, 0.0), alpha, charged)
    certificate = Certificate.of(problem.strength, sums)
    return KernelEvaluation(beta, offset + problem.offset * float(beta.sum()), alpha, certificate, f)


class Expansion(NamedTuple):
    """``sum_i beta_i k(x_i, .)``, its values f at the rows, and the offset added to them."""

    beta: np.ndarray
    f: np.ndarray
    offset: float


def _rounded(
    problem: KernelProblem, found: Sums, model: Expansion, dual: Expansion, alpha: np.ndarray, charged: float
) -> Sums:
    """The sums with bounds on their rounding: see :mod:`saddlesvm.problem.rounding`, and of kernel values
    :mod:`saddlesvm.rows.kernel_errors`.

    Parameters
    ----------
    charged : float
        Sum of the sizes of the conjugates of `alpha`.
    """
    loss, C, n = problem.loss, problem.C, problem.n
    lengths = np.sqrt(problem.errors.lengths**2 + problem.offset)
    slips = [_expansion_error(problem, one) for one in (model, dual)]
    s, e = problem.row_weights, slips[0] + 4.0 * UNIT * (abs(model.offset) + np.abs(model.f))
    rows = RowSizes(float(n), 0.0, 0.0, float(s @ e), float(s @ (e * e)), float(e.max(initial=0.0)))
    point = PointSizes(0.0, 0.0, 0.0, float(np.abs(alpha).sum()), *_signs(alpha))
    own, reached = (
        0.5 * (float(np.abs(one.beta) @ slip) + gamma(n + 4.0) * float(np.abs(one.beta) @ np.abs(one.f)))
        for one, slip in zip((model, dual), slips, strict=True)
    )

    def around(move: float) -> float:
        terms, offset = problem.terms, model.offset + move
        return float(loss_sums(terms, problem.members, model.f, offset, np.zeros(n))[0])

    above = own + C * paid_rounding(loss, found.paid, rows, point, MarginErrors(1.0, 0.0, 0.0), around)
    share = unbalance(point, rows) if problem.intercept.constrained else 0.0
    shift = float((share * np.abs(dual.beta) + np.abs(dual.beta - C * alpha) + UNIT * np.abs(dual.beta)) @ lengths)
    norm = math.sqrt(2.0 * max(found.regularizer_conjugate + reached, 0.0))
    below = reached + shift * (norm + shift)
    below += C * (conjugate_rounding(loss, rows, charged, point) + share * charged)
    return found._replace(primal_rounding=SLACK * above, dual_rounding=SLACK * below)


def _expansion_error(problem: KernelProblem, one: Expansion) -> np.ndarray:
    """How far the values of an expansion can be off, what a regularised intercept adds to them included."""
    size = float(np.abs(one.beta).sum())
    return problem.errors.of_expansion(one.beta, UNIT) + gamma(problem.n + 4.0) * problem.offset * size


def _signs(alpha: np.ndarray) -> tuple[float, float]:
    return float(np.maximum(alpha, 0.0).sum()), float(np.maximum(-alpha, 0.0).sum())


def half_norm(beta: np.ndarray, f: np.ndarray) -> float:
    """``R(w) = R*(w) = 1/2 ||w||^2`` in the feature space, of ``w = sum_i beta_i k(x_i, .)`` with ``f = K beta``."""
    return 0.5 * float(beta @ f)


def alpha_of(problem: KernelProblem, beta: np.ndarray) -> np.ndarray:
    """``a = beta / C``, kept inside the bounds that rounding may have crossed."""
    return np.clip(beta / problem.C, *problem.bounds())


def nearest_feasible(problem: KernelProblem, beta: np.ndarray) -> np.ndarray:
    """`beta` brought into its box and, for a free intercept, to the sum zero."""
    low, high = problem.box()
    clipped = np.clip(beta, low, high)
    if not problem.intercept.constrained:
        return clipped
    alpha = problem.intercept.balanced(problem.terms, problem.members, clipped / problem.C)
    return np.clip(alpha * problem.C, low, high)


evaluate.register(KernelProblem, evaluate_kernel)
