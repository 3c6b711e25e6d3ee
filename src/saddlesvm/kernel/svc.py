"""SVC and NuSVC: classification with kernels, a problem for each pair of classes, certified.

The pairs and their coefficients are kept as in scikit-learn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from saddlesvm.estimators.base import Labels, Training
from saddlesvm.estimators.class_weights import encode_labels, weigh_rows
from saddlesvm.estimators.register import register_estimator
from saddlesvm.estimators.scikit_learn import ClassifierMixin
from saddlesvm.kernel.kernel_fitted import (
    choose_classes,
    count_votes,
    held_machine,
    score_problems,
)
from saddlesvm.kernel.kernel_machine import KernelMachine
from saddlesvm.kernel.nu_machines import Machine, NuClassification
from saddlesvm.multiclass.sub_problems import Pairs
from saddlesvm.problem.losses import Loss, make_loss
from saddlesvm.runtime.allowed import (
    CLASS_WEIGHT,
    LAMBDA,
    NOTHING,
    NU,
    SEED,
    STRENGTH,
    TRUTH,
    Allowed,
    either,
    names,
)
from saddlesvm.runtime.option_names import SCORE_SHAPES, ScoreShape

if TYPE_CHECKING:
    from saddlesvm.runtime.data_types import LabelsLike, RowsLike

OF_CLASSIFIERS = {
    "break_ties": TRUTH,
    "class_weight": CLASS_WEIGHT,
    "decision_function_shape": names(*SCORE_SHAPES),
    "random_state": SEED,
}


def pose_pairs(
    machine: Any, y: LabelsLike, sample_weight: ArrayLike | None, n: int, loss: Loss
) -> Training:
    """Return the problem of each pair of classes."""
    classes, codes = encode_labels(y, n)
    weights, _ = weigh_rows(machine.class_weight, classes, codes, sample_weight)
    return Training(Pairs(codes, classes), loss, weights, Labels(classes))


@register_estimator(task="classification", linear=False)
@dataclass(kw_only=True, eq=False, repr=False)
class SVC(ClassifierMixin, KernelMachine):
    r"""Support vector classification with a kernel that proves how near it is to the optimum.

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
        Weight of the losses. A C that no coefficient reaches, such as 1e6, gives the hard margin.
    kernel : str or callable, default="rbf"
        "linear", "rbf", "poly", "sigmoid", "precomputed" (X is then the matrix of kernel values),
        or a function of two matrices of rows that returns the matrix of kernel values, such as
        those of ``sklearn.metrics.pairwise``.
    degree : int, default=3
        Degree of the polynomial kernel.
    gamma : {"scale", "auto"} or float, default="scale"
        ``1 / (d Var(X))`` (weighted if there are sample weights), ``1 / d``, or a value; for
        kernels that have it.
    coef0 : float, default=0.0
        Constant of the polynomial and sigmoid kernels.
    shrinking : bool, default=True
        Skip rows that stay outside the margin, and check them again later.
    tol : float, default=1e-3
        Relative duality gap to prove for each pair.
    gap : float, default=0.0
        Absolute duality gap of each pair that also ends the fit, in the units of the objective. 0
        has no effect. With ``tol=0`` only this gap ends the fit.
    cache_size : float, default=200
        Megabytes for rows of the kernel matrix.
    class_weight : dict or "balanced", optional
        Positive factors for the weights of the classes.
    verbose : bool or int, default=False
        True or 1 draws a progress bar on standard error.
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
        Largest time in seconds, for all pairs together.
    keep : {"best", "last"}, default="best"
        "best": the best certified model of the fit. "last": the solver's last point, bit for bit,
        whatever its objective, with the gap of that point.
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
    intercept : {"free", "none"}, default="free"
        "free": unpenalised, as in scikit-learn's ``SVC``. "none": no intercept, as in the Pegasos
        paper.

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

    class_weight: dict[Any, float] | Literal["balanced"] | None = None
    decision_function_shape: ScoreShape = "ovr"
    break_ties: bool = False
    random_state: Any = None
    C: float = 1.0
    lam: float | None = None
    intercept: Literal["free", "none"] = "free"

    _allowed: ClassVar[dict[str, Allowed]] = (
        KernelMachine._allowed
        | OF_CLASSIFIERS
        | {"C": either(STRENGTH, NOTHING), "lam": LAMBDA, "intercept": names("free", "none")}
    )

    def decision_function(self: Any, X: RowsLike) -> np.ndarray:
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
        if self.decision_function_shape == "ovr":
            scores = count_votes(held_machine(self), X)
        else:
            scores = score_problems(held_machine(self), X)
        # Two classes are one problem: a vector.
        if scores.shape[1] == 1:
            return scores[:, 0]
        return scores

    def predict(self: Any, X: RowsLike) -> np.ndarray:
        """The class of each row, shape (rows,): the class with most votes; `break_ties` decides
        ties.

        Raises
        ------
        ValueError
            Ties are to be broken by scores of classes, but ``decision_function_shape="ovo"``.
        """
        fitted = held_machine(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False if decision_function_shape='ovo'")
        return choose_classes(fitted, X, self.break_ties)

    def _make_loss(self) -> Loss:
        return make_loss("hinge")

    _pose = pose_pairs


@register_estimator(task="classification", linear=False)
@dataclass(kw_only=True, eq=False, repr=False)
class NuSVC(ClassifierMixin, KernelMachine):
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
    kernel, degree, gamma, coef0, shrinking, tol, cache_size, class_weight, verbose, max_iter, \
decision_function_shape, break_ties, random_state, max_time, keep, gap, solver, n_jobs, \
callbacks
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

    class_weight: dict[Any, float] | Literal["balanced"] | None = None
    decision_function_shape: ScoreShape = "ovr"
    break_ties: bool = False
    random_state: Any = None
    nu: float = 0.5

    _allowed: ClassVar[dict[str, Allowed]] = KernelMachine._allowed | OF_CLASSIFIERS | {"nu": NU}

    # A fit of NuSVC has the form of one of SVC: the same functions serve it.
    decision_function = SVC.decision_function
    predict = SVC.predict
    _pose = pose_pairs

    def _make_loss(self) -> Loss:
        return make_loss("hinge")

    def _machine(self) -> Machine:
        """Return the margin that the share of errors decides."""
        return NuClassification(float(self.nu))
