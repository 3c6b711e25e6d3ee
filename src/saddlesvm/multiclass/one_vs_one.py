"""One-vs-one: a sub-problem for each pair of classes, and the vote of the pairs."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from saddlesvm.multiclass.sub_problems import Problems, SubProblem


class Pairs(Problems):
    """Each class against each later one, over the rows of the two; +1 is the later one.

    Parameters
    ----------
    codes : ndarray of shape (n,)
    classes : ndarray
    """

    def __init__(self, codes: np.ndarray, classes: np.ndarray) -> None:
        self.codes, self.classes = codes, classes
        self.pairs = list(combinations(range(classes.size), 2))
        ends = np.cumsum(np.bincount(codes, minlength=classes.size))[:-1]
        self.rows = np.split(np.argsort(codes, kind="stable"), ends)  # of each class
        self.starts = np.concatenate([[0], ends, [codes.size]])  # of the classes, where rows stand class by class
        super().__init__(self._made, len(self.pairs), 2.0 / len(self.rows))

    @property
    def sorted(self) -> bool:
        """Whether the rows stand class by class."""
        return bool((np.diff(self.codes) >= 0).all())

    def label(self, index: int) -> str:
        """The name of a pair in the records; none where there is only one."""
        first, second = self.pairs[index]
        return f"{self.classes[second]} against {self.classes[first]}" if len(self.pairs) > 1 else ""

    def _made(self, index: int) -> SubProblem:
        first, second = self.pairs[index]
        y = np.zeros(self.codes.size)  # only the rows of the two classes are touched
        y[self.rows[first]], y[self.rows[second]] = -1.0, 1.0
        alone = len(self.pairs) == 1
        members = None if alone else np.sort(np.concatenate([self.rows[first], self.rows[second]]))
        return SubProblem(index, self.label(index), y, members)

    def sides(self, weights: np.ndarray | None) -> np.ndarray:
        """Sums of the rows' weights in the negative and in the positive class of each pair, and its rows."""
        sums, counts = (np.bincount(self.codes, own, self.classes.size) for own in (weights, None))
        first, second = np.transpose(self.pairs)
        return np.column_stack([sums[first], sums[second], counts[first] + counts[second]]).astype(np.float64)


def vote(scores: np.ndarray, n_classes: int) -> np.ndarray:
    """Votes of the pairs for each class, ties broken by the summed scores, squashed to less than half a vote.

    Parameters
    ----------
    scores : ndarray of shape (n, n_classes (n_classes - 1) / 2)
        In the order of :class:`Pairs`; positive for the later class of the pair.

    Returns
    -------
    ndarray of shape (n, n_classes)
        As in scikit-learn's ``OneVsOneClassifier``.
    """
    votes = np.zeros((scores.shape[0], n_classes))
    sums = np.zeros((scores.shape[0], n_classes))
    for k, (first, second) in enumerate(combinations(range(n_classes), 2)):
        later = scores[:, k] > 0.0
        votes[:, first] += ~later
        votes[:, second] += later
        sums[:, first] -= scores[:, k]
        sums[:, second] += scores[:, k]
    return votes + sums / (3.0 * (np.abs(sums) + 1.0))
