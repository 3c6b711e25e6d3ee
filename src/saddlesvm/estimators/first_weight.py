"""``C_max``: the largest C of an estimator at which no feature has a weight; ``l1_min_c``, as scikit-learn has it."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from saddlesvm.data import inputs
from saddlesvm.data.labels import check_labels, encoded
from saddlesvm.estimators.linear_model import LinearModel
from saddlesvm.multiclass import splits
from saddlesvm.multiclass.linear_fit import in_memory
from saddlesvm.problem.first_weight import largest_empty_C
from saddlesvm.runtime.allowed import SCALING, check
from saddlesvm.solvers.base import one_of

AT_NOTHING = {"squared_hinge": 2.0, "log": 0.5, "logistic": 0.5}  # size of the losses' slopes at a score of zero


def C_max(model: LinearModel, X: Any, y: Any = None, sample_weight: Any = None) -> float:
    """The largest C at which all weights of a model are zero: where a path of sparse models begins.

    Parameters
    ----------
    model : LinearSVC or LinearSVR
        With ``penalty="l1"`` or ``"elasticnet"``; fitted or not. All its options count except C.
    X : array-like, sparse matrix or Store of shape (n, d)
    y : array-like of shape (n,), or of shape (n, k) for several labels or targets
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    float
        For several classes, labels or targets, the smallest of their values. Exact up to rounding; infinite where no C
        gives a weight to any feature. A penalised intercept is not the weight of a feature, and may be nonzero at a
        smaller C.

    Raises
    ------
    ValueError
        The penalty has no l1 norm, or the data or options are invalid.

    Notes
    -----
    The cost is one or two passes over the rows with ``intercept="none"`` or ``"free"``, and some dozens with a
    penalised intercept. For losses with kinks (such as the hinge with a free intercept), a linear program over the rows
    at a kink gives the value.

    Examples
    --------
    >>> from saddlesvm import C_max, LinearSVC
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> model = LinearSVC(penalty="l1", loss="logistic")
    >>> first = C_max(model, notes.X, notes.y)
    >>> [
    ...     model.set_params(C=first * k).fit(notes.X, notes.y).n_features_selected_
    ...     for k in (0.99, 1.01)
    ... ]
    [0, 1]
    """
    template = clone(model)
    X, y, sample_weight = inputs.parts_of(X, y, sample_weight)
    if template.lam is not None or isinstance(template.C, str):
        template.set_params(lam=None, C=1.0)
    template.check_options()
    check_sparse(template)
    design = inputs.check_design(template, X, reset=True)
    posed = template._learnt(y, sample_weight, design.shape[0])
    ready = in_memory(design, template._intercept_kind(), float(template.intercept_scaling), 1, None)
    return min(largest_empty_C(template.part_problem(sub, posed, ready)) for sub in posed.problems)


def check_sparse(model: LinearModel) -> None:
    """Raise ValueError unless the penalty of an estimator sets weights to zero."""
    if not takes_features(model):
        with_ratio = "" if model.penalty == "l2" else f" with l1_ratio={model.l1_ratio!r}"
        raise ValueError(
            "C_max needs penalty='l1', or 'elasticnet' with l1_ratio above 0, which set weights to zero; got "
            f"{model.penalty!r}{with_ratio}"
        )
    if getattr(model, "multi_class", "ovr") in splits.JOINT:
        raise ValueError(f"C_max needs multi_class='ovr' or 'ovo'; got {model.multi_class!r}")


def takes_features(model: LinearModel) -> bool:
    """Whether the penalty of an estimator holds an l1 norm, so that features are taken one by one as C grows."""
    return not model._penalty().penalty.identity()


def l1_min_c(
    X: Any,
    y: Any,
    *,
    loss: Literal["squared_hinge", "log", "logistic"] = "squared_hinge",
    fit_intercept: bool = True,
    intercept_scaling: float = 1.0,
) -> float:
    """The largest C at which all weights of a classifier with ``penalty="l1"``, and its penalised intercept, are zero.

    As ``sklearn.svm.l1_min_c``. :func:`C_max` does the same for every estimator with its own options: row and class
    weights, other losses, and intercepts that are free.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
    y : array-like of shape (n,)
        Labels, at least two different ones; each of more than two classes is set against the rest.
    loss : {"squared_hinge", "log", "logistic"}, default="squared_hinge"
        "log" is scikit-learn's name of the logistic loss.
    fit_intercept : bool, default=True
        Whether there is an intercept, penalised like the weights.
    intercept_scaling : float, default=1.0
        Value of the constant feature whose weight the intercept is.

    Returns
    -------
    float
        With a larger C some weight, or the intercept, is not zero.

    Raises
    ------
    ValueError
        Bad data or options, or features that are zero: no C gives them a weight.

    Examples
    --------
    >>> from saddlesvm import LinearSVC
    >>> from saddlesvm.data import load_bundled
    >>> from saddlesvm.svm import l1_min_c
    >>> notes = load_bundled("banknote")
    >>> model = LinearSVC(penalty="l1", C=1.01 * l1_min_c(notes.X, notes.y)).fit(
    ...     notes.X, notes.y
    ... )
    >>> model.n_features_selected_
    1
    """
    one_of("loss", loss, tuple(AT_NOTHING))
    check("intercept_scaling", intercept_scaling, SCALING)
    design = inputs.as_design(X)
    classes, codes = encoded(check_labels(y, design.shape[0]))
    if classes.size < 2:
        raise ValueError(f"l1_min_c needs two classes at least; y has {classes.size}")
    ahead = np.array([1]) if classes.size == 2 else np.arange(classes.size)
    signs = np.where(codes == ahead[:, None], 1.0, -1.0)
    pull = float(np.abs(inputs.as_floats(design).T @ signs.T).max())
    if not np.isfinite(pull):
        raise ValueError("Input X contains NaN or infinity, or values whose sums overflow")
    if fit_intercept:
        pull = max(pull, float(intercept_scaling * np.abs(signs.sum(axis=1)).max()))
    if pull == 0.0:
        raise ValueError("the gradient at zero vanishes, so no value of C gives any feature a weight: check X and y")
    return 1.0 / (AT_NOTHING[loss] * pull)
