"""The base of the methods on a cluster: problem, limits, best models, and record of rounds.

A method is a batch for the loop of fits (:func:`saddlesvm.fit.loop.drive`). All problems of a fit
share its rounds, and count as one. The methods are
:class:`~saddlesvm.cluster.one_worker.OneWorker` and
:class:`~saddlesvm.cluster.over_passes.PassRounds`.
"""

from __future__ import annotations

import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from saddlesvm.cluster.tasks import OutOfTime, Stopped, TaskLimit
from saddlesvm.fit.loop import drive
from saddlesvm.fit.outcome import Limits, Outcome, StallWatch
from saddlesvm.problem.bounds import Facts, RowSizes, Sums, largest_among, loss_sizes
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.intercepts import make_intercept
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.penalties import L2, Penalty
from saddlesvm.problem.problem import Strength
from saddlesvm.problem.regularizer import Regularizer

if TYPE_CHECKING:
    from saddlesvm.cluster.dask_engine import DaskEngine

LEAST_SECONDS = 0.01  # seconds for a task, however late it is; a guess
STALL_ROUNDS = 400  # rounds before which no run counts as stalled; a guess
# The sizes of the rows that bounds on rounding need: their number, and which are no sums.
ROW_SIZES = len(RowSizes._fields)
LARGEST = largest_among(RowSizes)


@dataclass(frozen=True)
class ClusterPlan:
    """The problems to solve, and the limits.

    Attributes
    ----------
    loss : Loss
    C : float
    n : int
        Rows of all partitions.
    problems : int
    n_features : int
    tol : float
    max_rounds : int, optional
    max_time : float, optional
    seed : int
    uses_lambda : bool
    free : bool
        True if the intercept is free of penalty; otherwise it is penalised, or absent.
    scale : float
        Value of the virtual feature; 0 without an intercept.
    penalty : Penalty
    share : float
        The factor of reported objectives, see :class:`~saddlesvm.problem.problem.Strength`.
    is_joint : bool
        True if one problem holds all classes.
    vectors : int
        Weight vectors of a problem.
    """

    loss: Loss
    C: float
    n: int
    problems: int
    n_features: int
    tol: float = 1e-4
    max_rounds: int | None = None
    max_time: float | None = None
    seed: int = 0
    uses_lambda: bool = False
    free: bool = False
    scale: float = 1.0
    penalty: Penalty = field(default_factory=L2)
    share: float = 1.0
    is_joint: bool = False
    vectors: int = 1

    @property
    def strength(self) -> Strength:
        """C, lambda and the form of reported objectives."""
        return Strength(self.C, self.n, self.uses_lambda, self.share)

    @property
    def regularizer(self) -> Regularizer:
        """The penalty, with what it charges for the intercept."""
        kind = "free" if self.free else "regularized"
        return Regularizer(self.penalty, make_intercept(kind if self.scale else "none", self.scale))

    def facts(self, sizes: np.ndarray) -> Facts:
        """Return the facts that a certificate needs, from the sizes of a problem's rows."""
        own = RowSizes(*sizes.tolist())
        return Facts(loss_sizes(self.loss, own.rows), self.C, self.regularizer, own)


@dataclass
class Solution:
    """Weights of shape (problems, d + 1), certificates, the trace, and why the fit ended."""

    W: np.ndarray
    certificates: list[Certificate]
    outcome: Outcome
    rounds: int = 0
    trace: list[dict[str, Any]] = field(default_factory=list)
    reason: str = ""

    @property
    def seconds(self) -> float:
        """Seconds of all rounds."""
        return float(self.trace[-1]["seconds"]) if self.trace else 0.0


class ClusterMethod(ABC):
    """A method under way.

    Parameters
    ----------
    plan : ClusterPlan
    engine : DaskEngine
    watch : callable, optional
        Gets the record of each round; True ends the fit.
    """

    problems: Sequence[int] = range(1)
    index: int = 0

    def __init__(
        self,
        plan: ClusterPlan,
        engine: DaskEngine,
        watch: Callable[[dict[str, object]], object] | None = None,
    ) -> None:
        self.plan = plan
        self.engine = engine
        self.watch = watch
        self.live = np.ones(plan.problems, dtype=bool)  # the problems that are not certified
        self.best_W = np.zeros((plan.problems * plan.vectors, plan.n_features + 1))
        # Certificates that say nothing, until there are models.
        form = plan.strength.form
        self.best = [Certificate(np.inf, -np.inf, form)] * plan.problems
        self.rounds = 0
        self.trace: list[dict[str, Any]] = []
        self.began = time.perf_counter()
        self.stall = StallWatch(STALL_ROUNDS)
        self.is_stuck = False
        self.end: tuple[Outcome, str] | None = None
        self.is_asked_to_stop = False
        engine.end = np.inf if plan.max_time is None else self.began + plan.max_time

    @abstractmethod
    def one_round(self) -> Outcome | None:
        """Do a round; return an outcome if every problem is proven, as far as rounding allows."""

    def run(self, stop: threading.Event | None = None) -> Solution:
        """Do rounds until the fit ends; `stop` as for :func:`~saddlesvm.fit.loop.drive`."""
        return drive(self, stop)[0]

    def advance(self, live: list[int], stop: threading.Event) -> list[ClusterMethod]:
        """Do a round of all problems that are left."""
        try:
            outcome = self.one_round()
            if outcome is Outcome.CERTIFIED:
                self.end = outcome, "every problem is certified"
            elif outcome is not None:
                self.end = outcome, "what is left of the gap is rounding"
        # Before the first model there is nothing to return, and the interrupt goes on.
        except Stopped:
            if not self.engine.has_model:
                raise
            self.end = Outcome.INTERRUPTED, "interrupted"
        except OutOfTime:
            self.end = Outcome.TIME_LIMIT, f"{self.plan.max_time:.3g} s"
        self.engine.has_model = self.has_models()
        return [self]

    def finish_step(self, stopped: bool) -> bool:
        """Return True if the fit has ended: certified, at a limit, stuck, or interrupted."""
        if self.end is None and self.trace:
            limits = Limits(self.plan.tol, self.plan.max_rounds, self.plan.max_time)
            spent = time.perf_counter() - self.began
            # Limits first; then a stall; then somebody who wants to stop.
            self.end = limits.reached_limit(self.rounds, spent, "rounds")
            if self.end is None and self.is_stuck:
                gap = self.trace[-1]["relative_gap"]
                reason = f"the gap has stayed at {gap:.2g} since round {self.rounds // 2}"
                self.end = Outcome.NO_PROGRESS, reason
        if self.end is None and stopped:
            self.end = Outcome.INTERRUPTED, "interrupted"
        if self.end is None and self.is_asked_to_stop:
            self.end = Outcome.INTERRUPTED, "asked by a callback"
        return self.end is not None

    def result_of(self, index: int) -> Solution:
        """Return the best model, and why the fit ended."""
        assert self.end is not None
        return self.solution(*self.end)

    def solution(self, outcome: Outcome, reason: str = "") -> Solution:
        """Return the best model so far."""
        return Solution(self.best_W, list(self.best), outcome, self.rounds, self.trace, reason)

    def has_models(self) -> bool:
        """Return True if every problem has a model with a certificate."""
        return all(np.isfinite(certificate.gap) for certificate in self.best)

    def certify_problem(self, k: int, sums: Sums, model: np.ndarray) -> None:
        """Keep a model and a bound of a problem if they are better; end it if they will do."""
        seen = Certificate.from_sums(self.plan.strength, sums)
        if seen.primal <= self.best[k].primal:
            self.best_W[k] = model
        self.best[k] = self.best[k].better_of(seen)
        # tol=0 asks for as much as rounds can give.
        is_enough = self.best[k].relative_gap <= self.plan.tol
        self.live[k] = not is_enough or self.plan.tol == 0.0

    def find_outcome(self) -> Outcome | None:
        """Return the outcome if nothing is left to do."""
        left = np.flatnonzero(self.live).tolist()
        if not left:
            return Outcome.CERTIFIED
        # tol=0 asks for as much as rounds can give, so rounding does not end it.
        if self.plan.tol > 0.0 and all(self.is_limited(k) for k in left):
            return Outcome.LIMITED_BY_ROUNDING
        return None

    def is_limited(self, k: int) -> bool:
        """Return True if rounding hides the rest of a problem's gap."""
        return self.best[k].is_limited_by_rounding(self.plan.tol)

    def seconds_left(self) -> float:
        """Return the seconds that are left for the fit."""
        return self.engine.end - time.perf_counter()

    def limit_for(self, tasks: int) -> TaskLimit:
        """Return how long each of so many tasks may work; they wait if there are few threads."""
        share = min(1.0, self.engine.threads / max(tasks, 1))
        return TaskLimit(self.engine.name, max(share * self.seconds_left(), LEAST_SECONDS))

    def record(self) -> None:
        """Add a round to the trace."""
        self.rounds += 1
        total = Certificate.total(self.best)
        self.is_stuck = self.stall.is_stalled(self.rounds, total) and self.plan.tol > 0.0
        row: dict[str, Any] = {
            "round": self.rounds,
            "seconds": time.perf_counter() - self.began,
            "primal": total.primal,
            "dual": total.dual,
            "gap": total.gap,
            "relative_gap": total.relative_gap,
            "live": int(self.live.sum()),
            "restarts": self.engine.restarts,
        }
        self.trace.append(row)
        self.is_asked_to_stop = bool(self.watch and self.watch(row))


def print_round(row: dict[str, Any]) -> None:
    """Print a line on standard error for a round."""
    print(
        f"round {row['round']}: relative gap {row['relative_gap']:.1e}, "
        f"{row['live']} problems left, {row['seconds']:.2f} s",
        file=sys.stderr,
    )
