"""The features with the largest weights of a linear model, by class."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from saddlesvm.rows.scores import dense_weights

__all__ = ["Top", "strongest"]

Top = dict[Any, list[tuple[Any, ...]]]


def strongest(model: Any, n: int, names: Any = None, bounds: bool = False) -> Top:
    """The `n` features that speak most for each class; see :meth:`saddlesvm.LinearSVC.top_features`."""
    W = dense_weights(model.coef_)
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise ValueError(f"n must be a whole number of at least 1; got {n!r}")
    if names is None:
        names = getattr(model, "feature_names_in_", range(W.shape[1]))
    named = [one.item() if isinstance(one, np.generic) else one for one in names]
    if len(named) != W.shape[1]:
        raise ValueError(f"names has {len(named)} entries; the model has {W.shape[1]} features")

    columns = np.stack([W, *map(np.atleast_2d, model.coef_bounds())] if bounds else [W], axis=2)

    def largest(key: np.ndarray, told: np.ndarray) -> list[tuple[Any, ...]]:
        order = np.argsort(-key, kind="stable")[:n]
        return [(named[j], *told[j].tolist()) for j in order.tolist() if key[j] > 0.0]

    if not hasattr(model, "classes_"):
        return {k: largest(np.abs(w), told) for k, (w, told) in enumerate(zip(W, columns, strict=True))}
    classes = model.classes_.tolist()
    if len(W) == 1:
        return {classes[0]: largest(-W[0], columns[0]), classes[1]: largest(W[0], columns[0])}
    if getattr(model, "multi_class", "ovr") == "ovo":
        found: Top = {}
        for w, told, (a, b) in zip(W, columns, combinations(classes, 2), strict=True):
            found[a, b], found[b, a] = largest(-w, told), largest(w, told)
        return found
    return {label: largest(w, told) for label, w, told in zip(classes, W, columns, strict=True)}
