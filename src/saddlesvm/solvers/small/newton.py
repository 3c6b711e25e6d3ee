"""Newton's method for small problems with smooth losses, from zero; several problems over the same rows take their
steps together, as arrays with a row for each.

The step d solves ``(P + C Z' diag(phi'') Z) d = -(P u - u(a))`` with ``a = -phi'`` at the present margins, which is
dual feasible and so yields a bound at every step; an exact search along the line follows, which makes the method end
after finitely many steps where the derivative is piecewise linear. :mod:`saddlesvm.solvers.newton` is the same method
for problems of any size. There a fit of 100 x 2 to 2,000 x 60 takes 1.3 times as long in the mean (26 November 2026);
several classes, whose steps are taken together here, take 2.2 to 5 times.

Source: Keerthi and DeCoste (2005), "A modified finite Newton method for fast solution of large scale linear SVMs".
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import ClassVar

import numpy as np

from saddlesvm.problem.bounds import primal_of
from saddlesvm.problem.intercepts import SEARCH_STEPS
from saddlesvm.problem.loss import is_smooth
from saddlesvm.problem.problem import Problem
from saddlesvm.solvers.second_order.driver import Bracket
from saddlesvm.solvers.small.dense import Found, Small, SmallSolver, SmallState, Together, fits, products
from saddlesvm.solvers.small.equations import inner, solved
from saddlesvm.solvers.small.interior_point import InteriorPoint


@dataclass
class At:
    """The points that runs stand at: weights, shape (K, m), and, shape (K, n), margins, multipliers, and second
    derivatives of the rows' terms.

    `pull` is ``C sum_i a_i x_i``, once it is computed.
    """

    u: np.ndarray
    z: np.ndarray
    a: np.ndarray
    bend: np.ndarray
    pull: np.ndarray | None = None

    def among(self, chosen: np.ndarray) -> At:
        """The points of some of the runs."""
        return At(*(None if one is None else one[chosen] for one in (self.u, self.z, self.a, self.bend, self.pull)))  # type: ignore[arg-type]


@dataclass(frozen=True)
class SmallNewton(SmallSolver):
    """Newton's method on the primal, in NumPy."""

    name: ClassVar[str] = "dense_newton"

    def together(self, small: Small, relative_gap: float, most: int) -> Together:
        return ends(small, relative_gap, most)

    def begin(self, small: Small, u: np.ndarray) -> At:
        zero = np.zeros((1, u.size))
        nowhere = response(small, zero, zero @ small.Z.T)
        if not u.any():
            return nowhere
        at = response(small, u[None], u[None] @ small.Z.T)
        # So far out that the objective is above that of zero, a smooth loss may have no curvature to use.
        return nowhere if own(small, nowhere) < own(small, at) else at

    def move(self, state: SmallState, small: Small) -> float:
        at: At = state.at
        moved, gaps = stepped(small, at)
        state.stuck = not (moved.u != at.u).any()
        state.at = at if state.stuck else moved
        # with a free intercept the gap is another, as the multipliers are balanced
        return 0.0 if small.problem.intercept.constrained else float(gaps[0])

    def judge(self, state: SmallState, small: Small) -> Found:
        at: At = state.at
        state.active = int(np.count_nonzero(at.bend))
        state.remark = f"Newton step {state.steps}: {state.active} rows bend"
        return small.judged(at.u[0], at.z[0], at.a[0], small.penalty * pulled(small, at)[0])


def stepped(small: Small, at: At) -> tuple[At, np.ndarray]:
    """The points after a step, and the gaps there, of multipliers that are slopes; shape (K,)."""
    direction = solved(small.equations.factors(at.bend), pulled(small, at) - small.penalty * at.u)
    moved = searched(small, at, direction, products(direction, small.Z.T))
    gradient = moved.u - pulled(small, moved)
    return moved, 0.5 * inner(gradient, gradient)


def pulled(small: Small, at: At) -> np.ndarray:
    """``C sum_i a_i x_i``, computed once for a point."""
    if at.pull is None:
        at.pull = small.C * products(at.a, small.Z)
    return at.pull


def response(small: Small, u: np.ndarray, z: np.ndarray) -> At:
    """The multipliers and second derivatives at margins z."""
    a = -small.s * small.methods.subgradient(small.loss, z, small.y)
    bend = small.s * small.methods.curvature(small.loss, z, small.y)
    return At(u, z, a, bend if np.shape(bend) == z.shape else np.broadcast_to(bend, z.shape))


def own(small: Small, at: At) -> float:
    """The objective of a single point."""
    return primal_of(small.C, float(small.paid(at.z[0])), float(0.5 * (small.penalty @ (at.u[0] * at.u[0]))))


def searched(small: Small, at: At, direction: np.ndarray, dz: np.ndarray) -> At:
    """The points on the lines where the objectives are least, roughly; where one does not fall, it stays."""
    penalised = small.penalty * direction
    linear, quadratic = inner(penalised, at.u), inner(penalised, direction)
    begin = linear - small.C * inner(at.a, dz)
    lines = list(map(Bracket, begin.tolist()))
    places = list(map(attrgetter("tau"), lines))
    if 0.0 in places:
        falls = np.array(places)[:, None] > 0.0
        direction, dz = (np.where(falls, one, 0.0) for one in (direction, dz))
    for _ in range(SEARCH_STEPS):
        tau = np.array(places)
        there = response(small, at.u + tau[:, None] * direction, at.z + tau[:, None] * dz)
        slopes = linear + tau * quadratic - small.C * inner(there.a, dz)
        rises = quadratic + small.C * inner(there.bend * dz, dz)
        following = list(map(Bracket.follow, lines, slopes.tolist(), rises.tolist()))
        if following == places:
            break
        places = following
    return there


def ends(small: Small, relative_gap: float, most: int) -> Together:
    """The ends of runs from zero, whose steps are taken together; see :meth:`SmallSolver.together`."""
    runs = len(small.y)
    zero, live, rows = np.zeros((runs, small.Z.shape[1])), np.arange(runs), small
    u, a, steps = zero, np.zeros(small.y.shape), np.zeros(runs, dtype=int)
    at, primal = response(small, zero, np.zeros(small.y.shape)), np.full(runs, np.inf)
    for step in range(1, most + 1):
        moved, gaps = stepped(small, at)
        if (gaps <= relative_gap * primal).any():  # primal objectives fall: those of earlier steps are no smaller
            primal = primal_of(small.C, small.paid(moved.z), 0.5 * inner(moved.u, moved.u))
        going = (gaps > relative_gap * primal) & (moved.u != at.u).any(axis=1) & (step < most)
        at = moved
        if not going.all():
            ended = live[~going]
            u[ended], a[ended], steps[ended] = at.u[~going], at.a[~going], step
            if not going.any():
                break
            live, at, small, primal = live[going], at.among(going), small.among(going), primal[going]
    return Together(rows.original(u), a, steps)


DENSE, INTERIOR = "dense Newton", "interior point"
SMALL: dict[str, SmallSolver] = {DENSE: SmallNewton(), INTERIOR: InteriorPoint()}


def small_phase(problem: Problem) -> str | None:
    """The name of the solver of a small problem; None for a problem that is not small."""
    if not fits(problem):
        return None
    return DENSE if is_smooth(problem.loss) and problem.penalty.identity() else INTERIOR
