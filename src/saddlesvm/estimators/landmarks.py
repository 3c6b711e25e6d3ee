"""Kernel machines over landmarks: large problems approximated, solved by the linear solvers, and certified.

An eighth of the landmarks is drawn blindly, to represent all rows. A rough fit over these shows which rows have large
dual variables, and the other landmarks are drawn among those. There the approximation costs most: the exact problem's
``D(a)`` is less than that of the approximate one by ``beta' (K - K^) beta / 2``.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from saddlesvm.data.door import Design
from saddlesvm.estimators.base import Training, seed_of
from saddlesvm.fit.outcome import FitResult, Limits
from saddlesvm.multiclass.fits import no_callbacks
from saddlesvm.multiclass.linear_fit import FitRows, LinearFits, rows_of
from saddlesvm.problem.intercepts import Free, make_intercept
from saddlesvm.problem.kernel_certificate import SpanPoint, certificate_over_span
from saddlesvm.problem.nu import Novelty
from saddlesvm.problem.rounding import UNIT, gamma
from saddlesvm.rows.kernel_errors import KernelErrors, kernel_errors, projected_squares
from saddlesvm.rows.kernels import Matrix, expand
from saddlesvm.rows.landmarks import Landmarks, draw_landmarks, make_landmarks
from saddlesvm.runtime.allowed import WHOLE, Allowed
from saddlesvm.runtime.clock import clock
from saddlesvm.solvers import make_solver
from saddlesvm.solvers.second_order.newton import Newton

LANDMARKS = Allowed(
    "None, 'auto' or a whole number of landmarks above 0",
    lambda given: given is None or given == "auto" or (isinstance(given, WHOLE) and bool(given > 0)),
)
FIRST, TWICE = 8, 64  # one landmark of so many is drawn blindly; fewer landmarks than this all are
POOL = 10  # rows to draw a landmark from
ROUGH = 0.05  # relative gap of the first fit
EXACT_ROWS = 10_000  # up to which "auto" takes the kernel as it is
MOST, BYTES = 2000, 10**9  # landmarks that "auto" takes at most, and bytes of their features
LEAST_TIME = 0.02  # share of the time limit that the last fit has in any case
SPEED, SHARE = 5e10, 0.5  # operations a second, roughly, and the share of the time limit that features may take


class Approximation(NamedTuple):
    """The landmarks of a fit, and the results of its sub-problems: their `coef` are weights of the features."""

    landmarks: Landmarks
    results: list[FitResult]

    @property
    def coefficients(self) -> np.ndarray:
        """Of the landmarks' kernel functions, shape (problems, m)."""
        return self.landmarks.coefficients(np.vstack([result.coef for result in self.results]))

    @property
    def multipliers(self) -> sparse.csr_array:
        """The dual variables of all rows times C, shape (problems, n): feasible for the exact problem, too."""
        return sparse.csr_array(sparse.vstack([sparse.csr_array(result.alpha) for result in self.results]))


def wanted(model: Any, X: Matrix) -> int:
    """The number of landmarks that a machine is to have for these rows; 0 for the kernel as it is.

    Raises
    ------
    ValueError
        The kernel is precomputed, or not positive semi-definite, or other options do not fit landmarks.
    """
    given = model.approximation
    if given is None:
        if model.exact_tol is not None:
            raise ValueError("exact_tol needs approximation: without it, tol is the gap of the exact problem")
        return 0
    if model.checkpoint is not None and model.exact_tol is None:
        raise ValueError("approximation without exact_tol has no checkpoint: give exact_tol, or leave checkpoint out")
    if model.solver != "auto" and model.exact_tol is None:
        raise ValueError(f"approximation without exact_tol needs solver='auto'; got {model.solver!r}")
    kernel = model.kernel_
    if kernel.precomputed or not (kernel.definite or callable(kernel.metric)):
        raise ValueError(
            "approximation needs rows and a positive semi-definite kernel, such as 'rbf' or 'poly' with coef0 >= 0; "
            f"got kernel={kernel.name!r}"
        )
    n, d = X.shape
    if given != "auto":
        return min(int(given), n)
    if n <= EXACT_ROWS:
        return 0
    most = min(MOST, BYTES // (4 * n))
    if model.max_time is not None:  # n m (2 d + 2 m) operations in all
        room = SHARE * float(model.max_time) * SPEED / n
        most = min(most, int((np.sqrt(d * d + 2.0 * room) - d) / 2.0))
    return max(most, TWICE)


def approximated(model: Any, X: Matrix, posed: Training, count: int) -> Approximation:
    """Fit a machine over landmarks.

    Parameters
    ----------
    model : KernelSVC, SVC, SVR or OneClassSVM
        With its ``kernel_``.
    X : array or CSR matrix of shape (n, d)
    posed : Training
    count : int
        Landmarks.
    """
    begun, kernel = clock(), model.kernel_
    random = np.random.RandomState(seed_of(model.random_state))
    solver = make_solver("auto")
    limits: Limits = model._limits(solver)

    def fits(features: np.ndarray, tol: float, reserve: float = 0.0) -> LinearFits:
        rows = rows_of(Design(features), model._intercept_kind, float(model.intercept_scaling), 1, model.n_jobs)
        most = limits.max_time
        left = None if most is None else max(most - (clock() - begun) - reserve, LEAST_TIME * most)
        own = dataclasses.replace(limits, tol=tol, max_time=left)
        return feature_fits(model, rows, posed, solver, own)

    pool = np.arange(X.shape[0]) if posed.weights is None else np.flatnonzero(posed.weights)
    first = count if count < TWICE else count // FIRST
    some = np.sort(random.permutation(pool)[: max(POOL * first, TWICE)])
    drawn = draw_landmarks(kernel, X, some, first, random)
    landmarks = make_landmarks(kernel, X, drawn)
    computing = clock()
    features = landmarks.features(X)
    computed = clock() - computing
    if drawn.size == first < count:
        rough = fits(features, max(ROUGH, model.tol))
        rough.callbacks_of = no_callbacks
        size = np.asarray(abs(Approximation(landmarks, rough.solve()).multipliers).sum(axis=0)).ravel()
        heavy = np.flatnonzero(size)
        rows = draw_landmarks(kernel, X, heavy, count, random, landmarks.rows, size[heavy])
        former, landmarks = landmarks.rows, make_landmarks(kernel, X, rows)
        computing = clock()
        known = features if np.array_equal(landmarks.rows[: former.size], former) else None
        features = landmarks.features(X, known)
        computed += clock() - computing
    last = fits(features, model.tol, reserve=computed)  # as long as the kernel functions take in float64, about
    results: list[FitResult] = model._shown(last)
    return Approximation(landmarks, in_float64(last, landmarks, X, results))


def in_float64(fits: LinearFits, landmarks: Landmarks, X: Matrix, results: list[FitResult]) -> list[FitResult]:
    """The results with certificates for the kernel functions themselves: features are there in float32.

    The scores are those that a model gives in float64. The norm of a dual point is that of its kernel expansion,
    projected on the landmarks' functions.

    Parameters
    ----------
    fits : LinearFits
        Of the problems over the features.
    landmarks : Landmarks
    X : array or CSR matrix of shape (n, d)
    results : list of FitResult
    """
    found = Approximation(landmarks, results)
    expansions, duals, at = found.coefficients, found.multipliers, landmarks.rows
    errors, kept = kernel_errors(landmarks.kernel, X), []
    scores = expand(landmarks.kernel, X, landmarks.points, expansions.T)
    reached = _projected(landmarks, X, errors, duals)
    for k, (sub, result) in enumerate(zip(fits.problems, results, strict=True)):
        c, f = expansions[k], scores[at, k]
        slips = errors.of_expansion(c, UNIT, at)
        slip = float(np.abs(c) @ (slips[at] + gamma(at.size + 4.0) * np.abs(f)))
        beta = duals[[k]].toarray()[0]
        own = SpanPoint(scores[:, k], slips, result.intercept, float(c @ f), slip, beta, reached[k], errors.lengths)
        proven = certificate_over_span(fits.rows.problem(sub, fits.loss, fits.options), own)
        kept.append(result.recertified(proven, "features in float32"))
    return kept


def _projected(landmarks: Landmarks, X: Matrix, errors: KernelErrors, duals: sparse.csr_array) -> np.ndarray:
    """At most the squared norms of the functions of dual points, projected on the landmarks', shape (problems,)."""
    at = landmarks.rows
    values, slips = np.zeros((2, at.size, duals.shape[0]))
    for k in range(duals.shape[0]):
        support, beta = duals[[k]].indices, duals[[k]].data
        values[:, k] = expand(landmarks.kernel, landmarks.points, X[support].astype(np.float64), beta)
        slips[:, k] = errors.of_expansion(beta, UNIT, support)[at]
    return projected_squares(landmarks.points, errors.among(at), landmarks.inverse, landmarks.least, values, slips)


def feature_fits(model: Any, rows: FitRows, posed: Training, solver: Any, limits: Limits | None = None) -> LinearFits:
    """The fits of a machine's sub-problems over rows of features.

    Parameters
    ----------
    model : KernelSVC, SVC, SVR or OneClassSVM
        Whose machine, intercept, limits, seed and callbacks count.
    rows : FitRows
        With the virtual feature of the intercept.
    posed : Training
    solver : Solver
        The one-class machine has Newton's method, whatever is given.
    limits : Limits, optional
        Those of the model when left out.
    """
    (problems, loss, weights), machine = posed, model.machine()
    intercept = make_intercept(model._intercept_kind, rows.X.bias)
    if isinstance(machine, Novelty):
        heavy = float(rows.norms.size) if weights is None else float(weights.sum())
        intercept, solver = Free(rows.X.bias, total=machine.nu * heavy), Newton()
    return LinearFits(
        problems=problems,
        solver=solver,
        limits=limits or model._limits(solver),
        seed=seed_of(model.random_state),
        n_jobs=model.n_jobs,
        callbacks_of=lambda sub: list(model.callbacks or ()),
        rows=rows,
        loss=loss,
        options={"weights": weights, "intercept": intercept, **model._strength()},
    )
