"""Joint problems whose rows are read block by block, and certificates that need no extra pass over the data.

As in :mod:`saddlesvm.problem.on_files`, a sweep over the blocks proves the weights that it began with by the dual point
that it ends with, and reads nothing for it. For multinomial regression one reading gives objective, gradient and proof.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from saddlesvm.problem.certificate import Certificate, Evaluation, Point, evaluate
from saddlesvm.problem.crammer_singer import SIZED_VALUES, JointProblem, dual_sizes, make_joint_problem, rounded
from saddlesvm.problem.joint_losses import BEST_RIVAL, SOFTMAX, JointLoss
from saddlesvm.problem.multinomial import NOT_KEPT, ClassSums, MultinomialProblem, Response, evaluate_multinomial
from saddlesvm.problem.on_files import JudgedPoint, Rooms, StreamedProblem, evaluation_of_sweep
from saddlesvm.problem.proven_sums import Sums, objectives
from saddlesvm.problem.rescaling import Candidate, candidates
from saddlesvm.problem.rounding import radii
from saddlesvm.problem.terms import weights_at
from saddlesvm.rows.class_rows import add_combinations, by_class, new_weights, weights_shape
from saddlesvm.rows.files import BlockReader
from saddlesvm.rows.layouts import Rows
from saddlesvm.rows.passes import Part
from saddlesvm.runtime.threads import blas_for

FACTORS = (0.0, *(2.0**k for k in range(-8, 3)))  # of a model that ends early, among which the best is looked for


@dataclass(frozen=True, eq=False)
class StreamedJointProblem(JointProblem, StreamedProblem):
    """A joint problem over rows in files; class numbers are kept in as few bytes as they need."""

    in_memory: ClassVar[type[JointProblem]] = JointProblem

    @property
    def codes(self) -> np.ndarray:
        """Class numbers as whole numbers."""
        return self.y

    @property
    def asks_margins(self) -> bool:
        """Whether the margins of all rows are computed as they are read: no, their scores are when they are visited."""
        return False

    def of_part(self, part: Part) -> Any:
        """The problem of the rows of a pass' part."""
        weights = part.of(self.weights) if self.weights.size else self.weights
        return self._over(part.X, part.of(self.y), weights, part.of(self.norms), part.rows)

    def matrix(self, flat: np.ndarray) -> np.ndarray:
        """Weights that are kept in one row, in the layout of the rows: a view."""
        return flat.reshape(weights_shape(self.X, self.n_classes))

    def each_class(self, flat: np.ndarray) -> np.ndarray:
        """Weights that are kept in one row, as shape (K, d + 1): a view."""
        return by_class(self.X, self.matrix(flat))

    def running_weights(self, alpha: np.ndarray) -> np.ndarray:
        """The pull of dual variables as a solver keeps it: in one row, laid out as the rows are; zeros are not read."""
        found = new_weights(self.X, self.n_classes, np.float64)
        if alpha.any():
            by_class(self.X, found)[:] = pull_on_files(self, alpha)
        return found.ravel()

    def judged(self, v: np.ndarray, paid: float, conjugates: float, w: np.ndarray, alpha: np.ndarray) -> Evaluation:
        """The weights v with their own losses against the bound of a dual point with weights w; a quick estimate.

        Both weights are kept in one row.
        """
        V, W = self.each_class(v), self.each_class(w)
        sums = Sums(paid, conjugates, self.regularizer.value(V), self.regularizer.conjugate(W))
        certificate = Certificate.of(self.strength, sums)
        return Evaluation(V[:, :-1].copy(), V[:, -1] * self.scale, alpha, certificate, exact=False)  # type: ignore[arg-type]

    def as_rows_have(self, W: np.ndarray) -> np.ndarray:
        """A copy of weights of shape (K, d + 1) in the layout of the rows."""
        found = new_weights(self.X, self.n_classes, np.float64)
        by_class(self.X, found)[:] = W
        return found

    def take_over(self, duals: Any, former_C: float) -> np.ndarray:
        """Fill the solver's dual variables with those of an earlier fit, made feasible, some rows at a time.

        `duals`, in the C form, has shape (K, n_all), dense or sparse; for two classes it may be their difference,
        shape (1, n_all).
        """
        given = duals.T.tocsr() if sparse.issparse(duals) else duals.T
        size = max(1, SIZED_VALUES // self.n_classes)
        for start in range(0, self.y.size, size):
            part = slice(start, min(start + size, self.y.size))
            some = given[part].toarray() if sparse.issparse(given) else given[part]
            some = some if some.shape[1] > 1 else some * [[-0.5, 0.5]]
            inside = self.members[slice(*np.searchsorted(self.members, [part.start, part.stop]))] - part.start
            weights = weights_at(self.weights, part)
            local = self._over(self.X, self.y[part], weights, self.norms[part], inside)
            self.duals[part] = local.feasible(some / former_C)
        return self.duals


def make_streamed_joint_problem(
    X: Rows,
    codes: np.ndarray,
    n_classes: int,
    loss: Any,
    joint: JointLoss = BEST_RIVAL,
    *,
    reader: BlockReader,
    rooms: Rooms,
    kind: type[StreamedJointProblem] = StreamedJointProblem,
    **options: Any,
) -> StreamedJointProblem:
    """Assemble a problem; `options` are those of :func:`~saddlesvm.problem.problem.make_problem`."""
    given: dict[str, Any] = {"kind": kind.in_memory, "norms": reader.norms}
    whole = make_joint_problem(X, codes, n_classes, loss, joint, **given, **options)
    y = whole.y.astype(np.int16 if n_classes < 2**15 else np.int32)
    return whole.as_kind(kind, reader=reader, rooms=rooms, y=y)


def losses_of(problem: JointProblem, W: np.ndarray, factors: tuple[float, ...] = (1.0,)) -> np.ndarray:
    """``sum s_i Phi`` at multiples of W, in the layout of the rows, shape (factors,)."""
    found = np.zeros(len(factors))
    with blas_for(0.0):
        for block, own, weights in problem.blocks(np.float64):
            scores = block.scores(W)
            for k, factor in enumerate(factors):
                found[k] += float(weights @ problem.joint.values(factor * scores, own))
    return found


def paid_on_files(problem: StreamedJointProblem, W: np.ndarray, factors: tuple[float, ...] = (1.0,)) -> np.ndarray:
    """The same over all rows of the files, by one reading."""
    return sum(problem.passes.each(lambda part: losses_of(problem.of_part(part), W, factors)), np.zeros(len(factors)))


def pull_on_files(problem: StreamedJointProblem, alpha: np.ndarray) -> np.ndarray:
    """``w_k(alpha)`` in float64, shape (K, d + 1), by one reading."""
    W = new_weights(problem.X, problem.n_classes, np.float64)
    for _ in problem.passes.each(lambda part: add_combinations(part.X, part.rows, part.of(alpha), W)):
        pass
    W *= problem.C
    return np.ascontiguousarray(by_class(problem.X, W))


def evaluate_streamed_joint(
    problem: StreamedJointProblem, point: Point, *, exact: bool = True, given_offset: bool = False
) -> Evaluation:
    """The sweep's own figures for a quick estimate; where small enough, a proof of them by one pass over the rows; a
    certificate of the last iterate otherwise. A point without dual variables has the bound of zeros."""

    def proven(judged: JudgedPoint) -> Evaluation:
        assert judged.alpha is not None
        certificate = _certificate(problem, judged.model, judged.paid, judged.alpha)
        return replace(judged.judged, certificate=certificate, exact=True)

    swept = evaluation_of_sweep(point, exact, proven)
    if swept is not None:
        return swept
    alpha = np.broadcast_to(0.0, (problem.y.size, problem.n_classes)) if point.alpha is None else point.alpha
    W = pull_on_files(problem, alpha) if point.w is None else np.asarray(point.w, dtype=np.float64)
    own = problem.as_rows_have(W)
    paid = float(paid_on_files(problem, own)[0])
    certificate = _certificate(problem, W, paid, alpha, point.alpha is not None)
    return Evaluation(W[:, :-1].copy(), W[:, -1] * problem.scale, alpha, certificate)  # type: ignore[arg-type]


def _certificate(
    problem: StreamedJointProblem, W: np.ndarray, paid: float, alpha: np.ndarray, pulls: bool = True
) -> Certificate:
    """The proof of weights, shape (K, d + 1), with their losses, by a dual point whose weights a reading gives."""
    pull = pull_on_files(problem, alpha) if pulls else np.zeros((1, 1))
    sizes, regularizer = dual_sizes(problem, alpha), problem.regularizer
    sums = Sums(paid, sizes.conjugates, regularizer.value(W), regularizer.conjugate(pull))
    return Certificate.of(problem.strength, rounded(problem, sums, W, sizes))


@candidates.register(StreamedJointProblem)
def _multiples(problem: StreamedJointProblem, model: Evaluation | None) -> Iterator[Candidate]:
    """Some multiples of a model, by one reading for all."""
    if model is None:
        return
    W = np.column_stack([model.coef, np.asarray(model.intercept) / (problem.scale or 1.0)])
    own = problem.as_rows_have(W)
    for factor, paid in zip(FACTORS, paid_on_files(problem, own, FACTORS).tolist(), strict=True):
        sums = Sums(paid, 0.0, problem.regularizer.value(factor * W), 0.0)
        yield objectives(problem.C, sums)[0], Point(w=factor * W)


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

evaluate.register(StreamedJointProblem, evaluate_streamed_joint)
evaluate.register(StreamedMultinomialProblem, evaluate_multinomial)
