"""Rounds that ask: each partition answers a question about each problem, and keeps nothing from one round to the next.

So a worker that dies takes nothing with it. What a partition finds for a problem is an object with ``add``, ``copy``
and ``nbytes``; the findings of all partitions stay on a worker, and the client gets their sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from saddlesvm.cluster.part import LARGEST, SIZES, Part
from saddlesvm.cluster.rounds import Rounds
from saddlesvm.cluster.tasks import Answer, bytes_of, combined
from saddlesvm.fit.outcome import Outcome
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.proven_sums import Sums
from saddlesvm.problem.rounding import add_sizes


class Asked(NamedTuple):
    """What a round asks of every partition: the numbers of the problems that are left, and a question about each."""

    problems: list[int]
    questions: list[Any]
    loss: Loss
    C: float
    n: int


class Found(NamedTuple):
    """The findings of a partition, or of several together.

    Attributes
    ----------
    each : list
        The findings for each problem that was asked about.
    sizes : ndarray of shape (problems, SIZES)
        The sizes that bounds on rounding need, of the rows and of their multipliers.
    """

    each: list[Any]
    sizes: np.ndarray

    @classmethod
    def nothing(cls, each: list[Any]) -> Found:
        """What no row tells."""
        return cls(each, np.zeros((len(each), SIZES)))

    def over(self, part: Part, asked: Asked) -> Iterator[tuple[Problem, Any, Any, np.ndarray]]:
        """Each problem that has rows in a partition, with its question, its findings and its sizes."""
        for number, question, one, sizes in zip(*asked[:2], *self, strict=True):
            if part.size and (problem := part.problem(number, asked.loss, asked.C)).members.size:
                yield problem, question, one, sizes


@combined
def together(answers: list[Found]) -> Found:
    """The sum of the findings of several partitions, in their order; what they found is left as it is."""
    first, *others = answers
    each, sizes = [one.copy() for one in first.each], first.sizes.copy()
    for other in others:
        for mine, theirs in zip(each, other.each, strict=True):
            mine.add(theirs)
        add_sizes(sizes, other.sizes, LARGEST)
    return Found(each, sizes)


def findings_of(answer: Answer, place: int) -> Any:
    """The findings for one of the problems."""
    return answer.found.each[place]


class AskingRounds(Rounds):
    """Rounds that ask, a batch for the loop like :class:`~saddlesvm.cluster.rounds.Rounds`."""

    proves_itself = True

    def ask(
        self,
        work: Callable[[Part, Asked], Answer],
        problems: list[int],
        questions: list[Any],
        returned: Callable[[Answer], Answer],
    ) -> tuple[Any, Answer]:
        """The answers of `work` for all partitions: left where they are, and what the client gets of them."""
        asked = Asked(problems, questions, self.plan.loss, self.plan.C, self.plan.n)
        there = self.engine.persist(work, together, asked)
        answer = self.engine.returned(there, returned)
        self.restarts, self.sent = self.engine.restarts, bytes_of(questions)
        return there, answer

    def certify_problem(self, k: int, sums: Sums, model: np.ndarray) -> None:
        """Certify the point that a problem's last round asked about, or the best one so far."""
        seen = Certificate.of(self.plan.strength, sums)
        if seen.primal <= self.best[k].primal:
            self.best_W[k] = model
        self.best[k] = self.best[k].better_of(seen)
        self.live[k] = not self.best[k].relative_gap <= self.plan.tol or self.plan.tol == 0.0

    def outcome(self, ended: Callable[[int], bool]) -> Outcome | None:
        """CERTIFIED where every problem is proven; the limit of rounding where it has `ended` all that are left."""
        left = np.flatnonzero(self.live).tolist()
        if not left:
            return Outcome.CERTIFIED
        done = self.plan.tol > 0.0 and all(ended(k) for k in left)
        return Outcome.LIMITED_BY_ROUNDING if done else None
