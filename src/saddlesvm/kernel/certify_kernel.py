"""Certify a fitted kernel machine, also if it was trained elsewhere."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import clone

from saddlesvm.data.door import check_design
from saddlesvm.data.label_checks import (
    check_labels,
    check_targets,
    check_weights,
    encode_classes,
    find_codes,
)
from saddlesvm.estimators.class_weights import class_factors, weigh_classes
from saddlesvm.fit.outcome import NotCertifiedWarning, Outcome
from saddlesvm.kernel.definiteness import evidence_against, make_symmetric
from saddlesvm.kernel.fit_kernel import make_kernel
from saddlesvm.kernel.kernel_certificate import (
    certificate_of_expansion,
    evaluate_kernel,
    nearest_feasible,
)
from saddlesvm.kernel.kernel_fitted import coefficients_of, dense_duals, held_machine
from saddlesvm.kernel.kernel_machine import KernelMachine, has_hard_margin
from saddlesvm.kernel.kernel_problem import KernelProblem, make_kernel_problem
from saddlesvm.kernel.mercer import Kernel
from saddlesvm.kernel.nu_machines import Machine
from saddlesvm.kernel.svc import SVC, NuSVC
from saddlesvm.kernel.svm import SVR, NuSVR, OneClassSVM
from saddlesvm.multiclass.sub_problems import Pairs, SubProblem
from saddlesvm.problem.certificate import Certificate, KernelPoint
from saddlesvm.rows.scores import dense_weights

if TYPE_CHECKING:
    from saddlesvm.runtime.data_types import Matrix, RowsLike

KINDS: dict[str, Any] = {kind.__name__: kind for kind in (SVC, NuSVC, SVR, NuSVR, OneClassSVM)}
# scikit-learn's parameters that pose a problem
POSING = ("kernel", "degree", "gamma", "coef0", "C", "nu", "epsilon")


def certify_kernel(
    model: object,
    X: RowsLike,
    y: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    points: object = None,
    coef: ArrayLike | None = None,
    intercept: ArrayLike = 0.0,
    dual: object = None,
) -> Certificate:
    """Prove how far a kernel machine is from the optimum of its training problem.

    Parameters
    ----------
    model : SVC, NuSVC, SVR, NuSVR or OneClassSVM
        A fitted machine of this package, or of ``sklearn.svm``. With `points`: an SVC or SVR of
        this package whose parameters pose the problem; it need not be fitted, and its solution does
        not count.
    X : array-like or sparse matrix of shape (n, d)
        The training rows, in the order of the fit; the kernel matrix for a precomputed kernel.
    y : array-like of shape (n,), optional
        The labels or targets of the fit; not for OneClassSVM.
    sample_weight : array-like of shape (n,), optional
        The row weights of the fit.
    points : array-like or sparse matrix of shape (m, d), optional
        Expansion points of another model, whose scores are ``k(X, points) @ coef.T + intercept``,
        such as a linear machine over ``sklearn.kernel_approximation.Nystroem``.
    coef : array-like of shape (m,) or (k, m), optional
        The coefficients of the points, for each pair of classes: positive for the later class, as
        in ``LinearSVC(multi_class="ovo")``.
    intercept : float or array-like of shape (k,), default=0.0
        The intercepts of the other model.
    dual : array-like or sparse matrix of shape (n,) or (k, n), optional
        With `points`: dual variables of the rows times C, such as ``LinearSVC.dual_coef_``. Without
        them they are derived from the margins: the bound holds, but may be loose.

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
        The kernel is not positive semi-definite on these rows: the dual bound is then minus
        infinity.

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
        found = certify_expansions(model, X, y, sample_weight, (points, coef, intercept), dual)
    elif coef is not None or dual is not None:
        raise ValueError("coef and dual belong to other expansion points: give these as points")
    else:
        found = kernel_certificates(model, X, y, sample_weight=sample_weight)
    return Certificate.total(found)


def kernel_certificates(
    model: Any, X: RowsLike, y: ArrayLike | None = None, *, sample_weight: ArrayLike | None = None
) -> list[Certificate]:
    """Return a certificate for each sub-problem of a kernel machine; see :func:`certify_kernel`."""
    # Go by the name of the class, so that scikit-learn's SVC, and classes derived from it, count
    # too.
    name = next((kind.__name__ for kind in type(model).__mro__ if kind.__name__ in KINDS), None)
    if name is None or not hasattr(model, "dual_coef_") or not hasattr(model, "support_"):
        raise TypeError(f"a fitted {', '.join(KINDS)} is needed; got {type(model).__name__}")
    X = check_rows(model, X)
    n = X.shape[0]
    weights = check_weights(sample_weight, n)
    own = find_machine(model, name)
    loss = own._check_options()
    machine = own._machine()
    # scikit-learn's gamma="scale" does not count row weights.
    kernel = getattr(model, "kernel_", None) or make_kernel(own, X, None)
    options = {"intercept": own._intercept_kind(), "scale": 1.0, **own._strength()}
    # A classifier poses a problem for each pair of classes; all others pose one.
    subs: Sequence[SubProblem]
    if hasattr(model, "classes_"):
        codes = find_codes(check_labels(y, n), model.classes_)
        posing_model = own if isinstance(model, KernelMachine) else model
        weights = weigh_by_class(posing_model, model.classes_, codes, weights)
        subs = Pairs(codes, model.classes_)
    elif name == "OneClassSVM":
        subs = [SubProblem(0, "", np.zeros(n))]
    else:
        subs = [SubProblem(0, "", check_targets(y, n))]
    found = []
    parts = zip(subs, *coefficients_of(model, n), strict=True)
    # Pose each problem as the fit did, and evaluate the coefficients of the model in it.
    for sub, beta, intercept in parts:
        problem, chosen = make_kernel_problem(
            X, kernel, sub.y, loss, weights=sub.row_weights(weights), members=sub.members, **options
        )
        # What is left belongs to rows of no class of this pair.
        rest = np.delete(beta, chosen)
        if rest.any():
            raise ValueError(
                "the model has support vectors in rows of other classes: give the X and y of the "
                "fit"
            )
        posed = machine.pose(problem)
        point = point_of_model(posed, machine, beta[chosen], intercept)
        found.append(evaluate_kernel(posed, point).certificate)
    return remove_false_bounds(found, kernel, X, np.asarray(model.support_))


def check_rows(model: Any, X: RowsLike) -> Matrix:
    """Return the rows of a kernel machine, checked; for a precomputed kernel a symmetric matrix."""
    if model.kernel != "precomputed":
        return check_design(X).plain
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[0] != X.shape[1]:
        raise ValueError(
            f"a precomputed kernel is a square matrix of kernel values; X has shape {X.shape}"
        )
    return make_symmetric(X)


def remove_false_bounds(
    found: list[Certificate], kernel: Kernel, X: RowsLike, support: np.ndarray
) -> list[Certificate]:
    """Return the certificates; with a warning, without dual bounds if the kernel is indefinite."""
    evidence = evidence_against(kernel, X, support)
    if not evidence:
        return found
    warnings.warn(
        f"no dual bound: the kernel is not positive semi-definite: {evidence}. "
        f"{Outcome.STATIONARY.advice}",
        NotCertifiedWarning,
        stacklevel=4,
    )
    return [dataclasses.replace(one, dual=-np.inf, dual_rounding=0.0) for one in found]


def certify_expansions(
    model: object,
    X: Any,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None,
    expansion: tuple[Any, Any, Any],
    dual: object,
) -> list[Certificate]:
    """Return certificates of a model over any points in the problems that an SVC or SVR poses."""
    if not isinstance(model, (SVC, SVR)):
        raise TypeError(
            f"with points, an SVC or SVR of saddlesvm poses the problem; got {type(model).__name__}"
        )
    if model.kernel == "precomputed":
        raise ValueError("expansion points need a kernel of rows; got kernel='precomputed'")
    given_points, given_coef, given_intercept = expansion
    if given_coef is None:
        raise ValueError("points need coef, the coefficients of each of them")
    # Pose the problems as a fit on X and y would.
    X = check_design(X).plain
    n = X.shape[0]
    weights = check_weights(sample_weight, n)
    own = clone(model)
    loss = own._check_options()
    kernel = getattr(model, "kernel_", None) or make_kernel(own, X, weights)
    if has_hard_margin(own):
        raise ValueError("points are judged in a problem with a finite C; got C=inf: give one")
    options = {"intercept": own._intercept_kind(), "scale": 1.0, **own._strength()}
    subs: Sequence[SubProblem]
    if isinstance(own, SVC):
        classes, codes = encode_classes(check_labels(y, n))
        weights = weigh_by_class(own, classes, codes, weights)
        subs = Pairs(codes, classes)
    else:
        subs = [SubProblem(0, "", check_targets(y, n))]
    # The model to judge: coefficients of the points and an intercept, for each problem.
    points, coef, offsets = check_expansion(
        X, given_points, given_coef, given_intercept, len(subs), options["intercept"]
    )
    # Dual variables prove a lower bound; they are moved to the nearest feasible point below.
    duals = None
    if dual is not None:
        duals = np.atleast_2d(np.asarray(dense_weights(dual), dtype=np.float64))
        if duals.shape != (len(subs), n) or not np.isfinite(duals).all():
            raise ValueError(
                f"dual must hold finite numbers of shape {(len(subs), n)}; got shape {duals.shape}"
            )
    found = []
    for sub, own_coef, offset in zip(subs, coef, offsets, strict=True):
        problem, chosen = make_kernel_problem(
            X, kernel, sub.y, loss, weights=sub.row_weights(weights), members=sub.members, **options
        )
        feasible = None
        if duals is not None:
            feasible = nearest_feasible(problem, duals[sub.index][chosen])
        found.append(certificate_of_expansion(problem, points, (own_coef, float(offset)), feasible))
    return remove_false_bounds(found, kernel, X, np.arange(0))


def check_expansion(
    X: Any, points: Any, coef: object, intercept: ArrayLike, count: int, kind: str
) -> tuple[object, np.ndarray, np.ndarray]:
    """Return points, coefficients (count, m) and intercepts (count,) of a model, checked."""
    points = check_design(points).plain
    if points.shape[1] != X.shape[1]:
        raise ValueError(f"points have {points.shape[1]} features, X has {X.shape[1]}")
    # Kernel sums need both matrices in one form: take X's.
    if sparse.issparse(points) != sparse.issparse(X):
        points = sparse.csr_array(points) if sparse.issparse(X) else points.toarray()
    coef = np.atleast_2d(np.asarray(dense_weights(coef), dtype=np.float64))
    if coef.shape != (count, points.shape[0]):
        raise ValueError(
            f"coef has shape {coef.shape}; these points and classes need {(count, points.shape[0])}"
        )
    # A single intercept stands for all problems.
    offsets = np.atleast_1d(np.asarray(intercept, dtype=np.float64))
    if offsets.shape not in ((1,), (count,)):
        raise ValueError(f"intercept has shape {offsets.shape}; {(count,)} is needed")
    if not (np.isfinite(coef).all() and np.isfinite(offsets).all()):
        raise ValueError("coef and intercept must be finite numbers")
    if kind == "none" and offsets.any():
        raise ValueError(
            "the model has intercepts, and the problem none: pose one with an intercept"
        )
    return points, coef, np.broadcast_to(offsets, (count,))


def find_machine(model: Any, name: str) -> Any:
    """Return the machine of this package, with a finite C, that poses the problem of a model."""
    if isinstance(model, KernelMachine):
        fitted = held_machine(model)
        if fitted.chosen_C is None:
            return fitted.template
        # C=inf was fitted with this finite C.
        return clone(fitted.template).set_params(C=fitted.chosen_C)
    given = model.get_params(deep=False)
    machine = KINDS[name](**{option: given[option] for option in POSING if option in given})
    if has_hard_margin(machine):
        # A hard margin: any C that no coefficient reaches poses the same problem.
        machine.C = 2.0 * float(np.abs(dense_duals(model.dual_coef_)).max(initial=1.0))
    return machine


def weigh_by_class(
    model: Any, classes: np.ndarray, codes: np.ndarray, weights: np.ndarray | None
) -> np.ndarray | None:
    """Return the weights of the rows, times the weights of their classes."""
    if isinstance(model, KernelMachine):
        return weigh_classes(model.class_weight, classes, codes, weights, "ovo")[0]
    # scikit-learn's NuSVC ignores the weights of classes.
    is_nu = "nu" in model.get_params(deep=False)
    if model.class_weight is None or is_nu:
        return weights
    factors = class_factors(model.class_weight, classes, codes, None)
    if weights is None:
        return factors[codes]
    return factors[codes] * weights


def point_of_model(
    problem: KernelProblem, machine: Machine, beta: np.ndarray, intercept: float
) -> KernelPoint:
    """Return the model's point in the problem over rows, and a feasible dual point beside it."""
    beta = machine.rows_of(problem, beta)
    given = None
    if not problem.groups and problem.intercept.constrained:
        given = np.array([intercept - problem.offset * float(beta.sum())])
    return KernelPoint(beta, nearest_feasible(problem, beta), given)
