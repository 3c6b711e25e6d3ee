"""Scores of folds on a cluster: each partition counts the rows that the model which left them out gets right."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saddlesvm.cluster.dask_engine import DaskEngine
from saddlesvm.cluster.part import Part
from saddlesvm.cluster.splits import best_class
from saddlesvm.multiclass.one_vs_one import vote
from saddlesvm.rows.passes import InMemory


class Counts(NamedTuple):
    """Rows of each fold, and how many of them are told right; each of shape (folds,)."""

    right: np.ndarray
    rows: np.ndarray

    @property
    def nbytes(self) -> int:
        """Bytes that travel."""
        return self.right.nbytes + self.rows.nbytes


def count_right(part: Part, W: np.ndarray) -> Counts:
    """The counts of a partition; W are the weights of all problems, see :class:`~saddlesvm.cluster.splits.Split`."""
    right, total = np.zeros((2, part.folds), dtype=np.int64)
    each = part.split.kinds * part.split.vectors
    for fold in range(part.folds):
        members = np.flatnonzero(part.fold == fold)
        if members.size:
            passes = InMemory(part.X, members.astype(np.int32), 1.0)
            scores = np.stack([passes.margins(w) for w in W[fold * each : (fold + 1) * each]], axis=1)
            told = vote(scores, part.classes) if part.split.pairs else scores
            guessed = best_class(told[:, 0] if each == 1 else told)
            right[fold], total[fold] = np.count_nonzero(guessed == part.y[members]), members.size
    return Counts(right, total)


def counted_together(answers: list[Counts]) -> Counts:
    """The counts of several partitions."""
    return Counts(sum(one.right for one in answers), sum(one.rows for one in answers))  # type: ignore[arg-type]


def counts_of(partitions: Any, W: np.ndarray) -> Counts:
    """The counts of all partitions."""
    engine = DaskEngine(partitions.client, partitions.parts, partitions.split.problems)
    return engine.total(count_right, counted_together, W)
