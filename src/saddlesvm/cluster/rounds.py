"""The rounds: every partition proposes a change, and the round takes a share of it that never lowers a dual objective.

A round sends w to the partitions and gets back the sum of their proposals and a few other sums, from which it computes
the certificate of the point that it began with. An :class:`~saddlesvm.cluster.engine.Engine` carries out the round, by
tasks of a cluster or in one process; nothing here knows where the rows are.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from saddlesvm.cluster.engine import DualsLost, Engine, Late, Stopped
from saddlesvm.cluster.part import Order, Report, RoundSums
from saddlesvm.cluster.tasks import Answer, Until, whole
from saddlesvm.fit.loop import drive
from saddlesvm.fit.outcome import Limits, Outcome, StallWatch
from saddlesvm.problem.bounds import Facts, PointSizes, RowSizes, Sums, loss_sizes, summed
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.intercepts import make_intercept
from saddlesvm.problem.joint_losses import JointLoss
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.penalties import L2, Penalty
from saddlesvm.problem.problem import Strength
from saddlesvm.problem.regularizer import Regularizer
from saddlesvm.solvers.threaded.aggregation import follow, measure_rho, new_scaling, safe_share

ROW_SIZES = len(RowSizes._fields)
LEAST_SECONDS = 0.01  # for a task, however late it is
STALL_ROUNDS = 400  # rounds before which no run counts as stalled


@dataclass(frozen=True)
class Training:
    """The problem to solve, and the limits.

    Attributes
    ----------
    loss : Loss
    C : float
    n : int
        Rows of all partitions.
    problems : int
    n_features : int
    tol : float
    passes : float
        Over its rows that a partition does in a round.
    max_rounds : int, optional
    max_time : float, optional
    seed : int
    uses_lambda : bool
    free : bool
        The intercept is free of penalty; otherwise it is penalised, or absent.
    scale : float
        Value of the virtual feature; 0 without an intercept.
    penalty : Penalty
    share : float
        The factor of reported objectives, see :class:`~saddlesvm.problem.problem.Strength`.
    joint : JointLoss, optional
        Of the one problem that holds all classes.
    vectors : int
        Weight vectors of a problem.
    """

    loss: Loss
    C: float
    n: int
    problems: int
    n_features: int
    tol: float = 1e-4
    passes: float = 2.0
    max_rounds: int | None = None
    max_time: float | None = None
    seed: int = 0
    uses_lambda: bool = False
    free: bool = False
    scale: float = 1.0
    penalty: Penalty = field(default_factory=L2)
    share: float = 1.0
    joint: JointLoss | None = None
    vectors: int = 1

    @property
    def strength(self) -> Strength:
        """C, lambda and the form of reported objectives."""
        return Strength(self.C, self.n, self.uses_lambda, self.share)

    @property
    def regularizer(self) -> Regularizer:
        """The penalty, and what it sees of the intercept."""
        kind = "none" if not self.scale else "free" if self.free else "regularized"
        return Regularizer(self.penalty, make_intercept(kind, self.scale))


@dataclass
class Solution:
    """The result: weights of shape (problems, d + 1), certificates, the record of the rounds, why they ended."""

    W: np.ndarray
    certificates: list[Certificate]
    outcome: Outcome
    rounds: int = 0
    trace: list[dict[str, Any]] = field(default_factory=list)
    reason: str = ""

    @property
    def seconds(self) -> float:
        """Of all rounds."""
        return float(self.trace[-1]["seconds"]) if self.trace else 0.0


class Rounds:
    """Rounds under way, a batch for the loop: its problems are certified together, and so count as one.

    `start` are weights of shape (problems, d + 1) to begin at, for methods that begin at weights.
    """

    problems: Sequence[int] = range(1)
    index: int = 0
    proves_itself: bool = False  # whether its certificates are proofs while it goes on

    def __init__(
        self,
        plan: Training,
        engine: Engine,
        watch: Callable[[dict[str, Any]], Any] | None = None,
        start: np.ndarray | None = None,
    ) -> None:
        self.plan, self.engine, self.watch, self.start = plan, engine, watch, start
        self.W = np.zeros((plan.problems * plan.vectors, plan.n_features + 1))
        self.pulls = self.W  # where the penalty is half a square, weights are their own pull
        self.shares = np.zeros(plan.problems)
        self.live = np.ones(plan.problems, dtype=bool)
        self.scaling = np.tile(new_scaling(), (plan.problems, 1))
        self.best_W = self.W.copy()
        self.best = self.unknown()
        self.rounds = self.restarts = 0
        self.trace: list[dict[str, Any]] = []
        self.began = time.perf_counter()
        self.stall, self.stuck = StallWatch(STALL_ROUNDS), False
        self.end: tuple[Outcome, str] | None = None
        self.sent = self.W.nbytes  # bytes that a partition gets in a round
        self.asked = False  # whether a callback has asked to stop
        engine.end = np.inf if plan.max_time is None else self.began + plan.max_time
        engine.has_model = False

    def left(self) -> float:
        """Seconds that are left for the fit."""
        return self.engine.end - time.perf_counter()

    def until(self, tasks: int) -> Until:
        """How long each of so many tasks may work, which wait for each other where there are few threads."""
        share = min(1.0, self.engine.threads / max(tasks, 1))
        return Until(self.engine.name, max(share * self.left(), LEAST_SECONDS))

    def order(self) -> Order:
        """The question of the next round to the partitions."""
        plan = self.plan
        sigmas = self.scaling["sigma"][:, 0].copy()
        return Order(self.shares, sigmas, self.live, plan.loss, plan.C, plan.passes, plan.seed + 7919 * self.rounds)

    def unknown(self) -> list[Certificate]:
        """Certificates that say nothing, one a problem."""
        return [Certificate(np.inf, -np.inf, self.plan.strength.form)] * self.plan.problems

    def solution(self, outcome: Outcome, reason: str = "") -> Solution:
        """The best model so far."""
        return Solution(self.best_W, list(self.best), outcome, self.rounds, self.trace, reason)

    def run(self, stop: threading.Event | None = None) -> Solution:
        """Rounds until every problem is certified, or a limit is reached; `stop` as for the loop."""
        return drive(self, stop)[0]

    def advance(self, live: list[int], stop: threading.Event) -> list[Rounds]:
        """A round, of all problems that are left."""
        try:
            outcome = self.one_round()
            if outcome is Outcome.CERTIFIED:
                self.end = outcome, "every problem is certified"
            elif outcome is not None:
                self.end = outcome, "what is left of the gap is rounding"
        except DualsLost:
            self.rebuild()
        except Stopped:
            if self.proves_itself and not self.engine.has_model:
                raise
            self.end = Outcome.INTERRUPTED, "interrupted"
        except Late:
            self.end = Outcome.TIME_LIMIT, f"{self.plan.max_time:.3g} s"
        self.engine.has_model = self.proves_itself and all(np.isfinite(one.gap) for one in self.best)
        return [self]

    def finish_step(self, stopped: bool) -> bool:
        """Whether the rounds have ended: certified, at a limit, without progress, or interrupted."""
        if self.end is None and self.trace:
            limits = Limits(self.plan.tol, self.plan.max_rounds, self.plan.max_time)
            self.end = limits.reached_limit(self.rounds, time.perf_counter() - self.began, "rounds")
            if self.end is None and self.stuck:
                gap = self.trace[-1]["relative_gap"]
                self.end = Outcome.NO_PROGRESS, f"the gap has stayed at {gap:.2g} since round {self.rounds // 2}"
        if self.end is None and (stopped or self.asked):
            self.end = Outcome.INTERRUPTED, "interrupted" if stopped else "asked by a callback"
        return self.end is not None

    def finished(self, index: int) -> Solution:
        """The best model, and why the rounds ended; proven against dual variables whose weights are computed anew."""
        assert self.end is not None
        proven = self.proves_itself or self.end[0] in (Outcome.CERTIFIED, Outcome.LIMITED_BY_ROUNDING)
        if not (proven and all(np.isfinite(one.gap) for one in self.best)):
            self.prove()
        return self.solution(*self.end)

    def one_round(self) -> Outcome | None:
        """A round; an outcome where it has proven every problem, as far as rounding lets it."""
        began = time.perf_counter()
        answer = self.engine.improve(self.W, self.order())
        self.sent = self.engine.sent
        self.certify(answer.found.sums)
        self.rounds += 1
        self.record(answer, time.perf_counter() - began)
        if not self.live.any():
            if self.confirm():
                return Outcome.CERTIFIED
            left = [self.best[k] for k in np.flatnonzero(self.live)]
            return Outcome.LIMITED_BY_ROUNDING if all(one.limited(self.plan.tol) for one in left) else None
        self.take(answer.found)
        return None

    def certify(self, sums: RoundSums, exact: bool = False) -> None:
        """Certify the point that the sums speak of; problems that are done are left alone from now on.

        `exact` says that the weights were just computed from the dual variables: the certificate is then a proof.
        """
        for k in np.flatnonzero(self.live).tolist():
            made = self.proven(sums, k, self.W[k], self.pulls[k]) if exact else self.estimated(sums, k)
            self.live[k] = self.is_open(self.keep_better(k, made, self.W[k]))

    def keep_better(self, k: int, sums: Sums, model: np.ndarray) -> Certificate:
        """Keep a model of a problem, and a bound, where none so far is better; the certificate that has these sums."""
        seen = Certificate.of(self.plan.strength, sums)
        if seen.primal <= self.best[k].primal:
            self.best_W[k] = model
        self.best[k] = self.best[k].better_of(seen)
        return seen

    def is_open(self, certificate: Certificate) -> bool:
        """Whether a problem with this certificate is worked on further."""
        return not certificate.relative_gap <= self.plan.tol or self.plan.tol == 0.0

    def estimated(self, sums: RoundSums, k: int) -> Sums:
        """The sums of a problem's certificate, without bounds on rounding."""
        regularizer, (paid, conjugates) = self.plan.regularizer, sums.found[k, :2].tolist()
        return Sums(paid, conjugates, regularizer.value(self.W[k]), regularizer.conjugate(self.pulls[k]))

    def take(self, report: Report) -> None:
        """Take, of each problem's proposals, the share with the largest guaranteed rise of its dual objective.

        R* is 1-smooth where the penalty holds half a square: a pull that moves by m raises it by w.m + ||m||^2 / 2 at
        most, as half a square does. So the partitions' steps are the same for the elastic net.
        """
        self.shares, moves = np.zeros(self.plan.problems), whole(report.moves)
        for k in np.flatnonzero(self.live):
            move, sums, scaling = moves[k], report.sums, self.scaling[k]
            square = float(move @ move)
            gain = self.plan.C * (sums.found[k, 1] - sums.proposed[k]) - float(self.W[k] @ move)
            self.shares[k] = safe_share(gain, square)
            self.pulls[k] += self.shares[k] * move
            measure_rho(scaling, square, sums.squares[k])
            follow(scaling, self.engine.parts)
        self.set_weights()

    def set_weights(self) -> None:
        """Set the weights that belong to the pulls."""
        self.W = self.pulls
        if not self.plan.penalty.identity():
            self.W = np.stack([self.plan.regularizer.weights(pull) for pull in self.pulls])

    def rebuild(self) -> None:
        """Rebuild w from the present dual variables: any dual variables are feasible."""
        self.shares = np.zeros(self.plan.problems)
        self.pulls, self.restarts = self.engine.weights(self.order()), self.engine.restarts
        self.set_weights()

    def confirm(self) -> bool:
        """Whether the certificates hold for weights computed anew from the rows; the rounds go on from these if not."""
        self.rebuild()
        self.live[:], self.best = True, self.unknown()
        self.certify(self.engine.sums(self.W, self.order()), exact=True)
        return not self.live.any()

    def prove(self) -> None:
        """Put a proof in the place of what the rounds have seen: the best models against the present dual variables."""
        sums = None
        while sums is None:
            self.rebuild()
            with suppress(DualsLost):
                sums = self.engine.sums(self.best_W, self.order())
        made = [self.proven(sums, k, self.best_W[k], self.pulls[k]) for k in range(self.plan.problems)]
        self.best = [Certificate.of(self.plan.strength, one) for one in made]

    def proven(self, sums: RoundSums, k: int, model: np.ndarray, pull: np.ndarray) -> Sums:
        """The sums of a problem's model and of the dual variables that `pull` was computed from, rounding bounded."""
        point = PointSizes(*sums.sizes[k, ROW_SIZES:].tolist())
        return summed(self.facts(sums.sizes[k]), tuple(sums.found[k].tolist()), point, model, pull)

    def facts(self, sizes: np.ndarray) -> Facts:
        """The facts that a certificate needs; `sizes` are those of a problem's rows and multipliers."""
        plan, rows = self.plan, RowSizes(*sizes[:ROW_SIZES].tolist())
        return Facts(loss_sizes(plan.loss, rows.rows), plan.C, plan.regularizer, rows)

    def record(self, cost: Answer, seconds: float) -> None:
        """Add a row on this round to the trace."""
        mean = cost.work / max(cost.parts, 1)
        whole = Certificate.total(self.best)
        self.stuck = self.stall.is_stalled(self.rounds, whole) and self.plan.tol > 0.0
        row = {
            "round": self.rounds,
            "seconds": time.perf_counter() - self.began,
            "seconds_round": seconds,
            "seconds_work": cost.longest,
            "seconds_communication": max(seconds - cost.longest, 0.0),
            "straggler": cost.longest / mean if mean > 0.0 else 1.0,
            "bytes_up": cost.sent,
            "bytes_down": self.sent * self.engine.parts,
            "primal": whole.primal,
            "dual": whole.dual,
            "gap": whole.gap,
            "relative_gap": whole.relative_gap,
            "sigma": float(self.scaling["sigma"].max()),
            "live": int(self.live.sum()),
            "restarts": self.restarts,
        }
        self.trace.append(row)
        self.asked = bool(self.watch and self.watch(row))


def narrate(row: dict[str, Any]) -> None:
    """A line on standard error for a round."""
    print(
        f"round {row['round']}: relative gap {row['relative_gap']:.1e}, {row['live']} problems left; "
        f"{row['seconds_work']:.2f} s work, {row['seconds_communication']:.2f} s communication, "
        f"slowest partition {row['straggler']:.1f} times the mean, "
        f"{(row['bytes_up'] + row['bytes_down']) / 1e6:.1f} MB, sigma {row['sigma']:.2f}",
        file=sys.stderr,
    )
