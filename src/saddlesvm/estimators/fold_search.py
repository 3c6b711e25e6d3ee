"""The fits and scores of a cross-validation over a grid of C.

All rows are fitted along the grid first, each fit begun at its neighbour. The fit of a fold begins at that of all rows
with the same C: a part of the rows differs from all by less than one C from the next. Smooth losses with few features
take one Newton step for all folds together from there, which mostly certifies them. With many features, and where that
step was not enough with the C before, they begin where the differences at the C before lead; at the smallest C, folds
of many features begin with nothing. Folds are lists of row numbers, and all fits read the same rows in place.
With several threads the folds of a C are fitted while all rows go on to the next one. Every fit's start is fixed by the
grid, so the results do not depend on the threads.

Of rows that are read block by block, all rows and all folds share the readings: with each C, the fit of all rows and
those of the folds ride on the same sweeps, each begun at its own weights with the C before. One more reading then
scores the rows that the folds held out.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom

from saddlesvm.estimators.part_fits import CarriedOver, PartFits, rows_of_fold
from saddlesvm.fit.outcome import Outcome
from saddlesvm.rows.layouts import as_rows
from saddlesvm.rows.memory_plan import CHUNK_BYTES
from saddlesvm.rows.scores import linear_scores
from saddlesvm.runtime.bar import Bar
from saddlesvm.runtime.threads import Schedule, results_of
from saddlesvm.solvers.second_order.held_out import LeftOut

Scorer = Callable[[Any, Any, Any], float]


@dataclass
class Table:
    """The results of the folds, each of shape (values of C, folds); NaN where nothing was fitted.

    Attributes
    ----------
    scores, gaps : ndarray
    done : ndarray of bool
        Fitted and scored.
    given_up : ndarray of shape (values of C,), bool
    """

    scores: np.ndarray
    gaps: np.ndarray
    done: np.ndarray
    given_up: np.ndarray

    @classmethod
    def empty(cls, Cs: int, folds: int) -> Table:
        """Nothing found yet."""
        nothing = np.full((Cs, folds), np.nan)
        return cls(nothing, nothing.copy(), np.zeros((Cs, folds), dtype=bool), np.zeros(Cs, dtype=bool))


class Fold:
    """One fold: its fits, and the rows that judge them."""

    def __init__(self, fits: PartFits, test: np.ndarray) -> None:
        self.fits, self.test = fits, test
        self.X, self.y = fits.X[test], fits.y[test]
        self.carried = CarriedOver()
        self.one_step = True  # whether a Newton step from all rows was enough with the C before

    @classmethod
    def made(cls, whole: PartFits, train: Any, test: Any) -> Fold:
        """The fold of these row numbers (or masks); a row that is drawn twice has twice the weight."""
        return cls(whole.part(*rows_of_fold(whole, train)), np.arange(whole.y.size)[test])

    def right(self, model: Any) -> np.ndarray:
        """The held-out rows that a model labels correctly."""
        return np.asarray(model.decide(linear_scores(self.X, model.coef_, model.intercept_)) == self.y)


class FoldSearch:
    """Fit and score every value of C in every fold.

    Parameters
    ----------
    whole : PartFits
        Over all rows.
    folds : list of Fold
    Cs : ndarray of shape (k,)
        Ascending.
    scorer : callable or None
        As in scikit-learn; None for the share of right labels.
    drop : float or None
        The level at which values of C are given up.
    stop : threading.Event
        Set to end all fits.
    bar : Bar, optional
        Advanced after every fit.
    """

    def __init__(
        self,
        whole: PartFits,
        folds: list[Fold],
        Cs: np.ndarray,
        scorer: Scorer | None,
        drop: float | None,
        stop: threading.Event,
        bar: Bar | None = None,
    ) -> None:
        self.whole, self.folds, self.Cs, self.scorer, self.drop, self.stop = whole, folds, Cs, scorer, drop, stop
        self.bar = bar
        self.models: list[Any] = []
        self.carried = CarriedOver()
        self.near: list[list[list[LeftOut] | None]] = []
        self.table = Table.empty(Cs.size, len(folds))
        self.right: list[list[np.ndarray | None]] = [[None] * len(folds) for _ in Cs]

    def run(self, jobs: int) -> Table:
        """Do all the work in `jobs` threads."""
        with Schedule(jobs, self.stop) as schedule:
            if self.drop is None:
                self._side_by_side(schedule)
            else:
                self._fold_by_fold(schedule)
        return self.table

    def _side_by_side(self, schedule: Schedule) -> None:
        """All folds of a C while all rows go on to the next."""
        judged: list[list[Any]] = [[None] * len(self.folds)]
        ahead = schedule.add(self._fit_all, 0)
        for k in range(self.Cs.size):
            results_of([ahead])
            if k + 1 < self.Cs.size:
                ahead = schedule.add(self._fit_all, k + 1)
            judged.append([schedule.add(self._judge, k, number, before) for number, before in enumerate(judged[-1])])
        results_of([one for of_a_C in judged[1:] for one in of_a_C])

    def _fold_by_fold(self, schedule: Schedule) -> None:
        """All values of C in one fold after the other, without those that cannot win any more."""
        for k in range(self.Cs.size):
            self._fit_all(k)
        for number in range(len(self.folds)):
            in_turn = any(self._goes_on(k, number) for k in range(len(self.models)))
            judged: list[Future[None]] = []
            for k in np.flatnonzero(~self.table.given_up).tolist():
                before = judged[-1] if in_turn and judged else None
                judged.append(schedule.add(self._judge, k, number, before))
            results_of(judged)
            self._give_up(number + 1)

    def _give_up(self, folds: int) -> None:
        """Drop values of C that are significantly worse than the best.

        The sign test of McNemar: of the rows that just one of the two gets right, each has it right equally often if
        they are equally good. The level is divided by the number of values (Bonferroni).
        """
        assert self.drop is not None
        left = [k for k in np.flatnonzero(~self.table.given_up) if all(self.table.done[k, :folds])]
        if self.stop.is_set() or len(left) < 2:
            return
        right = {k: np.concatenate([part for part in self.right[k][:folds] if part is not None]) for k in left}
        best = max(left, key=lambda k: int(right[k].sum()))
        for k in left:
            lost, won = (right[best] & ~right[k]).sum(), (right[k] & ~right[best]).sum()
            self.table.given_up[k] = binom.sf(lost - 1, lost + won, 0.5) <= self.drop / self.Cs.size

    def _fit_all(self, k: int) -> None:
        """Fit all rows at the k-th C, from where the C before ended."""
        if self.stop.is_set():
            return
        C, before = float(self.Cs[k]), self.models[-1] if self.models else None
        begun = expected = None
        if before is not None:
            begun = self.whole.ahead(before, C)
            expected = self.carried.beyond(before, C) if begun is None and self.whole.goes_by_weights else None
        model = self.whole.fit(C, before, begun, expected)
        if before is not None:
            self.carried.learn(model, before)
        if model.outcome_ is Outcome.INTERRUPTED:
            self.stop.set()
            return
        self.near.append(self.whole.without_each(model, [fold.fits for fold in self.folds]))
        self.models.append(model)
        self._report(f"C = {self.Cs[k]:.3g}, all rows")

    def _judge(self, k: int, number: int, before: Future[None] | None) -> None:
        """Fit a fold at the k-th C, from where all rows ended, and score it, when it is done with the C before."""
        if before is not None:
            wait([before])
        if self.stop.is_set() or k >= len(self.models):
            return
        fold = self.folds[number]
        model = self._fitted(k, number)
        if model.outcome_ is Outcome.INTERRUPTED:
            self.stop.set()
            return
        if self.scorer is None:
            self.right[k][number] = right = fold.right(model)
            score = float(right.mean())
        else:
            score = float(self.scorer(fold.fits.with_probabilities(model), fold.X, fold.y))
        self.table.scores[k, number], self.table.gaps[k, number] = score, model.certificate_.relative_gap
        self.table.done[k, number] = True
        self._report(f"C = {self.Cs[k]:.3g}, fold {number + 1} of {len(self.folds)}")

    def _goes_on(self, k: int, number: int) -> bool:
        """Whether the fold's fit at the k-th C may begin where its fit at the C before leads."""
        beside = self.near[k][number] is None or self.drop is None
        return beside and self.folds[number].fits.goes_by_weights

    def _fitted(self, k: int, number: int) -> Any:
        """The fold's model at the k-th C."""
        fold, C, whole, near = self.folds[number], float(self.Cs[k]), self.models[k], self.near[k][number]
        if not self._goes_on(k, number):
            return fold.fits.fit(C, whole, near)
        expected = fold.carried.beyond(whole, C)  # None at first: the weights of all rows have seen those held out
        if near is not None and fold.one_step:
            expected = None
        model = fold.fits.fit(C, None if expected is None else whole, near, expected)
        fold.carried.learn(model, whole)
        fold.one_step = near is not None and np.array_equal(model.coef_, [one.w[:-1] for one in near])
        return model

    def _report(self, words: str) -> None:
        if self.bar is not None:
            self.bar.show(words)
            self.bar.advance()


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
        size = max(1, int(n * CHUNK_BYTES / max(as_rows(self.whole.X).nbytes, 1)))
        for first in range(0, n, size):
            yield first, min(first + size, n)
