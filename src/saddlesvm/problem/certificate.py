"""Primal, dual and gap of a point: the one place where they are computed, always in float64.

The gap is a proof: ``P(w) - P(w*) <= P(w) - D(a)`` for every dual feasible a (weak duality). A dual solver hands over
its a, and w(a) is rebuilt from it here; a primal solver hands over w, and a dual point is derived from the
sub-gradients at its margins and improved by a line search on its scale. That bound may be loose; it is true.

With a free intercept the dual has the constraint ``sum_i a_i = 0``. A point that violates it is balanced first, by
shortening variables of the heavier sign, those strictly inside their bounds before all others (which costs the bound
only second order terms).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, TypeVar

import numpy as np
from scipy.optimize import minimize_scalar

from saddlesvm.problem.intercepts import balance, best_offset
from saddlesvm.problem.losses import Logistic, conjugate, subgradient, value
from saddlesvm.problem.problem import Pointwise, Problem, Terms, is_classification, weight_of
from saddlesvm.rows import layouts as rows
from saddlesvm.runtime.compiled import kernel
from saddlesvm.runtime.threads import in_parts

Answer = TypeVar("Answer")
ROUNDING = 1e-11  # relative size of a negative gap that rounding explains
PARABOLA_STEP, PARABOLA_REACH = 0.01, 5.0  # between three factors; steps up to which their parabola is trusted


@dataclass(frozen=True)
class Certificate:
    """A proven bound on how far a model is from the optimum.

    Attributes
    ----------
    primal : float
        Objective of the model: ``1/2 ||w||^2 + C sum_i s_i phi_i`` in the C form,
        ``lambda/2 ||w||^2 + 1/n sum_i s_i phi_i`` in the lambda form.
    dual : float
        A lower bound on the objective of every model.
    form : {"C", "lambda"}
        Which of the two objectives it is.
    """

    primal: float
    dual: float
    form: str = "C"

    def __post_init__(self) -> None:
        if 0.0 < self.dual - self.primal <= ROUNDING * abs(self.primal):
            object.__setattr__(self, "dual", self.primal)  # the sums agree to their rounding

    @property
    def gap(self) -> float:
        """``primal - dual``: the objective is at most this far above the optimum."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """``gap / primal``; the same in both forms. Zero for a model without any loss or norm: none can be better."""
        return 0.0 if self.primal <= 0.0 else self.gap / self.primal

    @property
    def excess(self) -> float:
        """The largest possible ``primal / optimum - 1``; infinite when the bound says nothing."""
        if self.primal <= 0.0:
            return 0.0
        return self.gap / self.dual if self.dual > 0.0 else math.inf

    @property
    def sound(self) -> bool:
        """Whether the gap is not negative beyond rounding; anything else is a bug or an overflow."""
        return math.isfinite(self.gap) and self.gap >= -ROUNDING * max(abs(self.primal), abs(self.dual))

    def __str__(self) -> str:
        return f"primal {self.primal:.10g}, dual {self.dual:.10g}, relative gap {self.relative_gap:.2e}"


@dataclass(frozen=True)
class Point:
    """What a solver hands over: a primal point, a dual point, or both.

    Attributes
    ----------
    w : ndarray of shape (d + 1,), optional
        Weights; the last place is the virtual feature's. Left out: ``w(alpha)`` is meant.
    alpha : ndarray of shape (n_all,), optional
        Dual variables, feasible but for the sum that a free intercept asks to be zero.
    tracks : bool
        `w` is the running ``w(alpha)`` of a dual solver, equal to it but for rounding.
    """

    w: np.ndarray | None = None
    alpha: np.ndarray | None = None
    tracks: bool = False


@dataclass(frozen=True)
class Evaluation:
    """A certified model: weights of shape (d,), intercept, feasible dual point of shape (n_all,), and the proof."""

    coef: np.ndarray
    intercept: float
    alpha: np.ndarray
    certificate: Certificate


@kernel
def loss_sums(terms: Pointwise, members: np.ndarray, z: np.ndarray, offset: float, alpha: np.ndarray) -> Any:
    """Sums over the members of ``s phi(z + offset)``, ``s phi*(-a / s)`` and ``a z``."""
    paid = conjugates = coupled = 0.0
    for k in range(members.size):
        i = members[k]
        s = weight_of(terms.weights, i)
        paid += s * value(terms.loss, z[k] + offset, terms.y[i])
        conjugates += conjugate(terms.loss, alpha[i], terms.y[i], s)
        coupled += alpha[i] * z[k]
    return paid, conjugates, coupled


@kernel
def margin_sums(terms: Terms, members: np.ndarray, w: np.ndarray, alpha: np.ndarray) -> Any:
    """The same sums for the margins of w, one row after the other, so that no margin need be kept."""
    paid = conjugates = coupled = 0.0
    for k in range(members.size):
        i = members[k]
        rows.next_ahead(terms.X, members, k)
        s, z = weight_of(terms.weights, i), rows.dot(terms.X, i, w)
        paid += s * value(terms.loss, z, terms.y[i])
        conjugates += conjugate(terms.loss, alpha[i], terms.y[i], s)
        coupled += alpha[i] * z
    return paid, conjugates, coupled


@kernel
def conjugate_sum(terms: Pointwise, members: np.ndarray, alpha: np.ndarray, factor: float) -> float:
    """Sum over the members of ``s phi*(-factor a / s)``."""
    total = 0.0
    for k in range(members.size):
        i = members[k]
        total += conjugate(terms.loss, factor * alpha[i], terms.y[i], weight_of(terms.weights, i))
    return total


@kernel
def dual_of_margins(terms: Pointwise, members: np.ndarray, z: np.ndarray, offset: float, alpha: np.ndarray) -> None:
    """``alpha_i = -s_i phi_i'(z_i + offset)`` for the members: dual feasible by definition of the conjugate."""
    for k in range(members.size):
        i = members[k]
        alpha[i] = -weight_of(terms.weights, i) * subgradient(terms.loss, z[k] + offset, terms.y[i])


def dual_weights(problem: Problem, alpha: np.ndarray) -> np.ndarray:
    """``w(alpha) = C sum_i alpha_i x_i`` in float64, shape (d + 1,); the virtual feature is included."""

    def of_part(part: slice) -> np.ndarray:
        w = np.zeros(problem.n_features + 1)
        rows.add_rows(problem.X, problem.members[part], alpha, w)
        return w

    w, *others = _in_parts(problem, of_part)
    for other in others:
        w += other
    w *= problem.C
    return w


def margins(problem: Problem, w: np.ndarray) -> np.ndarray:
    """``x_i . w`` of the members in float64; the virtual feature is included."""
    z, w = np.empty(problem.members.size), np.ascontiguousarray(w, dtype=np.float64)
    _in_parts(problem, lambda part: rows.dot_rows(problem.X, problem.members[part], w, z[part]))
    return z


def _in_parts(problem: Problem, work: Callable[[slice], Answer]) -> list[Answer]:
    """What `work` says of parts of the members, each in a thread of its own."""
    return in_parts(work, problem.members.size, problem.reading_time, problem.threads)


@singledispatch
def evaluate(problem: Any, point: Point, *, exact: bool = True, given_offset: bool = False) -> Evaluation:
    """Certify a point; another kind of problem registers its own way (``evaluate.register``).

    Parameters
    ----------
    problem : Problem
    point : Point
    exact : bool, default=True
        False allows one pass over the data instead of two where ``point.tracks``: w is then not rebuilt, and the
        dual objective is off by half the squared rounding error of w. For glances on the way, and not for the last
        word unless w is kept in float64, where that error is far below the rounding of the sums.
    given_offset : bool, default=False
        Judge a free intercept as it stands in ``point.w``, instead of replacing it by the best one.
    """
    if point.alpha is None:
        return _evaluate_primal(problem, point, given_offset)
    free = problem.intercept == "free"
    alpha = point.alpha
    if free:
        alpha = alpha.copy()
        balance(problem.pointwise, problem.members, alpha)
    glance = point.tracks and not free and (not exact or point.w.dtype == np.float64)  # type: ignore[union-attr]
    rebuild = not glance and (point.w is None or point.tracks)
    w_dual = None if glance else dual_weights(problem, alpha)
    w = w_dual if rebuild else np.asarray(point.w, dtype=np.float64)
    assert w is not None
    own = _squared_norm(problem, w)
    if w_dual is not None and not rebuild:
        z, offset = _offset_margins(problem, w, given_offset)
        return _against_dual(problem, w, z, offset, alpha, _squared_norm(problem, w_dual))
    if free:
        z, offset = _offset_margins(problem, w, given_offset)
        paid, conjugates, coupled = loss_sums(*_centred(problem, z, offset), alpha)
    else:
        parts = _in_parts(problem, lambda part: margin_sums(problem.terms, problem.members[part], w, alpha))
        offset, (paid, conjugates, coupled) = 0.0, np.sum(parts, axis=0)
    dual_norm = 2.0 * problem.C * coupled - own if w_dual is None else own
    return _evaluation(problem, w, offset, alpha, paid, conjugates, own, dual_norm)


def _evaluate_primal(problem: Problem, point: Point, given_offset: bool) -> Evaluation:
    """Certify weights alone, with the dual point of their margins' sub-gradients, scaled for the best bound."""
    assert point.w is not None
    w = np.asarray(point.w, dtype=np.float64)
    z, offset = _offset_margins(problem, w, given_offset)
    alpha = np.zeros(problem.y.size)
    dual_of_margins(problem.pointwise, problem.members, z, offset, alpha)
    if problem.intercept == "free":
        balance(problem.pointwise, problem.members, alpha)
    return _against_dual(problem, w, z, offset, alpha, _squared_norm(problem, dual_weights(problem, alpha)))


def _against_dual(
    problem: Problem, w: np.ndarray, z: np.ndarray, offset: float, alpha: np.ndarray, dual_norm: float
) -> Evaluation:
    """Certify w with a dual point of its own norm, scaled for the best bound."""
    centred = _centred(problem, z, offset)
    factor = best_scale(problem, alpha, dual_norm, terms=centred[0])
    alpha = factor * alpha
    paid, conjugates, _ = loss_sums(*centred, alpha)
    own = _squared_norm(problem, w)
    return _evaluation(problem, w, offset, alpha, paid, conjugates, own, factor * factor * dual_norm)


def _centred(problem: Problem, z: np.ndarray, offset: float) -> tuple[Pointwise, np.ndarray, np.ndarray, float]:
    """What :func:`loss_sums` takes, the offset taken off the labels where the loss is one of residuals.

    The dual variables of a free intercept sum to zero, so that neither objective changes. But where the labels are far
    from zero, their products with the dual variables are large and cancel, and their rounding errors do not.
    """
    terms = problem.pointwise
    if is_classification(problem.loss) or problem.intercept != "free":
        return terms, problem.members, z, offset
    return terms._replace(y=terms.y - offset), problem.members, z, 0.0


def best_scale(
    problem: Problem, alpha: np.ndarray, dual_norm: float, precision: float = 1e-4, terms: Pointwise | None = None
) -> float:
    """The factor in [0, 1] that maximises the dual objective of ``factor * alpha``, with the labels of `terms`.

    The top of the parabola through three factors near 1. But for the logistic loss the dual is that parabola; for the
    logistic loss a top that is not near is looked for by Brent's method, to `precision`. What the factor misses by
    enters the objective squared.
    """

    def negated_dual(factor: float) -> float:
        sums = conjugate_sum(terms or problem.pointwise, problem.members, alpha, factor)
        return problem.C * sums + 0.5 * factor * factor * dual_norm

    one, two, three = (negated_dual(1.0 - k * PARABOLA_STEP) for k in range(3))
    bend = one - 2.0 * two + three
    factor = 1.0 - PARABOLA_STEP * (1.0 + 0.5 * (one - three) / bend) if bend > 0.0 else float(one < three)
    if factor < 1.0 - PARABOLA_REACH * PARABOLA_STEP and isinstance(problem.loss, Logistic):
        found = minimize_scalar(negated_dual, bounds=(0.0, 1.0), method="bounded", options={"xatol": precision})
        return float(found.x) if found.fun < one else 1.0
    return min(max(factor, 0.0), 1.0)


def _offset_margins(problem: Problem, w: np.ndarray, given: bool) -> tuple[np.ndarray, float]:
    """Margins of w and the offset to add to them: a free intercept, the one in w or the best one; zero otherwise."""
    if problem.intercept != "free":
        return margins(problem, w), 0.0
    z, offset = margins(problem, np.append(w[:-1], 0.0)), float(w[-1] * problem.scale)
    return z, offset if given else best_offset(problem.pointwise, problem.members, z, offset)


def _squared_norm(problem: Problem, w: np.ndarray) -> float:
    """What the regulariser sees of w: the virtual feature only where the intercept is regularised."""
    seen = w if problem.intercept == "regularized" else w[:-1]
    return float(np.einsum("j,j", seen, seen))  # not BLAS: its threads would go on spinning, and take the fit's cores


def _evaluation(
    problem: Problem,
    w: np.ndarray,
    offset: float,
    alpha: np.ndarray,
    paid: float,
    conjugates: float,
    own: float,
    dual_norm: float,
) -> Evaluation:
    primal = 0.5 * own + problem.C * paid
    dual = -problem.C * conjugates - 0.5 * dual_norm
    form = "lambda" if problem.uses_lambda else "C"
    certificate = Certificate(primal * problem.unit, dual * problem.unit, form)
    intercept = offset if problem.intercept == "free" else float(w[-1] * problem.scale)
    return Evaluation(w[:-1].copy(), intercept, alpha, certificate)
