"""A ball around the weights of a joint machine that contains the exact optimum.

All classes' weights W together, shape (K, d + 1), are in one ball, whose radius follows from the
gap. Scores of two classes ``x . (w_k - w_l)`` then change by at most ``sqrt(2) ||x||`` times the
radius.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from saddlesvm.answers.labels import Labels, label_by_differences
from saddlesvm.answers.neighbourhood import Neighbourhood
from saddlesvm.problem.bounds import MARGIN_UNITS, SLACK, gamma, norm_of, radii
from saddlesvm.problem.crammer_singer import JointProblem
from saddlesvm.problem.penalties import modulus
from saddlesvm.rows.layouts import as_rows
from saddlesvm.rows.passes import squared_norms
from saddlesvm.rows.scores import scores_of_rows

if TYPE_CHECKING:
    from saddlesvm.runtime.data_types import Matrix

BOTH = math.sqrt(2.0) * (1.0 + 1e-15)  # factor for the difference of two classes' weights


@dataclass(frozen=True, eq=False)
class JointNeighbourhood:
    """All weights at most `radius` from W, shape (K, d + 1); infinite if nothing is proven."""

    W: np.ndarray
    radius: float
    scale: float

    def parts(self) -> list[Neighbourhood]:
        """Return a ball for each class; of two classes, one ball for their difference."""
        if len(self.W) > 2:
            return [Neighbourhood(w, self.radius, self.scale) for w in self.W]
        # A difference of two weight vectors is sqrt(2) times as far away.
        center = self.W[1] - self.W[0]
        radius = BOTH * self.radius + 4.0 * gamma(1.0) * norm_of(center)
        return [Neighbourhood(center, radius, self.scale)]

    def labels(self, X: Matrix) -> Labels:
        """Return the class of each row of X, shape (m, d), and whether it is proven."""
        rows = as_rows(X, self.scale)
        norms = radii(squared_norms(rows))
        z = scores_of_rows(rows, self.W)
        if not math.isfinite(self.radius):
            return label_by_differences(z, np.inf * norms)
        # The difference of two classes' weights moves by at most sqrt(2) times the radius.
        slips = gamma(rows.longest_row + 1.0 + MARGIN_UNITS) * max(map(norm_of, self.W)) * norms
        return label_by_differences(z, SLACK * (self.radius * BOTH * norms + 2.0 * slips))


def joint_neighbourhood(problem: JointProblem, W: np.ndarray, gap: float) -> JointNeighbourhood:
    """Return the ball of a joint problem at W, by its gap in the C form.

    Nothing is proven of a free intercept, which the gap does not bound.
    """
    square = modulus(problem.penalty)
    radius = math.inf
    if square > 0.0 and gap >= 0.0 and not problem.intercept.constrained:
        # Strong convexity: m ||W* - W||^2 / 2 <= gap.
        radius = SLACK * math.sqrt(2.0 * gap / square)
    return JointNeighbourhood(W, radius, problem.scale)
