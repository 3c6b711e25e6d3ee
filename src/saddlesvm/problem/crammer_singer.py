"""The joint machine: one problem in which all classes compete, and its certificate.

:mod:`saddlesvm.problem.joint_losses` has the losses, and the dual in general. For Crammer and
Singer's hinge it is

    P(W) = 1/2 sum_k ||w_k||^2 + C sum_i s_i max_k (e_ik + w_k . x_i - w_{y_i} . x_i),    e_ik = 0
    if k = y_i else 1 D(a) = -1/2 sum_k ||w_k(a)||^2 + C sum_i a_{i y_i},    w_k(a) = C sum_i a_ik
    x_i
           with  sum_k a_ik = 0,  a_ik <= 0 for k != y_i,  a_{i y_i} <= s_i

A row's share of the gap,
``s_i max_k (e_ik + z_ik) - s_i z_{i y_i} + sum_k a_ik (e_ik + z_ik)``, is never negative and
zero exactly if the row's block of variables is optimal.

Source: Crammer and Singer (2001), "On the algorithmic implementation of multiclass kernel-based
vector machines".
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import sparse

from saddlesvm.problem.bounds import (
    MARGIN_UNITS,
    SLACK,
    UNIT,
    LossSizes,
    LossSums,
    MarginErrors,
    Move,
    PointSizes,
    RowSizes,
    gamma,
    radii,
)
from saddlesvm.problem.joint_losses import best_rival_losses, best_rival_pulls
from saddlesvm.problem.loss import loss_name
from saddlesvm.problem.problem import Problem, make_problem
from saddlesvm.problem.responses import Responses, RowSums, responses_of
from saddlesvm.problem.sums import dual_weights
from saddlesvm.problem.terms import weights_at
from saddlesvm.rows.class_rows import block_rows
from saddlesvm.rows.layouts import Rows
from saddlesvm.rows.passes import InMemory, Part, Passes
from saddlesvm.rows.places import Memory, all_in_float64
from saddlesvm.runtime.threads import blas_for

if TYPE_CHECKING:
    from saddlesvm.problem.loss import Loss

SIZED_VALUES = 2**18  # variables of a slice of rows
# Blocks of scores are so many times smaller than those of products: a certificate takes little
# memory.
SMALLER = 4


@dataclass(frozen=True, eq=False)
class JointProblem(Problem):
    """A joint problem over `n_classes` classes.

    ``y`` holds class numbers.

    It passes over rows in memory or in files. Over files, each part of a pass is a problem in
    memory of its own (:meth:`restrict_to_part`).

    Attributes
    ----------
    title : str
        The name of the machine, for people.
    binary_loss : str
        The name of the loss if there are two classes.
    any_intercept : bool
        Whether the intercept may be free.
    on_devices : bool
        Whether the rows may be on a device.
    """

    title: ClassVar[str] = "Crammer and Singer's machine"
    binary_loss: ClassVar[str] = "hinge"
    any_intercept: ClassVar[bool] = False
    on_devices: ClassVar[bool] = False
    n_classes: int = 2

    def loss_sizes(self, rows: float) -> LossSizes:
        """Return the sizes of the loss of differences of scores, summed over so many rows."""
        return LossSizes(1.0, math.inf, rows + 8.0, gamma(rows + 8.0))

    @cached_property
    def values_per_row(self) -> float:
        """Mean number of stored values a row, once for each class."""
        return self.n_classes * max(1.0, self.X.n_values / max(1, self.X.n_rows))

    @cached_property
    def codes(self) -> np.ndarray:
        """Class numbers as whole numbers."""
        return self.y if self.y.dtype.kind == "i" else self.y.astype(np.int32)

    def place_of_classes(self, smaller: int = 1) -> Memory:
        """Return all rows in float64 blocks, so short that their scores stay in the cache.

        Blocks are `smaller` times smaller than usual.
        """
        place = all_in_float64(self.X)
        place.block = max(1, block_rows(self.X, self.n_classes) // smaller)
        return place

    def slices(self, count: int) -> Iterator[slice]:
        """Slices of so many rows, with few dual variables each."""
        size = max(1, SIZED_VALUES // self.n_classes)
        return (slice(start, min(start + size, count)) for start in range(0, count, size))

    @cached_property
    def passes(self) -> Passes:
        """How to pass over the members: in memory in one part, by the BLAS' threads."""
        if self.place is not None:
            return super().passes
        return InMemory(self.X, self.members)

    def blas(self) -> AbstractContextManager[object]:
        """A context in which BLAS has a single thread while another reads blocks of files."""
        return blas_for(0.0 if self.on_files else math.inf)

    def feasible(self, alpha: np.ndarray) -> np.ndarray:
        """Return feasible dual variables: rivals at most 0, -s_i together at least; zero sums."""
        made = np.zeros(alpha.shape)
        made[self.members] = self._feasible(alpha[self.members], self.members)
        return made

    def _feasible(self, alpha: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """The variables of some members, shape (m, K), made feasible."""
        weights = weights_at(self.weights, chosen)
        places = np.arange(chosen.size)
        own = self.codes[chosen]
        weights = weights if weights.size else np.ones(chosen.size)
        # Rivals are in [-s, 0], their sizes add up to at most s, and the own variable is their sum.
        rivals = np.clip(alpha, -weights[:, None], 0.0)
        rivals[places, own] = 0.0
        taken = -rivals.sum(axis=1)
        rivals *= np.where(taken > weights, weights / np.maximum(taken, weights), 1.0)[:, None]
        rivals[places, own] = np.minimum(-rivals.sum(axis=1), weights)
        return rivals

    def taken_over(self, duals: Any, former_C: float) -> np.ndarray:
        """Return the dual variables of an earlier fit, made feasible, shape (n_all, K).

        Parameters
        ----------
        duals : ndarray or sparse array of shape (K, n_all)
            In the C form; for two classes their difference will do, shape (1, n_all).
        former_C : float
        """
        given = duals.T.tocsr() if sparse.issparse(duals) else duals.T
        made = np.empty((self.y.size, self.n_classes))
        for part in self.slices(self.y.size):
            some = given[part].toarray() if sparse.issparse(given) else given[part]
            # Two classes with one difference: half of it for each.
            some = some if some.shape[1] > 1 else some * [[-0.5, 0.5]]
            chosen = self.members[slice(*np.searchsorted(self.members, [part.start, part.stop]))]
            made[part] = 0.0
            made[chosen] = self._feasible(some[chosen - part.start] / former_C, chosen)
        return made

    def describe(self) -> str:
        """A line that says which problem this is."""
        return f"{self.title}, {super().describe()}, {self.n_classes} classes"


def make_joint_problem(
    X: Rows | Passes,
    codes: np.ndarray,
    n_classes: int,
    loss: Loss,
    *,
    kind: type[JointProblem] = JointProblem,
    **options: Any,
) -> JointProblem:
    """Assemble a joint problem; `options` as for :func:`~saddlesvm.problem.problem.make_problem`.

    Raises
    ------
    ValueError
        A loss, an intercept or a penalty is asked for that this kind of problem does not have.
    """
    made = make_problem(X, codes, loss, kind=kind, n_classes=n_classes, **options)
    assert isinstance(made, JointProblem)
    is_device = made.place is not None and made.place.in_arrays and kind.on_devices
    if not made.holds_rows and not is_device:
        place = type(made.place).__name__
        raise ValueError(
            f"{kind.title} needs rows in memory or files, not a place of their own ({place})"
        )
    if loss_name(loss) != kind.binary_loss or (
        made.intercept.constrained and not kind.any_intercept
    ):
        no = "" if kind.any_intercept else ", and no free intercept"
        raise ValueError(
            f"{kind.title} has the {kind.binary_loss} loss{no}, not {loss_name(loss)!r}"
        )
    if not made.is_plain:
        raise ValueError(f"{kind.title} supports penalty='l2' only, not {made.penalty}")
    return made


def score_sums(
    problem: JointProblem,
    W: np.ndarray,
    alpha: np.ndarray | None = None,
    ahead: float = 0.0,
) -> np.ndarray:
    """Return sums over the rows at weights W of shape (K, d + 1), in one pass.

    They are ``sum s_i Phi`` with `ahead` added to own scores, ``sum_i a_i . z_i``, and the same of
    the sizes of its terms; without `alpha` the last two are zero.
    """
    by_feature = np.ascontiguousarray(W.T)

    def add_part(part: Part, found: np.ndarray) -> None:
        local = problem.restrict_to_part(part)
        place = local.place_of_classes(SMALLER)
        for rows, block in place.blocks():
            scores = place.scores(block, by_feature)
            if alpha is not None:
                pairs = part.pick(alpha)[rows] * scores
                found[1:] += pairs.sum(), np.abs(pairs).sum()
            own = local.codes[rows]
            scores[np.arange(own.size), own] += ahead
            found[0] += float(local.all_weights[rows] @ best_rival_losses(scores, own))

    with problem.blas():
        return problem.passes.total(add_part, 3)


def dual_of_weights(problem: JointProblem, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sub-gradient at the scores of W, scaled for the best bound, and its pull.

    Each row is against its best rivals.

    Over files both are zero: so many variables may outweigh the memory.
    """
    shape = (problem.y.size, problem.n_classes)
    if problem.on_files:
        return np.broadcast_to(0.0, shape), np.zeros(W.shape)
    alpha = np.zeros(shape)
    by_feature = np.ascontiguousarray(W.T)
    place = problem.place_of_classes(SMALLER)
    for rows, block in place.blocks():
        pulls = best_rival_pulls(place.scores(block, by_feature), problem.codes[rows])
        alpha[rows] = pulls * problem.all_weights[rows, None]
    pull = dual_weights(problem, alpha)
    charged = problem.regularizer.conjugate(pull)
    gained = problem.C * float(alpha[np.arange(problem.y.size), problem.codes].sum())
    # The top of t gained - t^2 charged.
    t = 1.0
    if charged > 0.0:
        t = min(1.0, 0.5 * gained / charged)
    alpha *= t
    return alpha, t * pull


class Scores(Responses):
    """The scores of weights, one for each class: what the rows of a joint problem respond.

    Parameters
    ----------
    problem : JointProblem
    w : ndarray of shape (K, d + 1)
    """

    def choose_dual_point(self, alpha: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """The dual point that is given, or that of :func:`dual_of_weights`, and its pull."""
        if alpha is None:
            return dual_of_weights(self.problem, self.w)
        return alpha, dual_weights(self.problem, alpha)

    def sums(self, alpha: np.ndarray, pull: np.ndarray | None) -> RowSums:
        """The sums over the rows; sums of products with the scores only if no pull is given.

        If rounding has left a variable beyond its bound, all variables are shortened by as
        little, which lowers no bound by more than that share of what is gained.
        """
        facts = self.problem.facts
        given = alpha if pull is None else None
        paid, products, product_sizes = score_sums(self.problem, self.w, alpha=given).tolist()
        if pull is not None:
            products = math.inf
            product_sizes = math.inf
        conjugates, missed, strayed, gained, pulled, over = add_dual_sizes(self.problem, alpha)
        sums = LossSums(paid, conjugates, products, gained, product_sizes)
        move = Move(missed + (over + 4.0 * UNIT) * gained, strayed)
        point = PointSizes(0.0, 0.0, 2.0 * pulled, 0.0)
        errors = score_errors(facts.rows, self.w, 4.0 * UNIT)
        return RowSums(
            sums,
            facts,
            point,
            errors,
            move,
            lambda t: float(score_sums(self.problem, self.w, ahead=t)[0]),
        )


@responses_of.register(JointProblem)
def _scores_of(problem: JointProblem, w: np.ndarray, given_offset: bool = False) -> Scores:
    return Scores(problem, w)


def score_errors(rows: RowSizes, W: np.ndarray, of_all: float) -> MarginErrors:
    """How far differences of two scores can be off, and by `of_all` what is added to them."""
    norm = SLACK * float(np.sqrt(np.einsum("kj,kj->k", W, W).max()))
    return MarginErrors(2.0 * gamma(rows.terms + MARGIN_UNITS) * norm, 0.0, of_all)


def add_dual_sizes(problem: JointProblem, alpha: np.ndarray) -> list[float]:
    """Return sums over rows that bounds on the rounding of a dual point need; no row is read.

    A row's own variable is taken for the exact negated sum of its rivals', from which the stored
    one differs by what rounding left.

    Returns
    -------
    list of float
        The sum of ``s_i Phi*(-a_i / s_i)``; what the rows' sums miss of zero, added up, and the
        same times ``||x_i||``; the sum of the own variables' sizes; the sum of all variables' sizes
        times ``||x_i||``; the largest share by which a variable exceeds its bound.
    """
    members = problem.members
    totals = np.zeros(5)
    largest = 1.0
    for some in problem.slices(members.size):
        chosen = members[some]
        rival = alpha[chosen]
        r = radii(problem.norms[chosen])
        weights = problem.all_weights[chosen]
        # The rivals' variables, and the row's own, whose negative is the conjugate.
        places = np.arange(chosen.size)
        own = problem.codes[chosen]
        given = rival[places, own].copy()
        rival[places, own] = 0.0
        sizes = np.abs(rival)
        # A row's own variable must be the sum of its rivals' sizes, and at most s: how far rounding
        # has left it from that sum, and by which share it is beyond the bound.
        taken = sizes.sum(axis=1)
        missed = np.abs(given - taken) + gamma(problem.n_classes + 2.0) * taken
        deepest = sizes.max(axis=1, initial=0.0) / weights
        largest = max(largest, float(np.maximum(taken / weights, deepest).max(initial=1.0)))
        gained = np.abs(given)
        totals += -given.sum(), missed.sum(), missed @ r, gained.sum(), (taken + gained) @ r
    return [*totals.tolist(), largest - 1.0]
