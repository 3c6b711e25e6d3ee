"""Primal, dual and gap of a point: only this file computes them, always in float64.

The gap is a proof: ``P(w) - P(w*) <= P(w) - D(a)`` for every dual feasible a (weak duality). A dual
solver hands over its a, and w(a) is rebuilt from it here; a primal solver hands over w, and a dual
point is derived from what the rows respond to it (:mod:`saddlesvm.problem.responses`). That bound
may be loose, but it always holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, singledispatch
from typing import Any, ClassVar

import numpy as np

from saddlesvm.problem.bounds import (
    UNIT,
    LossSums,
    NearPull,
    Sums,
    bound_sums,
    dual_of,
    point_sizes,
    primal_of,
    row_sizes,
)
from saddlesvm.problem.loss import methods_of
from saddlesvm.problem.penalties import holds_square
from saddlesvm.problem.problem import Problem, Strength
from saddlesvm.problem.responses import Responses, RowSums, responses_of
from saddlesvm.problem.short_sums import pulled_by_short_sums
from saddlesvm.problem.sums import dual_weights

ASSEMBLING = 32  # roundings at most between the sums and a certificate in the user's form; derived
# Rounding of the dual objective, relative to the objectives, for which a pull is summed again;
# guessed.
COARSE = 1e-8


def relative(gap: float, primal: float, dual: float) -> float:
    """Return a gap relative to the larger of both objectives' sizes; zero if both are zero.

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
        Objective of the model: :math:`\tfrac12 \lVert w \rVert^2 + C \sum_i s_i \phi_i` in the C
        form, :math:`\tfrac{\lambda}{2} \lVert w \rVert^2 + \tfrac1n \sum_i s_i \phi_i` in the
        lambda form. An upper bound: rounded up by `primal_rounding`.
    dual : float
        A lower bound on the objective of every model, rounded down by `dual_rounding`. Minus
        infinity if there is none: with a kernel that is not positive semi-definite.
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
    def from_sums(cls, strength: Strength, sums: Sums) -> Certificate:
        """Return the certificate of sums over rows and regularisers; rounding counts against it.

        Every certificate is made here. The dual point zero, if it is feasible, takes the place
        of a worse one.
        """
        primal = primal_of(strength.C, sums.paid, sums.regularizer)
        dual = dual_of(strength.C, sums.conjugates, sums.regularizer_conjugate)
        # To the rounding of the sums comes that of the few operations from here to the user's form:
        # in proportion to the sizes of what is added.
        own = ASSEMBLING * UNIT
        primal_size = abs(sums.regularizer) + strength.C * abs(sums.paid)
        dual_size = abs(sums.regularizer_conjugate) + strength.C * abs(sums.conjugates)
        above = (1.0 + own) * sums.primal_rounding + own * primal_size
        below = (1.0 + own) * sums.dual_rounding + own * dual_size
        # The dual point zero. Losses are at least zero, but a kernel may be indefinite.
        if dual - below < sums.at_zero <= primal:
            dual = sums.at_zero
            below = 0.0
        unit = strength.unit
        # Sums may be NumPy scalars; a certificate holds Python's floats, which print as numbers.
        high = float((primal + above) * unit)
        low = float((dual - below) * unit)
        return cls(high, low, strength.form, float(above * unit), float(below * unit))

    @classmethod
    def total(cls, certificates: Sequence[Certificate]) -> Certificate:
        """The certificate of several problems together: sums, in the form of the first."""
        if len(certificates) == 1:
            return certificates[0]
        primal = sum(one.primal for one in certificates)
        dual = sum(one.dual for one in certificates)
        # Adding K numbers rounds by at most K units of the sum of their sizes.
        own = UNIT * len(certificates)
        above = own * sum(abs(one.primal) for one in certificates)
        below = own * sum(abs(one.dual) for one in certificates)
        primal_rounding = above + sum(one.primal_rounding for one in certificates)
        dual_rounding = below + sum(one.dual_rounding for one in certificates)
        return cls(
            primal + above, dual - below, certificates[0].form, primal_rounding, dual_rounding
        )

    def bounded_by(self, other: Certificate) -> Certificate:
        """This point's model with the dual bound of another point of the same problem."""
        return Certificate(
            self.primal, other.dual, self.form, self.primal_rounding, other.dual_rounding
        )

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

    @cached_property
    def gap(self) -> float:
        """``primal - dual``: the objective is at most this far above the optimum."""
        return self.primal - self.dual

    @cached_property
    def relative_gap(self) -> float:
        """``gap / max(|primal|, |dual|)``, the same in both forms; zero if both objectives are."""
        return relative(self.gap, self.primal, self.dual)

    def is_limited_by_rounding(self, tol: float, noise: float = 0.0) -> bool:
        """Return True if rounding exceeds a relative gap of `tol`, and is at least half of the gap.

        `noise` is counted as rounding too.
        """
        rounding = self.rounding + noise
        size = max(abs(self.primal), abs(self.dual))
        # Rounding alone is more than what was asked for, and most of what is left.
        return (
            0.0 < tol * size < rounding
            and math.isfinite(self.gap)
            and self.gap - self.rounding <= rounding
        )

    @property
    def excess(self) -> float:
        """The largest possible ``(primal - optimum) / |optimum|``; infinite if zero is possible.

        The optimum lies between `dual` and `primal`, and the quotient is largest at `dual` if
        both have one sign.
        """
        if self.gap == 0.0:
            return 0.0
        if self.dual in (0.0, -math.inf) or self.primal > 0.0 > self.dual:
            return math.inf
        return self.gap / abs(self.dual)

    @property
    def sound(self) -> bool:
        """True if the gap, rounding counted, is not negative; else there is a bug or overflow."""
        return math.isfinite(self.gap) and self.gap >= 0.0

    def __str__(self) -> str:
        if self.dual == -math.inf:
            return f"primal {self.primal:.10g}, no dual bound"
        bounds = f"primal {self.primal:.10g}, dual {self.dual:.10g}"
        return f"{bounds}, relative gap {self.relative_gap:.2e}"


@dataclass(frozen=True)
class Point:
    """The result of a solver: a primal point, a dual point, or both.

    Attributes
    ----------
    w : ndarray of shape (d + 1,), optional
        Weights; the last place is the virtual feature's. Left out: ``w(alpha) = grad R*(v(alpha))``
        is meant.
    alpha : ndarray of shape (n_all,), optional
        Dual variables, feasible but for the sum that a free intercept asks to be zero.
    tracks : bool
        `w` is the running pull ``v(alpha) = C sum_i alpha_i x_i`` of a dual solver, equal to it but
        for rounding (and the weights themselves if R is half the squared norm).
    known : tuple of Evaluation
        What the solver has found on the way to it, which may be better.
    evaluation : Evaluation, optional
        What a pass over all rows has proven of it already: the certificate reads nothing.
    """

    read: ClassVar[bool] = False  # a quick estimate of it asks for no row
    w: np.ndarray | None = None
    alpha: np.ndarray | None = None
    tracks: bool = False
    known: tuple[Evaluation, ...] = ()
    evaluation: Evaluation | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class KernelPoint:
    """The result of a solver of a kernel machine.

    Attributes
    ----------
    beta : ndarray of shape (n,)
        Coefficients of the model ``sum_i beta_i k(x_i, .)``.
    dual : ndarray of shape (n,), optional
        A feasible point of the dual; by default beta.
    offsets : ndarray of shape (groups,), optional
        The offsets to judge; by default the best offsets.
    """

    beta: np.ndarray
    dual: np.ndarray | None = None
    offsets: np.ndarray | None = None
    known: ClassVar[tuple[Evaluation, ...]] = ()
    # A solver's running values come from float32 kernel values, which prove nothing.
    tracks: ClassVar[bool] = False


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
        The relative gap below which the judged model is used without reading all rows for a better
        certificate.
    """

    read: ClassVar[bool] = True
    judged: Evaluation = field(kw_only=True)
    prove: Callable[[], Certificate] = field(kw_only=True, repr=False)
    enough: float = field(kw_only=True)


@dataclass(frozen=True)
class Evaluation:
    """A certified model: weights (d,), intercept, feasible dual point (n_all,), and the proof.

    `pull` is ``v(alpha)`` of the features, shape (d,), if the weights differ from it. `exact`
    is False if the dual objective rests on running weights, and so is no proof.
    """

    coef: np.ndarray
    intercept: float
    alpha: np.ndarray
    certificate: Certificate
    pull: np.ndarray | None = field(default=None, kw_only=True)
    exact: bool = field(default=True, kw_only=True)

    @classmethod
    def from_weights(
        cls,
        problem: Problem,
        w: np.ndarray,
        alpha: np.ndarray,
        certificate: Certificate,
        offset: float | None = None,
        **more: Any,
    ) -> Evaluation:
        """Return the evaluation of weights of shape (d + 1,) or (K, d + 1).

        The last weights are the intercept's, unless it is an `offset` of the margins.
        """
        intercept: Any = w[..., -1] * problem.scale if offset is None else offset
        return cls(
            w[..., :-1].copy(),
            intercept if w.ndim > 1 else float(intercept),
            alpha,
            certificate,
            **more,
        )


def known_evaluation(problem: Problem, point: Point, exact: bool) -> Evaluation | None:
    """Return the evaluation that a point brings along, or None.

    A sweep over files has judged its point already. If `exact`, it is proven by another pass, if
    that is worth it.
    """
    if not isinstance(point, JudgedPoint):
        return point.evaluation
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
def evaluate(
    problem: Any, point: Point, *, exact: bool = True, given_offset: bool = False
) -> Evaluation:
    """Certify a point of a linear problem, with a single score a row or a score for each class.

    Other problems register their own way (``evaluate.register``).

    Parameters
    ----------
    problem : Problem
    point : Point
        Weights of shape (d + 1,) and dual variables of shape (n_all,), or (K, d + 1) and (n_all,
        K).
    exact : bool, default=True
        False allows a single pass over the data instead of two if ``point.tracks``: w is then taken
        for ``v(alpha)``, and the dual objective is off by half the squared rounding error of w. Use
        it during a fit, not for the final certificate. With True, w in float32 is rebuilt; in
        float64 it stays the model, beside a dual point pulled anew.
    given_offset : bool, default=False
        Judge a free intercept as it stands in ``point.w``, instead of replacing it by the best
        intercept.
    """
    known = known_evaluation(problem, point, exact)
    if known is not None:
        return known

    # A primal solver's weights: the dual point follows from the scores of the rows, or is given.
    if point.alpha is None or (point.w is not None and not point.tracks):
        responses = responses_of(problem, np.asarray(point.w, dtype=np.float64), given_offset)
        return evaluate_responses(responses, *responses.choose_dual_point(point.alpha))

    # A dual point: its running pull is used in a quick estimate, and kept as the model's if it is
    # float64; else the pull is computed anew from the rows.
    is_free = problem.intercept.constrained
    alpha = problem.balance(point.alpha)
    is_quick = point.tracks and not is_free and not exact
    keeps_pull = is_quick
    if point.tracks and not is_free:
        keeps_pull = is_quick or point.w.dtype == np.float64  # type: ignore[union-attr]
    if keeps_pull:
        running = np.asarray(point.w, dtype=np.float64)
    else:
        running = dual_weights(problem, alpha)
    w = problem.regularizer.weights(running)

    # The sums over the rows, and the pull that the bound rests on: none for an estimate.
    responses = responses_of(problem, w, given_offset)
    pull: np.ndarray | None
    if keeps_pull and not is_quick:
        sums, pull = responses.sums_and_pull(alpha)
    else:
        pull = None if is_quick else running
        sums = responses.sums(alpha, pull)
    found = evaluate_responses(responses, alpha, pull, sums)
    return replace(found, pull=None if w is running else running[:-1].copy(), exact=not is_quick)


def evaluate_responses(
    responses: Responses,
    alpha: np.ndarray,
    pull: np.ndarray | None,
    sums: RowSums | None = None,
) -> Evaluation:
    """Return the model of weights, certified by what the rows respond to them and a dual point.

    Parameters
    ----------
    responses : Responses
        To the weights.
    alpha : ndarray
        A feasible dual point.
    pull : ndarray, optional
        ``v(alpha)`` from the rows; without it the weights are taken for it, and nothing is proven.
    sums : RowSums, optional
        The sums over the rows, if they are known.
    """
    known = sums or responses.sums(alpha, pull)
    problem = responses.problem
    # Only kernel machines ask for another sum of the dual variables than zero.
    assert problem.intercept.homogeneous

    def sum_up(near: NearPull | None = None) -> Sums:
        """Return both objectives' parts, with bounds on their rounding."""
        return bound_sums(
            known.facts,
            known.sums,
            known.sizes,
            responses.scoring_weights,
            pull,
            errors=known.errors,
            move=known.move,
            around=known.around,
            near=near,
        )

    found = sum_up()
    # The l1 norm bounds each place of the pull: if its rounding hides the gap, it is summed anew.
    is_bounded = pull is not None and not holds_square(problem.penalty)
    if is_bounded and mostly_rounding(problem.C, found):
        found = sum_up(pulled_by_short_sums(problem, alpha))

    # Dual variables of zero have a bound of zero, unless rows are left out.
    found = found._replace(at_zero=-math.inf if problem.fixed.size else 0.0)
    certificate = Certificate.from_sums(problem.strength, found)
    return Evaluation.from_weights(problem, responses.w, alpha, certificate, responses.offset)


def certificates_of(
    problem: Problem,
    rows: Any,
    y: np.ndarray,
    weights: np.ndarray | None,
    W: np.ndarray,
    alpha: np.ndarray,
) -> list[Certificate]:
    """Return the certificates of K small problems over the same rows, with labels and weights each.

    Parameters
    ----------
    problem : Problem
        Small, with half a square as penalty and without a free intercept; its labels and weights do
        not count.
    rows : ndarray or CSR matrix of shape (n, d)
        Of the members, in float64, without the virtual feature.
    y, weights, alpha : ndarray of shape (K, n)
        Labels, row weights (None for 1) and dual variables of the members.
    W : ndarray of shape (K, d + 1)
        The weights.
    """
    loss = problem.loss
    methods = methods_of(loss)
    norms = problem.norms
    if norms.size > rows.shape[0]:
        norms = norms[problem.members]
    every = slice(0, norms.size)
    s: np.ndarray | float = 1.0
    if weights is not None:
        s = weights

    # The margins of all problems, and the pulls of their dual points, by one product each.
    z = W[:, :-1] @ rows.T + problem.scale * W[:, -1:]
    pulls = np.empty(W.shape)
    pulls[:, :-1] = alpha @ rows
    pulls[:, -1] = problem.scale * np.add.reduce(alpha, axis=1)
    pulls *= problem.C

    # The sums over the rows, as in sums.loss_sums.
    paid = s * methods.value(loss, z, y)
    conjugates = methods.conjugate(loss, alpha, y, s)
    products = alpha * z
    terms = (paid, conjugates, products, np.abs(conjugates), np.abs(products))
    columns = []
    for one in terms:
        columns.append(np.add.reduce(one, axis=1).tolist())

    found = []
    facts = problem.facts
    strength = problem.strength
    own = np.empty(0)
    for k, sums in enumerate(zip(*columns, strict=True)):
        if weights is not None:
            own = weights[k]
            facts = facts._replace(rows=row_sizes(problem.X, norms, own, np.arange(norms.size)))
        # Rounding is counted for each problem alone, as for a fit of its own.
        sizes = point_sizes(loss, y[k], norms, own, every, alpha[k])
        account = bound_sums(facts, LossSums(*sums), sizes, W[k], pulls[k])
        found.append(Certificate.from_sums(strength, account))
    return found


def mostly_rounding(C: float, sums: Sums) -> bool:
    """Return True if the rounding of the dual objective is most of a gap that is not small."""
    primal = primal_of(C, sums.paid, sums.regularizer)
    dual = dual_of(C, sums.conjugates, sums.regularizer_conjugate)
    return sums.dual_rounding > max(abs(primal - dual), COARSE * max(abs(primal), abs(dual)))
