"""Multinomial regression over rows in files: Newton's method with the second derivative of a sample.

A sweep reads every row once. At the weights that it looks at it gives the objective, the gradient and with it the gap
(half the squared gradient, :mod:`saddlesvm.problem.multinomial`), and it takes a sample of the rows along: a row with
a probability in proportion to ``s_i (0.1 + 1 - sum_k p_ik^2) ||x_i||``, so that there are few of those whose class is
certain, which hardly bend the objective. The weights of the sample's rows let them stand for all. Far from the optimum,
the next sweep looks at the solution of the sample's own problem in memory, tilted so that its gradient here is that of
all rows. Near to it, conjugate gradients solve the Newton equations of the sample, and what these miss of the true ones
is corrected by the moves, and what they turned of the gradient, in the sweeps before
(:mod:`saddlesvm.solvers.second_order.secants`, with the sample's inverse in its middle). A step that leads to no lower
objective is shortened.

From one sweep to the next the weights, gradients and moves are kept, and nothing of a row: there are no dual variables.

Source: Byrd, Chin, Neveitt and Nocedal (2011), "On the use of stochastic Hessian information in optimization methods
for machine learning"; Liu and Nocedal (1989), "On the limited memory BFGS method for large scale optimization".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, ClassVar, TypeAlias

import numpy as np

from saddlesvm.problem.bounds import primal_of
from saddlesvm.problem.certificate import Evaluation, Point
from saddlesvm.problem.multinomial import MultinomialProblem, Response, evaluation_at
from saddlesvm.problem.problem import Problem
from saddlesvm.rows.passes import Part
from saddlesvm.runtime.clock import time_is_up
from saddlesvm.runtime.threads import blas_for
from saddlesvm.solvers.base import Budget, State, nothing
from saddlesvm.solvers.second_order.conjugate import MODEL_FORCING, MOST_PRODUCTS, conjugate_gradients
from saddlesvm.solvers.second_order.driver import ROUNDED
from saddlesvm.solvers.second_order.secants import Secants
from saddlesvm.solvers.sweeps import FILLED, KEPT_BYTES, Sweeps, SweepState, SweepWork

CLASS_BYTES = 24  # bytes of a row of the sample for each class
FAR = 0.1  # relative gap above which a step leads to the solution of the sample's own problem
SURE = 0.1  # what a row whose class is certain counts beside one that could be of any class, when the sample is drawn
LEFT, MOST_STEPS = 1e-3, 10  # share of the sample's squared gradient that its solution leaves; Newton steps, at most
SHORTER = (0.02, 0.7)  # factor of a step that led too far, at least and at most
ENOUGH = 1e-4  # share of the predicted decrease that a step must reach
SHORTEST = 1e-5  # of step lengths
Sample: TypeAlias = list[MultinomialProblem]  # rows in memory, some in each


@dataclass
class DescentState(State):
    """What Newton's method for the softmax keeps between two passes, wherever the rows are.

    Attributes
    ----------
    gradient : ndarray
        Gradient at the weights that the step begins at.
    length, slope, primal : float
        Length of the step, the derivative along it, and the objective at its beginning, in the C form.
    steps, seed : int
        Newton steps; seed of the samples.
    """

    gradient: np.ndarray = field(default_factory=nothing)
    length: float = 0.0
    slope: float = 0.0
    primal: float = np.inf
    steps: int = 0
    seed: int = 0

    def accepts(self, primal: float, rounding: float = ROUNDED) -> bool:
        """Whether the step has lowered the objective enough; `rounding` is relative to it."""
        enough = self.primal + ENOUGH * self.length * self.slope + rounding * abs(self.primal)
        return not self.steps or primal <= enough


@dataclass
class MultinomialFilesState(SweepState, DescentState):
    """The state of a run: at the end of its last sweep; weights are kept in one row, in the layout of the rows.

    Attributes
    ----------
    w : ndarray of shape (K * (d + 1),)
        The weights that this sweep evaluates.
    base, direction : ndarray of the same shape
        The weights that the step begins at, and its direction.
    secants : Secants
        The last moves of the weights, and what they changed of the gradient.
    model : ndarray
        The weights that the last sweep evaluated; empty before the first one ends.
    sums : ndarray of shape (3,)
        Sums of the losses, the entropies and the rivals' pulls there.
    pull : ndarray
        The pull there.
    """

    base: np.ndarray = field(default_factory=nothing)
    direction: np.ndarray = field(default_factory=nothing)
    secants: Secants = field(default_factory=Secants)
    model: np.ndarray = field(default_factory=lambda: np.empty(0))
    sums: np.ndarray = field(default_factory=lambda: np.zeros(3))
    pull: np.ndarray = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True)
class MultinomialOnFiles(Sweeps):
    """Newton's method for multinomial regression over rows that are read block by block; one epoch is one sweep.

    Estimators choose this solver for such rows with ``multi_class="multinomial"``.
    """

    name: ClassVar[str] = "multinomial"
    kind: ClassVar[type[Problem]] = MultinomialProblem

    def init(self, problem: Problem, seed: int, start: Point | None = None) -> MultinomialFilesState:
        """Begin at zero, or at given weights of shape (K, d + 1); no row is read."""
        streamed = self.suited(problem)
        W = streamed.first_weights(start)
        return MultinomialFilesState(
            w=W.ravel(),
            base=np.zeros(W.size),
            gradient=np.zeros(W.size),
            direction=np.zeros(W.size),
            seed=seed,
            active=problem.members.size,
        )

    def begins_at_weights(self, problem: Problem) -> bool:
        """Whether the weights of a start are all that a run takes: its sub-problem gives nothing else."""
        return False

    def step_together(self, problems: Sequence[Problem], states: Sequence[Any], budgets: Sequence[Budget]) -> list[Any]:
        """Read one block for several problems over the same files; products with it take one thread."""
        with blas_for(0.0):
            return super().step_together(problems, states, budgets)

    def visit(self, problem: MultinomialProblem, state: MultinomialFilesState, part: Part) -> None:
        """Add up what a block's rows say at the weights, and take some of them along."""
        work, local = state.work, problem.of_part(part)
        if work.found is None:
            work.found = None, []
        before, sample = work.found
        kept = np.empty((local.y.size, problem.n_classes), dtype=np.float32)
        found = local.response(local.laid_out(state.w), kept)
        work.found = found if before is None else before.plus(found), sample
        each = problem.row_bytes + KEPT_BYTES + CLASS_BYTES * problem.n_classes
        room = FILLED * problem.rooms.kept_bytes / each * part.rows.size / problem.members.size
        weights = local.all_weights
        doubt = kept[np.arange(local.codes.size), local.codes]  # 1 - p_y
        unsure = (2.0 * doubt - np.einsum("ik,ik->i", kept, kept, dtype=np.float64)).clip(0.0)  # 1 - sum_k p_k^2
        bend = weights * (SURE + unsure) * np.sqrt(local.norms)
        total = float(bend.sum())
        odds = np.minimum(1.0, bend * (room / total)) if total > 0.0 else np.zeros(bend.size)
        random = np.random.default_rng([state.seed, state.sweeps, work.block + 1])
        chosen = np.flatnonzero(random.random(odds.size) < odds)
        if chosen.size:
            X, codes = part.X.taken(chosen), local.codes[chosen]
            sample.append(problem.of_sample(X, codes, weights[chosen] / odds[chosen], local.norms[chosen]))

    def end_of_sweep(
        self, problem: MultinomialProblem, state: MultinomialFilesState, work: SweepWork, target: float
    ) -> None:
        """Take the step or shorten it."""
        found, sample = work.found
        state.proves_itself = state.proven = True
        state.model, state.pull = state.w, found.pull.ravel()
        state.sums = np.array([found.paid, found.entropy, found.pulled])
        primal, gradient = _at(problem, state.w, found)
        state.estimate = self._certified(problem, state).certificate.relative_gap
        if not state.accepts(primal):
            self._shorten(state, primal, float(state.direction @ gradient))
            return
        if state.steps and state.length > 0.0:
            state.secants.learn(state.w - state.base, gradient - state.gradient)
        state.base, state.gradient, state.primal = state.w, gradient, primal
        state.steps += 1
        if state.estimate <= target or not sample:
            state.direction, state.slope, state.length = np.zeros_like(state.w), 0.0, 0.0
            return
        taken = sum(piece.y.size for piece in sample)
        direction = (
            _to_the_solution(sample, state.w, gradient)
            if state.estimate > FAR or (state.steps == 1 and not state.w.any())
            else nothing()
        )
        if not direction.size or float(direction @ gradient) >= 0.0:
            direction = -state.secants.inverse(state.gradient, lambda v: _solved(sample, state.base, v))
        state.active, state.remark = taken, f"Newton step {state.steps}: a sample of {taken:,} rows"
        state.direction, state.length, state.slope = direction, 1.0, float(direction @ gradient)
        state.w = state.base + direction

    @staticmethod
    def _shorten(state: MultinomialFilesState, primal: float, slope: float) -> None:
        """Look nearer; where no step is left, go back to its beginning, and forget the moves so far.

        `primal` and `slope` are those at the end of the step: with those at its beginning they give a cubic.
        """
        state.length *= float(np.clip(_lowest(state, primal, slope), *SHORTER))
        if state.length < SHORTEST:
            state.length, state.primal = 0.0, np.inf
            state.secants = Secants()
        state.w = state.base + state.length * state.direction

    @staticmethod
    def _certified(problem: MultinomialProblem, state: MultinomialFilesState) -> Evaluation:
        """The proof of the last sweep."""
        paid, entropy, pulled = state.sums.tolist()
        found = Response(paid, entropy, pulled, problem.laid_out(state.pull))
        return evaluation_at(problem, problem.each_class(state.model), found)

    def solution(self, problem: Problem, state: MultinomialFilesState) -> Point:
        """The weights of the last whole sweep, with its certificate."""
        streamed = self.suited(problem)
        if not state.model.size:
            return Point(np.array(streamed.each_class(state.w)))
        return Point(streamed.each_class(state.model), proven=self._certified(streamed, state))


def objective_of(problem: MultinomialProblem, W: np.ndarray, found: Response) -> tuple[float, np.ndarray]:
    """Objective and gradient at weights, in the layout of the rows, by what the rows respond."""
    charged = problem.regularizer.value(problem.by_class(W))
    return primal_of(problem.C, found.paid, charged), problem.charged(W) - found.pull


def _at(problem: MultinomialProblem, flat: np.ndarray, found: Response) -> tuple[float, np.ndarray]:
    """Objective and gradient at weights, by what the rows respond."""
    primal, gradient = objective_of(problem, problem.laid_out(flat), found)
    return primal, gradient.ravel()


def _lowest(state: MultinomialFilesState, primal: float, slope: float) -> float:
    """Where the cubic through objectives and slopes at both ends of a step is lowest, as a share of the step."""
    first, last = state.length * state.slope, state.length * slope
    bend = first + last - 3.0 * (primal - state.primal)
    inside = bend * bend - first * last
    if not inside >= 0.0:
        return 0.5
    root = float(np.sqrt(inside))
    below = last - first + 2.0 * root
    return 1.0 - (last + root - bend) / below if below > 0.0 else 0.5


def _of_sample(sample: Sample, w: np.ndarray) -> tuple[float, np.ndarray]:
    """Objective and gradient of the problem over a sample."""
    W = sample[0].laid_out(w)
    return _at(sample[0], w, reduce(Response.plus, (piece.response(W) for piece in sample)))


def _solved(sample: Sample, w: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """The sample's Newton equations at weights, solved by conjugate gradients."""
    one, W = sample[0], sample[0].laid_out(w)
    kept = [np.empty((piece.y.size, piece.n_classes), dtype=np.float32) for piece in sample]
    for piece, pulls in zip(sample, kept, strict=True):
        piece.response(W, pulls)

    def bent(v: np.ndarray) -> np.ndarray:
        sought = one.laid_out(v)
        found = one.charged(sought).ravel()
        for piece, pulls in zip(sample, kept, strict=True):
            found += _bent(piece, sought, pulls).ravel()
        return found

    return conjugate_gradients(bent, lambda v: v, rhs, np.zeros_like(rhs), MODEL_FORCING, MOST_PRODUCTS)[0]


def _bent(piece: MultinomialProblem, sought: np.ndarray, pulls: np.ndarray) -> np.ndarray:
    """The second derivative of a sample's losses times a direction; `pulls` has ``e_y - p`` of its rows."""
    found = np.zeros(sought.shape)
    for block, own, weights in piece.blocks(np.float64):
        rivals = -pulls[block.rows].astype(np.float64)
        places = np.arange(own.size)
        rivals[places, own] = 0.0
        # Differences to the own score keep their digits where p_y is nearly 1.
        turned = block.scores(sought)
        turned -= turned[places, own][:, None]
        turned -= np.einsum("ik,ik->i", rivals, turned)[:, None]
        turned *= weights[:, None] * rivals
        turned[places, own] = -turned.sum(axis=1)
        block.add(turned, found)
    return piece.C * found


def _to_the_solution(sample: Sample, w: np.ndarray, true: np.ndarray) -> np.ndarray:
    """From weights to nearly the solution of the sample's own problem, tilted to the gradient that is the true one."""
    begin, (primal, gradient) = w, _of_sample(sample, w)
    tilt = (true - gradient) * float(begin.any())
    primal, gradient = primal + float(tilt @ w), gradient + tilt
    least = LEFT * float(gradient @ gradient)
    for _ in range(MOST_STEPS):
        if float(gradient @ gradient) <= least or time_is_up():
            break
        direction, length = -_solved(sample, w, gradient), 1.0
        slope, value = float(direction @ gradient), np.inf
        while length > SHORTEST and not value <= primal + ENOUGH * length * slope:
            tried = w + length * direction
            value, turned = _of_sample(sample, tried)
            value, turned = value + float(tilt @ tried), turned + tilt
            length *= 0.5
        if not value < primal:
            break
        w, primal, gradient = tried, value, turned
    return w - begin
