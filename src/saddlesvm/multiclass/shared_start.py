"""Many one-vs-rest problems begin together: a block of them descends over shared rows before each is certified alone.

A fit of one class against the rest spends most of its time on loading rows and on its first passes, and all classes
load the same rows. :mod:`saddlesvm.multiclass.class_descent` does these passes for a block of classes at once; the fit
of each class then starts from the point that its block reached, and proves its own certificate. Where a class alone
would begin with Newton's method on samples of the rows, the block ends after as much work as that takes, and the
classes that are far from done then begin with it.
"""

from __future__ import annotations

import dataclasses
import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from saddlesvm.fit.result import FitResult
from saddlesvm.multiclass.class_descent import ClassDescent, ClassRun, stops
from saddlesvm.multiclass.class_newton import ClassNewton
from saddlesvm.multiclass.sub_problems import SubProblem
from saddlesvm.problem.array_losses import has_array_methods
from saddlesvm.problem.certificate import Point
from saddlesvm.problem.loss import is_cornerless
from saddlesvm.problem.problem import Problem
from saddlesvm.rows import layouts as rows
from saddlesvm.rows.layouts import Dense, Rows
from saddlesvm.runtime.clock import clock

FEWEST = 4  # problems per thread below which a block does not pay
LEAST_VALUES = 100_000_000  # stored values times problems below which separate fits take a moment only
LARGEST_BLOCK = 32  # problems
WEIGHTS = 16_384  # weights of a block's problems, over dense rows, that stay in the nearest cache
OF_NEWTON = 16  # bytes per row and problem of a block that matrix products solve
MOST_OF_NEWTON = 128  # problems of such a block: products are no faster with more
TIME_SHARE = 0.5  # share of its problems' time that a block may take


class SharedStart:
    """Starting points, computed a block at a time when the first problem of the block asks.

    Parameters
    ----------
    problems : sequence of callables
        The sub-problems, all over the same rows.
    together : int
        Problems per block.
    tol : float
        The relative gap that the fits will prove.
    seed : int
    most : float
        Epochs after which a block ends: about what each of its problems takes alone, begun anew. A problem whose gap
        has not fallen by half of the powers of ten by then does begin anew.
    weights : ndarray of shape (n,), optional
        Those of the rows, before the factors of the classes.
    newton : bool, default=False
        Whether the blocks take Newton's steps, see :func:`by_newton`.
    """

    def __init__(
        self,
        problems: Sequence[SubProblem],
        together: int,
        tol: float,
        seed: int,
        most: float = np.inf,
        weights: np.ndarray | None = None,
        newton: bool = False,
    ) -> None:
        self.problems, self.together, self.tol, self.seed, self.most = problems, together, tol, seed, most
        self.newton = newton
        self.weights = np.empty(0) if weights is None else weights
        self.ready: dict[int, Point | None] = {}
        self.spent: dict[int, tuple[float, float]] = {}

    def point(self, index: int, problem: Problem, stop: threading.Event, seconds: float | None) -> Point | None:
        """The starting point of sub-problem `index`, None to begin anew; `seconds` is the problem's own time limit."""
        if index not in self.ready:
            self._work_out(index, problem, stop, seconds)
        return self.ready.pop(index)

    def _work_out(self, first: int, problem: Problem, stop: threading.Event, seconds: float | None) -> None:
        """Let the block that begins with sub-problem `first` descend."""
        began = clock()
        places = range(first, min(first + self.together, len(self.problems)))
        labels, factors = np.empty((problem.y.size, len(places)), dtype=np.int8), np.ones(len(places))
        for column, k in enumerate(places):
            sub = self.problems[k]
            labels[:, column], factors[column] = sub.y, sub.factor
        shared = dataclasses.replace(problem, weights=self.weights)
        kind: type[ClassRun] = ClassNewton if self.newton else ClassDescent
        block = kind(shared, labels, np.zeros(labels.shape), factors)
        most = None if seconds is None else TIME_SHARE * seconds * len(places)
        limit = np.inf if kind is ClassNewton else self.most
        epochs, estimates = block.run(self.tol, self.seed + first, stops(stop, most), limit)
        for column, k in enumerate(places):
            anew = epochs >= limit and estimates[column] > math.sqrt(self.tol)
            self.ready[k] = None if anew else block.point(column)
            self.spent[k] = (epochs, (clock() - began) / len(places))

    def credited(self, index: int, result: FitResult) -> FitResult:
        """The result with the epochs and the share of the time that its block took."""
        epochs, seconds = self.spent.pop(index)
        return dataclasses.replace(
            result, epochs=result.epochs + epochs, seconds_solving=result.seconds_solving + seconds
        )


def by_newton(problem: Problem) -> bool:
    """Whether matrix products solve a block of such problems: dense rows, a smooth loss, half a square."""
    plain = isinstance(problem.X, Dense) and problem.penalty.identity() and not problem.intercept.constrained
    return plain and is_cornerless(problem.loss) and has_array_methods(problem.loss)


def block_size(X: Rows, problems: int, jobs: int, newton: bool = False) -> int:
    """The number of problems in one block; 1 where sharing does not pay.

    Those that Newton's method solves are as many as keep their variables below the size of the rows.
    """
    if problems < FEWEST * jobs or rows.n_values(X) * problems < LEAST_VALUES:
        return 1
    cached: Any = WEIGHTS // (rows.n_features(X) + 1) if isinstance(X, Dense) else LARGEST_BLOCK
    most = min(max(FEWEST, cached), LARGEST_BLOCK)
    if newton and isinstance(X, Dense):
        most = int(np.clip(X.values.shape[1] * X.values.itemsize // OF_NEWTON, FEWEST, MOST_OF_NEWTON))
    bundles = -(-problems // most)
    return -(-problems // (-(-bundles // jobs) * jobs))
