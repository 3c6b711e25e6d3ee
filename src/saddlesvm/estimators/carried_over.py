"""Predictions of the next weights along C: further on, the way that the last ones went.

Differences between weights change slowly along C: those between a fold and all rows at the same C, and those between
one C and the next. The last difference, grown as it last grew, leads closer to the next weights than any earlier
weights are. A fold's fit must not begin at the weights of all rows: those that judge the fold are among them, and what
is near to such weights does better on those rows than it should.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

GROWTH = 0.75  # exponent of the last growth of a difference: growth itself falls along C
FIRST_GROWTH = 0.5  # exponent of the growth of C, where there was one difference only

Weights = tuple[np.ndarray, np.ndarray]  # of shape (k, d), and intercepts of shape (k,)


class Difference(NamedTuple):
    """Between the weights, shape (k, d), and the intercepts, shape (k,), of two models; the first is for C."""

    C: float
    coef: np.ndarray
    intercept: np.ndarray


class CarriedOver:
    """Differences along C, of which the last two count."""

    def __init__(self) -> None:
        self.seen: list[Difference] = []

    def learn(self, model: Any, beside: Any) -> None:
        """Take in the next difference, between a model and the one that it is compared with."""
        if np.shape(model.coef_) != np.shape(beside.coef_):  # a fold may lack a class
            self.seen = []
            return
        apart = Difference(model.C, model.coef_ - beside.coef_, model.intercept_ - beside.intercept_)
        self.seen = [*self.seen[-1:], apart]

    def beyond(self, beside: Any, C: float) -> Weights | None:
        """The model predicted for C, from a model to compare with; None where nothing is known."""
        if not self.seen:
            return None
        last = self.seen[-1]
        growth = np.full(len(last.coef), (C / last.C) ** FIRST_GROWTH)
        if len(self.seen) > 1:
            before, now = (np.einsum("kj,kj->k", one.coef, one.coef) for one in self.seen)
            known = (before > 0.0) & (now > 0.0)
            ratio = np.divide(now, before, where=known, out=np.ones_like(now))
            growth = np.minimum(ratio ** (0.5 * GROWTH), C / last.C)
        return beside.coef_ + growth[:, None] * last.coef, beside.intercept_ + growth * last.intercept
