"""The fit of a kernel machine: from rows and labels as a user gives them to the value it leaves."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from saddlesvm.data.label_checks import check_weights
from saddlesvm.estimators.base import Training, draw_seed
from saddlesvm.estimators.class_weights import class_factors
from saddlesvm.estimators.fitted import gather_facts
from saddlesvm.fit.outcome import FitResult, Outcome
from saddlesvm.kernel.definiteness import evidence_against
from saddlesvm.kernel.kernel_fits import Coefficients, KernelRows
from saddlesvm.kernel.kernel_fitted import KernelFitted, check_kernel_rows
from saddlesvm.kernel.kernel_problem import MIDDLE, can_share_matrix
from saddlesvm.kernel.mercer import WITHOUT_GAMMA, Kernel, Matrix, resolve_gamma
from saddlesvm.kernel.nu_machines import NuRegression
from saddlesvm.multiclass.fits import Fits, no_callbacks
from saddlesvm.multiclass.sub_problems import Pairs, workers, worst_outcome
from saddlesvm.problem.certificate import Certificate
from saddlesvm.runtime.clock import seconds_compiling

if TYPE_CHECKING:
    from saddlesvm.estimators.base import Estimator


def fit_kernel(
    template: Estimator,
    X: Any,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None,
) -> KernelFitted:
    """Fit a kernel machine.

    Parameters
    ----------
    template : KernelMachine
        An estimator that is not fitted: its parameters. It learns the features.
    X, y, sample_weight
        As in :meth:`saddlesvm.SVC.fit`.
    """
    compiled_before = seconds_compiling()
    loss = template._check_options()
    X = check_kernel_rows(template, X, reset=True)
    n = int(X.shape[0])
    training: Training = template._pose(y, sample_weight, n, loss)
    weights = check_weights(sample_weight, n)
    kernel = make_kernel(template, X, weights)
    strength = template._strength()
    results = solve_problems(template, kernel, X, training, strength)

    # The support vectors and their coefficients; those of a classifier class by class.
    pairs = training.problems
    if isinstance(pairs, Pairs):
        expansion = gather_pairs(pairs, results)
        expansion["epochs"] = np.array([result.epochs for result in results])
        factors = class_factors(template.class_weight, pairs.classes, pairs.codes, weights)
        expansion["class_weight"] = factors
    else:
        expansion = gather_single(results[0])
    support = expansion["support"]
    # A precomputed kernel has no vectors. Coefficients of sparse rows are sparse, too.
    vectors = np.empty((0, X.shape[1]))
    if not kernel.precomputed:
        vectors = X[support]
    if sparse.issparse(X):
        expansion["duals"] = type(vectors)(expansion["duals"])
    facts = gather_facts(results) | expansion
    # The warning points at the line that called `fit`.
    worst_outcome(results).warn(stacklevel=5)
    return KernelFitted(
        template=template,
        kernel=kernel,
        vectors=vectors,
        n_rows=n,
        C=strength.get("C", 1.0),
        labels=training.labels,
        seconds_compiling=seconds_compiling() - compiled_before,
        **facts,
    )


def make_kernel(template: Estimator, X: Matrix, weights: np.ndarray | None) -> Kernel:
    """Return the kernel of a machine for these rows, with its parameters as numbers."""
    name = template.kernel
    gamma = 1.0
    if not callable(name) and name not in WITHOUT_GAMMA:
        gamma = resolve_gamma(template.gamma, X, weights)
    return Kernel(name, gamma, template.degree, template.coef0)


def solve_problems(
    template: Any,
    kernel: Kernel,
    X: Matrix,
    training: Training,
    strength: dict[str, float],
) -> list[FitResult]:
    """Fit every sub-problem for a given C or lambda, in the quickest way."""
    machine = template._machine()
    problems = training.problems
    n = X.shape[0]
    # Equal targets have the optimum w = 0, and a tube of no width.
    if isinstance(machine, NuRegression):
        targets = problems[0].y
        if (targets == targets[0]).all() and not evidence_against(kernel, X):
            return [flat_result(template, targets)]

    # If the pairs share one kernel matrix, sort its rows by class: each pair then has two
    # consecutive stretches of it. Two classes are one problem, which holds a matrix up to MIDDLE
    # rows.
    order = None
    if isinstance(problems, Pairs) and not problems.sorted:
        may_share = problems.classes.size > 2 or n <= MIDDLE
        if may_share and can_share_matrix(kernel, X, template.cache_size):
            order = np.argsort(problems.codes, kind="stable")
            weights = None if training.weights is None else training.weights[order]
            sorted_pairs = Pairs(problems.codes[order], problems.classes)
            training = training._replace(problems=sorted_pairs, weights=weights)
            X = X[order]
    fits = make_fits(template, kernel, X, training, strength)
    results = fits.solve()
    if order is None:
        return results
    # Give the coefficients the row numbers of the user's X again.
    in_given_order = []
    for result in results:
        rows, values = result.coef
        coef: Any = Coefficients(order[rows], values)
        in_given_order.append(replace(result, coef=coef))
    return in_given_order


def make_fits(
    template: Any,
    kernel: Kernel,
    X: Matrix,
    training: Training,
    strength: dict[str, float],
) -> Fits:
    """Return the fits of the sub-problems of a kernel machine over checked rows."""
    problems = training.problems
    solver = template._make_solver()
    # Fits that run at the same time share the cache.
    cache_size = template.cache_size / workers(len(problems), template.n_jobs)
    rows = KernelRows(
        X=X,
        kernel=kernel,
        loss=training.loss,
        machine=template._machine(),
        options={
            "weights": training.weights,
            "intercept": template._intercept_kind(),
            "cache_size": cache_size,
            **strength,
        },
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
        verbose=bool(template.verbose),
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
        reason="the targets are all the same",
    )


def gather_single(result: FitResult) -> dict[str, Any]:
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
    n_classes = pairs.classes.size
    pair_coefs = [result.coef for result in results]
    # The rows that are support vectors of any pair, class by class, and the column of each of them
    # in the table of coefficients; -1 for all other rows.
    column_of = np.full(codes.size, -1)
    for rows, _ in pair_coefs:
        column_of[rows] = 0
    support = np.flatnonzero(column_of == 0)
    support = support[np.argsort(codes[support], kind="stable")]
    column_of[support] = np.arange(support.size)
    support_codes = codes[support]

    # Fits are positive for the later class of a pair; with three classes or more, scikit-learn is
    # positive for the earlier.
    sign = -1.0
    if n_classes == 2:
        sign = 1.0
    # For the pair (i, j), a row of class i has its coefficient in line j - 1, one of class j in
    # line i.
    duals = np.zeros((n_classes - 1, support.size))
    for k, (i, j) in enumerate(combinations(range(n_classes), 2)):
        rows, values = pair_coefs[k]
        columns = column_of[rows]
        lines = np.where(support_codes[columns] == i, j - 1, i)
        duals[lines, columns] = sign * values
    return {
        "support": support.astype(np.int32),
        "n_support": np.bincount(support_codes, minlength=n_classes).astype(np.int32),
        "duals": duals,
        "intercept": sign * np.array([result.intercept for result in results]),
    }
