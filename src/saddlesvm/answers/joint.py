"""Where the optimum of a joint machine lies, by its gap: all classes' weights together are in one plain ball.

For scores of two classes ``x . (w_k - w_l)`` changes by at most ``sqrt(2) ||x||`` times the radius.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from saddlesvm.answers.curvature import Curvature
from saddlesvm.answers.labels import Labels, largest_by_differences
from saddlesvm.answers.neighbourhood import Neighbourhood
from saddlesvm.problem.crammer_singer import JointProblem
from saddlesvm.problem.penalties import modulus
from saddlesvm.problem.proven_sums import norm_of
from saddlesvm.problem.rounding import MARGIN_UNITS, SLACK, gamma, radii
from saddlesvm.rows.layouts import as_rows, longest_row, n_rows
from saddlesvm.rows.passes import squared_norms
from saddlesvm.rows.scores import scores_of_rows

BOTH = math.sqrt(2.0) * (1.0 + 1e-15)  # of two classes' weights, that move apart


@dataclass(frozen=True, eq=False)
class JointNeighbourhood:
    """All weights at most `radius` from W, shape (K, d + 1), in the plain norm of all of them together."""

    W: np.ndarray
    radius: float
    scale: float

    def parts(self) -> list[Neighbourhood]:
        """One a class; of two classes that of the difference, the second against the first."""
        plain = Curvature(None, 1.0)
        if len(self.W) == 2:
            apart = self.W[1] - self.W[0]
            moved = 4.0 * gamma(1.0) * norm_of(apart)
            return [Neighbourhood(apart, BOTH * self.radius + moved, plain, self.scale)]
        return [Neighbourhood(w, self.radius, plain, self.scale) for w in self.W]

    def labels(self, X: Any) -> Labels:
        """The class of each row, and whether it is proven; `X` is an ndarray or a CSR matrix of shape (m, d)."""
        rows = as_rows(X, self.scale)
        norms = radii(squared_norms(rows, n_rows(rows)))
        slips = gamma(longest_row(rows) + 1.0 + MARGIN_UNITS) * max(map(norm_of, self.W)) * norms
        away = SLACK * (BOTH * self.radius * norms + 2.0 * slips) if math.isfinite(self.radius) else np.inf * norms
        return largest_by_differences(scores_of_rows(rows, self.W), away)


def joint_neighbourhood(problem: JointProblem, W: np.ndarray, gap: float) -> JointNeighbourhood:
    """The ball of a joint problem's gap in the C form at W, shape (K, d + 1); a free intercept has none."""
    square = modulus(problem.penalty)
    known = square > 0.0 and gap >= 0.0 and not problem.intercept.constrained
    return JointNeighbourhood(W, SLACK * math.sqrt(2.0 * gap / square) if known else math.inf, problem.scale)
