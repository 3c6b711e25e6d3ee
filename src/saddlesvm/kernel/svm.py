"""The machines of ``sklearn.svm`` with a single problem: SVR, NuSVR and OneClassSVM, certified."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from saddlesvm.data.label_checks import check_targets, check_weights
from saddlesvm.estimators.base import Training
from saddlesvm.estimators.register import register_estimator
from saddlesvm.estimators.scikit_learn import OutlierMixin, RegressorMixin
from saddlesvm.kernel.kernel_fitted import held_machine, score_problems
from saddlesvm.kernel.kernel_machine import KernelMachine
from saddlesvm.kernel.nu_machines import SHORTFALL, Machine, Novelty, NuRegression
from saddlesvm.multiclass.sub_problems import SubProblem
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.losses import make_loss
from saddlesvm.runtime.allowed import NOT_NEGATIVE, NU, STRENGTH, Allowed

if TYPE_CHECKING:
    from saddlesvm.runtime.data_types import LabelsLike, RowsLike


def pose_targets(
    machine: object, y: LabelsLike, sample_weight: ArrayLike | None, n: int, loss: Loss
) -> Training:
    """Return the single problem of a regression."""
    sub = SubProblem(0, "", check_targets(y, n))
    return Training([sub], loss, check_weights(sample_weight, n))


@register_estimator(task="regression", linear=False)
@dataclass(kw_only=True, eq=False, repr=False)
class SVR(RegressorMixin, KernelMachine):
    """Support vector regression with a kernel that proves how near it is to the optimum.

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
callbacks
        As in :class:`SVC`.

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
    _allowed: ClassVar[dict[str, Allowed]] = KernelMachine._allowed | {
        "C": STRENGTH,
        "epsilon": NOT_NEGATIVE,
    }
    epsilon: float = 0.1

    _pose = pose_targets

    def predict(self: Any, X: RowsLike) -> np.ndarray:
        """Predicted targets, shape (rows,).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (rows, d)
            Of shape (rows, n) for a precomputed kernel: kernel values between the rows and the
            training data.
        """
        return score_problems(held_machine(self), X)[:, 0]

    def _make_loss(self) -> Loss:
        return make_loss("epsilon_insensitive", epsilon=self.epsilon)


@register_estimator(task="regression", linear=False)
@dataclass(kw_only=True, eq=False, repr=False)
class NuSVR(RegressorMixin, KernelMachine):
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
    kernel, degree, gamma, coef0, shrinking, tol, cache_size, verbose, max_iter, max_time, keep, \
gap, solver, n_jobs, callbacks
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

    nu: float = 0.5
    C: float = 1.0

    _allowed: ClassVar[dict[str, Allowed]] = KernelMachine._allowed | {"C": STRENGTH, "nu": NU}

    predict = SVR.predict
    _pose = pose_targets

    def _make_loss(self) -> Loss:
        return SHORTFALL

    def _machine(self) -> Machine:
        """Return the tube that leaves the share out."""
        return NuRegression(float(self.nu))


@register_estimator(task="novelty", linear=False)
@dataclass(kw_only=True, eq=False, repr=False)
class OneClassSVM(OutlierMixin, KernelMachine):
    """Novelty detection: a surface around most of the rows, proven to be near the optimum.

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
callbacks
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

    Examples
    --------
    >>> import numpy as np
    >>> from saddlesvm import OneClassSVM
    >>> rows = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = OneClassSVM(nu=0.1, gamma=0.5).fit(rows)
    >>> model.predict([[0.0, 0.0], [5.0, 5.0]]).tolist(), model.certificate_.relative_gap <= 1e-3
    ([1, -1], True)
    """

    nu: float = 0.5

    _allowed: ClassVar[dict[str, Allowed]] = KernelMachine._allowed | {"nu": NU}

    @property
    def offset_(self) -> np.ndarray:
        """rho, the score of the surface, shape (1,)."""
        return -self.intercept_

    def decision_function(self, X: RowsLike) -> np.ndarray:
        """The signed distance of the rows from the surface, positive inside, shape (rows,);
        negative outside.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (rows, d)
            Of shape (rows, n) for a precomputed kernel.
        """
        return score_problems(held_machine(self), X)[:, 0]

    def score_samples(self, X: RowsLike) -> np.ndarray:
        """``w . psi(x)`` of the rows, shape (rows,): larger for rows that are more like the
        training rows.
        """
        return self.decision_function(X) + self.offset_

    def predict(self, X: RowsLike) -> np.ndarray:
        """1 for rows inside the surface, -1 for rows outside, shape (rows,)."""
        return np.where(self.decision_function(X) >= 0.0, 1, -1).astype(np.intp)

    def _make_loss(self) -> Loss:
        return SHORTFALL

    def _pose(self, y: Any, sample_weight: ArrayLike | None, n: int, loss: Loss) -> Training:
        """Return the single problem of all rows; labels are ignored."""
        weights = check_weights(sample_weight, n)
        return Training([SubProblem(0, "", np.zeros(n))], loss, weights)

    def _machine(self) -> Machine:
        """Return the surface that leaves the share out."""
        return Novelty(float(self.nu))
