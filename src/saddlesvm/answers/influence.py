"""How far each row, and each group of rows, moves the optimum, and which decisions no single one of them can change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from saddlesvm.answers.changed import together
from saddlesvm.answers.changed_groups import ChangedGroups
from saddlesvm.answers.changed_rows import without_each
from saddlesvm.answers.vicinity import Vicinity
from saddlesvm.problem.rounding import SLACK, UNIT, gamma, radii
from saddlesvm.rows.layouts import as_rows, n_values
from saddlesvm.rows.passes import squared_norms
from saddlesvm.rows.scores import scores_of_rows
from saddlesvm.solvers.second_order.leave_one_out import quadratic_forms

VALUES, MOST_VALUES = 2**23, 2**27  # stored values that the passes for rows in turn may read, if all moves are known


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
