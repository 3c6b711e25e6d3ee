"""SVR and NuSVR: regression with kernels, certified."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import RegressorMixin

from saddlesvm.data import inputs
from saddlesvm.estimators.base import all_or_nothing, store
from saddlesvm.estimators.option_names import OF_SVMS, OVER_LANDMARKS
from saddlesvm.estimators.register import KERNEL, register_estimator
from saddlesvm.estimators.svm import SVM, check_share
from saddlesvm.problem.kernel import check_kernel_loss
from saddlesvm.problem.losses import Loss, make_loss
from saddlesvm.problem.nu import SHORTFALL, NuRegression
from saddlesvm.runtime.allowed import STRENGTH, check
from saddlesvm.runtime.words import Keep, KernelName, KernelSolver, RegressionLoss
from saddlesvm.solvers.base import SolverBase


class Regressor(RegressorMixin, SVM):
    """Prediction of both regressions."""

    def predict(self, X: Any) -> np.ndarray:
        """Predicted targets, shape (rows,).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (rows, d)
            Of shape (rows, n) for a precomputed kernel: kernel values between the rows and the training data.
        """
        return self._one_score(X)


@register_estimator(
    task="regression",
    options=("epsilon", *OF_SVMS, *OVER_LANDMARKS),
    saved=KERNEL,
    linear=False,
    asked_by="kernel",
)
class SVR(Regressor):
    """Support vector regression with a kernel, trained to a certified relative duality gap.

    Minimises

    .. math::

        \\tfrac12 \\lVert w \\rVert^2
        + C \\sum_i s_i \\max\\bigl(0, \\lvert w^\\top \\psi(x_i) + b - y_i \\rvert - \\epsilon\\bigr)

    over the feature space of the kernel. Parameters and attributes are those of ``sklearn.svm.SVR``, except
    that `tol` is the relative gap to prove. The parameters after `max_iter` are additions.

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
    shrinking, verbose, max_iter, max_time, certify_every, keep, gap, solver, n_jobs, \
callbacks, warm_start, checkpoint, approximation, exact_tol
        As in :class:`SVC`.
    loss : str or Loss, default="epsilon_insensitive"
        "epsilon_insensitive", as in scikit-learn; or "squared_epsilon_insensitive", "absolute", "squared" (kernel ridge
        regression), "huber:delta=1.0", "pinball:tau=0.5" (the quantile `tau`).

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

    def __init__(
        self,
        *,
        kernel: KernelName | Callable[..., Any] = "rbf",
        degree: float = 3,
        gamma: Literal["scale", "auto"] | float = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: float = 1.0,
        epsilon: float = 0.1,
        shrinking: bool = True,
        cache_size: float = 200,
        verbose: int = False,
        max_iter: float | None = -1,
        max_time: float | None = None,
        certify_every: float | None = None,
        keep: Keep = "best",
        gap: float = 0.0,
        loss: RegressionLoss | Loss | type[Loss] = "epsilon_insensitive",
        solver: KernelSolver | SolverBase = "auto",
        n_jobs: int | None = None,
        callbacks: Sequence[Any] | None = None,
        warm_start: bool = False,
        checkpoint: Any = None,
        approximation: int | Literal["auto"] | None = None,
        exact_tol: float | None = None,
    ) -> None:
        store(locals())

    def check_options(self) -> Loss:
        """The loss; every option that does not depend on the data is checked."""
        self._check_kernel()
        loss = check_kernel_loss(make_loss(self.loss, epsilon=self.epsilon, task="regression"))
        self._check_hard_margin(loss)
        return loss

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
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
        loss = self.check_options()
        X = self._check_design(X, reset=True)
        self._fit_one(X, inputs.check_targets(y, X.shape[0]), sample_weight, loss)
        return self


@register_estimator(
    task="regression",
    options=("nu", *OF_SVMS),
    saved=KERNEL,
    linear=False,
    asked_by="nu",
)
class NuSVR(Regressor):
    """Support vector regression whose tube leaves a given share of the rows outside, certified.

    Minimises

    .. math::

        \\tfrac12 \\lVert w \\rVert^2 + C \\Bigl( \\nu \\epsilon \\sum_i s_i
        + \\sum_i s_i \\max\\bigl(0, \\lvert w^\\top \\psi(x_i) + b - y_i \\rvert - \\epsilon\\bigr) \\Bigr)

    over the feature space of the kernel, b and :math:`\\epsilon`. Parameters and attributes are those of
    ``sklearn.svm.NuSVR``, except that `tol` is the relative gap to prove. The parameters after `max_iter` are
    additions.

    Parameters
    ----------
    nu : float, default=0.5
        At most this share of the rows is outside the tube, and at least this share are support vectors.
    C : float, default=1.0
        Weight of the losses.
    kernel, degree, gamma, coef0, shrinking, tol, cache_size, verbose, max_iter, max_time, certify_every, keep, gap, \
solver, n_jobs, callbacks, warm_start, checkpoint
        As in :class:`SVC`.

    Attributes
    ----------
    support_, support_vectors_, dual_coef_, intercept_, n_support_, fit_status_, certificate_, certificates_
    outcome_, trace_, n_iter_, seconds_solving_, seconds_certifying_, seconds_compiling_
    kernel_, n_samples_fit_, n_features_in_, feature_names_in_, coef_
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

    def __init__(
        self,
        *,
        nu: float = 0.5,
        C: float = 1.0,
        kernel: KernelName | Callable[..., Any] = "rbf",
        degree: float = 3,
        gamma: Literal["scale", "auto"] | float = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
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
    ) -> None:
        store(locals())

    def check_options(self) -> Loss:
        """The loss; every option that does not depend on the data is checked."""
        self._check_kernel()
        check("C", self.C, STRENGTH)
        check_share("nu", self.nu)
        return SHORTFALL

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train to the relative gap `tol`; see :meth:`SVR.fit`."""
        self.check_options()
        X = self._check_design(X, reset=True)
        targets = inputs.check_targets(y, X.shape[0])
        self._fit_one(X, targets, sample_weight, SHORTFALL, NuRegression(float(self.nu)))
        return self
