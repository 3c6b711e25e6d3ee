"""The two-class sub-problems of many classes, and the data that they share.

All sub-problems use the same rows, squared norms and threads; a pair of classes is a view by row
numbers, never a copy.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any, ClassVar, Self, overload

import numpy as np
from joblib import cpu_count, effective_n_jobs
from scipy import sparse

from saddlesvm.fit.outcome import FitResult, Outcome
from saddlesvm.fit.warm_start import start_from_duals, start_from_weights
from saddlesvm.problem.certificate import Point
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.problem import Problem, make_problem
from saddlesvm.rows.layouts import Rows
from saddlesvm.rows.passes import Passes
from saddlesvm.runtime.clock import clock, end_of_fit

SEVERITY = {outcome: rank for rank, outcome in enumerate(Outcome)}
LEAST_SHARE = 0.125  # of the time left, for a sub-problem among many; guessed
SECONDS_TO_REPORT = 1e-5  # seconds for the result of a sub-problem that was not begun


@dataclass(frozen=True)
class SubProblem:
    """A two-class problem of a model of many classes.

    Attributes
    ----------
    index : int
        Its place among the sub-problems.
    label : str
        Its name in the records.
    y : ndarray of shape (n_all,)
        -1 and +1, in any type; anything for rows that are not members.
    members : ndarray or None
        The rows that take part; None for all.
    weights : ndarray of shape (n_all,) or None
        Row weights of its own; None for the common weights.
    factor : float
        The factor of the weights of its class's rows, with y = +1.
    """

    index: int
    label: str
    y: np.ndarray
    members: np.ndarray | None = None
    weights: np.ndarray | None = field(default=None, kw_only=True)
    factor: float = field(default=1.0, kw_only=True)

    # True if weights say all of a start, and dual variables nothing more.
    begins_at_weights: ClassVar[bool] = False

    @property
    def n_vectors(self) -> int:
        """Rows of ``coef_`` and of ``dual_coef_`` that a fitted model keeps of it."""
        return 1

    def restrict_to(self, chosen: np.ndarray) -> Self:
        """Return the same problem over its rows for which `chosen`, shape (n_all,), is true."""
        if self.members is None:
            members = np.flatnonzero(chosen)
        else:
            members = self.members[chosen[self.members]]
        return dataclasses.replace(self, members=members)

    def problem(self, X: Rows | Passes, loss: Loss, **options: Any) -> Problem:
        """Return its regularised risk problem, with the `options` of :func:`make_problem`."""
        return make_problem(
            X, self.y, loss, **self.with_weights({"members": self.members} | options)
        )

    def with_weights(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the common options of all problems, with its own row weights."""
        return options | {"weights": self.row_weights(options.get("weights"))}

    def row_weights(self, weights: np.ndarray | None) -> np.ndarray | None:
        """Return the weights of all rows from the common weights; None for 1."""
        own = weights if self.weights is None else self.weights
        if self.factor == 1.0:
            return own
        factors = np.where(self.y > 0, self.factor, 1.0)
        return factors if own is None else factors * own

    def start(self, problem: Problem, duals: Any, former_C: float, w: np.ndarray) -> Point:
        """Return a starting point from an earlier fit: its dual variables, its C and its weights.

        The dual variables have the C form and the shape (1, n_all), dense or sparse.
        """
        if sparse.issparse(duals):
            duals = duals.toarray()
        return start_from_duals(problem, duals[0], former_C, w)

    def start_at(self, problem: Problem, W: np.ndarray) -> Point | None:
        """Return a starting point from weights, shape (n_vectors, d + 1).

        None if its solver begins at dual points only.
        """
        return start_from_weights(problem, W[0])


class Problems(Sequence[SubProblem]):
    """The sub-problems of a model, each made when asked for: labels of many take memory.

    Parameters
    ----------
    make : callable
        Makes the sub-problem with a given number.
    count : int
    share : float, default=1.0
        The mean share of the rows that a sub-problem has.
    """

    def __init__(self, make: Callable[[int], SubProblem], count: int, share: float = 1.0) -> None:
        self.make = make
        self.numbers = range(count)
        self.share = share

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> SubProblem: ...

    @overload
    def __getitem__(self, index: slice) -> list[SubProblem]: ...

    def __getitem__(self, index: int | slice) -> SubProblem | list[SubProblem]:
        chosen = self.numbers[index]
        if isinstance(chosen, int):
            return self.make(chosen)
        return list(map(self.make, chosen))


def share_of(problems: Sequence[SubProblem]) -> float:
    """The mean share of the rows that sub-problems have."""
    if isinstance(problems, Problems):
        return problems.share
    shares = []
    for sub in problems:
        members = sub.members
        shares.append(1.0 if members is None else members.size / max(sub.y.size, 1))
    return float(np.mean(shares))


class SharedTime:
    """A time limit for a whole fit: each sub-problem may use a fair share of the time left.

    A share is at least an eighth, so that a limit that is too short for all of many classes is
    enough for the first of them.

    It counts from the beginning of the fit, and keeps some time for reporting sub-problems that
    could not begin.

    Parameters
    ----------
    seconds : float or None
        None for no limit.
    problems : int
    """

    def __init__(self, seconds: float | None, problems: int) -> None:
        self.end = None if seconds is None else end_of_fit(seconds)
        self.reporting = min(SECONDS_TO_REPORT * problems, 0.5 * (seconds or 0.0))
        self.open = problems
        self.has_begun = False
        self.lock = threading.Lock()

    def share(self, jobs: int) -> float | None:
        """Return the seconds for the next sub-problem, with its share of what others left over.

        `jobs` sub-problems are solved at the same time.
        """
        if self.end is None:
            return None
        left = max(self.end - clock(), 1e-9)
        with self.lock:
            self.has_begun = True
            # Sub-problems that run at the same time use the same seconds.
            return left * min(1.0, max(LEAST_SHARE, jobs / max(self.open, 1)))

    def is_over(self) -> bool:
        """Return True if no further sub-problem may begin; the first always may."""
        return self.has_begun and self.end is not None and self.end - clock() <= self.reporting

    def count_done(self) -> None:
        """Count a sub-problem as finished."""
        with self.lock:
            self.open -= 1


def one_vs_rest(
    codes: np.ndarray, classes: np.ndarray, factors: np.ndarray | None = None
) -> Sequence[SubProblem]:
    """Each class against all others; for two classes the second against the first.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Class numbers.
    classes : ndarray
    factors : ndarray of shape (n_classes,), optional
        The factors of the weights of each class's rows in its own sub-problem. There is none for
        two classes.
    """

    def make(k: int) -> SubProblem:
        label = f"{classes[k]} against the rest"
        factor = 1.0 if factors is None else float(factors[k])
        return SubProblem(k, label, signs(codes, k), factor=factor)

    if classes.size == 2:
        return [SubProblem(0, "", signs(codes, 1))]
    return Problems(make, classes.size)


def signs(codes: np.ndarray, k: int) -> np.ndarray:
    """+1 for the rows of class k and -1 for all others, in a byte a row: there may be many."""
    return 2 * (codes == k).view(np.int8) - np.int8(1)


def each_label(indicator: sparse.csc_array) -> Problems:
    """Each label against its absence.

    Parameters
    ----------
    indicator : CSC array of shape (n, k)
    """

    def make(k: int) -> SubProblem:
        # The column of the indicator matrix says where the label is present; elsewhere it is -1.
        column = np.full(indicator.shape[0], -1, dtype=np.int8)
        column[indicator.indices[indicator.indptr[k] : indicator.indptr[k + 1]]] = 1
        return SubProblem(k, f"label {k}", column)

    return Problems(make, indicator.shape[1])


def each_target(targets: np.ndarray) -> Problems:
    """Each column of targets, shape (n, k), alone."""
    return Problems(
        lambda k: SubProblem(k, f"target {k}", np.ascontiguousarray(targets[:, k])),
        targets.shape[1],
    )


def workers(problems: int, n_jobs: int | None) -> int:
    """Threads over `problems` sub-problems, as `n_jobs` asks."""
    if problems == 1:
        return 1
    return max(1, min(effective_n_jobs(n_jobs), problems))


def threads_each(jobs: int, n_jobs: int | None) -> int:
    """Return threads within each sub-problem: the `n_jobs` divided by the `jobs` at a time."""
    asked = effective_n_jobs(n_jobs)
    # Counting cores takes a tenth of a millisecond: only if there is something to divide.
    if asked <= jobs:
        return 1
    return max(1, min(asked, cpu_count()) // jobs)


def worst_outcome(results: Sequence[FitResult]) -> FitResult:
    """Return the result whose outcome is worst; the largest gap among equals."""
    if len(results) == 1:
        return results[0]
    return max(results, key=lambda one: (SEVERITY[one.outcome], one.certificate.relative_gap))


def csr_of(dense: np.ndarray) -> sparse.csr_array:
    """Return a CSR array of few rows; a third of the time of scipy's own conversion."""
    rows, columns = np.nonzero(dense)
    # The rows ascend: each begins at the first place that is not before it.
    starts = np.searchsorted(rows, np.arange(len(dense) + 1)).astype(np.int32)
    return sparse.csr_array(
        (dense[rows, columns], columns.astype(np.int32), starts), shape=dense.shape
    )


def stacked_duals(duals: Sequence[sparse.csr_array | np.ndarray]) -> sparse.csr_array:
    """Stack the dual variables of all sub-problems; SciPy's vstack is slow for thousands."""
    if not any(map(sparse.issparse, duals)):
        return csr_of(np.vstack(duals))
    rows = [sparse.csr_array(one) for one in duals]
    counts = np.concatenate([np.diff(one.indptr) for one in rows])
    # Put data, columns and row pointers of all arrays one behind the other.
    data, indices = (
        np.concatenate([getattr(one, name) for one in rows]) for name in ("data", "indices")
    )
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return sparse.csr_array((data, indices, indptr), shape=(counts.size, rows[0].shape[1]))


class Pairs(Problems):
    """Return the problems of each class against each later class, over their rows; +1 is the later.

    Parameters
    ----------
    codes : ndarray of shape (n,)
    classes : ndarray
    """

    def __init__(self, codes: np.ndarray, classes: np.ndarray) -> None:
        self.codes = codes
        self.classes = classes
        self.pairs = list(combinations(range(classes.size), 2))
        # The rows of each class, and where each class begins if rows stand class by class.
        order = np.argsort(codes, kind="stable")
        self.starts = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=classes.size))])
        self.rows = [order[first:end] for first, end in pairwise(self.starts.tolist())]
        super().__init__(self._make_pair, len(self.pairs), 2.0 / len(self.rows))

    @cached_property
    def sorted(self) -> bool:
        """Whether the rows stand class by class."""
        return bool((np.diff(self.codes) >= 0).all())

    def label(self, index: int) -> str:
        """Return the name of a pair in the records; none if there is a single pair."""
        if len(self.pairs) == 1:
            return ""
        first, second = self.pairs[index]
        return f"{self.classes[second]} against {self.classes[first]}"

    def _make_pair(self, index: int) -> SubProblem:
        """Return the problem of a pair."""
        first, second = self.pairs[index]
        # Memory of zeros is not touched but for the rows of the two classes.
        y = np.zeros(self.codes.size)
        y[self.rows[first]] = -1.0
        y[self.rows[second]] = 1.0
        members = None
        if len(self.pairs) > 1:
            members = np.sort(np.concatenate([self.rows[first], self.rows[second]]))
        return SubProblem(index, self.label(index), y, members)

    def sides(self, weights: np.ndarray | None) -> np.ndarray:
        """Sum the weights of the rows in both classes of each pair, and count its rows."""
        sums, counts = (np.bincount(self.codes, own, self.classes.size) for own in (weights, None))
        first, second = np.transpose(self.pairs)
        found = np.column_stack([sums[first], sums[second], counts[first] + counts[second]])
        return found.astype(np.float64)


def likely_classes(scores: np.ndarray, n_classes: int, pairs: bool) -> np.ndarray:
    """Return the number of each row's class: the later of two, the best, or by votes of pairs."""
    if scores.shape[1] == 1:
        return (scores[:, 0] > 0.0).astype(np.intp)
    if pairs:
        scores = vote(scores, n_classes)
    return scores.argmax(axis=1)


def vote(scores: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the pairs' votes for each class; summed scores, below half a vote, break ties.

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
    # The summed scores, brought into (-1/3, 1/3), cannot outweigh a vote.
    return votes + sums / (3.0 * (np.abs(sums) + 1.0))
