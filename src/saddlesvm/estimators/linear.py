"""LinearSVC and LinearSVR: scikit-learn's linear machines, with a proven duality gap."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils.metaestimators import available_if

from saddlesvm.data.label_checks import (
    check_indicator,
    check_labels,
    check_target_columns,
    check_targets,
    check_weights,
    encode_classes,
    has_columns,
)
from saddlesvm.estimators import exact_optimum
from saddlesvm.estimators.automatic_C import AutomaticC
from saddlesvm.estimators.base import Labels, Training, restore_on_error
from saddlesvm.estimators.batches import learn_batch
from saddlesvm.estimators.class_weights import encode_labels, weigh_rows
from saddlesvm.estimators.fitted import check_rows, decide, fitted_value, scale_to_one
from saddlesvm.estimators.linear_model import LinearModel
from saddlesvm.estimators.on_cluster import apply_to_any_rows
from saddlesvm.estimators.register import register_estimator
from saddlesvm.estimators.scikit_learn import ClassifierMixin, RegressorMixin
from saddlesvm.multiclass import splits
from saddlesvm.multiclass.sub_problems import SubProblem, each_label, each_target, vote
from saddlesvm.problem.joint_losses import softmax
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.losses import make_loss
from saddlesvm.problem.margin_losses import ClassificationLoss
from saddlesvm.problem.residual_losses import RegressionLoss
from saddlesvm.runtime.allowed import CLASS_WEIGHT, NOT_NEGATIVE, Allowed, names
from saddlesvm.runtime.data_types import LabelsLike, RowsLike
from saddlesvm.runtime.option_names import MULTI_CLASS, MultiClass, PenaltyName
from saddlesvm.solvers.pegasos import Pegasos
from saddlesvm.solvers.register import make_solver

if TYPE_CHECKING:
    from sklearn.utils import Tags


def _gives_probabilities(estimator: Any) -> bool:
    """Return True for an estimator with probabilities; AttributeError says what another lacks."""
    options = estimator._at_fit()
    if options.multi_class == "multinomial":
        return True
    if options.multi_class != "ovr":
        raise AttributeError(
            "predict_proba needs multi_class='ovr' or 'multinomial'; this model has "
            f"{options.multi_class!r}: CalibratedClassifierCV gives any model probabilities"
        )
    if not hasattr(options._make_loss(), "probability"):
        raise AttributeError(
            "predict_proba needs a loss with probabilities, loss='logistic'; this model has "
            f"loss={options.loss!r}: CalibratedClassifierCV gives any model probabilities"
        )
    return True


def _is_pegasos(estimator: Any) -> bool:
    """Return True for an estimator with partial_fit; AttributeError says what another lacks."""
    if estimator.multi_class != "ovr":
        raise AttributeError(f"partial_fit needs multi_class='ovr'; got {estimator.multi_class!r}")
    if estimator.penalty == "l1":
        raise AttributeError("partial_fit needs penalty='l2' or 'elasticnet'; got 'l1'")
    if not isinstance(make_solver(estimator.solver), Pegasos):
        raise AttributeError(
            f"partial_fit needs an online solver, solver='pegasos'; got {estimator.solver!r}"
        )
    return True


@register_estimator(task="classification")
@dataclass(eq=False, repr=False)
class LinearSVC(ClassifierMixin, LinearModel):
    r"""Linear support vector classification that proves how near it is to the optimum.

    A fit stops when it has proven that no weights have an objective lower by more than the fraction
    `tol`; ``certificate_`` has the proof. Parameters of scikit-learn's ``LinearSVC`` have the same
    meaning here.

    Parameters
    ----------
    penalty : {"l2", "l1", "elasticnet"}, default="l2"
        Half the squared norm of the weights; or their l1 norm, which makes weights exactly zero; or
        a mixture of both (see `l1_ratio`).
    loss : str or Loss, default="squared_hinge"
        "hinge", "squared_hinge", "smooth_hinge" (or ``"smooth_hinge:width=0.5"``), "logistic", or a
        registered loss of your own.
    C : float or "auto", default=1.0
        The price of errors on the rows, relative to the penalty on large weights. With n rows it
        is :math:`1 / (\lambda n)`. "auto" chooses the C with the smallest leave-one-out error (of
        more than 2,500 features, the smallest error of five folds) from 1e-3 to 1e3. An
        :class:`~saddlesvm.AutomaticC`, or text such as ``"auto:rule=one_standard_error,high=1e4"``,
        sets the options of the choice. For rows that belong to groups, see
        :class:`~saddlesvm.LinearSVCCV`.
    multi_class : {"ovr", "ovo", "crammer_singer", "multinomial"}, default="ovr"
        How to train three classes or more: each against the rest; each pair (with the same C, or
        lambda, for all pairs); or all classes in a single problem. The loss of that problem is the
        hinge of the best rival ("crammer_singer") or the logistic loss of the softmax
        ("multinomial", with probabilities). `loss` must then be that loss ("hinge", "logistic") or
        its default.
    class_weight : dict or "balanced", optional
        Positive factors for the weights of the classes' rows, as in scikit-learn and LIBLINEAR.
        With "ovr" and three classes or more, the factor of a class applies to its own rows in its
        own sub-problem only. Otherwise a factor of 2 equals all rows of the class twice.
    intercept : {"regularized", "free", "none"}, default="regularized"
        "regularized": the weight of a constant feature of value `intercept_scaling`, penalised like
        the other weights, as in LIBLINEAR and scikit-learn. "free": exactly unpenalised, as in
        kernel machines. "none": no intercept, as with ``fit_intercept=False``.
    tol : float, default=1e-4
        Relative duality gap to prove, ``(primal - dual) / max(|primal|, |dual|)``. With 0, set
        another limit.
    random_state : int, RandomState or None, default=None
        Makes a fit repeatable bit for bit.
    n_jobs : int, optional
        Number of threads; -1 for the number of cores. Threads are spread over the sub-problems. The
        remaining threads serve Newton's method and long passes over the rows; coordinate descent
        has one thread. The result is the same for the same seed and number of threads.

    Examples
    --------
    >>> from saddlesvm import LinearSVC
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> model = LinearSVC(C=1.0, random_state=0).fit(notes.X, notes.y)
    >>> model.certificate_.relative_gap <= 1e-4
    True
    >>> bool(model.score(notes.X, notes.y) > 0.98)
    True

    Other Parameters
    ----------------
    l1_ratio : float, default=0.15
        Share of the l1 norm in the elastic net, from 0 (half the square) to 1 (the l1 norm).
    lam : float, optional
        lambda instead of C. Objectives are then reported in the lambda form.
    fit_intercept : bool, default=True
        Whether there is an intercept; see `intercept`.
    intercept_scaling : float, default=1.0
        Value of the constant feature whose weight a penalised intercept is.
    solver : str or solver object, default="auto"
        "auto", "dcd", "sdca", "pegasos", "newton", "columns" (on features), "blocks" (see
        `memory`), or an object such as ``SDCA(start="sgd")``. For rows on a cluster: "auto",
        "newton" or "gather"; see Notes.
    max_iter : int, optional
        Largest number of epochs; no limit by default.
    max_time : float, optional
        Largest time in seconds, for all sub-problems together, the choice of C
        included.
    gap : float, default=0.0
        Absolute duality gap of each sub-problem that also ends the fit, in the units of the
        objective (in the form of `lam` or of `C`). 0 has no effect. With ``tol=0`` only this gap
        ends the fit.
    keep : {"best", "last"}, default="best"
        "best": the best certified model of the fit. "last": the solver's last point, bit for bit,
        whatever its objective, with the gap of that point.
    warm_start : bool, default=False
        Begin at the dual point of the last fit, if its shape matches the problem.
    verbose : int, default=0
        1 draws a progress bar on standard error.
    callbacks : sequence of callables, optional
        Called with a :class:`~saddlesvm.fit.outcome.Record` of each certificate. Returning True
        stops the fit. An attribute `every` of a callback is the number of epochs between its calls.
        By default certificates are computed at growing intervals, and when the solver expects to be
        finished.
    checkpoint : path-like, optional
        File for the last solution of the fit, written every half minute and at the end. If the file
        exists, the fit continues from it.
    memory : int or str, optional
        Memory for training on rows that are mapped from files (a :class:`~saddlesvm.data.Store`,
        ``numpy.memmap``, or CSR over such): bytes, or text such as "512M" or "1.5G". Rows that take
        more than half of it, or by default more than half of the available memory, are read and
        trained on block by block. Rows in memory are always used in place. For rows on a cluster:
        bytes of other workers' rows that a worker may take, 256 MiB by default.
    dual : "auto" or bool, default="auto"
        Accepted for compatibility, without effect: the optimum is the same.

    Attributes
    ----------
    coef_ : ndarray of shape (1, d) for two classes, (n_classes, d) or (n_pairs, d), float64
    intercept_ : ndarray of shape (1,), (n_classes,) or (n_pairs,)
    classes_ : ndarray of shape (n_classes,)
    multilabel_ : bool
        Whether the model was fitted to an indicator matrix of n_classes labels. `classes_` are then
        its columns.
    dual_coef_ : ndarray of shape (1, n), or CSR array of shape (n_classes, n) or (n_pairs, n)
        Signed dual variables in the C form, of the dual point that proves the bound. ``dual_coef_ @
        X`` approaches ``coef_`` as the gap closes: with "ovr" and "ovo", each row is at most
        :math:`\sqrt{2\,\text{gap}}` away, for the gap of its sub-problem in the C form. Absent with
        "multinomial", because the weights determine it: ``C s_i (e_{y_i} - predict_proba(x_i))``,
        and with the logistic loss if all classes would take more than 256 MiB (22 million rows
        times classes).
    certificate_ : Certificate
        Primal, dual and gap, summed over the sub-problems.
    certificates_ : list of Certificate
        A certificate for each sub-problem.
    outcome_ : Outcome
        Why the fit stopped; with several sub-problems, the worst of their outcomes.
    trace_ : Trace
        A row for each certificate of the fit.
    n_iter_ : int
        Number of epochs.
    C_, choice_, path_ : float, Choice, CertifiedPath
        With ``C="auto"``: the chosen C, the errors behind the choice, and the path.
    phases_ : dict of str to float
        Seconds of solving in each phase, by the name of the phase.
    seconds_solving_, seconds_certifying_ : float
    seconds_compiling_ : float
        The time spent compiling kernels, which are kept for the next fit. It is not part of the
        other two times, nor of `max_time`.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Notes
    -----
    The fit minimises

    .. math:: \tfrac12 \lVert w \rVert^2 + C \sum_i s_i\, \phi\bigl(y_i (x_i^\top w + b)\bigr)

    with row weights :math:`s_i` and the loss :math:`\phi`. With ``penalty="l1"`` the first term is
    :math:`\lVert w \rVert_1`, and with "elasticnet", with `l1_ratio` as :math:`\rho`,
    :math:`\tfrac{1 - \rho}{2} \lVert w \rVert^2 + \rho \lVert w \rVert_1`. The l1 norm has the
    solvers "auto" and "columns". It penalises a regularised intercept like the other weights, as
    LIBLINEAR does. The elastic net also has the solvers "dcd" and "sdca".

    float32 and float64 data, dense or CSR with 32 or 64 bit indices, are used without a copy, and
    so are dense float16, bfloat16, int8, uint8 and bool; ``coef_`` is float64.

    Parameters that are changed after a fit count from the next fit on: predictions, bounds, proofs,
    exports and saved models are of the fit. Weights that are assigned by hand (``coef_``,
    ``intercept_``) count.

    Rows on a Dask cluster stay on the workers: X may be a Dask array (dense, or of scipy CSR
    blocks) or DataFrame, or a list of blocks that the workers compute (delayed values or futures).
    The fit needs a client (``distributed.Client``). ``n_iter_`` and `max_iter` count rounds,
    callbacks get a dict for each round, and there is no ``dual_coef_``. Predictions for a Dask
    array or DataFrame are Dask arrays. `solver` is one of

    - "newton": Newton's method. It takes few rounds for any C and number of partitions.
      For smooth losses, a partition sends a matrix of the size of the squared number of
      features for each class, 64 MB at most. For the hinge and its relatives, a worker collects
      the free rows, whose multipliers are strictly between their bounds or about to be, and solves
      for them.
    - "gather": a worker collects all rows and does an ordinary fit.
    - "auto": Newton's method for smooth losses while the matrices of a partition are no more than
      64 MB, and the messages of eight rounds are fewer bytes than the rows. Else "gather" if the
      rows fit into `memory`. Else "newton", for smooth losses if their matrices take no more than
      64 MB, and for the hinge and its relatives if there is room for enough rows.

    Joint machines (`multi_class`), the l1 norm and the elastic net need all rows on a worker
    ("gather").
    """

    _allowed: ClassVar[dict[str, Allowed]] = LinearModel._allowed | {
        "multi_class": names(*MULTI_CLASS),
        "class_weight": CLASS_WEIGHT,
    }
    penalty: PenaltyName = "l2"
    loss: ClassificationLoss | Loss | type[Loss] = "squared_hinge"
    _: KW_ONLY
    C: float | Literal["auto"] | AutomaticC = 1.0
    multi_class: MultiClass = "ovr"
    class_weight: dict[Any, float] | Literal["balanced"] | None = None

    _takes_clusters: ClassVar[bool] = True

    @available_if(_is_pegasos)  # type: ignore[untyped-decorator]
    @restore_on_error
    def partial_fit(
        self,
        X: RowsLike,
        y: LabelsLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn a batch of rows by a pass of Pegasos.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)
        classes : array-like, optional
            All labels of the stream, at least two. The first call needs them. A call after
            :meth:`fit` counts as a first call.
        sample_weight : array-like of shape (n,), optional

        Raises
        ------
        ValueError
            Invalid data or options, ``class_weight="balanced"``, or other classes than in the first
            call.

        Notes
        -----
        The first call fixes lambda: `lam`, or ``1 / (C n)`` with the n of this call.
        ``certificate_`` is for the rows of the last call only.
        """
        former = self._fitted
        self._hold(learn_batch(self._options(), former, X, y, classes, sample_weight))
        return self

    @apply_to_any_rows
    def decision_function(self, X: RowsLike) -> np.ndarray:
        """Return signed scores, shape (n,) for two classes, (n, n_classes) for more, or for labels.

        A positive score of two classes is for ``classes_[1]``. With ``multi_class="ovo"`` they are
        the votes of the pairs for each class, ties broken by sums of scores.
        """
        scores = self._scores(X)
        if scores.shape[1] == 1:
            return scores[:, 0]
        if self._at_fit().multi_class == "ovo":
            return vote(scores, self.classes_.size)
        return scores

    @apply_to_any_rows
    def predict(self, X: RowsLike) -> np.ndarray:
        """Return the most likely class of each row, shape (n,).

        A model that was fitted to an indicator matrix returns one of the same kind, dense or
        sparse.
        """
        return decide(self._scores(X), self._labels(), self._at_fit().multi_class)

    def is_proven(self, X: RowsLike) -> np.ndarray:
        """Return True for each row whose predicted label is proven to be the exact optimum's.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)

        Returns
        -------
        ndarray of bool, shape (m,), or (m, n_labels) of a model of several labels a row
            False if the optimum gives another label, or if the proof does not decide, for example
            for a row on the boundary.

        Raises
        ------
        ValueError
            Invalid rows, or a model without its training data (see :meth:`prove`).

        Examples
        --------
        >>> from saddlesvm import LinearSVC
        >>> from saddlesvm.data import load_bundled
        >>> notes = load_bundled("banknote")
        >>> model = LinearSVC(random_state=0).fit(notes.X, notes.y)
        >>> float(model.is_proven(notes.X).mean())
        1.0
        """
        fitted = self._prove()
        return exact_optimum.prove_labels(fitted, check_rows(fitted, X), self.predict(X))

    def settle(self, X: RowsLike) -> np.ndarray:
        """Continue the fit until the labels of these rows are proven.

        No smaller tolerance can change a label that is proven.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            The rows whose labels matter.

        Returns
        -------
        ndarray of bool, of the shape of :meth:`is_proven`
            Whether each label is proven to be the label of the exact optimum. The other rows are
            ties, up to rounding.

        Raises
        ------
        ValueError
            As :meth:`is_proven`.

        Notes
        -----
        The model keeps the weights that were reached, with their certificates.

        Examples
        --------
        >>> from saddlesvm import LinearSVC
        >>> from saddlesvm.data import load_bundled
        >>> notes = load_bundled("banknote")
        >>> model = LinearSVC(tol=0.1, random_state=0).fit(notes.X, notes.y)
        >>> bool(model.settle(notes.X).all())
        True
        """
        exact_optimum.training_data(fitted_value(self))
        rows = check_rows(fitted_value(self), X)
        for tol in exact_optimum.TOWARDS:
            self._hold(exact_optimum.settle(fitted_value(self), tol))
            found = exact_optimum.prove_labels(fitted_value(self), rows, self.predict(X))
            if found.all():
                break
        return found

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    @apply_to_any_rows
    def predict_proba(self, X: RowsLike) -> np.ndarray:
        """Return the probabilities of the classes, shape (n, n_classes).

        They need the logistic loss. With ``multi_class="multinomial"`` they are the softmax of the
        scores. With more than two classes the one-against-rest probabilities are scaled to sum to
        1, as in scikit-learn. Probabilities of the labels of an indicator matrix are not scaled,
        because a row may have several labels.
        """
        scores = self._scores(X).astype(np.float64)
        options = self._at_fit()
        several_labels = self._labels().indicator != ""
        if options.multi_class == "multinomial":
            return softmax(splits.each_class(scores.T).T)
        # One-vs-rest with the logistic loss: each class by itself, then scaled to sum to 1.
        positive = options._make_loss().probability(scores)
        return positive if several_labels else scale_to_one(positive)

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    @apply_to_any_rows
    def predict_log_proba(self, X: RowsLike) -> np.ndarray:
        """Return the logarithms of :meth:`predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def _at_fit(self) -> LinearSVC:
        """Return the parameters that count for predictions: the fit's, if the model is fitted."""
        return self if self._fitted is None else self._fitted.template

    def _labels(self) -> Labels:
        """Return what the model knows of its labels."""
        return Labels(self.classes_, vars(self).get("indicator_", ""))

    def _check_options(self) -> Loss:
        loss = super()._check_options()
        kind = self.intercept if self.fit_intercept else "none"
        splits.check_split(self.multi_class, kind)
        return loss

    def _make_loss(self) -> Any:
        return make_loss(self.loss, task="classification")

    def _make_solver(self) -> Any:
        return splits.solver_for(self.multi_class, self.solver)

    def _pose(
        self, y: Any, sample_weight: ArrayLike | None, n: int, labels: Labels | None = None
    ) -> Training:
        """Return the sub-problems of n rows with these labels.

        Parameters
        ----------
        y : array-like of shape (n,), or indicator matrix of shape (n, k)
        sample_weight : array-like of shape (n,) or None
        n : int
        labels : Labels, optional
            Of a fitted model: all its classes occur, and no others.

        Raises
        ------
        ValueError
            The labels are not the model's.
        """
        # A fit to an indicator matrix: a problem for each column.
        if labels is None and has_columns(y):
            count = y.shape[1] if hasattr(y, "shape") else len(y[0])
            kind = "sparse" if sparse.issparse(y) else "dense"
            return self._pose_labels(y, sample_weight, n, Labels(np.arange(count), kind))
        # A fit to labels of classes.
        if labels is None:
            classes, codes = encode_labels(y, n)
            return self._pose_classes(codes, sample_weight, Labels(classes))
        # Labels for a fitted model: y needs the columns of the fit.
        if labels.indicator:
            training = self._pose_labels(y, sample_weight, n, labels)
            count = len(training.problems)
            known_count = labels.classes.size
            if count != known_count:
                raise ValueError(f"y has {count} columns; the model knows {known_count} labels")
            return training

        # The classes of y must be those of the model: none more, none less.
        found, codes = encode_classes(check_labels(y, n))
        known = labels.classes.tolist()
        unknown = np.setdiff1d(found, known)
        missing = np.setdiff1d(known, found)
        if unknown.size:
            raise ValueError(f"y holds the label {unknown.tolist()[0]!r}; the model knows {known}")
        if missing.size:
            raise ValueError(
                f"y does not hold the label {missing.tolist()[0]!r}; the model knows {known}"
            )
        return self._pose_classes(codes, sample_weight, labels)

    def _pose_labels(
        self, y: LabelsLike, sample_weight: ArrayLike | None, n: int, labels: Labels
    ) -> Training:
        """Return the sub-problems of an indicator matrix.

        Raises
        ------
        ValueError
            No indicator matrix, options that need labels of a single column, or a label without an
            optimum.
        """
        if self.multi_class != "ovr":
            raise ValueError(
                f"an indicator matrix y needs multi_class='ovr'; got {self.multi_class!r}"
            )
        given = self.class_weight
        if given is not None:
            raise ValueError(
                f"class_weight={given!r} needs a y of shape (n,); for an indicator matrix use "
                f"sklearn.multiclass.OneVsRestClassifier(LinearSVC(class_weight={given!r}))"
            )
        indicator = check_indicator(y, n)
        weights = check_weights(sample_weight, n)
        if self._intercept_kind() == "free":
            # A column with one value among the rows that count has no optimal free intercept.
            counted = np.ones(n) if weights is None else (weights > 0).astype(np.float64)
            present = counted @ indicator
            alike = np.flatnonzero((present == 0) | (present == counted.sum()))
            if alike.size:
                value = int(present[alike[0]] > 0)
                raise ValueError(
                    f"column {alike[0]} of y is {value} everywhere, and a free intercept then has "
                    "no unique optimum: leave the column out, or use intercept='regularized'"
                )
        return Training(each_label(indicator), self._make_loss(), weights, labels)

    def _pose_classes(
        self, codes: np.ndarray, sample_weight: ArrayLike | None, labels: Labels
    ) -> Training:
        """Return the sub-problems of rows with these class numbers."""
        # What to do if a class has no row that counts.
        needs = ""
        if self.multi_class not in ("ovr", "ovo"):
            needs = f"with multi_class={self.multi_class!r} every class needs one"
        elif self.fit_intercept and self.intercept == "free":
            needs = (
                "a free intercept then has no unique optimum: leave the class out, or use "
                "intercept='regularized'"
            )
        classes = labels.classes
        loss = splits.loss_for(self.multi_class, self._make_loss())
        weights, factors = weigh_rows(
            self.class_weight, classes, codes, sample_weight, self.multi_class, needs
        )
        problems = splits.sub_problems_of(self.multi_class, codes, classes, factors)
        return Training(problems, loss, weights, labels)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = self.multi_class == "ovr"
        return tags


@register_estimator(task="regression")
@dataclass(kw_only=True, eq=False, repr=False)
class LinearSVR(RegressorMixin, LinearModel):
    """Linear support vector regression that proves how near it is to the optimum.

    Minimises

    .. math:: \\tfrac12 \\lVert w \\rVert^2 + C \\sum_i s_i\\, \\phi(x_i^\\top w + b - y_i) .

    See :class:`LinearSVC` for parameters that are not described here.

    Parameters
    ----------
    epsilon : float, default=0.0
        Half-width of the tube without loss, for the two epsilon losses. It has the target's units.
    tol, C, lam, penalty, l1_ratio, fit_intercept, intercept, intercept_scaling, solver, max_iter, \
max_time, keep, gap, warm_start, random_state, n_jobs, verbose, callbacks, checkpoint, memory
        As in :class:`LinearSVC`.
    loss : str or Loss, default="epsilon_insensitive"
        "epsilon_insensitive", "squared_epsilon_insensitive" (see `epsilon`), "absolute", "squared",
        "huber:delta=1.0", "pinball:tau=0.5" (the quantile `tau`), or a registered loss of your own.
    dual : "auto" or bool, default="auto"
        Accepted for compatibility, without effect.

    Attributes
    ----------
    coef_ : ndarray of shape (d,) or (k, d), float64
    intercept_ : ndarray of shape (1,) or (k,)
    dual_coef_ : ndarray of shape (1, n), or CSR array of shape (k, n)
    certificate_, certificates_, outcome_, trace_, n_iter_, phases_
    seconds_solving_, seconds_certifying_, seconds_compiling_, n_features_in_, feature_names_in_
        As in :class:`LinearSVC`.

    Examples
    --------
    >>> import numpy as np
    >>> from saddlesvm import LinearSVR
    >>> x = np.linspace(-1.0, 1.0, 50)
    >>> model = LinearSVR(loss="absolute", C=10.0, intercept="free", random_state=0)
    >>> model = model.fit(x[:, None], 2.0 * x + 1.0)
    >>> model.predict([[0.5]]).round(2).tolist()
    [2.0]
    """

    _allowed: ClassVar[dict[str, Allowed]] = LinearModel._allowed | {"epsilon": NOT_NEGATIVE}
    epsilon: float = 0.0
    C: float | Literal["auto"] | AutomaticC = 1.0
    loss: RegressionLoss | Loss | type[Loss] = "epsilon_insensitive"

    _takes_clusters: ClassVar[bool] = True

    def _make_loss(self) -> Loss:
        return make_loss(self.loss, epsilon=self.epsilon, task="regression")

    def _pose(
        self, y: Any, sample_weight: ArrayLike | None, n: int, labels: Labels | None = None
    ) -> Training:
        """Return the problems on targets, a problem for each column."""
        weights = check_weights(sample_weight, n)
        if has_columns(y):
            return Training(each_target(check_target_columns(y, n)), self._make_loss(), weights)
        targets = check_targets(y, n)
        return Training([SubProblem(0, "", targets)], self._make_loss(), weights)

    @apply_to_any_rows
    def predict(self, X: RowsLike) -> np.ndarray:
        """Predicted targets, shape (n,), or (n, k) if k columns were fitted."""
        return decide(self._scores(X), None, "ovr")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
