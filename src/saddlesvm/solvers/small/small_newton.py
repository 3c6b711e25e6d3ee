"""Newton's method for small problems with smooth losses, from zero.

Several problems over the same rows take their steps together, as arrays with a row for each. The
step d solves ``(P + C Z' diag(phi'') Z) d = -(P u - u(a))`` with ``a = -phi'`` at the present
margins, which is dual feasible and so yields a bound at every step. An exact search along the line
follows, which makes the method end after finitely many steps if the derivative is piecewise linear.

:mod:`saddlesvm.solvers.newton` is the same method for problems of any size. There a fit of 100 x 2
to 2,000 x 60 takes 1.3 times as long in the mean (26 November 2026); several classes, whose steps
are taken together here, take 2.2 to 5 times.

Source: Keerthi and DeCoste (2005), "A modified finite Newton method for fast solution of large
scale linear SVMs".
"""

from __future__ import annotations

import copy
from typing import Self

import numpy as np

from saddlesvm.problem.bounds import primal_of
from saddlesvm.problem.intercepts import SEARCH_STEPS
from saddlesvm.solvers.bracket import LINE_TOLERANCE, Bracket
from saddlesvm.solvers.small.dense import RunPoints, Small, inner_by_row, multiply_rows, solve
from saddlesvm.solvers.small.runs import Runs


class NewtonRuns(Runs):
    """The points that runs of Newton's method stand at.

    Attributes
    ----------
    u : ndarray of shape (K, m)
        Weights.
    z, a, bend : ndarray of shape (K, n)
        Margins, multipliers, and second derivatives of the rows' terms.
    pull : ndarray of shape (K, m)
        ``C sum_i a_i x_i``.
    gaps : ndarray of shape (K,)
        The gaps of multipliers that are slopes: half the squared gradient.
    """

    def __init__(self, small: Small, u: np.ndarray) -> None:
        self.small = small
        self.stand_at(np.zeros((len(small.y), u.size)), np.zeros(small.y.shape))
        if not u.any():
            return
        # Weights worse than zero are left: so far out, a smooth loss may have no curvature to use.
        at_zero = copy.copy(self)
        self.stand_at(u[None], u[None] @ small.Z.T)
        if at_zero.objective() < self.objective():
            self.stand_at(at_zero.u, at_zero.z)

    def stand_at(self, u: np.ndarray, z: np.ndarray) -> None:
        """Stand at weights u with margins z."""
        self.u = u
        self.z = z
        self.a, self.bend = self.respond(z)
        self.pull = self.small.C * multiply_rows(self.a, self.small.Z)

    def respond(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows' multipliers and second derivatives at margins z."""
        small = self.small
        a = -small.s * small.methods.subgradient(small.loss, z, small.y)
        bend = small.s * small.methods.curvature(small.loss, z, small.y)
        if getattr(bend, "shape", ()) != z.shape:
            # One number for all rows.
            bend = np.broadcast_to(bend, z.shape)
        return a, bend

    def objective(self) -> float:
        """Return the objective of a single run."""
        small = self.small
        charged = 0.5 * (small.penalty @ (self.u[0] * self.u[0]))
        return primal_of(small.C, float(small.add_losses(self.z)[0]), float(charged))

    def take_step(self) -> np.ndarray:
        """Take a Newton step of each run; return the gaps of the multipliers."""
        small = self.small
        before = self.u
        # (P + C Z' diag(bend) Z) direction = pull - P u, the negative gradient on the right.
        factors = small.equations.factors(small.C * self.bend)
        direction = solve(factors, self.pull - small.penalty * before)
        dz = multiply_rows(direction, small.Z.T)
        self.search(direction, dz)
        gradient = self.u - self.pull
        self.gaps = 0.5 * inner_by_row(gradient, gradient)
        # With a free intercept the multipliers have to be balanced first: 0 asks for that.
        estimates = self.gaps
        if small.problem.intercept.constrained:
            estimates = np.zeros(1)
        return np.where((self.u != before).any(axis=1), estimates, np.nan)

    def search(self, direction: np.ndarray, dz: np.ndarray) -> None:
        """Go to the points on the lines at which the objectives are least, roughly.

        A run whose objective does not fall stays.
        """
        small = self.small
        # Derivatives of half a square along the lines: linear + tau quadratic.
        penalised = small.penalty * direction
        linear = inner_by_row(penalised, self.u)
        quadratic = inner_by_row(penalised, direction)
        slopes = linear - small.C * inner_by_row(self.a, dz)
        flat = -LINE_TOLERANCE * slopes
        lines: list[Bracket] = []
        tau = np.ones(slopes.size)
        for _ in range(SEARCH_STEPS):
            # First derivatives of all lines, each at its own place.
            z = self.z + tau[:, None] * dz
            a, bend = self.respond(z)
            derivatives = linear + tau * quadratic - small.C * inner_by_row(a, dz)
            if not lines:
                # Most full steps are good enough.
                if (np.abs(derivatives) <= flat).all():
                    break
                lines = list(map(Bracket, slopes.tolist()))

            # A bracket finds the next place by both derivatives; it stays at zero if the objective
            # does not fall at first.
            curvatures = quadratic + small.C * inner_by_row(bend * dz, dz)
            following = list(map(Bracket.follow, lines, derivatives.tolist(), curvatures.tolist()))
            if following == tau.tolist():
                break
            tau = np.array(following)
            if 0.0 in following:
                falls = tau[:, None] > 0.0
                direction = np.where(falls, direction, 0.0)
                dz = np.where(falls, dz, 0.0)
        self.u = self.u + tau[:, None] * direction
        self.z = z
        self.a = a
        self.bend = bend
        self.pull = small.C * multiply_rows(a, small.Z)

    def point(self) -> RunPoints:
        """Return the weights and the multipliers."""
        small = self.small
        if small.problem.intercept.constrained:
            return small.evaluate(self.u, self.a, self.z)
        primal = primal_of(small.C, small.add_losses(self.z), 0.5 * inner_by_row(self.u, self.u))
        return RunPoints(self.u, self.a, primal, primal - self.gaps)

    def pick(self, chosen: np.ndarray) -> Self:
        """Return some of the runs."""
        some = copy.copy(self)
        some.small = self.small.pick(chosen)
        for name in ("u", "z", "a", "bend", "pull", "gaps"):
            setattr(some, name, getattr(self, name)[chosen])
        return some

    def count_active(self) -> int:
        """Return how many rows bend."""
        return int(np.count_nonzero(self.bend))
