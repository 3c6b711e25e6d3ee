"""The fits of a linear model's sub-problems, in turn or side by side, wherever the rows are.

:class:`FitRows` holds what the sub-problems share, wherever the rows are; over files
:class:`ClassSweep` reads each block once for all of them. A fit begins at zero, at a former fit or
a given point (:mod:`saddlesvm.multiclass.splits`).
"""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.data.door import Design
from saddlesvm.fit.loop import LATE, Batch, Begin
from saddlesvm.fit.outcome import FitResult, Outcome, Trace
from saddlesvm.fit.run import Fit
from saddlesvm.fit.warm_start import start_from_weights
from saddlesvm.multiclass.fits import Fits, WithoutWeights, bundles_of, drive_all
from saddlesvm.multiclass.small_classes import SmallClasses
from saddlesvm.multiclass.splits import FormerFit, GivenDuals, GivenStart
from saddlesvm.multiclass.sub_problems import SharedTime, SubProblem, csr_of, threads_each
from saddlesvm.problem.intercepts import intercept_kind, make_intercept
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.penalties import L2, holds_square
from saddlesvm.problem.problem import NO_ROOM, Problem, Rooms, is_classification
from saddlesvm.rows.files import BlockReader
from saddlesvm.rows.layouts import Rows
from saddlesvm.rows.memory_plan import Burden, MemoryPlan, make_plan
from saddlesvm.rows.passes import FromFiles, Passes, sampled_norms
from saddlesvm.runtime.clock import limit_step
from saddlesvm.runtime.small import Most
from saddlesvm.runtime.threads import worth_threads
from saddlesvm.solvers.auto import Auto
from saddlesvm.solvers.small.newton import small_phase
from saddlesvm.solvers.sweeps import OverFiles
from saddlesvm.solvers.threaded.descent import with_threads


class ClassSweep:
    """A batch of problems over the same rows in files: each block is read once for all of them.

    Parameters
    ----------
    problems : sequence of int
    begin : callable
        Makes the fit of the problem with a given number. Its solver is
        :class:`~saddlesvm.solvers.blocks.Blocks`; all fits have the same seed, so that they ask for
        the same blocks.
    finished : callable
        Turns a fit that has ended into its result.
    """

    def __init__(
        self, problems: Sequence[int], begin: Begin, finished: Callable[[Fit], FitResult]
    ) -> None:
        self.problems = problems
        self.begin = begin
        self.finish = finished
        self.fits: dict[int, Fit] = {}

    def advance(self, live: list[int], stop: threading.Event) -> Sequence[Fit]:
        """Read a block, and improve it for all problems that are left."""
        if not self.fits:
            self.fits = {index: self.begin(index, stop) for index in self.problems}
        fits = [self.fits[index] for index in live]
        for fit in fits:
            fit.sharers = len(fits)
            fit.watches.wait()
        budgets = [fit.budget() for fit in fits]
        with limit_step(min(budget.seconds for budget in budgets)):
            states = fits[0].solver.step_together(
                [fit.problem for fit in fits], [fit.state for fit in fits], budgets
            )
        for fit, state in zip(fits, states, strict=True):
            fit.accept_step(state)
        return fits

    def finished(self, index: int) -> FitResult:
        """Return the result of the fit of a class."""
        return self.finish(self.fits[index])


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
    """

    X: Rows
    norms: np.ndarray
    threads: int = 1
    place: Passes | None = None
    rooms: Sequence[Rooms] = ()

    @property
    def in_files(self) -> bool:
        """True if each pass reads the rows from files."""
        return self.place is not None and self.place.reads_files

    def problem(self, sub: SubProblem, loss: Loss, options: dict[str, Any]) -> Problem:
        """The problem behind a sub-problem; `options` are as for
        :func:`~saddlesvm.problem.problem.make_problem`."""
        rooms = self.rooms[sub.index] if self.rooms else NO_ROOM
        problem = sub.problem(self.place or self.X, loss, norms=self.norms, rooms=rooms, **options)
        return dataclasses.replace(problem, threads=self.threads) if self.threads > 1 else problem


def open_rows(
    design: Design,
    burden: Burden,
    memory: int | None,
    *,
    intercept: str,
    scale: float,
    checkpoint: Any,
    most_rows: int = 0,
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
    most_rows : int, default=0
        Rows per block at most; 0 for as many as the memory allows.
    """
    plain = design.rows
    bias = intercept_kind(intercept).value(scale, lambda: sampled_norms(plain))
    path = getattr(checkpoint, "path", checkpoint)
    folder = None if path is None else os.path.dirname(os.path.abspath(path))
    plan: MemoryPlan = make_plan(plain, memory, burden, folder, most_rows)
    n = plain.n_rows
    X = plain._replace(bias=bias)
    shape = burden.variables_of(n)
    arrays = [plan.row_array(shape) for _ in range(3 if burden.variables > 2 else 2)]
    reader = BlockReader(X, plan.edges, plan.per_block, plan.row_array((n,)), burden.judges)
    every = np.arange(n, dtype=np.int32 if n < 2**31 else np.int64)
    kept = plan.kept_bytes // burden.problems
    rooms = [Rooms(*own)._replace(kept_bytes=kept) for own in zip(*arrays, strict=True)]
    return FitRows(X, reader.norms, place=FromFiles(reader, every), rooms=rooms)


AUTO = Auto()
AT_ONCE = 2**22  # dual variables that are made sparse at once; derived: 32 MB
WORTH_RETRYING = 0.05  # share of the time limit that must be left for another try; guessed


def rows_of(
    design: Design, intercept: str, scaling: float, jobs: int, n_jobs: int | None
) -> FitRows:
    """Return the rows of a design with an intercept's feature, after a check that they are finite.

    Parameters
    ----------
    design : Design
        In memory, or in a place of its own.
    intercept : {"none", "regularized", "free"}
    scaling : float
        Value of the virtual feature, if the user's choice counts.
    jobs : int
        Sub-problems that are solved at the same time.
    n_jobs : int, optional
    """
    plain = design.rows
    threads = 1
    if not (design.placed or design.is_small) and worth_threads(plain.reading_time(plain.n_values)):
        threads = threads_each(jobs, n_jobs)
    norms = design.norms(jobs * threads)
    scale = intercept_kind(intercept).value(scaling, lambda: norms)
    place = design.X.with_feature(scale) if design.placed else None
    return FitRows(plain._replace(bias=scale), norms + scale * scale, threads, place)


def make_sparse(duals: np.ndarray) -> sparse.csr_array:
    """Return dual variables of shape (vectors, n) as a CSR array, made some rows at a time."""
    if duals.size <= AT_ONCE:
        return csr_of(duals)
    size = max(1, AT_ONCE // len(duals))
    starts = range(0, duals.shape[1], size)
    pieces = [sparse.csr_array(duals[:, k : k + size]) for k in starts]
    return sparse.csr_array(sparse.hstack(pieces, format="csr"))


def join_results(earlier: FitResult, later: FitResult) -> FitResult:
    """Join the results of a fit that was cut short and of the one that continued it.

    The result has the better model of the two, and the better bound.
    """
    model = earlier if earlier.certificate.primal < later.certificate.primal else later
    bound = earlier if earlier.certificate.dual > later.certificate.dual else later
    phases = dict(earlier.phases)
    for name, seconds in later.phases.items():
        phases[name] = phases.get(name, 0.0) + seconds
    return dataclasses.replace(
        later,
        coef=model.coef,
        intercept=model.intercept,
        alpha=bound.alpha,
        certificate=model.certificate.bounded_by(bound.certificate),
        epochs=earlier.epochs + later.epochs,
        rows_touched=earlier.rows_touched + later.rows_touched,
        seconds_solving=earlier.seconds_solving + later.seconds_solving,
        seconds_certifying=earlier.seconds_certifying + later.seconds_certifying,
        trace=Trace([*earlier.trace, *later.trace]),
        phases=phases,
    )


@dataclass(kw_only=True)
class LinearFits(Fits):
    """The fits of a linear model's sub-problems; see :class:`~saddlesvm.multiclass.fits.Fits`.

    Attributes
    ----------
    rows : FitRows
    loss : Loss
    options : dict
        Of :func:`~saddlesvm.problem.problem.make_problem`, for all sub-problems.
    former : FormerFit, GivenWeights or GivenDuals, optional
        A fit to continue, or weights or dual variables to begin from.
    may_share : bool
        True if classes over the same files may be solved side by side: nothing asks for the
        epochs, or the progress, of a sub-problem alone.
    keeps_duals : bool
        True if the results have dual variables.
    watch : callable, optional
        Called with a sub-problem's fit after each of its steps.
    """

    rows: FitRows
    loss: Loss
    options: dict[str, Any]
    former: FormerFit | GivenStart | None = None
    may_share: bool = False
    keeps_duals: bool = True
    watch: Callable[[Fit], None] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        count = len(self.problems)
        if isinstance(self.former, GivenDuals):
            # Dual variables that already meet what is asked for cost no epoch.
            self.limits = dataclasses.replace(self.limits, certify_start=True)
        shares = self.rows.in_files and count > 1 and self.may_share
        self.side_by_side = shares and isinstance(self.solver, OverFiles)
        if self.side_by_side:
            self.clock = SharedTime(self.limits.max_time, 1, self.jobs)
        self.cut_short: dict[int, FitResult] = {}
        self.posed: dict[int, Problem] = {}  # problems that were posed before their fits began

    def solve(self) -> list[FitResult]:
        """Solve all sub-problems; fits that are cut short use the time that others left."""
        try:
            results = drive_all(self.batches(), self.n_jobs)
            if self.limits.max_time is None:
                return results
            return self.continue_late(self.with_late(results))
        finally:
            if self.rows.place is not None:
                self.rows.place.close()

    def continue_late(self, results: list[FitResult]) -> list[FitResult]:
        """Continue fits that were cut short, in the time that others left over."""
        limits = self.limits
        # With a limit of epochs, or for the last iterate, another try would be another run.
        is_fixed = limits.max_epochs is not None or limits.keep == "last" or self.checkpoint
        if limits.max_time is None or is_fixed or self.side_by_side or len(results) == 1:
            return results
        while self.clock.left() > WORTH_RETRYING * limits.max_time and not self.clock.over():
            outcomes = {k: result.outcome for k, result in enumerate(results)}
            self.cut_short = {
                k: results[k] for k, why in outcomes.items() if why is Outcome.TIME_LIMIT
            }
            if not self.cut_short or Outcome.INTERRUPTED in outcomes.values():
                break
            self.limits = dataclasses.replace(limits, certify_start=False)
            self.clock.again(len(self.cut_short))
            further = drive_all(self.in_turn([[k] for k in self.cut_short]), self.n_jobs)
            for (k, earlier), later in zip(self.cut_short.items(), further, strict=True):
                results[k] = earlier if later is LATE else join_results(earlier, later)
        return results

    def begin(self, index: int, stop: threading.Event) -> Fit:
        """Make the fit of a sub-problem; it starts at the end of a former fit, if any."""
        sub = self.problems[index]
        problem = self.posed.pop(index, None) or self.rows.problem(sub, self.loss, self.options)
        start = None
        if index in self.cut_short:
            # The fit was cut short: this one continues it.
            earlier: Any = self.cut_short[index]
            w = np.append(earlier.coef, earlier.intercept / (problem.scale or 1.0))
            if sparse.issparse(earlier.alpha):
                start = sub.start(problem, earlier.alpha.toarray(), problem.C, w)
            else:
                start = start_from_weights(problem, w)
        elif self.former:
            alone = self.solver.begins_at_weights(problem)
            start = self.former.start(sub, problem, len(self.problems), alone)
        solver = self.solver
        if self.former and start is not None:
            solver = self.former.solver(self.solver, index)
        given = {"solver": with_threads(problem, solver), "start": start, "watch": self.watch}
        if self.side_by_side:
            # All fits with the same seed read the same blocks.
            given["seed"] = self.seed
        return self.fit_of(index, sub, problem, **given)

    def finished(self, fit: Fit) -> FitResult:
        """The result with its dual variables in the C form, as the rows of an array."""
        result = super().finished(fit)
        C = fit.problem.C
        if not result.alpha.size or not self.keeps_duals:
            return dataclasses.replace(result, alpha=np.empty(0))
        duals = np.atleast_2d(result.alpha.T)
        if len(self.problems) > 1 or len(duals) > 1:
            # Of many classes most variables are zero.
            kept = make_sparse(duals)
            kept.data *= C
            return dataclasses.replace(result, alpha=kept)
        in_place = self.rows.in_files and duals.flags.writeable
        alpha = np.multiply(duals, C, out=duals if in_place else None)
        return dataclasses.replace(result, alpha=alpha)

    def batches(self) -> Sequence[Batch[FitResult]]:
        """Return batches: classes over files side by side, small fits together, else in turn."""
        every = range(len(self.problems))
        if self.side_by_side:
            return [ClassSweep(every, self.begin, self.finished)]
        subs = self.find_small()
        if subs is not None:
            problem = self.rows.problem(subs[0], self.loss, self.options)
            self.posed[0] = problem
            phase = None if problem.intercept.constrained else small_phase(problem)
            if phase is not None:
                together = SmallClasses(
                    subs,
                    problem,
                    phase,
                    self.options["weights"],
                    self.limits,
                    lambda left: self.in_turn([left])[0],
                    self.keeps_duals,
                )
                return [together]
        return self.in_turn(bundles_of(every, 1, self.jobs))

    def find_small(self) -> list[SubProblem] | None:
        """Return the sub-problems if they may be solved together, else None.

        They must be small, have all rows, and nobody may look on as they are solved.
        """
        is_plain = not self.rows.in_files and self.solver == AUTO and self.former is None
        if self.watch or not self.unwatched or not is_plain:
            return None
        if self.rows.norms.size * len(self.problems) > Most.values:
            return None
        subs = list(self.problems)
        for sub in subs:
            if type(sub) is not SubProblem or sub.members is not None or sub.weights is not None:
                return None
        return subs

    def without_weights(self) -> tuple[WithoutWeights, np.ndarray | None] | None:
        """Return the best intercept; None for regressions, and if a former fit is better."""
        if self.former is not None or not is_classification(self.loss) or self.rows.in_files:
            return None
        given = self.options
        X = self.rows.X
        kind = make_intercept(given["intercept"], X.bias)
        # What an intercept is charged: nothing, its square, or so much that it stays zero.
        charge = np.inf
        if kind.constrained:
            charge = 0.0
        elif kind.present and holds_square(given.get("penalty", L2())):
            charge = X.bias**-2.0
        common = WithoutWeights(
            self.loss,
            given.get("C"),
            given.get("lam"),
            given.get("share", 1.0),
            charge,
            self.limits.tol,
            coef=np.zeros(X.n_features),
            alpha=sparse.csr_array((1, X.n_rows)),
        )
        return common, given["weights"]
