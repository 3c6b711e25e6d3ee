"""All rows on one worker: where they fit into its memory, no round of messages is as quick as an ordinary fit.

The partitions are copied together once, from worker to worker, and each problem is solved there by the solver that a
fit in memory has: any penalty, any intercept, and joint machines. What comes to the client is a model with its
certificate, which is a proof already.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from saddlesvm.cluster.mixing import joined
from saddlesvm.cluster.part import Part
from saddlesvm.cluster.rounds import Rounds, Training
from saddlesvm.cluster.tasks import Answer, Until, combined, measured, working_until
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits, Outcome
from saddlesvm.multiclass.splits import JointSubProblem, solver_for
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.problem import Problem

TWO = 2  # classes, which a joint machine has one vector for in a model: the second against the first


class Order(NamedTuple):
    """The problem to solve, and the limits."""

    plan: Training
    until: Until
    near: np.ndarray | None = None  # weights to begin at, shape (vectors, d + 1)


class Fitted(NamedTuple):
    """A model of shape (vectors, d + 1), with its certificate, and why the fit ended."""

    w: np.ndarray
    certificate: Certificate
    outcome: Outcome
    reason: str


@measured
def given_away(part: Part, _: Any) -> Part:
    """The rows of a partition."""
    return part


@combined
def together(parts: list[Part]) -> Part:
    """The rows of several partitions, in their order."""
    return joined(*parts)


def without_rows(answer: Answer) -> Answer:
    """What it cost to bring the rows together."""
    return answer._replace(found=None)


def rows_of(answer: Answer, problem: int) -> tuple[Part, int]:
    """The rows, and the number of the problem to solve over them."""
    return answer.found, problem


def problem_there(part: Part, number: int, plan: Training) -> Problem:
    """One of the problems over all rows."""
    [problem] = part.problems(plan.loss, plan.C, [number])
    return replace(problem, n=plan.n, uses_lambda=plan.uses_lambda, penalty=plan.penalty, share=plan.share)


@measured
def fit_there(given: tuple[Part, int], order: Order) -> Fitted:
    """Solve a problem over all rows."""
    plan = order.plan
    part, number = given
    problem = problem_there(part, number, plan)
    solver, sub = solver_for(part.split.multi_class, "auto"), part.sub_problems()[number]
    seconds = order.until.seconds
    limits = Limits(plan.tol, max_time=seconds if np.isfinite(seconds) else None)
    start = None if order.near is None else sub.start_at(problem, order.near)
    with working_until(order.until) as stop:
        result = fit(problem, solver, limits, seed=plan.seed + number, start=start, stop=stop)
    offset = np.ravel(result.intercept) / (problem.scale or 1.0)
    w = np.column_stack([np.atleast_2d(result.coef), offset])
    if isinstance(sub, JointSubProblem) and part.split.classes == TWO:
        w = w[1:] - w[:1]
    return Fitted(w, result.certificate, result.outcome, result.reason)


class OneWorker(Rounds):
    """All rows on one worker, a batch for the loop whose only round is a fit of every problem."""

    proves_itself = True

    def one_round(self) -> Outcome | None:
        """Bring the rows together, and fit."""
        began, plan = time.perf_counter(), self.plan
        there = self.engine.persist_there(given_away, together)
        sent = self.engine.returned(there, without_rows).sent
        until, width = self.until(plan.problems), plan.vectors
        near = [None if self.start is None else self.start[k * width : (k + 1) * width] for k in range(plan.problems)]
        every = [(k, Order(plan, until, W)) for k, W in enumerate(near)]
        answers = self.engine.map_each(there, rows_of, fit_there, every)
        self.restarts = self.engine.restarts
        found = [one.found for one in answers]
        for k, one in enumerate(found):
            self.best_W[k * plan.vectors : (k + 1) * plan.vectors], self.best[k] = one.w, one.certificate
            self.live[k] = one.outcome is not Outcome.CERTIFIED
        self.rounds += 1
        self.sent = 0
        cost = combined(lambda _: None)(answers)
        self.record(cost._replace(sent=cost.sent + sent), time.perf_counter() - began)
        worst = next((one for one in found if one.outcome is not Outcome.CERTIFIED), found[0])
        self.end = worst.outcome, worst.reason
        if worst.outcome is Outcome.INTERRUPTED and self.left() <= 0.0:
            self.end = Outcome.TIME_LIMIT, f"{plan.max_time:.3g} s"
        return None
