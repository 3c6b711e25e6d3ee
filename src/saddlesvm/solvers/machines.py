"""How rows respond to scores: the part of Newton's method that knows the loss.

A machine has the labels and weights of some rows, and their loss. It answers scores z_i with dual
variables a_i, which are dual feasible, and with `bends`, the derivatives -a_i': the second
derivatives of the loss. With a centre c and a proximity q a loss becomes its smoothed self,

    e_i(z) = max_a  -s_i phi_i*(-a / s_i) - a z - (q / 2) (a - c_i)^2,

which is ``s_i phi_i`` if q = 0. The dual variables are the maximisers, and ``e_i' = -a_i``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from saddlesvm.problem.joint_losses import softmax_response
from saddlesvm.problem.loss import is_cornerless, is_smooth, methods_of
from saddlesvm.problem.problem import Problem, is_classification
from saddlesvm.problem.terms import silent, within_bounds
from saddlesvm.solvers.base import AT_BOUND
from saddlesvm.solvers.smoothed import Answers, SmoothedTerms, answers_at

if TYPE_CHECKING:
    from saddlesvm.problem.loss import Loss

# Added to the first proximity, so that it is positive if all scores lie at the kink.
LEAST_PROXIMITY = 1e-12
ALL = slice(None)  # rows


class ResponseSums(NamedTuple):
    """Sums over rows at their scores and dual variables.

    Attributes
    ----------
    losses, smoothed, conjugates : float
        Of ``s phi``, of the smoothed loss e, and of ``s phi*``.
    pulled_size : float
        Of ``s (1 - p_y) ||x||``, for the softmax only: no pull of these rows is longer, and
        bounds on rounding need it.
    """

    losses: float
    smoothed: float
    conjugates: float
    pulled_size: float = 0.0


class Binary:
    """One score a row: any loss with methods on arrays.

    Parameters
    ----------
    loss : Loss
    y : ndarray of shape (n,)
    s : ndarray of shape (n,) or 1.0
        Weights of the rows.
    """

    columns: tuple[int, ...] = ()  # the shape of a row's scores: a number

    def __init__(self, loss: Loss, y: np.ndarray, s: np.ndarray | float) -> None:
        self.loss = loss
        self.methods = methods_of(loss)
        self.kinked = not is_smooth(loss)
        self.cornered = not self.kinked and not is_cornerless(loss)
        self.y = y
        self.s = s

    @classmethod
    def from_problem(cls, problem: Problem) -> Self:
        """Return the machine of a problem's rows."""
        terms = problem.member_terms
        return cls(problem.loss, terms.y, terms.weights if terms.weights.size else 1.0)

    def take(self, rows: np.ndarray | slice) -> Self:
        """Return the machine of some rows."""
        return type(self)(self.loss, self.y[rows], self.weights(rows))

    def weights(self, rows: np.ndarray | slice) -> np.ndarray | float:
        """Return the weights of some rows; 1 if all are."""
        if isinstance(self.s, float):
            return self.s
        return self.s[rows]

    @silent
    def dual_variables(
        self, rows: np.ndarray | slice, Z: np.ndarray, centre: np.ndarray, q: float
    ) -> np.ndarray:
        """Return the dual variables of some rows at scores Z."""
        y = self.y[rows]
        s = self.weights(rows)
        if q == 0.0:
            # The slope of the loss: a = -s phi'(z).
            found: np.ndarray = -s * self.methods.subgradient(self.loss, Z, y)
            return found
        # The maximiser of e, by a dual step from the centre.
        c = centre[rows]
        moved = c + self.methods.dual_step(self.loss, c, Z, y, q, s)  # type: ignore[misc]
        return within_bounds(self.methods, self.loss, moved, y, s)

    @silent
    def respond(
        self, rows: np.ndarray | slice, Z: np.ndarray, centre: np.ndarray, q: float
    ) -> tuple[np.ndarray, ResponseSums]:
        """Return the dual variables of some rows at scores Z, and their sums."""
        y = self.y[rows]
        s = self.weights(rows)
        A = self.dual_variables(rows, Z, centre, q)
        losses = float(np.sum(s * self.methods.value(self.loss, Z, y)))
        coupled = float(np.vdot(A, Z))
        if q == 0.0:
            # Fenchel's equality holds at slopes: phi(z) + phi*(-a) + a z = 0.
            return A, ResponseSums(losses, losses, -(losses + coupled))
        conjugates = float(np.sum(self.methods.conjugate(self.loss, A, y, s)))
        away = A - centre[rows]
        smoothed = -conjugates - coupled - 0.5 * q * float(np.vdot(away, away))
        return A, ResponseSums(losses, smoothed, conjugates)

    @silent
    def bend(
        self, rows: np.ndarray | slice, Z: np.ndarray, A: np.ndarray, centre: np.ndarray, q: float
    ) -> np.ndarray:
        """Return the second derivatives of e: how much dual variables fall as scores rise."""
        y = self.y[rows]
        s = self.weights(rows)
        if q == 0.0:
            found: np.ndarray = np.broadcast_to(
                s * self.methods.curvature(self.loss, Z, y), Z.shape
            )
            return found
        if not self.kinked:
            # With h = s phi'' where the proximal step ends: h / (1 + q h), and 0 at a corner of
            # phi*.
            left, right = self.methods.slopes(self.loss, A, Z + q * (A - centre[rows]), y, s)
            h = s * self.methods.curvature(self.loss, Z + q * (A - centre[rows]), y)
            return np.where(left == right, h / (1.0 + q * h), 0.0)
        # A piecewise linear loss: a dual variable falls by 1/q for each unit of its score if it is
        # inside its bounds and away from corners of phi*.
        left, right = self.methods.slopes(self.loss, A, Z + q * (A - centre[rows]), y, s)
        low, high = self.methods.bounds(self.loss, y, s)
        inside = (left == right) & (np.minimum(A - low, high - A) > AT_BOUND * s)
        return inside / q

    def answer(
        self, rows: np.ndarray | slice, Z: np.ndarray, centre: np.ndarray, q: float
    ) -> tuple[np.ndarray, np.ndarray, ResponseSums]:
        """Return dual variables of some rows at scores Z, second derivatives of e, and sums."""
        A, sums = self.respond(rows, Z, centre, q)
        return A, self.bend(rows, Z, A, centre, q), sums

    @silent
    def bring_inside(self, A: np.ndarray) -> np.ndarray:
        """Return dual variables of all rows, moved back to their bounds."""
        return within_bounds(self.methods, self.loss, A, self.y, self.s)

    @silent
    def conjugates(self, A: np.ndarray) -> float:
        """Return the sum of ``s phi*`` over all rows at dual variables A."""
        return float(np.sum(self.methods.conjugate(self.loss, A, self.y, self.s)))

    @silent
    def losses(self, Z: np.ndarray) -> float:
        """Return the sum of ``s phi`` over all rows at scores Z."""
        return float(np.sum(self.s * self.methods.value(self.loss, Z, self.y)))

    @silent
    def first_proximity(self, Z: np.ndarray, share: float) -> tuple[np.ndarray, float]:
        """Return the middle of the bounds, and a proximity with which a share of the rows bend."""
        low, high = self.methods.bounds(self.loss, self.y, self.s)
        # A dual variable is inside its bounds, so that its row bends, if the score is nearer to the
        # kink than q times half the width of the bounds.
        centre = np.broadcast_to(0.5 * (low + high), Z.shape).copy()
        # The kink is at the margin y z = 1, or at the residual y - z = 0.
        to_kink = np.abs(self.y - Z)
        if is_classification(self.loss):
            to_kink = np.abs(1.0 - self.y * Z)
        # The mean, if so many scores lie at the kink that this share has no distance.
        near = float(np.quantile(to_kink, share)) or float(to_kink.mean())
        width = float(np.median(np.broadcast_to(high - low, Z.shape)))
        return centre, 2.0 * near / width + LEAST_PROXIMITY


class CompiledBinary(Binary):
    """A binary machine in compiled code: a row takes some 4 ns for each loop, and 50 in NumPy.

    A fit of a9a (32,561 sparse rows, hinge, C = 100, to 1e-6) takes 0.5 of the time (26 November
    2026).
    """

    def compute(
        self, rows: np.ndarray | slice, Z: np.ndarray, centre: np.ndarray, q: float
    ) -> Answers:
        """Return what the compiled loop says of some rows at scores Z."""
        weights = self.s[rows] if isinstance(self.s, np.ndarray) else np.empty(0)
        own = centre[rows] if q > 0.0 else np.empty(0)
        return answers_at(SmoothedTerms(self.loss, self.y[rows], weights, own, q, self.kinked), Z)

    def answer(
        self, rows: np.ndarray | slice, Z: np.ndarray, centre: np.ndarray, q: float
    ) -> tuple[np.ndarray, np.ndarray, ResponseSums]:
        """Return dual variables of some rows at scores Z, second derivatives of e, and sums."""
        answers = self.compute(rows, Z, centre, q)
        losses, conjugates, coupled, away = answers.sums.tolist()
        smoothed = -conjugates - coupled - 0.5 * q * away
        return answers.alpha, answers.bend, ResponseSums(losses, smoothed, conjugates)

    def dual_variables(
        self, rows: np.ndarray | slice, Z: np.ndarray, centre: np.ndarray, q: float
    ) -> np.ndarray:
        """Return the dual variables of some rows at scores Z."""
        return self.compute(rows, Z, centre, q).alpha

    def respond(
        self, rows: np.ndarray | slice, Z: np.ndarray, centre: np.ndarray, q: float
    ) -> tuple[np.ndarray, ResponseSums]:
        """Return the dual variables of some rows at scores Z, and their sums."""
        A, _, sums = self.answer(rows, Z, centre, q)
        return A, sums

    def bend(
        self, rows: np.ndarray | slice, Z: np.ndarray, A: np.ndarray, centre: np.ndarray, q: float
    ) -> np.ndarray:
        """Return the second derivatives of e: how much dual variables fall as scores rise."""
        return self.compute(rows, Z, centre, q).bend


def make_machine(problem: Problem, in_arrays: bool) -> Binary:
    """Return the machine of a problem's rows, in arrays if that is asked and the loss allows it."""
    takes_arrays = problem.is_smooth or methods_of(problem.loss).dual_step is not None
    kind = Binary if in_arrays and takes_arrays else CompiledBinary
    return kind.from_problem(problem)


class SoftmaxMachine:
    """The softmax, ``phi = log sum_k exp(z_k) - z_y``; its dual variables are ``s (e_y - p)``.

    Parameters
    ----------
    classes : int ndarray of shape (n,)
        The rows' classes, 0 to count - 1.
    s : ndarray of shape (n,) or 1.0
        Weights of the rows.
    count : int
    lengths : ndarray of shape (n,)
        ``||x_i||``.
    """

    kinked = False
    cornered = False

    def __init__(
        self, classes: np.ndarray, s: np.ndarray | float, count: int, lengths: np.ndarray
    ) -> None:
        self.classes = classes
        self.s = s
        self.columns = (count,)
        self.lengths = lengths
        self.ones = np.ones(count)

    def take(self, rows: np.ndarray | slice) -> SoftmaxMachine:
        """Return the machine of some rows."""
        return SoftmaxMachine(
            self.classes[rows], self.weights(rows), self.ones.size, self.lengths[rows]
        )

    def weights(self, rows: np.ndarray | slice) -> np.ndarray | float:
        """Return the weights of some rows; 1 if all are."""
        return self.s[rows] if isinstance(self.s, np.ndarray) else self.s

    def respond(
        self, rows: np.ndarray | slice, Z: np.ndarray, centre: np.ndarray, q: float
    ) -> tuple[np.ndarray, ResponseSums]:
        """Return the dual variables of some rows at scores Z, and their sums."""
        y = self.classes[rows]
        s = self.weights(rows)
        A, losses, entropies = softmax_response(Z, y)
        if isinstance(s, np.ndarray):
            A *= s[:, None]
        total = float(np.sum(s * losses))
        pulled_size = float(A[np.arange(y.size), y] @ self.lengths[rows])
        return A, ResponseSums(total, total, -float(np.sum(s * entropies)), pulled_size)

    def dual_variables(
        self, rows: np.ndarray | slice, Z: np.ndarray, centre: np.ndarray, q: float
    ) -> np.ndarray:
        """Return the dual variables of some rows at scores Z."""
        y = self.classes[rows]
        # a = s (e_y - p), with p = exp(z) / sum exp(z); the largest score is taken off first.
        A = np.exp(Z - Z.max(axis=1)[:, None])
        A /= -(A @ self.ones)[:, None]
        A[np.arange(y.size), y] += 1.0
        s = self.weights(rows)
        return A * s[:, None] if isinstance(s, np.ndarray) else A

    def bend(
        self, rows: np.ndarray | slice, Z: np.ndarray, A: np.ndarray, centre: np.ndarray, q: float
    ) -> np.ndarray:
        """Return ``s p`` of each rival class and 0 for the own class, as `curve` needs them."""
        y = self.classes[rows]
        bends = np.maximum(-A, 0.0)
        bends[np.arange(y.size), y] = 0.0
        return bends

    def losses(self, Z: np.ndarray) -> float:
        """Return the sum of ``s phi`` over all rows at scores Z."""
        best = Z.max(axis=1)
        mass = np.exp(Z - best[:, None]) @ self.ones
        behind = best - Z[np.arange(best.size), self.classes]
        return float(np.sum(self.s * (np.log(mass) + behind)))

    def mean_bend(self, rows: np.ndarray | slice, bends: np.ndarray) -> np.ndarray:
        """Return the mean second derivative by one class' score, ``s (1 - sum_k p_k^2) / K``."""
        s = self.weights(rows)
        # With t = s (1 - p_y): 1 - p_y^2 = (t / s) (2 - t / s), which keeps its digits if p_y is
        # nearly 1.
        rivals = bends @ self.ones
        squares = np.einsum("ik,ik->i", bends, bends)
        return np.maximum(rivals * (2.0 - rivals / s) - squares / s, 0.0) / self.ones.size

    def diagonal(self, rows: np.ndarray | slice, bends: np.ndarray) -> np.ndarray:
        """Return the second derivatives by each score: ``s p_k (1 - p_k)``."""
        y = self.classes[rows]
        s = self.weights(rows)
        found = bends.copy()
        found[np.arange(y.size), y] = bends @ self.ones
        found *= 1.0 - found / (s[:, None] if isinstance(s, np.ndarray) else s)
        return found

    def curve(self, rows: np.ndarray | slice, bends: np.ndarray, dZ: np.ndarray) -> np.ndarray:
        """Return how much dual variables fall along ``dz``: ``s (p dz - p (p . dz))``."""
        y = self.classes[rows]
        places = np.arange(y.size)
        # Differences to the score of the own class keep their digits if p_y is nearly 1.
        ahead = dZ - dZ[places, y, None]
        ahead -= (np.einsum("ik,ik->i", bends, ahead) / self.weights(rows))[:, None]
        ahead *= bends
        ahead[places, y] = -(ahead @ self.ones)
        return ahead
