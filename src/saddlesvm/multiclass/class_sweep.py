"""What an estimator needs to train on rows in files: one reader, problems over it, one sweep that serves them all."""

from __future__ import annotations

import dataclasses
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saddlesvm.fit.result import FitResult
from saddlesvm.fit.run import EAGERNESS
from saddlesvm.multiclass.sub_problems import SubProblem
from saddlesvm.problem.certificate import Point
from saddlesvm.problem.losses import Loss
from saddlesvm.problem.on_disk import StreamedProblem, make_streamed_problem, sampled_norms
from saddlesvm.rows import layouts as rows
from saddlesvm.rows.files import BlockReader
from saddlesvm.rows.layouts import Rows
from saddlesvm.rows.memory_plan import MemoryPlan, make_plan
from saddlesvm.solvers.blocks import Blocks, BlocksState, Underway, upcoming


class Sweep:
    """Problems over the same rows in files, solved one by one or side by side.

    Side by side, one reading of the rows serves all classes, until each has proven its gap.

    Parameters
    ----------
    X : Dense or CSR
        Rows mapped from files, with the virtual feature.
    plan : MemoryPlan
    problems : sequence of callables
        The makers of the sub-problems.
    loss : Loss
    solver : Blocks
    tol : float
        The relative gap that each will prove.
    seed : int
    options : dict
        Of :func:`~saddlesvm.problem.problem.make_problem`, for all of them.
    """

    def __init__(
        self,
        X: Rows,
        plan: MemoryPlan,
        problems: Sequence[Callable[[], SubProblem]],
        loss: Loss,
        solver: Blocks,
        *,
        tol: float,
        seed: int,
        options: dict[str, Any],
    ) -> None:
        self.X, self.makers, self.loss, self.solver = X, problems, loss, solver
        self.tol, self.seed, self.options = tol, seed, options
        n = rows.n_rows(X)
        self.duals = plan.row_array((len(problems), n))
        self.reader = BlockReader(X, plan.edges, plan.per_block, plan.row_array((n,)), len(problems))
        self.made: dict[int, StreamedProblem] = {}
        self.ready: dict[int, tuple[BlocksState, float]] = {}

    def __enter__(self) -> Sweep:
        return self

    def __exit__(self, *error: Any) -> None:
        self.reader.close()

    def problem(self, sub: SubProblem) -> StreamedProblem:
        """The problem behind a sub-problem; the same one whenever it is asked for."""
        if sub.index not in self.made:
            self.made[sub.index] = make_streamed_problem(
                self.X, sub.y, self.loss, self.reader, self.duals[sub.index], **self.options
            )
        return self.made[sub.index]

    def point(self, index: int, problem: Any, stop: threading.Event, seconds: float | None) -> Point:
        """The run to go on with for sub-problem `index`; `seconds` is what each may spend."""
        if not self.ready:
            self._run(stop, seconds)
        return Underway(state=self.ready[index][0])

    def _run(self, stop: threading.Event, seconds: float | None) -> None:
        """Sweep for all problems together, each until its own gap is proven."""
        began, count = time.perf_counter(), len(self.makers)
        problems = [self.problem(make()) for make in self.makers]
        states = [self.solver.init(problem, self.seed) for problem in problems]
        target = EAGERNESS * self.tol
        end = np.inf if seconds is None else began + seconds * count
        active = list(range(count))
        while active and not stop.is_set() and time.perf_counter() < end:
            due = [self.solver.next_blocks(problems[k], states[k]) for k in active]
            chunks, then = due[0]  # all are seeded alike
            judged = [states[k].judged for k in active]
            block = self.reader.fetch(chunks, judged, then, [upcoming(states[k]) for k in active])
            for k in active:
                states[k].target = target
                states[k] = self.solver.visit(problems[k], states[k], block)
            active = [k for k in active if states[k].position or states[k].estimate > target]
        spent = (time.perf_counter() - began) / count
        self.ready = {k: (state, spent) for k, state in enumerate(states)}

    def credited(self, index: int, result: FitResult) -> FitResult:
        """The result with its share of the time that the common sweeps took."""
        spent = self.ready[index][1]
        phases = result.phases | {self.solver.name: result.phases.get(self.solver.name, 0.0) + spent}
        return dataclasses.replace(result, seconds_solving=result.seconds_solving + spent, phases=phases)


def make_sweep(
    X: Any,
    problems: Sequence[Callable[[], SubProblem]],
    loss: Loss,
    solver: Blocks,
    memory: int | None,
    *,
    tol: float,
    seed: int,
    scale: float,
    checkpoint: Any,
    options: dict[str, Any],
) -> Sweep:
    """Plan the training on a mapped matrix, and open its files.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    memory : int or None
        Bytes; None for half of what is available.
    scale : float
        Value of the virtual feature of a penalised intercept; a free one has that of a typical row.
    checkpoint : path-like, Checkpoint or None
        The variables of the rows go next to it, where they are too many for the memory.
    options : dict
        Of :func:`~saddlesvm.problem.problem.make_problem`.
    """
    plain = rows.as_rows(X)
    if options["intercept"] == "free":
        scale = float(np.sqrt(sampled_norms(plain).mean())) or 1.0
    bias = 0.0 if options["intercept"] == "none" else scale
    path = getattr(checkpoint, "path", checkpoint)
    folder = None if path is None else os.path.dirname(os.path.abspath(path))
    plan = make_plan(plain, memory, len(problems), folder, solver.rows)
    return Sweep(plain._replace(bias=bias), plan, problems, loss, solver, tol=tol, seed=seed, options=options)
