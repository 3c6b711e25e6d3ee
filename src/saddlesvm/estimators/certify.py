"""Certify any linear model or kernel machine, also one that was trained elsewhere."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn.base import clone

from saddlesvm.data.data_mark import describe_difference
from saddlesvm.data.door import Design, check_design, check_labels, check_targets, check_weights, codes_among, encoded
from saddlesvm.estimators.base import Training
from saddlesvm.estimators.class_weights import class_factors, weigh_classes
from saddlesvm.estimators.fitted import duals_for, problems_over
from saddlesvm.estimators.kernel_machine import KernelMachine, coefficients_of, duals_of
from saddlesvm.estimators.linear import LinearSVC, LinearSVR
from saddlesvm.estimators.linear_model import LinearModel
from saddlesvm.estimators.svc import SVC, NuSVC, PairwiseClassifier
from saddlesvm.estimators.svm import SVR, NuSVR, OneClassSVM
from saddlesvm.fit.outcome import NotCertifiedWarning, Outcome
from saddlesvm.kernel.definiteness import evidence_against, symmetric
from saddlesvm.kernel.kernel_certificate import certificate_of_expansion, evaluate_kernel, nearest_feasible
from saddlesvm.kernel.kernel_problem import KernelProblem, make_kernel_problem
from saddlesvm.kernel.mercer import Kernel
from saddlesvm.kernel.nu_machines import Machine
from saddlesvm.multiclass.splits import sub_problems_of
from saddlesvm.multiclass.sub_problems import SubProblem
from saddlesvm.problem.certificate import Certificate, KernelPoint, Point, evaluate
from saddlesvm.problem.crammer_singer import JointProblem
from saddlesvm.problem.losses import Loss, make_loss
from saddlesvm.problem.multinomial import MultinomialProblem
from saddlesvm.problem.penalties import BlockPenalty, Penalty
from saddlesvm.problem.problem import Problem, is_classification, resolve_C
from saddlesvm.rows.passes import Passes
from saddlesvm.rows.scores import dense_weights
from saddlesvm.runtime.allowed import COUNT, SCALING, check
from saddlesvm.runtime.option_names import MultiClass, PenaltyName
from saddlesvm.solvers.base import Budget, check_place
from saddlesvm.solvers.crammer_singer import CrammerSinger
from saddlesvm.solvers.dcd import DCD
from saddlesvm.solvers.multinomial import Multinomial


def certify(
    X: Any,
    y: Any,
    coef: Any,
    intercept: Any = 0.0,
    *,
    loss: str | Loss = "squared_hinge",
    C: float | None = None,
    lam: float | None = None,
    penalty: PenaltyName | Penalty | BlockPenalty = "l2",
    l1_ratio: float = 0.5,
    multi_class: MultiClass = "ovr",
    dual: Any = None,
    sample_weight: Any = None,
    class_weight: dict[Any, float] | Literal["balanced"] | None = None,
    penalized_intercept: bool | None = None,
    intercept_scaling: float = 1.0,
    epsilon: float = 0.0,
    refine: int = 0,
) -> Certificate:
    r"""An upper bound on the distance of a linear model from the optimum of its training problem.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        The training rows.
    y : array-like of shape (n,) or (n, k)
        Labels for a classification loss, or targets.
    coef : array-like or sparse matrix of shape (d,) or (k, d)
        The weights. One vector for two classes (the larger label is the positive one) or one target; else one for each
        class, pair of classes, label or target, in the order of ``LinearSVC.coef_``, which is scikit-learn's.
    intercept : float or array-like of shape (k,), default=0.0
    loss : str or Loss, default="squared_hinge"
    C, lam : float
        One of the two, :math:`C = 1 / (\lambda n)` for n rows.
    penalty : {"l2", "l1", "elasticnet"} or penalty object, default="l2"
    l1_ratio : float, default=0.5
        With ``penalty="elasticnet"``: the share of the l1 norm, as in scikit-learn.
    multi_class : {"ovr", "ovo", "crammer_singer", "multinomial"}, default="ovr"
        How three classes or more were trained, as in :class:`~saddlesvm.LinearSVC`. scikit-learn's
        ``LogisticRegression`` is "multinomial", its ``LinearSVC`` "ovr".
    dual : array-like or sparse matrix of shape (n,) or (k, n), optional
        A dual point in the C form, such as ``LinearSVC.dual_coef_``; at the optimum ``coef`` is :math:`\sum_i \beta_i
        x_i`. By default a dual point is derived from the margins: the bound holds, but may be loose.
    sample_weight : array-like of shape (n,), optional
    class_weight : dict or "balanced", optional
        As in :class:`~saddlesvm.LinearSVC`.
    penalized_intercept : bool, optional
        Whether the intercept is the penalised weight of a constant feature of value `intercept_scaling` (as in
        LIBLINEAR and ``sklearn.svm.LinearSVC``), or unpenalised. By default, a zero `intercept` means no intercept, and
        any other value an unpenalised one.
    intercept_scaling : float, default=1.0
    epsilon : float
        Half-width of the tube of the epsilon-insensitive losses.
    refine : int, default=0
        Epochs of dual coordinate ascent from the dual point, to tighten the bound. The model is unchanged.

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
    fitted = bool(offsets.any()) if penalized_intercept is None else True
    options: dict[str, Any] = {"loss": made, "C": 1.0 if C is None else C, "lam": lam}
    options |= {"penalty": penalty, "l1_ratio": l1_ratio, "fit_intercept": fitted}
    options |= {"intercept": "regularized" if penalized_intercept else "free", "intercept_scaling": intercept_scaling}
    model: Any = LinearSVR(**options)
    if is_classification(made):
        model = LinearSVC(**options, multi_class=multi_class, class_weight=class_weight)
    model.check_options()
    posed = model._learnt(y, sample_weight, n)
    model.coef_, model.intercept_ = np.asarray(dense_weights(coef), dtype=np.float64), offsets
    if dual is not None:
        dual = np.asarray(dense_weights(dual), dtype=np.float64)
        if dual.shape != (len(model.coef_), n):
            raise ValueError(f"dual has shape {dual.shape}; these weights and rows need {(len(model.coef_), n)}")
        if not np.isfinite(dual).all():
            raise ValueError("dual must hold finite numbers")
    return Certificate.total(_certificates(model, posed, design, None, dual, refine))


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
    design = Design(X) if isinstance(X, Passes) else check_design(X)
    own, n = C is None and lam is None, design.shape[0]
    posed, duals = model.training_problems(y, sample_weight, n), duals_for(model, n) if own else None
    return _certificates(model, posed, design, None if own else {"C": C, "lam": lam}, duals, refine)


def compare_with_fit(model: Any, X: Any, y: Any = None) -> str:
    """Say how rows and labels differ from those that a model was fitted to.

    Empty if no difference is found, and if the model does not know (models of other packages, and
    fits to streams or clusters).
    """
    mark = getattr(model, "_data_mark", None)
    design = check_design(X)
    return "" if mark is None or design.placed else describe_difference(mark, design.X, y)


def describe_finding(model: Any, difference: str, certificate: Certificate) -> dict[str, str]:
    """What a certificate over some data says of a model, in words: of the data, and of the result.

    Parameters
    ----------
    model : fitted estimator
    difference : str
        Of :func:`compare_with_fit`.
    certificate : Certificate
        Of the model over the data.
    """
    above = f"the objective is at most {100.0 * max(certificate.excess, 0.0):.3g} % above the optimum"
    if difference:
        other = f"{above} of these data: this does not judge the fit; give the rows that it was made to"
        return {"data": difference, "result": other}
    known = {"data": "those of the fit"} if getattr(model, "_data_mark", None) else {}
    return known | {"result": f"{above} of these data"}


def _certificates(
    model: LinearModel, posed: Training, design: Design, strength: dict[str, Any] | None, duals: Any, refine: int
) -> list[Certificate]:
    """The certificates of a model's weights, one for each of the problems."""
    W, offsets = dense_weights(model.coef_), np.atleast_1d(model.intercept_)
    needed = sum(sub.n_vectors for sub in posed.problems)
    allowed = {needed, 1} if needed == 2 == posed.problems[0].n_vectors else {needed}  # a joint machine of two classes
    if len(W) not in allowed or W.shape[1] != design.shape[1]:
        raise ValueError(f"coef has shape {W.shape}; these classes and features need {(needed, design.shape[1])}")
    if offsets.shape not in ((1,), W.shape[:1]) or not (np.isfinite(W).all() and np.isfinite(offsets).all()):
        raise ValueError("coef and intercept must be finite numbers, with an intercept for each vector of weights")
    problems = problems_over(model, design, posed, strength)
    return [_judged(problem, _point(sub, problem, w, duals), refine) for sub, problem, w in problems]


def _point(sub: SubProblem, problem: Problem, w: np.ndarray, duals: Any) -> Point:
    """The model's weights and, if it has one, its dual point, as the sub-problem has them."""
    if duals is None:
        return Point(w)
    own = dense_weights(duals if isinstance(problem, JointProblem) else duals[[sub.index]])
    return Point(w, sub.start(problem, own, problem.C, w).alpha)


def _judged(problem: Problem, point: Point, refine: int) -> Certificate:
    """The certificate of a point as it stands, its bound tightened by epochs of dual ascent."""
    own = evaluate(problem, point, given_offset=True)
    if not refine:
        return own.certificate
    solver: Any = DCD()
    check_place(problem, solver)
    if isinstance(problem, JointProblem):
        solver = Multinomial() if isinstance(problem, MultinomialProblem) else CrammerSinger()
    state = solver.init(problem, 0, Point(point.w, own.alpha))
    state = solver.step(problem, state, Budget(refine * problem.members.size))
    reached = solver.solution(problem, state)
    better = evaluate(problem, reached if reached.alpha is None else Point(alpha=reached.alpha)).certificate
    return own.certificate.bounded_by(better) if better.dual > own.certificate.dual else own.certificate


KINDS: dict[str, Any] = {kind.__name__: kind for kind in (SVC, NuSVC, SVR, NuSVR, OneClassSVM)}
POSING = ("kernel", "degree", "gamma", "coef0", "C", "nu", "epsilon")  # scikit-learn's parameters that pose a problem


def certify_kernel(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    sample_weight: Any = None,
    points: Any = None,
    coef: Any = None,
    intercept: Any = 0.0,
    dual: Any = None,
) -> Certificate:
    """An upper bound on the distance of a kernel machine from the optimum of its training problem.

    Parameters
    ----------
    model : SVC, NuSVC, SVR, NuSVR or OneClassSVM
        A fitted machine of this package, or of ``sklearn.svm``. With `points`: an SVC or SVR of this package whose
        parameters pose the problem; it need not be fitted, and its solution does not count.
    X : array-like or sparse matrix of shape (n, d)
        The training rows, in the order of the fit; the kernel matrix for a precomputed kernel.
    y : array-like of shape (n,), optional
        The labels or targets of the fit; not for OneClassSVM.
    sample_weight : array-like of shape (n,), optional
        The row weights of the fit.
    points : array-like or sparse matrix of shape (m, d), optional
        Expansion points of another model, whose scores are ``k(X, points) @ coef.T + intercept``, such as a linear
        machine over ``sklearn.kernel_approximation.Nystroem``.
    coef : array-like of shape (m,) or (k, m), optional
        The coefficients of the points, for each pair of classes: positive for the later class, as in
        ``LinearSVC(multi_class="ovo")``.
    intercept : float or array-like of shape (k,), default=0.0
        The intercepts of the other model.
    dual : array-like or sparse matrix of shape (n,) or (k, n), optional
        With `points`: dual variables of the rows times C, such as ``LinearSVC.dual_coef_``. Without them they are
        derived from the margins: the bound holds, but may be loose.

    Returns
    -------
    Certificate
        The sum over all sub-problems.

    Raises
    ------
    ValueError
        Invalid data, or a model that was not trained on them.
    TypeError
        The model is of another kind, or not fitted.

    Warns
    -----
    NotCertifiedWarning
        The kernel is not positive semi-definite on these rows: the dual bound is then minus infinity.

    Notes
    -----
    The certificate of a machine with nu is for its w, with the best offsets for this w.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from saddlesvm import certify_kernel
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> other = SVC(tol=1e-3).fit(notes.X, notes.y)
    >>> certify_kernel(other, notes.X, notes.y).relative_gap < 1e-2
    True

    A linear machine on 300 features of ``Nystroem``, judged in the exact problem:

    >>> import saddlesvm
    >>> from sklearn.kernel_approximation import Nystroem
    >>> from sklearn.pipeline import make_pipeline
    >>> sampled = Nystroem(gamma=0.1, n_components=300, random_state=0)
    >>> linear = saddlesvm.LinearSVC(loss="hinge", intercept="free")
    >>> model = make_pipeline(sampled, linear).fit(notes.X, notes.y)
    >>> found = certify_kernel(
    ...     saddlesvm.SVC(gamma=0.1),
    ...     notes.X,
    ...     notes.y,
    ...     points=sampled.components_,
    ...     coef=linear.coef_ @ sampled.normalization_,
    ...     intercept=linear.intercept_,
    ...     dual=linear.dual_coef_,
    ... )
    >>> found.relative_gap < 0.1
    True
    """
    if points is not None:
        found = _expansion_certificates(model, X, y, sample_weight, (points, coef, intercept), dual)
    elif coef is not None or dual is not None:
        raise ValueError("coef and dual belong to other expansion points: give these as points")
    else:
        found = kernel_certificates(model, X, y, sample_weight=sample_weight)
    return Certificate.total(found)


def kernel_certificates(model: Any, X: Any, y: Any = None, *, sample_weight: Any = None) -> list[Certificate]:
    """The certificate of each sub-problem of a kernel machine; see :func:`certify_kernel`."""
    name = next((kind.__name__ for kind in type(model).__mro__ if kind.__name__ in KINDS), None)
    if name is None or not hasattr(model, "dual_coef_") or not hasattr(model, "support_"):
        raise TypeError(f"a fitted {', '.join(KINDS)} is needed; got {type(model).__name__}")
    X = _rows_of_kernel(model, X)
    n = X.shape[0]
    weights = check_weights(sample_weight, n)
    own, codes = posing(model, name), None
    loss, machine = own.check_options(), own.machine()
    # the "scale" of scikit-learn's does not count row weights
    kernel = model.kernel_ if hasattr(model, "kernel_") else own._made_kernel(X, None)
    options = {"intercept": own._intercept_kind, "scale": float(own.intercept_scaling), **own._strength()}
    if hasattr(model, "classes_"):
        codes = codes_among(check_labels(y, n), model.classes_)
        weights = _class_weights(model, name, codes, weights)
    found = []
    for sub, beta, intercept in zip(_subs(model, name, codes, y, n), *coefficients_of(model, n), strict=True):
        problem, chosen = make_kernel_problem(
            X, kernel, sub.y, loss, weights=sub.row_weights(weights), members=sub.members, **options
        )
        rest = np.delete(beta, chosen)
        if rest.any():
            raise ValueError("the model has support vectors in rows of other classes: give the X and y of the fit")
        posed = machine.posed(problem)
        found.append(evaluate_kernel(posed, _kernel_point(posed, machine, beta[chosen], intercept)).certificate)
    return _bounded_if_definite(found, kernel, X, np.asarray(model.support_))


def _rows_of_kernel(model: Any, X: Any) -> Any:
    """The rows of a kernel machine, checked; for a precomputed kernel a symmetric matrix."""
    if model.kernel != "precomputed":
        return check_design(X).plain
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[0] != X.shape[1]:
        raise ValueError(f"a precomputed kernel is a square matrix of kernel values; X has shape {X.shape}")
    return symmetric(X)


def _bounded_if_definite(found: list[Certificate], kernel: Kernel, X: Any, support: np.ndarray) -> list[Certificate]:
    """The certificates; without a dual bound, and with a warning, if the kernel is not positive semi-definite."""
    evidence = evidence_against(kernel, X, support)
    if not evidence:
        return found
    warnings.warn(
        f"no dual bound: the kernel is not positive semi-definite: {evidence}. {Outcome.STATIONARY.advice}",
        NotCertifiedWarning,
        stacklevel=4,
    )
    return [dataclasses.replace(one, dual=-np.inf, dual_rounding=0.0) for one in found]


def _expansion_certificates(
    model: Any, X: Any, y: Any, sample_weight: Any, expansion: tuple[Any, Any, Any], dual: Any
) -> list[Certificate]:
    """The certificates of a model over any points in the problems that an SVC or SVR poses."""
    if not isinstance(model, (SVC, SVR)):
        raise TypeError(f"with points, an SVC or SVR of saddlesvm poses the problem; got {type(model).__name__}")
    if model.kernel == "precomputed":
        raise ValueError("expansion points need a kernel of rows; got kernel='precomputed'")
    if expansion[1] is None:
        raise ValueError("points need coef, the coefficients of each of them")
    X = check_design(X).plain
    n = X.shape[0]
    weights = check_weights(sample_weight, n)
    own = clone(model)
    loss = own.check_options()
    kernel = model.kernel_ if hasattr(model, "kernel_") else own._made_kernel(X, weights)
    options = {"intercept": own._intercept_kind, "scale": float(own.intercept_scaling), **own._strength()}
    if isinstance(own, SVC):
        own.classes_, codes = encoded(check_labels(y, n))
        weights = _class_weights(own, "SVC", codes, weights)
        subs = list(_subs(own, "SVC", codes, y, n))
    else:
        subs = [SubProblem(0, "", check_targets(y, n))]
    points, coef, offsets = _checked_expansion(X, *expansion, len(subs), options["intercept"])
    duals = None
    if dual is not None:
        duals = np.atleast_2d(np.asarray(dense_weights(dual), dtype=np.float64))
        if duals.shape != (len(subs), n) or not np.isfinite(duals).all():
            raise ValueError(f"dual must hold finite numbers of shape {(len(subs), n)}; got shape {duals.shape}")
    found = []
    for sub, own_coef, offset in zip(subs, coef, offsets, strict=True):
        problem, chosen = make_kernel_problem(
            X, kernel, sub.y, loss, weights=sub.row_weights(weights), members=sub.members, **options
        )
        feasible = None if duals is None else nearest_feasible(problem, duals[sub.index][chosen])
        found.append(certificate_of_expansion(problem, points, (own_coef, float(offset)), feasible))
    return _bounded_if_definite(found, kernel, X, np.arange(0))


def _checked_expansion(
    X: Any, points: Any, coef: Any, intercept: Any, count: int, kind: str
) -> tuple[Any, np.ndarray, np.ndarray]:
    """Points, coefficients of shape (count, m) and intercepts of shape (count,) of a model, in the form of X."""
    points = check_design(points).plain
    if points.shape[1] != X.shape[1]:
        raise ValueError(f"points have {points.shape[1]} features, X has {X.shape[1]}")
    if sparse.issparse(points) != sparse.issparse(X):
        points = sparse.csr_array(points) if sparse.issparse(X) else points.toarray()
    coef = np.atleast_2d(np.asarray(dense_weights(coef), dtype=np.float64))
    if coef.shape != (count, points.shape[0]):
        raise ValueError(f"coef has shape {coef.shape}; these points and classes need {(count, points.shape[0])}")
    offsets = np.atleast_1d(np.asarray(intercept, dtype=np.float64))
    if offsets.shape not in ((1,), (count,)):
        raise ValueError(f"intercept has shape {offsets.shape}; {(count,)} is needed")
    if not (np.isfinite(coef).all() and np.isfinite(offsets).all()):
        raise ValueError("coef and intercept must be finite numbers")
    if kind == "none" and offsets.any():
        raise ValueError("the model has intercepts, and the problem none: pose one with an intercept")
    return points, coef, np.broadcast_to(offsets, (count,))


def posing(model: Any, name: str) -> Any:
    """A machine of this package that poses the problem of a fitted one: itself, or that of the same name, whose
    infinite C is a finite one that no multiplier reaches."""
    if isinstance(model, KernelMachine):
        return model
    given = model.get_params(deep=False)
    made = KINDS[name](**{one: given[one] for one in POSING if one in given})
    if np.isinf(made.C):
        made.C_ = 2.0 * float(np.abs(duals_of(model)).max(initial=1.0))
    return made


def _class_weights(model: Any, name: str, codes: np.ndarray, weights: np.ndarray | None) -> np.ndarray | None:
    """The weights of the rows, times those of their classes."""
    if isinstance(model, PairwiseClassifier):
        return weigh_classes(model.class_weight, model.classes_, codes, weights, "ovo")[0]
    if model.class_weight is None or name == "NuSVC":  # scikit-learn's ignores them
        return weights
    factors = class_factors(model.class_weight, model.classes_, codes, None)
    return factors[codes] * (1.0 if weights is None else weights)


def _subs(model: Any, name: str, codes: np.ndarray | None, y: Any, n: int) -> Iterator[SubProblem]:
    """The sub-problems of a model."""
    if codes is None:
        yield SubProblem(0, "", np.zeros(n) if name == "OneClassSVM" else check_targets(y, n))
        return
    yield from sub_problems_of("ovo" if model.classes_.size > 2 else "ovr", codes, model.classes_)


def _kernel_point(problem: KernelProblem, machine: Machine, beta: np.ndarray, intercept: float) -> KernelPoint:
    """The model's point in the problem over rows, and a feasible dual one beside it; a regularised intercept is that of
    the expansion."""
    beta = machine.rows_of(problem, beta)
    given = None
    if not problem.groups and problem.intercept.constrained:
        given = np.array([intercept - problem.offset * float(beta.sum())])
    return KernelPoint(beta, nearest_feasible(problem, beta), given)
