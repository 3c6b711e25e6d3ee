"""Multinomial (softmax) regression: all classes in one problem, with primal, dual and certificate.

    P(W, b) = 1/2 sum_k ||w_k||^2 + C sum_i s_i (log sum_k exp(z_ik) - z_{i y_i})
    D(a)    = C sum_i s_i H(p_i) - 1/2 sum_k ||v_k||^2

    z_ik = w_k . x_i + b_k,    v_k = C sum_i a_ik x_i,    a_i = s_i (e_{y_i} - p_i)

with probabilities p_i of the classes and their entropy H. At the probabilities ``softmax(z_i)`` of
any weights, the gap is ``1/2 ||W - V||^2``, half the squared gradient: every pass that computes a
gradient yields a certificate. No dual variable is stored, since the weights determine them: a model
of a thousand classes needs no array of n K numbers.

Far from the optimum a multiple ``t a`` of the dual point proves more. Entropy is concave, so that
D(t a) is at least ``t C sum_i s_i H(p_i) - t^2/2 ||V||^2``, whose top is taken.

A free intercept asks for ``sum_i a_ik = 0`` for every class. The point is mixed with ``s_i (e_{y_i}
- q)``, with q nearly the classes' shares of the rows, in the smallest proportion that makes the
sums zero; at the optimum they are.

Source: Boehning (1992), "Multinomial logistic regression algorithm"; Shalev-Shwartz and Zhang
(2016), "Accelerated proximal stochastic dual coordinate ascent for regularized loss minimization",
section 1, for the conjugate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar, NamedTuple

import numpy as np

from saddlesvm.problem.bounds import (
    SLACK,
    UNIT,
    Facts,
    LossSizes,
    LossSums,
    Move,
    PointSizes,
    gamma,
    radii,
)
from saddlesvm.problem.certificate import Evaluation, Point, evaluate_responses
from saddlesvm.problem.crammer_singer import JointProblem, make_joint_problem, score_errors
from saddlesvm.problem.joint_losses import softmax_response
from saddlesvm.problem.problem import in_memory_cached
from saddlesvm.problem.regularizer import square
from saddlesvm.problem.responses import Responses, RowSums, responses_of
from saddlesvm.rows.class_rows import block_rows
from saddlesvm.rows.passes import Part

SOFTMAX_UNITS = 800.0  # roundings of a probability beside those of the sum over the classes
NO_DUALS = np.empty((0, 0))


class Response(NamedTuple):
    """The results of a pass over all rows at given weights.

    Attributes
    ----------
    paid, entropy, pulled : float
        Sums of the rows' losses, of their entropies, and of ``s_i (1 - p_{i y_i}) ||x_i||``.
    pull : ndarray of shape (K, d + 1)
        ``V``.
    """

    paid: float
    entropy: float
    pulled: float
    pull: np.ndarray


class ClassSums(NamedTuple):
    """Sums over the rows that the mixing of a free intercept's dual point needs.

    Attributes
    ----------
    weights : ndarray of shape (K,)
        ``sum s_i`` over the rows of each class.
    own : ndarray of shape (K, d + 1)
        ``C sum s_i x_i`` over the rows of each class.
    """

    weights: np.ndarray
    own: np.ndarray


@dataclass(frozen=True, eq=False)
class MultinomialProblem(JointProblem):
    """The joint problem with the softmax; its intercepts are all three kinds."""

    title: ClassVar[str] = "Multinomial regression"
    binary_loss: ClassVar[str] = "logistic"
    any_intercept: ClassVar[bool] = True
    on_devices: ClassVar[bool] = True

    @in_memory_cached
    def lengths(self) -> np.ndarray:
        """``||x_i||``, no smaller than it is."""
        return radii(self.norms)

    def loss_sizes(self, rows: float) -> LossSizes:
        """Return the sizes of the loss, added up over classes, rows of a block, and blocks."""
        block = block_rows(self.X, self.n_classes)
        additions = block + rows / block + 8.0
        share = gamma(additions + self.n_classes + SOFTMAX_UNITS)
        return LossSizes(1.0, math.inf, additions, share, growth=1.0)

    @property
    def sums_in_any_order(self) -> bool:
        """True if sums over the rows are not taken block by block: sparse rows, or a device."""
        return self.sparse or (self.place is not None and self.place.in_arrays)

    @cached_property
    def class_sums(self) -> ClassSums:
        """Sums over the rows of each class, by a pass of its own."""

        def add_part(part: Part, found: np.ndarray) -> None:
            local = self.restrict_to_part(part)
            place = local.place_of_classes()
            for rows, block in place.blocks():
                # sum of s_i x_i over the rows of each class, by factors of s_i in the own column.
                own = local.codes[rows]
                factors = np.zeros((own.size, self.n_classes))
                factors[np.arange(own.size), own] = local.all_weights[rows]
                found += place.pull(block, factors)

        shape = (self.n_features + 1, self.n_classes)
        return self.class_sums_of(self.passes.total(add_part, shape))

    def class_sums_of(self, sums: np.ndarray) -> ClassSums:
        """Return the sums over each class from ``sum s_i x_i`` of each, shape (d + 1, K)."""
        codes = self.gather(self.codes)
        weights = self.gather(self.row_weights)
        counts = np.bincount(codes, weights=weights, minlength=self.n_classes)
        return ClassSums(counts, self.C * np.ascontiguousarray(sums.T))

    def first_weights(self, start: Point | None) -> np.ndarray:
        """Return the weights of a start, or zeros, with zero sums over the classes.

        Their shape is (d + 1, K).

        Raises
        ------
        ValueError
            The given weights have another shape.
        """
        shape = (self.n_classes, self.n_features + 1)
        if start is None or start.w is None:
            return np.zeros(shape[::-1])
        if start.w.shape != shape:
            raise ValueError(
                f"the starting weights have shape {start.w.shape}; the problem has {shape}"
            )
        # The probabilities stay, the norm falls.
        return np.ascontiguousarray((start.w - start.w.mean(axis=0)).T)

    def response(self, W: np.ndarray) -> Response:
        """Pass over the rows once, at weights W of shape (d + 1, K)."""

        def add_part(part: Part, found: np.ndarray) -> None:
            local = self.restrict_to_part(part)
            place = local.place_of_classes()
            pull = found[3:].reshape(W.shape)
            for rows, block in place.blocks():
                own = local.codes[rows]
                weights = local.all_weights[rows]
                pulls, losses, entropies = softmax_response(place.scores(block, W), own)
                pulls *= weights[:, None]
                # s_i (1 - p_iy), the size of the own variable, for the rounding of the pull.
                taken = pulls[np.arange(own.size), own]
                found[:3] += weights @ losses, weights @ entropies, taken @ local.lengths[rows]
                pull += place.pull(block, pulls)

        with self.blas():
            found = self.passes.total(add_part, 3 + W.size)
        paid, entropy, pulled = found[:3].tolist()
        pull = self.C * np.ascontiguousarray(found[3:].reshape(W.shape).T)
        return Response(paid, entropy, pulled, pull)


make_multinomial_problem = partial(make_joint_problem, kind=MultinomialProblem)


class Probabilities(Responses):
    """The probabilities of the classes at weights: what the rows of a multinomial problem respond.

    The dual point is that of the probabilities, balanced for a free intercept and taken at its best
    multiple; its variables are not stored.

    Parameters
    ----------
    problem : MultinomialProblem
    w : ndarray of shape (K, d + 1)
        The intercepts are judged as they are given.
    found : Response, optional
        What a pass in float64 has found at the weights.
    """

    def __init__(
        self, problem: MultinomialProblem, w: np.ndarray, found: Response | None = None
    ) -> None:
        if found is None:
            found = problem.response(np.ascontiguousarray(w.T))
        C = problem.C
        facts = problem.facts
        pull, kept, drift = _feasible(problem, found, facts)
        gained = kept * found.entropy
        charged = problem.regularizer.conjugate(pull)
        # t C sum_i s_i H(p_i) - t^2 / 2 ||V||^2 is largest at C sum_i s_i H(p_i) / ||V||^2.
        t = 1.0
        if charged > 0.0:
            t = min(1.0, C * gained / (2.0 * charged))
        gained = t * gained
        drift = t * drift + UNIT * SLACK * t * math.sqrt(2.0 * charged)
        super().__init__(problem, w)
        self.pull = t * pull
        sums = LossSums(
            paid=found.paid,
            conjugates=-gained,
            products=math.inf,
            conjugate_sizes=gained,
            product_sizes=math.inf,
        )
        # The entropies are sums of terms that are not negative.
        sizes = PointSizes(0.0, 0.0, 0.0, 0.0)
        errors = score_errors(facts.rows, w, facts.loss.share)
        self.found = RowSums(sums, facts, sizes, errors, Move(4.0 * UNIT * gained, drift / C))

    def choose_dual_point(self, alpha: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """No variables, whatever is given, and the pull of the probabilities' dual point."""
        return NO_DUALS, self.pull

    def sums(self, alpha: np.ndarray, pull: np.ndarray | None) -> RowSums:
        """The sums over the rows."""
        return self.found


@responses_of.register(MultinomialProblem)
def _probabilities_of(
    problem: MultinomialProblem, w: np.ndarray, given_offset: bool = False
) -> Probabilities:
    return Probabilities(problem, w)


def evaluation_at(problem: MultinomialProblem, W: np.ndarray, found: Response) -> Evaluation:
    """Return the model of weights of shape (K, d + 1), certified by what a pass found at them.

    No dual variable is stored.
    """
    at = Probabilities(problem, W, found)
    return evaluate_responses(at, NO_DUALS, at.pull)


def _feasible(
    problem: MultinomialProblem, found: Response, facts: Facts
) -> tuple[np.ndarray, float, float]:
    """Return the pull of the probabilities' balanced dual point, its share in it, its error."""
    additions = facts.loss.additions
    if problem.sums_in_any_order:
        additions = facts.rows.rows + 8.0
    adding = gamma(additions)
    # Rounding of the sums over the rows and of the probabilities. The sizes of a row's variables
    # add up to 2 s_i (1 - p_iy).
    drift = (
        problem.C
        * (2.0 * adding + 2.0 * gamma(problem.n_classes + SOFTMAX_UNITS))
        * 2.0
        * found.pulled
    )
    pull = found.pull
    if not problem.intercept.constrained:
        return pull, 1.0, drift
    pull, share, missed = _mix_points(problem, pull, drift)
    return pull, 1.0 - share, drift + missed


def _mix_points(
    problem: MultinomialProblem, pull: np.ndarray, drift: float
) -> tuple[np.ndarray, float, float]:
    """Return the pull of the mixed dual point, the share of the other point, and its error.

    ``(1 - t) sum_i a_ik + t (S_k - S q_k) = 0`` asks for ``q_k = (S_k + (1 - t)/t sum_i a_ik) /
    S``, which must not be negative; `t` leaves half of every ``S_k`` for what rounding hides of the
    sums.
    """
    C = problem.C
    sums = problem.class_sums
    sizes = problem.row_sizes
    # sum_i a_ik of each class, from the pull of the virtual feature, and what rounding hides of it.
    missing = pull[:, -1] / (C * problem.scale)
    hidden = drift / (C * problem.scale)
    worst = float(((np.abs(missing) + hidden) / sums.weights).max())
    share = min(1.0, 2.0 * worst)
    if share == 0.0:
        return pull, 0.0, 0.0
    total = float(sums.weights.sum())
    every = sums.own.sum(axis=0)
    # The q of the docstring, and (1 - t) a + t (e_y - q) over the rows, as a pull.
    q = (sums.weights + (1.0 - share) / share * missing) / total
    mixed = np.outer(np.maximum(q, 0.0), every)
    np.subtract(sums.own, mixed, out=mixed)
    mixed *= share
    mixed += (1.0 - share) * pull
    reach = C * sizes.reach
    off = (
        reach * math.sqrt(problem.n_classes) * hidden / total
        + share * 4.0 * gamma(sizes.rows + 8.0) * reach
    )
    return mixed, share, off + 8.0 * UNIT * float(np.sqrt(square(mixed)))
