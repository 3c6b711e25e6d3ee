"""Primal, dual and gap of a point: the one place where they are computed, always in float64.

The gap is a proof: ``P(w) - P(w*) <= P(w) - D(a)`` for every dual feasible a (weak duality). A dual solver hands over
its a, and w(a) is rebuilt from it here; a primal solver hands over w, and a dual point is derived from the
sub-gradients at its margins and improved by a line search on its scale. That bound may be loose, but it always holds.

With a free intercept the dual has the constraint ``sum_i a_i = 0``. A point that violates it is balanced first, by
shortening variables of the heavier sign, those strictly inside their bounds before all others (which costs the bound
only second order terms).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, singledispatch
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from scipy.optimize import minimize_scalar

from saddlesvm.problem.array_losses import methods_of
from saddlesvm.problem.intercepts import Group
from saddlesvm.problem.loss import traits_of
from saddlesvm.problem.penalties import holds_square
from saddlesvm.problem.problem import Problem, Strength, is_classification
from saddlesvm.problem.proven_sums import Sums, dual_of, norm_of, primal_of, summed
from saddlesvm.problem.rounding import (
    STILL,
    UNIT,
    Move,
    PointSizes,
    Room,
    margin_errors,
    moved,
    point_sizes,
    radii,
    row_sizes,
    to_the_sum,
)
from saddlesvm.problem.short_sums import expanded, pulled_by_short_sums
from saddlesvm.problem.sums import (
    conjugate_sum,
    dual_of_margins,
    dual_weights,
    loss_sums,
    margins,
    sums_and_pull,
    sums_of_margins,
)
from saddlesvm.problem.terms import Pointwise, box_of

ASSEMBLING = 32  # roundings between the sums and a certificate in the user's form
COARSE = 1e-8  # rounding of the dual objective, relative to it, for which a pull is summed again
PARABOLA_STEP, PARABOLA_REACH = 0.01, 5.0  # spacing of three factors; steps below them where a top is trusted


def relative(gap: float, primal: float, dual: float) -> float:
    """A gap relative to the larger of both objectives' sizes; zero where both are zero, infinite for an infinite gap.
    The larger size, because an objective may be negative or near zero.
    """
    size = max(abs(primal), abs(dual))
    if size == 0.0:
        return 0.0
    return math.inf if gap == math.inf else gap / size


@dataclass(frozen=True)
class Certificate:
    r"""A proven bound on how far a model is from the optimum.

    Attributes
    ----------
    primal : float
        Objective of the model: :math:`\tfrac12 \lVert w \rVert^2 + C \sum_i s_i \phi_i` in the C form,
        :math:`\tfrac{\lambda}{2} \lVert w \rVert^2 + \tfrac1n \sum_i s_i \phi_i` in the lambda form. An upper bound:
        rounded up by `primal_rounding`.
    dual : float
        A lower bound on the objective of every model, rounded down by `dual_rounding`.
    form : {"C", "lambda"}
        Which of the two objectives it is.
    primal_rounding, dual_rounding : float
        Bounds on the rounding in the computation of both, which are part of `primal` and `dual`.

    Examples
    --------
    >>> from saddlesvm import Certificate
    >>> found = Certificate(primal=10.2, dual=10.0)
    >>> round(found.gap, 6), f"at most {100 * found.excess:.0f} % above the optimum"
    (0.2, 'at most 2 % above the optimum')
    """

    primal: float
    dual: float
    form: str = "C"

    primal_rounding: float = 0.0
    dual_rounding: float = 0.0

    @classmethod
    def of(cls, strength: Strength, sums: Sums) -> Certificate:
        """The certificate computed from the sums over the rows and from both regularisers, rounding counted against it.

        Every certificate is made here. The dual point zero, where it is feasible, takes the place of a worse one.
        """
        primal = primal_of(strength.C, sums.paid, sums.regularizer)
        dual = dual_of(strength.C, sums.conjugates, sums.regularizer_conjugate)
        own = ASSEMBLING * UNIT
        above = (1.0 + own) * sums.primal_rounding + own * (abs(sums.regularizer) + strength.C * abs(sums.paid))
        charged = abs(sums.regularizer_conjugate) + strength.C * abs(sums.conjugates)
        below = (1.0 + own) * sums.dual_rounding + own * charged
        if dual - below < sums.at_zero <= primal:  # losses are at least zero, but a kernel may be indefinite
            dual, below = sums.at_zero, 0.0
        unit = strength.unit
        return cls((primal + above) * unit, (dual - below) * unit, strength.form, above * unit, below * unit)

    @classmethod
    def total(cls, certificates: Sequence[Certificate]) -> Certificate:
        """The certificate of several problems together: both objectives are sums, in the form of the first."""
        if len(certificates) == 1:
            return certificates[0]
        primal, dual = sum(one.primal for one in certificates), sum(one.dual for one in certificates)
        own = UNIT * len(certificates)
        above = own * sum(abs(one.primal) for one in certificates)
        below = own * sum(abs(one.dual) for one in certificates)
        primal_rounding = above + sum(one.primal_rounding for one in certificates)
        dual_rounding = below + sum(one.dual_rounding for one in certificates)
        return cls(primal + above, dual - below, certificates[0].form, primal_rounding, dual_rounding)

    def bounded_by(self, other: Certificate) -> Certificate:
        """This point's model with the dual bound of another point of the same problem."""
        return Certificate(self.primal, other.dual, self.form, self.primal_rounding, other.dual_rounding)

    def better_of(self, other: Certificate) -> Certificate:
        """The lower primal objective and the higher bound of two points of the same problem."""
        lower = self if self.primal <= other.primal else other
        return lower.bounded_by(self if self.dual >= other.dual else other)

    @property
    def rounding(self) -> float:
        """The part of the gap that may be rounding alone, in the units of the objective."""
        return self.primal_rounding + self.dual_rounding

    @property
    def rounding_share(self) -> float:
        """`rounding` relative to the same size as `relative_gap`."""
        return relative(self.rounding, self.primal, self.dual)

    @property
    def gap(self) -> float:
        """``primal - dual``: the objective is at most this far above the optimum."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """``gap / max(|primal|, |dual|)``; the same in both forms. Zero where both objectives are zero."""
        return relative(self.gap, self.primal, self.dual)

    def limited(self, tol: float, noise: float = 0.0) -> bool:
        """Whether rounding exceeds a relative gap of `tol`, and is at least half of the gap.

        `noise` is counted as rounding too.
        """
        rounding, size = self.rounding + noise, max(abs(self.primal), abs(self.dual))
        return 0.0 < tol * size < rounding and math.isfinite(self.gap) and self.gap - self.rounding <= rounding

    @property
    def excess(self) -> float:
        """The largest possible ``(primal - optimum) / |optimum|``; infinite when the bound does not exclude zero.

        The optimum lies between `dual` and `primal`, and the quotient is largest at `dual` where both have one sign.
        """
        if self.gap == 0.0:
            return 0.0
        if self.dual in (0.0, -math.inf) or self.primal > 0.0 > self.dual:
            return math.inf
        return self.gap / abs(self.dual)

    @property
    def sound(self) -> bool:
        """Whether the gap is not negative; as its rounding is part of it, anything else is a bug or an overflow."""
        return math.isfinite(self.gap) and self.gap >= 0.0

    def __str__(self) -> str:
        return f"primal {self.primal:.10g}, dual {self.dual:.10g}, relative gap {self.relative_gap:.2e}"


Centred: TypeAlias = tuple[Pointwise, np.ndarray, np.ndarray, float]  # what loss_sums takes but for the dual point


class RowSums(NamedTuple):
    """The results of a pass over the rows: the sums, what they were taken of, and the model's offset.

    The margins in `centred` may be left out (empty): they are then computed anew where they are asked for.
    """

    sums: tuple[float, ...]
    centred: Centred
    offset: float


@dataclass(frozen=True)
class Point:
    """The result of a solver: a primal point, a dual point, or both.

    Attributes
    ----------
    w : ndarray of shape (d + 1,), optional
        Weights; the last place is the virtual feature's. Left out: ``w(alpha) = grad R*(v(alpha))`` is meant.
    alpha : ndarray of shape (n_all,), optional
        Dual variables, feasible but for the sum that a free intercept asks to be zero.
    tracks : bool
        `w` is the running pull ``v(alpha) = C sum_i alpha_i x_i`` of a dual solver, equal to it but for rounding (and
        the weights themselves where R is half the squared norm).
    known : tuple of Evaluation
        What the solver has found on the way to it, which may be better.
    proven : Evaluation, optional
        What a pass over all rows has proven of it already: the certificate reads nothing.
    """

    read: ClassVar[bool] = False  # a quick estimate of it asks for no row
    w: np.ndarray | None = None
    alpha: np.ndarray | None = None
    tracks: bool = False
    known: tuple[Evaluation, ...] = ()
    proven: Evaluation | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class JudgedPoint(Point):
    """A point whose model and bound a sweep over files has judged already.

    Attributes
    ----------
    judged : Evaluation
        A quick estimate: its dual point rests on running weights.
    prove : callable
        The certificate of the judged model and its dual point, by one pass over the rows.
    enough : float
        The relative gap below which the judged model is used without reading all rows for a better certificate.
    """

    read: ClassVar[bool] = True
    judged: Evaluation = field(kw_only=True)
    prove: Callable[[], Certificate] = field(kw_only=True, repr=False)
    enough: float = field(kw_only=True)


@dataclass(frozen=True)
class Evaluation:
    """A certified model: weights of shape (d,), intercept, feasible dual point of shape (n_all,), and the proof.

    `pull` is ``v(alpha)`` of the features, shape (d,), where the weights are not the same. `exact` is False where the
    dual objective rests on running weights, and so is no proof.
    """

    coef: np.ndarray
    intercept: float
    alpha: np.ndarray
    certificate: Certificate
    pull: np.ndarray | None = field(default=None, kw_only=True)
    exact: bool = field(default=True, kw_only=True)

    @classmethod
    def of(
        cls, problem: Problem, w: np.ndarray, alpha: np.ndarray, certificate: Certificate, **more: Any
    ) -> Evaluation:
        """The evaluation of weights of shape (d + 1,) or (K, d + 1), whose intercept is not free."""
        intercept: Any = w[..., -1] * problem.scale
        return cls(w[..., :-1].copy(), intercept if w.ndim > 1 else float(intercept), alpha, certificate, **more)


def known_evaluation(problem: Problem, point: Point, exact: bool) -> Evaluation | None:
    """The evaluation that a point brings along, or what a sweep has judged already: for `exact` a proof of it, where it
    is worth one pass over the rows."""
    if not isinstance(point, JudgedPoint):
        return point.proven
    if problem.intercept.constrained:  # a sweep's judgement proves nothing
        return None
    if not exact:
        return point.judged
    if point.judged.certificate.relative_gap <= point.enough:
        certificate = point.prove()
        if certificate.relative_gap <= point.enough:
            return replace(point.judged, certificate=certificate, exact=True)
    return None


@singledispatch
def evaluate(problem: Any, point: Point, *, exact: bool = True, given_offset: bool = False) -> Evaluation:
    """Certify a point; another kind of problem registers its own way (``evaluate.register``).

    Parameters
    ----------
    problem : Problem
    point : Point
    exact : bool, default=True
        False allows one pass over the data instead of two where ``point.tracks``: w is then taken for ``v(alpha)``, and
        the dual objective is off by half the squared rounding error of w. Use it during a fit, not for the final
        certificate. With True, w in float32 is rebuilt; in float64 it stays the model, beside a dual point pulled anew.
    given_offset : bool, default=False
        Judge a free intercept as it stands in ``point.w``, instead of replacing it by the best one.
    """
    known = known_evaluation(problem, point, exact)
    if known is not None:
        return known
    if point.alpha is None:
        return _evaluate_primal(problem, point, given_offset)
    free = problem.intercept.constrained
    alpha = problem.balanced(point.alpha)
    if point.w is not None and not point.tracks:
        w = np.asarray(point.w, dtype=np.float64)
        return against_dual(problem, w, *_offset_margins(problem, w, given_offset), alpha)
    quick = point.tracks and not free and not exact
    kept = quick or (point.tracks and not free and point.w.dtype == np.float64)  # type: ignore[union-attr]
    running = np.asarray(point.w, dtype=np.float64) if kept else dual_weights(problem, alpha)
    pull = None if quick else running
    w = problem.regularizer.weights(running)
    drift = 0.0
    if not problem.intercept.homogeneous:
        w, drift = expanded(problem, alpha)
    if free:
        z, offset = _offset_margins(problem, w, given_offset)
        centred = _centred(problem, z, offset)
        rows = RowSums(loss_sums(*centred, alpha), centred, offset)
    else:
        if kept and not quick:
            sums, pull = sums_and_pull(problem, w, alpha)
        else:
            sums = sums_of_margins(problem, w, alpha)
        rows = RowSums(tuple(sums.tolist()), (problem.pointwise, problem.members, np.empty(0), 0.0), 0.0)
    found = _evaluation(problem, Point(w, alpha), rows, pull, drift)
    return replace(found, pull=None if w is running else running[:-1].copy(), exact=not quick)


def certificates_of(
    problem: Problem, y: np.ndarray, weights: np.ndarray | None, W: np.ndarray, alpha: np.ndarray
) -> list[Certificate]:
    """The certificates of K small problems over the rows of one, with labels and row weights of their own.

    Parameters
    ----------
    problem : Problem
        Small, with half a square as penalty and without a free intercept; its labels and weights do not count.
    y, weights, alpha : ndarray of shape (K, n)
        Labels, row weights (None for 1) and dual variables of the members.
    W : ndarray of shape (K, d + 1)
        The weights.
    """
    loss, methods, rows = problem.loss, methods_of(problem.loss), problem.X.float64_matrix()
    rows, norms = (
        rows[problem.members] if rows.shape[0] > problem.members.size else rows,
        problem.gathered(problem.norms),
    )
    every, s = np.arange(norms.size), 1.0 if weights is None else weights
    z = W[:, :-1] @ rows.T + problem.scale * W[:, -1:]
    pulls = problem.C * np.hstack([alpha @ rows, problem.scale * alpha.sum(axis=1, keepdims=True)])
    paid, ones, pairs = s * methods.value(loss, z, y), methods.conjugate(loss, alpha, y, s), alpha * z
    sums = np.array([one.sum(axis=1) for one in (paid, ones, pairs, np.abs(ones), np.abs(pairs))]).T.tolist()
    found, facts = [], problem.facts
    for k, w in enumerate(W):
        own = np.empty(0) if weights is None else weights[k]
        if own.size:
            facts = facts._replace(rows=row_sizes(problem.X, norms, own, every))
        sizes = point_sizes(loss, y[k], norms, own, every, alpha[k])
        found.append(Certificate.of(problem.strength, summed(facts, tuple(sums[k]), sizes, w, pulls[k])))
    return found


def _evaluate_primal(problem: Problem, point: Point, given_offset: bool) -> Evaluation:
    """Certify weights alone, with the dual point of their margins' sub-gradients, scaled for the best bound."""
    assert point.w is not None
    w = np.asarray(point.w, dtype=np.float64)
    z, offset = _offset_margins(problem, w, given_offset)
    alpha = np.zeros(problem.y.size)
    dual_of_margins(problem.pointwise, problem.members, z, offset, alpha)
    alpha = problem.balanced(alpha)
    return against_dual(problem, w, z, offset, alpha)


def against_dual(
    problem: Problem, w: np.ndarray, z: np.ndarray, offset: float, alpha: np.ndarray, pull: np.ndarray | None = None
) -> Evaluation:
    """Certify w, with margins z but for the offset, by a dual point of its own, scaled for the best bound; `pull` is
    ``v(alpha)``, where a pass over the rows has found it."""
    centred, pull = _centred(problem, z, offset), dual_weights(problem, alpha) if pull is None else pull
    factor = best_scale(problem, alpha, pull, terms=centred[0]) if problem.intercept.homogeneous else 1.0
    alpha = factor * alpha
    return _evaluation(problem, Point(w, alpha), RowSums(loss_sums(*centred, alpha), centred, offset), factor * pull)


class Subtracted(NamedTuple):
    """Rows that were subtracted from a pull after it was summed: how many, and the sum of their ``|a_i| ||x_i||``."""

    rows: float = 0.0
    size: float = 0.0


def from_known(problem: Problem, point: Point, z: np.ndarray, pull: np.ndarray, subtracted: Subtracted) -> Evaluation:
    """Certify a point whose margins and pull are known: no pass over the rows. A free intercept is not supported.

    The rounding of a pull is bounded by the number of its terms and their sizes. Both count rows that were subtracted
    again twice: once in the sum, once as they went.

    Parameters
    ----------
    problem : Problem
        Its `row_sizes` are those of the problem whose pull was summed.
    point : Point
        Weights and a feasible dual point.
    z : ndarray of shape (n,)
        The margins of the members.
    pull : ndarray of shape (d + 1,)
        ``v(alpha)``.
    subtracted : Subtracted
    """
    w, alpha = point.w, point.alpha
    assert w is not None and alpha is not None
    sums = loss_sums(problem.pointwise, problem.members, z, 0.0, alpha)
    sizes = problem.point_sizes(alpha)
    rows = problem.row_sizes._replace(rows=problem.row_sizes.rows + subtracted.rows)
    sizes = sizes._replace(pulled=sizes.pulled + 2.0 * subtracted.size)
    found = summed(problem.facts._replace(rows=rows), tuple(sums), sizes, w, pull)
    certificate = Certificate.of(problem.strength, found)
    return Evaluation(w[:-1].copy(), problem.intercept.published(w, 0.0), alpha, certificate)


def _centred(problem: Problem, z: np.ndarray, offset: float) -> Centred:
    """The arguments of :func:`loss_sums`, with the offset subtracted from the labels of a regression loss.

    Where the dual variables of a free intercept sum to zero, neither objective changes. But where the labels are far
    from zero, their products with the dual variables are large and cancel, and their rounding errors do not.
    """
    terms = problem.pointwise
    kind = problem.intercept
    if is_classification(problem.loss) or not (kind.constrained and kind.homogeneous):
        return terms, problem.members, z, offset
    return terms._replace(y=terms.y - offset), problem.members, z, 0.0


def best_scale(
    problem: Problem, alpha: np.ndarray, pull: np.ndarray, precision: float = 1e-4, terms: Pointwise | None = None
) -> float:
    """The factor in [0, 1] that maximises the dual objective of ``factor * alpha``, with the labels of `terms`.

    `pull` is ``v(alpha)``.

    Most losses declare that the dual is a parabola in the factor, with half a square: two values of it are enough, as
    it goes through zero. For other losses, and other penalties, the factor is the top of the parabola through three
    factors near 1, or near the largest one with a finite R*; Brent's method looks for a top farther away, to
    `precision`. An error of the factor enters the objective squared.
    """

    conjugate, most = problem.regularizer.conjugate_along(pull), problem.regularizer.domain_scale(pull)

    def negated_dual(factor: float) -> float:
        sums = conjugate_sum(terms or problem.pointwise, problem.members, alpha, factor)
        return -dual_of(problem.C, float(sums), conjugate(factor))

    parabola = problem.penalty.identity() and traits_of(problem.loss).parabolic
    if parabola:  # through zero
        whole = negated_dual(1.0)
        bend = 2.0 * whole - 4.0 * negated_dual(0.5)
        return min(max(0.5 - 0.5 * whole / bend, 0.0), 1.0) if bend > 0.0 else float(whole < 0.0)
    one, two, three = map(negated_dual, (most, most * (1.0 - PARABOLA_STEP), most * (1.0 - 2.0 * PARABOLA_STEP)))
    bend = one - 2.0 * two + three
    factor = 1.0 - PARABOLA_STEP * (1.0 + 0.5 * (one - three) / bend) if bend > 0.0 else float(one < three)
    if factor < 1.0 - PARABOLA_REACH * PARABOLA_STEP:
        found = minimize_scalar(negated_dual, bounds=(0.0, most), method="bounded", options={"xatol": precision})
        return float(found.x) if found.fun < one else most
    return most * min(max(factor, 0.0), 1.0)


def _offset_margins(problem: Problem, w: np.ndarray, given: bool) -> tuple[np.ndarray, float]:
    """Margins of w and the offset to add to them: a free intercept, the one in w or the best one; zero otherwise."""
    weights, offset = problem.intercept.split(w)
    z = margins(problem, weights)
    return z, offset if given else problem.intercept.best(problem.pointwise, problem.members, z, offset)


def mostly_rounding(C: float, sums: Sums) -> bool:
    """Whether the bound on the rounding of the dual objective is most of a gap, and not a small one."""
    primal, dual = primal_of(C, sums.paid, sums.regularizer), dual_of(C, sums.conjugates, sums.regularizer_conjugate)
    return sums.dual_rounding > max(abs(primal - dual), COARSE * max(abs(primal), abs(dual)))


def _evaluation(problem: Problem, point: Point, rows: RowSums, pull: np.ndarray | None, drift: float = 0) -> Evaluation:
    """The model and its certificate; `pull` is ``v(alpha)`` from the rows, None for an evaluation without proof.

    The weights may be as far as `drift` from those of the published model.
    """
    w, alpha, offset = point.w, point.alpha, rows.offset
    assert w is not None and alpha is not None
    terms, members, z, added = rows.centred
    kind = problem.intercept
    given = (problem.loss, terms.y, problem.norms, problem.weights, members, alpha)
    sizes = point_sizes(*given, signs=kind.constrained)

    def around(move: float) -> float:
        margin = z if z.size else margins(problem, weights)
        return float(loss_sums(terms, members, margin, added + move, np.zeros(alpha.size))[0])

    weights, facts = kind.split(w)[0], problem.facts
    free = kind.constrained
    move = move_of(terms, Group(members, kind), problem.norms, alpha, sizes, rows.sums[3]) if free else STILL
    norm = norm_of(weights)
    errors = margin_errors(facts.rows, norm, added, shifted=added != offset)
    errors = errors._replace(of_rows=errors.of_rows + drift)
    given_pull = facts, rows.sums, sizes, weights, pull
    sums = summed(*given_pull, errors=errors, move=move, around=around)
    if pull is not None and not holds_square(problem.penalty) and mostly_rounding(problem.C, sums):
        near = pulled_by_short_sums(problem, alpha)
        sums = summed(*given_pull, errors=errors, move=move, around=around, near=near)
    above = sums.primal_rounding + moved(norm, drift)
    zero = 0.0 if kind.homogeneous and not problem.fixed.size else -math.inf
    sums = sums._replace(paid=sums.paid + kind.paid(offset), primal_rounding=above, at_zero=zero)
    certificate = Certificate.of(problem.strength, sums)
    return Evaluation(w[:-1].copy(), kind.published(w, offset), alpha, certificate)


def room_of(terms: Pointwise, rows: np.ndarray, norms: np.ndarray, alpha: np.ndarray) -> Room:
    """The way of some rows' dual variables up to their upper bounds; `norms` are squared."""
    high = box_of(terms.loss, terms.y, terms.weights)[1]
    way = (high - alpha)[rows]
    pulled = float(np.einsum("i,i", way, radii(norms[rows])))
    return Room(float(way.sum()), pulled, float(loss_sums(terms, rows, np.zeros(rows.size), 0.0, high)[3]))


def move_of(
    terms: Pointwise, side: Group, norms: np.ndarray, alpha: np.ndarray, sizes: PointSizes, charged: float
) -> Move:
    """The move of the dual variables of some rows to the sum that their intercept asks for.

    `sizes` are those of these rows' variables, and `charged` is the sum of the conjugates' sizes.
    """
    room = partial(room_of, terms, side.rows, norms, alpha)
    return to_the_sum(sizes, side.rows.size, charged, side.intercept.total, room)
