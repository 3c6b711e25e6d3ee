"""scikit-learn's bases with types, and its callbacks (``sklearn.callback``, new in 1.9) if any.

It has no types, and arguments to a class with unknown bases would pass a type checker.

``LinearSVC().set_callbacks(ProgressBar())``, or callbacks of a grid search or pipeline that reach
its estimators: the fit is a task, each certificate a task below it; with several sub-problems these
come between. A callback that asks to stop ends the fit with the best model so far, as Ctrl-C does.
Without such callbacks none of scikit-learn's callback code is loaded.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier

from saddlesvm.fit.outcome import Record
from saddlesvm.multiclass.sub_problems import SubProblem
from saddlesvm.runtime.data_types import LabelsLike, RowsLike

__all__ = ["BaseEstimator", "ClassifierMixin", "OutlierMixin", "RegressorMixin"]  # of scikit-learn

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from sklearn.utils import Tags

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


Given = ParamSpec("Given")
Result = TypeVar("Result")


@functools.cache
def are_callbacks_installed() -> bool:
    """Return True if scikit-learn has callbacks."""
    return find_spec("sklearn.callback") is not None


def set_callbacks(estimator: object, callbacks: Sequence[object]) -> None:
    """Set the callbacks of an estimator, in place of earlier callbacks."""
    from sklearn.callback import CallbackSupportMixin

    CallbackSupportMixin.set_callbacks(estimator, *callbacks)


def tear_down_after(fit: Callable[Given, Result]) -> Callable[Given, Result]:
    """A fit that tears its callbacks down when it ends, however it ends."""
    from sklearn.callback import with_callbacks

    made: Callable[Given, Result] = with_callbacks(fit)
    return made


class FitTasks:
    """The tasks of a fit, reported to scikit-learn's callbacks.

    Parameters
    ----------
    estimator : estimator
        Its :meth:`fit` is managed by :func:`tear_down_after`.
    known : dict
        Attributes that every model of the fit has, such as the classes.
    X, y, sample_weight
        The data of the fit.
    problems : int
        Number of sub-problems.
    """

    def __init__(
        self,
        estimator: object,
        known: dict[str, Any],
        X: RowsLike,
        y: LabelsLike,
        sample_weight: ArrayLike | None,
        problems: int,
    ) -> None:
        self.estimator = estimator
        self.known = known
        self.alone = problems == 1
        from sklearn.callback import CallbackSupportMixin

        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        self.task_arguments = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
        self.root: Any = CallbackSupportMixin._init_callback_context(
            estimator, max_subtasks=None if self.alone else problems, sequential_subtasks=self.alone
        )
        self.root.call_on_fit_task_begin(**self.task_arguments)

    def callback(self, sub: SubProblem) -> list[Callable[[Record], bool]]:
        """The callbacks that receive the certificates of a sub-problem: a callable, or none."""
        if self.alone:
            return [functools.partial(self._report, self.root)]
        task = self.root.subcontext(sub.label, task_id=sub.index, max_subtasks=None)
        task.call_on_fit_task_begin(**self.task_arguments)
        return [functools.partial(self._report, task)]

    def _report(self, parent: Any, record: Record) -> bool:
        """Report a certificate; returns whether a callback asks to stop."""
        task = parent.subcontext("certificate")
        task.call_on_fit_task_begin(**self.task_arguments)
        return bool(
            task.call_on_fit_task_end(
                **self.task_arguments, reconstruction_attributes=self._model(record)
            )
        )

    def _model(self, record: Record) -> Callable[[], dict[str, Any]] | None:
        """A function that gives the certified model's attributes; None for a part of a model."""
        if not self.alone or np.ndim(record.coef) > 1:
            return None
        coef = np.array(record.coef)
        intercept = np.array([record.intercept], dtype=np.float64)
        shown = coef[None, :] if is_classifier(self.estimator) else coef
        return lambda: self.known | {"coef_": shown, "intercept_": intercept}

    def end(self, attributes: Callable[[], Mapping[str, object]]) -> None:
        """Report that the fit is done; a function gives the attributes of the fitted model."""
        if not self.alone:
            for task in list(self.root)[1:]:
                if task.parent is self.root:
                    task.call_on_fit_task_end(**self.task_arguments)
        self.root.call_on_fit_task_end(**self.task_arguments, reconstruction_attributes=attributes)
