"""Steps of Newton's method from weights near the optimum, until the gradient proves enough.

The length of the gradient bounds the distance of the optimum, and no factor of the curvature is
needed for that. Near the optimum each step squares the distance; conjugate gradients solve its
equations in passes over the rows, or a factor if that is cheaper
(:mod:`saddlesvm.solvers.memory_equations`).
"""

from __future__ import annotations

import math

import numpy as np

from saddlesvm.answers.curvature_bound import plain_curvature
from saddlesvm.answers.gradient import Slope, gradient_from_pass, slope_at
from saddlesvm.answers.neighbourhood import Neighbourhood, find_neighbourhood
from saddlesvm.problem.bounds import radii
from saddlesvm.problem.penalties import modulus
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.sums import margins
from saddlesvm.solvers.bracket import Line, find_step
from saddlesvm.solvers.machines import Binary, make_machine
from saddlesvm.solvers.memory_equations import MemoryEquations
from saddlesvm.solvers.newton import make_task

# How far the scores of the training rows may move at most; a margin is 1.
ENOUGH = 1e-4
# The same as a multiple of a fit's relative gap, and its limits.
OF_TOL = 10.0
CLOSEST = 1e-6
WIDEST = 1e-3
SPARE = 0.9  # share of it that the gradient is shortened to: the rest is for its rounding
AIM = 0.5  # share of the wanted length that a step is solved to: the loss bends further on the way
MOST_STEPS = 30
FORCING = 1e-2  # share of the gradient that a step leaves if the curvature stays (measured)
LOOSE = 0.25  # share of the gradient that a step leaves at most
FALL = 0.3  # share of the gradient that a good step leaves at most
SLOW = 3  # number of steps that were not good after which the steps end
ROUNDED = 1e-13  # share of the rows' pull below which a gradient is mostly rounding
LINE = 1e-3  # share of the slope along a step that the line search leaves
# Share of the wanted gap that the gradient is shortened to; the rest is for the objective's change.
SURE = 0.5


def can_come_nearer(problem: Problem) -> bool:
    """Return True if the gradient bounds the optimum's distance: a smooth loss, half a square."""
    is_convex = (
        problem.is_plain and modulus(problem.penalty) > 0.0 and not problem.intercept.constrained
    )
    return bool(problem.is_smooth and is_convex and not problem.fixed.size and problem.holds_rows)


def enough_for(tol: float) -> float:
    """Return how far the scores of the training rows may move after a fit to a relative gap."""
    if tol <= 0.0:
        return ENOUGH
    return min(max(OF_TOL * tol, CLOSEST), WIDEST)


def neighbourhood_near(
    problem: Problem, w: np.ndarray, enough: float = ENOUGH
) -> Neighbourhood | None:
    """Return a neighbourhood of the optimum, by steps from w; None if they do not come near it.

    Parameters
    ----------
    problem : Problem
        See :func:`can_come_nearer`.
    w : ndarray of shape (d + 1,)
    enough : float
        How far the scores of the training rows may move at most.
    """
    longest = float(radii(problem.norms).max(initial=0.0))
    w, now = steps_from(problem, w, SPARE * enough / longest if longest > 0.0 else math.inf)
    seen = gradient_from_pass(problem, w, now)
    plain = plain_curvature(problem)
    # ||w* - w|| <= ||gradient||; if that is too far, the curvature may prove more.
    radius = plain.dual_norm(seen.value, seen.error)
    if radius * longest <= enough:
        return Neighbourhood(w, radius, plain, problem.scale, way="gradient")
    found = find_neighbourhood(problem, w, math.inf, enough)
    return found if found.way == "curvature" or found.radius * longest <= enough else None


def steps_from(problem: Problem, w: np.ndarray, size: float) -> tuple[np.ndarray, Slope]:
    """Return weights whose gradient is no longer than `size`, if rounding allows, and a pass there.

    Parameters
    ----------
    problem : Problem
        See :func:`can_come_nearer`.
    w : ndarray of shape (d + 1,)
        The weights to begin at.
    size : float
    """
    equations = MemoryEquations(make_task(problem))
    machine = make_machine(problem, problem.in_arrays)
    now = slope_at(problem, machine, w)
    length = float(np.linalg.norm(now.value))
    slow = 0
    fall = 1.0
    for _ in range(MOST_STEPS):
        rounded = slow > 0 and length <= ROUNDED * float(np.linalg.norm(now.pull))
        if length <= size or slow == SLOW or rounded or not math.isfinite(length):
            break
        # Solve the equations just well enough for what the step can gain.
        forcing = min(max(FORCING * min(fall, 1.0), AIM * size / length), LOOSE)
        equations.take_bends(now.bends)
        equations.forcing = forcing
        direction = -equations.inverse(now.value)
        moved = w + direction
        before = length
        there = slope_at(problem, machine, moved)
        length = float(np.linalg.norm(there.value))
        if not length <= max(size, FALL * before):  # the whole step is too long, or too short
            tau, moved = _step(problem, machine, w, now, direction)
            if tau == 0.0:
                break
            there = slope_at(problem, machine, moved)
            length = float(np.linalg.norm(there.value))
        fall = length / before
        slow = slow + 1 if fall > FALL else 0
        w = moved
        now = there
    return w, now


def _step(
    problem: Problem, machine: Binary, w: np.ndarray, now: Slope, direction: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return the length of the best step along a direction, and the weights there."""
    dz = margins(problem, direction)
    ahead = problem.intercept.penalised_part(direction)
    # The objective along the line, by margins and their changes: no further pass.
    linear = problem.regularizer.slope(w, direction)
    line = Line(now.z, dz, linear, float(ahead @ ahead), problem.C)
    tau = find_step(line, machine, np.empty(0), 0.0, now.alpha, now.bends / problem.C, LINE)
    return tau, w + tau * direction
