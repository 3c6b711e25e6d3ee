"""Multinomial regression over rows that are read block by block: one reading gives objective, gradient and proof."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from saddlesvm.problem.certificate import evaluate
from saddlesvm.problem.joint_losses import SOFTMAX
from saddlesvm.problem.joint_on_files import StreamedJointProblem, make_streamed_joint_problem
from saddlesvm.problem.multinomial import (
    NOT_KEPT,
    ClassSums,
    MultinomialProblem,
    Response,
    evaluate_multinomial,
)
from saddlesvm.problem.rounding import radii
from saddlesvm.rows.layouts import Rows
from saddlesvm.runtime.threads import blas_for


@dataclass(frozen=True, eq=False)
class StreamedMultinomialProblem(MultinomialProblem, StreamedJointProblem):
    """Multinomial regression over rows in files."""

    in_memory: ClassVar[type[MultinomialProblem]] = MultinomialProblem

    @property
    def lengths(self) -> np.ndarray:
        """As of any problem, anew each time: squared norms are known once their block has been read."""
        return radii(self.norms)

    @cached_property
    def class_sums(self) -> ClassSums:
        """Sums over the rows of each class, by a reading of its own."""
        found = list(self.passes.each(lambda part: self.of_part(part).class_sums))
        return ClassSums(np.sum([one.weights for one in found], axis=0), np.sum([one.own for one in found], axis=0))

    def response(self, W: np.ndarray, kept: np.ndarray = NOT_KEPT, dtype: Any = np.float64) -> Response:
        """One reading of all rows at the weights W, in the layout of the rows; no probabilities are kept."""
        with blas_for(0.0):
            found = list(self.passes.each(lambda part: self.of_part(part).response(W, NOT_KEPT, dtype)))
        return total_response(found)

    def of_sample(self, X: Rows, codes: np.ndarray, weights: np.ndarray, norms: np.ndarray) -> MultinomialProblem:
        """The problem of some rows, X in memory, with weights that let them stand for all."""
        found = self._over(X, codes, weights, norms, np.arange(codes.size, dtype=np.int32))
        return replace(found, intercept=self.intercept)


def total_response(found: list[Response]) -> Response:
    """What several parts of the rows respond together."""
    paid, entropy = sum(one.paid for one in found), sum(one.entropy for one in found)
    return Response(paid, entropy, sum(one.pulled for one in found), np.sum([one.pull for one in found], axis=0))


make_streamed_multinomial_problem = partial(make_streamed_joint_problem, joint=SOFTMAX, kind=StreamedMultinomialProblem)

evaluate.register(StreamedMultinomialProblem, evaluate_multinomial)
