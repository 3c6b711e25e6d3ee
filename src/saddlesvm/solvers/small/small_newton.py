"""Newton's method for small problems with smooth losses, from zero.

Several problems over the same rows take their steps together, as arrays with a row for each. The
step d solves ``(P + C Z' diag(phi'') Z) d = -(P u - u(a))`` with ``a = -phi'`` at the present
margins, which is dual feasible and so yields a bound at every step. An exact search along the line
follows, which makes the method end after finitely many steps if the derivative is piecewise linear.

:mod:`saddlesvm.solvers.newton` is the same method for problems of any size. There a fit of 100 x 2
to 2,000 x 60 takes 1.3 times as long in the mean (26 November 2026); several classes, whose steps
are taken together here, take 2.2 to 5 times.

Source: Keerthi and DeCoste (2005), "A modified finite Newton method for fast solution of large
scale linear SVMs".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from saddlesvm.problem.bounds import primal_of
from saddlesvm.problem.intercepts import SEARCH_STEPS
from saddlesvm.problem.loss import has_bounded_slopes, traits_of
from saddlesvm.problem.penalties import L1
from saddlesvm.problem.problem import Problem
from saddlesvm.rows.matrix import is_little
from saddlesvm.solvers.bracket import Bracket
from saddlesvm.solvers.curvature import coordinate_curvature
from saddlesvm.solvers.small.dense import FoundWeights, Small, SmallSolver, SmallState, Together
from saddlesvm.solvers.small.interior_point import InteriorPoint
from saddlesvm.solvers.small.small_equations import inner, products, solve

# The phases of small problems, in the words of a trace.
DENSE = "dense Newton"
INTERIOR = "interior point"
# Dense problems are small here up to so many times the values that are small everywhere; if the
# loss has kinks, only from this ``C ||x_i||^2`` of the median row on: descent solves easier ones in
# a few epochs. Measured on digits and on 2,000 x 95 to 30,000 x 8: beside the solvers for any size,
# smooth losses take .46 to 1.12 of the time up to 2.5 times, and .6 to 1.57 at 4 times; the hinge
# .36 to 1.02 with C = 1 and 100, and 3 to 4 with C = .01 (27 November 2026).
LARGER = 2.5
STEEP = 10.0


class At(NamedTuple):
    """The points that runs stand at.

    Attributes
    ----------
    u : ndarray of shape (K, m)
        Weights.
    z, a, bend : ndarray of shape (K, n)
        Margins, multipliers, and second derivatives of the rows' terms.
    pull : ndarray of shape (K, m)
        ``C sum_i a_i x_i``.
    """

    u: np.ndarray
    z: np.ndarray
    a: np.ndarray
    bend: np.ndarray
    pull: np.ndarray


@dataclass(frozen=True)
class SmallNewton(SmallSolver):
    """Newton's method on the primal, in NumPy."""

    name: ClassVar[str] = "dense_newton"

    def together(self, small: Small, relative_gap: float, most: int) -> Together:
        return run_together(small, relative_gap, most)

    def begin(self, small: Small, u: np.ndarray) -> At:
        zero = np.zeros((1, u.size))
        at_zero = stand_at(small, zero, zero @ small.Z.T)
        if not u.any():
            return at_zero
        at = stand_at(small, u[None], u[None] @ small.Z.T)
        # So far out that the objective is above that of zero, a smooth loss may have no curvature.
        return at_zero if objective(small, at_zero) < objective(small, at) else at

    def move(self, state: SmallState, small: Small) -> float:
        at: At = state.at
        moved, gaps = take_step(small, at)
        state.stuck = not (moved.u != at.u).any()
        if not state.stuck:
            state.at = moved
        # With a free intercept the gap is another, as the multipliers are balanced.
        return 0.0 if small.problem.intercept.constrained else float(gaps[0])

    def judge(self, state: SmallState, small: Small) -> FoundWeights:
        at: At = state.at
        state.active = int(np.count_nonzero(at.bend))
        state.remark = f"Newton step {state.steps}: {state.active} rows bend"
        pull = small.penalty * at.pull[0]
        return small.evaluate(at.u[0], at.z[0], at.a[0], pull)


def take_step(small: Small, at: At) -> tuple[At, np.ndarray]:
    """Return the points after a step, and the gaps of their multipliers, shape (K,)."""
    # (P + C Z' diag(bend) Z) direction = pull - P u, the negative gradient on the right.
    factors = small.equations.factors(at.bend)
    direction = solve(factors, at.pull - small.penalty * at.u)
    moved = search(small, at, direction, products(direction, small.Z.T))
    # The gap of multipliers that are slopes is half the squared gradient.
    gradient = moved.u - moved.pull
    return moved, 0.5 * inner(gradient, gradient)


def stand_at(small: Small, u: np.ndarray, z: np.ndarray) -> At:
    """Return the points of weights u with margins z."""
    a, bend = respond(small, z)
    return At(u, z, a, bend, small.C * products(a, small.Z))


def respond(small: Small, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows' multipliers and second derivatives at margins z."""
    a = -small.s * small.methods.subgradient(small.loss, z, small.y)
    bend = small.s * small.methods.curvature(small.loss, z, small.y)
    if getattr(bend, "shape", ()) != z.shape:
        # One number for all rows.
        bend = np.broadcast_to(bend, z.shape)
    return a, bend


def objective(small: Small, at: At) -> float:
    """Return the objective of a single point."""
    charged = 0.5 * (small.penalty @ (at.u[0] * at.u[0]))
    return primal_of(small.C, float(small.add_losses(at.z[0])), float(charged))


def search(small: Small, at: At, direction: np.ndarray, dz: np.ndarray) -> At:
    """Return the points on the lines at which the objectives are least, roughly.

    A run whose objective does not fall stays.
    """
    # Derivatives of half a square along the lines: linear + tau quadratic.
    penalised = small.penalty * direction
    linear = inner(penalised, at.u)
    quadratic = inner(penalised, direction)
    slopes = linear - small.C * inner(at.a, dz)
    # A bracket for each run; it stays at zero if the objective does not fall at first.
    lines = [Bracket(slope) for slope in slopes.tolist()]
    places = [line.tau for line in lines]
    if 0.0 in places:
        falls = np.array(places)[:, None] > 0.0
        direction = np.where(falls, direction, 0.0)
        dz = np.where(falls, dz, 0.0)
    for _ in range(SEARCH_STEPS):
        # First and second derivatives of all lines, each at its own place; a bracket makes the next
        # place of them.
        tau = np.array(places)
        z = at.z + tau[:, None] * dz
        a, bend = respond(small, z)
        slopes = linear + tau * quadratic - small.C * inner(a, dz)
        rises = quadratic + small.C * inner(bend * dz, dz)
        following = list(map(Bracket.follow, lines, slopes.tolist(), rises.tolist()))
        if following == places:
            break
        places = following
    u = at.u + tau[:, None] * direction
    return At(u, z, a, bend, small.C * products(a, small.Z))


def run_together(small: Small, relative_gap: float, most: int) -> Together:
    """Return the ends of runs from zero; see :meth:`SmallSolver.together`."""
    rows = small
    count = len(small.y)
    live = np.arange(count)
    u = np.zeros((count, small.Z.shape[1]))
    a = np.zeros(small.y.shape)
    steps = np.zeros(count, dtype=int)
    at = stand_at(small, u.copy(), np.zeros(small.y.shape))
    primal = np.full(count, np.inf)
    for step in range(1, most + 1):
        moved, gaps = take_step(small, at)

        # Primal objectives fall: those of earlier steps are no smaller.
        if (gaps <= relative_gap * primal).any():
            primal = primal_of(small.C, small.add_losses(moved.z), 0.5 * inner(moved.u, moved.u))
        going = (gaps > relative_gap * primal) & (moved.u != at.u).any(axis=1)
        # The last step ends all runs.
        if step == most:
            going[:] = False
        at = moved
        if going.all():
            continue

        # Runs that have ended leave the others.
        ended = live[~going]
        u[ended] = at.u[~going]
        a[ended] = at.a[~going]
        steps[ended] = step
        if not going.any():
            break
        live = live[going]
        at = At(*[values[going] for values in at])
        small = small.pick(going)
        primal = primal[going]
    return Together(rows.feature_weights(u), a, steps)


SMALL: dict[str, SmallSolver] = {DENSE: SmallNewton(), INTERIOR: InteriorPoint()}


def small_phase(problem: Problem) -> str | None:
    """Return the name of the solver of a small problem; None if the solvers here do not take it.

    They take few values and little work in a step, with half a square as penalty, or the sum of the
    weights' sizes with a loss of lines and parabolas.
    """
    intercept = problem.intercept
    if type(problem) is not Problem or not problem.holds_rows or not intercept.homogeneous:
        return None
    # Sizes of weights: the interior point needs pieces of parabolas, and more rows than features.
    if isinstance(problem.penalty, L1):
        is_tall = problem.n_features < problem.members.size and not intercept.constrained
        phase = INTERIOR if is_tall and traits_of(problem.loss).parabolic else None
    elif not problem.is_plain:
        phase = None
    # Half a square: Newton's method if the loss has slopes everywhere, else the interior point.
    elif problem.is_smooth:
        phase = DENSE
    else:
        phase = INTERIOR if has_bounded_slopes(problem.loss) else None
    return phase if is_small_enough(problem) else None


def is_small_enough(problem: Problem) -> bool:
    """Return True if the solvers here take less time than those for problems of any size."""
    if problem.is_small:
        return True
    # Larger ones are dense, so that NumPy makes their sums anyway.
    size = problem.X.n_values, problem.X.n_rows, problem.n_features
    if problem.sparse or not problem.in_arrays or not is_little(*size, times=LARGER):
        return False
    return problem.is_smooth or coordinate_curvature(problem) >= STEEP
