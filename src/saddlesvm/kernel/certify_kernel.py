"""Certify a fitted kernel machine, also if it was trained elsewhere."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from saddlesvm.data.door import check_design
from saddlesvm.data.label_checks import (
    check_labels,
    check_targets,
    check_weights,
    find_codes,
)
from saddlesvm.estimators.class_weights import class_factors, weigh_classes
from saddlesvm.fit.outcome import NotCertifiedWarning, Outcome
from saddlesvm.kernel.definiteness import evidence_against, make_symmetric
from saddlesvm.kernel.fit_kernel import make_kernel
from saddlesvm.kernel.kernel_certificate import (
    evaluate_kernel,
    nearest_feasible,
)
from saddlesvm.kernel.kernel_fitted import coefficients_of, held_machine
from saddlesvm.kernel.kernel_machine import KernelMachine
from saddlesvm.kernel.kernel_problem import KernelProblem, make_kernel_problem
from saddlesvm.kernel.mercer import Kernel
from saddlesvm.kernel.nu_machines import Machine
from saddlesvm.kernel.svc import SVC, NuSVC
from saddlesvm.kernel.svm import SVR, NuSVR, OneClassSVM
from saddlesvm.multiclass.sub_problems import Pairs, SubProblem
from saddlesvm.problem.certificate import Certificate, KernelPoint

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
) -> Certificate:
    """Prove how far a kernel machine is from the optimum of its training problem.

    Parameters
    ----------
    model : SVC, NuSVC, SVR, NuSVR or OneClassSVM
        A fitted machine of this package, or of ``sklearn.svm``.
    X : array-like or sparse matrix of shape (n, d)
        The training rows, in the order of the fit; the kernel matrix for a precomputed kernel.
    y : array-like of shape (n,), optional
        The labels or targets of the fit; not for OneClassSVM.
    sample_weight : array-like of shape (n,), optional
        The row weights of the fit.

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
    """
    return Certificate.total(kernel_certificates(model, X, y, sample_weight=sample_weight))


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
    options = {"intercept": own._intercept_kind(), **own._strength()}
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


def find_machine(model: Any, name: str) -> Any:
    """Return the machine of this package that poses the problem of a model."""
    if isinstance(model, KernelMachine):
        return held_machine(model).template
    given = model.get_params(deep=False)
    return KINDS[name](**{option: given[option] for option in POSING if option in given})


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
        given = np.array([intercept])
    return KernelPoint(beta, nearest_feasible(problem, beta), given)
