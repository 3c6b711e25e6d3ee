"""The base of all estimators: options, C or lambda, labels, and the attributes of a fit."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, NamedTuple, ParamSpec, Self, TypeVar

import numpy as np
from sklearn.utils import check_random_state

from saddlesvm.estimators.scikit_learn import BaseEstimator
from saddlesvm.fit.outcome import Limits, Outcome, Trace
from saddlesvm.multiclass.sub_problems import SubProblem
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.loss import Loss
from saddlesvm.runtime import allowed
from saddlesvm.runtime.allowed import LIMIT, NUMBER, STRENGTH, Allowed, check, check_options
from saddlesvm.runtime.clock import begin_fit, report_compilation, seconds_compiling
from saddlesvm.runtime.option_names import Keep
from saddlesvm.runtime.randomness import SEEDS, draw, make_random
from saddlesvm.solvers.base import SolverBase
from saddlesvm.solvers.register import make_solver

if TYPE_CHECKING:
    from sklearn.utils import Tags


# The values that the parameters of every estimator allow. `loss` and `solver` are made by their
# registers, which know all names.
COMMON = {
    "tol": allowed.RELATIVE_GAP,
    "gap": allowed.NOT_NEGATIVE,
    "max_iter": LIMIT,
    "max_time": LIMIT,
    "n_jobs": allowed.THREADS,
    "callbacks": allowed.CALLBACKS,
    "verbose": allowed.VERBOSE,
    "keep": allowed.KEEP,
}
# The names of each class's parameters, once they were asked for.
PARAMETERS: dict[type, list[str]] = {}
# What the options of classifiers are for estimators without them.
WITHOUT = {"multi_class": "ovr", "class_weight": None}

# The types that `restore_on_error` keeps: of the estimator, of its fit's result and parameters.
Itself = TypeVar("Itself")
Model = TypeVar("Model", bound="Estimator")
Given = ParamSpec("Given")


def draw_seed(random_state: int | np.random.RandomState | None) -> int:
    """Return a seed below 2^31 - 1 for a `random_state` as scikit-learn takes it.

    An int determines the seed, without the generator of 2.5 kB that NumPy would set up for it; a
    RandomState, or None for NumPy's global state, is asked for its next number.

    Raises
    ------
    ValueError
        It is none of these, or an int that is negative or not below 2^32.
    """
    if isinstance(random_state, (int, np.integer)) and 0 <= random_state < 2**32:
        return int(draw(make_random(int(random_state)), SEEDS))
    # It takes a tenth of the time of RandomState's own whole numbers.
    return int(SEEDS * check_random_state(random_state).random_sample())


def option_of(estimator: object, name: str) -> Any:
    """Return an option of a classifier; its plain value for an estimator without the option."""
    return getattr(estimator, name, WITHOUT[name])


@contextmanager
def apply_limits(options: object) -> Iterator[None]:
    """End a fit by the `max_time` of its options, and report compilation if they are verbose."""
    # An invalid limit counts as none here: the check of the options refuses it soon after.
    seconds = getattr(options, "max_time", None)
    if seconds is not None and not LIMIT.holds(seconds):
        seconds = None
    with begin_fit(seconds), report_compilation(bool(getattr(options, "verbose", False))):
        yield


def restore_on_error(
    fit: Callable[Concatenate[Itself, Given], Model],
) -> Callable[Concatenate[Itself, Given], Model]:
    """Wrap a fit: if it raises, the estimator stays as it was."""

    @functools.wraps(fit)
    def fit_or_restore(
        estimator: Itself, /, *arguments: Given.args, **options: Given.kwargs
    ) -> Model:
        before = dict(vars(estimator))
        try:
            with apply_limits(estimator):
                compiled_before = seconds_compiling()
                fitted = fit(estimator, *arguments, **options)
            fitted.seconds_compiling_ = seconds_compiling() - compiled_before
        except BaseException:
            vars(estimator).clear()
            vars(estimator).update(before)
            raise
        return fitted

    return fit_or_restore


class Labels(NamedTuple):
    """What a classifier knows of its labels.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Ascending; of an indicator matrix the numbers of its columns.
    indicator : {"", "dense", "sparse"}
        The kind of the indicator matrix; empty for labels of a single column.
    """

    classes: np.ndarray
    indicator: str = ""


class Training(NamedTuple):
    """The training problem of a model.

    Attributes
    ----------
    problems : sequence of SubProblem
    loss : Loss
    weights : ndarray of shape (n,) or None
        Weights of the rows; None for 1.
    labels : Labels or None
        None for a regression.
    """

    problems: Sequence[SubProblem]
    loss: Loss
    weights: np.ndarray | None
    labels: Labels | None = None


def epochs_between_calls(callbacks: Sequence[Any] | None) -> float | None:
    """Return the fewest epochs between certificates that callbacks ask for; None if none does.

    A callback asks by its attribute `every`.

    Raises
    ------
    ValueError
        Such an attribute is not a positive number.
    """
    asked = [
        callback.every
        for callback in callbacks or ()
        if getattr(callback, "every", None) is not None
    ]
    for epochs in asked:
        check("every (an attribute of a callback)", epochs, LIMIT)
    return min(asked, default=None)


class Estimator(BaseEstimator):
    """Options that every estimator has, and the facts that every fit leaves behind."""

    _allowed: ClassVar[dict[str, Allowed]] = COMMON
    C: Any
    lam: float | None
    solver: Any
    tol: float
    max_iter: Any
    max_time: float | None
    keep: Keep = "best"
    gap: float = 0.0
    callbacks: Sequence[Any] | None
    verbose: int
    certificates_: list[Certificate]
    certificate_: Certificate
    outcome_: Outcome
    n_iter_: int
    n_features_in_: int
    feature_names_in_: np.ndarray
    seconds_solving_: float
    seconds_certifying_: float
    seconds_compiling_: float
    trace_: Trace
    multi_class: Any
    class_weight: Any
    _fitted: Any = None  # the last fit: a Fitted, or a KernelFitted

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """Return what scikit-learn's function returns, which takes long beside a small fit."""
        if cls not in PARAMETERS:
            PARAMETERS[cls] = super()._get_param_names()
        return list(PARAMETERS[cls])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def set_params(self, **params: object) -> Self:
        """Set options; ``solver__batch_size=64`` sets an option of the solver, if named too."""
        # In set_params(solver="pegasos", solver__batch_size=64) the solver comes first, its option
        # second.
        inner = {
            key.removeprefix("solver__"): params.pop(key)
            for key in list(params)
            if key.startswith("solver__")
        }
        super().set_params(**params)
        if inner:
            solver = self._make_solver()
            unknown = [key for key in inner if key not in solver.get_params()]
            if unknown:
                known = ", ".join(solver.get_params()) or "none"
                raise ValueError(
                    f"the solver {solver.name!r} has no option {unknown[0]!r}; it has: {known}"
                )
            self.solver = dataclasses.replace(solver, **inner)
        return self

    def _make_solver(self) -> Any:
        return make_solver(self.solver)

    def _check_options(self) -> Any:
        """Check every option that does not depend on the data, and return the loss, if any.

        Raises
        ------
        ValueError
            The message names the option, what was given and what is allowed.
        """
        check_options(self, self._allowed)
        self._strength()

    def _limits(self, solver: SolverBase) -> Limits:
        """Return when a fit stops; ValueError if it never would."""
        # -1 means no limit, as in scikit-learn's kernel machines.
        max_epochs = None if self.max_iter == -1 else self.max_iter
        is_limited = max_epochs is not None or self.max_time is not None or solver.ends_itself
        if self.tol == self.gap == 0 and not (is_limited or self.callbacks):
            raise ValueError(
                "tol=0 never ends a fit: give gap, max_iter or max_time too, or a callback that "
                "stops it"
            )
        every = epochs_between_calls(self.callbacks)
        return Limits(self.tol, max_epochs, self.max_time, every, keep=self.keep, gap=self.gap)

    def _strength(self) -> dict[str, float]:
        """Return C or lam, whichever is in force; C is 1 for an estimator without one."""
        C: Any = getattr(self, "C", 1.0)
        lam = getattr(self, "lam", None)
        if lam is not None and C not in (None, 1.0):
            raise ValueError("give either C or lam (lambda), not both: C = 1 / (lambda n)")
        if not isinstance(C, NUMBER):
            # C="auto" has chosen C_ by now.
            C = getattr(self, "C_", C)
        name, given = ("C", C) if lam is None else ("lam", lam)
        # Numbers are checked among the options, and by every problem.
        if not isinstance(given, NUMBER):
            check(name, given, STRENGTH)
        return {name: given}

    def __setstate__(self, state: dict[str, object]) -> None:
        super().__setstate__(state)  # type: ignore[misc]
        # skops reads an outcome as plain text.
        if "outcome_" in vars(self):
            self.outcome_ = Outcome(self.outcome_)

    def _options(self) -> Self:
        """Return an estimator that is not fitted, with the parameters of this one."""
        made = object.__new__(type(self))
        kept = {
            name: value
            for name, value in vars(self).items()
            if not name.startswith("_") and name[-1] != "_"
        }
        vars(made).update(kept)
        return made

    def _hold(self, fitted: Any) -> Self:
        """Hold a fit, and show it in the public attributes, in place of an earlier one."""
        for name in list(vars(self)):
            if name.endswith("_"):
                delattr(self, name)
        self._fitted = fitted
        vars(self).update(fitted.attributes())
        return self
