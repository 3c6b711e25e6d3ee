"""The softmax of rows on a device: scores, probabilities and their products stay there.

The formulas are those of :class:`~saddlesvm.solvers.machines.SoftmaxMachine`, for a dual variable
``A_ik = s_i (1[k = y_i] - p_ik)`` of row i and class k, with probabilities p and row weights s.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saddlesvm.rows.array_libraries import copy_to_device, is_torch, namespace_of
from saddlesvm.rows.device import DeviceBlocks
from saddlesvm.rows.device_array import DeviceArray, number_like
from saddlesvm.solvers.machines import ResponseSums, SoftmaxMachine


class DeviceSoftmax(SoftmaxMachine):
    """:class:`~saddlesvm.solvers.machines.SoftmaxMachine` on a device.

    The own class of a row is the true place of a row of truth values: libraries differ in how they
    pick single places, but all choose between two arrays.

    Parameters
    ----------
    place : DeviceBlocks
        The rows.
    classes, s, count, lengths
        As for the base class, in memory.
    """

    def __init__(
        self,
        place: DeviceBlocks,
        classes: np.ndarray,
        s: np.ndarray | float,
        count: int,
        lengths: np.ndarray,
    ) -> None:
        super().__init__(classes, s, count, lengths)
        self.place = place
        self.xp = namespace_of(place.array)
        # Copies on the device: the numbers of the classes, and the facts of each row.
        self.numbers = copy_to_device(np.arange(count), place.array)
        self.classes_there = copy_to_device(classes.astype(np.int64), place.array)
        self.lengths_there = copy_to_device(lengths, place.array)
        if isinstance(s, float):
            self.s_there = number_like(s, place.array)
        else:
            self.s_there = copy_to_device(s, place.array)

    def take(self, rows: np.ndarray | slice) -> DeviceSoftmax:
        """Return the machine of some rows."""
        own = self.lengths[rows]
        return DeviceSoftmax(
            self.place, self.classes[rows], self.weights(rows), self.ones.size, own
        )

    def is_own(self, rows: slice) -> Any:
        """Return which scores are those of the rows' own classes, shape (m, K)."""
        return self.classes_there[rows][:, None] == self.numbers[None, :]

    def weights_of(self, rows: slice) -> Any:
        """Return the weights of some rows on the device; the number 1 if all are."""
        return self.s_there if isinstance(self.s, float) else self.s_there[rows]

    def weights_in_columns(self, rows: slice) -> Any:
        """Return the weights of some rows as a column of shape (m, 1); the number 1 if all are."""
        weights = self.weights_of(rows)
        return weights if isinstance(self.s, float) else weights[:, None]

    def weights_by_class(self, rows: slice) -> Any:
        """Return the weight of each row in the column of its own class, and zeros."""
        zero = number_like(0.0, self.place.array)
        return self.xp.where(self.is_own(rows), self.weights_in_columns(rows), zero)

    def keep(self, condition: Any, values: Any) -> Any:
        """Return values where a condition holds, and zero elsewhere."""
        return self.xp.where(condition, values, self.xp.zeros_like(values))

    def add(self, values: Any) -> Any:
        """Return the sums over the classes."""
        return self.xp.sum(values, axis=1)

    def respond(self, rows: Any, Z: Any, centre: np.ndarray, q: float) -> tuple[Any, ResponseSums]:
        """Return the dual variables of some rows at scores Z, and their sums."""
        xp = self.xp
        scores = Z.values if isinstance(Z, DeviceArray) else copy_to_device(Z, self.place.array)
        own = self.is_own(rows)
        s = self.weights_of(rows)

        # 1. Probabilities, as in problem.joint_losses.softmax_response: the best class has the
        # share 1, and the sum of the others keeps its digits if they are small.
        is_best = xp.argmax(scores, axis=1)[:, None] == self.numbers[None, :]
        largest = xp.amax if is_torch(scores) else xp.max
        behind = scores - largest(scores, axis=1)[:, None]
        shares = xp.exp(behind)
        rest = self.add(self.keep(~is_best, shares))

        # 2. The loss log sum_k exp(z_k) - z_y, and the entropy of p, which is minus the conjugate.
        log_mass = xp.log1p(rest)
        losses = log_mass - self.add(self.keep(own, behind))
        entropies = log_mass - self.add(shares * behind) / (1.0 + rest)

        # 3. Dual variables: minus the probabilities of the rivals, and their sum for the own class.
        A = -self.keep(~own, shares) / (1.0 + rest)[:, None]
        own_A = -self.add(A)
        A = xp.where(own, own_A[:, None], A)
        A = A * self.weights_in_columns(rows)

        # 4. The sums over the rows.
        total = float(xp.sum(s * losses))
        pulled_size = float(xp.sum(s * own_A * self.lengths_there[rows]))
        sums = ResponseSums(total, total, -float(xp.sum(s * entropies)), pulled_size)
        return DeviceArray(A), sums

    def dual_variables(self, rows: Any, Z: Any, centre: np.ndarray, q: float) -> Any:
        """Return the dual variables of some rows at scores Z."""
        return self.respond(rows, Z, centre, q)[0]

    def bend(self, rows: Any, Z: Any, A: Any, centre: np.ndarray, q: float) -> Any:
        """Return ``s p`` of each rival class and 0 for the own class, as `curve` needs them."""
        return DeviceArray(-self.keep(~self.is_own(rows), A.values))

    def diagonal(self, rows: Any, bends: Any) -> Any:
        """Return the second derivatives by each score: ``s p_k (1 - p_k)``."""
        rivals = self.add(bends.values)
        found = self.xp.where(self.is_own(rows), rivals[:, None], bends.values)
        return DeviceArray(found * (1.0 - found / self.weights_in_columns(rows)))

    def curve(self, rows: Any, bends: Any, dZ: Any) -> Any:
        """Return how much dual variables fall along ``dz``: ``s (p dz - p (p . dz))``."""
        own = self.is_own(rows)
        # Differences to the score of the own class keep their digits if p_y is nearly 1.
        ahead = dZ.values - self.add(self.keep(own, dZ.values))[:, None]
        ahead = ahead - (self.add(bends.values * ahead) / self.weights_of(rows))[:, None]
        ahead = ahead * bends.values
        return DeviceArray(self.xp.where(own, -self.add(ahead)[:, None], ahead))
