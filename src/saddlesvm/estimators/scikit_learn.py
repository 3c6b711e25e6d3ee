"""scikit-learn's bases with types.

It has no types, and arguments to a class with unknown bases would pass a type checker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["BaseEstimator", "ClassifierMixin", "OutlierMixin", "RegressorMixin"]  # of scikit-learn

if TYPE_CHECKING:
    from typing import Self

    import numpy as np
    from numpy.typing import ArrayLike
    from sklearn.utils import Tags

    from saddlesvm.runtime.data_types import LabelsLike, RowsLike

    class BaseEstimator:
        """What estimators call of it; other attributes may be of any type."""

        def __getattr__(self, name: str) -> Any: ...
        def __sklearn_tags__(self) -> Tags: ...
        def __getstate__(self) -> dict[str, object]: ...
        @classmethod
        def _get_param_names(cls) -> list[str]: ...
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: object) -> Self: ...

    class ClassifierMixin:
        """Its score is the accuracy."""

        def score(
            self, X: RowsLike, y: LabelsLike, sample_weight: ArrayLike | None = None
        ) -> float: ...

    class RegressorMixin(ClassifierMixin):
        """Its score is the R squared."""

    class OutlierMixin:
        """Its classes are 1 and -1."""

        def fit_predict(
            self, X: RowsLike, y: LabelsLike | None = None, **options: object
        ) -> np.ndarray: ...

else:
    from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin
