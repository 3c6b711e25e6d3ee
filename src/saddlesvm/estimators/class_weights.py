"""Factors of the classes, from ``class_weight``."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_class_weight


def class_factors(class_weight: Any, classes: np.ndarray, codes: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """The factors of the weights of each class's rows.

    ``"balanced"`` counts a row by its own weight. scikit-learn does so from 1.7 on, so that this is done here.

    Parameters
    ----------
    class_weight : dict, "balanced" or None
        As in scikit-learn.
    classes : array of shape (n_classes,)
        The labels.
    codes : int array of shape (n_samples,)
        The class number of each row.
    weights : float array of shape (n_samples,) or None
        The rows' own weights; None for 1.

    Returns
    -------
    float array of shape (n_classes,)
    """
    if class_weight is None:
        return np.ones(classes.size)
    if isinstance(class_weight, str) and class_weight == "balanced" and weights is not None:
        totals = np.bincount(codes, weights=weights, minlength=classes.size)
        if not totals.all():
            raise ValueError(f"class {classes.tolist()[int(np.argmin(totals))]!r} has no row of positive weight")
        return np.asarray(totals.sum() / (classes.size * totals))
    return np.asarray(compute_class_weight(class_weight, classes=classes, y=classes[codes]))


def checked_factors(
    class_weight: Any, classes: np.ndarray, codes: np.ndarray, weights: np.ndarray | None
) -> np.ndarray:
    """As :func:`class_factors`.

    Raises
    ------
    ValueError
        Some are not positive and finite.
    """
    factors = class_factors(class_weight, classes, codes, weights)
    if not (np.isfinite(factors) & (factors > 0)).all():
        raise ValueError(f"class_weight must hold positive finite factors; got {class_weight!r}")
    return factors
