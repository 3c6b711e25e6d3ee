"""Conjugate gradients over passes: each product with Newton's matrix is a pass over all rows.

If there are so many features that a matrix of them fits nowhere, a pass multiplies a direction with
the matrix ``H = R + C sum_i s_i phi_i'' x_i x_i'`` at a point. The run stops after each product,
and takes no more room than the weights. (Over rows in memory the products are made in a loop:
:func:`saddlesvm.solvers.equations.conjugate_gradients`.)

The diagonal of H, which the pass that evaluates the point yields, is the preconditioner. The
equations are solved roughly: the next evaluation tells what is left.

No pass is for an evaluation alone: it multiplies the direction, too, with which the last equations
would have gone on. The matrix at the new point is little else than the one before, so that this
direction is worth about as much as a first one: rcv1-binary, squared hinge, C = 1, to 1e-6: 53
passes, 63 without.

Source: Nocedal and Wright (2006), "Numerical optimization", algorithms 5.3 and 7.1.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from saddlesvm.solvers.base import empty_array

# Residual of the equations at their end, relative to the gradient, in the preconditioner's norm; a
# guess.
FORCING = 0.3
MOST_PRODUCTS = 100  # passes for one step, at most; a guess


@dataclass
class ProductsOverPasses:
    """The state of conjugate gradients between two passes.

    Attributes
    ----------
    solution, residual, direction : ndarray of shape (d + 1,) or (0,)
        The solution so far, what it leaves of the right hand side, and the direction to multiply
        next.
    diagonal : ndarray of shape (d + 1,) or (0,)
        The preconditioner.
    size, target : float
        The squared residual in the preconditioner's norm, and that at which the equations count as
        solved.
    iterations : int
        Products so far.
    under_way : bool
        True if the next pass is for a product alone.
    """

    solution: np.ndarray = field(default_factory=empty_array)
    residual: np.ndarray = field(default_factory=empty_array)
    direction: np.ndarray = field(default_factory=empty_array)
    diagonal: np.ndarray = field(default_factory=empty_array)
    size: float = 0.0
    target: float = 0.0
    iterations: int = 0
    under_way: bool = False

    def begin_at(
        self,
        gradient: np.ndarray,
        penalty: np.ndarray,
        diagonal: np.ndarray,
        product: np.ndarray,
    ) -> None:
        """Begin at a point, with a step along the direction that its pass has multiplied, if any.

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
        former = self.direction
        self.diagonal = diagonal + penalty
        self.solution = np.zeros_like(gradient)
        self.residual = -gradient
        self.iterations = 0
        self.restart()
        self.target = FORCING**2 * self.size
        if former.size:
            image = penalty * former + product
            bend = float(former @ image)
            if bend > 0.0:
                # The minimum along the former direction.
                self.direction = former
                self.move(float(former @ self.residual) / bend, image)
                self.restart()
        self.under_way = self.size > self.target

    def restart(self) -> None:
        """Begin anew along the preconditioned residual."""
        self.direction = self.residual / self.diagonal
        self.size = float(np.vdot(self.residual, self.direction))

    def move(self, length: float, image: np.ndarray) -> None:
        """Go along the direction, whose product with the matrix is `image`."""
        self.solution += length * self.direction
        self.residual -= length * image

    def go_on(self, penalty: np.ndarray, product: np.ndarray) -> None:
        """Go on with the product of the direction and the rows' part of H."""
        image = penalty * self.direction + product
        bend = float(np.vdot(self.direction, image))
        self.iterations += 1
        if not bend > 0.0:
            self.under_way = False
            return
        # The minimum along the direction; then the next one, conjugate to the earlier ones.
        self.move(self.size / bend, image)
        leading = self.residual / self.diagonal
        before = self.size
        self.size = float(np.vdot(self.residual, leading))
        self.direction *= self.size / before
        self.direction += leading
        self.under_way = self.size > self.target and self.iterations < MOST_PRODUCTS
