"""The common part of the machines with the names and attributes of ``sklearn.svm``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from saddlesvm.data import inputs
from saddlesvm.estimators.kernel_coefficients import duals_of
from saddlesvm.estimators.kernel_machine import KernelMachine
from saddlesvm.fit.outcome import Outcome
from saddlesvm.fit.result import FitResult
from saddlesvm.multiclass import sub_problems as multiclass
from saddlesvm.multiclass.kernel_fit import Coefficients
from saddlesvm.multiclass.sub_problems import SubProblem
from saddlesvm.problem.loss import has_bounded_slopes
from saddlesvm.problem.losses import Loss, loss_name
from saddlesvm.problem.nu import PLAIN, Machine
from saddlesvm.rows.kernels import Kernel
from saddlesvm.rows.scores import linear_scores
from saddlesvm.runtime.allowed import LIMIT, NUMBER, WHOLE, Allowed, check

EPOCHS = Allowed("positive, or -1 or None for no limit", lambda given: given == -1 or LIMIT.holds(given))
EARLY = (Outcome.TIME_LIMIT, Outcome.EPOCH_LIMIT, Outcome.INTERRUPTED)
TRUTH = Allowed("True or False", lambda given: isinstance(given, (bool, np.bool_, *WHOLE)))
STRONGER = (1.0, 1e3, 1e6, 1e9, 1e12)  # values of C that take the place of an infinite one, until none is reached
UNREACHED = 0.01  # share of C that no multiplier exceeds then
NU = Allowed("a number above 0, and at most 1", lambda given: isinstance(given, NUMBER) and bool(0 < given <= 1))


class SVM(KernelMachine):
    """The base class of SVC, NuSVC, SVR, NuSVR and OneClassSVM: parameters and attributes as in scikit-learn."""

    _allowed: ClassVar[dict[str, Allowed]] = KernelMachine._allowed | {"max_iter": EPOCHS, "shrinking": TRUTH}
    C: Any = 1.0
    lam = None
    shrinking: bool
    C_: float
    n_samples_fit_: int
    fit_intercept = True
    intercept = "free"
    intercept_scaling = 1.0
    random_state: Any = 0

    def _strength(self) -> dict[str, float]:
        """C, checked; the finite one that takes the place of an infinite one."""
        return {"C": getattr(self, "C_", STRONGER[0])} if self._has_hard_margin() else super()._strength()

    def _has_hard_margin(self) -> bool:
        """Whether C is infinite: no row may be inside the margin, or outside the tube."""
        return isinstance(self.C, NUMBER) and math.inf == self.C

    def _check_hard_margin(self, loss: Loss) -> None:
        """Raise ValueError where C is infinite and multipliers have no bounds, or depend on any C."""
        plain: Any = loss
        if self._has_hard_margin() and (plain.ridge() or not has_bounded_slopes(loss)):
            raise ValueError(f"C=inf needs a piecewise linear loss, such as the hinge; got {loss_name(loss)!r}")
        if self._has_hard_margin() and self.approximation is not None:
            raise ValueError("C=inf does not work with approximation: rows on the margin need the exact kernel")

    def _solve(
        self, X: Any, problems: Sequence[Callable[[], SubProblem]], loss: Loss, weights: np.ndarray | None, *rest: Any
    ) -> list[FitResult]:
        """Fit every sub-problem; for an infinite C with finite ones, until no multiplier is bounded by it.

        The optimum is then that of every larger C.
        """
        self.__dict__.pop("C_", None)
        if not self._has_hard_margin():
            return super()._solve(X, problems, loss, weights, *rest)
        for C in STRONGER:
            self.C_ = C
            results = super()._solve(X, problems, loss, weights, *rest)
            if any(result.outcome in EARLY for result in results) or not reaches(results, weights):
                return results
        raise ValueError(
            "C=inf asks for a model that keeps every row out of the margin (or inside the tube); with this kernel "
            f"there is none, as far as C = {C:g} can tell: give a finite C"
        )

    @property
    def shape_fit_(self) -> tuple[int, int]:
        """The shape of the rows of the fit."""
        return self.n_samples_fit_, self.n_features_in_

    @property
    def fit_status_(self) -> int:
        """0 where the gap asked for was proven, else 1."""
        return 0 if self.outcome_ is Outcome.CERTIFIED else 1

    def _most_epochs(self) -> float | None:
        return None if self.max_iter == -1 else self.max_iter

    def _made_solver(self) -> Any:
        solver = super()._made_solver()
        if self.solver == "auto" and not self.shrinking:
            return type(solver)(shrinking=False)
        return solver

    def _fit_one(self, X: Any, y: np.ndarray, sample_weight: Any, loss: Loss, machine: Machine = PLAIN) -> None:
        """Solve a single problem over checked rows, and keep it."""
        weights = inputs.check_weights(sample_weight, X.shape[0])
        self.kernel_ = Kernel(self.kernel, self._gamma(X, weights), self.degree, self.coef0)
        made: Sequence[Callable[[], SubProblem]] = [lambda: SubProblem(0, "", y)]
        found = self._approximated(X, made, loss, weights, machine)
        if found is not None and self.exact_tol is None:
            [result] = found.results
            self._keep_one(result, Coefficients(found.landmarks.rows, found.coefficients[0]))
        else:
            [result] = self._solve(X, made, loss, weights, machine, None, None if found is None else found.multipliers)
            self._keep_one(result, result.coef)
        self._keep_vectors(X, [result])

    def _keep_one(self, result: FitResult, coefficients: Any) -> None:
        """Keep a single problem's coefficients of the rows, and its intercept."""
        self.support_ = coefficients.rows.astype(np.int32)
        self.dual_coef_ = coefficients.values[None, :]
        self.intercept_ = np.array([result.intercept])
        self.n_support_ = np.array([self.support_.size], dtype=np.int32)

    def _keep_vectors(self, X: Any, results: list[FitResult]) -> None:
        """Keep the rows of the support vectors, and how the fits ended."""
        self.support_vectors_ = np.empty((0, X.shape[1])) if self.kernel_.precomputed else X[self.support_]
        if sparse.issparse(X):
            self.dual_coef_ = type(self.support_vectors_)(self.dual_coef_)
        self.n_samples_fit_ = int(X.shape[0])
        self._note(results)
        multiclass.worst_outcome(results).warn(stacklevel=6)

    def _one_score(self, X: Any) -> np.ndarray:
        """The scores of a machine with one problem, shape (rows,)."""
        check_is_fitted(self)
        if self.kernel == "linear":
            return linear_scores(self._check_design(X, reset=False), self._linear_weights(), self.intercept_)[:, 0]
        return self._expanded(X, duals_of(self).T)[:, 0] + self.intercept_[0]

    @property
    def coef_(self) -> Any:
        """The weights of the features, shape (problems, d), read-only; for the linear kernel only. Sparse for sparse
        rows."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is there for kernel='linear' only")
        weights = self._pair_weights()
        values = weights.data if sparse.issparse(weights) else weights
        values.flags.writeable = False  # they are computed from the support vectors: a change would be lost
        return weights

    def problem_duals(self) -> np.ndarray:
        """The coefficients of the support vectors in each problem's score, shape (problems, n_support)."""
        return duals_of(self)

    def _pair_weights(self) -> Any:
        """The weights of each problem's score, shape (problems, d): of the kind of the support vectors."""
        duals, vectors = sparse.csr_array(self.problem_duals()), self.support_vectors_
        return type(vectors)(duals @ vectors) if sparse.issparse(vectors) else np.asarray(duals @ vectors)

    def _linear_weights(self) -> np.ndarray:
        weights = self._pair_weights()
        return np.asarray(weights.toarray() if sparse.issparse(weights) else weights)


def reaches(results: list[FitResult], weights: np.ndarray | None) -> bool:
    """Whether a dual variable of any sub-problem is more than a share of its bound, the weight of its row at least."""
    least = 1.0 if weights is None else float(weights[weights > 0.0].min())
    return any(np.abs(result.alpha).max(initial=0.0) > UNREACHED * least for result in results)


def check_share(name: str, given: Any) -> None:
    """Raise ValueError unless nu is a share."""
    check(name, given, NU)
