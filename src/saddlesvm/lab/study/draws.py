"""The solvers' random numbers in plain Python: the same seed gives the same draws."""

from __future__ import annotations

from typing import Any

MASK = 2**64 - 1


class Draws:
    """A twin of the generator that a solver seeds with `seed`: splitmix64 (Steele, Lea and Flood 2014).

    Parameters
    ----------
    seed : int

    Examples
    --------
    >>> from saddlesvm.lab.study import Draws
    >>> draws = Draws(0)
    >>> [draws.below(10) for _ in range(5)]
    [8, 4, 0, 9, 1]
    >>> order = [0, 1, 2, 3]
    >>> draws.shuffle(order)
    >>> sorted(order)
    [0, 1, 2, 3]
    """

    def __init__(self, seed: int) -> None:
        self.state = seed & MASK

    def bits(self) -> int:
        """The next 64 random bits."""
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def below(self, n: int) -> int:
        """A random integer from 0 to n - 1, for n below 2^32."""
        return ((self.bits() >> 32) * n) >> 32

    def shuffle(self, items: Any) -> None:
        """Bring a list or an array into random order, in place (Fisher and Yates)."""
        for k in range(len(items) - 1, 0, -1):
            j = self.below(k + 1)
            items[k], items[j] = items[j], items[k]
