"""LinearSVC and LinearSVR on a Dask cluster: the same models and certificates, on rows that are on many machines.

The rows stay where they are. In each round every partition improves its own part of the dual against the shared
weights; each partition sends and receives one number per feature, and the workers compute the duality gap where the
data are. See :mod:`saddlesvm.cluster.rounds`. Needs Dask: ``pip install 'saddlesvm[dask]'``.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Literal

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

try:
    import dask
    import dask.array as da
    from distributed import Client
except ImportError as error:
    raise ImportError("saddlesvm.dask needs Dask: pip install 'saddlesvm[dask]'") from error

from saddlesvm import estimators
from saddlesvm.cluster.dask_engine import ClusterLostError
from saddlesvm.cluster.model import DistributedModel, Prepared
from saddlesvm.cluster.part import as_matrix, labels_of
from saddlesvm.cluster.rounds import Solution
from saddlesvm.cluster.sources import PartTasks, feature_names, part_tasks
from saddlesvm.cluster.splits import best_class
from saddlesvm.estimators.path import check_Cs
from saddlesvm.multiclass.one_vs_one import vote
from saddlesvm.problem.losses import Loss, make_loss
from saddlesvm.rows.scores import linear_scores
from saddlesvm.runtime.words import ClassificationLoss, Intercept, RegressionLoss

__all__ = ["ClusterLostError", "LinearSVC", "LinearSVR"]
MULTI_CLASS = ("ovr", "ovo")


class LinearSVC(ClassifierMixin, DistributedModel):
    """Linear support vector classification on a Dask cluster, trained to a certified relative duality gap.

    The same problem as :class:`saddlesvm.LinearSVC` with one class against the rest; options of the same name mean the
    same. Labels are found on the workers, and no row ever reaches the client.

    Parameters
    ----------
    loss : str or Loss, default="squared_hinge"
    tol : float, default=1e-4
        Relative duality gap to prove, for every class.
    C : float, default=1.0
    lam : float, optional
    fit_intercept : bool, default=True
    intercept : {"regularized", "free"}, default="regularized"
        Regularised: penalised as the weight of a feature of value `intercept_scaling`. Free of penalty: with "gather",
        and with "newton" for smooth losses.
    intercept_scaling : float, default=1.0
    class_weight : dict or "balanced", optional
    width : float, default=1.0
        Of the smooth hinge.
    max_iter : int, optional
        Rounds at most.
    max_time : float, optional
        Seconds at most.
    passes : float, default=3.0
        Passes over its rows that a partition does in a round of "rounds": more where communication is dear.
    solver : {"auto", "newton", "gather", "rounds"}, default="auto"
        "newton": the second-order method, whose rounds are few whatever C is and however many partitions there are. For
        smooth losses a partition sends a matrix, of the square of the number of features, for each class; for the hinge
        and its relatives the rows whose multiplier is undecided are brought together on a worker, and solved there.
        "gather": all rows are brought together on one worker, where an ordinary fit is done. "rounds": every partition
        descends on its own part of the dual, and sends a number per feature and class. "auto" takes Newton's method for
        smooth losses while the matrices of a partition are no more than 64 MB, and those of eight rounds are fewer
        bytes than the rows; else "gather" where the rows fit into `memory`; else "newton" for the hinge and its
        relatives, where there is room for enough rows; else "rounds".
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
        1 prints a line a round on standard error.
    callbacks : sequence of callables, optional
        Called with a dict for each round: see ``trace_``.
    client : distributed.Client, optional
        The one in force by default.
    memory : int or str, optional
        Bytes of rows of other workers that a worker may take, as a number or as text such as ``"1G"``; 256 MiB by
        default.
    multi_class : {"ovr", "ovo"}, default="ovr"
        More than two classes: one against the rest, or each against each other and a vote; all in the same rounds.

    Attributes
    ----------
    coef_ : ndarray of shape (1, d) or (n_classes, d)
        Or a row a pair of classes, in the order of :class:`saddlesvm.LinearSVC`.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray
    certificate_, certificates_, outcome_, n_features_in_, feature_names_in_
        As in :class:`saddlesvm.LinearSVC`.
    n_iter_ : int
        Rounds.
    trace_ : list of dict
        A row for each round: objectives and gap, seconds of work (of the slowest partition) and of communication, how
        much slower that one was than the mean, bytes up and down, sigma, and how often the fit had to start again from
        kept dual variables.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from saddlesvm.dask import LinearSVC
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> X, y = da.from_array(notes.X, chunks=(686, 4)), da.from_array(notes.y, chunks=686)
    >>> with Client(processes=False, dashboard_address=None):
    ...     model = LinearSVC(C=0.01, tol=1e-2, random_state=0).fit(X, y)
    ...     print(model.outcome_, model.to_local().score(notes.X, notes.y) > 0.9)
    certified True
    """

    def __init__(
        self,
        loss: ClassificationLoss | Loss | type[Loss] = "squared_hinge",
        *,
        tol: float = 1e-4,
        C: float = 1.0,
        lam: float | None = None,
        fit_intercept: bool = True,
        intercept: Intercept = "regularized",
        intercept_scaling: float = 1.0,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        width: float = 1.0,
        max_iter: int | None = None,
        max_time: float | None = None,
        passes: float = 3.0,
        solver: Literal["auto", "newton", "gather", "rounds"] = "auto",
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Sequence[Callable[[dict[str, Any]], Any]] | None = None,
        client: Client | None = None,
        memory: int | str | None = None,
        multi_class: Literal["ovr", "ovo"] = "ovr",
    ) -> None:
        self.loss = loss
        self.tol = tol
        self.C = C
        self.lam = lam
        self.fit_intercept = fit_intercept
        self.intercept = intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.width = width
        self.max_iter = max_iter
        self.max_time = max_time
        self.passes = passes
        self.solver = solver
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.client = client
        self.memory = memory
        self.multi_class = multi_class

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> LinearSVC:
        """Train to the relative gap `tol`.

        Parameters
        ----------
        X : Dask array (dense, or of scipy CSR blocks), Dask DataFrame, or list of files or stores
            Files are read on the workers, which must see them.
        y : Dask array or Series, or ndarray; for a list of files the name of the label column, or None
        sample_weight : like y, optional

        Raises
        ------
        ValueError
            Bad data or options.
        ClusterLostError
            The scheduler is gone, or there is no worker left; ``error.model`` is the best model so far.
        """
        self._settle(self._rows(X, y, sample_weight))
        return self

    def _rows(self, X: Any, y: Any, sample_weight: Any, folds: int = 0) -> Prepared:
        """The partitions on the workers; finds the classes."""
        loss = make_loss(self.loss, width=self.width, task="classification")
        if self.multi_class not in MULTI_CLASS:
            raise ValueError(
                f"multi_class must be 'ovr' or 'ovo' on a cluster; got {self.multi_class!r}: Crammer-Singer and others "
                "that solve all classes together are for saddlesvm.LinearSVC, over rows in memory or in a store"
            )
        blocks, client = part_tasks(X, y, sample_weight), self._client()
        found = client.gather(client.compute([dask.delayed(labels_of)(one) for _, one, _ in blocks]))
        self.classes_ = np.unique(np.concatenate([labels for labels in found if labels.size] or [np.empty(0)]))
        if self.classes_.size < 2:
            raise ValueError(f"y holds {self.classes_.size} class only: at least two are needed")
        if self._pairs() and self.class_weight == "balanced":
            raise ValueError("class_weight='balanced' goes with multi_class='ovr' on a cluster; give a dict of weights")
        names = feature_names(X)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        return self._prepared(blocks, loss, self.classes_, self._factors(client, blocks), folds)

    def _pairs(self) -> bool:
        return self.multi_class == "ovo" and self.classes_.size > 2

    @classmethod
    def path(
        cls, X: Any, y: Any = None, *, Cs: int | Sequence[float] = 13, sample_weight: Any = None, **options: Any
    ) -> list[LinearSVC]:
        """Certified models along C, ascending; the partitions are made once, and each fit begins where the last ended.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`.
        Cs : int or sequence of float, default=13
            Values of C, or how many between 1e-3 and 1e3.
        **options
            Of the estimator.
        """
        model = cls(**options)
        prepared = model._rows(X, y, sample_weight)
        return [model._at(C, solution) for C, solution in model._along(prepared, check_Cs(Cs).tolist())]

    def _at(self, C: float, solution: Solution) -> LinearSVC:
        """A copy of this model with the solution for a C."""
        model: LinearSVC = copy(self).set_params(C=C)
        model._keep(solution, time.perf_counter())
        model._warn(solution)
        return model

    def _factors(self, client: Client, blocks: list[PartTasks]) -> np.ndarray | None:
        """The factor of the class weights for the row weights of each class."""
        if self.class_weight is None:
            return None
        if self.class_weight == "balanced":
            tasks = [dask.delayed(class_sums)(y, s, self.classes_) for _, y, s in blocks]
            sums = np.sum(client.gather(client.compute(tasks)), axis=0)
            return sums.sum() / (self.classes_.size * sums)
        if not isinstance(self.class_weight, dict):
            raise ValueError(f"class_weight must be a dict, 'balanced' or None; got {self.class_weight!r}")
        return np.array([float(self.class_weight.get(label, 1.0)) for label in self.classes_.tolist()])

    def decision_function(self, X: Any) -> Any:
        """Scores, shape (n,) or (n, n_classes), votes where pairs were told apart; lazy for Dask input."""
        scores = functools.partial(_decided, self.coef_, self.intercept_, self._pairs(), self.classes_.size)
        return self._lazily(X, scores, np.float64, 1 if self.classes_.size == 2 else self.classes_.size)

    def predict(self, X: Any) -> Any:
        """Classes, shape (n,); lazy for Dask input."""
        scores = functools.partial(_decided, self.coef_, self.intercept_, self._pairs(), self.classes_.size)
        classes = self.classes_
        return self._lazily(X, lambda block: classes[best_class(scores(block))], classes.dtype, 1)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Accuracy; a lazy Dask number for Dask input."""
        right = self.predict(X) == _as_array(y)
        return right.mean() if sample_weight is None else (right * sample_weight).sum() / sample_weight.sum()

    def to_local(self) -> estimators.LinearSVC:
        """The same model as a :class:`saddlesvm.LinearSVC`, to save and to use without Dask."""
        check_is_fitted(self)
        model = estimators.LinearSVC(
            loss=self.loss, tol=self.tol, fit_intercept=self.fit_intercept, intercept=self.intercept, width=self.width,
            intercept_scaling=self.intercept_scaling, class_weight=self.class_weight, multi_class=self.multi_class,
            **self._strength(),
        )  # fmt: skip
        model.classes_ = self.classes_
        return _filled(model, self, self.coef_, self.intercept_)


class LinearSVR(RegressorMixin, DistributedModel):
    """Linear support vector regression on a Dask cluster; see :class:`LinearSVC` and :class:`saddlesvm.LinearSVR`.

    Parameters
    ----------
    epsilon : float, default=0.0
    loss : str or Loss, default="epsilon_insensitive"
    tol, C, lam, fit_intercept, intercept, intercept_scaling, max_iter, max_time, passes, solver, random_state,
    verbose, callbacks, client, memory
        As in :class:`LinearSVC`.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from saddlesvm.dask import LinearSVR
    >>> X = da.random.default_rng(0).normal(size=(1000, 5), chunks=(500, 5))
    >>> with Client(processes=False, dashboard_address=None):
    ...     model = LinearSVR(loss="squared", C=0.01, tol=1e-2, random_state=0).fit(X, X[:, 0] - X[:, 1])
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
        solver: Literal["auto", "newton", "gather", "rounds"] = "auto",
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Sequence[Callable[[dict[str, Any]], Any]] | None = None,
        client: Client | None = None,
        memory: int | str | None = None,
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

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> LinearSVR:
        """Train to the relative gap `tol`; see :meth:`LinearSVC.fit`."""
        loss = make_loss(self.loss, epsilon=self.epsilon, task="regression")
        self._settle(self._prepared(part_tasks(X, y, sample_weight), loss, None, None))
        names = feature_names(X)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        self.coef_, self.intercept_ = self.coef_[0], float(self.intercept_[0])
        return self

    def predict(self, X: Any) -> Any:
        """Targets, shape (n,); lazy for Dask input."""
        coef, intercept = np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)
        return self._lazily(X, lambda block: _scores(block, coef, intercept), np.float64, 1)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """R2; a lazy Dask number for Dask input."""
        y, predicted = _as_array(y), self.predict(X)
        s = da.ones_like(y) if sample_weight is None else sample_weight
        mean = (s * y).sum() / s.sum()
        return 1.0 - (s * (y - predicted) ** 2).sum() / (s * (y - mean) ** 2).sum()

    def to_local(self) -> estimators.LinearSVR:
        """The same model as a :class:`saddlesvm.LinearSVR`, to save and to use without Dask."""
        check_is_fitted(self)
        model = estimators.LinearSVR(
            loss=self.loss, epsilon=self.epsilon, tol=self.tol, fit_intercept=self.fit_intercept,
            intercept_scaling=self.intercept_scaling, **self._strength(),
        )  # fmt: skip
        return _filled(model, self, self.coef_, self.intercept_)


def class_sums(y: Any, weights: Any, classes: np.ndarray) -> np.ndarray:
    """Sum of the row weights of each class in a partition."""
    codes = np.searchsorted(classes, np.asarray(y).ravel())
    return np.bincount(codes, None if weights is None else np.asarray(weights).ravel(), classes.size)


def _scores(X: Any, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    scores = linear_scores(as_matrix(X), coef, intercept)
    return scores[:, 0] if scores.shape[1] == 1 else scores


def _decided(coef: np.ndarray, intercept: np.ndarray, pairs: bool, n_classes: int, X: Any) -> np.ndarray:
    """Scores, or the votes of pairs."""
    scores = _scores(X, coef, intercept)
    return vote(scores, n_classes) if pairs else scores


def _as_array(y: Any) -> Any:
    return y.to_dask_array() if hasattr(y, "to_dask_array") else y


def _filled(model: Any, fitted: DistributedModel, coef: Any, intercept: Any) -> Any:
    """The fitted attributes that a model in memory has."""
    model.coef_, model.intercept_ = coef, intercept
    model.certificate_, model.certificates_ = fitted.certificate_, fitted.certificates_
    model.outcome_, model.n_iter_ = fitted.outcome_, fitted.n_iter_
    model.n_features_in_ = fitted.n_features_in_
    if hasattr(fitted, "feature_names_in_"):
        model.feature_names_in_ = fitted.feature_names_in_
    return model
