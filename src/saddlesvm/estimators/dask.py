"""LinearSVC and LinearSVR on a Dask cluster: the same models and certificates, on rows that are on many machines.

The rows stay where they are. In each round every partition improves its own part of the dual against the shared
weights; each partition sends and receives one number per feature, and the workers compute the duality gap where the
data are. See :mod:`saddlesvm.cluster.rounds`. Needs Dask: ``pip install 'saddlesvm[dask]'``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

try:
    import dask
    from distributed import Client
except ImportError as error:
    raise ImportError("saddlesvm.dask needs Dask: pip install 'saddlesvm[dask]'") from error

from saddlesvm import estimators
from saddlesvm.cluster.dask_engine import ClusterLostError
from saddlesvm.cluster.lazily import as_array, scores_of
from saddlesvm.cluster.model import Prepared, whole_or_not_at_all
from saddlesvm.cluster.part import as_matrix, labels_of
from saddlesvm.cluster.sources import part_tasks
from saddlesvm.cluster.splits import best_class
from saddlesvm.estimators.class_weights import class_factors
from saddlesvm.estimators.dask_linear import DistributedLinear, filled
from saddlesvm.multiclass.one_vs_one import vote
from saddlesvm.multiclass.splits import JOINT, loss_for
from saddlesvm.problem.losses import Loss
from saddlesvm.runtime.words import ClassificationLoss, ClusterSolver, Intercept, MultiClass, Penalty, ScoreShape

__all__ = ["ClusterLostError", "LinearSVC"]


def _gives_probabilities(estimator: Any) -> bool:
    return hasattr(estimator._template(), "predict_proba") or bool(estimator._template().predict_proba)


class LinearSVC(ClassifierMixin, DistributedLinear):
    """Linear support vector classification on a Dask cluster, trained to a certified relative duality gap.

    The same problem as :class:`saddlesvm.LinearSVC`; options of the same name mean the same. Labels are found on the
    workers, and no row ever reaches the client.

    Parameters
    ----------
    loss : str or Loss, default="squared_hinge"
    tol : float, default=1e-4
        Relative duality gap to prove, for every class.
    C : float, default=1.0
    lam : float, optional
    fit_intercept : bool, default=True
    intercept : {"regularized", "free"}, default="regularized"
        Regularised: penalised as the weight of a feature of value `intercept_scaling`. Free of penalty: with "gather"
        and "newton".
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
        smooth losses a partition sends a matrix, of the square of the number of features, for each class, or where that
        is more than 64 MB a product of it with a vector, which takes more rounds; for the hinge and its relatives the
        rows whose multiplier is undecided are brought together on a worker, and solved there.
        "gather": all rows are brought together on one worker, where an ordinary fit is done. "rounds": every partition
        descends on its own part of the dual, and sends a number per feature and class. "auto" takes Newton's method for
        smooth losses while the matrices of a partition are no more than 64 MB, and those of eight rounds are fewer
        bytes than the rows; else "gather" where the rows fit into `memory`; else "newton" for smooth losses (those with
        corners on about as many rows as features, at least), and for the hinge and its relatives where there is room
        for enough rows; else "rounds".
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
        1 prints a line a round on standard error.
    callbacks : sequence of callables, optional
        Called with a dict for each round: see ``trace_``; True stops the fit.
    client : distributed.Client, optional
        The one in force by default.
    memory : int or str, optional
        Bytes of rows of other workers that a worker may take, as a number or as text such as ``"1G"``; 256 MiB by
        default.
    multi_class : {"ovr", "ovo", "crammer_singer", "multinomial", "top_k"}, default="ovr"
        More than two classes: one against the rest, or each against each other and a vote, all in the same rounds; or
        all in one problem, for which all rows must fit on a worker ("gather").
    top_k : int, default=5
        With ``multi_class="top_k"``.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        With ``multi_class="ovo"``: a column of votes a class, or a column of scores a pair.
    penalty : {"l2", "l1", "elasticnet"}, default="l2"
        The l1 norm needs all rows on a worker ("gather"); the elastic net takes "gather" and "rounds".
    l1_ratio : float, default=0.15
        Of the elastic net.

    Attributes
    ----------
    coef_ : ndarray of shape (1, d), (n_classes, d) or (n_pairs, d)
        Pairs in the order of :class:`saddlesvm.LinearSVC`.
    intercept_ : ndarray of shape (1,), (n_classes,) or (n_pairs,)
    classes_ : ndarray
    certificate_, certificates_, outcome_, n_features_in_, feature_names_in_
        As in :class:`saddlesvm.LinearSVC`.
    n_iter_ : int
        Rounds.
    seconds_ : float
        Of the fit, as the client waits for it.
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
        solver: ClusterSolver = "auto",
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Sequence[Callable[[dict[str, Any]], Any]] | None = None,
        client: Client | None = None,
        memory: int | str | None = None,
        multi_class: MultiClass = "ovr",
        top_k: int = 5,
        decision_function_shape: ScoreShape = "ovr",
        penalty: Penalty = "l2",
        l1_ratio: float = 0.15,
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
        self.top_k = top_k
        self.decision_function_shape = decision_function_shape
        self.penalty = penalty
        self.l1_ratio = l1_ratio

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> LinearSVC:
        """Train to the relative gap `tol`.

        Parameters
        ----------
        X : Dask array (dense, or of scipy CSR blocks), Dask DataFrame, or list of files or stores
            Files are read on the workers, which must see them.
        y : Dask array or Series, or ndarray; for a list of files the name of the label column, or None
        sample_weight : like y, optional
            For a list of files the name of a column, or an array a file, or a Dask array with a partition a file; the
            weights of stores are in them.

        Raises
        ------
        ValueError
            Bad data or options.
        ClusterLostError
            The scheduler is gone, or there is no worker left; ``error.model`` is the best model so far.
        KeyboardInterrupt
            Ctrl-C, before there was a model with a certificate.

        Warns
        -----
        NotCertifiedWarning
            A limit was reached, or Ctrl-C pressed, before the gap asked for was proven.
        """
        with whole_or_not_at_all(self):
            self._run(self._rows(X, y, sample_weight))
        return self

    def _template(self) -> estimators.LinearSVC:
        options: dict[str, Any] = self._options_for(estimators.LinearSVC)
        return estimators.LinearSVC(**options | {"solver": "auto"})

    def check_options(self) -> Loss:
        """The loss; every option that does not depend on the data is checked."""
        loss = loss_for(self.multi_class, super().check_options())
        if self.multi_class in JOINT and self.penalty != "l2":
            raise ValueError(
                f"multi_class={self.multi_class!r} has half a square as its penalty, 'l2'; got {self.penalty!r}"
            )
        return loss

    def _rows(self, X: Any, y: Any, sample_weight: Any, folds: int = 0) -> Prepared:
        """The partitions on the workers; finds the classes."""
        loss = self.check_options()
        blocks, client = part_tasks(X, y, sample_weight), self._client()
        found = client.gather(client.compute([dask.delayed(labels_of)(labels, s) for _, labels, s in blocks]))
        filled_ones = [labels for labels, _ in found if labels.size]
        self.classes_ = np.unique(np.concatenate(filled_ones or [np.empty(0)]))
        if self.classes_.size < 2:
            raise ValueError(f"y holds {self.classes_.size} class only: at least two are needed")
        check_classification_targets(np.repeat(self.classes_, 3))  # a class a row would look like a regression
        sums = np.zeros(self.classes_.size)
        for labels, weights in found:
            sums[np.searchsorted(self.classes_, labels)] += weights
        if not sums.all():
            absent = self.classes_.tolist()[int(np.argmin(sums))]
            raise ValueError(f"class {absent!r} has no row of positive weight: every class needs one")
        self._note_columns(X, y, sample_weight)
        return self._prepared(blocks, loss, self.classes_, self._factors(sums), folds)

    def _pairs(self) -> bool:
        return self.multi_class == "ovo" and self.classes_.size > 2

    def _factors(self, sums: np.ndarray) -> np.ndarray | None:
        """The factor of the class weights for the row weights of each class, whose sums are given."""
        if self.class_weight is None:
            return None
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            return np.asarray(sums.sum() / (self.classes_.size * sums))
        factors = class_factors(self.class_weight, self.classes_, np.arange(self.classes_.size), None)
        if not (np.isfinite(factors) & (factors > 0)).all():
            raise ValueError(f"class_weight must hold positive finite factors; got {self.class_weight!r}")
        return factors

    def decision_function(self, X: Any) -> Any:
        """Scores, shape (n,) or (n, n_classes), votes where pairs were told apart; lazy for Dask input."""
        check_is_fitted(self)
        n_classes, pairs = self.classes_.size, self._pairs() and self.decision_function_shape == "ovr"
        scores = functools.partial(_decided, self.coef_, self.intercept_, pairs, n_classes)
        return self._lazily(X, scores, np.float64, n_classes if pairs else len(self.coef_))

    def predict(self, X: Any) -> Any:
        """Classes, shape (n,); lazy for Dask input."""
        check_is_fitted(self)
        scores = functools.partial(_decided, self.coef_, self.intercept_, self._pairs(), self.classes_.size)
        classes = self.classes_
        return self._lazily(X, lambda block: classes[best_class(scores(block))], classes.dtype, 1)

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> Any:
        """As :meth:`saddlesvm.LinearSVC.predict_proba`; lazy for Dask input."""
        model = self.to_local()
        model.__dict__.pop("feature_names_in_", None)  # blocks of rows have none
        return self._lazily(X, lambda block: model.predict_proba(as_matrix(block)), np.float64, self.classes_.size)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Accuracy; a lazy Dask number for Dask input."""
        right = self.predict(X) == as_array(y)
        return right.mean() if sample_weight is None else (right * sample_weight).sum() / sample_weight.sum()

    def to_local(self) -> estimators.LinearSVC:
        """The same model as a :class:`saddlesvm.LinearSVC`, to save and to use without Dask."""
        check_is_fitted(self)
        model = self._alike()
        model.classes_ = self.classes_
        return filled(model, self, self.coef_, self.intercept_)


def _decided(coef: np.ndarray, intercept: np.ndarray, pairs: bool, n_classes: int, X: Any) -> np.ndarray:
    """Scores, or the votes of pairs."""
    scores = scores_of(X, coef, intercept)
    return vote(scores, n_classes) if pairs else scores
