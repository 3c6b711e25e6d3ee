"""The definition of a loss: its methods, traits and name, and the operations that kernels call.

For a row with margin ``z = x.w + b``, label or target ``y`` and weight ``s`` the primal pays ``s
phi(z)``, and the dual variable ``a`` of the row enters as ``-s phi*(-a / s)``. A loss is a
NamedTuple whose fields are its options, with these methods (:class:`Loss`), and traits that it
declares as it is registered (:class:`Traits`). Solvers, kernels, certificates, model files and the
command line ask for these alone, so that a user's own loss works like any other.

Three properties are part of the contract: the smallest value of phi is 0; a classification loss
depends on ``y z`` alone, a regression loss on ``z - y`` alone; and the methods are arithmetic that
Numba can compile. Kernels call them with numbers, array code with arrays: ``select(condition, a,
b)``, ``np.minimum`` and ``np.maximum`` serve both.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar

import numpy as np

from saddlesvm.runtime.allowed import Allowed, check, parse_options
from saddlesvm.runtime.argument_types import mark_source, python_class
from saddlesvm.runtime.compiled import operation
from saddlesvm.runtime.lazy import origin_of
from saddlesvm.runtime.option_names import LOSS_ALIASES

if TYPE_CHECKING:
    from numba.core import types

PACKAGE = __name__.partition(".")[0]
Task = Literal["classification", "regression"]
ARGUMENTS = {
    "value": "z, y",
    "subgradient": "z, y",
    "conjugate": "a, y, s",
    "dual_step": "a, z, y, q, s",
    "slopes": "a, z, y, s",
    "curvature": "z, y",
    "bounds": "y, s",
    "largest_curvature": "",
}  # the methods every loss has, with what they take
PAIRS = ("slopes", "bounds")  # methods with two results
# Two rows, on which a method shows whether it takes arrays.
PROBE = {
    "a": np.array([0.25, -0.25]),
    "z": np.array([0.5, -2.0]),
    "y": np.array([1.0, -1.0]),
    "q": 1.0,
    "s": np.array([1.0, 2.0]),
}
ESTIMATORS: dict[str, str] = {"classification": "LinearSVC", "regression": "LinearSVR"}
LOSSES: dict[str, type] = {}  # every registered loss by its name
Kind = TypeVar("Kind", bound=type)
Method = Callable[..., Any]  # of a loss, on arrays; the loss is its first argument


class Shape(Enum):
    """The smoothness of a loss.

    It decides how Newton's method treats the loss, and which solver begins.

    Attributes
    ----------
    KINKED
        Piecewise linear: the loss has kinks, and no curvature between them (hinge, absolute,
        pinball).
    CORNERED
        Differentiable; its derivative has corners, at which the curvature jumps (squared hinge,
        Huber).
    SMOOTH
        Its derivative has no corner, and its curvature is positive everywhere (logistic, squared).

    Examples
    --------
    >>> from saddlesvm.losses import Hinge, Logistic, Shape
    >>> Hinge.traits.shape is Shape.KINKED, Logistic.traits.shape is Shape.SMOOTH
    (True, True)
    """

    KINKED = "kinked"
    CORNERED = "cornered"
    SMOOTH = "smooth"


class Loss(Protocol):
    r"""The methods of a loss.

    A loss may have more. ``corners()``: the margins ``y z`` (residuals ``z - y`` of a regression)
    between which phi is a parabola, a tuple. ``steepening()``: a number M with :math:`\lvert
    \phi''' \rvert \le M \phi''`. With either of the two, proofs of decisions are much tighter.
    ``growth()``: a number G with :math:`\lvert \phi' \rvert \le G \phi`; the rounding of margins
    then counts little if the losses are small. ``probability(scores)``: the probability of the
    label +1 at an array of scores; ``predict_proba`` needs it.

    Examples
    --------
    The methods of a loss of the package, at margins 0.5 and 2 of rows with label 1:

    >>> import numpy as np
    >>> from saddlesvm.losses import SquaredHinge
    >>> loss, z = SquaredHinge(), np.array([0.5, 2.0])
    >>> loss.value(z, 1.0), loss.curvature(z, 1.0)
    (array([0.25, 0.  ]), array([2., 0.]))
    """

    def value(self, z: float, y: float) -> float:
        r""":math:`\phi(z)`."""

    def subgradient(self, z: float, y: float) -> float:
        """An element of the sub-differential of phi at z; ``a = -s`` times it is dual feasible."""

    def conjugate(self, a: float, y: float, s: float) -> float:
        r""":math:`s \phi^*(-a / s)`: a row's share of the dual; infinite if not feasible."""

    def dual_step(self, a: float, z: float, y: float, q: float, s: float) -> float:
        r"""The change d of `a` that maximises :math:`-s \phi^*(-(a + d) / s) - d z - q d^2 / 2`."""

    def slopes(self, a: float, z: float, y: float, s: float) -> tuple[float, float]:
        r"""Left and right slope of :math:`s \phi^*(-a / s) + a z`.

        Along ``a y`` (classification) or ``a`` (regression).

        Infinite if a bound blocks `a`; `a` is optimal if zero lies between the two slopes.
        """

    def curvature(self, z: float, y: float) -> float:
        """A generalised second derivative of phi at z."""

    def bounds(self, y: float, s: float) -> tuple[float, float]:
        """The interval of the feasible `a`, proportional to s."""

    def largest_curvature(self) -> float:
        """The largest second derivative of phi; infinite for a loss with kinks."""

    def __hash__(self) -> int: ...


@dataclass(frozen=True)
class Traits:
    """The declared properties of a loss; see :func:`register` for each.

    Attributes
    ----------
    name : str
    task : {"classification", "regression"}
    shape : Shape
    parabolic, exponentials, joint : bool
    options : dict of str to Allowed
    origin : str
        ``module:Class`` of its definition.
    """

    name: str
    task: Task
    shape: Shape
    parabolic: bool
    exponentials: bool
    joint: bool
    options: Mapping[str, Allowed] = field(hash=False)
    origin: str

    @property
    def is_outside(self) -> bool:
        """True if the loss is defined outside this package."""
        return self.origin.partition(".")[0] != PACKAGE


def is_loss(given: object) -> bool:
    """Return True for a registered loss: an object, or its class."""
    kind = given if isinstance(given, type) else type(given)
    return isinstance(getattr(kind, "traits", None), Traits)


def traits_of(loss: object) -> Traits:
    """The declared properties of a loss, or of its class."""
    kind: Any = loss if isinstance(loss, type) else type(loss)
    traits: Traits = kind.traits
    return traits


def loss_name(loss: object) -> str:
    """The name that :func:`make_loss` knows `loss` by."""
    return traits_of(loss).name


def is_smooth(loss: Loss) -> bool:
    """Return True if the loss has a derivative everywhere: its conjugate is strongly convex."""
    return traits_of(loss).shape is not Shape.KINKED


def is_cornerless(loss: Loss) -> bool:
    """Return True if the derivative of the loss has no corner either."""
    return traits_of(loss).shape is Shape.SMOOTH


def has_bounded_slopes(loss: Loss) -> bool:
    """Return True if the sub-gradients of the loss, and so its dual variables, are bounded."""
    return all(math.isfinite(end) for y in (-1.0, 1.0) for end in loss.bounds(y, 1.0))


def register(
    name: str,
    *,
    task: Task,
    shape: Shape | str,
    parabolic: bool,
    exponentials: bool,
    options: Mapping[str, Allowed] | None = None,
    joint: bool = False,
) -> Callable[[Kind], Kind]:
    """Make a NamedTuple class a loss; it replaces a former class of the same name and module.

    Parameters
    ----------
    name : str
        The name in ``loss="name"``, in model files and in messages.
    task : {"classification", "regression"}
        Whether y is -1 or +1 and phi depends on ``y z``, or y is a target and phi depends on ``z -
        y``.
    shape : Shape, or {"kinked", "cornered", "smooth"}
    parabolic : bool
        Whether ``phi*(t a)`` is linear or quadratic in t for t in (0, 1]: the best factor of a dual
        point then has a closed form. False is always right.
    exponentials : bool
        Whether its methods take exponentials or logarithms, so that visiting a row takes longer.
    options : mapping of str to Allowed, optional
        The allowed values of each field of the NamedTuple, such as
        :data:`saddlesvm.losses.POSITIVE`.
    joint : bool, default=False
        Whether this loss works with ``multi_class="crammer_singer"`` (whose joint problem has the
        hinge).

    Raises
    ------
    TypeError
        The class is no NamedTuple, or lacks a method.
    ValueError
        A trait is not allowed, the options do not match the fields, or another loss has this name.

    Examples
    --------
    The absolute loss again, under a name of its own; ``docs/guides/losses.md`` defines a new loss.

    >>> from typing import NamedTuple
    >>> from saddlesvm import register_loss
    >>> from saddlesvm.losses import Absolute, make_loss
    >>> @register_loss(
    ...     "median", task="regression", shape="kinked", parabolic=True, exponentials=False
    ... )
    ... class Median(NamedTuple):
    ...     value, subgradient, curvature = (
    ...         Absolute.value,
    ...         Absolute.subgradient,
    ...         Absolute.curvature,
    ...     )
    ...     conjugate, bounds, dual_step = (
    ...         Absolute.conjugate,
    ...         Absolute.bounds,
    ...         Absolute.dual_step,
    ...     )
    ...     slopes, largest_curvature = Absolute.slopes, Absolute.largest_curvature
    >>> make_loss("median").value(1.0, 3.0)
    2.0
    """

    def declare(kind: Kind) -> Kind:
        _check_class(kind, options or {})
        origin = origin_of(kind)
        # The same class may be registered again, as in a notebook; no other may take its name.
        former = LOSSES.get(name) or LOSSES.get(LOSS_ALIASES.get(name, ""))
        if former is not None and traits_of(former).origin != origin:
            raise ValueError(
                f"a loss named {name!r} exists already, {traits_of(former).origin}: choose another "
                "name"
            )
        if task not in ESTIMATORS:
            raise ValueError(
                f"loss {name!r}: task must be one of {', '.join(ESTIMATORS)}; got {task!r}"
            )
        if not name.replace("_", "").isalnum():
            raise ValueError(
                f"a loss needs a name of letters, digits and underscores; got {name!r}"
            )
        traits = Traits(
            name,
            task,
            _shape(name, shape),
            parabolic,
            exponentials,
            joint,
            dict(options or {}),
            origin,
        )
        kind.traits = traits  # type: ignore[attr-defined]
        mark_source(kind)
        LOSSES[name] = kind
        return kind

    return declare


def _check_class(kind: type, options: Mapping[str, Allowed]) -> None:
    """Raise an error that names what a class lacks to be a loss."""
    named = getattr(kind, "__qualname__", repr(kind))
    if not (isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")):
        raise TypeError(f"{named} must be a NamedTuple class whose fields are its options")
    missing = [
        f"{method}({given})"
        for method, given in ARGUMENTS.items()
        if not callable(getattr(kind, method, None))
    ]
    if missing:
        raise TypeError(f"the loss {named} lacks {', '.join(missing)}")
    if set(kind._fields) != set(options):
        raise ValueError(
            f"the loss {named} has the fields ({', '.join(kind._fields)}): declare for each of "
            f"them what it may be; options has ({', '.join(options)})"
        )


def _shape(name: str, shape: Shape | str) -> Shape:
    try:
        return Shape(shape)
    except ValueError:
        known = ", ".join(one.value for one in Shape)
        raise ValueError(f"loss {name!r}: shape must be one of {known}; got {shape!r}") from None


def names_of(task: Task | None = None) -> list[str]:
    """The names of all registered losses, or of the losses for a task."""
    return [name for name, kind in LOSSES.items() if task in (None, traits_of(kind).task)]


def parse_loss(text: str) -> tuple[type | None, dict[str, float]]:
    """Return the class and the options of ``"name"`` or ``"name:option=value,option=value"``.

    No class if none is so named.

    Raises
    ------
    ValueError
        The loss has no such option.
    """
    name, _, listed = text.partition(":")
    kind = LOSSES.get(LOSS_ALIASES.get(name, name))
    if kind is None:
        return None, {}
    if not listed:
        return kind, {}
    traits = traits_of(kind)
    return kind, parse_options(listed, traits.options, f"the loss {traits.name!r}")


def make_loss(loss: Any, *, task: Task | None = None, **given: float) -> Loss:
    """Return a loss object from its name, name and options, or class; or the object itself.

    All are checked.

    Parameters
    ----------
    loss : str, Loss or class
        A registered name or an alias, alone or with options (``"pinball:tau=0.8"``), a loss object,
        or its class.
    task : {"classification", "regression"}, optional
        The task that the loss must serve.
    **given
        Options of losses that have them, if the text does not say; no loss need have any
        of them.

    Raises
    ------
    ValueError
        The name or an option is unknown, the loss does not fit the task, or an option is missing or
        out of range.
    """
    parsed: dict[str, Any] = {}
    kind: Any = loss if isinstance(loss, type) else type(loss)
    if isinstance(loss, str):
        kind, parsed = parse_loss(loss)
        if kind is None:
            raise ValueError(
                f"unknown loss {loss!r}: use one of {', '.join(names_of(task))}, or a loss object"
            )
    elif not is_loss(kind):
        unlike = (
            f"; declare the class {kind.__name__} with @saddlesvm.register_loss"
            if hasattr(kind, "dual_step")
            else ""
        )
        raise ValueError(
            f"loss must be one of {', '.join(names_of(task))}, or a loss object; got "
            f"{loss!r}{unlike}"
        )
    traits = traits_of(kind)
    if task not in (None, traits.task):
        fitting = f"use {ESTIMATORS[traits.task]}, or one of {', '.join(names_of(task))}"
        raise ValueError(f"loss={traits.name!r} is a {traits.task} loss: {fitting}")
    # A name or class takes defaults, then options; an object has its own already.
    whole = isinstance(loss, (str, type))
    options = kind._field_defaults | given | parsed if whole else loss._asdict()
    numbers = []
    for option, allowed in traits.options.items():
        if option not in options:
            raise ValueError(
                f"the loss {traits.name!r} needs {option}, such as "
                f"loss='{traits.name}:{option}=...'"
            )
        check(option, options[option], allowed)
        numbers.append(float(options[option]))
    made: Loss = kind(**dict(zip(traits.options, numbers, strict=True))) if whole else loss
    return made


class ArrayMethods(NamedTuple):
    """The methods of a loss on arrays; each takes the loss first.

    What does not depend on a row may be a number.

    Attributes
    ----------
    value, subgradient, conjugate, dual_step, slopes, curvature, bounds : callable
        `dual_step` is None if it takes numbers only, as that of the logistic loss, which iterates.
    """

    value: Method
    subgradient: Method
    conjugate: Method
    dual_step: Method | None
    slopes: Method
    curvature: Method
    bounds: Method


@functools.lru_cache(typed=True)  # losses without options are equal tuples of different types
def methods_of(loss: object) -> ArrayMethods:
    """Return the methods of a loss on arrays: its own, or a loop if these take numbers only."""
    kind: Any = type(loss)
    found: dict[str, Method | None] = {}
    slow = []
    for name in ArrayMethods._fields:
        method = getattr(kind, name)
        # A loss written with conditionals of Python is called number by number.
        if _takes_arrays(loss, name):
            found[name] = method
        elif name == "dual_step":
            found[name] = None
        else:
            slow.append(name)
            found[name] = _one_by_one(method, 2 if name in PAIRS else 1)
    if slow:
        warnings.warn(
            f"the loss {loss_name(loss)!r} computes {', '.join(slow)} one number after the other "
            "on small data, since they take no arrays: write select(condition, a, b) of "
            "saddlesvm.losses for a conditional, numpy.maximum and numpy.minimum for max and min, "
            "and NumPy's functions for those of math",
            stacklevel=2,
        )
    return ArrayMethods(**found)  # type: ignore[arg-type]


@functools.lru_cache(typed=True)  # losses without options are equal tuples of different types
def has_array_methods(loss: object) -> bool:
    """Return True if all methods of a loss but `dual_step` take arrays."""
    return all(_takes_arrays(loss, name) for name in ArrayMethods._fields if name != "dual_step")


def _takes_arrays(loss: object, name: str) -> bool:
    """Return True if a method of a loss computes arrays from arrays."""
    given = [PROBE[one] for one in ARGUMENTS[name].split(", ")]
    try:
        with np.errstate(all="ignore"):
            result = getattr(loss, name)(*given)
            # A method may return a number if its result is the same for all rows.
            return all(
                np.shape(one) in ((), (2,)) for one in (result if name in PAIRS else (result,))
            )
    except (TypeError, ValueError):
        # The condition of an `if` is an array, or a function of `math` got one.
        return False


def _one_by_one(method: Method, results: int) -> Method:
    """Let a method of numbers take arrays."""

    def on_arrays(loss: object, *given: Any) -> Any:
        return np.vectorize(functools.partial(method, loss), otypes=results * [float])(*given)

    return on_arrays


def _of_loss(name: str) -> Callable[..., Callable[..., object] | None]:
    """Choose the method `name` of the loss that the first argument's type stands for."""

    def pick(loss: types.Type, *_: types.Type) -> Callable[..., object] | None:
        return getattr(python_class(loss), name, None)

    return pick


@operation(_of_loss("value"))
def value(loss: Loss, z: float, y: float) -> float:
    """phi(z)."""
    return loss.value(z, y)


@operation(_of_loss("subgradient"))
def subgradient(loss: Loss, z: float, y: float) -> float:
    """An element of the sub-differential of phi at z; ``a = -s`` times it is dual feasible."""
    return loss.subgradient(z, y)


@operation(_of_loss("conjugate"))
def conjugate(loss: Loss, a: float, y: float, s: float) -> float:
    """``s phi*(-a / s)``, a row's share of the dual; infinite if a is not feasible."""
    return loss.conjugate(a, y, s)


@operation(_of_loss("dual_step"))
def dual_step(loss: Loss, a: float, z: float, y: float, q: float, s: float) -> float:
    """The change d of `a` that maximises ``-s phi*(-(a + d) / s) - d z - q d^2 / 2``."""
    return loss.dual_step(a, z, y, q, s)


@operation(_of_loss("slopes"))
def slopes(loss: Loss, a: float, z: float, y: float, s: float) -> tuple[float, float]:
    """Left and right slope of the negated dual along a y (classification) or a (regression)."""
    return loss.slopes(a, z, y, s)


@operation(_of_loss("curvature"))
def curvature(loss: Loss, z: float, y: float) -> float:
    """A generalised second derivative of phi at z."""
    return loss.curvature(z, y)


@operation(_of_loss("bounds"))
def bounds(loss: Loss, y: float, s: float) -> tuple[float, float]:
    """The interval of the feasible dual variables."""
    return loss.bounds(y, s)
