"""The machines with the names and attributes of ``sklearn.svm``: what all share, and those with a
single problem.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from saddlesvm.data.door import Design
from saddlesvm.data.label_checks import check_targets, check_weights
from saddlesvm.estimators.base import Training, draw_seed, restore_on_error
from saddlesvm.estimators.register import (
    KERNEL,
    SVMOptions,
    register_estimator,
)
from saddlesvm.estimators.scikit_learn import OutlierMixin, RegressorMixin
from saddlesvm.fit.outcome import FitResult, Outcome, Trace
from saddlesvm.kernel.definiteness import evidence_against
from saddlesvm.kernel.kernel_fits import Coefficients
from saddlesvm.kernel.kernel_machine import KernelMachine, duals_of
from saddlesvm.kernel.kernel_problem import FEW, check_kernel_loss
from saddlesvm.kernel.mercer import Matrix
from saddlesvm.kernel.nu_machines import SHORTFALL, Machine, Novelty, NuRegression
from saddlesvm.multiclass.linear_fit import FitRows, LinearFits, rows_of
from saddlesvm.multiclass.sub_problems import SubProblem
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.intercepts import Free
from saddlesvm.problem.loss import Loss, has_bounded_slopes, loss_name
from saddlesvm.problem.losses import make_loss
from saddlesvm.problem.residual_losses import RegressionLoss
from saddlesvm.rows.memory_plan import demand_room_for_weights
from saddlesvm.rows.scores import linear_scores
from saddlesvm.runtime.allowed import LIMIT, NUMBER, STRENGTH, WHOLE, Allowed
from saddlesvm.solvers.second_order.newton import Newton

EPOCHS = Allowed(
    "positive, or -1 or None for no limit", lambda given: given == -1 or LIMIT.holds(given)
)
EARLY = (Outcome.TIME_LIMIT, Outcome.EPOCH_LIMIT, Outcome.INTERRUPTED)
TRUTH = Allowed("True or False", lambda given: isinstance(given, (bool, np.bool_, *WHOLE)))
# Values of C tried for an infinite C, until no multiplier reaches one
STRONGER = (1.0, 1e3, 1e6, 1e9, 1e12)
UNREACHED = 0.01  # share of C that no multiplier exceeds then (guessed)
NU = Allowed(
    "a number above 0, and at most 1",
    lambda given: isinstance(given, NUMBER) and bool(0 < given <= 1),
)


class SVM(KernelMachine, SVMOptions):
    """The base class of SVC, NuSVC, SVR, NuSVR and OneClassSVM: parameters and attributes as in
    scikit-learn.
    """

    _allowed: ClassVar[dict[str, Allowed]] = KernelMachine._allowed | {
        "max_iter": EPOCHS,
        "shrinking": TRUTH,
    }
    C: Any = 1.0
    lam: float | None = None
    C_: float
    n_samples_fit_: int
    intercept: Any = "free"
    intercept_scaling = 1.0
    random_state: Any = 0

    def _strength(self) -> dict[str, float]:
        """Return C, checked; for an infinite C, the finite value in its place."""
        return (
            {"C": getattr(self, "C_", STRONGER[0])}
            if self._has_hard_margin()
            else super()._strength()
        )

    def _has_hard_margin(self) -> bool:
        """Return True if C is infinite: no row may be inside the margin, or outside the tube."""
        return self.lam is None and isinstance(self.C, NUMBER) and math.inf == self.C

    def _check_hard_margin(self, loss: Loss) -> None:
        """Raise ValueError if C is infinite and multipliers have no bounds, or depend on any C."""
        plain: Any = loss
        if self._has_hard_margin() and (plain.ridge() or not has_bounded_slopes(loss)):
            raise ValueError(
                f"C=inf needs a piecewise linear loss, such as the hinge; got {loss_name(loss)!r}"
            )

    def _solve(
        self, X: Matrix, posed: Training, order: np.ndarray | None = None
    ) -> list[FitResult]:
        """Fit every sub-problem; for an infinite C by finite ones, until no multiplier is bounded
        by it.

        The optimum is then that of every larger C.
        """
        self.__dict__.pop("C_", None)
        if not self._has_hard_margin():
            return super()._solve(X, posed, order)
        for C in STRONGER:
            self.C_ = C
            results = super()._solve(X, posed, order)
            if any(result.outcome in EARLY for result in results) or not reaches(
                results, posed.weights
            ):
                return results
        raise ValueError(
            "C=inf asks for a model that keeps every row out of the margin (or inside the tube), "
            "and no value of C up "
            f"to {C:g} gives one with this kernel: give a finite C"
        )

    @property
    def shape_fit_(self) -> tuple[int, int]:
        """The shape of the rows of the fit."""
        return self.n_samples_fit_, self.n_features_in_

    @property
    def fit_status_(self) -> int:
        """0 if the requested gap was proven, else 1."""
        return 0 if self.outcome_ is Outcome.CERTIFIED else 1

    def _made_solver(self) -> Any:
        solver = super()._made_solver()
        if self.solver == "auto" and not self.shrinking:
            return type(solver)(shrinking=False)
        return solver

    def _fit_one(
        self, X: Matrix, y: np.ndarray, sample_weight: ArrayLike | None, loss: Loss
    ) -> None:
        """Solve a single problem over checked rows, and keep it."""
        weights = check_weights(sample_weight, X.shape[0])
        self.kernel_ = self._made_kernel(X, weights)
        [result] = self._solve(X, Training([SubProblem(0, "", y)], loss, weights))
        self._keep_one(result, result.coef)
        self._keep_vectors(X, [result])
        result.warn(stacklevel=5)

    def _keep_one(self, result: FitResult, coefficients: Any) -> None:
        """Keep a single problem's coefficients of the rows, and its intercept."""
        self.support_ = coefficients.rows.astype(np.int32)
        self.dual_coef_ = coefficients.values[None, :]
        self.intercept_ = np.array([result.intercept])
        self.n_support_ = np.array([self.support_.size], dtype=np.int32)

    def _keep_vectors(self, X: Matrix, results: list[FitResult]) -> None:
        """Keep the rows of the support vectors, and how the fits ended."""
        self.support_vectors_ = self._rows_of_support(X)
        if sparse.issparse(X):
            self.dual_coef_ = type(self.support_vectors_)(self.dual_coef_)
        self.n_samples_fit_ = int(X.shape[0])
        self._set_outcome(results)

    def _one_score(self, X: Any) -> np.ndarray:
        """Return the scores of a machine with a single problem, shape (rows,)."""
        check_is_fitted(self)
        if self.kernel == "linear":
            return linear_scores(
                self._check_design(X, reset=False), self._linear_weights(), self.intercept_
            )[:, 0]
        return self._expanded(X, duals_of(self).T)[:, 0] + self.intercept_[0]

    @property
    def coef_(self) -> Any:
        """The weights of the features, shape (problems, d), read-only; for the linear kernel only.
        Sparse for sparse rows.
        """
        if self.kernel != "linear":
            raise AttributeError(
                f"coef_ exists for kernel='linear' only; this model has kernel={self.kernel!r}"
            )
        weights = self._pair_weights()
        values = weights.data if sparse.issparse(weights) else weights
        values.flags.writeable = (
            False  # they are computed from the support vectors: a change would be lost
        )
        return weights

    def _problem_duals(self) -> np.ndarray:
        """Return the coefficients of the support vectors in each problem's score, shape (problems,
        n_support).
        """
        return duals_of(self)

    def _pair_weights(self) -> Any:
        """Return the weights of each problem's score, shape (problems, d); sparse for sparse
        support vectors.
        """
        duals = sparse.csr_array(self._problem_duals())
        vectors = self.support_vectors_
        return (
            type(vectors)(duals @ vectors)
            if sparse.issparse(vectors)
            else np.asarray(duals @ vectors)
        )

    def _linear_weights(self) -> np.ndarray:
        weights = self._pair_weights()
        return np.asarray(weights.toarray() if sparse.issparse(weights) else weights)


def reaches(results: list[FitResult], weights: np.ndarray | None) -> bool:
    """Return True if a dual variable of any sub-problem exceeds a small share of its bound."""
    least = 1.0 if weights is None else float(weights[weights > 0.0].min())
    return any(np.abs(result.alpha).max(initial=0.0) > UNREACHED * least for result in results)


class Regressor(RegressorMixin, SVM):
    """Prediction of both regressions."""

    @restore_on_error
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train to the relative gap `tol`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Of shape (n, n) for a precomputed kernel.
        y : array-like of shape (n,)
            Finite targets.
        sample_weight : array-like of shape (n,), optional
            Non-negative row weights; a weight of 2 equals the row twice.

        Raises
        ------
        ValueError
            Invalid data or options. The message names what was found and what is allowed.

        Warns
        -----
        NotCertifiedWarning
            A limit was reached before the requested gap was proven.
        """
        loss = self._check_options()
        X = self._check_design(X, reset=True)
        self._fit_one(X, check_targets(y, X.shape[0]), sample_weight, loss)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predicted targets, shape (rows,).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (rows, d)
            Of shape (rows, n) for a precomputed kernel: kernel values between the rows and the
            training data.
        """
        return self._one_score(X)


@register_estimator(
    task="regression",
    saved=KERNEL,
    linear=False,
)
@dataclass(kw_only=True, eq=False, repr=False)
class SVR(Regressor, SVMOptions):
    """Support vector regression with a kernel, trained to a certified relative duality gap.

    Minimises

    .. math::

        \\tfrac12 \\lVert w \\rVert^2
        + C \\sum_i s_i
        \\max\\bigl(0, \\lvert w^\\top \\psi(x_i) + b - y_i \\rvert - \\epsilon\\bigr)

    over the feature space of the kernel. Parameters and attributes are as in
    ``sklearn.svm.SVR``, except that `tol` is the relative gap to prove. The parameters after
    `max_iter` are additions.

    Parameters
    ----------
    kernel, degree, gamma, coef0, cache_size
        As in :class:`SVC`.
    tol : float, default=1e-3
        Relative duality gap to prove.
    C : float, default=1.0
        Weight of the losses.
    epsilon : float, default=0.1
        Half-width of the tube without loss. It has the target's units.
    shrinking, verbose, max_iter, max_time, keep, gap, solver, n_jobs, \
callbacks, warm_start, checkpoint
        As in :class:`SVC`.
    loss : str or Loss, default="epsilon_insensitive"
        "epsilon_insensitive", as in scikit-learn; or "squared_epsilon_insensitive", "absolute",
        "squared" (kernel ridge regression), "huber:delta=1.0", "pinball:tau=0.5" (the quantile
        `tau`).

    Attributes
    ----------
    support_ : ndarray of shape (n_support,)
        Row numbers of the support vectors, ascending.
    support_vectors_ : ndarray or CSR matrix of shape (n_support, d)
        Empty for a precomputed kernel.
    dual_coef_ : ndarray of shape (1, n_support)
    intercept_ : ndarray of shape (1,)
    n_support_ : ndarray of shape (1,)
    fit_status_, certificate_, certificates_, outcome_, trace_, n_iter_
    seconds_solving_, seconds_certifying_, seconds_compiling_
    kernel_, n_samples_fit_, n_features_in_, feature_names_in_, coef_
        As in :class:`SVC`.

    Examples
    --------
    >>> import numpy as np
    >>> from saddlesvm import SVR
    >>> x = np.linspace(0.0, 6.0, 100)
    >>> model = SVR(C=10.0, gamma=1.0, epsilon=0.01).fit(x[:, None], np.sin(x))
    >>> model.predict([[np.pi / 2]]).round(1).tolist(), model.certificate_.relative_gap <= 1e-3
    ([1.0], True)
    """

    C: float = 1.0
    epsilon: float = 0.1
    loss: RegressionLoss | Loss | type[Loss] = "epsilon_insensitive"

    def _check_options(self) -> Loss:
        """The loss; every option that does not depend on the data is checked."""
        self._check_kernel()
        loss = check_kernel_loss(make_loss(self.loss, epsilon=self.epsilon, task="regression"))
        self._check_hard_margin(loss)
        return loss


@register_estimator(task="regression", saved=KERNEL, linear=False)
@dataclass(kw_only=True, eq=False, repr=False)
class NuSVR(Regressor, SVMOptions):
    """Support vector regression whose tube leaves a given share of the rows outside, certified.

    Minimises

    .. math::

        \\tfrac12 \\lVert w \\rVert^2 + C \\Bigl( \\nu \\epsilon \\sum_i s_i
        + \\sum_i s_i
        \\max\\bigl(0, \\lvert w^\\top \\psi(x_i) + b - y_i \\rvert - \\epsilon\\bigr) \\Bigr)

    over the feature space of the kernel, b and :math:`\\epsilon`. Parameters and attributes are
    as in ``sklearn.svm.NuSVR``, except that `tol` is the relative gap to prove. The parameters
    after `max_iter` are additions.

    Parameters
    ----------
    nu : float, default=0.5
        At most this share of the rows is outside the tube, and at least this share are support
        vectors.
    C : float, default=1.0
        Weight of the losses.
    kernel, degree, gamma, coef0, shrinking, tol, cache_size, verbose, max_iter, max_time, keep,
    gap, \
solver, n_jobs, callbacks, warm_start, checkpoint
        As in :class:`SVC`.

    Attributes
    ----------
    support_, support_vectors_, dual_coef_, intercept_, n_support_, fit_status_, certificate_
    certificates_, outcome_, trace_, n_iter_, seconds_solving_, seconds_certifying_
    seconds_compiling_, kernel_, n_samples_fit_, n_features_in_, feature_names_in_, coef_
        As in :class:`SVR`.

    Examples
    --------
    >>> import numpy as np
    >>> from saddlesvm import NuSVR
    >>> x = np.linspace(0.0, 6.0, 100)
    >>> model = NuSVR(nu=0.3, C=10.0, gamma=1.0).fit(x[:, None], np.sin(x))
    >>> model.predict([[np.pi / 2]]).round(1).tolist(), model.certificate_.relative_gap <= 1e-3
    ([1.0], True)
    """

    _allowed: ClassVar[dict[str, Allowed]] = Regressor._allowed | {"C": STRENGTH, "nu": NU}
    nu: float = 0.5
    C: float = 1.0

    def _check_options(self) -> Loss:
        """The loss; every option that does not depend on the data is checked."""
        self._check_kernel()
        return SHORTFALL

    def _machine(self) -> Machine:
        """Return the tube that leaves the share out."""
        return NuRegression(float(self.nu))

    def _solve(
        self, X: Matrix, posed: Training, order: np.ndarray | None = None
    ) -> list[FitResult]:
        """Return the results of the fit; equal targets have the optimum w = 0 and a tube of no
        width.
        """
        targets = posed.problems[0].y
        if (targets != targets[0]).any() or evidence_against(self.kernel_, X):
            return super()._solve(X, posed, order)
        self._keep_for_a_start()
        result = FitResult(
            coef=Coefficients(np.empty(0, dtype=np.intp), np.empty(0)),  # type: ignore[arg-type]
            intercept=float(targets[0]),
            alpha=np.zeros(targets.size),
            certificate=Certificate(0.0, 0.0),  # no objective is negative
            outcome=Outcome.CERTIFIED,
            tol=self.tol,
            epochs=0.0,
            rows_touched=0,
            seconds_solving=0.0,
            seconds_certifying=0.0,
            trace=Trace(),
            reason="the targets are all the same",
        )
        return [result]


@register_estimator(task="novelty", saved=KERNEL, linear=False)
@dataclass(kw_only=True, eq=False, repr=False)
class OneClassSVM(OutlierMixin, SVM, SVMOptions):
    """Novelty detection: a surface around most of the rows, trained to a certified relative duality
    gap.

    Minimises

    .. math::

        \\tfrac12 \\lVert w \\rVert^2 + \\sum_i s_i \\max\\bigl(0, \\rho - w^\\top \\psi(x_i)\\bigr)
        - \\nu \\rho \\sum_i s_i

    over the feature space of the kernel and :math:`\\rho`. Parameters and attributes are as in
    ``sklearn.svm.OneClassSVM``, except that `tol` is the relative gap to prove. The parameters
    after `max_iter` are additions.

    Parameters
    ----------
    kernel, degree, gamma, coef0
        As in :class:`SVC`.
    tol : float, default=1e-3
        Relative duality gap to prove.
    nu : float, default=0.5
        At most this share of the rows is outside the surface, and at least this share are support
        vectors.
    shrinking, cache_size, verbose, max_iter, max_time, keep, gap, solver, n_jobs, \
callbacks, warm_start, checkpoint
        As in :class:`SVC`.

    Attributes
    ----------
    support_, support_vectors_, dual_coef_, intercept_, n_support_, fit_status_, certificate_
    certificates_, outcome_, trace_, n_iter_, seconds_solving_, seconds_certifying_
    seconds_compiling_, kernel_, n_samples_fit_, n_features_in_, feature_names_in_, coef_
        As in :class:`SVR`. The multipliers are between 0 and the row weights.
    offset_ : ndarray of shape (1,)
        The threshold rho: ``decision_function = score_samples - offset_``.

    Notes
    -----
    Source: Schoelkopf, Platt, Shawe-Taylor, Smola and Williamson (2001), "Estimating the support of
    a high-dimensional distribution". The optimum is negative; the gap is relative to its absolute
    value.

    With ``kernel="linear"``, ``solver="auto"`` and more than 512 rows, Newton's method finds the
    weights of the features (:class:`~saddlesvm.solvers.second_order.newton.Newton`; an epoch is a
    of its steps): a million rows of 50 features take a second or so.

    Examples
    --------
    >>> import numpy as np
    >>> from saddlesvm import OneClassSVM
    >>> rows = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = OneClassSVM(nu=0.1, gamma=0.5).fit(rows)
    >>> model.predict([[0.0, 0.0], [5.0, 5.0]]).tolist(), model.certificate_.relative_gap <= 1e-3
    ([1, -1], True)
    """

    _allowed: ClassVar[dict[str, Allowed]] = SVM._allowed | {"nu": NU}
    nu: float = 0.5

    @property
    def offset_(self) -> np.ndarray:
        """rho, the score of the surface, shape (1,)."""
        return -self.intercept_

    def _check_options(self) -> Loss:
        """The loss; every option that does not depend on the data is checked."""
        self._check_kernel()
        return SHORTFALL

    @restore_on_error
    def fit(
        self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Train to the relative gap `tol`; `y` is ignored. See :meth:`SVR.fit`."""
        self._check_options()
        X = self._check_design(X, reset=True)
        if self.kernel == "linear" and self.solver == "auto" and X.shape[0] > FEW:
            self._fit_weights(X, sample_weight)
        else:
            self._fit_one(X, np.zeros(X.shape[0]), sample_weight, SHORTFALL)
        return self

    def _machine(self) -> Machine:
        """Return the surface that leaves the share out."""
        return Novelty(float(self.nu))

    def _fit_weights(self, X: Matrix, sample_weight: ArrayLike | None) -> None:
        """Solve the problem of the linear kernel over the weights of the features, which many rows
        do not slow down.
        """
        weights = check_weights(sample_weight, X.shape[0])
        self.kernel_ = self._made_kernel(X, weights)
        one = Training([SubProblem(0, "", np.zeros(X.shape[0]))], SHORTFALL, weights)
        demand_room_for_weights(X.shape[1] + 1)
        rows = rows_of(Design(X), "free", 1.0, 1, self.n_jobs)
        [result] = self._shown(self._weight_fits(rows, one))
        self._keep_for_a_start()
        [multipliers] = result.alpha if result.coef.any() else np.zeros_like(result.alpha)
        support = np.flatnonzero(multipliers)
        self._keep_one(result, Coefficients(support, multipliers[support]))
        self._keep_vectors(X, [result])
        result.warn(stacklevel=5)

    def _weight_fits(self, rows: FitRows, posed: Training) -> LinearFits:
        """Return the fit of the weights of the features, by Newton's method."""
        heavy = float(rows.norms.size) if posed.weights is None else float(posed.weights.sum())
        solver = Newton()
        return LinearFits(
            problems=posed.problems,
            solver=solver,
            limits=self._limits(solver),
            seed=draw_seed(self.random_state),
            n_jobs=self.n_jobs,
            callbacks_of=lambda sub: list(self.callbacks or ()),
            rows=rows,
            loss=posed.loss,
            options={
                "weights": posed.weights,
                "intercept": Free(rows.X.bias, total=float(self.nu) * heavy),
                **self._strength(),
            },
        )

    def decision_function(self, X: Any) -> np.ndarray:
        """The signed distance of the rows from the surface, positive inside, shape (rows,);
        negative outside.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (rows, d)
            Of shape (rows, n) for a precomputed kernel.
        """
        return self._one_score(X)

    def score_samples(self, X: Any) -> np.ndarray:
        """``w . psi(x)`` of the rows, shape (rows,): larger for rows that are more like the
        training rows.
        """
        return self.decision_function(X) + self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """1 for rows inside the surface, -1 for rows outside, shape (rows,)."""
        return np.where(self.decision_function(X) >= 0.0, 1, -1).astype(np.intp)
