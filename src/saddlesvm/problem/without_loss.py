"""A model without loss: a multiple of a model, or a free intercept alone.

If C or the rows are large, the rounding of a margin of 1, times C, is more than the rest of the
objective. A multiple whose rows are all a little beyond their margin pays no loss, and the
objective is R alone. So it is with a free intercept at targets that are all alike: the objective
is zero, and only the intercept's own rounding is left beside it.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from saddlesvm.problem.certificate import Evaluation, Point
from saddlesvm.problem.crammer_singer import JointProblem
from saddlesvm.problem.joint_losses import leads
from saddlesvm.problem.loss import methods_of
from saddlesvm.problem.problem import Problem, is_classification
from saddlesvm.problem.sums import margins

BEYOND_MARGIN = 1.0 + 1e-9  # a margin of 1, and more than its rounding; guessed


@singledispatch
def find_without_loss(problem: Any, model: Evaluation) -> Any:
    """Return a point whose rows pay no loss, if a multiple of a model is one; else None.

    Another kind than linear problems registers its own way (``find_without_loss.register``).
    """
    if not isinstance(problem, Problem):
        return None
    if not is_classification(problem.loss):
        return find_middle_of_targets(problem)
    w = np.append(model.coef, model.intercept / (problem.scale or 1.0))
    # If a row is on the wrong side, no multiple is without loss.
    least = float((problem.gather(problem.y) * margins(problem, w)).min())
    if not least > 0.0:
        return None
    return Point(BEYOND_MARGIN / least * w)


def find_middle_of_targets(problem: Problem) -> Point | None:
    """Return a free intercept in the middle of the targets if no row pays a loss there."""
    if not problem.intercept.constrained:
        return None
    targets = problem.gather(problem.y)
    middle = 0.5 * targets.min() + 0.5 * targets.max()
    if methods_of(problem.loss).value(problem.loss, middle, targets).any():
        return None
    w = np.zeros(problem.n_features + 1)
    w[-1] = middle / problem.scale
    return Point(w)


@find_without_loss.register(JointProblem)
def find_joint_without_loss(problem: JointProblem, model: Evaluation) -> Point | None:
    """Return the multiple of the weights of all classes whose rows are ahead of their rivals."""
    if type(problem) is not JointProblem or problem.on_files:
        return None
    # The least lead of a row's own class over its best rival takes the place of the margin.
    W = np.column_stack([model.coef, np.asarray(model.intercept) / (problem.scale or 1.0)])
    by_feature = np.ascontiguousarray(W.T)
    least = np.inf
    place = problem.place_of_classes()
    for rows, block in place.blocks():
        # Rows of weight zero take no part.
        takes_part = problem.all_weights[rows] > 0.0
        ahead = leads(place.scores(block, by_feature), problem.codes[rows])[takes_part]
        least = min(least, float(ahead.min(initial=np.inf)))
    if not least > 0.0:
        return None
    return Point(BEYOND_MARGIN / least * W)
