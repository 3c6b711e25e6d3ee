"""SVC and NuSVC: classification with kernels, a problem for each pair of classes as in
scikit-learn, certified.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from saddlesvm.data.label_checks import check_weights
from saddlesvm.estimators import calibration
from saddlesvm.estimators.base import Training, draw_seed, restore_on_error
from saddlesvm.estimators.class_weights import class_factors, encode_labels, weigh_rows
from saddlesvm.estimators.register import (
    KERNEL,
    PairOptions,
    SavedNames,
    register_estimator,
)
from saddlesvm.estimators.scikit_learn import ClassifierMixin
from saddlesvm.fit.outcome import FitResult
from saddlesvm.kernel.kernel_fits import Coefficients
from saddlesvm.kernel.kernel_machine import duals_of, pair_duals
from saddlesvm.kernel.kernel_problem import MIDDLE, check_kernel_loss, has_shared
from saddlesvm.kernel.mercer import Matrix, expand
from saddlesvm.kernel.nu_machines import Machine, NuClassification
from saddlesvm.kernel.svm import NU, SVM, TRUTH
from saddlesvm.multiclass.sub_problems import Pairs, vote, worst_outcome
from saddlesvm.problem.losses import Loss, make_loss
from saddlesvm.problem.margin_losses import ClassificationLoss
from saddlesvm.runtime.allowed import Allowed, one_of
from saddlesvm.runtime.available import available_if
from saddlesvm.runtime.interrupts import raise_interrupts
from saddlesvm.runtime.option_names import Intercept


def _gives_probabilities(model: Any) -> bool:
    if not model.probability:
        raise AttributeError("predict_proba needs probability=True")
    return True


class PairwiseClassifier(ClassifierMixin, SVM, PairOptions):
    """The base class of SVC and NuSVC: a problem for each pair of classes, kept as scikit-learn
    keeps them.
    """

    _allowed: ClassVar[dict[str, Allowed]] = SVM._allowed | {
        "break_ties": TRUTH,
        "probability": calibration.PROBABILITY,
    }
    n_iter_: Any
    calibration_: np.ndarray

    def _check_classifier(self) -> None:
        self._check_kernel()
        one_of("decision_function_shape", self.decision_function_shape, ("ovr", "ovo"))

    @restore_on_error
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train to the relative gap `tol`.

        Parameters
        ----------
        X : array-like, sparse matrix or list of dicts, shape (n, d)
            Of shape (n, n) for a precomputed kernel.
        y : array-like of shape (n,)
            Labels, with at least two different values.
        sample_weight : array-like of shape (n,), optional
            Non-negative row weights, some of each class positive; a weight of 2 equals the row
            twice.

        Raises
        ------
        ValueError
            Invalid data or options. The message names what was found and what is allowed. Also with
            an infinite C if the classes cannot be separated; with NuSVC if nu is larger than the
            smaller class of a pair allows.

        Warns
        -----
        NotCertifiedWarning
            A limit was reached before the requested gap was proven; with NuSVC also if nu leaves no
            margin between two classes: the optimum is then w = 0, and the model is a dual point
            that pair steps cannot improve. Raise nu.
        """
        loss = self._check_options()
        X = self._check_design(X, reset=True)
        self.classes_, codes = encode_labels(y, X.shape[0])
        sample_weight = check_weights(sample_weight, X.shape[0])
        weights, _ = weigh_rows(self.class_weight, self.classes_, codes, sample_weight)
        self.class_weight_ = class_factors(self.class_weight, self.classes_, codes, sample_weight)
        self.kernel_ = self._made_kernel(X, sample_weight)
        results = self._solve(X, Training(Pairs(codes, self.classes_), loss, weights))
        self._keep_pairs(codes, results)
        self._keep_vectors(X, results)
        worst_outcome(results).warn(stacklevel=4)
        self.__dict__.pop("calibration_", None)
        if self.probability:
            self._calibrate(X, codes, sample_weight, weights)
        return self

    def _set_outcome(self, results: list[FitResult]) -> None:
        super()._set_outcome(results)
        self.n_iter_ = np.maximum(1, np.ceil([result.epochs for result in results])).astype(
            np.int32
        )

    def _shares(self, X: Matrix) -> bool:
        """Return True if the pairs share a kernel matrix."""
        return (self.classes_.size > 2 or X.shape[0] <= MIDDLE) and has_shared(
            self.kernel_, X, self.cache_size
        )

    def _solve(
        self, X: Matrix, posed: Training, order: np.ndarray | None = None
    ) -> list[FitResult]:
        """Solve the problems of all pairs, over the rows class by class if they share a kernel
        matrix.
        """
        problems: Any = posed.problems
        if not self._shares(X) or problems.sorted:
            return super()._solve(X, posed, order)
        order = np.argsort(problems.codes, kind="stable")
        weights = None if posed.weights is None else posed.weights[order]
        sorted_ones = Training(Pairs(problems.codes[order], self.classes_), posed.loss, weights)
        results = super()._solve(X[order], sorted_ones, order)
        return [
            replace(one, coef=Coefficients(order[one.coef.rows], one.coef.values))  # type: ignore[attr-defined,arg-type]
            for one in results
        ]

    def _keep_pairs(self, codes: np.ndarray, results: list[FitResult]) -> None:
        """Support vectors in the order of their classes, and the coefficients of each in its
        class's pairs.

        A support vector of class i has its coefficient against class j in row ``j - 1`` if j is
        later, else in row j. Scores of pairs are positive for the earlier class; those of two
        classes alone for the later class.
        """
        K = self.classes_.size
        parts = [result.coef for result in results]
        place = np.full(codes.size, -1)
        for rows, _ in parts:
            place[rows] = 0
        support = np.flatnonzero(place == 0)
        support = support[np.argsort(codes[support], kind="stable")]
        place[support] = np.arange(support.size)
        own = codes[support]
        sign = 1.0 if K == 2 else -1.0
        self.support_ = support.astype(np.int32)
        self.n_support_ = np.bincount(own, minlength=K).astype(np.int32)
        self.intercept_ = sign * np.array([result.intercept for result in results])
        self.dual_coef_ = np.zeros((K - 1, support.size))
        for k, (i, j) in enumerate(combinations(range(K), 2)):
            rows, values = parts[k]
            at = place[rows]
            self.dual_coef_[np.where(own[at] == i, j - 1, i), at] = sign * values

    def _calibrate(
        self,
        X: Any,
        codes: np.ndarray,
        sample_weight: np.ndarray | None,
        weights: np.ndarray | None,
    ) -> None:
        """Fit a curve to each pair's scores of rows that were left out; `weights` have those of the
        classes.
        """

        def of_others(inside: np.ndarray, outside: np.ndarray) -> np.ndarray:
            part = clone(self).set_params(
                probability=False,
                gamma=self.kernel_.gamma,
                verbose=0,
                warm_start=False,
                checkpoint=None,
            )
            given = self.kernel_.precomputed
            own = None if sample_weight is None else sample_weight[inside]
            part.set_params(
                **part._allowed_in_part(codes[inside], None if weights is None else weights[inside])
            )
            with raise_interrupts():
                part.fit(
                    X[np.ix_(inside, inside)] if given else X[inside],
                    self.classes_[codes[inside]],
                    sample_weight=own,
                )
            return part._later_scores(X[np.ix_(outside, inside)] if given else X[outside])

        folds = calibration.folds_of(codes, weights, draw_seed(self.random_state))
        scores = calibration.held_out_scores(
            folds, lambda rows: self._later_scores(X[rows]), of_others
        )
        columns = calibration.columns_of(Pairs(codes, self.classes_), scores, weights)
        self.calibration_ = calibration.fit_sigmoids(columns)

    @property
    def probA_(self) -> np.ndarray:
        """LIBSVM's A of each pair's sigmoid; empty without probabilities.

        The probability of the earlier class is ``1 / (1 + exp(A f + B))`` for a score f that is
        positive for it.
        """
        return -self._sigmoids()[:, 0]

    @property
    def probB_(self) -> np.ndarray:
        """LIBSVM's B; see :attr:`probA_`."""
        return self._sigmoids()[:, 1]

    def _sigmoids(self) -> np.ndarray:
        check_is_fitted(self)
        return getattr(self, "calibration_", np.empty((0, 2)))

    def _allowed_in_part(self, codes: np.ndarray, weights: np.ndarray | None) -> dict[str, Any]:
        """Options that a fit to some of the rows must have in place of its own."""
        return {}

    def _later_scores(self, X: Any) -> np.ndarray:
        """Scores of the pairs, shape (rows, pairs), positive for the later class."""
        scores = self._pair_scores(X)
        return scores if scores.shape[1] == 1 else -scores

    def _pair_scores(self, X: Any) -> np.ndarray:
        """Scores of the pairs, shape (rows, pairs): positive for the earlier class, or the later
        one of two.
        """
        check_is_fitted(self)
        X = self._check_design(X, reset=False)
        K = self.classes_.size
        ends = np.concatenate([[0], np.cumsum(self.n_support_)])
        centres = self._centres()
        dual = duals_of(self)
        if K == 2:
            return expand(self.kernel_, X, centres, dual.T) + self.intercept_
        parts = [slice(ends[c], ends[c + 1]) for c in range(K)]
        of_class = [expand(self.kernel_, X, centres[part], dual[:, part].T) for part in parts]
        pairs = list(combinations(range(K), 2))
        return (
            np.column_stack([of_class[i][:, j - 1] + of_class[j][:, i] for i, j in pairs])
            + self.intercept_
        )

    def decision_function(self, X: Any) -> np.ndarray:
        """Signed scores, computed in blocks over the support vectors only.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (rows, d)
            Of shape (rows, n) for a precomputed kernel: kernel values between the rows and the
            training data.

        Returns
        -------
        ndarray of shape (rows,), (rows, n_classes) or (rows, n_classes (n_classes - 1) / 2)
            Two classes: positive for ``classes_[1]``. More classes: the votes of each class, ties
            broken by scores; or a score for each pair, positive for its earlier class.
        """
        scores = self._pair_scores(X)
        if scores.shape[1] == 1:
            return scores[:, 0]
        return (
            vote(-scores, self.classes_.size) if self.decision_function_shape == "ovr" else scores
        )

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row, shape (rows,): the class with most votes; `break_ties` decides
        ties.

        With `probability` the class with the largest probability.

        Raises
        ------
        ValueError
            Ties are to be broken by scores of classes, but ``decision_function_shape="ovo"``.
        """
        check_is_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False if decision_function_shape='ovo'")
        if self.probability and hasattr(self, "calibration_"):
            return self.classes_[self.predict_proba(X).argmax(axis=1)]
        scores = self._pair_scores(X)
        if scores.shape[1] == 1:
            return self.classes_[(scores[:, 0] > 0.0).astype(np.intp)]
        votes = vote(-scores, self.classes_.size)
        return self.classes_[(votes if self.break_ties else np.round(votes)).argmax(axis=1)]

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, shape (rows, n_classes).

        Each pair has a curve of its score, fitted to rows that were left out; the probabilities of
        several pairs are coupled (Wu, Lin and Weng, 2004), as in LIBSVM.

        Raises
        ------
        NotFittedError
            The model was fitted with ``probability=False``.
        """
        check_is_fitted(self)
        if not hasattr(self, "calibration_"):
            raise NotFittedError(
                "predict_proba is not available when fitted with probability=False: fit again"
            )
        return calibration.class_probabilities(self.calibration_, self._later_scores(X), pairs=True)

    @available_if(_gives_probabilities)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def _problem_duals(self) -> np.ndarray:
        """Return each pair's coefficients of the support vectors, shape (pairs, n_support)."""
        return pair_duals(self)


CLASSIFIER = SavedNames(
    (*KERNEL.arrays, "class_weight_", "calibration_", "n_iter_"), KERNEL.matrices
)


@register_estimator(
    task="classification",
    saved=CLASSIFIER,
    linear=False,
)
@dataclass(kw_only=True, eq=False, repr=False)
class SVC(PairwiseClassifier, PairOptions):
    r"""Support vector classification with a kernel, trained to a certified relative duality gap.

    Minimises

    .. math::

        \tfrac12 \lVert w \rVert^2
        + C \sum_i s_i \max\bigl(0, 1 - y_i (w^\top \psi(x_i) + b)\bigr)

    over the feature space of the kernel :math:`k(x, z) = \psi(x)^\top \psi(z)`, for each pair of
    classes. The fit stops when the duality gap proves that the objective is within the fraction
    `tol` of its optimum. Parameters and attributes are as in ``sklearn.svm.SVC``, except that
    `tol` is the relative gap to prove and that `max_iter` counts epochs. The parameters after
    `random_state` are additions.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses. Infinity is the hard margin, which keeps every row outside the margin.
        The fit then uses a finite C, ``C_``, that no multiplier reaches and whose optimum is the
        same.
    kernel : str or callable, default="rbf"
        "linear", "rbf", "poly", "sigmoid", another name of ``sklearn.metrics.pairwise``,
        "precomputed" (X is then the matrix of kernel values), or a function of two matrices of rows
        that returns the matrix of kernel values.
    degree : float, default=3
        Degree of the polynomial kernel.
    gamma : {"scale", "auto"} or float, default="scale"
        ``1 / (d Var(X))`` (weighted if there are sample weights), ``1 / d``, or a value; for
        kernels that have it.
    coef0 : float, default=0.0
        Constant of the polynomial and sigmoid kernels.
    shrinking : bool, default=True
        Skip rows that stay outside the margin, and check them again later.
    probability : bool, default=False
        For ``predict_proba``, fit a sigmoid for each pair of classes to the scores of held-out rows
        in five folds. The probabilities of several pairs are coupled as in LIBSVM (Wu, Lin and
        Weng, 2004). Rows have the weights of their classes. The only row of a class is never held
        out. ``predict`` returns the class with the largest probability.
    tol : float, default=1e-3
        Relative duality gap to prove for each pair.
    gap : float, default=0.0
        Absolute duality gap of each pair that also ends the fit, in the units of the objective. 0
        has no effect. With ``tol=0`` only this gap ends the fit.
    cache_size : float, default=200
        Megabytes for rows of the kernel matrix.
    class_weight : dict or "balanced", optional
        Positive factors for the weights of the classes.
    verbose : int, default=0
        1 draws a progress bar on standard error.
    max_iter : int, default=-1
        Largest number of epochs. An epoch is as many visits as there are rows. -1 or None for no
        limit.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        A column of votes for each class, or a column of scores for each pair.
    break_ties : bool, default=False
        Whether ``predict`` breaks ties of votes by the scores. Otherwise the first class wins.
    random_state : int, RandomState or None, default=None
        Makes a fit repeatable bit for bit.
    max_time : float, optional
        Largest time in seconds, for each pair.
    keep : {"best", "last"}, default="best"
        "best": the best certified model of the fit; if the fit ends early, the best multiple of its
        weights. "last": the solver's last point, bit for bit, whatever its objective, with the gap
        of that point.
    loss : str or Loss, default="hinge"
        "hinge", "squared_hinge" or "smooth_hinge" (``"smooth_hinge:width=0.5"``). scikit-learn has
        only "hinge".
    solver : str or solver object, default="auto"
        "auto" is dual ascent over large working sets of chosen rows
        (:mod:`saddlesvm.kernel.decomposition`); "kernel-pegasos" and
        ``KernelPegasos(batch_size=10)`` are the primal sub-gradient method, for study: on MNIST,
        the Pegasos paper of 2011 reports 4,200 s for it, and 290 s for a method that chooses its
        rows.
    n_jobs : int, optional
        Number of threads, spread over the pairs. The threads share `cache_size`.
    callbacks : sequence of callables, optional
        Called with a :class:`~saddlesvm.fit.outcome.Record` of each certificate. Returning True
        stops the fit. An attribute `every` of a callback is the number of epochs between its calls.
        By default certificates are computed at growing intervals, and when the solver expects to be
        finished.
    lam : float, optional
        lambda instead of C: :math:`C = 1 / (\lambda n)` for the n rows of each pair. Objectives are
        then reported in the lambda form.
    intercept : {"free", "regularized", "none"}, default="free"
        "free": unpenalised, as in scikit-learn's ``SVC``. "regularized": the weight of a constant
        feature of value 1. "none": no intercept, as in the Pegasos paper.
    warm_start : bool, default=False
        Begin at the solution of the last fit on the same rows, for another C (or nu) or a smaller
        gap.
    checkpoint : path-like or Checkpoint, optional
        File for the last solution, written every half minute and at the end. If the file exists,
        the fit continues from it. With several sub-problems, each has its own file: FILE.0, FILE.1
        and so on.

    Attributes
    ----------
    support_ : ndarray of shape (n_support,)
        Row numbers of the support vectors, class by class.
    support_vectors_ : ndarray or CSR matrix of shape (n_support, d)
        Empty for a precomputed kernel.
    dual_coef_ : ndarray of shape (n_classes - 1, n_support), or CSR for sparse rows
        Coefficients of each support vector against the other classes, in the order of the classes.
        In each pair they are a feasible dual point, at most C in size, however the fit ends, except
        with ``solver="kernel-pegasos"``. With the linear kernel, ``coef_`` has the weights, shape
        (n_pairs, d), sparse for sparse rows.
    intercept_ : ndarray of shape (n_pairs,)
    n_support_ : ndarray of shape (n_classes,)
        Support vectors of each class.
    probA_, probB_ : ndarray of shape (n_pairs,)
        LIBSVM's parameters of the sigmoids; empty without them.
    calibration_ : ndarray of shape (n_pairs, 2)
        With `probability`: slope and offset of each sigmoid of the scores that are positive for the
        later class.
    classes_, class_weight_ : ndarray of shape (n_classes,)
    fit_status_ : int
        0 if the requested gap was proven, else 1.
    kernel_ : Kernel
        The kernel with its parameters as numbers.
    shape_fit_ : tuple of int
        The shape of X in the fit.
    n_samples_fit_ : int
        Rows of X in the fit.
    n_iter_ : int32 ndarray of shape (n_pairs,)
        Epochs of each pair.
    C_ : float
        With an infinite C: the finite C that was used.
    certificate_ : Certificate
        Primal, dual and gap, summed over the pairs. Without a dual bound if the kernel is not
        positive semi-definite.
    certificates_ : list of Certificate
        A certificate for each pair.
    outcome_ : Outcome
        Why the fit stopped; with several pairs, the worst of their outcomes.
    trace_ : Trace
        A row for each certificate of the fit.
    seconds_solving_, seconds_certifying_, seconds_compiling_ : float
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    See Also
    --------
    LinearSVC : without a kernel, for many rows.

    Examples
    --------
    >>> from saddlesvm import SVC
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> model = SVC(C=10.0).fit(notes.X, notes.y)
    >>> model.score(notes.X, notes.y), model.certificate_.relative_gap <= 1e-3
    (1.0, True)
    """

    C: float = 1.0
    lam: float | None = None
    intercept: Intercept = "free"
    loss: ClassificationLoss | Loss | type[Loss] = "hinge"

    def _check_options(self) -> Loss:
        """The loss; every option that does not depend on the data is checked."""
        self._check_classifier()
        one_of("intercept", self.intercept, ("free", "regularized", "none"))
        loss = check_kernel_loss(make_loss(self.loss, task="classification"))
        self._check_hard_margin(loss)
        return loss


@register_estimator(
    task="classification",
    saved=CLASSIFIER,
    linear=False,
)
@dataclass(kw_only=True, eq=False, repr=False)
class NuSVC(PairwiseClassifier, PairOptions):
    """Support vector classification with a given share of margin errors, certified.

    Minimises

    .. math::

        \\tfrac12 \\lVert w \\rVert^2
        + \\sum_i s_i \\max\\bigl(0, \\rho - y_i (w^\\top \\psi(x_i) + b)\\bigr)
        - \\nu \\rho \\sum_i s_i

    over the feature space of the kernel, b and :math:`\\rho`, for each pair of classes. The model
    is divided by :math:`\\rho`, so that its margin is 1: it is the model of the C form for :math:`C
    = 1 / \\rho`. Parameters and attributes are as in ``sklearn.svm.NuSVC``, except that `tol` is
    the relative gap to prove. The parameters after `random_state` are additions.

    Parameters
    ----------
    nu : float, default=0.5
        At most this share of the rows is inside the margin, and at least this share are support
        vectors. `nu` is at most twice the share of the smaller class.
    kernel, degree, gamma, coef0, shrinking, probability, tol, cache_size, class_weight, verbose,
    max_iter, \
decision_function_shape, break_ties, random_state, max_time, keep, gap, solver, n_jobs, \
callbacks, warm_start, checkpoint
        As in :class:`SVC`.

    Attributes
    ----------
    support_, support_vectors_, dual_coef_, intercept_, n_support_, classes_, class_weight_
    fit_status_, coef_, kernel_, certificate_, certificates_, outcome_, trace_, n_iter_
    seconds_solving_, seconds_certifying_, seconds_compiling_, n_samples_fit_, n_features_in_
    feature_names_in_
        As in :class:`SVC`. The certificates are of the objective above, before the division by rho.

    Examples
    --------
    >>> from saddlesvm import NuSVC
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> model = NuSVC(nu=0.1).fit(notes.X, notes.y)
    >>> model.score(notes.X, notes.y) > 0.99, model.certificate_.relative_gap <= 1e-3
    (True, True)
    """

    _allowed: ClassVar[dict[str, Allowed]] = PairwiseClassifier._allowed | {"nu": NU}
    nu: float = 0.5

    def _check_options(self) -> Loss:
        """The loss; every option that does not depend on the data is checked."""
        self._check_classifier()
        return make_loss("hinge")

    def _allowed_in_part(self, codes: np.ndarray, weights: np.ndarray | None) -> dict[str, Any]:
        """nu, or the largest that the smallest class allows in its pairs."""
        heavy = np.bincount(codes, weights)
        return {"nu": min(self.nu, 2.0 * heavy.min() / (heavy.min() + heavy.max()))}

    def _machine(self) -> Machine:
        """The margin that the share of errors decides."""
        return NuClassification(float(self.nu))
