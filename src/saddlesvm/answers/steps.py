"""Steps of Newton's method from weights that are near the optimum, until the gradient alone says enough of it.

The length of the gradient bounds the distance of the optimum, and no factor of the curvature is needed for that. Near
the optimum each step squares the distance; conjugate gradients solve its equations in passes over the rows, or a factor
where that is cheaper (:mod:`saddlesvm.solvers.second_order.equations`).

The same steps follow the optimum of a problem whose rows were changed, from the old optimum: certified without a fit. A
few rows among many change the optimum little. A pass over the rows tells whether the old weights, or the old
multipliers of the rows that stay, are good enough. Where they are not, smooth losses have steps of Newton's method,
whose last pass serves the certificate, too: with half a square as the penalty, the gap is half the squared gradient.

A certified point that a model keeps beside its rows, to forget some of them without a pass over the others.

Without the rows G, the margins of w at the other rows stay as they were, and so do the other dual variables, which are
feasible alone. Their pull is ``v - C sum over G of a_i x_i``. So the sums of a certificate need no row that stays: of
margins and dual variables that are known, one each a row. With half a square as the penalty the gap grows by half the
squared length of what was subtracted, and by nothing where the dual variables of G are zero.

Where that is too much, the model moves. Smooth losses take steps of Newton's method from w, whose matrix loses the rows
of G (:mod:`saddlesvm.answers.steps`). Losses with kinks go on with their dual variables. There the rows strictly
between their bounds come first: they are few, and can take over most of the pull of the rows that went.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from saddlesvm.answers.gradient import Slope, gradient_of, slope_at, slope_of
from saddlesvm.answers.neighbourhood import Neighbourhood, neighbourhood_of, plain_curvature
from saddlesvm.problem.certificate import Certificate, Evaluation, Point, certified, evaluate
from saddlesvm.problem.loss import is_smooth
from saddlesvm.problem.penalties import modulus
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.responses import Margins, Subtracted
from saddlesvm.problem.rounding import radii
from saddlesvm.problem.sums import dual_of_margins, dual_weights, loss_sums, margins
from saddlesvm.rows.layouts import add_rows, dot_rows
from saddlesvm.solvers.base import Budget
from saddlesvm.solvers.dcd import DCD
from saddlesvm.solvers.second_order.equations import NewtonEquations
from saddlesvm.solvers.second_order.kernels import Line, search, smoothed_terms

ENOUGH = 1e-4  # how far, at most, the scores of the training rows may move: scores are compared with margins of 1
OF_TOL, CLOSEST, WIDEST = 10.0, 1e-6, 1e-3  # the same as a multiple of a fit's relative gap, and its bounds
SPARE = 0.9  # share of it that the gradient is shortened to, for its rounding counts, too
AIM = 0.5  # share of the wanted length that a step is solved to: the loss bends further on the way
MOST_STEPS = 30
FORCING = 1e-2  # share of the gradient that a step leaves where the loss does not bend further; measured
LOOSE = 0.25  # the most that a step leaves of it, where a longer gradient will do
FALL, SLOW = 0.3, 3  # share of the gradient that a good step leaves at most; steps that were not good, to the end
ROUNDED = 1e-13  # share of the rows' pull that a gradient is mostly rounding below
LINE = 1e-3  # share of the slope along a step that its length leaves
FACTORS = 1e9  # bytes that the factors of the equations may take, as those of a fit
SURE = 0.5  # share of the wanted gap that the gradient is shortened to: the objective is known but for the change


def can_come_nearer(problem: Problem) -> bool:
    """Whether the gradient bounds the distance of the optimum: a smooth loss, half a square as the penalty."""
    seen = problem.penalty.identity() and modulus(problem.penalty) > 0.0 and not problem.intercept.constrained
    return bool(is_smooth(problem.loss) and seen and not problem.fixed.size and problem.holds_rows)


def enough_for(tol: float) -> float:
    """How far the scores of the training rows may move after a fit to the relative gap `tol`: the proof is as close as
    the fit was asked to be."""
    return min(max(OF_TOL * tol, CLOSEST), WIDEST) if tol > 0.0 else ENOUGH


def neighbourhood_near(problem: Problem, w: np.ndarray, enough: float = ENOUGH) -> Neighbourhood | None:
    """A neighbourhood of the optimum, from steps that begin at w; None where they did not come near it.

    Parameters
    ----------
    problem : Problem
        See :func:`can_come_nearer`.
    w : ndarray of shape (d + 1,)
    enough : float
        How far, at most, the scores of the training rows may move; a narrower one is not looked for.
    """
    longest = float(radii(problem.norms).max(initial=0.0))
    w, now = steps_from(problem, w, SPARE * enough / longest if longest > 0.0 else math.inf)
    seen, plain = gradient_of(problem, w, now), plain_curvature(problem)
    radius = plain.dual_norm(seen.value, seen.error)
    if radius * longest <= enough:
        return Neighbourhood(w, radius, plain, problem.scale, way="gradient")
    found = neighbourhood_of(problem, w, math.inf, enough)
    return found if found.way == "curvature" or found.radius * longest <= enough else None


def steps_from(
    problem: Problem, w: np.ndarray, size: float, now: Slope | None = None, equations: NewtonEquations | None = None
) -> tuple[np.ndarray, Slope]:
    """Weights whose gradient is no longer than `size`, and a pass over the rows there; or as near as steps come: the
    end is where rounding, or a few slow steps, leave the gradient longer.

    Parameters
    ----------
    problem : Problem
        See :func:`can_come_nearer`.
    w : ndarray of shape (d + 1,)
        To begin at.
    size : float
    now : Slope, optional
        The gradient at w, where it is known.
    equations : NewtonEquations, optional
        Over the same rows, with the factors of earlier steps.
    """
    equations = equations or NewtonEquations(problem, FACTORS)
    now = slope_of(problem, w) if now is None else now
    length, slow, fall = float(np.linalg.norm(now.value)), 0, 1.0
    for _ in range(MOST_STEPS):
        rounded = slow > 0 and length <= ROUNDED * float(np.linalg.norm(now.pull))
        if length <= size or slow == SLOW or rounded or not math.isfinite(length):
            break
        forcing = min(max(FORCING * min(fall, 1.0), AIM * size / length), LOOSE)
        direction = -equations.solve(problem.spread(now.answers.bend), now.value, forcing)
        moved, before = w + direction, length
        there = slope_of(problem, moved)
        length = float(np.linalg.norm(there.value))
        if not length <= max(size, FALL * before):  # the whole step is too long, or too short
            tau, moved = _step(problem, w, now, direction)
            if tau == 0.0:
                break
            there = slope_of(problem, moved)
            length = float(np.linalg.norm(there.value))
        fall = length / before
        slow = slow + 1 if fall > FALL else 0
        w, now = moved, there
    return w, now


def _step(problem: Problem, w: np.ndarray, now: Slope, direction: np.ndarray) -> tuple[float, np.ndarray]:
    """The length of the best step along a direction, and the weights there."""
    dz, ahead = margins(problem, direction), problem.intercept.penalised(direction)
    line = Line(now.z, dz, problem.regularizer.slope(w, direction), float(ahead @ ahead))
    tau = float(search(smoothed_terms(problem), line, now.answers.alpha, now.answers.bend, np.empty(0), LINE))
    return tau, w + tau * direction


def followed(problem: Problem, w: np.ndarray, alpha: np.ndarray | None, gap: float) -> Evaluation | None:
    """A certified model from an old one; None where there are no steps and no multipliers.

    Parameters
    ----------
    problem : Problem
        With the rows as they are now.
    w : ndarray of shape (d + 1,)
        The old weights.
    alpha : ndarray of shape (n_all,), or None
        The old multipliers, feasible; zero for new rows.
    gap : float
        The gap that is wanted, in the C form; the one that is certified may be wider.
    """
    if alpha is not None:
        return evaluate(problem, Point(w, alpha))
    if can_come_nearer(problem):
        w, now = steps_from(problem, w, math.sqrt(2.0 * SURE * gap))
        at = Margins(problem, w, z=now.z)
        return certified(at, *at.scaled(problem.spread(now.answers.alpha), now.pull))
    return None


MOST_EPOCHS = 60.0  # of a descent: a fit, which chooses among solvers, goes on from there
SHARE = 0.5  # share of the wanted gap that a descent's estimate is to reach before a certificate
NONE = np.empty(0, dtype=np.int32)
TINY = float(np.finfo(np.float64).tiny)


class Known(NamedTuple):
    """What is known of a point without a further pass over the rows.

    Attributes
    ----------
    alpha : ndarray of shape (n_all,)
        The dual point, zero for rows that are no members.
    z : ndarray of shape (n,)
        The margins of the weights at the members.
    pull : ndarray of shape (d + 1,)
        ``C sum_i a_i x_i``.
    subtracted : Subtracted
        From the pull, since it was summed.
    """

    alpha: np.ndarray
    z: np.ndarray
    pull: np.ndarray
    subtracted: Subtracted = Subtracted()


@dataclass
class KeptPoint:
    """A certified point of a problem in memory with half a square as the penalty, and dual variables that need no sum.

    Attributes
    ----------
    problem : Problem
    w : ndarray of shape (d + 1,)
    alpha : ndarray of shape (n_all,), optional
        A solver's dual variables, zero for rows that are no members. Left out, w alone counts.
    certificate : Certificate
        Of this point; or, after :meth:`without`, of the point before.
    known : Known, optional
        What passes over the rows have found already.
    equations : NewtonEquations, optional
        With the factors of an earlier step.
    """

    problem: Problem
    w: np.ndarray
    alpha: np.ndarray | None
    certificate: Certificate
    known: Known | None = None
    equations: NewtonEquations | None = None

    def without(self, gone: np.ndarray, tol: float) -> tuple[KeptPoint, Evaluation]:
        """A point of the problem without some rows, and its certificate: that of the present weights where they have a
        relative gap of at most `tol`, or of weights that steps lead to. Its gap may be wider: a fit can go on from it.

        Parameters
        ----------
        gone : ndarray of bool, shape (n_all,)
        tol : float
        """
        lost = gone[self.problem.members]
        left = replace(self, problem=self.problem.among(self.problem.members[~lost]))
        if self.alpha is not None and self.known is None and self._descends:
            growth = self._growth(lost, self.alpha)
            left.alpha = np.where(gone, 0.0, self.alpha)
            if growth > tol:
                return left._by_descent(tol, growth)
        return left._judged(self._fewer(self._all_known(), lost), tol)

    def within(self, problem: Problem, added: int, tol: float) -> tuple[KeptPoint, Evaluation]:
        """The same in a problem with more rows, whose last `added` members are new; its first rows are those of the
        present problem."""
        new = problem.members[problem.members.size - added :]
        z, alpha = np.empty(added), np.zeros(problem.y.size)
        dot_rows(problem.X, new, self.w, z)
        more = replace(self, problem=problem, equations=self._extended(problem))
        if self.alpha is not None and self.known is None and self._descends:
            more.alpha = np.append(self.alpha, alpha[self.alpha.size :])
            paid = problem.C * float(loss_sums(problem.pointwise, new, z, 0.0, alpha)[0])
            growth = paid * problem.unit / max(abs(self.certificate.primal), TINY)
            if growth > tol:
                return more._by_descent(tol, growth, new)
        now, pulled = self._all_known(), np.zeros(self.w.size)
        alpha[: now.alpha.size] = now.alpha
        if self.alpha is None:
            dual_of_margins(problem.pointwise, new, z, 0.0, alpha)
            add_rows(problem.X, new, alpha, pulled)
        subtracted = now.subtracted._replace(rows=now.subtracted.rows + 1.0)
        known = Known(alpha, np.append(now.z, z), now.pull + problem.C * pulled, subtracted)
        return more._judged(known, tol, new)

    @property
    def _descends(self) -> bool:
        """Whether a descent leads on: small problems are left to a fit, which needs no compiled code."""
        return self.alpha is not None and not self.problem.is_small

    def _all_known(self) -> Known:
        """What is known, or what passes over the rows find."""
        return self.known or _known(self.problem, self.w, self.alpha)

    def _judged(self, known: Known, tol: float, new: np.ndarray = NONE) -> tuple[KeptPoint, Evaluation]:
        """The point with what is known of it in its problem, or one that steps lead to; `new` are new rows."""
        self.known = known
        if self.alpha is None and self._share(self.w - known.pull) > tol:
            return self._by_steps(tol)
        self.alpha = None if self.alpha is None else known.alpha
        found = self.certified()
        if found.certificate.relative_gap > tol and self._descends:
            return self._by_descent(tol, found.certificate.relative_gap, new)
        return replace(self, certificate=found.certificate), found

    def certified(self) -> Evaluation:
        """The model of these weights, certified by what is known."""
        now = self._all_known()
        return certified(Margins(self.problem, self.w, z=now.z, subtracted=now.subtracted), now.alpha, now.pull)

    def _growth(self, lost: np.ndarray, alpha: np.ndarray) -> float:
        """The relative gap that the members `lost` add, all but that of the present point."""
        pulled = np.zeros(self.w.size)
        add_rows(self.problem.X, self.problem.members[lost], alpha, pulled)
        return self._share(self.problem.C * pulled)

    def _share(self, away: np.ndarray) -> float:
        """Half a squared length, relative to the primal objective of the last certificate: a gap where `away` is what
        weights differ by from the pull of their own multipliers."""
        return float(0.5 * away @ away) * self.problem.unit / max(abs(self.certificate.primal), TINY)

    def _fewer(self, now: Known, lost: np.ndarray) -> Known:
        """What is known without the members `lost`."""
        problem, numbers = self.problem, self.problem.members[lost]
        pulled, alpha = np.zeros(now.pull.size), now.alpha.copy()
        add_rows(problem.X, numbers, now.alpha, pulled)
        alpha[numbers] = 0.0
        size = float(np.einsum("i,i", np.abs(now.alpha[numbers]), radii(problem.norms[numbers])))
        subtracted = Subtracted(now.subtracted.rows + numbers.size + 1.0, now.subtracted.size + size)
        return Known(alpha, now.z[~lost], now.pull - problem.C * pulled, subtracted)

    def _by_steps(self, tol: float) -> tuple[KeptPoint, Evaluation]:
        """By steps of Newton's method, whose last pass serves the certificate, too."""
        problem, size = self.problem, math.sqrt(2.0 * SURE * tol * abs(self.certificate.primal) / self.problem.unit)
        equations = self.equations or NewtonEquations(problem, FACTORS)
        now = None if self.known is None else slope_at(problem, self.w, self.known.z, self.known.pull)
        w, there = steps_from(problem, self.w, size, now, equations)
        known = Known(problem.spread(there.answers.alpha), there.z, there.pull)
        point = replace(self, w=w, known=known, equations=equations)
        found = point.certified()
        return replace(point, certificate=found.certificate), found

    def _extended(self, problem: Problem) -> NewtonEquations | None:
        """The equations of a problem whose first rows are those of the present one."""
        if self.equations is None:
            return None
        equations = NewtonEquations(problem, FACTORS)
        equations.features = self.equations.features.extended(problem.X, problem.y.size)
        return equations

    def _by_descent(self, tol: float, gap: float, new: np.ndarray = NONE) -> tuple[KeptPoint, Evaluation]:
        """By dual coordinate descent, over `new` rows and those strictly between their bounds at first; `gap` is the
        relative gap that it begins at."""
        problem, solver = self.problem, DCD()
        assert self.alpha is not None
        state = solver.init(problem, 0, Point(alpha=self.alpha))
        free = np.concatenate([_between_bounds(problem, self.alpha), new]).astype(problem.members.dtype)
        state.order[: free.size], state.active = free, free.size or state.active
        state.meters["known"], state.meters["scale"] = gap, abs(self.certificate.primal) / (problem.unit * problem.C)
        found = None
        while found is None or found.certificate.relative_gap > tol:
            state = solver.step(problem, state, Budget(problem.members.size, SHARE * tol))
            if state.estimate <= tol or state.epochs >= MOST_EPOCHS:
                found = evaluate(problem, solver.solution(problem, state))
                if state.epochs >= MOST_EPOCHS:
                    break
                state = solver.certified(problem, state, found)
        w = np.append(found.coef, found.intercept / (problem.scale or 1.0))
        return replace(self, w=w, alpha=found.alpha, certificate=found.certificate, known=None), found


def _known(problem: Problem, w: np.ndarray, alpha: np.ndarray | None) -> Known:
    """By a pass over the rows, or by two."""
    if alpha is None:
        there = slope_of(problem, w)
        return Known(problem.spread(there.answers.alpha), there.z, there.pull)
    return Known(alpha, margins(problem, w), dual_weights(problem, alpha))


def _between_bounds(problem: Problem, alpha: np.ndarray) -> np.ndarray:
    """The members whose dual variables are strictly between their bounds, ascending."""
    a, y, s = (one[problem.members] for one in (alpha, problem.y, problem.row_weights))
    sides = [problem.loss.bounds(sign, 1.0) for sign in (-1.0, 1.0)]
    low, high = (np.where(y > 0.0, plus, minus) * s for minus, plus in zip(*sides, strict=True))
    return problem.members[(a != 0.0) & (a > low) & (a < high)]
