"""The labels and the weights of the classes of any classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.class_weight import compute_class_weight

from saddlesvm.data.label_checks import check_labels, check_weights, encode_classes
from saddlesvm.multiclass.splits import has_factors

if TYPE_CHECKING:
    from saddlesvm.runtime.data_types import LabelsLike


def class_factors(
    class_weight: object,
    classes: np.ndarray,
    codes: np.ndarray,
    weights: np.ndarray | None,
    may_be_zero: bool = False,
) -> np.ndarray:
    """Return the factor by which the weights of each class's rows are multiplied.

    ``"balanced"`` counts a row by its weight. scikit-learn does so only from 1.7 on, and so it is
    computed here.

    Parameters
    ----------
    class_weight : dict, "balanced" or None
        As in scikit-learn.
    classes : array of shape (n_classes,)
        The labels.
    codes : int array of shape (n_samples,)
        The class number of each row.
    weights : float array of shape (n_samples,) or None
        The weights of the rows; None for 1.
    may_be_zero : bool
        True if a factor of zero is allowed.

    Returns
    -------
    float array of shape (n_classes,)

    Raises
    ------
    ValueError
        A factor is not finite, negative, or zero.
    """
    if class_weight is None:
        return np.ones(classes.size)
    if isinstance(class_weight, str) and class_weight == "balanced" and weights is not None:
        # As in scikit-learn, n / (K n_k), where n and n_k count rows by their weights.
        totals = np.bincount(codes, weights=weights, minlength=classes.size)
        if not totals.all():
            absent = classes.tolist()[int(np.argmin(totals))]
            raise ValueError(
                f"class {absent!r} has no row of positive weight: every class needs one"
            )
        factors = np.asarray(totals.sum() / (classes.size * totals))
    else:
        factors = np.asarray(compute_class_weight(class_weight, classes=classes, y=classes[codes]))
    is_allowed = factors > 0
    kind = "positive finite factors"
    if may_be_zero:
        is_allowed = factors >= 0
        kind = "finite factors of at least 0"
    if not (np.isfinite(factors) & is_allowed).all():
        raise ValueError(f"class_weight must hold {kind}; got {class_weight!r}")
    return factors


def encode_labels(y: LabelsLike, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes, at least two, and the class number of each label."""
    classes, codes = encode_classes(check_labels(y, n))
    if classes.size < 2:
        raise ValueError(f"y holds 1 class only, {classes.tolist()[0]!r}: at least two are needed")
    return classes, codes


def weigh_classes(
    class_weight: object,
    classes: np.ndarray,
    codes: np.ndarray,
    weights: np.ndarray | None,
    multi_class: str,
    may_be_zero: bool = False,
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return the weights of the rows in all sub-problems, and the factors of the classes.

    If a class has a sub-problem of its own, its factor multiplies the weights of its rows there, as
    in LIBLINEAR and scikit-learn. Otherwise the weights contain the factors, which are None.
    """
    if class_weight is None:
        return weights, None
    factors = class_factors(class_weight, classes, codes, weights, may_be_zero)
    if has_factors(multi_class, classes.size):
        return weights, factors
    return factors[codes] * (1.0 if weights is None else weights), None


def weigh_rows(
    class_weight: object,
    classes: np.ndarray,
    codes: np.ndarray,
    sample_weight: ArrayLike | None,
    multi_class: str = "ovo",
    needs: str = "every class needs one",
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return weights as :func:`weigh_classes`, after checking that classes have rows that count.

    Every class must have a row of positive weight, for the reason in `needs`. If that is empty, two
    classes at least must have such a row.
    """
    weights = check_weights(sample_weight, codes.size)
    if weights is None and class_weight is None:
        return None, None
    weights, factors = weigh_classes(
        class_weight, classes, codes, weights, multi_class, may_be_zero=True
    )
    # Count the rows of each class whose weight is positive.
    counted = codes if weights is None else codes[weights > 0]
    counts = np.bincount(counted, minlength=classes.size)
    if factors is not None:
        counts = np.where(factors > 0, counts, 0)
    if not counts.all() and (needs or np.count_nonzero(counts) < 2):
        absent = classes.tolist()[int(np.argmin(counts))]
        reason = needs or "at least two classes need one"
        raise ValueError(f"class {absent!r} has no row of positive weight: {reason}")
    return weights, factors
