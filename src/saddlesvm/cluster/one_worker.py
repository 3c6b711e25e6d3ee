"""All rows on one worker: if they fit into its memory, an ordinary fit is quicker than any rounds.

The partitions are copied together once, from worker to worker, and each problem is solved there by
the solver that a fit in memory has: any penalty, any intercept, and joint machines. The client gets
a model with its certificate.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from saddlesvm.cluster.method import ClusterMethod, ClusterPlan
from saddlesvm.cluster.partition import Partition, join_partitions
from saddlesvm.cluster.tasks import TaskLimit, limit_task
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
    """

    number: int
    plan: ClusterPlan
    limit: TaskLimit


class WorkerFit(NamedTuple):
    """Weights of shape (vectors, d + 1), with their certificate, and why the fit ended."""

    w: np.ndarray
    certificate: Certificate
    outcome: Outcome
    reason: str


def give_rows(part: Partition, _: object) -> Partition:
    """Return the rows of a partition."""
    return part


def take_all_rows(part: Partition, number: int) -> Partition:
    """Return the rows: every problem is over all of them."""
    return part


def fit_on_worker(part: Partition, order: FitOrder) -> WorkerFit:
    """Solve a problem over all rows, in a task."""
    plan = order.plan
    sub = part.sub_problems()[order.number]
    [problem] = part.problems(plan.loss, plan.C, [order.number])
    problem = replace(
        problem, n=plan.n, uses_lambda=plan.uses_lambda, penalty=plan.penalty, share=plan.share
    )
    limits = Limits(plan.tol)
    if np.isfinite(order.limit.seconds):
        limits = Limits(plan.tol, max_time=order.limit.seconds)
    solver = solver_for(part.split.multi_class, "auto")
    with limit_task(order.limit) as stop:
        result = fit(problem, solver, limits, seed=plan.seed + order.number, stop=stop)

    # The intercept as a weight of the virtual feature.
    offset = np.ravel(result.intercept) / (problem.scale or 1.0)
    w = np.column_stack([np.atleast_2d(result.coef), offset])
    # A joint machine of two classes is one vector: the second class against the first.
    if isinstance(sub, JointSubProblem) and part.split.classes == 2:
        w = w[1:] - w[:1]
    return WorkerFit(w, result.certificate, result.outcome, result.reason)


class OneWorker(ClusterMethod):
    """All rows on one worker; the only round is a fit of every problem."""

    def one_round(self) -> None:
        """Bring the rows together, and fit."""
        plan = self.plan
        rows = self.engine.persist(give_rows, join_partitions)
        limit = self.limit_for(plan.problems)
        orders = [(k, FitOrder(k, plan, limit)) for k in range(plan.problems)]
        # One task for each problem.
        fits = self.engine.map_each(rows, take_all_rows, fit_on_worker, orders)

        width = plan.vectors
        for k, fitted in enumerate(fits):
            self.best_W[k * width : (k + 1) * width] = fitted.w
            self.best[k] = fitted.certificate
            self.live[k] = fitted.outcome is not Outcome.CERTIFIED
        self.record()

        # The fit ended as its first problem that is not certified did.
        last = fits[0]
        if self.live.any():
            last = fits[int(np.argmax(self.live))]
        self.end = last.outcome, last.reason
        if last.outcome is Outcome.INTERRUPTED and self.seconds_left() <= 0.0:
            self.end = Outcome.TIME_LIMIT, f"{plan.max_time:.3g} s"
