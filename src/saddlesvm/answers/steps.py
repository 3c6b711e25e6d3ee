"""Steps of Newton's method from weights that are near the optimum, until the gradient alone says enough of it.

The length of the gradient bounds the distance of the optimum, and no factor of the curvature is needed for that. Near
the optimum each step squares the distance; conjugate gradients solve its equations in passes over the rows, or a factor
where that is cheaper (:mod:`saddlesvm.solvers.second_order.equations`).
"""

from __future__ import annotations

import math

import numpy as np

from saddlesvm.answers.gradient import Slope, gradient_of, slope_of
from saddlesvm.answers.neighbourhood import Neighbourhood, neighbourhood_of, plain_curvature
from saddlesvm.problem.bounds import radii
from saddlesvm.problem.loss import is_smooth
from saddlesvm.problem.penalties import modulus
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.sums import margins
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


def steps_from(problem: Problem, w: np.ndarray, size: float) -> tuple[np.ndarray, Slope]:
    """Weights whose gradient is no longer than `size`, and a pass over the rows there; or as near as steps come: the
    end is where rounding, or a few slow steps, leave the gradient longer.

    Parameters
    ----------
    problem : Problem
        See :func:`can_come_nearer`.
    w : ndarray of shape (d + 1,)
        To begin at.
    size : float
    """
    equations = NewtonEquations(problem, FACTORS)
    now = slope_of(problem, w)
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
