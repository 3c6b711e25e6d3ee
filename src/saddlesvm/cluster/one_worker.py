"""All rows on one worker: if they fit into its memory, an ordinary fit is quicker than any rounds.

The partitions are copied together once, from worker to worker, and each problem is solved there by
the solver that a fit in memory has: any penalty, any intercept, and joint machines. The client gets
a model with its certificate.

rcv1-binary (11.7 MB, hinge, C = 1, to 1e-6, four workers): one round of 4.8 s and 11.7 MB.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from saddlesvm.cluster.method import ClusterMethod, ClusterPlan, Solution
from saddlesvm.cluster.partition import Partition, join_partitions
from saddlesvm.cluster.rounds import certify_zero
from saddlesvm.cluster.tasks import Answer, TaskLimit, add_costs, limit_task, measure_cost
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits, Outcome
from saddlesvm.multiclass.splits import JointSubProblem, solver_for
from saddlesvm.problem.certificate import Certificate


class FitOrder(NamedTuple):
    """The problem to solve over all rows, and the limits.

    Attributes
    ----------
    number : int
    plan : ClusterPlan
    limit : TaskLimit
    start : ndarray of shape (vectors, d + 1), optional
        Weights to begin at.
    """

    number: int
    plan: ClusterPlan
    limit: TaskLimit
    start: np.ndarray | None = None


class WorkerFit(NamedTuple):
    """Weights of shape (vectors, d + 1), with their certificate, and why the fit ended."""

    w: np.ndarray
    certificate: Certificate
    outcome: Outcome
    reason: str


@measure_cost
def give_rows(part: Partition, _: object) -> Partition:
    """Return the rows of a partition."""
    return part


@add_costs
def gather_rows(parts: list[Partition]) -> Partition:
    """Return the rows of several partitions, in their order."""
    return join_partitions(parts)


def drop_rows(answer: Answer) -> Answer:
    """Return what it cost to bring the rows together."""
    return answer._replace(found=None)


def take_all_rows(answer: Answer, number: int) -> Partition:
    """Return the rows: every problem is over all of them."""
    part: Partition = answer.found
    return part


@measure_cost
def fit_there(part: Partition, order: FitOrder) -> WorkerFit:
    """Solve a problem over all rows."""
    plan = order.plan
    sub = part.sub_problems()[order.number]
    [problem] = part.problems(plan.loss, plan.C, [order.number])
    problem = replace(
        problem, n=plan.n, uses_lambda=plan.uses_lambda, penalty=plan.penalty, share=plan.share
    )
    start = None
    if order.start is not None:
        start = sub.start_at(problem, order.start)
    limits = Limits(plan.tol)
    if np.isfinite(order.limit.seconds):
        limits = Limits(plan.tol, max_time=order.limit.seconds)
    solver = solver_for(part.split.multi_class, "auto")
    with limit_task(order.limit) as stop:
        result = fit(problem, solver, limits, seed=plan.seed + order.number, start=start, stop=stop)

    # The intercept as a weight of the virtual feature.
    offset = np.ravel(result.intercept) / (problem.scale or 1.0)
    w = np.column_stack([np.atleast_2d(result.coef), offset])
    # A joint machine of two classes is one vector: the second class against the first.
    if isinstance(sub, JointSubProblem) and part.split.classes == 2:
        w = w[1:] - w[:1]
    return WorkerFit(w, result.certificate, result.outcome, result.reason)


class OneWorker(ClusterMethod):
    """All rows on one worker; the only round is a fit of every problem."""

    def begin(self) -> None:
        """Keep nothing: there is one round."""

    def one_round(self) -> None:
        """Bring the rows together, and fit."""
        began = time.perf_counter()
        plan = self.plan
        width = plan.vectors
        there = self.engine.persist_once(give_rows, gather_rows)
        sent = self.engine.fetch(there, drop_rows).sent

        # One task for each problem.
        limit = self.limit_for(plan.problems)
        orders = []
        for k in range(plan.problems):
            start = None
            if self.start is not None:
                start = self.start[k * width : (k + 1) * width]
            orders.append((k, FitOrder(k, plan, limit, start)))
        answers = self.engine.map_each(there, take_all_rows, fit_there, orders)

        for k, answer in enumerate(answers):
            made = answer.found
            self.best_W[k * width : (k + 1) * width] = made.w
            self.best[k] = made.certificate
            self.live[k] = made.outcome is not Outcome.CERTIFIED
        self.rounds += 1
        total = add_costs(lambda found: None)(answers)
        seconds = time.perf_counter() - began
        self.record(total._replace(sent=total.sent + sent), seconds, 0)

        # The fit ended as its first problem that is not certified did.
        last = answers[0].found
        if self.live.any():
            last = answers[int(np.argmax(self.live))].found
        self.end = last.outcome, last.reason
        if last.outcome is Outcome.INTERRUPTED and self.seconds_left() <= 0.0:
            self.end = Outcome.TIME_LIMIT, f"{plan.max_time:.3g} s"

    def finished(self, index: int) -> Solution:
        """Return the models: zero if a worker did not answer in time."""
        if not self.has_models() and self.plan.joint is None:
            self.best_W[:] = 0.0
            self.best = certify_zero(self.plan, self.engine)
        return super().finished(index)
