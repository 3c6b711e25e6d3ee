"""Which problems a fit on a cluster solves side by side over the same partitions: classes, pairs of classes, and folds.

All of them share every round. A problem has a number; the split says which class, or pair, and which fold it means. A
fold's problems leave its rows out. Which fold a row is in is drawn once, where the row is.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np


class Split(NamedTuple):
    """How many problems there are, and what their numbers mean.

    Attributes
    ----------
    classes : int
        0 for targets.
    pairs : bool
        Each class against each other one, over the rows of the two; otherwise each against the rest.
    folds : int
        0 for none. Problems come fold by fold, and last those of all rows.
    """

    classes: int
    pairs: bool = False
    folds: int = 0

    @property
    def kinds(self) -> int:
        """Problems over the same rows: one for each class, or for each pair."""
        if self.classes < 3:
            return 1
        return self.classes * (self.classes - 1) // 2 if self.pairs else self.classes

    @property
    def problems(self) -> int:
        """All of them."""
        return self.kinds * (self.folds + 1)

    def meant(self, index: int) -> tuple[int, int]:
        """The fold that a problem leaves out, and its kind; the number of folds where it leaves out none."""
        return divmod(index, self.kinds)

    def has_subsets(self, index: int) -> bool:
        """Whether some rows take no part in a problem."""
        return (self.pairs and self.classes > 2) or index < self.kinds * self.folds

    def labels(self, kind: int, y: np.ndarray) -> np.ndarray:
        """Labels of a kind of problem, shape (n,): -1 and +1, and 0 for rows that take no part; or the targets."""
        if not self.classes:
            return y
        if self.classes == 2 or not self.pairs:
            return 2.0 * (y == (1 if self.classes == 2 else kind)) - 1.0
        first, second = list(combinations(range(self.classes), 2))[kind]
        return (y == second) * 1.0 - (y == first)


def folds_of(n: int, folds: int, seed: int, place: int) -> np.ndarray:
    """The fold of each row of a partition, drawn at random; empty without folds."""
    if not folds:
        return np.empty(0, dtype=np.int16)
    dealt = np.random.default_rng([seed, place]).permutation(n) + place
    return (dealt % folds).astype(np.int16)


def best_class(scores: np.ndarray) -> np.ndarray:
    """The number of the class that scores speak for, shape (n,): scores of the second of two, or of each class."""
    return (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
