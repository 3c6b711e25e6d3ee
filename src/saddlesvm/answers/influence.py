"""What each row, and each group of rows, does to a model.

Its own margin without it is an estimate between proven bounds. Bounds on the move of the optimum follow, and the
decisions that no single row or group can change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from saddlesvm.answers.changed import together
from saddlesvm.answers.changed_rows import ChangedGroups, ChangedRows, without_each
from saddlesvm.answers.vicinity import Vicinity
from saddlesvm.problem.loss import is_cornerless
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.rounding import SLACK, UNIT, gamma, radii
from saddlesvm.rows.layouts import as_rows, n_values
from saddlesvm.rows.passes import squared_norms
from saddlesvm.rows.scores import scores_of_rows
from saddlesvm.solvers.second_order.leave_one_out import RowEstimates, quadratic_forms, row_estimates

REFINED_VALUES = 2**31  # stored values that the passes for undecided rows may read once; each takes some four passes
VALUES, MOST_VALUES = 2**23, 2**27  # stored values that the passes for rows in turn may read, if all moves are known


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
    w: np.ndarray,
    beta: np.ndarray,
    gap: float,
    near: Vicinity | None,
) -> LeftOut:
    """Estimates and bounds of every row's margin without it.

    `near` is the vicinity of the optimum, if there is one; :func:`~.row_estimates` has the other parameters.
    """
    if near is None:
        return LeftOut(row_estimates(problem, w, beta, gap), None)
    bounds = without_each(near)
    if is_cornerless(problem.loss):
        bent = near.bend * near.leverages
        margins = near.z - near.pulls * near.leverages / np.maximum(1.0 - bent, 1e-12)
        bends = bent > 0.0
        taken = float(np.mean(bent[bends])) if bends.any() else 0.0
        rows = RowEstimates(margins, bounds.low, bounds.high, int(np.count_nonzero(bends)), taken, 0.0)
    else:
        rows = row_estimates(problem, w, beta, gap)
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


class Moves(NamedTuple):
    """Between what the lengths lie by which the weights move, shape (n,) or (groups,), the intercept's included.

    `most` is what they are at most in the norm of H; empty where nobody asks.
    """

    low: np.ndarray
    high: np.ndarray
    most: np.ndarray = np.empty(0)


def row_moves(near: Vicinity) -> Moves:
    """The moves of the weights without each row: the length of the step, and the optimum's distance from there."""
    bounds = without_each(near)
    most = near.widest * bounds.moves
    if near.growth == 0.0 and np.isfinite(near.reach):  # all that is known is a ball with the step as diameter
        return Moves(np.zeros(most.size), most, bounds.moves)
    share = np.maximum(1.0 - near.bend * near.leverages, 1e-12)
    lengths = np.sqrt(quadratic_forms(near.problem.X, np.arange(near.z.size), near.inverse @ near.inverse))
    step, whole = np.abs(near.pulls) / share * lengths, np.abs(near.pulls) * np.sqrt(near.leverages) / share
    off = SLACK * (near.widest * np.maximum(bounds.moves - whole, 0.0) + 4.0 * near.error * step)
    return Moves(np.maximum(step - off, 0.0), np.minimum(step + off, most), bounds.moves)


def rows_in_turn(near: Vicinity, unknown: int) -> int:
    """The number of rows that are left out in turn, with passes over all rows: more where some moves are unknown."""
    values = max(1, n_values(near.problem.X))
    return max(1, VALUES // values, min(unknown, MOST_VALUES // values))


def moved_scores(near: Vicinity, most: np.ndarray, but: np.ndarray, X: np.ndarray) -> np.ndarray:
    """How far leaving out a single row, `but` some, moves the scores of each of some rows at most, shape (m,).

    Parameters
    ----------
    near : Vicinity
    most : ndarray of shape (n,)
        Of :class:`Moves`.
    but : ndarray
        Numbers of rows.
    X : ndarray or CSR matrix of shape (m, d)
    """
    rows = as_rows(X, near.problem.scale)
    lengths = np.sqrt(quadratic_forms(rows, np.arange(X.shape[0]), near.inverse) * (1.0 + near.error))
    largest = float(np.delete(most, but).max(initial=0.0))
    scores = np.asarray(X @ near.w[:-1]).ravel() + near.problem.scale * near.w[-1]
    rounding = gamma(near.w.size + 16.0) * (radii(squared_norms(rows, X.shape[0])) * np.linalg.norm(near.w))
    found = lengths * largest if largest < np.inf else np.full(X.shape[0], np.inf)
    return np.asarray(SLACK * (found + rounding) + 4.0 * UNIT * np.abs(scores))


class GroupChanges(NamedTuple):
    """The effects of leaving out each group.

    Attributes
    ----------
    moves : Moves
    low, high : ndarray of shape (m, groups)
        Bounds of the scores of m rows without each group.
    """

    moves: Moves
    low: np.ndarray
    high: np.ndarray


def group_changes(near: Vicinity, groups: Sequence[np.ndarray], X: np.ndarray) -> GroupChanges:
    """The weights, and the scores of some rows, without each group.

    Parameters
    ----------
    near : Vicinity
    groups : sequence of ndarray
        The numbers of their rows.
    X : ndarray or CSR matrix of shape (m, d)
    """
    rows = as_rows(X, near.problem.scale)
    lengths = np.sqrt(quadratic_forms(rows, np.arange(X.shape[0]), near.inverse) * (1.0 + near.error))[:, None]
    norms, size = radii(squared_norms(rows, X.shape[0]))[:, None], together(near)
    low, high, least, most = [], [], [], []
    for start in range(0, len(groups), size):
        found = ChangedGroups(near, list(groups[start : start + size])).solved()
        scores, errors = scores_of_rows(rows, found.V.T), found.errors(lengths, norms)
        low.append(scores - errors)
        high.append(scores + errors)
        away = np.minimum(found.apart, near.widest * found.radius / np.sqrt(found.share))
        length = np.linalg.norm(found.V - near.w[:, None], axis=0)
        away = SLACK * (away + near.widest * near.missed) + gamma(near.w.size + 8.0) * np.linalg.norm(near.w)
        least.append(np.maximum(length - away, 0.0))
        most.append(length + away)
    moves = Moves(np.concatenate(least), np.concatenate(most))
    return GroupChanges(moves, np.concatenate(low, axis=1), np.concatenate(high, axis=1))
