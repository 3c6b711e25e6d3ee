"""The common part of kernel machines: their options, their checks, their fits, and sums over
support vectors.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted, validate_data

from saddlesvm.data.door import check_design
from saddlesvm.estimators.base import COMMON, Estimator, Training, draw_seed
from saddlesvm.estimators.register import KernelOptions
from saddlesvm.fit.outcome import FitResult
from saddlesvm.kernel.definiteness import symmetric
from saddlesvm.kernel.kernel_fits import KernelFits, make_kernel_solver
from saddlesvm.kernel.kernel_problem import KernelFacts, shared_facts
from saddlesvm.kernel.mercer import KERNELS, WITHOUT_GAMMA, Kernel, Matrix, expand, resolve_gamma
from saddlesvm.kernel.nu_machines import PLAIN, Machine
from saddlesvm.multiclass.fits import no_callbacks
from saddlesvm.multiclass.sub_problems import workers
from saddlesvm.runtime.allowed import FINITE, NOT_NEGATIVE, POSITIVE, Allowed, one_of

GAMMA = Allowed(
    f"'scale', 'auto' or {NOT_NEGATIVE.words}",
    lambda given: (
        given in ("scale", "auto") if isinstance(given, str) else NOT_NEGATIVE.holds(given)
    ),
)
OF_KERNELS = {"gamma": GAMMA, "degree": NOT_NEGATIVE, "coef0": FINITE, "cache_size": POSITIVE}


class KnownFacts:
    """The facts of a set of points, computed at first use, for several fits on the same points."""

    def __init__(self) -> None:
        self.found: list[KernelFacts | None] = []

    def of(self, kernel: Kernel, X: Matrix, megabytes: float) -> KernelFacts | None:
        """Return the facts of the rows of X; None if these are too many to be held."""
        if not self.found:
            self.found.append(shared_facts(kernel, X, megabytes))
        return self.found[0]


class KernelMachine(Estimator, KernelOptions):
    """The base class of the kernel machines."""

    _allowed: ClassVar[dict[str, Allowed]] = COMMON | OF_KERNELS
    intercept: str
    intercept_scaling: float
    random_state: Any
    kernel_: Kernel
    intercept_: np.ndarray
    _known: KnownFacts | None = None
    support_: np.ndarray
    support_vectors_: Any
    dual_coef_: Any
    n_support_: np.ndarray

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags

    def _made_solver(self) -> Any:
        return make_kernel_solver(self.solver)

    def _machine(self) -> Machine:
        """Return how the problem is posed over the rows."""
        return PLAIN

    @property
    def _intercept_kind(self) -> str:
        """The name of the model's intercept."""
        return self.intercept

    def _check_kernel(self) -> None:
        """Check the options that every kernel machine has."""
        super()._check_options()
        if not callable(self.kernel):
            one_of("kernel", self.kernel, KERNELS)

    def _check_design(self, X: Any, *, reset: bool) -> Any:
        """Return X, checked; a precomputed kernel must be dense, and square in a fit."""
        if self.kernel != "precomputed":
            return check_design(X, self, reset=reset, finite=True).plain
        X = validate_data(self, X, reset=reset, dtype=[np.float64, np.float32])
        if reset and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"a precomputed kernel is a square matrix of kernel values; X has shape {X.shape}"
            )
        return symmetric(X) if reset else X

    def _made_kernel(self, X: Matrix, sample_weight: np.ndarray | None) -> Kernel:
        """Return the kernel for these rows, with its parameters as numbers."""
        needed = not callable(self.kernel) and self.kernel not in WITHOUT_GAMMA
        gamma = resolve_gamma(self.gamma, X, sample_weight) if needed else 1.0
        return Kernel(self.kernel, gamma, self.degree, self.coef0)

    def _solve(
        self, X: Matrix, posed: Training, order: np.ndarray | None = None
    ) -> list[FitResult]:
        """Fit every sub-problem under a single progress bar.

        Parameters
        ----------
        order : ndarray, optional
            The order of the rows, if it is not the user's.
        """
        problems = posed.problems
        loss = posed.loss
        weights = posed.weights
        solver = self._made_solver()
        limits = self._limits(solver)
        cache_size = self.cache_size / workers(len(problems), self.n_jobs)
        fits = KernelFits(
            problems=problems,
            solver=solver,
            limits=limits,
            seed=draw_seed(self.random_state),
            n_jobs=self.n_jobs,
            callbacks_of=(lambda sub: list(self.callbacks or ()))
            if self.callbacks
            else no_callbacks,
            X=X,
            kernel=self.kernel_,
            loss=loss,
            machine=self._machine(),
            options={
                "weights": weights,
                "intercept": self._intercept_kind,
                "scale": float(self.intercept_scaling),
                "cache_size": cache_size,
                **self._strength(),
            },
            facts=self._known.of(self.kernel_, X, cache_size) if self._known else None,
            starts=self._starts(X.shape[0], len(problems), order),
            checkpoint=self.checkpoint,
        )
        results = self._shown(fits)
        self._keep_for_a_start()
        return results

    def _keep_for_a_start(self) -> None:
        """Keep the C of the fit for a warm start."""
        self._fitted_C = getattr(self, "C_", self.C)

    def _starts(self, n: int, problems: int, order: np.ndarray | None) -> list[np.ndarray] | None:
        """Return the last fit's coefficients, scaled to this C, if the next fit begins there."""
        if not (self.warm_start and hasattr(self, "dual_coef_")):
            return None
        found = coefficients_of(self, n)[0]
        if len(found) != problems:
            raise ValueError(
                f"warm_start needs as many sub-problems as the last fit, {len(found)}; this fit "
                f"has {problems}: set "
                "warm_start=False"
            )
        former = getattr(self, "_fitted_C", None)
        C = getattr(self, "C_", self.C)
        factor = C / former if former and C else 1.0
        return [factor * (beta if order is None else beta[order]) for beta in found]

    def _rows_of_support(self, X: Matrix) -> Any:
        """Return the support vectors of the fit; none for a precomputed kernel."""
        return np.empty((0, X.shape[1])) if self.kernel_.precomputed else X[self.support_]

    def _centres(self) -> Any:
        """Return the stored support vectors, or their numbers for a precomputed kernel."""
        return self.support_ if self.kernel_.precomputed else self.support_vectors_

    def _expanded(self, X: Any, coefficients: np.ndarray) -> np.ndarray:
        """Return ``k(X, support_vectors_) @ coefficients``, shape (rows, outputs)."""
        check_is_fitted(self)
        X = self._check_design(X, reset=False)
        return expand(self.kernel_, X, self._centres(), coefficients)


def duals_of(model: Any) -> np.ndarray:
    """Return the coefficients of a kernel machine's support vectors as a dense array."""
    dual = model.dual_coef_.toarray() if sparse.issparse(model.dual_coef_) else model.dual_coef_
    return np.ascontiguousarray(dual)


def coefficients_of(model: Any, n: int) -> tuple[list[np.ndarray], list[float]]:
    """Return coefficients of all training rows, shape (n,), and the intercept, for each
    sub-problem.

    Both are positive for the later class.

    Parameters
    ----------
    model : estimator
        A kernel machine of this package or of ``sklearn.svm``.
    n : int
        Training rows.

    Raises
    ------
    ValueError
        The model has support vectors in more rows.
    """
    intercept = np.ravel(model.intercept_)
    support = np.asarray(model.support_)
    if support.size and support.max() >= n:
        raise ValueError(f"the model has a support vector in row {support.max()}; X has {n} rows")

    def spread(values: np.ndarray) -> np.ndarray:
        beta = np.zeros(n)
        beta[support] = values
        return beta

    if not hasattr(model, "classes_") or model.classes_.size <= 2:
        return list(map(spread, duals_of(model))), intercept.tolist()
    return list(map(spread, -pair_duals(model))), (-intercept).tolist()


def pair_duals(model: Any) -> np.ndarray:
    """Return the coefficients of the support vectors in each pair's score, shape (pairs,
    n_support).

    A model keeps, as in scikit-learn, the coefficients of a vector against each of the other
    classes.
    """
    kept = duals_of(model)
    K = model.classes_.size
    pairs = list(combinations(range(K), 2))
    if K == 2:
        return kept
    ends = np.concatenate([[0], np.cumsum(model.n_support_)])
    found = np.zeros((len(pairs), kept.shape[1]))
    for row, (i, j) in zip(found, pairs, strict=True):
        row[ends[i] : ends[i + 1]] = kept[j - 1, ends[i] : ends[i + 1]]
        row[ends[j] : ends[j + 1]] = kept[i, ends[j] : ends[j + 1]]
    return found
