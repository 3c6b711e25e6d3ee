"""SVC and NuSVC: classification with kernels, pair by pair as in scikit-learn, certified."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from saddlesvm.estimators.pairwise import PairwiseClassifier
from saddlesvm.estimators.register import (
    KERNEL,
    OF_CLASSIFIERS,
    OVER_LANDMARKS,
    LandmarkOptions,
    PairOptions,
    Saved,
    register_estimator,
)
from saddlesvm.estimators.svm import NU
from saddlesvm.problem.kernel import check_kernel_loss
from saddlesvm.problem.losses import Loss, make_loss
from saddlesvm.problem.margin_losses import ClassificationLoss
from saddlesvm.problem.nu import Machine, NuClassification
from saddlesvm.runtime.allowed import Allowed

CLASSIFIER = Saved((*KERNEL.arrays, "class_weight_", "calibration_", "n_iter_"), KERNEL.matrices)


@register_estimator(
    task="classification",
    options=("width", *OF_CLASSIFIERS, *OVER_LANDMARKS),
    saved=CLASSIFIER,
    linear=False,
)
@dataclass(kw_only=True, eq=False, repr=False)
class SVC(LandmarkOptions, PairwiseClassifier, PairOptions):
    r"""Support vector classification with a kernel, trained to a certified relative duality gap.

    Minimises

    .. math:: \tfrac12 \lVert w \rVert^2 + C \sum_i s_i \max\bigl(0, 1 - y_i (w^\top \psi(x_i) + b)\bigr)

    over the feature space of the kernel :math:`k(x, z) = \psi(x)^\top \psi(z)`, for each pair of classes. The
    fit stops when the duality gap proves that the objective is within the fraction `tol` of its optimum. Parameters and
    attributes are those of ``sklearn.svm.SVC``, except that `tol` is the relative gap to prove and that `max_iter`
    counts epochs. The parameters after `random_state` are additions.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses. Infinity is the hard margin, which keeps every row outside the margin. The fit then uses a
        finite C, ``C_``, that no multiplier reaches and whose optimum is the same.
    kernel : str or callable, default="rbf"
        "linear", "rbf", "poly", "sigmoid", another name of ``sklearn.metrics.pairwise``, "precomputed" (X is then the
        matrix of kernel values), or a function of two matrices of rows that returns the matrix of kernel values.
    degree : float, default=3
        Degree of the polynomial kernel.
    gamma : {"scale", "auto"} or float, default="scale"
        ``1 / (d Var(X))`` (weighted, where there are sample weights), ``1 / d``, or a value; for kernels that have it.
    coef0 : float, default=0.0
        Constant of the polynomial and sigmoid kernels.
    shrinking : bool, default=True
        Skip rows that stay outside the margin, and check them again later.
    probability : bool or {"sigmoid", "isotonic", "temperature"}, default=False
        For ``predict_proba``, fit a curve for each pair of classes to the scores of held-out rows in five folds: a
        sigmoid (also True), an isotonic curve, or sigmoids with one slope for all pairs and no offsets. The
        probabilities of several pairs are coupled as in LIBSVM (Wu, Lin and Weng, 2004). Rows have the weights of their
        classes. The only row of a class is never held out. ``predict`` returns the class with the largest probability.
    tol : float, default=1e-3
        Relative duality gap to prove for each pair.
    gap : float, default=0.0
        Absolute duality gap of each pair that also ends the fit, in the units of the objective. 0 has no effect. With
        ``tol=0`` only this gap ends the fit.
    cache_size : float, default=200
        Megabytes for rows of the kernel matrix.
    class_weight : dict or "balanced", optional
        Positive factors for the weights of the classes.
    verbose : int, default=0
        1 draws a progress bar on standard error.
    max_iter : int, default=-1
        Largest number of epochs. An epoch is as many visits as there are rows. -1 or None for no limit.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        One column of votes for each class, or one column of scores for each pair.
    break_ties : bool, default=False
        Whether ``predict`` breaks ties of votes by the scores. Otherwise the first class wins.
    random_state : int, RandomState or None, default=None
        Makes a fit repeatable bit for bit.
    max_time : float, optional
        Largest time in seconds, for each pair.
    certify_every : float, optional
        Epochs between certificates. By default certificates are computed at growing intervals, and when the solver
        expects to be finished.
    keep : {"best", "last"}, default="best"
        "best": the best certified model of the fit; where the fit ends early, the best multiple of its weights.
        "last": the solver's last point, bit for bit, whatever its objective, with the gap of that point.
    loss : str or Loss, default="hinge"
        "hinge", "squared_hinge" or "smooth_hinge" (see `width`). scikit-learn has only "hinge".
    width : float, default=1.0
        Width of the smooth hinge.
    solver : str or solver object, default="auto"
        "auto" and "kernel-decomposition" are :class:`KernelDecomposition`; "kernel-sdca" and "kernel-pegasos" are the
        stochastic methods.
    n_jobs : int, optional
        Number of threads, spread over the pairs. The threads share `cache_size`.
    callbacks : sequence of callables, optional
        Called with a :class:`~saddlesvm.fit.outcome.Record` of each certificate. Returning True stops the fit.
    warm_start : bool, default=False
        Begin at the solution of the last fit on the same rows, for another C (or nu) or a smaller gap.
    checkpoint : path-like or Checkpoint, optional
        File for the state of the fit, written every half minute and at the end. If the file exists, the fit continues
        from it. With several sub-problems, each has its own file: FILE.0, FILE.1 and so on.
    approximation : int or "auto", optional
        Number of landmarks: rows whose kernel functions approximate the kernel and form the model. "auto" is exact up
        to 10,000 rows. Beyond, it takes up to 2,000 landmarks, as many as 1 GB of features and half of `max_time`
        allow. The certificate is for the problem over the landmarks.
    exact_tol : float, optional
        With `approximation`: the relative gap to prove for the exact problem. The exact fit begins at the multipliers
        of the approximation, and its model is exact.

    Attributes
    ----------
    support_ : ndarray of shape (n_support,)
        Row numbers of the support vectors, class by class.
    support_vectors_ : ndarray or CSR matrix of shape (n_support, d)
        Empty for a precomputed kernel. With `approximation`, the landmarks; ``dual_coef_`` then has a row a pair.
    multipliers_ : CSR array of shape (pairs, n)
        With `approximation`: the dual variables of all rows times C, which are feasible for the exact problem, too.
    dual_coef_ : ndarray of shape (n_classes - 1, n_support), or CSR for sparse rows
        Coefficients of each support vector against the other classes, in the order of the classes. In each pair they
        are a feasible dual point, at most C in size, however the fit ends, except with ``solver="kernel-pegasos"``.
        With the linear kernel, ``coef_`` has the weights, shape (n_pairs, d), sparse for sparse rows.
    intercept_ : ndarray of shape (n_pairs,)
    n_support_ : ndarray of shape (n_classes,)
        Support vectors of each class.
    probA_, probB_ : ndarray of shape (n_pairs,)
        LIBSVM's parameters of the sigmoids; empty without them.
    calibration_ : ndarray of shape (n_pairs, 2), (n_pairs, 2, m) or (1,)
        With `probability`: slope and offset of each sigmoid of the scores that are positive for the later class; the
        corners of each isotonic curve; or the slope that all share.
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
    certificate_, certificates_, outcome_, trace_, seconds_solving_, seconds_certifying_, seconds_compiling_
    n_features_in_, feature_names_in_
        As in :class:`KernelSVC`.

    See Also
    --------
    KernelSVC : one class against the rest, regularised intercepts, lambda.
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
    loss: ClassificationLoss | Loss | type[Loss] = "hinge"
    width: float = 1.0

    def check_options(self) -> Loss:
        """The loss; every option that does not depend on the data is checked."""
        self._check_classifier()
        loss = check_kernel_loss(make_loss(self.loss, width=self.width, task="classification"))
        self._check_hard_margin(loss)
        return loss


@register_estimator(
    task="classification",
    options=("nu", *OF_CLASSIFIERS),
    saved=CLASSIFIER,
    linear=False,
    asked_by="nu",
)
@dataclass(kw_only=True, eq=False, repr=False)
class NuSVC(PairwiseClassifier, PairOptions):
    """Support vector classification with a given share of margin errors, certified.

    Minimises

    .. math::

        \\tfrac12 \\lVert w \\rVert^2 + \\sum_i s_i \\max\\bigl(0, \\rho - y_i (w^\\top \\psi(x_i) + b)\\bigr)
        - \\nu \\rho \\sum_i s_i

    over the feature space of the kernel, b and :math:`\\rho`, for each pair of classes. The model is divided by
    :math:`\\rho`, so that its margin is 1: it is the model of the C form for :math:`C = 1 / \\rho`. Parameters and
    attributes are those of ``sklearn.svm.NuSVC``, except that `tol` is the relative gap to prove. The parameters after
    `random_state` are additions.

    Parameters
    ----------
    nu : float, default=0.5
        At most this share of the rows is inside the margin, and at least this share are support vectors. `nu` is at
        most twice the share of the smaller class.
    kernel, degree, gamma, coef0, shrinking, probability, tol, cache_size, class_weight, verbose, max_iter, \
decision_function_shape, break_ties, random_state, max_time, certify_every, keep, gap, solver, n_jobs, \
callbacks, warm_start, checkpoint
        As in :class:`SVC`.

    Attributes
    ----------
    support_, support_vectors_, dual_coef_, intercept_, n_support_, classes_, class_weight_, fit_status_, coef_, kernel_
    certificate_, certificates_, outcome_, trace_, n_iter_, seconds_solving_, seconds_certifying_, seconds_compiling_
    n_samples_fit_, n_features_in_, feature_names_in_
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

    def check_options(self) -> Loss:
        """The loss; every option that does not depend on the data is checked."""
        self._check_classifier()
        return make_loss("hinge")

    def _allowed_in_part(self, codes: np.ndarray, weights: np.ndarray | None) -> dict[str, Any]:
        """nu, or the largest that the smallest class allows in its pairs."""
        heavy = np.bincount(codes, weights)
        return {"nu": min(self.nu, 2.0 * heavy.min() / (heavy.min() + heavy.max()))}

    def machine(self) -> Machine:
        """The margin that the share of errors decides."""
        return NuClassification(float(self.nu))
