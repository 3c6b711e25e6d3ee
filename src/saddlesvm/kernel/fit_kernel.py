"""The fit of a kernel machine: from rows and labels as a user gives them to the value it leaves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from saddlesvm.data.door import Design
from saddlesvm.data.label_checks import check_weights
from saddlesvm.estimators.base import Training, apply_limits, draw_seed
from saddlesvm.estimators.calibration import fit_sigmoids, score_columns
from saddlesvm.estimators.class_weights import class_factors
from saddlesvm.estimators.fitted import gather_facts
from saddlesvm.estimators.held_out import draw_folds, held_out_scores
from saddlesvm.fit.outcome import FitResult, Outcome, Trace
from saddlesvm.kernel.definiteness import evidence_against
from saddlesvm.kernel.kernel_fits import Coefficients, KernelRows, shares_matrix
from saddlesvm.kernel.kernel_fitted import (
    KernelFitted,
    check_kernel_rows,
    score_later,
    starts_from,
)
from saddlesvm.kernel.kernel_pegasos import KernelPegasos
from saddlesvm.kernel.kernel_problem import FEW, MIDDLE, KernelFacts, has_shared, shared_facts
from saddlesvm.kernel.mercer import WITHOUT_GAMMA, Kernel, Matrix, resolve_gamma
from saddlesvm.kernel.nu_machines import Novelty, NuRegression
from saddlesvm.multiclass.fits import Fits, no_callbacks
from saddlesvm.multiclass.linear_fit import FitRows, LinearRows, rows_of
from saddlesvm.multiclass.sub_problems import Pairs, workers, worst_outcome
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.intercepts import Free
from saddlesvm.rows.memory_plan import demand_room_for_weights
from saddlesvm.runtime.clock import seconds_compiling
from saddlesvm.runtime.interrupts import raise_interrupts
from saddlesvm.solvers.newton import Newton

if TYPE_CHECKING:
    from saddlesvm.estimators.base import Estimator

EARLY = (Outcome.TIME_LIMIT, Outcome.EPOCH_LIMIT, Outcome.INTERRUPTED)
# Values of C tried for an infinite C, until no multiplier reaches one
STRONGER = (1.0, 1e3, 1e6, 1e9, 1e12)
UNREACHED = 0.01  # share of C that no multiplier exceeds then (guessed)


class KnownFacts:
    """The facts of a set of points, computed at first use, for several fits on the same points."""

    def __init__(self) -> None:
        self.found: list[KernelFacts | None] = []

    def find(self, kernel: Kernel, X: Matrix, megabytes: float) -> KernelFacts | None:
        """Return the facts of the rows of X; None if these are too many to be held."""
        if not self.found:
            self.found.append(shared_facts(kernel, X, megabytes))
        return self.found[0]


def fit_kernel(
    template: Estimator,
    X: Any,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None,
    *,
    former: KernelFitted | None = None,
    known: KnownFacts | None = None,
) -> KernelFitted:
    """Fit a kernel machine.

    Parameters
    ----------
    template : KernelMachine
        An estimator that is not fitted: its parameters. It learns the features.
    X, y, sample_weight
        As in :meth:`saddlesvm.SVC.fit`.
    former : KernelFitted, optional
        The starting point.
    known : KnownFacts, optional
        Of the rows, if other fits share them.
    """
    compiled_before = seconds_compiling()
    loss = template._check_options()
    X = check_kernel_rows(template, X, reset=True)
    n = int(X.shape[0])
    posed: Training = template._pose(y, sample_weight, n, loss)
    weights = check_weights(sample_weight, n)
    kernel = make_kernel(template, X, weights)
    results, C, chosen_C = solve_strongly(template, kernel, X, posed, former, known)

    # Support vectors: of a classifier class by class.
    more: dict[str, Any] = {}
    pairs = posed.problems
    if isinstance(pairs, Pairs):
        more = gather_pairs(pairs, results)
        more["epochs"] = np.array([result.epochs for result in results])
        factors = class_factors(template.class_weight, pairs.classes, pairs.codes, weights)
        more["class_weight"] = factors
    else:
        more = gather_one(results[0])
    support = more["support"]
    vectors = np.empty((0, X.shape[1])) if kernel.precomputed else X[support]
    if sparse.issparse(X):
        more["duals"] = type(vectors)(more["duals"])
    facts = gather_facts(results) | more
    fitted = KernelFitted(
        template=template,
        kernel=kernel,
        vectors=vectors,
        n_rows=n,
        C=C,
        chosen_C=chosen_C,
        labels=posed.labels,
        **facts,
    )
    worst_outcome(results).warn(stacklevel=5)
    if posed.labels is not None and template.probability:
        fitted = calibrate_pairs(fitted, X, posed, weights)
    return replace(fitted, seconds_compiling=seconds_compiling() - compiled_before)


def make_kernel(template: Estimator, X: Matrix, weights: np.ndarray | None) -> Kernel:
    """Return the kernel of a machine for these rows, with its parameters as numbers."""
    name = template.kernel
    gamma = 1.0
    if not callable(name) and name not in WITHOUT_GAMMA:
        gamma = resolve_gamma(template.gamma, X, weights)
    return Kernel(name, gamma, template.degree, template.coef0)


def solve_strongly(
    template: Estimator,
    kernel: Kernel,
    X: Matrix,
    posed: Training,
    former: KernelFitted | None,
    known: KnownFacts | None,
) -> tuple[list[FitResult], float, float | None]:
    """Fit every sub-problem; for an infinite C with finite values, until no multiplier reaches it.

    The optimum is then that of every larger C. Returns the results, their C, and the C that was
    chosen, if any.
    """
    strength = template._strength()
    C = strength.get("C", 1.0)
    if not math.isinf(C):
        return solve_problems(template, kernel, X, posed, strength, former, known), C, None
    # Raise C until no multiplier reaches its bound: then a larger C has the same optimum.
    for C in STRONGER:
        results = solve_problems(template, kernel, X, posed, {"C": C}, former, known)
        ended_early = any(result.outcome in EARLY for result in results)
        if ended_early or not reaches(results, posed.weights):
            return results, C, C
    raise ValueError(
        "C=inf asks for a model that keeps every row out of the margin (or inside the tube), "
        f"and no value of C up to {STRONGER[-1]:g} gives one with this kernel: give a finite C"
    )


def reaches(results: list[FitResult], weights: np.ndarray | None) -> bool:
    """Return True if a dual variable of any sub-problem exceeds a small share of its bound."""
    least = 1.0 if weights is None else float(weights[weights > 0.0].min())
    return any(np.abs(result.alpha).max(initial=0.0) > UNREACHED * least for result in results)


def solve_problems(
    template: Any,
    kernel: Kernel,
    X: Matrix,
    posed: Training,
    strength: dict[str, float],
    former: KernelFitted | None,
    known: KnownFacts | None,
) -> list[FitResult]:
    """Fit every sub-problem for a given C or lambda, in the quickest way."""
    machine = template._machine()
    problems = posed.problems
    n = X.shape[0]
    # Equal targets have the optimum w = 0, and a tube of no width.
    if isinstance(machine, NuRegression):
        targets = problems[0].y
        if (targets == targets[0]).all() and not evidence_against(kernel, X):
            return [flat_result(template, targets)]

    # One class of many rows with the linear kernel: the weights of the features do not grow with
    # the rows.
    plain_solver = template.solver == "auto"
    if isinstance(machine, Novelty) and kernel.metric == "linear" and plain_solver and n > FEW:
        return solve_weights(template, machine, X, posed, strength)

    # Pairs that share a kernel matrix: over the rows class by class.
    order = None
    if isinstance(problems, Pairs) and not problems.sorted:
        may_share = problems.classes.size > 2 or n <= MIDDLE
        cache_size = template.cache_size
        shares = shares_matrix(kernel, X, problems, machine, cache_size)
        # The fits of a path share what is known of the rows in any case.
        if known is not None:
            shares = has_shared(kernel, X, cache_size)
        if may_share and shares:
            order = np.argsort(problems.codes, kind="stable")
            weights = None if posed.weights is None else posed.weights[order]
            sorted_pairs = Pairs(problems.codes[order], problems.classes)
            posed = posed._replace(problems=sorted_pairs, weights=weights)
            X = X[order]
    starts = starts_from(former, strength.get("C", 1.0), n, len(problems), order)
    fits = make_fits(template, kernel, X, posed, strength, known, starts)
    results = template._solve_shown(fits)
    if order is None:
        return results
    found = []
    for result in results:
        rows, values = result.coef
        found.append(replace(result, coef=Coefficients(order[rows], values)))
    return found


def make_fits(
    template: Any,
    kernel: Kernel,
    X: Matrix,
    posed: Training,
    strength: dict[str, float],
    known: KnownFacts | None,
    starts: Sequence[np.ndarray] | None,
) -> Fits:
    """Return the fits of the sub-problems of a kernel machine over checked rows."""
    problems = posed.problems
    solver = template._make_solver()
    if template.checkpoint is not None and isinstance(solver, KernelPegasos):
        raise ValueError(
            "kernel Pegasos has no checkpoints: use another solver, or leave the checkpoint out"
        )
    # Fits that run at the same time share the cache.
    cache_size = template.cache_size / workers(len(problems), template.n_jobs)
    rows = KernelRows(
        X=X,
        kernel=kernel,
        loss=posed.loss,
        machine=template._machine(),
        options={
            "weights": posed.weights,
            "intercept": template._intercept_kind(),
            "scale": 1.0,
            "cache_size": cache_size,
            **strength,
        },
        facts=None if known is None else known.find(kernel, X, cache_size),
        starts=starts,
    )
    callbacks = template.callbacks
    return Fits(
        problems=problems,
        rows=rows,
        solver=solver,
        limits=template._limits(solver),
        seed=draw_seed(getattr(template, "random_state", 0)),
        n_jobs=template.n_jobs,
        callbacks_of=(lambda sub: list(callbacks)) if callbacks else no_callbacks,
        checkpoint=template.checkpoint,
    )


def flat_result(template: Estimator, targets: np.ndarray) -> FitResult:
    """Return the result for equal targets: no support vector, and the target as intercept."""
    return FitResult(
        coef=Coefficients(np.empty(0, dtype=np.intp), np.empty(0)),  # type: ignore[arg-type]
        intercept=float(targets[0]),
        alpha=np.zeros(targets.size),
        certificate=Certificate(0.0, 0.0),  # no objective is negative
        outcome=Outcome.CERTIFIED,
        tol=template.tol,
        epochs=0.0,
        rows_touched=0,
        seconds_solving=0.0,
        seconds_certifying=0.0,
        trace=Trace(),
        reason="the targets are all the same",
    )


def solve_weights(
    template: Any, machine: Novelty, X: Matrix, posed: Training, strength: dict[str, float]
) -> list[FitResult]:
    """Solve the one-class problem of the linear kernel by Newton's method on the features."""
    demand_room_for_weights(X.shape[1] + 1)
    rows: FitRows = rows_of(Design(X), "free", 1.0, 1, template.n_jobs)
    # The multipliers of all rows sum to nu n (as LIBSVM scales them); n counts rows by their
    # weights.
    heavy = float(rows.norms.size) if posed.weights is None else float(posed.weights.sum())
    solver = Newton()
    linear = LinearRows(
        rows=rows,
        loss=posed.loss,
        options={
            "weights": posed.weights,
            "intercept": Free(rows.X.bias, total=machine.nu * heavy),
            **strength,
        },
    )
    fits = Fits(
        problems=posed.problems,
        rows=linear,
        solver=solver,
        limits=template._limits(solver),
        seed=draw_seed(0),
        n_jobs=template.n_jobs,
        callbacks_of=lambda sub: list(template.callbacks or ()),
    )
    [result] = template._solve_shown(fits)
    # w = 0 has no support vectors.
    [multipliers] = result.alpha if result.coef.any() else np.zeros_like(result.alpha)
    support = np.flatnonzero(multipliers)
    return [replace(result, coef=Coefficients(support, multipliers[support]))]


def gather_one(result: FitResult) -> dict[str, Any]:
    """Return the support vectors of a machine with a single problem."""
    rows, values = result.coef
    return {
        "support": rows.astype(np.int32),
        "n_support": np.array([rows.size], dtype=np.int32),
        "duals": values[None, :],
        "intercept": np.array([result.intercept]),
    }


def gather_pairs(pairs: Pairs, results: list[FitResult]) -> dict[str, Any]:
    """Return the support vectors of a classifier, class by class, as scikit-learn keeps them.

    A support vector of class i has its coefficient against class j in row ``j - 1`` if j is later,
    else in row j. Scores of pairs are positive for the earlier class; scores of two classes alone
    for the later class.
    """
    codes = pairs.codes
    count = pairs.classes.size
    parts = [result.coef for result in results]
    # The rows that are support vectors of any pair, and the place of each among them.
    place = np.full(codes.size, -1)
    for rows, _ in parts:
        place[rows] = 0
    support = np.flatnonzero(place == 0)
    support = support[np.argsort(codes[support], kind="stable")]
    place[support] = np.arange(support.size)
    own = codes[support]

    sign = 1.0 if count == 2 else -1.0
    duals = np.zeros((count - 1, support.size))
    for k, (i, j) in enumerate(combinations(range(count), 2)):
        rows, values = parts[k]
        at = place[rows]
        duals[np.where(own[at] == i, j - 1, i), at] = sign * values
    return {
        "support": support.astype(np.int32),
        "n_support": np.bincount(own, minlength=count).astype(np.int32),
        "duals": duals,
        "intercept": sign * np.array([result.intercept for result in results]),
    }


def calibrate_pairs(
    fitted: KernelFitted, X: Matrix, posed: Training, sample_weight: np.ndarray | None
) -> KernelFitted:
    """Return a fit with a sigmoid for each pair, fitted to scores of rows that were left out."""
    pairs = posed.problems
    assert isinstance(pairs, Pairs)
    codes = pairs.codes
    weights = posed.weights
    precomputed = fitted.kernel.precomputed
    # The models of the folds need no sigmoids; their gamma is that of all rows, also if it is
    # "scale".
    own = fitted.template._options()
    own.set_params(probability=False, gamma=fitted.kernel.gamma, verbose=0, checkpoint=None)

    def score_others(inside: np.ndarray, outside: np.ndarray) -> np.ndarray:
        """Return the scores of rows by a model that was trained on others."""
        template = own._options()
        if "nu" in own.get_params(deep=False):
            # The largest nu that the smallest class allows in its pairs.
            heavy = np.bincount(codes[inside], None if weights is None else weights[inside])
            template.nu = min(own.nu, 2.0 * heavy.min() / (heavy.min() + heavy.max()))
        part = X[np.ix_(inside, inside)] if precomputed else X[inside]
        labels = pairs.classes[codes[inside]]
        part_weights = None if sample_weight is None else sample_weight[inside]
        with raise_interrupts(), apply_limits(template):
            other = fit_kernel(template, part, labels, part_weights)
        return score_later(other, X[np.ix_(outside, inside)] if precomputed else X[outside])

    folds = draw_folds(codes, weights, draw_seed(own.random_state))
    scores = held_out_scores(folds, lambda rows: score_later(fitted, X[rows]), score_others)
    columns = score_columns(Pairs(codes, pairs.classes), scores, weights)
    return replace(fitted, calibration=fit_sigmoids(columns))
