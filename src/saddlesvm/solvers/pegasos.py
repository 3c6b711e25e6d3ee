"""Pegasos: primal estimated sub-gradient solver.

Iteration t draws k rows A_t and takes a step of length ``eta_t = 1 / (lambda t)`` against the
sub-gradient of ``(lambda/2) ||w||^2 + (1/k) sum_{i in A_t} s_i phi_i(x_i . w)``, then, if asked,
projects onto the ball that must hold the optimum:

    w <- (1 - 1/t) w - (eta_t / k) sum_{i in A_t} s_i phi_i'(z_i) x_i,     w <- min(1, radius /
    ||w||) w

Source: Shalev-Shwartz, Singer, Srebro and Cotter (2011), "Pegasos: primal estimated sub-gradient
solver for SVM", figures 1 and 2, and section 6 for the intercept.

Any penalty R that holds half a square takes the place of ``||w||^2 / 2`` by a proximal step: the
iteration above is done by the pull v, which is minus the mean of the sub-gradients divided by
lambda, and the weights are those that minimise R less the pull, ``w = grad R*(v)``; for the elastic
net ``soft(v, l1)``, so that weights are exactly zero. For half a square w is v, and the method is
the published one. A step costs the non-zeros of its rows there too.

Source: Xiao (2010), "Dual averaging methods for regularized stochastic learning and online
optimization", with a strongly convex regulariser.

The pull is kept as ``scale * v``, so that a step on a sparse row costs its non-zeros; the sum of
all pulls is kept as ``gathered * v - u`` for the same reason (compare Bottou 2012, "Stochastic
gradient descent tricks"). An average is one of pulls, which the weights then belong to. For the
certificate the mean sub-gradient of each row over the run is gathered: a mean of dual feasible
points is dual feasible, and tends to the dual optimum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from saddlesvm.problem.certificate import Point
from saddlesvm.problem.loss import has_bounded_slopes, subgradient
from saddlesvm.problem.penalties import score
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.sums import sums_at_zero
from saddlesvm.problem.terms import Terms, weight_of
from saddlesvm.rows.layouts import axpy, dot
from saddlesvm.rows.prefetch import prefetch_next
from saddlesvm.runtime.allowed import one_of
from saddlesvm.runtime.compiled import inlined, kernel, record_of
from saddlesvm.runtime.randomness import below, draw, make_random, shuffle
from saddlesvm.solvers.base import (
    PERMUTATION,
    REPLACEMENT,
    SUBSET,
    Budget,
    SolverBase,
    State,
    check_iterations,
    empty_array,
)

# The numbers that a run carries along.
NUMBERS = record_of("scale", "gathered", "squared_norm", "intercept", "intercept_sum")
# Below it the scale is multiplied into the weights, so that large sums do not cancel; a guess.
SMALLEST_SCALE = 1e-3
# Ratio of the iterations at which two consecutive windows end; a guess.
WINDOW_GROWTH = math.sqrt(2.0)
# Longest stable step divided by the first step, for losses with unbounded slopes; a guess.
CAUTION = 2.0
SAMPLINGS = {"permutation": PERMUTATION, "replacement": REPLACEMENT, "subset": SUBSET}
CHOICES = 0x5DEECE66D  # tells the seed of random outputs from that of the rows; arbitrary
FINEST = 2**31  # different random shares; derived: more than the iterations of any run
# Relative excess of a start's length over the radius that rounding of float32 weights explains;
# derived.
BALL_SLACK = 1e-6
# Factor on the weight of earlier sub-gradients whenever the number of iterations doubles; a guess.
FORGET = 0.25


class RowDraws(NamedTuple):
    """The rows of an iteration; `slopes` and `chosen` are scratch arrays for a batch."""

    order: np.ndarray
    sampling: int
    random: np.ndarray
    slopes: np.ndarray
    chosen: np.ndarray
    position: int


class Pace(NamedTuple):
    """The lengths of the steps."""

    delay: float  # iterations by which the step sizes are put off
    radius: float  # radius of the ball that w stays in; infinite without projection
    lift: float  # squared value of the virtual feature if the intercept is free, else zero
    steepest: (
        float  # largest second derivative of a row's loss, which limits a free intercept's steps
    )


class Pulls(NamedTuple):
    """The pull ``numbers.scale * v``, and the sum of pulls ``numbers.gathered * v - u``.

    `u` is empty if no average is wanted; `numbers` is a record of `NUMBERS`.
    """

    v: np.ndarray
    u: np.ndarray
    numbers: np.ndarray


class SubGradients(NamedTuple):
    """The sub-gradients so far, one place per row: their sums, and their numbers."""

    slope_sums: np.ndarray
    visits: np.ndarray


@inlined
def draw_row(
    terms: Terms, draws: RowDraws, sums: np.ndarray, k: int, position: int
) -> tuple[int, int]:
    """Draw row k of a batch; return it with the position in the order afterwards."""
    order = draws.order
    size = order.size
    if draws.sampling == REPLACEMENT:
        return order[below(draws.random, size)], position
    if draws.sampling == SUBSET:
        # The first k + 1 places of a shuffle.
        j = k + below(draws.random, size - k)
        order[k], order[j] = order[j], order[k]
        return order[k], position
    # A permutation: a new one when the last is used up.
    if position == 0:
        shuffle(draws.random, order, size)
    prefetch_next(terms.X, order, position, size, sums, terms.y, terms.norms)
    i = order[position]
    return i, (position + 1) % size


@inlined
def shrink(pulls: Pulls, keep: float) -> None:
    """Multiply the pull by `keep`, by its scale alone while that is not small."""
    v = pulls.v
    u = pulls.u
    numbers = pulls.numbers[0]
    if keep > 0.0:
        numbers.scale *= keep
        numbers.squared_norm *= keep * keep
    else:
        v[:] = 0.0
        numbers.scale = 1.0
        numbers.squared_norm = 0.0
    # A small scale is multiplied into v, and the sum of pulls so far into u.
    if numbers.scale < SMALLEST_SCALE:
        for j in range(u.size):
            u[j] -= numbers.gathered * v[j]
        for j in range(v.size):
            v[j] *= numbers.scale
        numbers.gathered = 0.0
        numbers.scale = 1.0


@inlined
def add_to_pull(terms: Terms, pulls: Pulls, pace: Pace, i: int, c: float) -> None:
    """Add ``c x_i`` to the pull, and keep its squared norm if there is a projection."""
    numbers = pulls.numbers[0]
    if pace.radius < np.inf:
        z = numbers.scale * dot(terms.X, i, pulls.v)
        numbers.squared_norm += 2.0 * c * z + c * c * (terms.norms[i] - pace.lift)
    axpy(terms.X, i, c / numbers.scale, pulls.v)
    # u keeps gathered * v - u, the sum of the pulls before this step, as it was.
    if pulls.u.size:
        axpy(terms.X, i, c / numbers.scale * numbers.gathered, pulls.u)


@kernel
def take_steps(
    terms: Terms,
    draws: RowDraws,
    pace: Pace,
    pulls: Pulls,
    seen: SubGradients,
    iteration: int,
    iterations: int,
) -> int:
    """Do so many iterations after `iteration`; return the place in the order."""
    slopes = draws.slopes
    chosen = draws.chosen
    position = draws.position
    numbers = pulls.numbers[0]
    batch = chosen.size
    lam = 1.0 / (draws.order.size * terms.C)
    for t in range(iteration + 1, iteration + iterations + 1):
        # The sub-gradients s_i phi_i'(z_i) of the rows A_t, all at the present w.
        for k in range(batch):
            i, position = draw_row(terms, draws, seen.slope_sums, k, position)
            chosen[k] = i
            z = score(terms.penalty, terms.X, i, pulls.v, numbers.scale) + numbers.intercept
            slopes[k] = weight_of(terms.weights, i) * subgradient(terms.loss, z, terms.y[i])
            seen.slope_sums[i] += slopes[k]
            seen.visits[i] += 1.0
        # w <- (1 - 1/t) w, t put off by the delay.
        age = t + pace.delay
        shrink(pulls, 1.0 - 1.0 / age)
        # w <- w - (eta_t / k) sum_{A_t} s_i phi_i'(z_i) x_i, eta_t = 1 / (lambda t). A free
        # intercept moves apart from w, in steps of 1 / sqrt(t).
        eta = 1.0 / (lam * age * batch)
        for k in range(batch):
            if slopes[k] == 0.0:
                continue
            add_to_pull(terms, pulls, pace, chosen[k], -eta * slopes[k])
            if pace.lift > 0.0:
                slowed = max(math.sqrt(t), pace.steepest)
                numbers.intercept -= slopes[k] / (batch * slowed)
        # w <- min(1, radius / ||w||) w.
        if pace.radius < np.inf and numbers.squared_norm > pace.radius * pace.radius:
            numbers.scale *= pace.radius / math.sqrt(numbers.squared_norm)
            numbers.squared_norm = pace.radius * pace.radius
        # The sum of the iterates, for an average.
        numbers.gathered += numbers.scale
        numbers.intercept_sum += numbers.intercept
    return position


@dataclass
class PegasosState(State):
    """The state of a run: the pull ``numbers["scale"] * w``, sums for averages, the sub-gradients.

    `chosen` is a random iterate of those so far, `kept_next` the number of iterations before the
    next one that takes its place, and `choice` the generator of these numbers.

    The windows of the tail average grow by the root of two, so the current one and the one before
    it together hold the last 30 to 50 % of the iterates.
    """

    carried: ClassVar[tuple[str, ...]] = (
        "w", "u", "numbers", "slope_sums", "visits", "earlier", "first", "chosen", "iteration",
        "choice", "kept_next", "window_start", "earlier_start", "forgotten",
    )  # fmt: skip
    u: np.ndarray = field(default_factory=empty_array)
    numbers: np.ndarray = field(default_factory=empty_array)
    slope_sums: np.ndarray = field(default_factory=empty_array)
    visits: np.ndarray = field(default_factory=empty_array)
    order: np.ndarray = field(default_factory=empty_array)
    random: np.ndarray = field(default_factory=empty_array)
    earlier: np.ndarray = field(default_factory=empty_array)
    first: np.ndarray = field(default_factory=empty_array)
    chosen: np.ndarray = field(default_factory=empty_array)
    iteration: int = 0
    position: int = 0
    choice: np.ndarray = field(default_factory=empty_array)
    kept_next: int = 0
    window_start: int = 0
    earlier_start: int = 0
    forgotten: int = 0


@dataclass(frozen=True)
class Pegasos(SolverBase):
    r"""Primal estimated sub-gradient descent.

    Parameters
    ----------
    batch_size : int, default=1
        Rows per iteration, from 1 to n.
    projection : bool, default=False
        Project onto the ball of radius :math:`1 / \sqrt{\lambda}` (times the root of the mean loss
        at w = 0 for losses other than the hinge), which contains the optimum. A start outside of
        the ball is refused.
    sampling : {"permutation", "replacement", "subset"}, default="permutation"
        A new random order each epoch; independent draws, in which a batch may hold a row twice; or,
        as published, an independent batch of different rows each iteration.
    output : {"tail_average", "last", "average", "random"}, default="tail_average"
        Of a run of T iterations, which begins at w_1 (zero, or the start) and whose iteration t
        makes w_(t+1): "last", w_(T+1), as published; "average", the mean of w_1, ..., w_T, and
        "random", one of these drawn uniformly, which the theorems are about; "tail_average", the
        mean of w_(s+2), ..., w_(T+1), the last 30 to 50 % of the iterates. T is not known
        beforehand, so windows of iterates begin after 0, 1, 2, 3, 5, 8, 12, 17, ... iterations
        (after s the next one after ``floor(sqrt(2) s) + 1``), and the last two windows are
        averaged, the first of which began after s. With another penalty than half a square, the
        mean is that of the sums of sub-gradients, and the weights are computed from this mean.
    delay : float, default=0.0
        Iterations by which the step sizes are delayed: :math:`\eta_t = 1 / (\lambda (t +
        \text{delay}))`. With 0, as published, the first iteration computes margins with the start,
        and then multiplies the start by zero. To keep a start, choose about the number of
        iterations that led to it, such as those of an epoch. Losses with unbounded slopes have
        their own delay; the larger one counts.
    iterations : int, optional
        T of the paper: end after so many iterations, whatever the batch size. The fit's `max_iter`
        counts epochs.

    Examples
    --------
    >>> from saddlesvm import LinearSVC, Pegasos
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> model = LinearSVC(
    ...     solver=Pegasos(batch_size=16), C=0.01, tol=1e-2, random_state=0
    ... ).fit(notes.X, notes.y)
    >>> print(model.outcome_)
    certified
    """

    name: ClassVar[str] = "pegasos"
    any_penalty: ClassVar[bool] = True
    batch_size: int = 1
    projection: bool = False
    sampling: str = "permutation"
    output: str = "tail_average"
    delay: float = 0.0
    iterations: int | None = None

    @property
    def ends_itself(self) -> bool:
        """Return True if a run ends after a number of iterations."""
        return self.iterations is not None

    def exhausted(self, state: PegasosState) -> bool:
        """Return True if a run has done its iterations."""
        return self.iterations is not None and state.iteration >= self.iterations

    def __post_init__(self) -> None:
        if not isinstance(self.batch_size, (int, np.integer)) or self.batch_size < 1:
            raise ValueError(
                f"batch_size must be a whole number of at least 1; got {self.batch_size!r}"
            )
        one_of("sampling", self.sampling, tuple(SAMPLINGS))
        one_of("output", self.output, ("tail_average", "last", "average", "random"))
        if not 0.0 <= self.delay < np.inf:
            raise ValueError(
                f"delay must be a finite number of iterations, at least 0; got {self.delay!r}"
            )
        check_iterations(self.iterations)

    def init(self, problem: Problem, seed: int, start: Point | None = None) -> PegasosState:
        """Begin at w_1 = 0, or at the weights of `start`.

        The first iteration takes their sub-gradient, and multiplies them by zero unless the steps
        are put off.
        """
        width = problem.n_features + 1
        n = problem.members.size
        if self.batch_size > n:
            raise ValueError(
                f"batch_size = {self.batch_size} is larger than the number of rows, {n}"
            )
        radius = self.radius(problem)  # before any work, because it may refuse the penalty
        w = np.zeros(width, dtype=problem.dtype)
        intercept = 0.0
        if start is not None and start.w is not None:
            w[:] = problem.regularizer.pull_of_weights(start.w)
            # A free intercept moves apart from w.
            if problem.intercept.lift:
                intercept = problem.scale * start.w[-1]
                w[-1] = 0.0
        length = float(np.linalg.norm(w.astype(np.float64)))
        if length > radius * (1.0 + BALL_SLACK):
            raise ValueError(
                f"the starting weights have length {length:.6g}, outside of the ball of radius "
                f"{radius:.6g} that projection=True keeps w in: shorten them to this length, or "
                "use projection=False"
            )
        state = PegasosState(
            w=w,
            numbers=np.array([(1.0, 0.0, np.dot(w, w), intercept, 0.0)], NUMBERS),
            slope_sums=np.zeros(problem.y.size),
            visits=np.zeros(problem.y.size),
            order=problem.members.copy(),
            random=make_random(seed),
            active=n,
        )
        # What the outputs need besides the last iterate.
        first = np.append(w.astype(np.float64), intercept)
        if self.output in ("average", "tail_average"):
            state.u = np.zeros(width)
            state.earlier = np.zeros(width + 1)
        if self.output == "average":
            state.first = first
        if self.output == "random":
            state.chosen = first
            state.choice = make_random(seed ^ CHOICES)
        return state

    def step(self, problem: Problem, state: PegasosState, budget: Budget) -> PegasosState:
        """Do iterations over at most ``budget.rows`` rows, but at least one iteration."""
        iterations = max(1, budget.rows // self.batch_size)
        if self.iterations is not None:
            iterations = min(iterations, self.iterations - state.iteration)
        # Earlier sub-gradients weigh less whenever the number of iterations doubles.
        epoch = max(1, problem.members.size // self.batch_size)
        if state.iteration >= max(2 * state.forgotten, epoch):
            state.slope_sums *= FORGET
            state.visits *= FORGET
            state.forgotten = state.iteration
        iterations = min(iterations, max(2 * state.forgotten, epoch) - state.iteration)
        # Stop at the iterate that a random output keeps, or at the end of a window.
        if self.output == "random":
            if state.iteration == state.kept_next:
                keep_iterate(state)
            iterations = min(iterations, state.kept_next - state.iteration)
        if self.output == "tail_average":
            if state.iteration >= self._window_end(state):
                begin_window(state)
            iterations = min(iterations, self._window_end(state) - state.iteration)
        self._iterate(problem, state, iterations)
        return state

    def _iterate(self, problem: Problem, state: PegasosState, iterations: int) -> None:
        """Do so many iterations."""
        terms = problem.terms
        lift = problem.intercept.lift
        if lift:
            terms = terms._replace(X=terms.X._replace(bias=0.0))
        # Losses with unbounded slopes have a delay of their own.
        delay = max(float(self.delay), first_steps(problem))
        state.position = take_steps(
            terms,
            RowDraws(
                state.order,
                SAMPLINGS[self.sampling],
                state.random,
                np.empty(self.batch_size),
                np.empty(self.batch_size, dtype=np.int64),
                state.position,
            ),
            Pace(delay, self.radius(problem), lift, steepest_loss(problem)),
            Pulls(state.w, state.u, state.numbers),
            SubGradients(state.slope_sums, state.visits),
            state.iteration,
            iterations,
        )
        state.iteration += iterations
        state.rows_touched += iterations * self.batch_size
        state.epochs = state.rows_touched / problem.members.size

    def _window_end(self, state: PegasosState) -> int:
        """Return the iteration at which the current window of the tail average ends."""
        return int(WINDOW_GROWTH * state.window_start) + 1

    def radius(self, problem: Problem) -> float:
        """Return the radius of a ball that holds the optimum; infinite without projection."""
        if not self.projection:
            return np.inf
        if not problem.is_plain:
            raise ValueError(
                f"projection=True needs penalty='l2' (half a square); got {problem.penalty}"
            )
        # By strong duality ||w*||^2 = -C sum s_i phi_i*(-a_i/s_i) - C sum s_i phi_i(z_i), which is
        # at most C sum s_i phi_i(0); for the hinge that is 1 / lambda (theorem 1 of the paper).
        sums = sums_at_zero(problem, np.zeros(problem.y.size))
        return math.sqrt(problem.C * sums.paid)

    def solution(self, problem: Problem, state: PegasosState) -> Point:
        """Return the weights that `output` asks for, and the mean sub-gradients as a dual point."""
        pull = self._pull(state)
        weights = problem.regularizer.weights(pull[:-1])
        if problem.intercept.lift:
            weights[-1] = pull[-1] / problem.scale
        return Point(weights, mean_dual(state))

    def _pull(self, state: PegasosState) -> np.ndarray:
        """Return the pull that `output` asks for, and the free intercept last; shape (d + 2,)."""
        if self.output == "random":
            return state.chosen.copy()
        if self.output == "last" or state.iteration == state.earlier_start:
            return last_pull(state)
        total = state.earlier + sum_of_pulls(state)
        # "average" is of w_1, ..., w_T; the sum is of w_2, ..., w_(T+1).
        if state.first.size:
            total += state.first - last_pull(state)
        return total / (state.iteration - state.earlier_start)


def keep_iterate(state: PegasosState) -> None:
    """Let w_t, the t-th iterate, be the random one, and draw which one takes its place.

    Of w_1, ..., w_T each is then the random one with probability 1 / T: the next one comes after
    w_k with probability t / k.
    """
    state.chosen[:] = last_pull(state)
    t = state.iteration + 1
    share = (draw(state.choice, FINEST) + 1) / FINEST
    state.kept_next = max(t, int(t / share))


def begin_window(state: PegasosState) -> None:
    """Let the current window of the tail average become the earlier one; a new one begins."""
    state.earlier = sum_of_pulls(state)
    state.u[:] = 0.0
    state.numbers["gathered"] = 0.0
    state.numbers["intercept_sum"] = 0.0
    state.earlier_start = state.window_start
    state.window_start = state.iteration


def mean_dual(state: PegasosState) -> np.ndarray:
    """Return minus the mean sub-gradient of each row; zero for rows not visited yet."""
    zeros = np.zeros(state.visits.size)
    return -np.divide(state.slope_sums, state.visits, out=zeros, where=state.visits > 0)


def first_steps(problem: Problem) -> float:
    """Return t0, by which the step sizes are put off: ``eta_t = 1 / (lambda (t + t0))``.

    Losses with bounded sub-gradients have ``t0 = 0``, as published. With other losses, such as the
    squared ones, the steps would overshoot without bound as long as ``eta_t s phi'' ||x||^2 > 1``;
    t0 rules this out.
    """
    curvature = CAUTION * steepest_loss(problem)
    longest = problem.norms[problem.members].max()
    return float(curvature * longest * problem.members.size * problem.C)


def steepest_loss(problem: Problem) -> float:
    """Return the largest second derivative of a row's weighted loss; zero if slopes are bounded."""
    if has_bounded_slopes(problem.loss):
        return 0.0
    heaviest = problem.row_weights[problem.members].max()
    return float(problem.loss.largest_curvature() * heaviest)


def last_pull(state: PegasosState) -> np.ndarray:
    """Return the present pull in float64, followed by the free intercept."""
    pull = state.numbers["scale"] * state.w.astype(np.float64)
    return np.append(pull, state.numbers["intercept"])


def sum_of_pulls(state: PegasosState) -> np.ndarray:
    """Return the sum of the pulls since the window began, followed by that of the intercepts."""
    lazy = state.numbers["gathered"] * state.w.astype(np.float64) - state.u
    return np.append(lazy, state.numbers["intercept_sum"])
