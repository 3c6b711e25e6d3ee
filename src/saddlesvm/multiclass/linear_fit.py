"""The rows of a list of linear problems, wherever they are, and how each problem is posed on them.

:class:`FitRows` holds what the sub-problems share; over files :class:`ClassSweep` reads each block
once for all of them. A fit begins at zero, at a former fit or
a given point (:mod:`saddlesvm.multiclass.splits`).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.data.door import Design
from saddlesvm.fit.loop import Batch, Begin
from saddlesvm.fit.outcome import FitResult
from saddlesvm.fit.run import Fit
from saddlesvm.multiclass.fits import Fits, WithoutWeights
from saddlesvm.multiclass.small_classes import solve_classes
from saddlesvm.multiclass.splits import FormerFit, GivenWeights
from saddlesvm.multiclass.sub_problems import SubProblem, csr_of, threads_each, workers
from saddlesvm.problem.intercepts import intercept_kind, make_intercept
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.penalties import L2, holds_square
from saddlesvm.problem.problem import NO_ROOM, Problem, Rooms, is_classification, resolve_C
from saddlesvm.rows.files import BlockReader
from saddlesvm.rows.layouts import Rows
from saddlesvm.rows.memory_plan import Burden, MemoryPlan, make_plan
from saddlesvm.rows.passes import FromFiles, Passes, sampled_norms
from saddlesvm.runtime.clock import limit_step
from saddlesvm.runtime.small import Most
from saddlesvm.runtime.threads import worth_threads
from saddlesvm.solvers.auto import Auto
from saddlesvm.solvers.small.small_solver import small_phase

AUTO = Auto()
AT_ONCE = 2**22  # dual variables that are made sparse at once; derived: 32 MB


class ClassSweep:
    """A batch of problems over the same rows in files: each block is read once for all of them.

    Parameters
    ----------
    problems : sequence of int
    begin : callable
        Makes the fit of the problem with a given number. Its solver is
        :class:`~saddlesvm.solvers.blocks.Blocks`; all fits have the same seed, so that they ask for
        the same blocks.
    take_result : callable
        Turns a fit that has ended into its result.
    """

    def __init__(
        self, problems: Sequence[int], begin: Begin, take_result: Callable[[Fit], FitResult]
    ) -> None:
        self.problems = problems
        self.begin = begin
        self.take_result = take_result
        self.fits: dict[int, Fit] = {}

    def advance(self, live: list[int], stop: threading.Event) -> Sequence[Fit]:
        """Read a block, and improve it for all problems that are left."""
        # All fits begin together, at the first block.
        if not self.fits:
            self.fits = {index: self.begin(index, stop) for index in self.problems}
        fits = [self.fits[index] for index in live]
        for fit in fits:
            fit.sharers = len(fits)
            fit.watches.wait()
        # A block is read once for all fits: the fit with the least time left limits the step.
        budgets = [fit.budget() for fit in fits]
        with limit_step(min(budget.seconds for budget in budgets)):
            states = fits[0].solver.step_together(
                [fit.problem for fit in fits], [fit.state for fit in fits], budgets
            )
        for fit, state in zip(fits, states, strict=True):
            fit.accept_step(state)
        return fits

    def result_of(self, index: int) -> FitResult:
        """Return the result of the fit of a class."""
        return self.take_result(self.fits[index])


@dataclass(frozen=True)
class FitRows:
    """The rows of all problems of a fit, wherever they are, with the data that the problems share.

    Attributes
    ----------
    X : Dense or CSR
        With the virtual feature; over files mapped, and without values in a place of its own.
    norms : ndarray of shape (n,)
        Squared norms of the rows; over files they are known once their block has been read.
    threads : int
        Threads that a fit may use.
    place : Passes, optional
        Over all rows, if they are in files or in a place of their own.
    rooms : sequence of Rooms
        The memory of each problem over files; empty elsewhere.
    in_files : bool
        True if each pass reads the rows from files.
    """

    X: Rows
    norms: np.ndarray
    threads: int = 1
    place: Passes | None = None
    rooms: Sequence[Rooms] = ()
    in_files: bool = False

    def problem(self, sub: SubProblem, loss: Loss, options: dict[str, Any]) -> Problem:
        """Return the problem behind a sub-problem, with options of :func:`make_problem`."""
        rooms = self.rooms[sub.index] if self.rooms else NO_ROOM
        problem = sub.problem(self.place or self.X, loss, norms=self.norms, rooms=rooms, **options)
        return replace(problem, threads=self.threads) if self.threads > 1 else problem


def open_rows(
    design: Design,
    burden: Burden,
    memory: int | None,
    *,
    intercept: str,
    scale: float,
    checkpoint: Any,
) -> FitRows:
    """Plan the training on a mapped matrix, and open its files.

    Parameters
    ----------
    design : Design
    burden : Burden
        What the problems keep of a row: its variable, that of the best bound, and that of a sweep
        under way if Newton's method is to be had.
    memory : int or None
        Bytes to use; None for half of the available memory.
    intercept : {"none", "regularized", "free"}
    scale : float
        Value of the virtual feature of a penalised intercept; a free one has that of a typical row.
    checkpoint : path-like, Checkpoint or None
        If the dual variables exceed the memory, their file is put next to the checkpoint.
    """
    plain = design.rows
    bias = intercept_kind(intercept).value(scale, lambda: sampled_norms(plain))
    path = getattr(checkpoint, "path", checkpoint)
    folder = None if path is None else os.path.dirname(os.path.abspath(path))
    plan: MemoryPlan = make_plan(plain, memory, burden, folder)
    n = plain.n_rows
    X = plain._replace(bias=bias)
    shape = (burden.problems, n if burden.variables else 0)
    # The solver's dual variables, those of the best bound, and those of a sweep under way.
    count = 3 if burden.variables > 2 else 2
    arrays = [plan.row_array(shape) for _ in range(count)]
    reader = BlockReader(X, plan.edges, plan.per_block, plan.row_array((n,)))
    # Row numbers of 32 bits take half the memory, and are enough for most files.
    every = np.arange(n, dtype=np.int32 if n < 2**31 else np.int64)
    kept = plan.kept_bytes // burden.problems
    rooms = [Rooms(*own)._replace(kept_bytes=kept) for own in zip(*arrays, strict=True)]
    return FitRows(X, reader.norms, place=FromFiles(reader, every), rooms=rooms, in_files=True)


def rows_of(
    design: Design, intercept: str, scaling: float, problems: int = 1, n_jobs: int | None = None
) -> FitRows:
    """Return the rows of a design with an intercept's feature, after a check that they are finite.

    Parameters
    ----------
    design : Design
        In memory, or in a place of its own.
    intercept : {"none", "regularized", "free"}
    scaling : float
        Value of the virtual feature, if the user's choice counts.
    problems : int, default=1
        Number of sub-problems.
    n_jobs : int, optional
    """
    plain = design.rows
    jobs = 1
    threads = 1
    if not (design.placed or design.is_small) and worth_threads(plain.reading_time(plain.n_values)):
        jobs = workers(problems, n_jobs)
        threads = threads_each(jobs, n_jobs)
    norms = design.take_norms(jobs * threads)
    scale = intercept_kind(intercept).value(scaling, lambda: norms)
    place = design.X.with_feature(scale) if design.placed else None
    in_files = place is not None and place.reads_files
    X = plain._replace(bias=scale)
    norms += scale * scale
    return FitRows(X, norms, threads, place, in_files=in_files)


def make_sparse(duals: np.ndarray) -> sparse.csr_array:
    """Return dual variables of shape (vectors, n) as a CSR array, made some rows at a time."""
    if duals.size <= AT_ONCE:
        return csr_of(duals)
    # As many rows at a time as make AT_ONCE values, so that no copy of all is made.
    size = max(1, AT_ONCE // len(duals))
    starts = range(0, duals.shape[1], size)
    pieces = [sparse.csr_array(duals[:, k : k + size]) for k in starts]
    return sparse.csr_array(sparse.hstack(pieces, format="csr"))


@dataclass(kw_only=True)
class LinearRows:
    """The rows of linear problems, wherever they are; see :class:`~.fits.MachineRows`.

    Attributes
    ----------
    rows : FitRows
    loss : Loss
    options : dict
        Of :func:`~saddlesvm.problem.problem.make_problem`, for all sub-problems.
    former : FormerFit or GivenWeights, optional
        A fit to continue, or weights to begin from.
    reads_together : bool
        True if each block of files is read once for all classes.
    keeps_duals : bool
        True if the results have dual variables.
    posed : dict of int to Problem
        Problems that were posed before their fits began.
    """

    rows: FitRows
    loss: Loss
    options: dict[str, Any]
    former: FormerFit | GivenWeights | None = None
    reads_together: bool = False
    keeps_duals: bool = True
    posed: dict[int, Problem] = field(default_factory=dict)

    def strength_for(self, n: int) -> float:
        """Return the C of problems over n rows."""
        if "C" in self.options:
            return float(self.options["C"])
        return resolve_C(None, self.options["lam"], n)[0]

    def pose(self, sub: SubProblem) -> Problem:
        """Return the problem behind a sub-problem."""
        earlier = self.posed.pop(sub.index, None)
        return earlier or self.rows.problem(sub, self.loss, self.options)

    def begin_at(self, fits: Fits, sub: SubProblem, problem: Problem) -> dict[str, Any]:
        """Return start and solver of a fit: where a former fit ended, or at a given point."""
        solver = fits.solver
        start = None
        if self.former:
            weights_only = solver.begins_at_weights(problem)
            start = self.former.start(sub, problem, len(fits.problems), weights_only)
        if self.former and start is not None:
            solver = self.former.solver(solver, sub.index)
        own = {"solver": solver, "start": start}
        if self.reads_together:
            # All fits with the same seed read the same blocks.
            own["seed"] = fits.seed
        return own

    def publish(self, fits: Fits, fit: Fit, result: FitResult) -> FitResult:
        """Return the result with its dual variables in the C form, as the rows of an array."""
        C = fit.problem.C
        if not result.alpha.size or not self.keeps_duals:
            return replace(result, alpha=np.empty(0))
        duals = np.atleast_2d(result.alpha.T)
        if len(fits.problems) > 1 or len(duals) > 1:
            # With many classes, most variables are zero.
            nonzero: Any = make_sparse(duals)
            nonzero.data *= C
            return replace(result, alpha=nonzero)
        in_place = self.rows.in_files and duals.flags.writeable
        alpha = np.multiply(duals, C, out=duals if in_place else None)
        return replace(result, alpha=alpha)

    def batch_together(self, fits: Fits) -> Sequence[Batch[FitResult]] | None:
        """Return a batch of classes over files; None if problems are solved in turn."""
        # A block that is read once improves all classes.
        if self.reads_together:
            return [ClassSweep(range(len(fits.problems)), fits.begin, fits.take_result)]
        return None

    def solve_at_once(self, fits: Fits) -> dict[int, FitResult]:
        """Return the results of small problems, solved side by side, whose gap is proven."""
        subs = self.find_small(fits)
        if subs is None:
            return {}
        problem = self.rows.problem(subs[0], self.loss, self.options)
        self.posed[0] = problem
        # With a free intercept, whose dual has an equality constraint, they are solved in turn.
        phase = None if problem.intercept.constrained else small_phase(problem)
        if phase is None:
            return {}
        results = solve_classes(subs, problem, phase, self.options["weights"], fits.limits)
        if not self.keeps_duals:
            for k, result in results.items():
                results[k] = replace(result, alpha=np.empty(0))
        return results

    def find_small(self, fits: Fits) -> list[SubProblem] | None:
        """Return the sub-problems if they may be solved together, else None.

        They must be small, and have all rows.
        """
        # The default solver, in memory, from no start.
        is_plain = not self.rows.in_files and fits.solver == AUTO and self.former is None
        if not is_plain or self.rows.norms.size * len(fits.problems) > Most.values:
            return None
        subs = list(fits.problems)
        # A pair of classes, a fold, or a class of factor zero has some of the rows only.
        for sub in subs:
            if type(sub) is not SubProblem or sub.members is not None or sub.weights is not None:
                return None
            if sub.factor == 0.0:
                return None
        return subs

    def without_weights(self, tol: float) -> tuple[WithoutWeights, np.ndarray | None] | None:
        """Return the best intercept; None for regressions, and if a former fit is better."""
        if self.former is not None or not is_classification(self.loss) or self.rows.in_files:
            return None
        given = self.options
        X = self.rows.X
        kind = make_intercept(given["intercept"], X.bias)
        # What an intercept b is charged: nothing; half the square of its weight b / scale; or so
        # much that it stays zero.
        charge = np.inf
        if kind.constrained:
            charge = 0.0
        elif kind.present and holds_square(given.get("penalty", L2())):
            charge = X.bias**-2.0
        common = WithoutWeights(
            loss=self.loss,
            C=given.get("C"),
            lam=given.get("lam"),
            share=given.get("share", 1.0),
            charge=charge,
            tol=tol,
            coef=np.zeros(X.n_features),
            alpha=sparse.csr_array((1, X.n_rows)),
        )
        return common, given["weights"]

    def complete(self, results: list[FitResult]) -> list[FitResult]:
        """Return the results, and close files."""
        if self.rows.place is not None:
            self.rows.place.close()
        return results
