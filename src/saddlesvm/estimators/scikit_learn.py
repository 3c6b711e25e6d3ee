"""scikit-learn's bases as type checkers see them: it has no types, and arguments to a class with unknown bases would
pass unchecked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["BaseEstimator", "ClassifierMixin", "OutlierMixin", "RegressorMixin"]

if TYPE_CHECKING:

    class BaseEstimator:
        """What estimators call of it; other attributes may be of any type."""

        def __getattr__(self, name: str) -> Any: ...
        def __sklearn_tags__(self) -> Any: ...
        def __getstate__(self) -> dict[str, Any]: ...
        @classmethod
        def _get_param_names(cls) -> list[str]: ...
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Any: ...

    class ClassifierMixin:
        """Its score is the accuracy."""

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...

    class RegressorMixin(ClassifierMixin):
        """Its score is the R squared."""

    class OutlierMixin:
        """Its classes are 1 and -1."""

        def fit_predict(self, X: Any, y: Any = None, **options: Any) -> Any: ...

else:
    from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin
