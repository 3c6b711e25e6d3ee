"""The active-set method over partitions: rounds that find the free rows, which one worker collects and solves for.

A round looks at every row, where it is. It judges a point; of nearly all rows their pull is enough, and the others, a
bounded number, go to one worker, which solves the problem over them
(:mod:`saddlesvm.solvers.second_order.active_set`) and sends back weights and the sums of a dual point. No row reaches
the client: from a round it gets sums, and from a solution two vectors of the size of w. A partition keeps nothing from
one round to the next, so that a worker that dies takes nothing with it. Where there is room for all rows,
:mod:`saddlesvm.cluster.one_worker` needs no rounds at all.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from saddlesvm.cluster.halting import ANY_TIME, Until, working_until
from saddlesvm.cluster.part import Part
from saddlesvm.cluster.rounds import Engine, Rounds, Training
from saddlesvm.fit.outcome import Outcome
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.intercepts import Intercept, make_intercept
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.rounding import RowSizes, add_sizes, largest_among
from saddlesvm.solvers.second_order.active_set import ActiveSet, Posed, Solved, solve_free_rows
from saddlesvm.solvers.second_order.free_rows import Findings, Question, find

A_ROW = 48  # bytes of a row brought together, besides its values: label, weight, norm, multiplier, number
UNEVEN = 2.0  # times its share of the room that a partition may use: free rows are not spread evenly
FACTORS = 2.5e8  # bytes that factored matrices of the problem over them may take
CROWDED = 3  # rounds in a row, each at a 64th of the width, that find too many rows of the same margin
MOST_LOOKS = 60  # rounds at most
ROW_SIZES = len(RowSizes._fields)
LARGEST = largest_among(RowSizes)


class Search(NamedTuple):
    """The question of a round to every partition: for each problem that is left its number and its question."""

    problems: list[int]
    questions: list[Question]
    loss: Loss
    C: float
    n: int

    @property
    def nbytes(self) -> int:
        """Bytes that travel."""
        return sum(one.w.nbytes + one.back.nbytes + 24 for one in self.questions)


class Found(NamedTuple):
    """The findings of a partition, or of several together.

    Attributes
    ----------
    findings : list of Findings
        For each problem that was asked about.
    sizes : ndarray of shape (problems, ROW_SIZES)
        The sizes of the rows that bounds on rounding need.
    sent : int
        Bytes that the partitions send.
    taken : int
        Rows that they send, a row once for every problem.
    work, longest : float
        Seconds of work, summed over the partitions, and of the slowest partition.
    parts : int
        Number of partitions.
    """

    findings: list[Findings]
    sizes: np.ndarray
    sent: int
    taken: int
    work: float
    longest: float
    parts: int

    @property
    def nbytes(self) -> int:
        """Bytes that a partition sends, in the mean."""
        return self.sent // max(self.parts, 1)


class SettledThere(NamedTuple):
    """A solution as it comes to the client, and the seconds that it took."""

    solved: Solved
    seconds: float

    @property
    def nbytes(self) -> int:
        """Bytes that travel."""
        return self.solved.nbytes + 8


def search_part(part: Part, asked: Search) -> Found:
    """A round of a partition: look at its rows for each problem that is left."""
    began = time.perf_counter()
    findings = [Findings.nothing(one.w.size) for one in asked.questions]
    sizes = np.zeros((len(findings), ROW_SIZES))
    share = min(1.0, UNEVEN * part.size / asked.n)
    for number, question, found, size in zip(*asked[:2], findings, sizes, strict=True):
        if part.size:
            problem = part.problem(number, asked.loss, asked.C)
            if not problem.members.size:
                continue
            mine = question._replace(most=int(np.ceil(share * question.most)))
            find(problem.terms, problem.members, mine, found, np.empty(0), seed=part.place)
            size[:] = problem.row_sizes
    spent = time.perf_counter() - began
    sent = sum(one.nbytes for one in findings) + sizes.nbytes
    taken = sum(piece.y.size for one in findings for piece in (*one.pieces, *one.drawn))
    return Found(findings, sizes, sent, taken, spent, spent, 1)


def together(answers: list[Found]) -> Found:
    """The sum of the findings of several partitions, in their order; what they found is left as it is."""
    first, *others = answers
    findings, sizes = [one.copy() for one in first.findings], first.sizes.copy()
    for other in others:
        for mine, theirs in zip(findings, other.findings, strict=True):
            mine.add(theirs)
        add_sizes(sizes, other.sizes, LARGEST)
    sent, taken = sum(one.sent for one in answers), sum(one.taken for one in answers)
    work, longest = sum(one.work for one in answers), max(one.longest for one in answers)
    return Found(findings, sizes, sent, taken, work, longest, sum(one.parts for one in answers))


def without_rows(found: Found) -> Found:
    """The sums alone: what comes to the client."""
    sums = [one.copy() for one in found.findings]
    for one in sums:
        one.pieces, one.drawn = [], []
    return found._replace(findings=sums)


def findings_of(found: Found, position: int) -> Findings:
    """The findings for one of the problems."""
    return found.findings[position]


def solve_there(found: Findings, posed: Posed, until: Until = ANY_TIME) -> SettledThere:
    """Solve for the rows brought together; the multipliers of these rows stay here."""
    began = time.perf_counter()
    with working_until(until):
        solved = solve_free_rows(found.copy(), posed)
    kept = solved._replace(alpha=np.empty(0), rows=np.empty(0, dtype=np.int64))
    return SettledThere(kept, time.perf_counter() - began)


def room_for(n: int, n_bytes: int, problems: int, memory: float) -> int:
    """Rows of a problem that may be brought together, where the values of `n` rows take `n_bytes`."""
    return max(int(memory / problems / (n_bytes / max(n, 1) + A_ROW)), 1)


def gives_up(run: ActiveSet) -> bool:
    """Whether the active set does not suit the rows: more of them have the same margin than there is room for."""
    return run.crowded >= CROWDED or run.ended or run.looks >= MOST_LOOKS


class ActiveSetRounds(Rounds):
    """The active-set method under way, a batch for the loop like :class:`~saddlesvm.cluster.rounds.Rounds`.

    Parameters
    ----------
    plan : Training
    engine : Engine
    watch : callable, optional
    most : int
        Rows of a problem that a round may bring together, see :func:`room_for`.
    """

    proves_itself = True

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
        asked = Search(left, [self.question(k) for k in left], self.plan.loss, self.plan.C, self.plan.n)
        there = self.engine.persist(search_part, together, asked)
        found = self.engine.returned(there, without_rows)
        posed = [(place, one) for place, k in enumerate(left) if (one := self.pose(k, found.findings[place]))]
        solve = functools.partial(solve_there, until=self.until(len(posed)))
        solved = self.engine.map_each(there, findings_of, solve, posed)
        self.restarts = self.engine.restarts
        for (place, _), solution in zip(posed, solved, strict=True):
            self.learn(left[place], solution.solved)
        for place, k in enumerate(left):
            self.judge(k, found.sizes[place])
        self.rounds += 1
        slowest = max((one.seconds for one in solved), default=0.0)
        self.sent = asked.nbytes
        sent = found.sent + sum(one.nbytes for one in solved)
        self.record(found._replace(sent=sent, longest=found.longest + slowest), time.perf_counter() - began)
        self.trace[-1]["rows_sent"] = found.taken
        if not self.live.any():
            return Outcome.CERTIFIED
        open_ones = np.flatnonzero(self.live).tolist()
        if self.plan.tol > 0.0 and all(self.best[k].limited(self.plan.tol) for k in open_ones):
            return Outcome.LIMITED_BY_ROUNDING
        if any(gives_up(self.runs[k]) for k in open_ones):
            self.end = Outcome.NO_PROGRESS, "more rows are free than may be brought together on a worker"
        return None

    def question(self, k: int) -> Question:
        """The question about a problem: a sample of the rows first, where there is no room for all."""
        run = self.runs[k]
        if run.width == 0.0:
            return run.ask_sample(run.most / self.plan.n)
        return run.ask()

    def pose(self, k: int, found: Findings) -> Posed | None:
        """Learn from a look at the rows; what is to be solved then, if anything."""
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

    def judge(self, k: int, sizes: np.ndarray) -> None:
        """Certify the best points of a problem so far."""
        run = self.runs[k]
        if not run.proves(self.intercept):
            return
        self.best_W[k] = run.model
        self.best[k] = Certificate.of(self.plan.strength, run.proven(self.facts(sizes)))
        self.live[k] = not self.best[k].relative_gap <= self.plan.tol or self.plan.tol == 0.0
