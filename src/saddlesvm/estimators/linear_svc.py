"""LinearSVC: a drop-in replacement for scikit-learn's, with a proven bound on its distance from the optimum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

import numpy as np

from saddlesvm.data import inputs
from saddlesvm.data.columns_of_labels import has_columns
from saddlesvm.estimators.automatic_C import AutomaticC, Choice, fit_automatically, made_automatic, refuse_groups
from saddlesvm.estimators.base import all_or_nothing, store
from saddlesvm.estimators.calibration import METHODS
from saddlesvm.estimators.certified_path import CertifiedPath
from saddlesvm.estimators.has_path import HasPath
from saddlesvm.estimators.leave_one_out import calibrated
from saddlesvm.estimators.linear_classifier import LinearClassifier
from saddlesvm.estimators.linear_model import Training
from saddlesvm.estimators.on_cluster import TakesClusters, fit_on_cluster, is_distributed
from saddlesvm.estimators.register import register_estimator
from saddlesvm.estimators.sklearn_callbacks import FitTasks, with_callbacks
from saddlesvm.fit.result import FitResult
from saddlesvm.multiclass import splits
from saddlesvm.multiclass import sub_problems as multiclass
from saddlesvm.multiclass.given_start import given_start
from saddlesvm.problem.losses import Loss
from saddlesvm.runtime.allowed import COUNT_FROM_ONE, check
from saddlesvm.runtime.internal import internal
from saddlesvm.runtime.words import (
    Calibration,
    ClassificationLoss,
    ClusterSolver,
    DualOption,
    Intercept,
    Keep,
    MultiClass,
    Penalty,
    ScoreShape,
    SolverName,
)
from saddlesvm.solvers.base import SolverBase


@register_estimator(
    task="classification",
    options=(
        "penalty",
        "l1_ratio",
        "width",
        "multi_class",
        "top_k",
        "class_weight",
        "probability",
        "checkpoint",
        "memory",
        "liblinear",
    ),
)
class LinearSVC(HasPath, TakesClusters, LinearClassifier):
    r"""Linear support vector classification, trained to a certified relative duality gap.

    Minimises

    .. math:: \tfrac12 \lVert w \rVert^2 + C \sum_i s_i\, \phi\bigl(y_i (x_i^\top w + b)\bigr)

    with row weights :math:`s_i` and the loss :math:`\phi`, and stops when the duality gap proves that the objective is
    within the fraction `tol` of its optimum. float32 and float64 data, dense and CSR with 32 or 64 bit indices, are
    used in place, without a copy. Parameters that scikit-learn's ``LinearSVC`` has mean the same here.

    Parameters
    ----------
    penalty : {"l2", "l1", "elasticnet"}, default="l2"
        Half the square of the weights' norm; or :math:`\lVert w \rVert_1`; or, with `l1_ratio` as :math:`\rho`,
        :math:`\tfrac{1 - \rho}{2} \lVert w \rVert^2 + \rho \lVert w \rVert_1`. The last two make weights exactly zero.
        The l1 norm takes the solvers "auto" and "columns", and charges a regularised intercept like the other weights
        (as LIBLINEAR does); the elastic net takes "dcd" and "sdca", too.
    loss : str or Loss, default="squared_hinge"
        "hinge", "squared_hinge", "smooth_hinge" (see `width`), "logistic", or a registered loss of your own.
    l1_ratio : float, default=0.15
        Of the elastic net; from 0 (half the square) to 1 (the l1 norm).
    dual : "auto" or bool, default="auto"
        Kept for compatibility, without effect: both values lead to the same optimum.
    tol : float, default=1e-4
        Relative duality gap to prove, ``(primal - dual) / max(|primal|, |dual|)``. With 0 a fit needs another limit.
    gap : float, default=0.0
        Duality gap that ends the fit, too, in the units of the objective (that of `lam` or of `C`), of each
        sub-problem; 0 never does. With ``tol=0`` it alone counts.
    C : float or "auto", default=1.0
        Weight of the losses, :math:`C = 1 / (\lambda n)` for n rows. "auto" chooses the one that approximate
        leave-one-out prefers along a certified path from 1e-3 to 1e3, and fits there. An
        :class:`~saddlesvm.AutomaticC`, or ``"auto:rule=one_standard_error,high=1e4"`` in words, sets how. Where rows
        belong to groups, give `groups` to :meth:`fit`.
    lam : float, optional
        lambda instead of C; objectives are then reported in the lambda form.
    multi_class : {"ovr", "ovo", "crammer_singer", "multinomial", "top_k"}, default="ovr"
        More than two classes: each against the rest; each against each other (C, or lambda, is the same for all pairs);
        or all in one problem, whose loss is the hinge of the best rival ("crammer_singer"), the logistic one of the
        softmax ("multinomial", with probabilities), or the mean of the `top_k` largest hinges of rivals ("top_k").
        `loss` may be that loss ("hinge", "logistic"), or left alone.
    top_k : int, default=5
        With ``multi_class="top_k"``: a row pays only while its class is not among this many best by a margin.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        With ``multi_class="ovo"``: a column of votes a class, or a column of scores a pair.
    fit_intercept : bool, default=True
    intercept : {"regularized", "free", "none"}, default="regularized"
        The intercept is the weight of a constant feature of value `intercept_scaling` and penalised like the others (as
        in LIBLINEAR and scikit-learn), or exactly unpenalised (as in kernel machines), or there is none, as with
        ``fit_intercept=False``.
    intercept_scaling : float, default=1.0
    class_weight : dict or "balanced", optional
        Positive factors for the weights of the classes' rows, as in scikit-learn and LIBLINEAR: where each of three
        classes or more has a sub-problem of its own ("ovr"), its factor counts there only, and the rows of the rest
        keep their weights; otherwise a factor of 2 is the same as all rows of the class twice.
    solver : str or solver object, default="auto"
        "auto", "dcd", "sdca", "pegasos", "newton", "blocks" (see `memory`), or an object such as ``SDCA(start="sgd")``.
        For rows on a cluster "auto", "newton", "gather" or "rounds" (``"rounds:passes=5"``), see Notes.
    width : float, default=1.0
        Width of the smooth hinge.
    probability : bool or {"sigmoid", "isotonic", "temperature"}, default=False
        Fit curves from scores to probabilities, for every loss, to leave-one-out estimates of the scores: without
        further fits. True is "sigmoid" (Platt); "temperature" is the softmax of the scores divided by a number. Where
        there are no estimates (they are for "ovr" and "l2"), or they cannot be trusted, five folds take their place.
        Rows count with the weights of their classes. ``predict`` then returns the class with the largest probability.
        The logistic loss has probabilities of its own without it.
    max_iter : int, optional
        Epochs at most; no limit by default, since every problem ends certified.
    max_time : float, optional
        Seconds at most, for all sub-problems together.
    certify_every : float, optional
        Epochs between certificates, and so between the rows of the trace and the calls of the callbacks; left out, at
        growing intervals and when the solver expects to be done.
    keep : {"best", "last"}, default="best"
        The model: the best one that a certificate found, improved by a multiple of its weights where the fit ends
        early; or the solver's own last point, bit for bit, whatever its objective, with the gap of that point.
    warm_start : bool, default=False
        Begin at the last fit's dual point, if it fits the problem.
    random_state : int, RandomState or None, default=None
        Makes a fit repeatable bit for bit.
    n_jobs : int, optional
        Threads, -1 for as many as there are cores: over the sub-problems where there are several, and within each fit
        where some are left ("auto", "dcd" and "sdca"; problems that are solved in a moment keep to one). What comes out
        is the same for the same seed and number of threads.
    verbose : int, default=0
        1 draws a progress bar on standard error.
    callbacks : sequence of callables, optional
        Called with a :class:`~saddlesvm.fit.trace.Record` of each certificate; True stops the fit.
    checkpoint : path-like, optional
        The fit writes its state there now and then, and continues from it if it exists.
    memory : int or str, optional
        Memory for training on rows that are mapped from files (a :class:`~saddlesvm.data.Store`, ``numpy.memmap``, CSR
        over such): bytes, or text such as "512M" or "1.5G". Rows that take more than half of it, or by default more
        than half of the memory that is available, are read and trained on block by block. Rows that are in memory
        already are always used in place. For rows on a cluster: bytes of rows of other workers that a worker may take,
        256 MiB by default.

    Attributes
    ----------
    coef_ : ndarray of shape (1, d) for two classes, (n_classes, d) or (n_pairs, d), float64
    intercept_ : ndarray of shape (1,), (n_classes,) or (n_pairs,)
    classes_ : ndarray of shape (n_classes,)
    multilabel_ : bool
        Whether the model was fitted to an indicator matrix, of n_classes labels; `classes_` then are their columns.
    dual_coef_ : ndarray of shape (1, n), or CSR array of shape (n_classes, n) or (n_pairs, n)
        Signed dual variables in the C form, of the dual point that proves the bound. ``dual_coef_ @ X`` comes close to
        ``coef_`` as the gap closes: with "ovr" and "ovo" each row is at most :math:`\sqrt{2\,\text{gap}}` away, the gap
        being that of its sub-problem in the C form. Absent with "multinomial", where the weights determine it: ``C s_i
        (e_{y_i} - predict_proba(x_i))``.
    certificate_ : Certificate
        Primal, dual and gap; summed over the sub-problems where there are several.
    certificates_ : list of Certificate
        One a sub-problem.
    outcome_ : Outcome
        Why it stopped; the worst of the sub-problems'.
    trace_ : Trace
        A row for each certificate on the way.
    n_iter_ : int
        Epochs.
    calibration_ : ndarray of shape (k, 2), (k, 2, m) or (1,)
        With `probability`: slope and offset of each sub-problem's sigmoid, the corners of its isotonic curve, or the
        inverse temperature (of several labels one each).
    C_, choice_, path_ : float, Choice, CertifiedPath
        With ``C="auto"``: the chosen C, the leave-one-out estimates behind the choice, and the path.
    phases_ : dict of str to float
        Seconds of solving in each phase, by the name of the phase.
    seconds_solving_, seconds_certifying_ : float
    seconds_compiling_ : float
        The time spent compiling kernels, which are kept for the next fit. It is not part of the other two times, nor
        of `max_time`.
    rounds_ : list of dict
        Of a fit on a cluster: objectives and gap after each round, seconds of work (of the slowest partition) and of
        communication, how much slower that one was than the mean, bytes up and down, sigma, and how often the fit
        started again from kept dual variables.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Notes
    -----
    Rows on a Dask cluster stay where they are: X may be a Dask array (dense, or of scipy CSR blocks) or DataFrame, or a
    list of files or stores that the workers read. The fit needs a client (``distributed.Client``), counts its rounds in
    ``n_iter_`` and `max_iter`, hands callbacks a dict a round (see ``rounds_``), and has no ``dual_coef_``. Predictions
    for such rows are Dask arrays. `solver` is one of

    - "newton": the second-order method, whose rounds are few whatever C is and however many partitions there are. For
      smooth losses a partition sends a matrix, of the square of the number of features, for each class, or where that
      is more than 64 MB a product of it with a vector, which takes more rounds; for the hinge and its relatives the
      rows whose multiplier is undecided are brought together on a worker, and solved there.
    - "gather": all rows are brought together on one worker, where an ordinary fit is done.
    - "rounds": every partition descends on its own part of the dual, and sends a number per feature and class;
      `passes` over its rows in a round (3 by default), more where communication is dear.
    - "auto": Newton's method for smooth losses while the matrices of a partition are no more than 64 MB, and those of
      eight rounds are fewer bytes than the rows; else "gather" where the rows fit into `memory`; else "newton" for
      smooth losses (those with corners on about as many rows as features, at least), and for the hinge and its
      relatives where there is room for enough rows; else "rounds".

    Joint machines (`multi_class`) and the l1 norm need all rows on a worker ("gather"); the elastic net takes "gather"
    and "rounds", a free intercept "gather" and "newton".

    Examples
    --------
    >>> from saddlesvm import LinearSVC
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> model = LinearSVC(C=1.0, random_state=0).fit(notes.X, notes.y)
    >>> model.certificate_.relative_gap <= 1e-4
    True
    """

    coef_: np.ndarray
    intercept_: np.ndarray
    dual_coef_: Any
    calibration_: np.ndarray
    C_: float
    choice_: Choice
    path_: CertifiedPath
    phases_: dict[str, float]

    def __init__(
        self,
        penalty: Penalty = "l2",
        loss: ClassificationLoss | Loss | type[Loss] = "squared_hinge",
        *,
        l1_ratio: float = 0.15,
        dual: DualOption = "auto",
        tol: float = 1e-4,
        C: float | Literal["auto"] | AutomaticC = 1.0,
        lam: float | None = None,
        multi_class: MultiClass = "ovr",
        top_k: int = 5,
        decision_function_shape: ScoreShape = "ovr",
        fit_intercept: bool = True,
        intercept: Intercept = "regularized",
        intercept_scaling: float = 1.0,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        solver: SolverName | ClusterSolver | SolverBase = "auto",
        width: float = 1.0,
        probability: bool | Calibration = False,
        max_iter: int | None = None,
        max_time: float | None = None,
        certify_every: float | None = None,
        keep: Keep = "best",
        gap: float = 0.0,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callbacks: Sequence[Any] | None = None,
        checkpoint: Any = None,
        memory: int | str | None = None,
    ) -> None:
        store(locals())

    @all_or_nothing
    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        coef_init: Any = None,
        intercept_init: Any = None,
        dual_coef_init: Any = None,
    ) -> Self:
        """Train to the relative gap `tol`.

        Parameters
        ----------
        X : array-like, sparse matrix, list of dicts, Store, or Dask array or DataFrame, of shape (n, d); or files
            The workers of a cluster read such files and stores.
        y : array-like or Dask array of shape (n,), or indicator matrix of shape (n, k), dense or sparse
            Labels, at least two different ones. Left out: those of the store. Of an indicator matrix each column, of 0
            and 1, is a label that rows have or have not: k problems over the same rows, with a certificate each.
            For a list of files the name of the label column, or None.
        sample_weight : array-like of shape (n,), optional
            Non-negative row weights, some of each class positive; a weight of 2 is the same as the row twice. Left out
            with `y`: those of the store. For a list of files the name of a column, or a list of an array a file.
        groups : array-like of shape (n,), optional
            For ``C="auto"`` where rows belong together (several images of one patient): C is chosen by leaving out
            whole groups, each alone or in ten folds.
        coef_init : array-like of the shape of ``coef_``, optional
            Weights to begin from. Dual solvers begin at the sub-gradients of these weights' margins. Pegasos begins at
            them as published: its first iteration judges rows by them, and multiplies them by zero, unless its steps
            are put off (see :class:`~saddlesvm.Pegasos`).
        intercept_init : array-like of the shape of ``intercept_``, optional
            Intercepts to begin from; zero when left out.
        dual_coef_init : array-like or sparse array of the shape of ``dual_coef_``, optional
            Dual variables in the C form, within their bounds, at which the dual solvers begin exactly, instead of
            weights.

        Raises
        ------
        ValueError
            Bad data or options; the message says what was found and what is allowed.
        ClusterLostError
            The scheduler is gone, or no worker is left; ``error.model`` is the best model so far.

        Warns
        -----
        NotCertifiedWarning
            A limit was reached before the gap asked for was proven.
        """
        if is_distributed(X):
            given = {"groups": groups, "coef_init": coef_init, "intercept_init": intercept_init}
            return fit_on_cluster(self, X, y, sample_weight, given | {"dual_coef_init": dual_coef_init})
        start = given_start(coef_init, intercept_init, dual_coef_init)
        if (how := made_automatic(self.C)) is not None:
            if start is not None:
                raise ValueError("coef_init and dual_coef_init are for a given C, not for C='auto'")
            return fit_automatically(self, how, X, y, sample_weight, groups)
        refuse_groups(groups)
        loss = self.check_options()
        X, y, sample_weight = inputs.parts_of(X, y, sample_weight)
        X = inputs.check_design(self, X, reset=True)
        self.__dict__.pop("indicator_", None)
        problems: Sequence[Callable[[], multiclass.SubProblem]]
        if has_columns(y):
            problems, weights = self._labels_posed(y, sample_weight, X.shape[0])
            self._learn_labels(y)
        else:
            codes = self._encode(y, X.shape[0])
            weights, factors = self._weights(sample_weight, codes, self.multi_class)
            problems = splits.sub_problems_of(self.multi_class, codes, self.classes_, self.top_k, factors)
        self.__dict__.pop("_stream", None)  # partial_fit begins anew
        tasks = FitTasks(self, X, y, sample_weight, len(problems))
        self._solve(X, problems, splits.loss_for(self.multi_class, loss), weights, self.n_jobs, tasks, start)
        tasks.end()
        self.__dict__.pop("calibration_", None)
        if self.probability:
            self.calibration_ = calibrated(self, X, y, sample_weight)
        return self

    @internal
    def training_problems(self, y: Any, sample_weight: Any, n: int) -> Training:
        """The sub-problems that this fitted model solves on such labels, their loss, and the weights of the rows.

        Parameters
        ----------
        y : array-like of shape (n,), or indicator matrix of shape (n, k)
            Labels: all classes of the model, and no others.
        sample_weight : array-like of shape (n,) or None
        n : int
            Rows.

        Raises
        ------
        ValueError
            The labels are not those of the model.
        """
        if self.multilabel_:
            labelled, weights = self._labels_posed(y, sample_weight, n)
            if len(labelled) != self.classes_.size:
                raise ValueError(f"y has {len(labelled)} columns; the model knows {self.classes_.size} labels")
            return Training([make() for make in labelled], self.check_options(), weights)
        labels = inputs.check_labels(y, n)
        known = self.classes_.tolist()
        for unlike, what in ((np.setdiff1d(labels, known), "holds"), (np.setdiff1d(known, labels), "does not hold")):
            if unlike.size:
                raise ValueError(f"y {what} the label {unlike.tolist()[0]!r}; the model knows {known}")
        codes = np.searchsorted(self.classes_, labels)
        weights, factors = self._weights(sample_weight, codes, self.multi_class)
        makers = splits.sub_problems_of(self.multi_class, codes, self.classes_, self.top_k, factors)
        loss = splits.loss_for(self.multi_class, self.check_options())
        return Training([make() for make in makers], loss, weights)

    def _keep(self, results: list[FitResult]) -> None:
        super()._keep(results)
        if self.multi_class in splits.JOINT and len(self.coef_) == self.classes_.size == 2:
            splits.use_two_class_form(self)

    def _made_solver(self) -> Any:
        return splits.solver_for(self.multi_class, self.solver)

    def check_options(self) -> Loss:
        """The loss; every option that does not depend on the data is checked."""
        self._check_common()
        self._penalty()
        if self.dual not in ("auto", True, False):
            raise ValueError(f"dual must be 'auto', True or False (it has no effect); got {self.dual!r}")
        kind = self.intercept if self.fit_intercept else "none"
        splits.check_split(self.multi_class, self.decision_function_shape, kind)
        check("top_k", self.top_k, COUNT_FROM_ONE)
        if self.probability not in (False, True, *METHODS):
            raise ValueError(
                f"probability must be True, False or one of {', '.join(METHODS)}; got {self.probability!r}"
            )
        made: Loss = self._made_loss()
        return made
