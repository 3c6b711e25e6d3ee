"""Models that learn further rows, or forget some: begun where the old model ended, certified for the rows there are."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.data import inputs
from saddlesvm.data.columns_of_labels import has_columns
from saddlesvm.estimators.proven import Data
from saddlesvm.multiclass.splits import SPLITS
from saddlesvm.problem.loss import is_smooth
from saddlesvm.problem.penalties import holds_square


def fingerprint(data: Data) -> str:
    """The hash of rows and labels that :func:`saddlesvm.checker.fingerprint` gives; several columns are hashed as they
    are."""
    X = sparse.csr_array(inputs.as_design(data.X))
    X.sum_duplicates()
    X.eliminate_zeros()
    y = np.asarray(data.y)
    named = "\n".join(map(str, y.tolist())).encode() if y.dtype.kind in "OUS" else y.astype("<f8").tobytes()
    counts, places, values = np.diff(X.indptr).astype("<i8"), X.indices.astype("<u8"), X.data.astype("<f8")
    parts = [counts.tobytes(), places.tobytes(), values.tobytes(), named]
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def chosen(rows: Any, n: int) -> np.ndarray:
    """The mask of n rows that numbers or a mask select, shape (n,).

    Raises
    ------
    ValueError
        They are neither, or beyond the rows; or none, or all, are meant.
    """
    given = np.atleast_1d(np.asarray(rows))
    if given.dtype == bool:
        if given.shape != (n,):
            raise ValueError(f"a mask of rows must have {n} entries, one for each row; got {given.size}")
        found = given
    else:
        if given.size and given.dtype.kind not in "iu":
            raise ValueError(f"rows must be whole numbers or a mask; got {given.dtype}")
        beyond = given[(given < -n) | (given >= n)]
        if beyond.size:
            raise ValueError(f"there is no row {beyond[0]}: the data have {n} rows")
        found = np.zeros(n, dtype=bool)
        found[given.astype(np.intp)] = True
    if not found.any() or found.all():
        raise ValueError(f"{int(found.sum())} of {n} rows are named; a model needs some to forget and some to keep")
    return found


def part(data: Data, rows: np.ndarray) -> Data:
    """Some of the rows, in memory."""
    weights = None if data.sample_weight is None else np.asarray(data.sample_weight)[rows]
    return Data(data.X[rows], np.asarray(data.y)[rows], weights)


def joined(first: Data, second: Data) -> Data:
    """The rows of both, one below the other; a weight that is not given is 1 where the others are."""
    either = sparse.issparse(first.X) or sparse.issparse(second.X)
    X = sparse.vstack([first.X, second.X], format="csr") if either else np.concatenate([first.X, second.X])
    y = np.concatenate([np.asarray(first.y), np.asarray(second.y)])
    if first.sample_weight is None and second.sample_weight is None:
        return Data(X, y, None)
    own = [np.ones(one.X.shape[0]) if one.sample_weight is None else one.sample_weight for one in (first, second)]
    return Data(X, y, np.concatenate(own))


def fit_on(model: Any, data: Data, kept: np.ndarray | slice, added: int, entry: dict[str, Any]) -> None:
    """Fit a model to changed rows from where it stands, and write down the change.

    Parameters
    ----------
    model : LinearSVC or LinearSVR
    data : Data
        The rows that there are now: `kept` of the old ones, then as many as were `added`.
    kept : ndarray of bool or slice
    added : int
    entry : dict
        What the log says beside the rows that are left, and the digest.
    """
    before = list(getattr(model, "log_", ()))
    start = _start(model, data, kept, added)
    model.fit(data.X, data.y, sample_weight=data.sample_weight, **start)
    told = entry | {"left": int(data.X.shape[0]), "digest": getattr(model, "digest_", None)}
    model.log_ = np.array([*before, json.dumps(told)])


def _start(model: Any, data: Data, kept: np.ndarray | slice, added: int) -> dict[str, Any]:
    """The start of the fit: the multipliers of the rows that stay, where their bounds are as they were, or the
    weights; nothing where the problem has another shape."""
    split = getattr(model, "multi_class", "ovr")
    classes = getattr(model, "classes_", None)
    whole = has_columns(data.y) or classes is None or np.unique(data.y).size == classes.size
    if split not in (*SPLITS, "multinomial") or not whole:
        return {}
    weights = {"coef_init": np.atleast_2d(model.coef_), "intercept_init": np.atleast_1d(model.intercept_)}
    duals, same = getattr(model, "dual_coef_", None), model.lam is None and not getattr(model, "class_weight", None)
    wanted = same and split in SPLITS and not is_smooth(model.check_options()) and duals is not None
    if not (wanted and holds_square(model._penalty().penalty) and model._made_solver().begins_at_duals):
        return weights
    A = sparse.csr_array(duals)[:, kept] if sparse.issparse(duals) else np.asarray(duals)[:, kept]
    if added:
        none = np.zeros((A.shape[0], added))
        A = sparse.hstack([A, none], format="csr") if sparse.issparse(A) else np.hstack([A, none])
    return {"dual_coef_init": A}
