"""Models that cost one number: the best multiple of a given model, and the best intercept alone.

A fit that ends early may stand at weights that are far too long or too short, even worse than no
weights at all. The objective is convex along a ray from zero, and along the ray of the intercept;
the margins of both rays are known after at most one pass over the rows, so the lowest point of each
takes some dozen sums over n numbers. A free intercept is searched in turn with the factor.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import singledispatch
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from saddlesvm.problem.bounds import primal_of
from saddlesvm.problem.certificate import Evaluation, Point
from saddlesvm.problem.crammer_singer import JointProblem, score_sums
from saddlesvm.problem.joint_losses import leads
from saddlesvm.problem.problem import is_classification
from saddlesvm.problem.sums import loss_sums, margins
from saddlesvm.problem.terms import Pointwise
from saddlesvm.rows.scores import scores_of_rows
from saddlesvm.runtime.clock import time_is_up

PRECISION = 1e-6  # relative precision of a factor
EVALUATIONS = 100  # most sums over n numbers to find it
TURNS = 5  # searches of a factor at most, each followed by one of a free intercept
TURN_GAIN = 1e-6  # relative gain of a turn below which it was the last
# Scores of a joint problem's rows beyond which their many sums would take too long.
MOST_SCORES = 2**25
BEYOND = 1e-9  # of a margin of 1, more than its rounding
# A model without loss may cost so much more than another, whose rounding may cost that.
COSTLIER = 1.0 + 4.0 * BEYOND
GAIN = 1e-9  # relative gain below which a model stays as it is
# Factors of a model over files, among which the best is looked for.
FACTORS = (0.0, *(2.0**k for k in range(-8, 3)))
ANY = (-np.inf, np.inf)  # factors

Candidate = tuple[float, Any]  # the objective in the C form, and a point for `evaluate`


def minimise(
    objective: Callable[[float], float], within: tuple[float, float] = ANY
) -> tuple[float, float]:
    """Return the allowed factor with the lowest objective, which is convex, and that objective.

    It is never above the objectives at 0 and 1.

    If the time is up, it is the best of the factors tried so far, at least one.
    """
    values: list[tuple[float, float]] = []

    def tried(factor: float) -> float:
        if values and time_is_up():
            raise TimeoutError
        factor = float(np.clip(factor, *within))
        value = objective(factor)
        values.append((value, factor))
        return value

    # Brent's method tries 0 and 1 first, so that neither is better than the result.
    options = {"xtol": PRECISION, "maxiter": EVALUATIONS}
    with np.errstate(all="ignore"), contextlib.suppress(TimeoutError):
        minimize_scalar(tried, bracket=(0.0, 1.0), method="brent", options=options)
    value, factor = min((one for one in values if np.isfinite(one[0])), default=(np.inf, 0.0))
    return factor, value


def _try_without_loss(
    least: float,
    paid: Callable[[float], float],
    charged: Callable[[float], float],
    value: float,
    within: tuple[float, float] = ANY,
) -> tuple[float, float] | None:
    """Return the factor that brings all margins just beyond 1, and the objective there, R alone.

    There, the rounding of the margins counts for nothing, whatever C is: at the corner of the
    hinge, C times it may be most of the objective. None if a row is on the wrong side, or still
    pays, or R is above `value`.

    Parameters
    ----------
    least : float
        The smallest margin of the model's rows.
    paid, charged : callable
        The sum of the losses, and R, at a factor.
    value : float
        The objective of another model.
    """
    factor = (1.0 + BEYOND) / least if least > 0.0 else np.inf
    if not within[0] <= factor <= within[1] or factor == np.inf:
        return None
    with np.errstate(all="ignore"):  # a margin next to zero asks for weights without bound
        cost = charged(factor)
        return (factor, cost) if cost <= COSTLIER * value and not paid(factor) else None


def multiple(
    problem: Any,
    terms: Pointwise,
    z: np.ndarray,
    charged: Callable[[float], float],
    offset: float,
    within: tuple[float, float] = ANY,
) -> tuple[float, float, float]:
    """The best factor of a model with margins z, the offset that goes with it, and their objective.

    Parameters
    ----------
    problem : Problem or KernelProblem
    terms : Pointwise
    z : ndarray of shape (n,)
        Margins without the offset.
    charged : callable
        R at a factor.
    offset : float
        The first intercept; only a free intercept has another than zero.
    within : pair of float
        The least and the largest factor that are allowed.
    """
    kind = problem.intercept
    nothing = np.zeros(terms.y.size)

    def paid(factor: float, offset: float) -> float:
        return loss_sums(terms, problem.members, factor * z, offset, nothing).paid + kind.paid(
            offset
        )

    def objective(factor: float) -> float:
        return primal_of(problem.C, paid(factor, offset), charged(factor))

    before = np.inf
    first = offset
    # Factor and free intercept take turns until a turn gains little.
    for _ in range(TURNS):
        factor, value = minimise(objective, within)
        if not kind.constrained or before - value <= TURN_GAIN * abs(value):
            break
        before = value
        offset = kind.best(terms, problem.members, factor * z, offset)
    if is_classification(problem.loss):
        # If all rows are on their side, a factor large enough leaves no loss at all.
        least = float((terms.y[problem.members] * (z + first)).min())
        found = _try_without_loss(
            least, lambda factor: paid(factor, factor * first), charged, value, within
        )
        if found is not None:
            factor, value = found
            return factor, factor * first, value
    return factor, offset, value


@singledispatch
def candidates(problem: Any, model: Evaluation | None) -> Iterator[Candidate]:
    """The best multiple of a model, if it has one, and the best intercept without weights.

    Another kind than linear problems registers its own way (``candidates.register``).
    """
    regularizer = problem.regularizer
    terms = problem.pointwise
    kind = problem.intercept
    last = np.zeros(problem.n_features + 1)
    last[-1] = float(kind.present)
    constant = np.full(problem.members.size, 0.0 if kind.constrained else problem.scale)
    alone = kind.best(terms, problem.members, constant, 0.0)
    # The intercept alone, then the multiples of the model.
    rays = [(last, constant, alone)]
    # Such a model is that of feasible dual variables, of which no multiple is feasible.
    expanded = not kind.homogeneous
    if model is not None and not expanded and (model.coef.any() or model.intercept):
        w, offset = kind.split(np.append(model.coef, model.intercept / (problem.scale or 1.0)))
        rays.append((w, margins(problem, w), offset))
    for w, z, offset in rays:

        def charged(factor: float, w: np.ndarray = w) -> float:
            return regularizer.value(factor * w)

        factor, offset, value = multiple(problem, terms, z, charged, offset)
        moved = factor * w
        if kind.constrained:
            moved[-1] = offset / problem.scale
        yield value, Point(w=moved)


@candidates.register(JointProblem)
def _joint(problem: JointProblem, model: Evaluation | None) -> Iterator[Candidate]:
    if problem.on_files:
        yield from _multiples(problem, model)
        return
    members = problem.members
    own = problem.codes[problem.members]
    weights = problem.row_weights[members]
    if members.size * problem.n_classes > MOST_SCORES:
        return
    shares = np.bincount(own, weights, problem.n_classes)
    last = np.zeros((problem.n_classes, problem.n_features + 1))
    # Without weights, intercepts that prefer the heaviest classes.
    last[:, -1] = float(problem.intercept.present) * (
        (shares == shares.max()) - 1.0 / problem.n_classes
    )
    rays = [last]
    if model is not None:
        rays.append(
            np.column_stack([model.coef, np.asarray(model.intercept) / (problem.scale or 1.0)])
        )
    for W in rays:
        scores = scores_of_rows(problem.X, W)[members]

        def paid(factor: float, scores: np.ndarray = scores) -> float:
            return float(weights @ problem.joint.values(factor * scores, own))

        def charged(factor: float, W: np.ndarray = W) -> float:
            return problem.regularizer.value(factor * W)

        def objective(
            factor: float,
            paid: Callable[[float], float] = paid,
            charged: Callable[[float], float] = charged,
        ) -> float:
            return primal_of(problem.C, paid(factor), charged(factor))

        factor, value = minimise(objective)
        least = float(leads(scores, own).min())
        # Where all rows are on their side, a factor large enough leaves no loss at all.
        without = _try_without_loss(least, paid, charged, value)
        if without is not None:
            factor, value = without
        yield value, Point(w=factor * W)


def _multiples(problem: JointProblem, model: Evaluation | None) -> Iterator[Candidate]:
    """Some multiples of a model, by one reading for all."""
    if model is None:
        return
    W = np.column_stack([model.coef, np.asarray(model.intercept) / (problem.scale or 1.0)])
    for factor, paid in zip(FACTORS, score_sums(problem, W, FACTORS).tolist(), strict=False):
        yield primal_of(problem.C, paid, problem.regularizer.value(factor * W)), Point(w=factor * W)


def improve(problem: Any, model: Evaluation | None) -> Any:
    """A point whose objective is lower than the model's by more than rounding; else None.

    It is the best multiple of the model's weights, or the best intercept without weights.

    Parameters
    ----------
    problem : Problem, JointProblem or KernelProblem
    model : Evaluation or None
        None: any point will do.
    """
    least = np.inf
    chosen = None
    if model is not None:
        own = model.certificate.primal / problem.unit
        # A gain within rounding is none.
        least = own - GAIN * abs(own)
    for value, point in candidates(problem, model):
        if value < least:
            least = value
            chosen = point
        if time_is_up():
            break
    return chosen
