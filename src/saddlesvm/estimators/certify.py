"""Certify any linear model or kernel machine, also if it was trained elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from saddlesvm.data.door import Design, check_design
from saddlesvm.estimators.base import Training
from saddlesvm.estimators.fitted import duals_for, fitted_value, pair_problems
from saddlesvm.estimators.linear import LinearSVC, LinearSVR
from saddlesvm.estimators.linear_model import LinearModel
from saddlesvm.multiclass.sub_problems import SubProblem
from saddlesvm.problem.certificate import Certificate, Point, evaluate
from saddlesvm.problem.crammer_singer import JointProblem
from saddlesvm.problem.losses import Loss, make_loss
from saddlesvm.problem.multinomial import MultinomialProblem
from saddlesvm.problem.problem import Problem, is_classification, resolve_C
from saddlesvm.rows.passes import Passes
from saddlesvm.rows.scores import dense_weights
from saddlesvm.runtime.allowed import COUNT, SCALING, check
from saddlesvm.runtime.data_types import LabelsLike, RowsLike
from saddlesvm.runtime.option_names import MultiClass, PenaltyName
from saddlesvm.solvers.base import Budget, check_place
from saddlesvm.solvers.crammer_singer import CrammerSinger
from saddlesvm.solvers.dcd import DCD
from saddlesvm.solvers.multinomial import Multinomial

if TYPE_CHECKING:
    from saddlesvm.estimators.base import Estimator
    from saddlesvm.runtime.data_types import HasShape

FAR_ABOVE = 100.0  # percent above an optimum that hardly any model of these rows is; a guess


def certify(
    X: RowsLike,
    y: LabelsLike,
    coef: ArrayLike | HasShape,
    intercept: ArrayLike = 0.0,
    *,
    loss: str | Loss = "squared_hinge",
    C: float | None = None,
    lam: float | None = None,
    penalty: PenaltyName = "l2",
    l1_ratio: float = 0.5,
    multi_class: MultiClass = "ovr",
    dual: object = None,
    sample_weight: ArrayLike | None = None,
    class_weight: dict[Any, float] | Literal["balanced"] | None = None,
    penalized_intercept: bool | None = None,
    intercept_scaling: float = 1.0,
    epsilon: float = 0.0,
    refine: int = 0,
) -> Certificate:
    r"""Prove how far a linear model is from the optimum of its training problem.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        The training rows.
    y : array-like of shape (n,) or (n, k)
        Labels for a classification loss, or targets.
    coef : array-like or sparse matrix of shape (d,) or (k, d)
        The weights. A vector for two classes (the larger label is the positive class) or for a
        target; else a vector for each class, pair of classes, label or target, in the order of
        ``LinearSVC.coef_``, which is scikit-learn's.
    intercept : float or array-like of shape (k,), default=0.0
    loss : str or Loss, default="squared_hinge"
    C, lam : float
        Give either; :math:`C = 1 / (\lambda n)` for n rows.
    penalty : {"l2", "l1", "elasticnet"}, default="l2"
    l1_ratio : float, default=0.5
        With ``penalty="elasticnet"``: the share of the l1 norm, as in scikit-learn.
    multi_class : {"ovr", "ovo", "crammer_singer", "multinomial"}, default="ovr"
        How three classes or more were trained, as in :class:`~saddlesvm.LinearSVC`. scikit-learn's
        ``LogisticRegression`` is "multinomial", its ``LinearSVC`` "ovr".
    dual : array-like or sparse matrix of shape (n,) or (k, n), optional
        A dual point in the C form, such as ``LinearSVC.dual_coef_``; at the optimum ``coef`` is
        :math:`\sum_i \beta_i x_i`. By default a dual point is derived from the margins: the bound
        holds, but may be loose.
    sample_weight : array-like of shape (n,), optional
    class_weight : dict or "balanced", optional
        As in :class:`~saddlesvm.LinearSVC`.
    penalized_intercept : bool, optional
        Whether the intercept is the penalised weight of a constant feature of value
        `intercept_scaling` (as in LIBLINEAR and ``sklearn.svm.LinearSVC``), or unpenalised. By
        default, a zero `intercept` means no intercept, and any other value an unpenalised
        intercept.
    intercept_scaling : float, default=1.0
    epsilon : float
        Half-width of the tube of the epsilon-insensitive losses.
    refine : int, default=0
        Epochs of dual coordinate ascent from the dual point, to tighten the bound. The model is
        unchanged.

    Returns
    -------
    Certificate
        Of all classes or targets together: both objectives are sums.

    Raises
    ------
    ValueError
        Invalid data, or a model that does not match them.

    Examples
    --------
    Models that scikit-learn trained, of two classes and of three:

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from saddlesvm import certify
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> other = LogisticRegression(C=1.0, tol=1e-6).fit(notes.X, notes.y)
    >>> options = {"loss": "logistic", "C": 1.0, "penalized_intercept": False, "refine": 50}
    >>> found = certify(notes.X, notes.y, other.coef_, other.intercept_, **options)
    >>> found.relative_gap < 1e-3
    True
    >>> X, y = load_iris(return_X_y=True)
    >>> other = LogisticRegression(C=1.0, tol=1e-6, max_iter=1000).fit(X, y)
    >>> options = {
    ...     "loss": "logistic",
    ...     "C": 1.0,
    ...     "multi_class": "multinomial",
    ...     "penalized_intercept": False,
    ... }
    >>> certify(X, y, other.coef_, other.intercept_, **options).relative_gap < 1e-3
    True
    """
    check("refine", refine, COUNT)
    check("intercept_scaling", intercept_scaling, SCALING)
    resolve_C(C, lam, 1)
    made = make_loss(loss, epsilon=epsilon)
    design = check_design(X)
    n = design.shape[0]
    offsets = np.atleast_1d(np.asarray(intercept, dtype=np.float64))
    # Nothing said about the intercept: if any is not zero, the problem has a free one.
    has_intercept = True
    if penalized_intercept is None:
        has_intercept = bool(offsets.any())
    intercept_kind = "free"
    if penalized_intercept:
        intercept_kind = "regularized"
    if C is None:
        C = 1.0
    options: dict[str, Any] = {"loss": made, "C": C, "lam": lam}
    options |= {"penalty": penalty, "l1_ratio": l1_ratio, "fit_intercept": has_intercept}
    options |= {"intercept": intercept_kind, "intercept_scaling": intercept_scaling}
    # An estimator that is not fitted poses the problem as its fit would.
    model: Any = LinearSVR(**options)
    if is_classification(made):
        model = LinearSVC(**options, multi_class=multi_class, class_weight=class_weight)
    model._check_options()
    training = model._pose(y, sample_weight, n)
    W = np.asarray(dense_weights(coef), dtype=np.float64)
    if dual is not None:
        dual = np.asarray(dense_weights(dual), dtype=np.float64)
        if dual.shape != (len(W), n):
            raise ValueError(
                f"dual has shape {dual.shape}; these weights and rows need {(len(W), n)}"
            )
        if not np.isfinite(dual).all():
            raise ValueError("dual must hold finite numbers")
    return Certificate.total(
        _certificates(model, training, design, (W, offsets), None, dual, refine)
    )


def certify_model(
    model: LinearModel,
    X: RowsLike,
    y: Any,
    *,
    C: float | None = None,
    lam: float | None = None,
    sample_weight: ArrayLike | None = None,
    refine: int = 0,
) -> list[Certificate]:
    """Certify a fitted estimator: a certificate for each of its sub-problems.

    Parameters
    ----------
    model : LinearSVC, LinearSVR, or another estimator with ``_pose``
    X, y, sample_weight, refine
        As in :func:`certify`; every class of the model must occur in `y`, and no other.
    C, lam : float, optional
        Replace the model's own. By default the model's dual point, if it belongs to this number of
        rows.

    Raises
    ------
    ValueError
        Invalid data, or a model that does not match them.
    """
    check("refine", refine, COUNT)
    # Rows in a place of their own were checked there.
    if isinstance(X, Passes):
        design = Design(X)
    else:
        design = check_design(X)
    is_own_strength = C is None and lam is None
    n = design.shape[0]
    fitted = fitted_value(model)
    training = fitted.pose(y, sample_weight, n)
    # The dual variables of a fit belong to its own C.
    duals = None
    strength = None
    if is_own_strength:
        duals = duals_for(fitted, n)
    else:
        strength = {"C": C, "lam": lam}
    weights = dense_weights(fitted.coef), fitted.intercept
    return _certificates(fitted.template, training, design, weights, strength, duals, refine)


def describe_finding(certificate: Certificate) -> str:
    """Say what a certificate over some data says of a model."""
    excess = 100.0 * max(certificate.excess, 0.0)
    finding = f"the objective is at most {excess:.3g} % above the optimum of these data"
    if excess > FAR_ABOVE:
        finding += ", which may be other rows than the model was fitted on"
    return finding


def _certificates(
    template: Estimator,
    training: Training,
    design: Design,
    weights: tuple[np.ndarray, np.ndarray],
    strength: Mapping[str, object] | None,
    duals: Any,
    refine: int,
) -> list[Certificate]:
    """Return the certificates of coefficients and intercepts, one for each problem."""
    W = np.atleast_2d(weights[0])
    offsets = np.atleast_1d(weights[1])
    # A joint machine has a vector for each class, any other problem has one.
    needed = sum(sub.n_vectors for sub in training.problems)
    allowed = {needed}
    if needed == 2 == training.problems[0].n_vectors:
        # A joint machine of two classes may give a vector alone.
        allowed = {needed, 1}
    if len(W) not in allowed or W.shape[1] != design.shape[1]:
        raise ValueError(
            f"coef has shape {W.shape}; these classes and features need {(needed, design.shape[1])}"
        )
    if offsets.shape not in ((1,), W.shape[:1]) or not (
        np.isfinite(W).all() and np.isfinite(offsets).all()
    ):
        raise ValueError(
            "coef and intercept must be finite numbers, with an intercept for each vector of "
            "weights"
        )
    problems = pair_problems(template, design, training, (W, offsets), strength)
    return [
        _judge_point(problem, _point(sub, problem, w, duals), refine)
        for sub, problem, w in problems
    ]


def _point(sub: SubProblem, problem: Problem, w: np.ndarray, duals: np.ndarray) -> Point:
    """Return the model's weights and its dual point, if any, as the sub-problem has them."""
    if duals is None:
        return Point(w)
    # A joint problem takes the dual variables of all classes, any other problem a line of its own.
    if not isinstance(problem, JointProblem):
        duals = duals[[sub.index]]
    own = dense_weights(duals)
    return Point(w, sub.start(problem, own, problem.C, w).alpha)


def _judge_point(problem: Problem, point: Point, refine: int) -> Certificate:
    """The certificate of a point as it stands, its bound tightened by epochs of dual ascent."""
    own = evaluate(problem, point, given_offset=True)
    if not refine:
        return own.certificate
    # Dual ascent from the feasible point of these weights raises the lower bound; the weights stay.
    solver: Any = DCD()
    check_place(problem, solver)
    if isinstance(problem, MultinomialProblem):
        solver = Multinomial()
    elif isinstance(problem, JointProblem):
        solver = CrammerSinger()
    state = solver.init(problem, 0, Point(point.w, own.alpha))
    state = solver.step(problem, state, Budget(refine * problem.members.size))
    # Only the dual point counts: its bound may be better.
    reached = solver.solution(problem, state)
    if reached.alpha is not None:
        reached = Point(alpha=reached.alpha)
    better = evaluate(problem, reached).certificate
    if better.dual > own.certificate.dual:
        return own.certificate.bounded_by(better)
    return own.certificate
