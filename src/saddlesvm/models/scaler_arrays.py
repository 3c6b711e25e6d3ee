"""The arrays of a model file that hold a StandardScaler, which stands before the model."""

from __future__ import annotations

import numpy as np
from sklearn.preprocessing import StandardScaler

# The names of the arrays: means, divisors, variances (a number for each feature) and rows seen.
MEAN = "scaler_mean"
SCALE = "scaler_scale"
VARIANCE = "scaler_var"
SEEN = "scaler_seen"
NAMES = (MEAN, SCALE, VARIANCE, SEEN)


def scaler_to_arrays(scaler: StandardScaler | None) -> dict[str, np.ndarray]:
    """Return the arrays of a fitted scaler; arrays of what it does not do are empty.

    A scaler that does not centre has no means; without division it has no divisors and no
    variances.
    """
    if scaler is None:
        return {}
    empty = np.empty(0)
    arrays = {MEAN: empty, SCALE: empty, VARIANCE: empty, SEEN: scaler.n_samples_seen_}
    if scaler.with_mean:
        arrays[MEAN] = scaler.mean_
    if scaler.with_std:
        arrays[SCALE] = scaler.scale_
        arrays[VARIANCE] = scaler.var_
    return {name: np.asarray(array, dtype=np.float64) for name, array in arrays.items()}


def pop_scaler_arrays(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Take the arrays of a scaler out of the arrays of a model file, and return them."""
    return {name: arrays.pop(name) for name in NAMES if name in arrays}


def scaler_from_arrays(
    arrays: dict[str, np.ndarray], width: int, names: np.ndarray | None
) -> StandardScaler | None:
    """Return the scaler that some arrays describe; None without arrays.

    Parameters
    ----------
    arrays : dict
        As :func:`pop_scaler_arrays` returns them.
    width : int
        Features of the model.
    names : ndarray of str, optional
        The names of the features.

    Raises
    ------
    ValueError
        The arrays do not describe a scaler of so many features.
    """
    if not arrays:
        return None
    check_scaler_arrays(arrays, width)
    mean = arrays[MEAN]
    scale = arrays[SCALE]
    # The attributes are set as a fit would have set them.
    scaler = StandardScaler(with_mean=mean.size > 0, with_std=scale.size > 0)
    scaler.mean_ = mean if mean.size else None
    scaler.scale_ = scale if scale.size else None
    scaler.var_ = arrays[VARIANCE] if scale.size else None
    scaler.n_samples_seen_ = arrays[SEEN][()]
    scaler.n_features_in_ = width
    if names is not None:
        scaler.feature_names_in_ = names
    return scaler


def check_scaler_arrays(arrays: dict[str, np.ndarray], width: int) -> None:
    """Raise ValueError unless the arrays describe a scaler of `width` features."""
    missing = np.empty(0, dtype=bool)  # its type is refused below
    for name in NAMES:
        array = arrays.get(name, missing)
        # The rows seen are one number, or a number for each feature.
        empty_shape: tuple[int, ...] = () if name == SEEN else (0,)
        is_shaped = array.shape in (empty_shape, (width,))
        if array.dtype != np.float64 or not is_shaped or not np.isfinite(array).all():
            raise ValueError(f"its {name} does not hold finite numbers for {width} features")
    scale = arrays[SCALE]
    variance = arrays[VARIANCE]
    if scale.size != variance.size or (scale <= 0.0).any() or (variance < 0.0).any():
        raise ValueError(f"its {SCALE} does not hold positive numbers")
