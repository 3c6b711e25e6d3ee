"""The fit of a linear model: from rows and labels as a user gives them to the value that it leaves.

:func:`fit_rows` fits all rows, :func:`fit_copy` does so outside an estimator's own ``fit``;
:func:`fit_part` fits sub-problems over rows that are checked already, for folds and proofs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from saddlesvm.data.door import Design, checked_data
from saddlesvm.data.label_checks import has_columns
from saddlesvm.estimators.base import Training, apply_limits, draw_seed, option_of
from saddlesvm.estimators.fitted import Data, Fitted, gather_facts
from saddlesvm.estimators.scale_hint import scale_hint
from saddlesvm.fit.outcome import FitResult, Outcome
from saddlesvm.multiclass import splits, sub_problems
from saddlesvm.multiclass.fits import Fits
from saddlesvm.multiclass.linear_fit import FitRows, LinearRows, open_rows, rows_of
from saddlesvm.multiclass.splits import FormerFit, GivenWeights
from saddlesvm.multiclass.sub_problems import SubProblem
from saddlesvm.problem.loss import is_cornerless, is_smooth
from saddlesvm.problem.penalties import L2, holds_square
from saddlesvm.problem.problem import Problem
from saddlesvm.rows.device import Device
from saddlesvm.rows.files import is_mapped
from saddlesvm.rows.memory_plan import (
    available_memory,
    demand_room_for_weights,
    does_not_fit,
    memory_bytes,
)
from saddlesvm.runtime.clock import seconds_compiling
from saddlesvm.runtime.data_types import Matrix, RowsLike
from saddlesvm.solvers.auto import Auto
from saddlesvm.solvers.newton import Newton
from saddlesvm.solvers.newton_on_device import solver_on_device
from saddlesvm.solvers.sweeps import OverFiles

if TYPE_CHECKING:
    from saddlesvm.estimators.base import Estimator
    from saddlesvm.runtime.data_types import LabelsLike
    from saddlesvm.solvers.base import SolverBase

DUAL_BYTES = 12  # of a dual variable in a CSR array: its value and its column
# A model of several problems with a smooth loss keeps dual variables of so many bytes; guessed.
MOST_DUALS = 2**28
# Calls from the warning of a fit to the user's call of fit(), so that the warning names his line.
CALLS_TO_USER = 6

Start = FormerFit | GivenWeights


def fit_rows(
    template: Estimator,
    X: RowsLike,
    y: LabelsLike | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    start: Start | None = None,
) -> Fitted:
    """Fit a linear model to all rows.

    Parameters
    ----------
    template : LinearModel
        An estimator that is not fitted: its parameters. It learns the features.
    X, y, sample_weight
        As in :meth:`saddlesvm.LinearSVC.fit`.
    start : FormerFit or GivenWeights, optional
        The starting point.
    """
    template._check_options()
    design, y, sample_weight = checked_data(X, y, sample_weight, template, reset=True)
    training = template._pose(y, sample_weight, design.shape[0])
    results, linear = solve(template, design, training, start)

    # What the fit leaves behind. Data in memory are kept for proofs that are asked for later.
    reads_blocks = linear.rows.in_files
    data = None
    if not (design.placed or reads_blocks):
        data = Data(design.X, y, sample_weight)
    return make_fitted(
        template,
        training,
        results,
        design.shape[0],
        linear.strength_for(design.shape[0]),
        reads_blocks=reads_blocks,
        single_target=training.labels is None and not has_columns(y),
        data=data,
    )


def fit_copy(
    template: Estimator,
    X: RowsLike,
    y: LabelsLike | None = None,
    sample_weight: ArrayLike | None = None,
    **given: Any,
) -> Fitted:
    """Fit a model within the `max_time` of its template; :func:`fit_rows` has all arguments."""
    with apply_limits(template):
        compiled_before = seconds_compiling()
        fitted = fit_rows(template, X, y, sample_weight, **given)
    return replace(fitted, seconds_compiling=seconds_compiling() - compiled_before)


def solve(
    template: Estimator,
    design: Design,
    training: Training,
    start: Start | None,
) -> tuple[list[FitResult], LinearRows]:
    """Fit every sub-problem; warn, with hints, if any was not certified.

    Returns the results, and the rows.
    """
    keeps_duals = not drops_duals(training, design.shape[0])
    fits, linear = make_fits(template, design, training, start=start)
    linear.keeps_duals = keeps_duals
    fits.verbose = bool(template.verbose)
    results = fits.solve()

    if any(result.outcome is not Outcome.CERTIFIED for result in results):
        worst = sub_problems.worst_outcome(results)
        # A hint at the scales of the features, unless somebody ended the fit, or no gap was asked
        # for; rows in files are not read once more for it.
        hints = []
        is_unsolved = worst.outcome is not Outcome.INTERRUPTED
        is_unsolved = is_unsolved and max(template.tol, template.gap) > 0.0
        if is_unsolved and not is_mapped(design.X):
            hints = scale_hint(design.X)
        worst.warn(stacklevel=CALLS_TO_USER, hints=hints)
    return results, linear


def make_fitted(
    template: Estimator,
    training: Training,
    results: Sequence[FitResult],
    n: int,
    C: float,
    **more: Any,
) -> Fitted:
    """Return the :class:`Fitted` of the results of all sub-problems.

    Parameters
    ----------
    n : int
        Number of rows.
    C : float
        The C of the problems: larger than the estimator's if an l1 norm takes a share.
    **more
        Further fields of the fit.
    """
    coef = np.vstack([result.coef for result in results])
    intercept = np.hstack([result.intercept for result in results])
    all_duals = [result.alpha for result in results]
    duals: Any = None
    # A solver without dual variables leaves empty arrays.
    if all_duals[0].size:
        duals = all_duals[0]
        if len(all_duals) > 1 or sparse.issparse(duals):
            duals = sub_problems.stacked_duals(all_duals)
    # A joint machine has two vectors for two classes, and scikit-learn's models have one.
    may_be_joint = training.labels is not None and len(coef) == 2
    if may_be_joint and option_of(template, "multi_class") in splits.JOINT:
        coef, intercept, duals = splits.write_as_two_classes(coef, intercept, duals)
    return Fitted(
        template=template,
        coef=coef,
        intercept=intercept,
        duals=duals,
        C=C,
        phases=[result.phases for result in results],
        labels=training.labels,
        **gather_facts(results),
        **more,
    )


def drops_duals(training: Training, n: int) -> bool:
    """Return True if a model of n rows goes without dual variables.

    That is if there are many of them, none is zero, and the weights determine them all.
    """
    count = len(training.problems)
    if count == 1 or not is_cornerless(training.loss):
        return False
    return DUAL_BYTES * n * count * sub_problems.share_of(training.problems) > MOST_DUALS


def make_fits(
    template: Estimator,
    design: Design,
    training: Training,
    ready: FitRows | None = None,
    start: Start | None = None,
) -> tuple[Fits, LinearRows]:
    """Return the fits of the sub-problems, and their rows, in memory or block by block.

    Rows that are `ready` are used as they are.
    """
    count = len(training.problems)
    n_jobs = template.n_jobs
    solver = template._make_solver()
    if isinstance(design.X, Device):
        solver = solver_on_device(solver, training.loss, template._penalty().penalty, design.shape)
    intercept = template._intercept_kind()
    options = {"weights": training.weights, "intercept": intercept, **template._problem_options()}
    seed = draw_seed(template.random_state)
    limits = template._limits(solver)
    if count > 1 or not design.is_small:
        demand_room_for_weights(design.shape[1] + 1, count)

    rows: FitRows
    if goes_by_blocks(template, design, solver):
        n_jobs = None
        solver, rows = open_blocks(template, design, training, solver)
    else:
        rows = ready or rows_of(design, intercept, float(template.intercept_scaling), count, n_jobs)

    # Classes over the same files are read together, unless each fit has a limit or a file of its
    # own.
    is_apart = (
        template.max_iter is not None or template.checkpoint is not None or template.tol == 0.0
    )
    may_share = rows.in_files and count > 1 and not is_apart
    linear = LinearRows(
        rows=rows,
        loss=training.loss,
        options=options,
        former=start,
        reads_together=may_share and isinstance(solver, OverFiles),
    )
    fits = Fits(
        problems=training.problems,
        rows=linear,
        solver=solver,
        limits=limits,
        seed=seed,
        n_jobs=n_jobs,
        checkpoint=template.checkpoint,
        seeded=isinstance(template.random_state, (int, np.integer)),
    )
    if template.callbacks:
        fits.callbacks_of = lambda sub: template.callbacks or ()
    return fits, linear


def open_blocks(
    template: Estimator, design: Design, training: Training, solver: Any
) -> tuple[Any, FitRows]:
    """Return the solver over files, and the rows, which it reads block by block."""
    # The solver decides how much memory a row needs, and so the size of a block.
    memory = None if template.memory is None else memory_bytes(template.memory)
    multi_class = option_of(template, "multi_class")
    is_weighted = option_of(template, "class_weight") is not None
    own_weights = is_weighted and splits.has_factors(multi_class, len(training.problems))
    room = memory or available_memory() // 2
    solver, burden = splits.choose_on_files(
        multi_class,
        solver,
        design.rows,
        training.problems,
        room,
        training.loss,
        template._penalty().penalty,
        own_weights,
    )
    rows = open_rows(
        design,
        burden,
        memory,
        intercept=template._intercept_kind(),
        scale=float(template.intercept_scaling),
        checkpoint=template.checkpoint,
    )
    return solver, rows


def goes_by_blocks(template: Estimator, design: Design, solver: Any = None) -> bool:
    """Return True if the rows are read block by block, because they do not fit into memory.

    Raises
    ------
    ValueError
        The rows do not fit, but the solver or the way to split classes cannot read blocks.
    """
    if design.placed:
        return False
    solver = solver or template._make_solver()
    memory = None if template.memory is None else memory_bytes(template.memory)
    asks_for_blocks = isinstance(solver, OverFiles)
    surely_fits = memory is None and design.is_small
    if not asks_for_blocks and (surely_fits or not does_not_fit(design.X, memory)):
        return False
    missing = find_missing_for_blocks(template, solver)
    # If only the size of the rows asks for blocks, an option that needs memory goes first.
    if missing and (asks_for_blocks or memory is not None):
        raise ValueError(f"training block by block (memory=, or solver='blocks') {missing}")
    return not missing


def find_missing_for_blocks(template: Estimator, solver: SolverBase) -> str:
    """Say what the options need for rows to be read block by block; empty if nothing."""
    penalty = template._penalty().penalty
    if option_of(template, "multi_class") in splits.JOINT:
        return ""
    is_newton = isinstance(solver, Newton)
    reads_blocks = isinstance(solver, (Auto, OverFiles)) or solver.over_passes
    if not reads_blocks and not (is_newton and is_smooth(template._check_options())):
        return (
            "needs solver='auto', 'blocks' or 'newton' (it is for smooth losses); got "
            f"solver={template.solver!r}"
        )
    if is_newton and not isinstance(penalty, L2):
        return f"takes penalty={template.penalty!r} with solver='auto' or 'blocks', not 'newton'"
    if not holds_square(penalty):
        return (
            "needs a square in the penalty: penalty='l2', or 'elasticnet' with an l1_ratio below "
            "1; got the l1 norm"
        )
    return ""


def rows_for_parts(template: Estimator, X: RowsLike, problems: int) -> FitRows | None:
    """Return the rows of X, ready for fits to parts of them; None if they are read by blocks."""
    design = Design(X)
    if goes_by_blocks(template, design):
        return None
    scaling = float(template.intercept_scaling)
    return rows_of(design, template._intercept_kind(), scaling, problems, template.n_jobs)


def part_problem(
    template: Estimator, sub: SubProblem, training: Training, ready: FitRows
) -> Problem:
    """Return the problem of a sub-problem of `training`, over rows that are ready."""
    options = {"weights": training.weights, "intercept": template._intercept_kind()}
    return ready.problem(sub, training.loss, options | template._problem_options())


def fit_part(
    template: Estimator,
    X: Matrix,
    training: Training,
    ready: FitRows | None,
    start: Start | None = None,
) -> Fitted:
    """Fit the sub-problems `training` over rows that are checked already; no warnings.

    Parameters
    ----------
    template : LinearModel
    X : ndarray or CSR matrix of shape (n, d)
    training : Training
        Its sub-problems may have some of the rows as members.
    ready : FitRows or None
        Of :func:`rows_for_parts`.
    start : FormerFit, optional
        The starting point.
    """
    fits, linear = make_fits(template, Design(X), training, ready, start)
    n = X.shape[0]
    C = linear.strength_for(n)
    return make_fitted(template, training, fits.solve(), n, C, reads_blocks=linear.rows.in_files)
