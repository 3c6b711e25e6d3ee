"""Classes side by side over rows in files: one reading of the rows serves all classes without a certificate yet."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from saddlesvm.fit.loop import Begin, Fit
from saddlesvm.fit.result import FitResult
from saddlesvm.multiclass.sub_problems import SubProblem
from saddlesvm.problem.intercepts import intercept_kind
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.on_files import Rooms, StreamedProblem, sampled_norms
from saddlesvm.rows import layouts as rows
from saddlesvm.rows.files import BlockReader
from saddlesvm.rows.layouts import Rows
from saddlesvm.rows.memory_plan import Burden, MemoryPlan, make_plan
from saddlesvm.runtime.clock import working_for


class ClassSweep:
    """A batch of problems over the same rows in files: each block is read once and improved for all of them.

    Parameters
    ----------
    problems : sequence of int
    begin : callable
        Makes the fit of the problem with a given number. Its solver is :class:`~saddlesvm.solvers.blocks.Blocks`; all
        fits have the same seed, so that they ask for the same blocks.
    finished : callable
        Turns a fit that has ended into its result.
    """

    def __init__(self, problems: Sequence[int], begin: Begin, finished: Callable[[Fit], FitResult]) -> None:
        self.problems, self.begin, self.finish = problems, begin, finished
        self.fits: dict[int, Fit] = {}

    def advance(self, live: list[int], stop: threading.Event) -> Sequence[Fit]:
        """Read a block, and improve it for all problems that are left."""
        if not self.fits:
            self.fits = {index: self.begin(index, stop) for index in self.problems}
        fits = [self.fits[index] for index in live]
        for fit in fits:
            fit.run.sharers = len(fits)
            fit.run.watches.wait()
        budgets = [fit.run.budget(fit.state) for fit in fits]
        with working_for(min(budget.seconds for budget in budgets)):
            states = fits[0].run.solver.step_together(
                [fit.problem for fit in fits], [fit.state for fit in fits], budgets
            )
        for fit, state in zip(fits, states, strict=True):
            fit.stepped(state)
        return fits

    def finished(self, index: int) -> FitResult:
        """Return the result of the fit of a class."""
        return self.finish(self.fits[index])


@dataclass(frozen=True)
class FileRows:
    """Rows in files, and the array of their dual variables, for all problems over them.

    Attributes
    ----------
    X : Dense or CSR
        Rows mapped from files, with the virtual feature.
    reader : BlockReader
    duals, best : ndarray of shape (problems, n), or (1, n, K) for a joint machine
        Dual variables of the solvers, and of the best bounds so far.
    every : ndarray of shape (n,)
        All row numbers, for the problems that have all rows.
    spare : ndarray of shape (problems, n), optional
        Room for the dual variables of a sweep under way.
    kept_bytes : int
        Bytes for the rows that each problem may keep from one block to the end of the sweep.
    """

    X: Rows
    reader: BlockReader
    duals: np.ndarray
    best: np.ndarray
    every: np.ndarray
    spare: np.ndarray | None = None
    kept_bytes: int = 0
    in_files: ClassVar[bool] = True

    def problem(self, sub: SubProblem, loss: Loss, options: dict[str, Any]) -> StreamedProblem:
        """The problem behind a sub-problem; `options` are those of
        :func:`~saddlesvm.problem.problem.make_problem`."""
        members = self.every if sub.members is None else sub.members
        return sub.problem_on_files(
            self.X, loss, self.reader, self._rooms(sub.index), members=members, **sub.with_weights(options)
        )

    def _rooms(self, index: int) -> Rooms:
        """The memory of a sub-problem."""
        spare = None if self.spare is None else self.spare[index]
        return Rooms(self.duals[index], self.best[index], spare, self.kept_bytes)

    def close(self) -> None:
        """Give buffers and files back."""
        self.reader.close()


def open_rows(
    X: Any,
    burden: Burden,
    memory: int | None,
    *,
    intercept: str,
    scale: float,
    checkpoint: Any,
    most_rows: int = 0,
) -> FileRows:
    """Plan the training on a mapped matrix, and open its files.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    burden : Burden
        What the problems keep of a row: its variable, that of the best bound, and that of a sweep under way where
        Newton's method is to be had.
    memory : int or None
        Bytes to use; None for half of the available memory.
    intercept : {"none", "regularized", "free"}
    scale : float
        Value of the virtual feature of a penalised intercept; a free one has that of a typical row.
    checkpoint : path-like, Checkpoint or None
        Where the dual variables exceed the memory, their file is put next to the checkpoint.
    most_rows : int, default=0
        Rows per block at most; 0 for as many as the memory allows.
    """
    plain = rows.as_rows(X)
    bias = intercept_kind(intercept).value(scale, lambda: sampled_norms(plain))
    path = getattr(checkpoint, "path", checkpoint)
    folder = None if path is None else os.path.dirname(os.path.abspath(path))
    plan: MemoryPlan = make_plan(plain, memory, burden, folder, most_rows)
    n, design = rows.n_rows(plain), plain._replace(bias=bias)
    shape = burden.variables_of(n)
    duals, best = plan.row_array(shape), plan.row_array(shape)
    spare = plan.row_array(shape) if burden.variables > 2 else None
    reader = BlockReader(design, plan.edges, plan.per_block, plan.row_array((n,)), burden.judges)
    every = np.arange(n, dtype=np.int32 if n < 2**31 else np.int64)
    return FileRows(design, reader, duals, best, every, spare, plan.kept_bytes // burden.problems)
