"""A cross-validation over a grid of C whose rows are read block by block: all rows and all folds share the readings.

With each C, the fit of all rows and those of the folds ride on the same sweeps, each begun at its own weights with the
C before. Folds are lists of row numbers. One more reading then scores the rows that the folds held out.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from saddlesvm.estimators.fold_search import Table
from saddlesvm.estimators.part_fits import PartFits, rows_of_fold
from saddlesvm.fit.outcome import Outcome
from saddlesvm.rows.layouts import as_rows
from saddlesvm.rows.memory_plan import CHUNK_BYTES, matrix_bytes
from saddlesvm.rows.scores import linear_scores
from saddlesvm.runtime.bar import Bar


class FoldSearchOnFiles:
    """Fit and score every value of C in every fold.

    Parameters
    ----------
    whole : PartFits
        Over all rows.
    splits : list of tuple
        Row numbers, or masks, of the training rows and of the held-out rows of each fold.
    Cs : ndarray of shape (k,)
        Ascending.
    stop : threading.Event
        Set to end all fits.
    bar : Bar, optional
        Advanced after every C by the fits that it had.
    """

    def __init__(
        self, whole: PartFits, splits: list[Any], Cs: np.ndarray, stop: threading.Event, bar: Bar | None = None
    ) -> None:
        n = whole.y.size
        self.folds = [whole.part(*rows_of_fold(whole, train)) for train, _ in splits]
        self.tests = [np.sort(np.arange(n)[test]) for _, test in splits]
        self.whole, self.Cs, self.stop, self.bar = whole, Cs, stop, bar
        self.models: list[Any] = []
        self.table = Table.empty(Cs.size, len(splits))

    def run(self) -> Table:
        """Do all the work."""
        parts, running = [self.whole, *self.folds], [copy.copy(one.model) for one in (self.whole, *self.folds)]
        for k, C in enumerate(self.Cs):
            running = [copy.copy(model) for model in running]
            for model in running:
                model.C = float(C)
            running[0].fit_together(self.whole.X, running, [part.posed for part in parts])
            if self.stop.is_set() or any(model.outcome_ is Outcome.INTERRUPTED for model in running):
                self.stop.set()
                break
            self.models.append(running[0])
            self.table.scores[k] = self._scores(running[1:])
            self.table.gaps[k] = [model.certificate_.relative_gap for model in running[1:]]
            self.table.done[k] = True
            if self.bar is not None:
                self.bar.show(f"C = {C:.3g}")
                for _ in running:
                    self.bar.advance()
        return self.table

    def _scores(self, models: list[Any]) -> list[float]:
        """The share of right labels of each fold's model among the rows held out, all by one reading."""
        right, y = np.zeros(len(models)), self.whole.y
        for first, last in self._ranges():
            X = self.whole.X[first:last]
            for k, (model, test) in enumerate(zip(models, self.tests, strict=True)):
                held = test[slice(*np.searchsorted(test, [first, last]))]
                if held.size:
                    found = model.decide(linear_scores(X[held - first], model.coef_, model.intercept_))
                    right[k] += np.count_nonzero(found == y[held])
        return [float(some / max(test.size, 1)) for some, test in zip(right, self.tests, strict=True)]

    def _ranges(self) -> Iterator[tuple[int, int]]:
        """The first row and the one after the last of each stretch of some megabytes."""
        n = self.whole.y.size
        size = max(1, int(n * CHUNK_BYTES / max(matrix_bytes(as_rows(self.whole.X)), 1)))
        for first in range(0, n, size):
            yield first, min(first + size, n)
