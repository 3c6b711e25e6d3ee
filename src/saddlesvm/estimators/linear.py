"""LinearSVC and LinearSVR, and the fit that they share: from rows and labels as a user gives them to a certified model.

LinearSVC is a drop-in replacement for scikit-learn's, with a proven bound on its distance from the optimum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, Self, overload

import numpy as np

from saddlesvm.data.data_mark import mark_data
from saddlesvm.data.door import (
    Design,
    check_labels,
    check_target_columns,
    check_targets,
    check_weights,
    checked_data,
    encoded,
    has_columns,
)
from saddlesvm.estimators.automatic_C import AutomaticC, Choice, fit_automatically, made_automatic
from saddlesvm.estimators.base import COMMON, Training, all_or_nothing, in_use
from saddlesvm.estimators.calibration import PROBABILITY, calibrated
from saddlesvm.estimators.certified_path import CertifiedPath
from saddlesvm.estimators.class_weights import encode_labels, weigh_rows
from saddlesvm.estimators.fitted import decide
from saddlesvm.estimators.linear_classifier import LinearClassifier
from saddlesvm.estimators.linear_model import LinearModel
from saddlesvm.estimators.on_cluster import fit_on_cluster, is_distributed, over_blocks, score_on_cluster
from saddlesvm.estimators.path import RegularizationPath
from saddlesvm.estimators.path_search import path_of
from saddlesvm.estimators.proofs import prove
from saddlesvm.estimators.proven import Data
from saddlesvm.estimators.register import GRID, LinearOptions, register_estimator
from saddlesvm.estimators.scikit_learn import FitTasks, RegressorMixin
from saddlesvm.fit.outcome import FitResult
from saddlesvm.multiclass import splits
from saddlesvm.multiclass.splits import given_start
from saddlesvm.multiclass.sub_problems import SubProblem, each_target
from saddlesvm.problem.intercepts import intercept_kind
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.losses import make_loss
from saddlesvm.problem.margin_losses import ClassificationLoss
from saddlesvm.problem.penalties import BlockPenalty, Penalty
from saddlesvm.problem.residual_losses import RegressionLoss
from saddlesvm.rows.device import Device, sent
from saddlesvm.runtime.allowed import NUMBER, Allowed, among
from saddlesvm.runtime.clock import within_share
from saddlesvm.runtime.option_names import MultiClass, PenaltyName

TIME_BEFORE_CALIBRATION = 0.75  # share of max_time for a fit that probabilities follow; guessed
DUAL = among("'auto', True or False (it has no effect)", "auto", True, False)

Ends = tuple[float, float]
Grid = int | Sequence[float] | np.ndarray


class LinearEstimator(LinearModel):
    """The base class of LinearSVC and LinearSVR."""

    _allowed: ClassVar[dict[str, Allowed]] = COMMON | {"dual": DUAL}
    dual_coef_: Any
    C_: float
    choice_: Choice
    path_: CertifiedPath

    @all_or_nothing
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
            The workers of a cluster read a list of files or stores. Without a cluster, the rows of a list of stores
            follow one another.
        y : array-like or Dask array of shape (n,) or (n, k), or sparse indicator matrix of shape (n, k)
            Labels, at least two different ones; of a regression the targets. By default those of the store. Each column
            of an indicator matrix of 0 and 1 is one label, and each column of targets one target: k problems over the
            same rows, with a certificate each. For a list of files, the name of the column, or None.
        sample_weight : array-like of shape (n,), optional
            Non-negative row weights. A class whose rows all weigh 0 is kept, and hardly ever predicted; a free
            intercept and joint machines need a positive weight in each class. A weight of 2 equals the row twice.
            Without `y`, the default is the weights of the store. For a list of files, the name of a column, or a list
            of one array per file.
        groups : array-like of shape (n,), optional
            For ``C="auto"`` with rows that belong together (several images of one patient): the choice of C leaves out
            whole groups, each alone or in ten folds.
        coef_init : array-like of the shape of ``coef_``, optional
            Initial weights. Dual solvers begin at the sub-gradients of their margins. Pegasos begins at the weights as
            published: its first iteration computes margins with them, and multiplies them by zero, unless its steps
            begin later (see :class:`~saddlesvm.Pegasos`).
        intercept_init : array-like of the shape of ``intercept_``, optional
            Initial intercepts; zero by default.
        dual_coef_init : array-like or sparse array of the shape of ``dual_coef_``, optional
            Initial dual variables in the C form, within their bounds, instead of weights. Dual solvers begin exactly
            there.

        Raises
        ------
        ValueError
            Invalid data or options. The message names what was found and what is allowed.
        ClusterLostError
            The scheduler is lost, or there is no worker; ``error.model`` is the best model so far.

        Warns
        -----
        NotCertifiedWarning
            A limit was reached before the requested gap was proven.
        """
        starts = {"coef_init": coef_init, "intercept_init": intercept_init, "dual_coef_init": dual_coef_init}
        if not isinstance(X, np.ndarray) and is_distributed(X):
            fit_on_cluster(self, X, y, sample_weight, {"groups": groups} | starts)
            return self
        start = None if coef_init is intercept_init is dual_coef_init is None else given_start(*starts.values())
        if not isinstance(self.C, NUMBER) and (how := made_automatic(self.C)) is not None:
            if start is not None:
                raise ValueError("coef_init and dual_coef_init are for a given C, not for C='auto'")
            return fit_automatically(self, how, X, y, sample_weight, groups)
        if groups is not None:
            raise ValueError("groups are for C='auto', whose choice leaves whole groups out; C is given here")
        self._check_options()
        design, y, sample_weight = checked_data(X, y, sample_weight, self, reset=True)
        posed = self._learnt(y, sample_weight, design.shape[0])
        tasks = FitTasks(self, design.X, y, sample_weight, len(posed.problems)) if in_use(self) else None
        # The calibration after the fit has to end with max_time, too.
        with within_share(TIME_BEFORE_CALIBRATION if getattr(self, "probability", False) else 1.0):
            self._solve(design, posed, tasks, start)
        self._data = None if self._reads_blocks or design.placed else Data(design.X, y, sample_weight)
        if not design.placed:
            self._data_mark = mark_data(design.X, y)
        self._complete(design, y, sample_weight)
        if isinstance(design.X, Device):
            self.coef_ = sent(self.coef_, design.X.array)
            self.intercept_ = sent(self.intercept_, design.X.array)
        if tasks is not None:
            tasks.end()
        return self

    def proof(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, read: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """A proof that the model is near its optimum, to write as JSON; anybody can check it without this package.

        It contains the problem, the weights, the multipliers that the weights do not determine, a hash of the data, and
        two claims: an upper bound on the objective of the model, and a lower bound on the objective of every model.
        :mod:`saddlesvm.checker` computes the claims in fractions. Its file needs only Python: ``python checker.py
        proof.json DATA``.

        Parameters
        ----------
        X : array-like, sparse matrix or Store of shape (n, d)
            The training rows.
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
        read : dict, optional
            How the checker reads the data file, instead of guessing: `label` (number of the column, from 0), `drop`
            (numbers of other columns), `header` (whether there is one), `zero_based` (whether indices count from 0).

        Returns
        -------
        dict

        Raises
        ------
        ValueError
            The data do not fit the model, or there are no proofs for its loss or ``multi_class``. Proofs exist for
            every loss of the package, with "ovr", "ovo" and "multinomial".

        Examples
        --------
        >>> from saddlesvm import LinearSVC
        >>> from saddlesvm.data import load_bundled
        >>> notes = load_bundled("banknote")
        >>> model = LinearSVC(loss="hinge", random_state=0).fit(notes.X, notes.y)
        >>> proof = model.proof(notes.X, notes.y)
        >>> high, low, gap = map(float.fromhex, proof["claim"])
        >>> gap <= model.certificate_.gap
        True
        """
        return prove(self, X, y, sample_weight, read)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Accuracy, or R2 of a regression; of rows on a cluster a lazy Dask number.

        Parameters
        ----------
        X : array-like, sparse matrix, or Dask array or DataFrame of shape (n, d)
        y : array-like or Dask array of shape (n,)
        sample_weight : like y, optional
        """
        if is_distributed(X):
            return score_on_cluster(self, X, y, sample_weight)
        return super().score(X, y, sample_weight)  # type: ignore[misc]

    @overload
    @classmethod
    def path(
        cls, X: Any, y: Any = None, *, C: Ends, lam: None = None, gap: float | None = None, sample_weight: Any = None,
        **options: Any,
    ) -> CertifiedPath: ...  # fmt: skip

    @overload
    @classmethod
    def path(
        cls, X: Any, y: Any = None, *, lam: Ends, C: None = None, gap: float | None = None, sample_weight: Any = None,
        **options: Any,
    ) -> CertifiedPath: ...  # fmt: skip

    @overload
    @classmethod
    def path(
        cls, X: Any, y: Any = None, *, gap: float, C: None = None, lam: None = None, sample_weight: Any = None,
        **options: Any,
    ) -> CertifiedPath: ...  # fmt: skip

    @overload
    @classmethod
    def path(
        cls, X: Any, y: Any = None, *, Cs: Grid = 13, C: None = None, lam: None = None, gap: None = None,
        sample_weight: Any = None, **options: Any,
    ) -> RegularizationPath: ...  # fmt: skip

    @classmethod
    def path(
        cls,
        X: Any,
        y: Any = None,
        *,
        Cs: Any = GRID,
        C: tuple[float, float] | None = None,
        lam: tuple[float, float] | None = None,
        gap: float | None = None,
        sample_weight: Any = None,
        **options: Any,
    ) -> RegularizationPath | CertifiedPath:
        """Models along C: certified fits on a grid, or a model and a proof for *every* C between two ends.

        Parameters
        ----------
        X : array-like, sparse matrix or Store of shape (n, d)
        y : array-like of shape (n,)
        Cs : int or sequence of float, default=13
            A grid: values of C, or their number between 1e-3 and 1e3. Each fit starts from its neighbour.
        C : tuple of two floats, optional
            The smallest and the largest C of a certified path. With `gap` alone, 1e-3 and 1e3; with an l1 norm in the
            penalty, the C where the first weight appears, and a thousand times this C.
        lam : tuple of two floats, optional
            The same in lambda; certificates are then in the lambda form.
        gap : float, optional
            The relative gap to prove for every C of a certified path; 1e-2 where only the ends are given.
        sample_weight : array-like of shape (n,), optional
        **options
            Options of the estimator. With `n_jobs`, the fits of a certified path run in parallel, and so do the fits of
            a grid for two classes or a regression. The models of a grid are the same for any number of threads beyond
            one. The `checkpoint` of a certified path contains its fits so far, and the same call continues from it. A
            grid takes no checkpoint.

        Returns
        -------
        RegularizationPath or CertifiedPath

        Raises
        ------
        ValueError
            Invalid data or options, ends both in C and in lambda, or a grid together with options of a certified path.
        """
        return path_of(cls(**options), X, y, Cs, C, lam, gap, sample_weight)

    def _learnt(self, y: Any, sample_weight: Any, n: int) -> Training:
        """The sub-problems of labels, or of targets; the model learns which classes there are."""
        return self._pose(y, sample_weight, n)

    def _complete(self, design: Design, y: Any, sample_weight: Any) -> None:
        """Set the attributes of a model beside those of its fits."""

    def _check_options(self) -> Loss:
        """The loss; every option that does not depend on the data is checked."""
        super()._check_options()
        self._penalty()
        made: Loss = self._made_loss()
        return made


@register_estimator(
    task="classification",
)
@dataclass(eq=False, repr=False)
class LinearSVC(LinearEstimator, LinearClassifier, LinearOptions):
    r"""Linear support vector classification, trained to a certified relative duality gap.

    Minimises

    .. math:: \tfrac12 \lVert w \rVert^2 + C \sum_i s_i\, \phi\bigl(y_i (x_i^\top w + b)\bigr)

    with row weights :math:`s_i` and the loss :math:`\phi`. The fit stops when the duality gap proves that the objective
    is within the fraction `tol` of its optimum. float32 and float64 data, dense or CSR with 32 or 64 bit indices, are
    used without a copy, and so are dense float16, bfloat16, int8, uint8 and bool; ``coef_`` is float64. Parameters of
    scikit-learn's ``LinearSVC`` have the same meaning here.

    Parameters
    ----------
    penalty : {"l2", "l1", "elasticnet"} or a penalty object, default="l2"
        Half the squared norm of the weights; or :math:`\lVert w \rVert_1`; or, with `l1_ratio` as :math:`\rho`,
        :math:`\tfrac{1 - \rho}{2} \lVert w \rVert^2 + \rho \lVert w \rVert_1`. The last two make weights exactly zero.
        The l1 norm has the solvers "auto" and "columns". It penalises a regularised intercept like the other weights,
        as LIBLINEAR does. The elastic net also has the solvers "dcd" and "sdca", and so has a penalty object of your
        own that contains half a square (``CONTRIBUTING.md`` in the sources has the contract).
    loss : str or Loss, default="squared_hinge"
        "hinge", "squared_hinge", "smooth_hinge" (or ``"smooth_hinge:width=0.5"``), "logistic", or a registered loss of
        your own.
    l1_ratio : float, default=0.15
        Share of the l1 norm in the elastic net, from 0 (half the square) to 1 (the l1 norm).
    dual : "auto" or bool, default="auto"
        Accepted for compatibility, without effect: the optimum is the same.
    tol : float, default=1e-4
        Relative duality gap to prove, ``(primal - dual) / max(|primal|, |dual|)``. With 0, set another limit.
    gap : float, default=0.0
        Absolute duality gap of each sub-problem that also ends the fit, in the units of the objective (in the form of
        `lam` or of `C`). 0 has no effect. With ``tol=0`` only this gap ends the fit.
    C : float or "auto", default=1.0
        Weight of the losses, :math:`C = 1 / (\lambda n)` for n rows. "auto" chooses the C with the smallest approximate
        leave-one-out error along a certified path from 1e-3 to 1e3. An :class:`~saddlesvm.AutomaticC`, or text such as
        ``"auto:rule=one_standard_error,high=1e4"``, sets the options of the choice. For rows that belong to groups,
        give `groups` to :meth:`fit`.
    lam : float, optional
        lambda instead of C. Objectives are then reported in the lambda form.
    multi_class : {"ovr", "ovo", "crammer_singer", "multinomial"}, default="ovr"
        How to train three classes or more: each against the rest; each pair (with the same C, or lambda, for all
        pairs); or all classes in one problem. The loss of that problem is the hinge of the best rival
        ("crammer_singer") or the logistic loss of the softmax ("multinomial", with probabilities). `loss` must then be
        that loss ("hinge", "logistic") or its default.
    fit_intercept : bool, default=True
    intercept : {"regularized", "free", "none"}, default="regularized"
        "regularized": the weight of a constant feature of value `intercept_scaling`, penalised like the other weights,
        as in LIBLINEAR and scikit-learn. "free": exactly unpenalised, as in kernel machines. "none": no intercept, as
        with ``fit_intercept=False``.
    intercept_scaling : float, default=1.0
    class_weight : dict or "balanced", optional
        Positive factors for the weights of the classes' rows, as in scikit-learn and LIBLINEAR. With "ovr" and three
        classes or more, the factor of a class applies to its own rows in its own sub-problem only. Otherwise a factor
        of 2 equals all rows of the class twice.
    solver : str or solver object, default="auto"
        "auto", "dcd", "sdca", "pegasos", "newton", "blocks" (see `memory`), or an object such as ``SDCA(start="sgd")``.
        For rows on a cluster: "auto", "newton", "gather" or "rounds" (``"rounds:passes=5"``); see Notes.
    probability : bool, default=False
        Fit sigmoids from scores to probabilities (Platt), for every loss. They are fitted to leave-one-out estimates of
        the scores, without further fits. If there are no estimates (they need "ovr" and "l2"), or they are not
        reliable, scores from five folds are used. Rows have the weights of their classes. ``predict`` returns the class
        with the largest probability. The logistic loss has its own probabilities without this option.
    max_iter : int, optional
        Largest number of epochs; no limit by default.
    max_time : float, optional
        Largest time in seconds, for all sub-problems together, the choice of C and `probability` included.
    keep : {"best", "last"}, default="best"
        "best": the best certified model of the fit; where the fit ends early, the best multiple of its weights.
        "last": the solver's last point, bit for bit, whatever its objective, with the gap of that point.
    warm_start : bool, default=False
        Begin at the dual point of the last fit, if its shape matches the problem.
    random_state : int, RandomState or None, default=None
        Makes a fit repeatable bit for bit.
    n_jobs : int, optional
        Number of threads; -1 for the number of cores. Threads are spread over the sub-problems. The remaining threads
        work within each fit ("auto", "dcd" and "sdca"; very short fits use one). The result is the same for the same
        seed and number of threads.
    verbose : int, default=0
        1 draws a progress bar on standard error.
    callbacks : sequence of callables, optional
        Called with a :class:`~saddlesvm.fit.outcome.Record` of each certificate. Returning True stops the fit. An
        attribute `every` of a callback is the number of epochs between its calls. By default certificates are computed
        at growing intervals, and when the solver expects to be finished.
    checkpoint : path-like, optional
        File for the last solution of the fit, written every half minute and at the end. If the file exists, the fit
        continues from it.
    memory : int or str, optional
        Memory for training on rows that are mapped from files (a :class:`~saddlesvm.data.Store`, ``numpy.memmap``, or
        CSR over such): bytes, or text such as "512M" or "1.5G". Rows that take more than half of it, or by default
        more than half of the available memory, are read and trained on block by block. Rows in memory are always used
        in place. For rows on a cluster: bytes of other workers' rows that a worker may take, 256 MiB by default.

    Attributes
    ----------
    coef_ : ndarray of shape (1, d) for two classes, (n_classes, d) or (n_pairs, d), float64
    intercept_ : ndarray of shape (1,), (n_classes,) or (n_pairs,)
    classes_ : ndarray of shape (n_classes,)
    multilabel_ : bool
        Whether the model was fitted to an indicator matrix of n_classes labels. `classes_` are then its columns.
    dual_coef_ : ndarray of shape (1, n), or CSR array of shape (n_classes, n) or (n_pairs, n)
        Signed dual variables in the C form, of the dual point that proves the bound. ``dual_coef_ @ X`` approaches
        ``coef_`` as the gap closes: with "ovr" and "ovo", each row is at most :math:`\sqrt{2\,\text{gap}}` away, for
        the gap of its sub-problem in the C form. Absent with "multinomial", where the weights determine it:
        ``C s_i (e_{y_i} - predict_proba(x_i))``, and with the logistic loss where those of all classes would take more
        than 256 MiB (22 million rows times classes).
    certificate_ : Certificate
        Primal, dual and gap, summed over the sub-problems.
    certificates_ : list of Certificate
        One for each sub-problem.
    outcome_ : Outcome
        Why the fit stopped; with several sub-problems, the worst of their outcomes.
    trace_ : Trace
        One row for each certificate of the fit.
    n_iter_ : int
        Number of epochs.
    calibration_ : ndarray of shape (k, 2)
        With `probability`: slope and offset of each sub-problem's sigmoid.
    C_, choice_, path_ : float, Choice, CertifiedPath
        With ``C="auto"``: the chosen C, the leave-one-out estimates behind the choice, and the path.
    phases_ : dict of str to float
        Seconds of solving in each phase, by the name of the phase.
    seconds_solving_, seconds_certifying_ : float
    seconds_compiling_ : float
        The time spent compiling kernels, which are kept for the next fit. It is not part of the other two times, nor
        of `max_time`.
    rounds_ : list of dict
        For a fit on a cluster, one entry a round: objectives and gap, seconds of work (of the slowest partition) and of
        communication, how much slower than the mean that partition was, bytes up and down, sigma, and the number of
        restarts from saved dual variables.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Notes
    -----
    Rows on a Dask cluster stay where they are: X may be a Dask array (dense, or of scipy CSR blocks) or DataFrame, or a
    list of files or stores that the workers read. The fit needs a client (``distributed.Client``). ``n_iter_`` and
    `max_iter` count rounds, callbacks get a dict for each round (see ``rounds_``), and there is no ``dual_coef_``.
    Predictions for such rows are Dask arrays. `solver` is one of

    - "newton": the second-order method. It takes few rounds, whatever C and the number of partitions are. For smooth
      losses, a partition sends a matrix of the size of the squared number of features for each class. Where the
      matrices take more than 64 MB, it sends products of the matrix and a vector, which takes more rounds. For the
      hinge and its relatives, a worker collects the free rows, whose multipliers are strictly between their bounds or
      about to be, and solves for them.
    - "gather": one worker collects all rows and does an ordinary fit.
    - "rounds": every partition descends on its own part of the dual, and sends a number per feature and class. `passes`
      is the number of passes over its rows in a round, 3 by default; choose more where communication is slow.
    - "auto": Newton's method for smooth losses while the matrices of a partition are no more than 64 MB, and those of
      eight rounds are fewer bytes than the rows. Else "gather" where the rows fit into `memory`. Else "newton" for
      smooth losses (those with corners need at least about as many rows as features), and for the hinge and its
      relatives where there is room for enough rows. Else "rounds".

    Joint machines (`multi_class`) and the l1 norm need all rows on a worker ("gather"). The elastic net works with
    "gather" and "rounds", a free intercept with "gather" and "newton".

    Examples
    --------
    >>> from saddlesvm import LinearSVC
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> model = LinearSVC(C=1.0, random_state=0).fit(notes.X, notes.y)
    >>> model.certificate_.relative_gap <= 1e-4
    True
    """

    _allowed: ClassVar[dict[str, Allowed]] = LinearEstimator._allowed | {
        "probability": PROBABILITY,
    }
    penalty: PenaltyName | Penalty | BlockPenalty = "l2"
    loss: ClassificationLoss | Loss | type[Loss] = "squared_hinge"
    _: KW_ONLY
    C: float | Literal["auto"] | AutomaticC = 1.0
    multi_class: MultiClass = "ovr"
    class_weight: dict[Any, float] | Literal["balanced"] | None = None
    probability: bool = False

    def _learnt(self, y: Any, sample_weight: Any, n: int) -> Training:
        for name in ("indicator_", "_stream"):  # partial_fit begins anew
            self.__dict__.pop(name, None)
        if has_columns(y):
            posed = self._labels_posed(y, sample_weight, n)
            self._learn_labels(y)
            return posed
        self.classes_, codes = encode_labels(y, n)
        return self._classes_posed(codes, sample_weight)

    def _made_loss(self) -> Any:
        return make_loss(self.loss, task="classification")

    def _classes_posed(self, codes: np.ndarray, sample_weight: Any) -> Training:
        """The sub-problems of rows with these class numbers."""
        needs = ""
        if self.multi_class not in ("ovr", "ovo"):
            needs = f"with multi_class={self.multi_class!r} every class needs one"
        elif intercept_kind(self._intercept_kind()).constrained:
            needs = "a free intercept then has no unique optimum: leave the class out, or use intercept='regularized'"
        weights, factors = weigh_rows(self.class_weight, self.classes_, codes, sample_weight, self.multi_class, needs)
        problems = splits.sub_problems_of(self.multi_class, codes, self.classes_, factors)
        return Training(problems, splits.loss_for(self.multi_class, self._made_loss()), weights)

    def _complete(self, design: Design, y: Any, sample_weight: Any) -> None:
        self.__dict__.pop("calibration_", None)
        if self.probability:
            self.calibration_ = calibrated(self, design, y, sample_weight)

    def _pose(self, y: Any, sample_weight: Any, n: int) -> Training:
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
            posed = self._labels_posed(y, sample_weight, n)
            if len(posed.problems) != self.classes_.size:
                raise ValueError(f"y has {len(posed.problems)} columns; the model knows {self.classes_.size} labels")
            return posed
        found, codes = encoded(check_labels(y, n))
        known = self.classes_.tolist()
        for unlike, what in ((np.setdiff1d(found, known), "holds"), (np.setdiff1d(known, found), "does not hold")):
            if unlike.size:
                raise ValueError(f"y {what} the label {unlike.tolist()[0]!r}; the model knows {known}")
        return self._classes_posed(codes, sample_weight)

    def _keep(self, results: list[FitResult]) -> None:
        super()._keep(results)
        if self.multi_class in splits.JOINT and len(self.coef_) == self.classes_.size == 2:
            splits.use_two_class_form(self)

    def _made_solver(self) -> Any:
        return splits.solver_for(self.multi_class, self.solver)

    def _check_options(self) -> Loss:
        """The loss; every option that does not depend on the data is checked."""
        loss = super()._check_options()
        kind = self.intercept if self.fit_intercept else "none"
        splits.check_split(self.multi_class, kind)
        return loss


class LinearRegressor(RegressorMixin, LinearModel):
    """The base class of LinearSVR: its score comes after that of rows on a cluster."""


@register_estimator(task="regression")
@dataclass(kw_only=True, eq=False, repr=False)
class LinearSVR(LinearEstimator, LinearRegressor, LinearOptions):
    """Linear support vector regression, trained to a certified relative duality gap.

    Minimises

    .. math:: \\tfrac12 \\lVert w \\rVert^2 + C \\sum_i s_i\\, \\phi(x_i^\\top w + b - y_i) .

    See :class:`LinearSVC` for parameters that are not described here.

    Parameters
    ----------
    epsilon : float, default=0.0
        Half-width of the tube without loss, for the two epsilon losses. It has the target's units.
    tol, C, lam, penalty, l1_ratio, fit_intercept, intercept, intercept_scaling, solver, max_iter, max_time, \
keep, gap, warm_start, random_state, n_jobs, verbose, callbacks, checkpoint, memory
        As in :class:`LinearSVC`.
    loss : str or Loss, default="epsilon_insensitive"
        "epsilon_insensitive", "squared_epsilon_insensitive" (see `epsilon`), "absolute", "squared", "huber:delta=1.0",
        "pinball:tau=0.5" (the quantile `tau`), or a registered loss of your own.
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

    epsilon: float = 0.0
    C: float | Literal["auto"] | AutomaticC = 1.0
    loss: RegressionLoss | Loss | type[Loss] = "epsilon_insensitive"

    def _complete(self, design: Design, y: Any, sample_weight: Any) -> None:
        if not has_columns(y):
            self.coef_, self.intercept_ = self.coef_[0], np.ravel(self.intercept_)[:1]

    def _made_loss(self) -> Loss:
        return make_loss(self.loss, epsilon=self.epsilon, task="regression")

    def _pose(self, y: Any, sample_weight: Any, n: int) -> Training:
        """The problems, one a column, that this model solves on targets; see :meth:`LinearSVC._pose`."""
        weights = check_weights(sample_weight, n)
        if has_columns(y):
            return Training(each_target(check_target_columns(y, n)), self._made_loss(), weights)
        targets = check_targets(y, n)
        return Training([SubProblem(0, "", targets)], self._made_loss(), weights)

    @over_blocks
    def predict(self, X: Any) -> np.ndarray:
        """Predicted targets, shape (n,), or (n, k) where as many columns were fitted."""
        return decide(self, self._scores(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
