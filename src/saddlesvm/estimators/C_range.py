"""Values of C: grids, the ends of a path, and the largest C at which all weights are zero."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from saddlesvm.data.door import checked_data
from saddlesvm.estimators.base import Estimator, option_of
from saddlesvm.estimators.solve import part_problem
from saddlesvm.multiclass import splits
from saddlesvm.multiclass.linear_fit import rows_of
from saddlesvm.problem.first_weight import largest_empty_C
from saddlesvm.problem.penalties import L2
from saddlesvm.runtime.allowed import COUNT_FROM_ONE, STRENGTH, check
from saddlesvm.runtime.data_types import LabelsLike, RowsLike

ENDS = (1e-3, 1e3)  # smallest and largest C of a path or grid; a guess
GAP = 1e-2  # relative gap of a path; a guess
DECADES = 3.0  # powers of ten from the C where the first weight appears to the end of a path


def C_max(
    model: Estimator,
    X: RowsLike,
    y: LabelsLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """The largest C at which all weights are zero: the beginning of a path of sparse models.

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
        For several classes, labels or targets, the smallest of their values. Exact up to rounding
        for losses without kinks; for the others, such as the hinge, a C at which all weights are
        still zero. Infinite if no C gives a weight to any feature. A penalised intercept is not the
        weight of a feature, and may be nonzero at a smaller C.

    Raises
    ------
    ValueError
        The penalty has no l1 norm, or the data or options are invalid.

    Notes
    -----
    It takes one or two passes over the rows with ``intercept="none"`` or ``"free"``, and some
    dozens with a penalised intercept.

    Examples
    --------
    >>> from saddlesvm import LinearSVC
    >>> from saddlesvm.svm import C_max
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
    if template.lam is not None or isinstance(template.C, str):
        template.set_params(lam=None, C=1.0)
    template._check_options()
    check_sparse(template)
    design, y, sample_weight = checked_data(X, y, sample_weight, template, reset=True)
    training = template._pose(y, sample_weight, design.shape[0])
    ready = rows_of(design, template._intercept_kind(), float(template.intercept_scaling))
    return min(
        largest_empty_C(part_problem(template, sub, training, ready)) for sub in training.problems
    )


def check_sparse(model: Estimator) -> None:
    """Raise ValueError unless the penalty of an estimator sets weights to zero."""
    if not takes_features(model):
        with_ratio = "" if model.penalty == "l2" else f" with l1_ratio={model.l1_ratio!r}"
        raise ValueError(
            "C_max needs penalty='l1', or 'elasticnet' with l1_ratio above 0, which set weights "
            "to zero; got "
            f"{model.penalty!r}{with_ratio}"
        )
    way = option_of(model, "multi_class")
    if way in splits.JOINT:
        raise ValueError(f"C_max needs multi_class='ovr' or 'ovo'; got {way!r}")


def takes_features(model: Estimator) -> bool:
    """Return True if the penalty has an l1 norm: features come in as C grows."""
    return not isinstance(model._penalty().penalty, L2)


def check_Cs(Cs: int | Sequence[float]) -> np.ndarray:
    """A grid of C, ascending: the given values, or `Cs` values between 1e-3 and 1e3.

    Raises
    ------
    ValueError
        No value, or a value that is no C.
    """
    if isinstance(Cs, (int, np.integer)):
        check("Cs, a number of values or the values,", Cs, COUNT_FROM_ONE)
        return np.logspace(np.log10(ENDS[0]), np.log10(ENDS[1]), Cs)
    values = np.ravel(np.asarray(Cs, dtype=object)).tolist()
    if not values:
        raise ValueError("Cs must be a number of values, or the values; got none")
    for value in values:
        check("each of Cs", value, STRENGTH)
    return np.unique(np.array(values, dtype=np.float64))


def ends_for(
    model: Estimator, X: RowsLike, y: LabelsLike, sample_weight: ArrayLike | None = None
) -> tuple[float, float]:
    """Return the default ends of a path over every C: 1e-3 and 1e3.

    If the penalty sets weights to zero, they are ``C_max``, at which the first weight appears, and
    a thousand times it.
    """
    if takes_features(model):
        first = C_max(model, X, y, sample_weight)
        if 0.0 < first < np.inf:
            return first, first * 10.0**DECADES
    return ENDS


def check_model(model: Estimator) -> None:
    """Raise ValueError for an option that cannot be the same for every C."""
    if model.lam is not None:
        raise ValueError(
            f"a path goes over C, so lam (lambda) must be left out; got lam={model.lam!r}"
        )
    refuse_checkpoint(model)


def refuse_checkpoint(model: Estimator) -> None:
    """Raise ValueError for a checkpoint, which holds one fit."""
    if model.checkpoint is not None:
        raise ValueError(
            "a checkpoint holds one fit, and a path has many: leave checkpoint out; got "
            f"{model.checkpoint!r}"
        )
