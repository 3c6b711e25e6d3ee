"""Certify any linear model, also one that was trained elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from saddlesvm.data import inputs
from saddlesvm.estimators.linear_model import LinearModel
from saddlesvm.multiclass.splits import each_class
from saddlesvm.multiclass.sub_problems import SubProblem
from saddlesvm.problem.certificate import Certificate, Point, evaluate
from saddlesvm.problem.crammer_singer import JointProblem
from saddlesvm.problem.intercepts import InterceptName, intercept_kind
from saddlesvm.problem.losses import Loss, make_loss
from saddlesvm.problem.multinomial import MultinomialProblem
from saddlesvm.problem.problem import Problem, is_classification, make_problem
from saddlesvm.rows import layouts as rows
from saddlesvm.rows.scores import dense_weights
from saddlesvm.runtime.allowed import COUNT, SCALING, check
from saddlesvm.solvers.base import Budget
from saddlesvm.solvers.crammer_singer import CrammerSinger
from saddlesvm.solvers.dcd import DCD
from saddlesvm.solvers.multinomial import Multinomial


def certify(
    X: Any,
    y: Any,
    coef: Any,
    intercept: float = 0.0,
    *,
    loss: str | Loss = "squared_hinge",
    C: float | None = None,
    lam: float | None = None,
    dual: Any = None,
    sample_weight: Any = None,
    penalized_intercept: bool | None = None,
    intercept_scaling: float = 1.0,
    width: float = 1.0,
    epsilon: float = 0.0,
    refine: int = 0,
) -> Certificate:
    r"""An upper bound on the distance of a linear model from the optimum of its training problem.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        The training rows.
    y : array-like of shape (n,)
        Two classes for a classification loss (the larger label is the positive one), or targets.
    coef : array-like of shape (d,) or (1, d)
    intercept : float, default=0.0
    loss : str or Loss, default="squared_hinge"
    C, lam : float
        One of the two, :math:`C = 1 / (\lambda n)` for n rows.
    dual : array-like of shape (n,), optional
        A dual point in the C form, such as ``LinearSVC.dual_coef_``; at the optimum ``coef`` is :math:`\sum_i \beta_i
        x_i`. By default a dual point is derived from the margins: the bound holds, but may be loose.
    sample_weight : array-like of shape (n,), optional
    penalized_intercept : bool, optional
        Whether the intercept is the weight of a constant feature of value `intercept_scaling`, and penalised (as in
        LIBLINEAR and ``sklearn.svm.LinearSVC``), or free of penalty. By default there is none where `intercept` is
        zero, and it is free where it is not.
    intercept_scaling : float, default=1.0
    width, epsilon : float
        Width of the smooth hinge; half-width of the tube of the epsilon-insensitive losses.
    refine : int, default=0
        Epochs of dual coordinate ascent from the dual point, to tighten the bound. The model is unchanged.

    Returns
    -------
    Certificate

    Raises
    ------
    ValueError
        Invalid data, or a model that does not match them.

    Examples
    --------
    A model that scikit-learn trained:

    >>> from sklearn.linear_model import LogisticRegression
    >>> from saddlesvm import certify
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> other = LogisticRegression(C=1.0, tol=1e-6).fit(notes.X, notes.y)
    >>> options = {"loss": "logistic", "C": 1.0, "penalized_intercept": False, "refine": 50}
    >>> found = certify(notes.X, notes.y, other.coef_, other.intercept_, **options)
    >>> found.relative_gap < 1e-3
    True
    """
    check("refine", refine, COUNT)
    check("intercept_scaling", intercept_scaling, SCALING)
    made = make_loss(loss, width=width, epsilon=epsilon)
    design = inputs.as_design(X)
    n, d = design.shape
    w = np.ravel(np.asarray(coef, dtype=np.float64))
    if w.size != d:
        raise ValueError(f"coef has {w.size} entries; X has {d} features")
    offset = float(np.ravel(intercept)[0]) if np.size(intercept) == 1 else np.nan
    if not (np.isfinite(w).all() and np.isfinite(offset)):
        raise ValueError("coef and intercept must be finite numbers of one linear model")
    labels = inputs.check_targets(y, n) if not is_classification(made) else inputs.signs(inputs.check_labels(y, n))
    kind: InterceptName = "regularized" if penalized_intercept else "free"
    if penalized_intercept is None and offset == 0.0:
        kind = "none"
    present = intercept_kind(kind).present
    plain = rows.as_rows(design, float(intercept_scaling) if present else 0.0)
    problem = make_problem(
        plain,
        labels,
        made,
        C=C,
        lam=lam,
        weights=inputs.check_weights(sample_weight, n),
        intercept=kind,
        norms=inputs.finite_norms(plain),
    )
    w = np.append(w, offset / intercept_scaling if present else 0.0)
    alpha = None
    if dual is not None:
        alpha = np.ravel(np.asarray(dual.toarray() if hasattr(dual, "toarray") else dual, dtype=np.float64)) / problem.C
        if alpha.size != n:
            raise ValueError(f"dual has {alpha.size} entries; X has {n} rows")
        if not np.isfinite(alpha).all():
            raise ValueError("dual must hold finite numbers")
    return _judged(problem, Point(w, alpha), refine)


def certify_model(
    model: LinearModel,
    X: Any,
    y: Any,
    *,
    C: float | None = None,
    lam: float | None = None,
    sample_weight: Any = None,
    refine: int = 0,
) -> list[Certificate]:
    """Certify a fitted estimator: one certificate for each of its sub-problems.

    Parameters
    ----------
    model : LinearSVC, LinearSVR, or another estimator with ``training_problems``
    X, y, sample_weight, refine
        As in :func:`certify`; every class of the model must occur in `y`, and no other.
    C, lam : float, optional
        Replace the model's own. Without them the model's dual point is used, if it has one for this number of rows.

    Raises
    ------
    ValueError
        Invalid data, or a model that does not match them.
    """
    check("refine", refine, COUNT)
    design = inputs.as_design(X)
    kind = model._intercept_kind()
    plain = rows.as_rows(design, float(model.intercept_scaling) if intercept_kind(kind).present else 0.0)
    own = C is None and lam is None
    strength = model._posed() if own else {"C": C, "lam": lam}
    posed = model.training_problems(y, sample_weight, design.shape[0])
    options = dict(weights=posed.weights, intercept=kind, norms=inputs.finite_norms(plain), **strength)
    W = np.column_stack([dense_weights(model.coef_), np.atleast_1d(model.intercept_) / (plain.bias or 1.0)])
    duals = getattr(model, "dual_coef_", None) if own else None
    duals = None if duals is None or duals.shape[1] != design.shape[0] else duals
    found = []
    for sub in posed.problems:
        problem = sub.problem(plain, posed.loss, **options)
        found.append(_judged(problem, _point(sub, problem, W, duals), refine))
    return found


def _point(sub: SubProblem, problem: Problem, W: np.ndarray, duals: Any) -> Point:
    """The model's weights and, if it has one, its dual point, as the sub-problem has them."""
    if isinstance(problem, JointProblem):
        w = each_class(W)
    else:
        w = W[sub.index]
        duals = None if duals is None else duals[[sub.index]]
    if duals is None:
        return Point(w)
    start = sub.start(problem, duals.toarray() if hasattr(duals, "toarray") else duals, problem.C, w)
    return Point(w, start.alpha)


def _judged(problem: Problem, point: Point, refine: int) -> Certificate:
    """The certificate of a point as it stands, its bound tightened by epochs of dual ascent."""
    own = evaluate(problem, point, given_offset=True)
    if not refine:
        return own.certificate
    solver: Any = DCD()
    if isinstance(problem, JointProblem):
        solver = Multinomial() if isinstance(problem, MultinomialProblem) else CrammerSinger()
    state = solver.init(problem, 0, Point(point.w, own.alpha))
    state = solver.step(problem, state, Budget(refine * problem.members.size))
    reached = solver.solution(problem, state)
    better = evaluate(problem, reached if reached.alpha is None else Point(alpha=reached.alpha)).certificate
    return own.certificate.bounded_by(better) if better.dual > own.certificate.dual else own.certificate
