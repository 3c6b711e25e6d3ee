"""The steps before an estimator in a pipeline that can be saved: a StandardScaler, or the encoder of a table."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from saddlesvm.estimators.table import TableEncoder

__all__ = ["SCALER", "arrays_of", "behind_scaler", "parted", "scaler_of", "taken"]

SCALER = ("scaler_mean", "scaler_scale", "scaler_var", "scaler_seen")


def parted(model: Any) -> tuple[Any, StandardScaler | TableEncoder | None]:
    """The estimator at the end of a pipeline that has a StandardScaler or a table's encoder before it alone, and that
    step; any other model as it is."""
    if isinstance(model, Pipeline) and len(model.steps) == 2 and type(model[0]) in (StandardScaler, TableEncoder):
        return model[-1], model[0]
    return model, None


def behind_scaler(model: Any, scaler: StandardScaler | TableEncoder | None) -> Any:
    """The model as it is to be used: a pipeline where rows are scaled, or encoded, first."""
    if scaler is None:
        return model
    made = make_pipeline(scaler, model)
    if hasattr(model, "notes_"):
        made.notes_ = model.notes_
    return made


def arrays_of(scaler: StandardScaler | None) -> dict[str, np.ndarray]:
    """The arrays of a fitted scaler for a file; its mean is empty where it does not centre, its scale where it does
    not divide."""
    if scaler is None:
        return {}
    empty = np.empty(0)
    found = (
        scaler.mean_ if scaler.with_mean else empty,
        scaler.scale_ if scaler.with_std else empty,
        scaler.var_ if scaler.with_std else empty,
        scaler.n_samples_seen_,
    )
    return {name: np.asarray(one, dtype=np.float64) for name, one in zip(SCALER, found, strict=True)}


def taken(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of a scaler among those of a model file, which are taken out."""
    return {name: arrays.pop(name) for name in SCALER if name in arrays}


def scaler_of(arrays: dict[str, np.ndarray], width: int, names: np.ndarray | None) -> StandardScaler | None:
    """The scaler of such arrays; None where there are none.

    Parameters
    ----------
    arrays : dict
        Of :func:`taken`.
    width : int
        Features of the model.
    names : ndarray of str, optional
        Theirs.

    Raises
    ------
    ValueError
        The arrays are no scaler of so many features.
    """
    if not arrays:
        return None
    for name in SCALER:
        one = arrays.get(name, np.empty(0, dtype=bool))
        shapes: list[tuple[int, ...]] = [() if name == SCALER[3] else (0,), (width,)]
        if one.dtype != np.float64 or one.shape not in shapes or not np.isfinite(one).all():
            raise ValueError(f"its {name} does not hold finite numbers for {width} features")
    mean, scale, var, seen = (arrays[name] for name in SCALER)
    if scale.size != var.size or (scale <= 0.0).any() or (var < 0.0).any():
        raise ValueError(f"its {SCALER[1]} does not hold positive numbers")
    scaler = StandardScaler(with_mean=mean.size > 0, with_std=scale.size > 0)
    scaler.mean_ = mean if mean.size else None
    scaler.scale_, scaler.var_ = (scale, var) if scale.size else (None, None)
    scaler.n_samples_seen_, scaler.n_features_in_ = seen[()], width
    if names is not None:
        scaler.feature_names_in_ = names
    return scaler
