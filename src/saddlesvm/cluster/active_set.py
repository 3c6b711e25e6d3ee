"""The active-set method over partitions: rounds that find the free rows, which one worker collects and solves for.

A round passes over every row, where it is, and certifies a point. Of nearly all rows their pull is enough; the others,
a bounded number, go to one worker, which solves the problem over them
(:mod:`saddlesvm.solvers.second_order.active_set`) and sends back weights and the sums of a dual point. No row reaches
the client: from a round it gets sums, and from a solution two vectors of the size of w. A partition keeps nothing from
one round to the next, so that a worker that dies takes nothing with it. Where there is room for all rows,
:mod:`saddlesvm.cluster.one_worker` needs no rounds at all.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from saddlesvm.cluster.asking import Asked, AskingRounds, Found, findings_of
from saddlesvm.cluster.engine import Engine
from saddlesvm.cluster.part import Part
from saddlesvm.cluster.rounds import ROW_SIZES, Training
from saddlesvm.cluster.tasks import ANY_TIME, Answer, Until, measured, working_until
from saddlesvm.fit.outcome import Outcome
from saddlesvm.problem.intercepts import Intercept, make_intercept
from saddlesvm.solvers.second_order.active_set import ActiveSet, Posed, Solved, solve_free_rows
from saddlesvm.solvers.second_order.free_rows import Findings, Question, find

A_ROW = 48  # bytes of a row brought together, besides its values: label, weight, norm, multiplier, number
UNEVEN = 2.0  # times its share of the room that a partition may use: free rows are not spread evenly
FACTORS = 2.5e8  # bytes that factored matrices of the problem over them may take
MOST_ROUNDS = 60  # rounds at most


@measured
def search_part(part: Part, asked: Asked) -> Found:
    """The free rows of a partition, and sums over its others, for each problem that is left."""
    found = Found.nothing([Findings.nothing(one.w.size) for one in asked.questions])
    share = min(1.0, UNEVEN * part.size / asked.n)
    for problem, question, findings, sizes in found.over(part, asked):
        mine = question._replace(most=int(np.ceil(share * question.most)))
        find(problem.terms, problem.members, mine, findings, np.empty(0), seed=part.place)
        sizes[:ROW_SIZES] = problem.row_sizes
    return found


def rows_sent(found: Found) -> int:
    """Rows that the partitions send, a row once for every problem."""
    return sum(piece.y.size for one in found.each for piece in (*one.pieces, *one.drawn))


def sums_alone(answer: Answer) -> Answer:
    """What comes to the client: no row, but their number."""
    each, rows = [one.copy() for one in answer.found.each], rows_sent(answer.found)
    for one in each:
        one.pieces, one.drawn = [], []
    return answer._replace(found=(answer.found._replace(each=each), rows))


@measured
def solve_there(found: Findings, posed: Posed, until: Until = ANY_TIME) -> Solved:
    """Solve for the rows brought together; the multipliers of these rows stay here."""
    with working_until(until):
        solved = solve_free_rows(found.copy(), posed)
    return solved._replace(alpha=np.empty(0), rows=np.empty(0, dtype=np.int64))


def room_for(n: int, n_bytes: int, problems: int, memory: float) -> int:
    """Rows of a problem that may be brought together, where the values of `n` rows take `n_bytes`."""
    return max(int(memory / problems / (n_bytes / max(n, 1) + A_ROW)), 1)


class ActiveSetRounds(AskingRounds):
    """The active-set method under way.

    Parameters
    ----------
    plan : Training
    engine : Engine
    watch : callable, optional
    most : int
        Rows of a problem that a round may bring together, see :func:`room_for`.
    """

    def __init__(
        self,
        plan: Training,
        engine: Engine,
        watch: Callable[[dict[str, Any]], Any] | None = None,
        start: np.ndarray | None = None,
        *,
        most: int,
    ) -> None:
        super().__init__(plan, engine, watch)
        kind = "none" if not plan.scale else "free" if plan.free else "regularized"
        self.intercept: Intercept = make_intercept(kind, plan.scale)
        self.runs = [ActiveSet.begin(w.copy(), most, plan.n) for w in self.W]
        for run in self.runs:
            run.width = np.inf if run.room >= 1.0 else 0.0

    def one_round(self) -> Outcome | None:
        """A round; CERTIFIED where it has proven every problem."""
        began = time.perf_counter()
        left = np.flatnonzero(self.live).tolist()
        there, answer = self.ask(search_part, left, [self.question(k) for k in left], sums_alone)
        found, rows = answer.found
        posed = [(place, one) for place, k in enumerate(left) if (one := self.pose(k, found.each[place]))]
        solve = functools.partial(solve_there, until=self.until(len(posed)))
        solved = self.engine.map_each(there, findings_of, solve, posed)
        self.restarts = self.engine.restarts
        for (place, _), solution in zip(posed, solved, strict=True):
            self.learn(left[place], solution.found)
        for k, sizes in zip(left, found.sizes, strict=True):
            if self.runs[k].proves(self.intercept):
                self.certify_problem(k, self.runs[k].proven(self.facts(sizes)), self.runs[k].model)
        self.rounds += 1
        slowest = answer.longest + max((one.longest for one in solved), default=0.0)
        sent = answer.sent + sum(one.sent for one in solved)
        self.record(answer._replace(sent=sent, longest=slowest), time.perf_counter() - began)
        self.trace[-1]["rows_sent"] = rows
        outcome = self.outcome(lambda k: self.best[k].limited(self.plan.tol))
        if outcome is None and any(self.runs[k].gives_up(MOST_ROUNDS) for k in np.flatnonzero(self.live)):
            self.end = Outcome.NO_PROGRESS, "more rows are free than may be brought together on a worker"
        return outcome

    def question(self, k: int) -> Question:
        """The question about a problem: a sample of the rows first, where there is no room for all."""
        run = self.runs[k]
        if run.width == 0.0:
            return run.ask_sample(run.most / self.plan.n)
        return run.ask()

    def pose(self, k: int, found: Findings) -> Posed | None:
        """Learn from a pass over the rows; what is to be solved then, if anything."""
        run, plan = self.runs[k], self.plan
        if run.width == 0.0:
            return run.posed_sample(plan.loss, plan.C, self.intercept, int(found.rows[0]), FACTORS)
        if run.take(plan.C, plan.regularizer, found):
            return run.posed(plan.loss, plan.C, self.intercept, plan.tol, FACTORS)
        return None

    def learn(self, k: int, solved: Solved) -> None:
        """Choose the next point of a problem."""
        run = self.runs[k]
        if run.width == 0.0:
            run.start(solved)
        else:
            run.learn(self.plan.C, self.plan.regularizer, solved)
        self.W[k] = run.at
