"""LinearSVC and LinearSVR on a Dask cluster: the same models and certificates, on rows that are on many machines.

The rows stay where they are. In each round every partition improves its own part of the dual against the shared
weights; as many numbers as there are features go up and down, and the duality gap is computed where the data are. See
:mod:`saddlesvm.distributed.rounds`. Needs Dask: ``pip install 'saddlesvm[dask]'``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

try:
    import dask
    import dask.array as da
    from distributed import Client, default_client
except ImportError as error:
    raise ImportError("saddlesvm.dask needs Dask: pip install 'saddlesvm[dask]'") from error

from saddlesvm import estimators
from saddlesvm.certificate import Certificate
from saddlesvm.distributed.dask_engine import ClusterLostError, DaskEngine
from saddlesvm.distributed.part import as_matrix, labels_of, make_part
from saddlesvm.distributed.rounds import Plan, Rounds, Solution, narrate
from saddlesvm.distributed.sources import Block, blocks_of, feature_names, read_part
from saddlesvm.losses import CLASSIFICATION, REGRESSION, Loss, make_loss
from saddlesvm.outcome import NotCertifiedWarning, Outcome
from saddlesvm.problem import resolve_C
from saddlesvm.randomness import seed_of
from saddlesvm.scores import linear_scores

__all__ = ["ClusterLostError", "LinearSVC", "LinearSVR"]


class _Distributed(BaseEstimator):
    """What both estimators share: the fit on partitions, and scores that stay lazy."""

    C: float
    lam: float | None
    tol: float
    fit_intercept: bool
    intercept_scaling: float
    max_iter: int | None
    max_time: float | None
    passes: float
    random_state: Any
    verbose: int
    callbacks: Sequence[Callable[[dict[str, Any]], Any]] | None
    client: Client | None
    coef_: Any
    intercept_: Any

    def _client(self) -> Client:
        if self.client is not None:
            return self.client
        try:
            return default_client()
        except ValueError:
            raise ValueError(
                "no Dask client: make one first (from distributed import Client; Client('tcp://host:port'), or "
                "Client() for this machine), or pass client="
            ) from None

    def _solve(self, blocks: list[Block], loss: Loss, classes: np.ndarray | None, factors: np.ndarray | None) -> None:
        """Make the partitions on the workers, run the rounds, and keep what came of them."""
        if not (self.passes > 0.0 and self.tol >= 0.0):
            raise ValueError(f"passes must be positive and tol not negative; got {self.passes!r} and {self.tol!r}")
        client = self._client()
        scale = float(self.intercept_scaling) if self.fit_intercept else 0.0
        kind = "regularized" if self.fit_intercept else "none"
        make = dask.delayed(make_part, pure=False)
        parts = client.compute([make(X, y, s, classes, scale, kind, factors) for X, y, s in blocks])
        shapes = np.array(client.gather([client.submit(shape_of, part) for part in parts]))
        n, widths = int(shapes[:, 0].sum()), np.unique(shapes[shapes[:, 0] > 0, 1])
        if widths.size != 1:
            raise ValueError(f"the partitions must have the same number of features; found {widths.tolist()}")
        C, _ = resolve_C(None if self.lam is not None else self.C, self.lam, n)
        problems = 1 if classes is None or classes.size == 2 else classes.size
        plan = Plan(
            loss, C, n, problems, int(widths[0]), self.tol, self.passes, self.max_iter, self.max_time,
            seed_of(self.random_state), self.lam is not None,
        )  # fmt: skip
        began = time.perf_counter()
        run = Rounds(plan, DaskEngine(client, parts, problems), self._watch)
        self.n_features_in_, self._scale = int(widths[0]), scale
        try:
            solution = run.run()
        except ClusterLostError as lost:
            self._keep(run.solution(Outcome.INTERRUPTED), began)
            lost.model = self
            gap = self.certificate_.relative_gap
            lost.args = (f"{lost}; the best model so far (.model) has a relative gap of {gap:.2g}",)
            raise
        self._keep(solution, began)
        self._warn()

    def _watch(self, row: dict[str, Any]) -> None:
        if self.verbose:
            narrate(row)
        for callback in self.callbacks or ():
            callback(row)

    def _keep(self, solution: Solution, began: float) -> None:
        self.coef_ = solution.W[:, :-1].copy()
        self.intercept_ = solution.W[:, -1] * self._scale
        self.certificates_ = solution.certificates
        self.certificate_ = Certificate(
            sum(one.primal for one in solution.certificates),
            sum(one.dual for one in solution.certificates),
            solution.certificates[0].form,
        )
        self.outcome_, self.n_iter_, self.trace_ = solution.outcome, solution.rounds, solution.trace
        self.seconds_ = time.perf_counter() - began

    def _warn(self) -> None:
        if self.outcome_ is Outcome.CERTIFIED or self.tol == 0.0:
            return
        import warnings

        warnings.warn(
            f"stopped before the certificate ({self.outcome_}): the relative gap is "
            f"{self.certificate_.relative_gap:.2g}, {self.tol:.2g} was asked for. {self.outcome_.advice}",
            NotCertifiedWarning,
            stacklevel=4,
        )

    def _lazily(self, X: Any, function: Callable[..., np.ndarray], dtype: Any, columns: int) -> Any:
        """`function` of the blocks of X: a Dask array for Dask input, and at once for data in memory."""
        check_is_fitted(self)
        if isinstance(X, (list, tuple)):
            shape = (np.nan,) if columns == 1 else (np.nan, columns)
            pieces = [dask.delayed(_of_file)(function, source) for source in X]
            return da.concatenate([da.from_delayed(one, shape, dtype) for one in pieces])
        if hasattr(X, "to_dask_array"):
            X = X.to_dask_array()
        if not hasattr(X, "rechunk"):
            return function(as_matrix(X))
        whole = X if X.numblocks[1] == 1 else X.rechunk({1: -1})
        if columns == 1:
            return whole.map_blocks(function, dtype=dtype, drop_axis=1, meta=np.empty(0, dtype=dtype))
        chunks = (whole.chunks[0], (columns,))
        return whole.map_blocks(function, dtype=dtype, chunks=chunks, meta=np.empty((0, 0), dtype=dtype))

    def _strength(self) -> dict[str, Any]:
        return {"C": self.C} if self.lam is None else {"lam": self.lam}


class LinearSVC(ClassifierMixin, _Distributed):
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
        The intercept is regularised, as a feature of value `intercept_scaling`.
    intercept_scaling : float, default=1.0
    class_weight : dict or "balanced", optional
    width : float, default=1.0
        Of the smooth hinge.
    max_iter : int, optional
        Rounds at most.
    max_time : float, optional
        Seconds at most.
    passes : float, default=3.0
        Passes over its rows that a partition does in a round: more where communication is dear.
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
        1 prints a line a round on standard error.
    callbacks : sequence of callables, optional
        Called with a dict for each round: see ``trace_``.
    client : distributed.Client, optional
        The one in force by default.

    Attributes
    ----------
    coef_ : ndarray of shape (1, d) or (n_classes, d)
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
    """

    def __init__(
        self,
        loss: str | Loss = "squared_hinge",
        *,
        tol: float = 1e-4,
        C: float = 1.0,
        lam: float | None = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: dict[Any, float] | str | None = None,
        width: float = 1.0,
        max_iter: int | None = None,
        max_time: float | None = None,
        passes: float = 3.0,
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Sequence[Callable[[dict[str, Any]], Any]] | None = None,
        client: Client | None = None,
    ) -> None:
        self.loss = loss
        self.tol = tol
        self.C = C
        self.lam = lam
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.width = width
        self.max_iter = max_iter
        self.max_time = max_time
        self.passes = passes
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.client = client

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
        loss = make_loss(self.loss, width=self.width, among=CLASSIFICATION)
        blocks, client = blocks_of(X, y, sample_weight), self._client()
        found = client.gather(client.compute([dask.delayed(labels_of)(one) for _, one, _ in blocks]))
        self.classes_ = np.unique(np.concatenate([labels for labels in found if labels.size] or [np.empty(0)]))
        if self.classes_.size < 2:
            raise ValueError(f"y holds {self.classes_.size} class only: at least two are needed")
        self._solve(blocks, loss, self.classes_, self._factors(client, blocks))
        names = feature_names(X)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        return self

    def _factors(self, client: Client, blocks: list[Block]) -> np.ndarray | None:
        """What the class weights multiply row weights by, a class."""
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
        """Scores, shape (n,) or (n, n_classes); lazy for Dask input."""
        coef, intercept = self.coef_, self.intercept_
        return self._lazily(X, lambda block: _scores(block, coef, intercept), np.float64, len(coef))

    def predict(self, X: Any) -> Any:
        """Classes, shape (n,); lazy for Dask input."""
        coef, intercept, classes = self.coef_, self.intercept_, self.classes_
        return self._lazily(X, lambda block: _classes(block, coef, intercept, classes), classes.dtype, 1)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Accuracy; a lazy Dask number for Dask input."""
        right = self.predict(X) == _as_array(y)
        return right.mean() if sample_weight is None else (right * sample_weight).sum() / sample_weight.sum()

    def to_local(self) -> estimators.LinearSVC:
        """The same model as a :class:`saddlesvm.LinearSVC`, to save and to use without Dask."""
        check_is_fitted(self)
        model = estimators.LinearSVC(
            loss=self.loss, tol=self.tol, fit_intercept=self.fit_intercept, intercept_scaling=self.intercept_scaling,
            class_weight=self.class_weight, width=self.width, **self._strength(),
        )  # fmt: skip
        model.classes_ = self.classes_
        return _filled(model, self, self.coef_, self.intercept_)


class LinearSVR(RegressorMixin, _Distributed):
    """Linear support vector regression on a Dask cluster; see :class:`LinearSVC` and :class:`saddlesvm.LinearSVR`.

    Parameters
    ----------
    epsilon : float, default=0.0
    loss : str or Loss, default="epsilon_insensitive"
    tol, C, lam, fit_intercept, intercept_scaling, max_iter, max_time, passes, random_state, verbose, callbacks, client
        As in :class:`LinearSVC`.
    """

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        loss: str | Loss = "epsilon_insensitive",
        tol: float = 1e-4,
        C: float = 1.0,
        lam: float | None = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        max_iter: int | None = None,
        max_time: float | None = None,
        passes: float = 3.0,
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Sequence[Callable[[dict[str, Any]], Any]] | None = None,
        client: Client | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.loss = loss
        self.tol = tol
        self.C = C
        self.lam = lam
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.max_iter = max_iter
        self.max_time = max_time
        self.passes = passes
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.client = client

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> LinearSVR:
        """Train to the relative gap `tol`; see :meth:`LinearSVC.fit`."""
        loss = make_loss(self.loss, epsilon=self.epsilon, among=REGRESSION)
        self._solve(blocks_of(X, y, sample_weight), loss, None, None)
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


def shape_of(part: Any) -> tuple[int, int]:
    """Rows and features of a partition."""
    from saddlesvm import rows

    return part.size, rows.n_features(part.X)


def class_sums(y: Any, weights: Any, classes: np.ndarray) -> np.ndarray:
    """Sum of the row weights of each class in a partition."""
    codes = np.searchsorted(classes, np.asarray(y).ravel())
    return np.bincount(codes, None if weights is None else np.asarray(weights).ravel(), classes.size)


def _scores(X: Any, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    scores = linear_scores(as_matrix(X), coef, intercept)
    return scores[:, 0] if scores.shape[1] == 1 else scores


def _classes(X: Any, coef: np.ndarray, intercept: np.ndarray, classes: np.ndarray) -> np.ndarray:
    scores = linear_scores(as_matrix(X), coef, intercept)
    return classes[(scores[:, 0] > 0).astype(np.intp) if scores.shape[1] == 1 else scores.argmax(axis=1)]


def _of_file(function: Callable[..., np.ndarray], source: Any) -> np.ndarray:
    return function(read_part(source, None)[0])


def _as_array(y: Any) -> Any:
    return y.to_dask_array() if hasattr(y, "to_dask_array") else y


def _filled(model: Any, fitted: _Distributed, coef: Any, intercept: Any) -> Any:
    """The fitted attributes that a model in memory has."""
    model.coef_, model.intercept_ = coef, intercept
    model.certificate_, model.certificates_ = fitted.certificate_, fitted.certificates_
    model.outcome_, model.n_iter_ = fitted.outcome_, fitted.n_iter_
    model.n_features_in_ = fitted.n_features_in_
    if hasattr(fitted, "feature_names_in_"):
        model.feature_names_in_ = fitted.feature_names_in_
    return model
