"""The contract of a solver: options in a frozen object, and three methods, init, step, solution.

A solver has no loop of its own. The loop in :mod:`saddlesvm.fit.loop` drives any solver: it decides
when to ask for a certificate, when to stop, and what to record.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from saddlesvm.problem.certificate import Certificate, Evaluation, Point, relative
from saddlesvm.problem.loss import conjugate, value
from saddlesvm.problem.penalties import L2, holds_square
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.sums import dual_weights
from saddlesvm.problem.terms import Terms, weight_of
from saddlesvm.runtime.compiled import inlined, record_of
from saddlesvm.runtime.randomness import make_random

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

PERMUTATION, REPLACEMENT, CYCLIC, SUBSET = range(4)  # ways to draw rows
FINE_GAP = 1e-5  # relative gap below which float32 weights become float64; derived
COARSE_LOSS = 1e-6  # what the rounding of float32 weights can add to the loss of a row; derived
SAME_SLOPES = 1e-12  # difference up to which two slopes of an objective count as one; a guess
EPOCH_ROUNDING = 1e-9  # epochs by which rounding may miss the epoch of an event; guessed
# What rounding leaves between a dual variable and a bound, or of a sum, as a share of the weight.
AT_BOUND = 4e-16
# The running sums of an epoch, its estimate of the relative gap, and the primal objective (divided
# by C) that the estimate is relative to: the objective at the last certificate or at the last pass
# over all rows.
EPOCH_METERS = record_of("residual", "paid", "coupled", "estimate", "scale")


def empty_array() -> np.ndarray:
    """Return an empty array, for a field that a run does not need."""
    return np.empty(0)


@dataclass
class Best:
    """The best primal and the best dual point so far, and their objectives (both in the C form)."""

    w: np.ndarray = field(default_factory=lambda: np.empty(0))
    alpha: np.ndarray = field(default_factory=lambda: np.empty(0))
    primal: float = np.inf
    dual: float = -np.inf

    def keep(self, objectives: tuple[float, float], w: np.ndarray, alpha: np.ndarray) -> bool:
        """Keep copies of points that are better than before; return True if the dual point is."""
        primal, dual = objectives
        if primal < self.primal:
            self.primal = primal
            self.w = w.copy()
        higher = dual > self.dual
        if higher:
            self.dual = dual
            self.alpha = alpha.copy()
        return higher

    @property
    def relative_gap(self) -> float:
        """The relative gap between the two points."""
        return relative(self.primal - self.dual, self.primal, self.dual)


@dataclass
class State:
    """The state of a run.

    A checkpoint holds none of it but the fields that `carried` names; a continued run begins at the
    saved solution.

    Attributes
    ----------
    w : ndarray of shape (d + 1,)
        Weights in the precision of the data; the last place is the virtual feature's.
    rows_touched : int
        Row visits so far.
    epochs : float
        Row visits divided by the number of rows; a solver whose steps are no row visits counts
        passes.
    estimate : float
        The solver's own cheap estimate of the relative gap; infinite when it has none.
    estimate_is_gap : bool
        Whether the estimate is the relative gap itself.
    satisfied : bool
        Whether the solver's own stopping rule is met.
    active : int
        Rows that the solver still works on.
    change : float
        Norm of the change of w in the last pass; infinite if the solver does not compute it.
    remark : str
        What the solver did last, in words, for the trace.
    proves_itself : bool
        True if a certificate of the present solution reads no rows: the step has computed it.
    """

    # Fields, arrays and numbers, with which a run goes on from a checkpoint besides its solution. A
    # solver that names "w" among them goes on from them alone.
    carried: ClassVar[tuple[str, ...]] = ()
    w: np.ndarray
    rows_touched: int = 0
    epochs: float = 0.0
    estimate: float = np.inf
    estimate_is_gap: bool = False
    satisfied: bool = False
    active: int = 0
    change: float = np.inf
    remark: str = ""
    proves_itself: bool = False

    @property
    def handover(self) -> Any:
        """What has the weights `w` and multipliers `alpha` that another solver may begin at."""
        return self

    @property
    def heaviness(self) -> float:
        """The time of a certificate relative to that of a state of heaviness 1."""
        return 1.0

    @property
    def begins_heavily(self) -> bool:
        """True if the first certificate takes long, because nothing is kept of the start."""
        return False

    @property
    def effort(self) -> float:
        """The work so far, in visits of all rows: more than the epochs if some of them are long."""
        return self.epochs

    @property
    def is_stuck(self) -> bool:
        """True if rounding hides what is left to gain: more steps would repeat the last one."""
        return False

    @property
    def obstacle(self) -> str:
        """What stops a run that is stuck, in words."""
        return "rounding hides what is left"

    @property
    def rule(self) -> str:
        """The rule that `satisfied` speaks of, in words."""
        return "the solver's own stopping rule"

    @property
    def kernel_evaluations(self) -> int:
        """Kernel values computed so far; 0 except in the solvers of kernel machines."""
        return 0


def phase_of(state: object) -> str:
    """Return the part of a method that is at work; empty if a state has no parts."""
    phase = getattr(state, "phase", "")
    return phase if isinstance(phase, str) else ""


@dataclass
class DualState(State):
    """The state of a dual coordinate solver; `w` belongs to `alpha` after every step.

    Attributes
    ----------
    alpha : ndarray of shape (n_all,)
        Dual variables, float64.
    order : ndarray
        Row numbers in the order of the visits.
    random : ndarray of shape (1,), uint64
        The run's own generator.
    offset : ndarray of shape (1,) or (0,)
        Multiplier of the free intercept, see :func:`~saddlesvm.problem.intercepts.move_offset`;
        empty without it.
    meters : ndarray of shape (1,)
        A record with the names of `EPOCH_METERS` among its own.
    known, known_at : float
        Estimate of the relative gap from the last pass over all rows, and the epoch when it ended.
    """

    alpha: np.ndarray = field(default_factory=empty_array)
    order: np.ndarray = field(default_factory=empty_array)
    random: np.ndarray = field(default_factory=empty_array)
    offset: np.ndarray = field(default_factory=empty_array)
    meters: np.ndarray = field(default_factory=empty_array)
    position: int = 0
    known: float = np.inf
    known_at: float = 0.0


@dataclass(frozen=True)
class Budget:
    """The work that a ``step`` may do.

    Attributes
    ----------
    rows : int
        Row visits at most (a solver whose smallest unit of work is larger does a single unit).
    relative_gap : float
        The fit asks for a certificate once the solver's estimate is below this: the step may then
        end early.
    seconds : float
        Seconds at most, for solvers whose units of work are long.
    """

    rows: int
    relative_gap: float = 0.0
    seconds: float = np.inf


@inlined
def end_of_epoch(meters: np.ndarray, whole: bool) -> None:
    """Turn the sums of a pass into an estimate of the relative gap, and set them to zero.

    `meters` is an array of a single record that has the names of `EPOCH_METERS` among its own. (A
    plain record would not do: Numba confuses it with a record of another type that begins with the
    same names.)

    The estimate is relative to the size of the primal objective; so is a certificate's gap while
    the dual objective is above the negative of the primal objective. Half of v.w takes the place of
    R(w).
    """
    m = meters[0]
    if whole:
        m.scale = m.paid + 0.5 * m.coupled
    m.estimate = m.residual / abs(m.scale) if m.scale != 0.0 else np.inf
    m.residual = m.paid = m.coupled = 0.0


class PassPosition(NamedTuple):
    """Where a run stands, for kernels: its position in the pass, and its number of active rows."""

    position: int
    active: int


@dataclass(frozen=True)
class SolverBase(ABC):
    """The base class of solvers: options that print, compare, copy, pickle and can be searched.

    A solver is a frozen dataclass whose fields are its options. It has the methods ``init``,
    ``step`` and ``solution``.

    Examples
    --------
    >>> from saddlesvm import Pegasos
    >>> Pegasos(batch_size=64).get_params()["batch_size"]
    64
    """

    name: ClassVar[str] = ""
    # True if the solver takes the l1 norm beside the square; else only half the squared norm.
    any_penalty: ClassVar[bool] = False
    # True if it also takes the l1 norm without a square.
    without_square: ClassVar[bool] = False
    # True if a stopping rule of its own ends a run besides the fit's tolerance.
    ends_itself: ClassVar[Any] = False
    # True if it reads by ``problem.passes`` alone, wherever the rows are.
    over_passes: ClassVar[bool] = False

    def exhausted(self, state: Any) -> bool:
        """Return True if a run has reached a limit that is an option of the solver."""
        return False

    def needs_rows(self, problem: Problem) -> bool:
        """Return True if a run visits single rows of ``problem.X``, besides its passes."""
        return not self.over_passes

    def begins_at_weights(self, problem: Any) -> bool:
        """Return True if a run begins at the weights of a start, and takes nothing else of it."""
        return False

    @abstractmethod
    def init(self, problem: Any, seed: int, start: Any = None) -> State:
        """Make the first state, at the point `start` if it is given."""

    @abstractmethod
    def step(self, problem: Any, state: Any, budget: Budget) -> State:
        """Do a bounded amount of work; the arrays of `state` may be changed in place."""

    @abstractmethod
    def solution(self, problem: Any, state: Any) -> Any:
        """Return the point to certify: the last iterate, an average or a random iterate."""

    def last_point(self, problem: Any, state: Any) -> Any:
        """Return the point where the run stands, if the solution is the best point so far."""
        return self.solution(problem, state)

    def learn_from_certificate(self, problem: Any, state: Any, evaluation: Evaluation) -> Any:
        """Learn from a certificate, such as the weights without rounding; return the state."""
        return state

    def on_stall(self, problem: Any, state: Any) -> State | None:
        """Return a state that goes on in another way when nothing moves any more, or None."""
        return None

    def get_params(self, deep: bool = True) -> dict[str, object]:
        """Return the options by name, so that ``solver__batch_size`` works in a grid search."""
        return {option.name: getattr(self, option.name) for option in fields(self)}

    def __sklearn_clone__(self) -> SolverBase:
        return type(self)(**self.get_params())


def check_penalty(problem: Problem, solver: SolverBase) -> None:
    """Raise ValueError if the solver does not take the problem's penalty."""
    penalty = problem.penalty
    if isinstance(penalty, L2):
        return
    if not holds_square(penalty) and not solver.without_square:
        raise ValueError(
            f"the solver {solver.name!r} needs a square in the penalty, and {penalty} has none: "
            "use solver='auto' or 'columns', or the elastic net"
        )
    if not solver.any_penalty:
        raise ValueError(
            f"the solver {solver.name!r} supports penalty='l2' (half a square) only, not "
            f"{penalty}: use DCD or SDCA"
        )


def check_place(problem: Any, solver: SolverBase) -> None:
    """Raise ValueError if the solver needs more of the rows than their place has."""
    if not getattr(problem, "holds_rows", True) and solver.needs_rows(problem):
        passes = problem.passes
        raise ValueError(
            f"the solver {solver.name!r} visits rows in memory or mapped files one by one; these "
            f"are in a place of their own ({type(passes).__name__}), which supports passes over "
            "all rows only: use Newton() or Auto(), with penalty='l2'"
        )


def check_iterations(iterations: object) -> None:
    """Raise ValueError unless `iterations` is None or a whole number of at least 1."""
    if iterations is None:
        return
    if (
        not isinstance(iterations, (int, np.integer))
        or isinstance(iterations, bool)
        or iterations < 1
    ):
        raise ValueError(
            "iterations must be a whole number of at least 1, or None for no limit of its own; got "
            f"{iterations!r}"
        )


AnyDualState = TypeVar("AnyDualState", bound=DualState)


@dataclass(frozen=True)
class DualAscent(SolverBase):
    """The base class of dual coordinate solvers over rows in memory."""

    def begin(
        self,
        kind: type[AnyDualState],
        problem: Problem,
        seed: int,
        start: Point | None,
        precision: DTypeLike | None = None,
        **own: object,
    ) -> AnyDualState:
        """Return a state of this kind at zero or at the given dual point, with all rows active.

        The weights have the precision of the data if none is given; `own` are further fields.
        """
        alpha = start_alpha(problem, start)
        w = start_weights(problem, alpha, start).astype(precision or problem.dtype)
        offset = problem.intercept.multiplier(None if start is None else start.w)
        shared: dict[str, Any] = {
            "order": problem.members.copy(),
            "random": make_random(seed),
            "active": problem.members.size,
        }
        return kind(w=w, alpha=alpha, offset=offset, **shared | own)

    def solution(self, problem: Problem, state: Any) -> Point:
        """Return the last iterate."""
        return Point(state.w, state.alpha, tracks=True)

    def learn_from_certificate(self, problem: Problem, state: Any, evaluation: Evaluation) -> Any:
        """Take the rebuilt weights of a certificate over, so that rounding errors do not add up.

        Close to the optimum float32 weights are too coarse: they become float64 there (the data
        stay as they are).
        """
        alpha = state.alpha
        if problem.intercept.constrained:
            # The weights of the certificate belong to balanced dual variables, not to the state's.
            alpha = alpha[problem.members]
        elif evaluation.pull is None:
            state.w[:-1] = evaluation.coef
        else:
            state.w[:-1] = evaluation.pull
        state.w[-1] = problem.intercept.last(evaluation.intercept, state.offset, problem.C, alpha)
        state.meters["scale"] = evaluation.certificate.primal / (problem.unit * problem.C)
        if state.w.dtype != np.float64 and is_fine(problem, evaluation.certificate):
            state.w = state.w.astype(np.float64)
        return state


def is_fine(problem: Problem, certificate: Certificate) -> bool:
    """Return True if a gap is so small that float32 weights would hide it."""
    # As a share of the objective, or, if C times the losses is most of that, beside C times the
    # rounding of the losses.
    noise = COARSE_LOSS * problem.C * problem.row_sizes.weight * problem.unit
    return certificate.gap <= max(FINE_GAP * abs(certificate.primal), noise)


@inlined
def residual_and_loss(terms: Terms, i: int, a: float, z: float) -> tuple[float, float]:
    """Return a row's share of the gap, ``s phi(z) + s phi*(-a/s) + a z``, and ``s phi(z)``."""
    # The share is never negative (the inequality of Fenchel and Young).
    s = weight_of(terms.weights, i)
    paid = s * value(terms.loss, z, terms.y[i])
    return paid + conjugate(terms.loss, a, terms.y[i], s) + a * z, paid


def start_alpha(problem: Problem, start: Point | None) -> np.ndarray:
    """Return a copy of the first dual variables: of `start`, or zeros; shape (n_all,), float64."""
    if start is None or start.alpha is None:
        return np.zeros(problem.y.size)
    alpha = np.array(start.alpha, dtype=np.float64)
    if alpha.shape != problem.y.shape:
        raise ValueError(
            f"the starting dual point has shape {alpha.shape}; the problem has {problem.y.size} "
            "rows"
        )
    return alpha


def start_weights(problem: Problem, alpha: np.ndarray, start: Point | None) -> np.ndarray:
    """Return the pull ``v(alpha)``, shape (d + 1,): w itself if R is half the squared norm.

    `start` gives the free intercept, if the problem has it.
    """
    w = np.zeros(problem.n_features + 1)
    if alpha.any():
        w = dual_weights(problem, alpha)
    if start is not None and start.w is not None and problem.intercept.constrained:
        w[-1] += start.w[-1]
    return w
