"""Multinomial regression over rows that are read block by block: one reading gives objective, gradient and proof."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from saddlesvm.problem.certificate import Evaluation, Point, evaluate
from saddlesvm.problem.joint_on_disk import StreamedJointProblem
from saddlesvm.problem.multinomial import (
    NOT_KEPT,
    ClassSums,
    MultinomialProblem,
    Response,
    evaluate_multinomial,
    make_multinomial_problem,
)
from saddlesvm.problem.on_disk import ProvenPoint, Rooms
from saddlesvm.problem.rounding import radii
from saddlesvm.rows.files import BlockReader
from saddlesvm.rows.layouts import Rows
from saddlesvm.rows.passes import Part
from saddlesvm.runtime.threads import blas_for


@dataclass(frozen=True, eq=False)
class StreamedMultinomialProblem(MultinomialProblem, StreamedJointProblem):
    """Multinomial regression over rows in files."""

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

    def of_part(self, part: Part) -> MultinomialProblem:
        """The problem of the rows of a pass' part."""
        found = super().of_part(part)
        assert isinstance(found, MultinomialProblem)
        return found

    def of_sample(self, X: Rows, codes: np.ndarray, weights: np.ndarray, norms: np.ndarray) -> MultinomialProblem:
        """The problem of some rows, X in memory, with weights that let them stand for all."""
        found = self._over(X, codes, weights, norms, np.arange(codes.size, dtype=np.int32))
        return replace(found, intercept=self.intercept)

    def _over(
        self, X: Rows, y: np.ndarray, weights: np.ndarray, norms: np.ndarray, members: np.ndarray
    ) -> MultinomialProblem:
        plain = super()._over(X, y, weights, norms, members)
        return MultinomialProblem(**{column.name: getattr(plain, column.name) for column in fields(plain)})


def total_response(found: list[Response]) -> Response:
    """What several parts of the rows respond together."""
    paid, entropy = sum(one.paid for one in found), sum(one.entropy for one in found)
    return Response(paid, entropy, sum(one.pulled for one in found), np.sum([one.pull for one in found], axis=0))


def make_streamed_multinomial_problem(
    X: Rows, codes: np.ndarray, n_classes: int, loss: Any, *, reader: BlockReader, rooms: Rooms, **options: Any
) -> StreamedMultinomialProblem:
    """Assemble a problem; `options` are those of :func:`~saddlesvm.problem.problem.make_problem`."""
    whole = make_multinomial_problem(X, codes, n_classes, loss, norms=reader.norms, **options)
    given = {column.name: getattr(whole, column.name) for column in fields(MultinomialProblem)}
    given["y"] = whole.y.astype(np.int16 if n_classes < 2**15 else np.int32)
    return StreamedMultinomialProblem(reader=reader, rooms=rooms, **given)


def evaluate_streamed_multinomial(
    problem: StreamedMultinomialProblem, point: Point, *, exact: bool = True, given_offset: bool = False
) -> Evaluation:
    """What a sweep has proven, or a reading at given weights."""
    return point.proven if isinstance(point, ProvenPoint) else evaluate_multinomial(problem, point)


evaluate.register(StreamedMultinomialProblem, evaluate_streamed_multinomial)
