"""OneClassSVM: the support of a distribution, certified."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import OutlierMixin

from saddlesvm.data import inputs
from saddlesvm.estimators.base import all_or_nothing, store
from saddlesvm.estimators.on_features import feature_fits
from saddlesvm.estimators.option_names import OF_SVMS, OVER_LANDMARKS
from saddlesvm.estimators.register import KERNEL, register_estimator
from saddlesvm.estimators.svm import SVM, check_share
from saddlesvm.multiclass.kernel_fit import Coefficients
from saddlesvm.multiclass.linear_fit import in_memory
from saddlesvm.multiclass.sub_problems import SubProblem
from saddlesvm.problem.kernel import FEW
from saddlesvm.problem.losses import Loss
from saddlesvm.problem.nu import SHORTFALL, Novelty
from saddlesvm.rows.kernels import Kernel
from saddlesvm.rows.memory_plan import demand_room_for_weights
from saddlesvm.runtime.words import Keep, KernelName, KernelSolver
from saddlesvm.solvers.base import SolverBase


@register_estimator(
    task="novelty",
    options=("nu", *OF_SVMS, *OVER_LANDMARKS),
    saved=KERNEL,
    linear=False,
)
class OneClassSVM(OutlierMixin, SVM):
    """Novelty detection: a surface around most of the rows, trained to a certified relative duality gap.

    Minimises

    .. math::

        \\tfrac12 \\lVert w \\rVert^2 + \\sum_i s_i \\max\\bigl(0, \\rho - w^\\top \\psi(x_i)\\bigr)
        - \\nu \\rho \\sum_i s_i

    over the feature space of the kernel and :math:`\\rho`. Parameters and attributes are those of
    ``sklearn.svm.OneClassSVM``, except that `tol` is the relative gap to prove. The parameters after `max_iter` are
    additions.

    Parameters
    ----------
    kernel, degree, gamma, coef0
        As in :class:`SVC`.
    tol : float, default=1e-3
        Relative duality gap to prove.
    nu : float, default=0.5
        At most this share of the rows is outside the surface, and at least this share are support vectors.
    shrinking, cache_size, verbose, max_iter, max_time, certify_every, keep, gap, solver, n_jobs, \
callbacks, warm_start, checkpoint, approximation, exact_tol
        As in :class:`SVC`.

    Attributes
    ----------
    support_, support_vectors_, dual_coef_, intercept_, n_support_, fit_status_, certificate_, certificates_
    outcome_, trace_, n_iter_, seconds_solving_, seconds_certifying_, seconds_compiling_
    kernel_, n_samples_fit_, n_features_in_, feature_names_in_, coef_
        As in :class:`SVR`. The multipliers are between 0 and the row weights.
    offset_ : float
        The threshold rho: ``decision_function = score_samples - offset_``.

    Notes
    -----
    Source: Schoelkopf, Platt, Shawe-Taylor, Smola and Williamson (2001), "Estimating the support of a high-dimensional
    distribution". The optimum is negative; the gap is relative to its absolute value.

    With ``kernel="linear"``, ``solver="auto"`` and more than 512 rows, Newton's method finds the weights of the
    features (:class:`~saddlesvm.solvers.second_order.newton.Newton`; an epoch is one of its steps): a million rows of
    50 features take a second or so.

    Examples
    --------
    >>> import numpy as np
    >>> from saddlesvm import OneClassSVM
    >>> rows = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = OneClassSVM(nu=0.1, gamma=0.5).fit(rows)
    >>> model.predict([[0.0, 0.0], [5.0, 5.0]]).tolist(), model.certificate_.relative_gap <= 1e-3
    ([1, -1], True)
    """

    def __init__(
        self,
        *,
        kernel: KernelName | Callable[..., Any] = "rbf",
        degree: float = 3,
        gamma: Literal["scale", "auto"] | float = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        nu: float = 0.5,
        shrinking: bool = True,
        cache_size: float = 200,
        verbose: int = False,
        max_iter: float | None = -1,
        max_time: float | None = None,
        certify_every: float | None = None,
        keep: Keep = "best",
        gap: float = 0.0,
        solver: KernelSolver | SolverBase = "auto",
        n_jobs: int | None = None,
        callbacks: Sequence[Any] | None = None,
        warm_start: bool = False,
        checkpoint: Any = None,
        approximation: int | Literal["auto"] | None = None,
        exact_tol: float | None = None,
    ) -> None:
        store(locals())

    @property
    def offset_(self) -> float:
        """rho, the score of the surface."""
        return -float(self.intercept_[0])

    def check_options(self) -> Loss:
        """The loss; every option that does not depend on the data is checked."""
        self._check_kernel()
        check_share("nu", self.nu)
        return SHORTFALL

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train to the relative gap `tol`; `y` is ignored. See :meth:`SVR.fit`."""
        self.check_options()
        X = self._check_design(X, reset=True)
        machine = Novelty(float(self.nu))
        if self.kernel == "linear" and self.solver == "auto" and self.approximation is None and X.shape[0] > FEW:
            self._fit_weights(X, sample_weight, machine)
        else:
            self._fit_one(X, np.zeros(X.shape[0]), sample_weight, SHORTFALL, machine)
        return self

    def _fit_weights(self, X: Any, sample_weight: Any, machine: Novelty) -> None:
        """Solve the problem of the linear kernel over the weights of the features, which many rows do not slow down."""
        weights = inputs.check_weights(sample_weight, X.shape[0])
        self.kernel_ = Kernel(self.kernel, self._gamma(X, weights), self.degree, self.coef0)
        made = [lambda: SubProblem(0, "", np.zeros(X.shape[0]))]
        demand_room_for_weights(X.shape[1] + 1)
        rows = in_memory(X, "free", 1.0, 1, self.n_jobs)
        [result] = self._shown(feature_fits(self, rows, made, SHORTFALL, weights, machine, self._made_solver()))
        self._keep_for_a_start(None)
        [multipliers] = result.alpha if result.coef.any() else np.zeros_like(result.alpha)
        support = np.flatnonzero(multipliers)
        self._keep_one(result, Coefficients(support, multipliers[support]))
        self._keep_vectors(X, [result])

    def decision_function(self, X: Any) -> np.ndarray:
        """The signed distance of the rows from the surface, positive inside, shape (rows,); negative outside.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (rows, d)
            Of shape (rows, n) for a precomputed kernel.
        """
        return self._one_score(X)

    def score_samples(self, X: Any) -> np.ndarray:
        """``w . psi(x)`` of the rows, shape (rows,): the larger, the more usual."""
        return self.decision_function(X) + self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """1 for rows inside the surface, -1 for those outside, shape (rows,)."""
        return np.where(self.decision_function(X) >= 0.0, 1, -1).astype(np.intp)
