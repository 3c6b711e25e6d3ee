"""Correctly rounded weights: those of the exact optimum, to a grid, where what is proven of them leaves no choice.

The grid has `bits` bits below the power of two that the largest weight, or intercept, is below. A weight of the optimum
lies between two proven bounds; where no boundary of the grid is between these, its rounding is known, whichever solver,
order of the rows or number of threads led there.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from saddlesvm.answers.active_set import verified
from saddlesvm.answers.curvature import plain_curvature
from saddlesvm.answers.gradient import gradient_at, slope_at
from saddlesvm.answers.long_floats import long_gradient
from saddlesvm.answers.neighbourhood import Neighbourhood, gap_in_C_form, neighbourhood_of
from saddlesvm.answers.steps import FACTORS, can_come_nearer
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.rounding import SLACK
from saddlesvm.problem.sums import margins
from saddlesvm.solvers.second_order.equations import NewtonEquations

CLOSE = 1e-3  # share of a gradient in long floats that a step leaves
STEPS = 3  # of Newton's method: each squares the distance from the optimum, until rounding ends it
MOST_STEPS, GAIN = 10, 0.5  # of those by conjugate gradients; share of the distance that one leaves at most
SUMMED = 1e-14  # what the few operations of a radius may round
FORMAT = "saddlesvm canonical weights 1"


@dataclass(frozen=True, eq=False)
class Rounded:
    """Weights on a grid.

    Attributes
    ----------
    places : ndarray of shape (k, d + 1), float64
        Whole multiples of the grid's steps, the intercepts' last.
    exponents : ndarray of shape (k,), int64
        The step of each row is two to this power.
    ambiguous : int
        How many weights have a boundary of the grid between their bounds.
    """

    places: np.ndarray
    exponents: np.ndarray
    ambiguous: int

    @property
    def values(self) -> np.ndarray:
        """The rounded weights, shape (k, d + 1)."""
        return np.ldexp(self.places, self.exponents[:, None])


def rounded(low: np.ndarray, high: np.ndarray, bits: int) -> Rounded:
    """The rounded weights of the optimum, from bounds on each weight.

    Parameters
    ----------
    low, high : ndarray of shape (k, d + 1)
    bits : int
    """
    largest = np.maximum(np.abs(low), np.abs(high)).max(axis=1)
    surely = np.where(np.sign(low) * np.sign(high) > 0.0, np.minimum(np.abs(low), np.abs(high)), 0.0).max(axis=1)
    powers = np.frexp(largest)[1]
    known = np.isfinite(largest) & ((np.frexp(surely)[1] == powers) | (largest == 0.0))
    exponents = np.where(np.isfinite(largest), powers - bits, 0).astype(np.int64)
    places, above = (_nearest(np.ldexp(np.nan_to_num(one), -exponents[:, None])) for one in (low, high))
    ambiguous = int(np.where(known, (places != above).sum(axis=1), places.shape[1]).sum())
    return Rounded(places, exponents, ambiguous)


def _nearest(x: np.ndarray) -> np.ndarray:
    """The nearest whole numbers, halves up; ``x + 0.5`` itself would be rounded."""
    below = np.floor(x)
    return np.asarray(below + (x - below >= 0.5))


def digest(found: Rounded, classes: Sequence[str], names: Sequence[str]) -> str:
    """The SHA-256 of rounded weights, as hexadecimal text.

    Hashed is a text: the format, a line a class, and for each row of weights its exponent and its intercept, and a line
    "name place" for each weight that is not zero, sorted by the features' names. With names of the features it is
    the same for every order of the columns.
    """
    lines = [FORMAT, *(f"class {one}" for one in classes)]
    for places, exponent in zip(found.places, found.exponents.tolist(), strict=True):
        lines.append(f"weights {exponent} {int(places[-1])}")
        chosen = np.flatnonzero(places[:-1]).tolist()
        lines += sorted(f"{names[j]} {int(places[j])}" for j in chosen)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def polished(problem: Problem, found: Neighbourhood, w: np.ndarray, alpha: np.ndarray | None = None) -> Neighbourhood:
    """A narrower neighbourhood of the optimum, after steps of Newton's method from w, or by its active set in long
    floats; the same where none is narrower.

    Parameters
    ----------
    problem : Problem
    found : Neighbourhood
        Where the optimum is known to lie.
    w : ndarray of shape (d + 1,)
        Its center, the last place that of a free intercept, too.
    alpha : ndarray of shape (n_all,), optional
        Dual variables near the optimum's, of a neighbourhood by an active set.
    """
    if found.way == "active set" and alpha is not None:
        return verified(problem, alpha, fine=True) or found
    if found.curvature.factor is None:
        return _by_gradient(problem, found, w) if can_come_nearer(problem) else found
    center = w
    for _ in range(STEPS):
        w = w - found.curvature.solved(gradient_at(problem, w).value)
        gap = evaluate(problem, Point(w), given_offset=True).certificate.gap
        closer = neighbourhood_of(problem, w, gap_in_C_form(problem, max(gap, 0.0)))
        if not closer.radius < found.radius or not math.isfinite(closer.radius):
            break
        found, center = closer, w
    return _long(problem, found, center)


def _long(problem: Problem, found: Neighbourhood, w: np.ndarray) -> Neighbourhood:
    """The neighbourhood with the radius of a gradient in long floats.

    Rows on a parabola keep their curvature. That of others falls by no more than ``e^-t`` on the way to the optimum,
    with t at most M times the longest row times the radius known so far, and ``t / (1 - e^-t) <= 1 / (1 - t / 2)``.
    """
    steep = getattr(problem.loss, "steepening", None)
    exact = long_gradient(problem, w) if found.way == "curvature" else None
    if exact is None:
        return found
    longest = SLACK * problem.row_sizes.longest / math.sqrt(found.curvature.floor)
    t = 0.0 if steep is None else steep() * longest * found.radius
    if not t < 1.0:
        return found
    away = found.curvature.dual_norm(*exact) / (1.0 - 0.5 * t) * (1.0 + SUMMED)
    return replace(found, radius=min(found.radius, away))


def _by_gradient(problem: Problem, found: Neighbourhood, w: np.ndarray) -> Neighbourhood:
    """A narrower plain ball, by steps whose gradients are in long floats: for more features than a factor may have."""
    equations, plain = NewtonEquations(problem, FACTORS), plain_curvature(problem)
    for _ in range(MOST_STEPS):
        exact = long_gradient(problem, w)
        if exact is None:
            break
        radius = plain.dual_norm(*exact)
        if not radius < GAIN * found.radius:
            break
        found = Neighbourhood(w, radius, plain, problem.scale, way="gradient")
        bends = slope_at(problem, w, margins(problem, w)).answers.bend
        w = w - equations.solve(problem.spread(bends), exact[0], CLOSE)
    return found
