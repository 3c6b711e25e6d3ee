"""Newton's equations over more features than a matrix of them fits anywhere: conjugate gradients, a product a pass.

A pass over all rows multiplies a direction with the matrix ``H = R + C sum_i s_i phi_i'' x_i x_i'`` at a point, which
takes no more room than the direction itself. The diagonal of H, which the look at the point tells, is the
preconditioner. The equations are solved roughly: the next look tells what is left.

No pass is for a look alone: it multiplies the direction, too, with which the last equations would have gone on. The
matrix at the new point is little else than the one before, so that this direction is worth about as much as a first
one: rcv1-binary, squared hinge, C = 1, to 1e-6: 53 passes, 63 without.

Source: Nocedal and Wright (2006), "Numerical optimization", algorithms 5.3 and 7.1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from saddlesvm.runtime.durable import Group, growing
from saddlesvm.solvers.base import nothing
from saddlesvm.solvers.second_order.row_statistics import Ask

FORCING = 0.3  # residual of the equations at their end, relative to the gradient, in the preconditioner's norm
MOST_PRODUCTS = 100  # passes for one step, at most


@dataclass
class Inner(Group):
    """Conjugate gradients between two passes.

    Attributes
    ----------
    under_way : bool
        The next pass is for a product alone.
    products : int
        Passes for the step under way.
    step, residual, direction, diagonal : ndarray of shape (d + 1,) or (0,)
        The solution so far, what it leaves of the right hand side, the direction to multiply next, and the
        preconditioner.
    size, target : float
        The squared residual in the preconditioner's norm, and that at which the equations count as solved.
    """

    under_way: bool = False
    products: int = 0
    step: np.ndarray = growing()
    residual: np.ndarray = growing()
    direction: np.ndarray = growing()
    diagonal: np.ndarray = growing()
    size: float = 0.0
    target: float = 0.0

    def ask(self, at: np.ndarray, back: np.ndarray) -> Ask:
        """The question for the next pass: a product at the point `at`, and all else there unless under way."""
        return Ask(at, nothing() if self.under_way else back, share=0.0, along=self.direction, alone=self.under_way)

    def begin(self, gradient: np.ndarray, penalty: np.ndarray, diagonal: np.ndarray, product: np.ndarray) -> None:
        """Begin at a new point, with the step along the direction that its look has multiplied, if any.

        Parameters
        ----------
        gradient : ndarray of shape (d + 1,)
        penalty : ndarray of shape (d + 1,)
            The diagonal of R, positive.
        diagonal : ndarray of shape (d + 1,)
            Of the rows' part of H.
        product : ndarray of shape (d + 1,) or (0,)
            The rows' part of H times the direction.
        """
        self.diagonal, self.products, self.under_way = diagonal + penalty, 0, True
        self.step, self.residual = np.zeros(gradient.size), -gradient
        self.target = FORCING**2 * float(gradient @ (gradient / self.diagonal))
        if self.direction.size:
            image = penalty * self.direction + product
            bend = float(self.direction @ image)
            if bend > 0.0:
                self._move(float(self.direction @ self.residual) / bend, image)
        self.direction = self.residual / self.diagonal
        self.size = float(self.residual @ self.direction)
        self.under_way = self.size > self.target

    def learn(self, penalty: np.ndarray, product: np.ndarray) -> None:
        """Go on with the product of the direction and the rows' part of H."""
        image = penalty * self.direction + product
        bend = float(self.direction @ image)
        if bend > 0.0:
            self._move(self.size / bend, image)
        leading = self.residual / self.diagonal
        size, before = float(self.residual @ leading), self.size
        self.size, self.products = size, self.products + 1
        self.direction = leading + (size / before) * self.direction
        self.under_way = size > self.target and bend > 0.0 and self.products < MOST_PRODUCTS

    def _move(self, length: float, image: np.ndarray) -> None:
        """Go along the direction, whose product with H is `image`."""
        self.step = self.step + length * self.direction
        self.residual = self.residual - length * image

    def fall(self, gradient: np.ndarray) -> float:
        """By how much the step lets the quadratic model fall."""
        return 0.5 * float(self.step @ (self.residual - gradient))
