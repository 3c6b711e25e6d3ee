"""The problems that a fit on a cluster solves together over the same partitions: classes, pairs of classes, and folds.

All of them share every round. A joint machine solves all classes in one problem. A problem has a number; the split says
which class, or pair, and which fold it means. A fold's problems leave its rows out. Which fold a row is in is drawn
once, where the row is.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np

from saddlesvm.multiclass.splits import JOINT


class Split(NamedTuple):
    """The number of problems, and the meaning of their indices.

    Attributes
    ----------
    classes : int
        0 for targets.
    multi_class : {"ovr", "ovo", "crammer_singer", "multinomial", "top_k"}
        Each class against the rest; each against each other one, over the rows of the two; or all in one problem.
    folds : int
        0 for none. Problems come fold by fold, and last those of all rows.
    """

    classes: int
    multi_class: str = "ovr"
    folds: int = 0

    @property
    def pairs(self) -> bool:
        """Whether each pair of three or more classes is a sub-problem."""
        return self.multi_class == "ovo" and self.classes > 2

    @property
    def joint(self) -> bool:
        """Whether one problem holds all classes."""
        return self.multi_class in JOINT

    @property
    def kinds(self) -> int:
        """Problems over the same rows: one for each class, or for each pair, or one for all."""
        if self.classes < 3 or self.joint:
            return 1
        return self.classes * (self.classes - 1) // 2 if self.pairs else self.classes

    @property
    def vectors(self) -> int:
        """Weight vectors that a problem has: one, or one for each class, of three or more, that it holds."""
        return self.classes if self.joint and self.classes > 2 else 1

    @property
    def problems(self) -> int:
        """All of them."""
        return self.kinds * (self.folds + 1)

    def meant(self, index: int) -> tuple[int, int]:
        """The fold that a problem leaves out, and its kind; the number of folds where it leaves out none."""
        return divmod(index, self.kinds)

    def has_subsets(self, index: int) -> bool:
        """Whether some rows take no part in a problem."""
        return self.pairs or index < self.kinds * self.folds

    def labels(self, kind: int, y: np.ndarray) -> np.ndarray:
        """Labels of a kind of problem, shape (n,): -1 and +1, and 0 for rows that take no part; or the targets, or the
        numbers of the classes that one problem holds."""
        if not self.classes or self.joint:
            return y
        if self.classes == 2 or not self.pairs:
            return 2.0 * (y == (1 if self.classes == 2 else kind)) - 1.0
        first, second = list(combinations(range(self.classes), 2))[kind]
        return (y == second) * 1.0 - (y == first)

    def members(self, index: int, y: np.ndarray, fold: np.ndarray) -> np.ndarray | None:
        """The rows that take part in a problem, of those with these labels and folds; None for all."""
        if not self.has_subsets(index):
            return None
        left_out, kind = self.meant(index)
        takes_part = self.labels(kind, y) != 0.0 if self.pairs else np.ones(y.size, dtype=bool)
        return np.flatnonzero(takes_part & (fold != left_out) if self.folds else takes_part)


def folds_of(n: int, folds: int, seed: int, place: int) -> np.ndarray:
    """The fold of each row of a partition, drawn at random; empty without folds."""
    if not folds:
        return np.empty(0, dtype=np.int16)
    dealt = np.random.default_rng([seed, place]).permutation(n) + place
    return (dealt % folds).astype(np.int16)


def best_class(scores: np.ndarray) -> np.ndarray:
    """The number of the class that scores speak for, shape (n,): scores of the second of two, or of each class."""
    return (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
