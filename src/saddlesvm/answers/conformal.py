"""Full conformal prediction without training again: how many rows fit a new model worse than a new row with a label.

A row's nonconformity is the score of its best other class less that of its own, ``-y z`` for two classes, in the model
that is trained on all rows and on the new one with the label in question. The p-value of a label is the share of these
n + 1 rows, the new one included, whose nonconformity is at least the new one's. Labels with a p-value above alpha are
the conformal set: it holds the right one with probability 1 - alpha at least, for rows drawn independently.

Bounds come first. In the norm of H the new row moves the optimum by at most ``way``, and so the margin of row i by at
most ``way sqrt(t_i)``; rows in the order of ``nonconformity + way sqrt(t_i)`` for some ways are counted by a search.
Where that does not decide, the models are computed next to their optima (:mod:`~saddlesvm.answers.changed`).

Intervals of ridge regression have a closed form. With the new row ``(x, z_0 + e)``, ``z_0`` its prediction without it,
``u = H^-1 x`` and ``t = x . u``, residuals become

    of row i:  R_i - g_i e,    R_i = y_i - z_i,  g_i = 2 C (x_i . u) / (1 + 2 C t)
    of the new row:  b e,      b = 1 / (1 + 2 C t)

A target belongs to the conformal set where at least ``alpha (n + 1)`` of the n + 1 residuals are as large as the new
one. Above z_0 row i counts up to ``R_i / (b + g_i)`` where R_i is positive, else up to ``-R_i / (b - g_i)``; likewise
below. The ends of the interval are order statistics of these.

Source: Vovk, Gammerman and Shafer (2005), "Algorithmic learning in a random world"; Ndiaye (2022), "Stable conformal
prediction sets", for bounds on the change of a model; Nouretdinov, Melluish and Vovk (2001), "Ridge regression
confidence machine".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from saddlesvm.answers.changed import together, with_feature
from saddlesvm.answers.changed_rows import ChangedRows
from saddlesvm.answers.vicinity import Vicinity
from saddlesvm.problem.rounding import SLACK, UNIT, gamma
from saddlesvm.rows.scores import scores_of_rows

WAYS = np.geomspace(1e-6, 1.0, 25)  # quotients of tabulated ways and the longest one: a way is rounded up to the next


class Counts(NamedTuple):
    """Between what the numbers of rows lie that fit no better than a new row with each label, shape (m, classes)."""

    low: np.ndarray
    high: np.ndarray


class Conformal:
    """The rows that new ones are compared with.

    Parameters
    ----------
    near : sequence of Vicinity
        Of each class against the rest; of class 1 against class 0 where there are two.
    codes : ndarray of shape (n,)
        The classes of the rows.
    """

    def __init__(self, near: Sequence[Vicinity], codes: np.ndarray) -> None:
        self.near, self.codes = near, codes
        self.classes = max(2, len(near))
        scores = np.stack([one.z for one in near])[:, :, None]
        self.fits = nonconformity(scores, codes)[:, 0]
        lengths = np.stack([np.sqrt(one.leverages) for one in near])
        self.lengths = (1.0 if len(near) == 1 else 2.0) * lengths.max(axis=0)
        self.tables: dict[float, tuple[np.ndarray, np.ndarray]] = {}

    def _table(self, way: float) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds of the rows' nonconformity when the optimum moves by a way, each in order."""
        if way not in self.tables:
            self.tables[way] = np.sort(self.fits - way * self.lengths), np.sort(self.fits + way * self.lengths)
        return self.tables[way]

    def first(self, rows: np.ndarray) -> Counts:
        """The counts that bounds alone prove, for rows of shape (m, d + 1)."""
        m, n = len(rows), self.fits.size
        bounds = {
            sign: [ChangedRows(one, rows, np.full(m, -1), np.full(m, sign)).added_at_first() for one in self.near]
            for sign in (-1.0, 1.0)
        }
        low, high = np.zeros((m, self.classes)), np.full((m, self.classes), float(n))
        for label in range(self.classes):
            chosen = [bounds[sign][k] for k, sign in enumerate(self._signs(label))]
            way = np.max([one[2] for one in chosen], axis=0)
            ends = np.stack([[one[0], one[1]] for one in chosen])
            new_low, new_high = _new_nonconformity(ends[:, 0], ends[:, 1], label)
            scale = float(np.max(way[np.isfinite(way)], initial=0.0))
            place = np.searchsorted(WAYS * scale, way)
            for step in np.unique(place[place < WAYS.size]):
                below, above = self._table(float(WAYS[step] * scale * (1.0 + 1e-12)))
                some = place == step
                low[some, label] = n - np.searchsorted(below, new_high[some], side="left")
                high[some, label] = n - np.searchsorted(above, new_low[some], side="left")
        return Counts(low, high)

    def _signs(self, label: int) -> list[float]:
        """The label of a new row of this class in each sub-problem."""
        if len(self.near) == 1:
            return [1.0 if label == 1 else -1.0]
        return [1.0 if k == label else -1.0 for k in range(self.classes)]

    def block(self) -> int:
        """The number of new rows in one block."""
        return max(1, together(self.near[0]) // (2 * len(self.near)))

    def solved(self, rows: np.ndarray, enough: float) -> Counts:
        """The counts of models next to their optima, of rows of shape (m, d + 1), known to `enough` in plain length."""
        m = len(rows)
        low, high = np.empty((m, self.classes)), np.empty((m, self.classes))
        found = {}
        for sign in (-1.0, 1.0):
            for k, one in enumerate(self.near):
                changed = ChangedRows(one, rows, np.full(m, -1), np.full(m, sign))
                made = changed.solved(enough)
                found[sign, k] = made.Z, made.row_errors(np.arange(self.codes.size)), *changed.margins(made)
        for label in range(self.classes):
            Z, errors, own, own_errors = (
                np.stack(part) for part in zip(*(found[s, k] for k, s in enumerate(self._signs(label))), strict=True)
            )
            fits = nonconformity(Z, self.codes)
            slack = (1.0 if len(self.near) == 1 else 2.0) * errors.max(axis=0)
            new_low, new_high = _new_nonconformity(own - own_errors, own + own_errors, label)
            surely, never = fits - slack >= new_high, fits + slack < new_low
            same = self._same(rows, label, ~(surely | never))
            low[:, label], high[:, label] = (surely | same).sum(axis=0), self.codes.size - never.sum(axis=0)
            high[:, label] = np.maximum(low[:, label], high[:, label])
        return Counts(low, high)

    def _same(self, rows: np.ndarray, label: int, among: np.ndarray) -> np.ndarray:
        """Which undecided rows equal the new one, and have its label: they fit as well, exactly."""
        same = np.zeros_like(among)
        i, k = np.nonzero(among & (self.codes == label)[:, None])
        if i.size:
            mine = with_feature(self.near[0].problem.X.matrix[i], self.near[0].problem.scale)
            same[i, k] = (mine == rows[k]).all(axis=1)
        return same


def nonconformity(scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """The score of the best other class less that of the own one.

    Parameters
    ----------
    scores : ndarray of shape (k, n, m)
        Of k classes, or of class 1 against class 0, in m models.
    codes : ndarray of shape (n,)

    Returns
    -------
    ndarray of shape (n, m)
    """
    if len(scores) == 1:
        return np.asarray(np.where(codes == 1, -1.0, 1.0)[:, None] * scores[0])
    rows = np.arange(codes.size)
    own = scores[codes, rows]
    others = scores.copy()
    others[codes, rows] = -np.inf
    return np.asarray(others.max(axis=0) - own)


def _new_nonconformity(low: np.ndarray, high: np.ndarray, label: int) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the nonconformity of new rows with a label, from bounds of their scores, shape (k, m)."""
    if len(low) == 1:
        return (-high[0], -low[0]) if label == 1 else (low[0], high[0])
    others = np.arange(len(low)) != label
    return low[others].max(axis=0) - high[label], high[others].max(axis=0) - low[label]


def counts_of_bounds(low: np.ndarray, high: np.ndarray, codes: np.ndarray) -> tuple[int, int]:
    """How many rows fit surely, and how many perhaps, no better than the last one, from bounds of all their scores.

    Parameters
    ----------
    low, high : ndarray of shape (k, n + 1)
    codes : ndarray of shape (n + 1,)
    """
    middle, away = 0.5 * (low + high)[:, :, None], 0.5 * (high - low)
    fits = nonconformity(middle, codes)[:, 0]
    rounding = 16.0 * UNIT * np.maximum(np.abs(low), np.abs(high))
    slack = (1.0 if len(low) == 1 else 2.0) * (SLACK * away + rounding).max(axis=0)
    surely = fits[:-1] - slack[:-1] >= fits[-1] + slack[-1]
    perhaps = fits[:-1] + slack[:-1] >= fits[-1] - slack[-1]
    return int(surely.sum()), int(perhaps.sum())


def intervals(near: Vicinity, rows: np.ndarray, alpha: float) -> np.ndarray:
    """The smallest intervals that hold the conformal sets, shape (m, 2), ends rounded outwards.

    Parameters
    ----------
    near : Vicinity
        Of a problem with the squared loss, whose rows weigh 1.
    rows : ndarray of shape (m, d + 1)
    alpha : float
    """
    problem = near.problem
    assert (problem.row_weights == 1.0).all()
    n, size = near.z.size, together(near)
    count = math.floor(alpha * (n + 1))
    found = np.tile([-np.inf, np.inf], (len(rows), 1))
    if count == 0:
        return found
    R = problem.y - near.z
    slip = SLACK * (np.sqrt(near.leverages) * near.missed + near.at.slips + 4.0 * UNIT * np.abs(problem.y))
    for start in range(0, len(rows), size):
        some = rows[start : start + size]
        U = near.inverse @ some.T
        t = np.einsum("ij,ji->i", some, U)
        b = 1.0 / (1.0 + 2.0 * problem.C * t)
        g = 2.0 * problem.C * b * scores_of_rows(problem.X, U.T)
        away = 2.0 * problem.C * np.sqrt(near.leverages)[:, None] * np.sqrt(t) * b
        slack = SLACK * ((4.0 * near.error + gamma(8.0 * near.w.size)) * (b + away + np.abs(g)))
        size_of = np.abs(R)[:, None] + slip[:, None]
        positive, unsure = (slip < R)[:, None], (np.abs(R) <= slip)[:, None]
        above = np.where(positive, b + g, b - g)
        below = np.where(positive, b - g, b + g)
        narrow = b - np.abs(g)
        z = some @ near.w
        rounding = np.sqrt(t) * near.missed + gamma(near.w.size + 16.0) * (
            np.linalg.norm(some, axis=1) * np.linalg.norm(near.w) + np.abs(z)
        )
        for side, way, sign in ((1, above, 1.0), (0, below, -1.0)):
            way = np.where(unsure, narrow, way) - slack
            ends = np.where(narrow - slack > 0.0, size_of / np.maximum(way, 1e-300), np.inf)
            reach = np.partition(ends, n - count, axis=0)[n - count]
            found[start : start + size, side] = z + sign * (1.0 + 64.0 * UNIT) * (reach + rounding)
    return found
