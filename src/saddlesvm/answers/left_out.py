"""The margin of each row for a model without it, or without its group: an estimate between proven bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from saddlesvm.answers.changed import together
from saddlesvm.answers.changed_groups import ChangedGroups
from saddlesvm.answers.changed_rows import ChangedRows, without_each
from saddlesvm.answers.vicinity import Vicinity
from saddlesvm.problem.loss import is_cornerless
from saddlesvm.problem.problem import Problem
from saddlesvm.rows.layouts import n_values
from saddlesvm.solvers.second_order.leave_one_out import RowEstimates, row_estimates

REFINED_VALUES = 2**29  # stored values that the passes for undecided rows may read once; each takes some four passes


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Bounds for the rows of one problem, each left out.

    Attributes
    ----------
    rows : RowEstimates
    near : Vicinity or None
        None where the loss has no curvature, or the features are too many for its factor.
    """

    rows: RowEstimates
    near: Vicinity | None

    def refined(self, chosen: np.ndarray) -> LeftOut:
        """The same with the margins of some rows computed, as far as there is room; they are then known to rounding."""
        if self.near is None or not chosen.size:
            return self
        margins, low, high = (getattr(self.rows, name).copy() for name in ("margins", "low", "high"))
        most = max(1, REFINED_VALUES // max(1, n_values(self.near.problem.X)))
        size = together(self.near)
        for start in range(0, min(most, chosen.size), size):
            some = chosen[:most][start : start + size]
            changed = ChangedRows.without(self.near, some)
            own, error = changed.margins(changed.solved())
            low[some], high[some] = np.maximum(low[some], own - error), np.minimum(high[some], own + error)
            margins[some] = np.clip(own, low[some], high[some])
        return replace(self, rows=replace(self.rows, margins=margins, low=low, high=high))


def rows_left_out(
    problem: Problem,
    X: np.ndarray | sparse.csr_array,
    w: np.ndarray,
    beta: np.ndarray,
    gap: float,
    near: Vicinity | None,
) -> LeftOut:
    """Estimates and bounds of every row's margin without it.

    `near` is the vicinity of the optimum, if there is one; :func:`~.row_estimates` has the other parameters.
    """
    if near is None:
        return LeftOut(row_estimates(problem, X, w, beta, gap), None)
    bounds = without_each(near)
    if is_cornerless(problem.loss):
        bent = near.bend * near.leverages
        margins = near.z - near.pulls * near.leverages / np.maximum(1.0 - bent, 1e-12)
        bends = bent > 0.0
        taken = float(np.mean(bent[bends])) if bends.any() else 0.0
        rows = RowEstimates(margins, bounds.low, bounds.high, int(np.count_nonzero(bends)), taken, 0.0)
    else:
        rows = row_estimates(problem, X, w, beta, gap)
    low, high = np.maximum(rows.low, bounds.low), np.minimum(rows.high, bounds.high)
    return LeftOut(replace(rows, margins=np.clip(rows.margins, low, high), low=low, high=high), near)


def groups_left_out(near: Vicinity, groups: list[np.ndarray]) -> RowEstimates:
    """The margins of the rows of each group for the model without the group.

    Parameters
    ----------
    near : Vicinity
    groups : list of ndarray
        The numbers of the rows of each group; each row in one of them.
    """
    margins, error, share = np.empty(near.z.size), np.empty(near.z.size), 1.0
    size = together(near)
    for start in range(0, len(groups), size):
        some = groups[start : start + size]
        found = ChangedGroups(near, some).solved()
        share = min(share, float(found.share.min()))
        for k, rows in enumerate(some):
            margins[rows], error[rows] = found.Z[rows, k], found.row_errors(rows)[:, k]
    inside = int(np.count_nonzero(near.bend))
    return RowEstimates(margins, margins - error, margins + error, inside, 1.0 - share, 0.0)
