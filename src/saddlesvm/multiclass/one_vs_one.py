"""One-vs-one: a sub-problem for each pair of classes, and the vote of the pairs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np

from saddlesvm.multiclass.sub_problems import SubProblem, one_vs_rest


def one_vs_one(codes: np.ndarray, classes: np.ndarray) -> list[Callable[[], SubProblem]]:
    """Each class against each later one, over the rows of the two, made when its turn comes; +1 is the later one."""
    if classes.size == 2:
        return one_vs_rest(codes, classes)

    def make(index: int, first: int, second: int) -> Callable[[], SubProblem]:
        def made() -> SubProblem:
            members = np.flatnonzero((codes == first) | (codes == second))
            label = f"{classes[second]} against {classes[first]}"
            return SubProblem(index, label, np.where(codes == second, 1.0, -1.0), members)

        return made

    return [make(k, *pair) for k, pair in enumerate(combinations(range(classes.size), 2))]


def vote(scores: np.ndarray, n_classes: int) -> np.ndarray:
    """Votes of the pairs for each class, ties broken by the summed scores, squashed to less than half a vote.

    Parameters
    ----------
    scores : ndarray of shape (n, n_classes (n_classes - 1) / 2)
        In the order of :func:`one_vs_one`; positive for the later class of the pair.

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
