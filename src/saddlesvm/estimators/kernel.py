"""KernelSVC: support vector classification with Mercer kernels, certified."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from saddlesvm.data.door import check_weights
from saddlesvm.estimators.base import Classes, Training, all_or_nothing
from saddlesvm.estimators.kernel_machine import KernelMachine
from saddlesvm.estimators.register import (
    KERNEL,
    OF_KERNELS,
    KernelOptions,
    register_estimator,
)
from saddlesvm.estimators.scikit_learn import ClassifierMixin
from saddlesvm.fit.outcome import FitResult
from saddlesvm.multiclass import sub_problems as multiclass
from saddlesvm.multiclass.splits import sub_problems_of
from saddlesvm.problem.kernel import check_kernel_loss
from saddlesvm.problem.losses import Loss, make_loss
from saddlesvm.problem.margin_losses import ClassificationLoss
from saddlesvm.runtime.allowed import one_of
from saddlesvm.runtime.option_names import Intercept, ScoreShape


@register_estimator(
    task="classification",
    options=("multi_class", "class_weight", *OF_KERNELS),
    saved=KERNEL,
    linear=False,
    asked_by="kernel",
)
@dataclass(kw_only=True, eq=False, repr=False)
class KernelSVC(Classes, ClassifierMixin, KernelMachine, KernelOptions):
    r"""Support vector classification with a kernel, trained to a certified relative duality gap.

    Minimises

    .. math:: \tfrac12 \lVert w \rVert^2 + C \sum_i s_i\, \phi\bigl(y_i (w^\top \psi(x_i) + b)\bigr)

    over the feature space of the kernel :math:`k(x, z) = \psi(x)^\top \psi(z)`. The fit stops when the duality gap
    proves that the objective is within the fraction `tol` of its optimum. Parameters of scikit-learn's ``SVC`` have the
    same meaning here, except `tol`. scikit-learn's ``SVC`` is one-vs-one; the default here is one-vs-rest.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses, :math:`C = 1 / (\lambda n)` for n rows.
    kernel : str or callable, default="rbf"
        "linear", "rbf", "poly", "sigmoid", another name of ``sklearn.metrics.pairwise``, "precomputed" (X is then the
        matrix of kernel values), or a function of two matrices of rows that returns the matrix of kernel values.
    gamma : {"scale", "auto"} or float, default="scale"
        ``1 / (d Var(X))`` (weighted, where there are sample weights), ``1 / d``, or a value; for kernels that have it.
    degree : float, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=0.0
        Constant of the polynomial and sigmoid kernels.
    lam : float, optional
        lambda instead of C. Objectives are then reported in the lambda form.
    loss : str or Loss, default="hinge"
        "hinge", "squared_hinge" or "smooth_hinge" (``"smooth_hinge:width=0.5"``).
    solver : str or solver object, default="auto"
        "auto" and "kernel-decomposition" are :class:`~saddlesvm.solvers.kernel.decomposition.KernelDecomposition`;
        "kernel-sdca" is stochastic dual ascent, "kernel-pegasos" and ``KernelPegasos(batch_size=10)`` are the primal
        sub-gradient method.
    tol : float, default=1e-3
        Relative duality gap to prove, ``(primal - dual) / max(|primal|, |dual|)``. With 0, set another limit.
    gap : float, default=0.0
        Absolute duality gap of each sub-problem that also ends the fit, in the units of the objective (in the form of
        `lam` or of `C`). 0 has no effect. With ``tol=0`` only this gap ends the fit.
    multi_class : {"ovr", "ovo"}, default="ovr"
        How to train three classes or more: each against the rest, or each pair with a vote.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        With ``multi_class="ovo"``: one column of votes for each class, or one column of scores for each pair.
    fit_intercept : bool, default=True
    intercept : {"free", "regularized", "none"}, default="free"
        "free": unpenalised, as in scikit-learn's ``SVC``. "regularized": the weight of a constant feature of value
        `intercept_scaling`. "none": no intercept, as with ``fit_intercept=False``.
    intercept_scaling : float, default=1.0
    cache_size : float, default=200
        Megabytes for rows of the kernel matrix.
    class_weight : dict or "balanced", optional
        Positive factors for the weights of the classes, as in :class:`LinearSVC`.
    max_iter : int, optional
        Largest number of epochs. An epoch is as many visits as there are rows.
    max_time : float, optional
        Largest time in seconds, for each sub-problem.
    keep : {"best", "last"}, default="best"
        "best": the best certified model of the fit; where the fit ends early, the best multiple of its weights.
        "last": the solver's last point, bit for bit, whatever its objective, with the gap of that point.
    random_state : int, RandomState or None, default=None
        Makes a fit repeatable bit for bit.
    n_jobs : int, optional
        Number of threads, spread over the sub-problems. The threads share `cache_size`.
    verbose : int, default=0
        1 draws a progress bar on standard error.
    callbacks : sequence of callables, optional
        Called with a :class:`~saddlesvm.fit.outcome.Record` of each certificate. Returning True stops the fit. An
        attribute `every` of a callback is the number of epochs between its calls. By default certificates are computed
        at growing intervals, and when the solver expects to be finished.
    warm_start, checkpoint
        As in :class:`SVC`.

    Attributes
    ----------
    support_ : ndarray of shape (n_support,)
        Row numbers of the support vectors of any sub-problem, ascending.
    support_vectors_ : ndarray or CSR matrix of shape (n_support, d)
        Empty for a precomputed kernel.
    dual_coef_ : ndarray of shape (n_problems, n_support)
        Signed coefficients: the scores are ``k(X, support_vectors_) @ dual_coef_.T + intercept_``.
    intercept_ : ndarray of shape (n_problems,)
    n_support_ : ndarray of shape (n_classes,)
        Support vectors of each class.
    classes_ : ndarray of shape (n_classes,)
    kernel_ : Kernel
        The kernel with its parameters as numbers.
    certificate_ : Certificate
        Primal, dual and gap, summed over the sub-problems. For positive semi-definite kernels it bounds the distance
        from the optimum. For other kernels (sigmoid) it measures the distance from a stationary point.
    certificates_ : list of Certificate
        One for each sub-problem.
    outcome_ : Outcome
        Why the fit stopped; with several sub-problems, the worst of their outcomes.
    trace_ : Trace
        One row for each certificate of the fit.
    n_iter_ : int
        Number of epochs.
    seconds_solving_, seconds_certifying_, seconds_compiling_ : float
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Notes
    -----
    The solvers are documented, with their sources, in :mod:`saddlesvm.solvers.kernel.decomposition`,
    :mod:`saddlesvm.solvers.kernel.stochastic` and :mod:`saddlesvm.solvers.kernel.pegasos`. The two stochastic
    solvers are for study: a sequential method that chooses its rows is much faster on some data (MNIST in the Pegasos
    paper of 2011: 290 s against 4,200 s).

    Examples
    --------
    >>> from saddlesvm.data import load_bundled
    >>> from saddlesvm.estimators.kernel import KernelSVC
    >>> notes = load_bundled("banknote")
    >>> model = KernelSVC(C=1.0, random_state=0).fit(notes.X, notes.y)
    >>> model.certificate_.relative_gap <= 1e-3
    True
    """

    C: float = 1.0
    lam: float | None = None
    loss: ClassificationLoss | Loss | type[Loss] = "hinge"
    multi_class: ScoreShape = "ovr"
    decision_function_shape: ScoreShape = "ovr"
    fit_intercept: bool = True
    intercept: Intercept = "free"
    intercept_scaling: float = 1.0
    class_weight: dict[Any, float] | Literal["balanced"] | None = None
    max_iter: float | None = None
    random_state: Any = None

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train to the relative gap `tol`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Of shape (n, n) for a precomputed kernel.
        y : array-like of shape (n,)
            Labels, at least two different ones.
        sample_weight : array-like of shape (n,), optional
            Non-negative row weights, some of each class positive; a weight of 2 is the same as the row twice.

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
        codes = self._encode(y, X.shape[0])
        sample_weight = check_weights(sample_weight, X.shape[0])
        weights, factors = self._weights(sample_weight, codes, self.multi_class)
        self.kernel_ = self._made_kernel(X, sample_weight)
        problems = sub_problems_of(self.multi_class, codes, self.classes_, factors=factors)
        results = self._solve(X, Training(problems, loss, weights))
        self._keep_expansions(results)
        self.support_vectors_ = self._rows_of_support(X)
        self.n_support_ = np.bincount(codes[self.support_], minlength=self.classes_.size)
        self._set_outcome(results)
        multiclass.worst_outcome(results).warn(stacklevel=4)
        return self

    def check_options(self) -> Loss:
        """The loss; every option that does not depend on the data is checked."""
        self._check_kernel()
        one_of("multi_class", self.multi_class, ("ovr", "ovo"))
        one_of("decision_function_shape", self.decision_function_shape, ("ovr", "ovo"))
        one_of("intercept", self.intercept, ("free", "regularized", "none"))
        return check_kernel_loss(make_loss(self.loss, task="classification"))

    def _keep_expansions(self, results: list[FitResult]) -> None:
        """The support vectors of all sub-problems, and the coefficients that each has in them."""
        coefficients: list[Any] = [result.coef for result in results]
        self.support_ = np.unique(np.concatenate([one.rows for one in coefficients]))
        self.dual_coef_ = np.zeros((len(results), self.support_.size))
        for k, one in enumerate(coefficients):
            self.dual_coef_[k, np.searchsorted(self.support_, one.rows)] = one.values
        self.intercept_ = np.array([result.intercept for result in results])

    def decision_function(self, X: Any) -> np.ndarray:
        """Signed scores, computed in blocks over the support vectors only.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (rows, d)
            Of shape (rows, n) for a precomputed kernel: kernel values between the rows and the training data.

        Returns
        -------
        ndarray of shape (rows,), (rows, n_classes) or (rows, n_classes (n_classes - 1) / 2)
            Two classes: positive for ``classes_[1]``. More: a score or the votes a class, or a score a pair (positive
            for its later class).
        """
        scores = self._scores(X)
        of_pairs = self.decision_function_shape == "ovo" and scores.shape[1] > 1
        return scores if of_pairs else self._shown_scores(scores)

    def _scores(self, X: Any) -> np.ndarray:
        """Scores of the sub-problems, shape (rows, n_problems)."""
        check_is_fitted(self)
        return self._expanded(X, self.dual_coef_.T) + self.intercept_

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row, shape (rows,)."""
        return self._likely_classes(self._scores(X))
