"""LinearSVR on a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from saddlesvm import estimators
from saddlesvm.cluster.lazily import as_array, scores_of
from saddlesvm.cluster.model import Prepared, whole_or_not_at_all
from saddlesvm.cluster.rounds import Solution
from saddlesvm.cluster.sources import part_tasks
from saddlesvm.estimators.dask_linear import DistributedLinear, filled
from saddlesvm.problem.losses import Loss
from saddlesvm.runtime.words import ClusterSolver, Intercept, Penalty, RegressionLoss

__all__ = ["LinearSVR"]


class LinearSVR(RegressorMixin, DistributedLinear):
    """Linear support vector regression on a Dask cluster; see :class:`LinearSVC` and :class:`saddlesvm.LinearSVR`.

    Parameters
    ----------
    epsilon : float, default=0.0
    loss : str or Loss, default="epsilon_insensitive"
    tol, C, lam, fit_intercept, intercept, intercept_scaling, max_iter, max_time, passes, solver, random_state,
    verbose, callbacks, client, memory, penalty, l1_ratio
        As in :class:`LinearSVC`.

    Attributes
    ----------
    coef_ : ndarray of shape (d,)
    intercept_ : float
    certificate_, certificates_, outcome_, n_iter_, seconds_, trace_, n_features_in_, feature_names_in_
        As in :class:`LinearSVC`.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from saddlesvm.dask import LinearSVR
    >>> X = da.random.default_rng(0).normal(size=(1000, 5), chunks=(500, 5))
    >>> with Client(processes=False, dashboard_address=None):
    ...     model = LinearSVR(loss="squared", C=0.01, tol=1e-2, random_state=0).fit(
    ...         X, X[:, 0] - X[:, 1]
    ...     )
    ...     print(model.outcome_)
    certified
    """

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        loss: RegressionLoss | Loss | type[Loss] = "epsilon_insensitive",
        tol: float = 1e-4,
        C: float = 1.0,
        lam: float | None = None,
        fit_intercept: bool = True,
        intercept: Intercept = "regularized",
        intercept_scaling: float = 1.0,
        max_iter: int | None = None,
        max_time: float | None = None,
        passes: float = 3.0,
        solver: ClusterSolver = "auto",
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Sequence[Callable[[dict[str, Any]], Any]] | None = None,
        client: Any = None,
        memory: int | str | None = None,
        penalty: Penalty = "l2",
        l1_ratio: float = 0.15,
    ) -> None:
        self.epsilon = epsilon
        self.loss = loss
        self.tol = tol
        self.C = C
        self.lam = lam
        self.fit_intercept = fit_intercept
        self.intercept = intercept
        self.intercept_scaling = intercept_scaling
        self.max_iter = max_iter
        self.max_time = max_time
        self.passes = passes
        self.solver = solver
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.client = client
        self.memory = memory
        self.penalty = penalty
        self.l1_ratio = l1_ratio

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> LinearSVR:
        """Train to the relative gap `tol`; see :meth:`LinearSVC.fit`."""
        with whole_or_not_at_all(self):
            self._run(self._rows(X, y, sample_weight))
        return self

    def _template(self) -> estimators.LinearSVR:
        options: dict[str, Any] = self._options_for(estimators.LinearSVR)
        return estimators.LinearSVR(**options | {"solver": "auto"})

    def _rows(self, X: Any, y: Any, sample_weight: Any) -> Prepared:
        """The partitions on the workers."""
        loss = self.check_options()
        blocks = part_tasks(X, y, sample_weight)
        self._note_columns(X, y, sample_weight)
        return self._prepared(blocks, loss, None, None)

    def _keep(self, solution: Solution, began: float) -> None:
        super()._keep(solution, began)
        self.coef_, self.intercept_ = self.coef_[0], float(self.intercept_[0])

    def predict(self, X: Any) -> Any:
        """Targets, shape (n,); lazy for Dask input."""
        check_is_fitted(self)
        coef, intercept = np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)
        return self._lazily(X, lambda block: scores_of(block, coef, intercept), np.float64, 1)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """R2; a lazy Dask number for Dask input."""
        y, predicted = as_array(y), self.predict(X)
        s = np.ones_like(y) if sample_weight is None else sample_weight
        mean = (s * y).sum() / s.sum()
        return 1.0 - (s * (y - predicted) ** 2).sum() / (s * (y - mean) ** 2).sum()

    def to_local(self) -> estimators.LinearSVR:
        """The same model as a :class:`saddlesvm.LinearSVR`, to save and to use without Dask."""
        check_is_fitted(self)
        return filled(self._alike(), self, self.coef_, self.intercept_)
