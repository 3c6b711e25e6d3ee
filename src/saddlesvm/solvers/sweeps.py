"""Sweeps over rows in files: what solvers have in common that read all blocks, add up what they find, and take a step.

A step of the fit's loop reads a block, for any number of problems over the same files. Between
sweeps a run keeps its point, and nothing of a row but dual variables; a resumed run repeats the
sweep that was under way.

Weak duality holds for any pair of a primal and a dual point. A sweep therefore proves two things on
the way: each block, as it is read, gives its share of ``P(v)`` for the weights v from when the
sweep began, and once its dual variables have moved, its share of ``D(a)``. At the end of the sweep
``P(v) - D(a)`` bounds how far v is from the optimum; a is a sweep newer than v. This certificate
needs no pass of its own, and both sums are in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from saddlesvm.problem.bounds import PointSizes, summed
from saddlesvm.problem.certificate import Certificate, Evaluation, Point
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.sums import dual_weights, loss_sums
from saddlesvm.problem.terms import BLOCK, Pointwise, weights_at
from saddlesvm.rows.files import BlockReader
from saddlesvm.rows.layouts import Rows, add_rows
from saddlesvm.rows.passes import FromFiles, Part
from saddlesvm.solvers.base import Budget, SolverBase, State

FILLED = 0.9  # share of the room that rows drawn, or likely to be free, are to fill
KEPT_BYTES = 64  # bytes of a kept row besides its values


def certificate_of_sweep(
    problem: Problem,
    model: np.ndarray,
    paid: float,
    alpha: np.ndarray,
    running: tuple[np.ndarray, float] | None = None,
) -> Certificate:
    """The certificate of a model with its sum of losses, and of a dual point.

    Parameters
    ----------
    model : ndarray of shape (d + 1,)
    paid : float
    alpha : ndarray of shape (n_all,)
    running : pair of ndarray of shape (d + 1,) and float, optional
        The running pull of the dual point, and its sum of conjugates: the certificate is a quick estimate. When left
        out, a pass over the rows gives the pull.
    """
    if running is None:
        pull, (_, conjugates, charged) = dual_weights(problem, alpha), sums_without_rows(problem, alpha)
    else:
        pull, conjugates, charged = *running, abs(running[1])
    sizes = problem.point_sizes(alpha)
    sums = summed(problem.facts, (paid, conjugates, np.inf, charged, np.inf), sizes, model, pull)
    return Certificate.of(problem.strength, sums)


def sums_without_rows(problem: Problem, alpha: np.ndarray) -> tuple[float, float, float]:
    """Sums for which no row is read: the losses at zero margins, the conjugates of a dual point, and their sizes."""
    paid = conjugates = charged = 0.0
    for start in range(0, problem.members.size, BLOCK):
        chosen = problem.members[start : start + BLOCK]
        terms = Pointwise(problem.loss, problem.y[chosen].astype(np.float64), weights_at(problem.weights, chosen))
        found = loss_sums(terms, np.arange(chosen.size), np.zeros(chosen.size), 0.0, alpha[chosen])
        paid, conjugates, charged = paid + found[0], conjugates + found[1], charged + found[3]
    return paid, conjugates, charged


class CarriedDuals:
    """A dual point of an earlier solver, whose bound the first sweep of another proves while the rows are at hand.

    Parameters
    ----------
    problem : Problem
    alpha : ndarray of shape (n_all,)
        It is balanced in place, if the intercept is free.
    """

    def __init__(self, problem: Problem, alpha: np.ndarray) -> None:
        if problem.intercept.constrained:
            alpha[:] = problem.balanced(alpha)
        self.problem, self.alpha, self.pull = problem, alpha, np.zeros(problem.n_features + 1)

    def visit(self, part: Part) -> None:
        """Add what a part's rows pull."""
        add_rows(part.X, part.rows, part.of(self.alpha), self.pull)

    def found(self) -> tuple[np.ndarray, float, float, PointSizes]:
        """The pull of all rows, the sums of the conjugates and of their sizes, and the sizes of the dual point."""
        problem, signs = self.problem, self.problem.intercept.constrained
        _, conjugates, charged = sums_without_rows(problem, self.alpha)
        return problem.pulled(self.pull), conjugates, charged, problem.point_sizes(self.alpha, signs=signs)


@dataclass
class SweepWork:
    """The findings of the present sweep so far.

    Attributes
    ----------
    block : int
        The block that is due.
    found : object
        The findings in the rows of the blocks before, as the solver has them; None before the first block.
    alpha : ndarray of shape (n_all,)
        Their multipliers.
    carried : CarriedDuals, optional
        The dual point that the first sweep began with.
    """

    block: int = 0
    found: Any = None
    alpha: np.ndarray = field(default_factory=lambda: np.empty(0))
    carried: CarriedDuals | None = None

    def begin(self, found: Any, problem: Problem, carried: np.ndarray | None) -> None:
        """Begin a sweep with findings in no row; `carried` is the dual point that it is to prove beside its own."""
        spare = problem.rooms.spare
        self.found, self.alpha = found, np.zeros(problem.y.size) if spare is None else spare
        self.carried = CarriedDuals(problem, carried) if carried is not None and carried.any() else None


@dataclass
class KeptRows:
    """The values of the rows kept in this sweep, block by block; a resumed run reads them again.

    Attributes
    ----------
    pieces : list of Dense or CSR
    count : int
        Rows of all pieces.
    """

    pieces: list[Rows] = field(default_factory=list)
    count: int = 0

    def add(self, piece: Rows) -> None:
        """Keep some more."""
        self.pieces.append(piece)
        self.count += piece.n_rows


@dataclass
class SweepState(State):
    """The state of a run: at the end of its last sweep, from which a resumed run goes on.

    Attributes
    ----------
    sweeps : int
        Sweeps so far.
    work : SweepWork
        The sweep under way.
    """

    sweeps: int = 0
    work: SweepWork = field(default_factory=SweepWork, repr=False)


def reader_of(problem: Problem) -> BlockReader:
    """What reads the rows of a problem over files."""
    passes = problem.passes
    assert isinstance(passes, FromFiles)
    return passes.reader


@dataclass(frozen=True)
class OverFiles(SolverBase):
    """The base class of solvers over rows in files, which work on several problems at once."""

    kind: ClassVar[type[Problem]] = Problem

    def suited(self, problem: Problem) -> Any:
        """Return the problem; raise ValueError if the solver does not take it."""
        if not problem.on_files or not isinstance(problem, self.kind):
            kind = self.kind.__name__
            raise ValueError(
                f"{type(self).__name__} reads rows from files: use it in an estimator, or with a {kind} there"
            )
        return problem

    def step(self, problem: Problem, state: Any, budget: Budget) -> Any:
        """Read a block."""
        return self.step_together([problem], [state], [budget])[0]

    def step_together(self, problems: Sequence[Problem], states: Sequence[Any], budgets: Sequence[Budget]) -> list[Any]:
        """Read a block for several problems over the same files, whose runs are at the same block."""
        raise NotImplementedError


@dataclass(frozen=True)
class Sweeps(OverFiles):
    """The base class of solvers whose epoch is a sweep over all blocks, which ends with a step."""

    def step_together(self, problems: Sequence[Problem], states: Sequence[Any], budgets: Sequence[Budget]) -> list[Any]:
        """Read a block for several problems over the same files, whose sweeps are at the same block."""
        streamed = [self.suited(problem) for problem in problems]
        self.prepare(streamed, states)
        passes = streamed[0].passes
        assert isinstance(passes, FromFiles)
        part = passes.part(states[0].work.block, again=True)
        for problem, state, budget in zip(streamed, states, budgets, strict=True):
            own, work = part.among(problem.members), state.work
            self.visit(problem, state, own)
            state.rows_touched += own.rows.size
            work.block += 1
            if work.block < passes.reader.n_blocks:
                state.epochs += (part.last - part.first) / problem.y.size
                continue
            state.sweeps, state.work = state.sweeps + 1, SweepWork()
            state.epochs = float(state.sweeps)
            self.end_of_sweep(problem, state, work, budget.relative_gap)
        return list(states)

    def prepare(self, problems: Sequence[Any], states: Sequence[Any]) -> None:
        """The preparation before the first block: nothing."""

    def visit(self, problem: Any, state: Any, part: Part) -> None:
        """Add what the rows of a block say to the findings of the sweep."""
        raise NotImplementedError

    def end_of_sweep(self, problem: Any, state: Any, work: SweepWork, target: float) -> None:
        """Take a step by the findings of a whole sweep."""
        raise NotImplementedError


def proven(problem: Problem, w: np.ndarray, alpha: np.ndarray, certificate: Certificate) -> Point:
    """A point that a sweep has proven."""
    return Point(w, alpha, proven=Evaluation.of(problem, w, alpha, certificate))
