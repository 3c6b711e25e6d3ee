"""``C_max``: the largest C of an estimator at which no feature has a weight."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from saddlesvm.data import inputs
from saddlesvm.data.columns_of_labels import has_columns
from saddlesvm.estimators.linear_model import LinearModel
from saddlesvm.multiclass import splits
from saddlesvm.problem.first_weight import largest_empty_C


def C_max(model: LinearModel, X: Any, y: Any = None, sample_weight: Any = None) -> float:
    """The largest C at which all weights of a model are zero: where a path of sparse models begins.

    Parameters
    ----------
    model : LinearSVC or LinearSVR
        With ``penalty="l1"`` or ``"elasticnet"``; fitted or not. Its C does not matter, its other options do.
    X : array-like, sparse matrix or Store of shape (n, d)
    y : array-like of shape (n,), or of shape (n, k) for several labels or targets
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    float
        Of several classes, labels or targets the smallest: up to it none of them has a weight. Exact but for rounding;
        infinite where no C gives a weight to any feature. A penalised intercept is no weight of a feature, and may
        appear before.

    Raises
    ------
    ValueError
        The penalty has no l1 norm, or bad data or options.

    Notes
    -----
    One or two passes over the rows with ``intercept="none"`` or ``"free"``, some dozens with a penalised intercept. Of
    losses with kinks (the hinge with a free intercept, say) it is the value of a linear program over the rows at one.

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
    if hasattr(template, "multi_class"):
        if has_columns(y):
            template._learn_labels(y)
        else:
            template._encode(y, design.shape[0])
    posed = template.training_problems(y, sample_weight, design.shape[0])
    ready = template._memory_rows(design, template._intercept_kind(), 1, None)
    return min(largest_empty_C(template.part_problem(sub, posed, ready)) for sub in posed.problems)


def check_sparse(model: LinearModel) -> None:
    """Raise ValueError unless the penalty of an estimator sets weights to zero."""
    if not takes_features(model):
        told = "" if model.penalty == "l2" else f" with l1_ratio={model.l1_ratio!r}"
        raise ValueError(
            "C_max needs penalty='l1', or 'elasticnet' with l1_ratio above 0, which set weights to zero; got "
            f"{model.penalty!r}{told}"
        )
    if getattr(model, "multi_class", "ovr") in splits.JOINT:
        raise ValueError(f"C_max needs multi_class='ovr' or 'ovo'; got {model.multi_class!r}")


def takes_features(model: LinearModel) -> bool:
    """Whether the penalty of an estimator holds an l1 norm, so that features are taken one by one as C grows."""
    return not model._penalty().penalty.identity()
