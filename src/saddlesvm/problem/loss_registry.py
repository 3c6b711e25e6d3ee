"""The losses by their names: registration, what it checks, and a loss object from a name and options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from saddlesvm.problem.loss import ARGUMENTS, Loss, Shape, Task, Traits, is_loss, loss_name, traits_of
from saddlesvm.runtime.allowed import Allowed, check
from saddlesvm.runtime.class_sources import mark_source
from saddlesvm.runtime.words import LOSS_ALIASES

ESTIMATORS: dict[str, str] = {"classification": "LinearSVC", "regression": "LinearSVR"}
ALIASES = LOSS_ALIASES

LOSSES: dict[str, type] = {}  # every registered loss by its name
Kind = TypeVar("Kind", bound=type)


class UnregisteredLoss(LookupError):
    """A model file names a loss from outside the package that was not registered in this process."""

    def __init__(self, name: Any, origin: Any) -> None:
        super().__init__(name, origin)
        self.name, self.origin = name, origin

    def __str__(self) -> str:
        if self.origin is None:
            return f"has the loss {self.name!r}, which this version does not know"
        return (
            f"has the loss {self.name!r} of {self.origin}, which is not registered here: import its module first "
            f"(import {str(self.origin).partition(':')[0]}), or give --loss {self.origin} on the command line"
        )


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
    """A decorator that makes a NamedTuple class a loss; a class of the same name and module replaces the former one.

    Parameters
    ----------
    name : str
        The name in ``loss="name"``, in model files and in messages.
    task : {"classification", "regression"}
        Whether y is -1 or +1 and phi depends on ``y z``, or y is a target and phi depends on ``z - y``.
    shape : Shape, or {"kinked", "cornered", "smooth"}
    parabolic : bool
        Whether ``phi*(t a)`` is linear or quadratic in t for t in (0, 1]: the best factor of a dual point then has a
        closed form. False is always right.
    exponentials : bool
        Whether its methods take exponentials or logarithms, so that visiting a row takes longer.
    options : mapping of str to Allowed, optional
        The allowed values of each field of the NamedTuple, such as :data:`saddlesvm.losses.POSITIVE`.
    joint : bool, default=False
        Whether this loss works with ``multi_class="crammer_singer"`` (whose joint problem has the hinge).

    Raises
    ------
    TypeError
        The class is no NamedTuple, or lacks a method.
    ValueError
        A trait is not allowed, the options do not match the fields, or another loss has this name.

    Examples
    --------
    The absolute loss again, under a name of its own; ``docs/losses.md`` writes a new one out.

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
        origin = f"{kind.__module__}:{kind.__qualname__}"
        former = LOSSES.get(name) or LOSSES.get(ALIASES.get(name, ""))
        if former is not None and traits_of(former).origin != origin:
            raise ValueError(f"a loss named {name!r} exists already, {traits_of(former).origin}: choose another name")
        if task not in ESTIMATORS:
            raise ValueError(f"loss {name!r}: task must be one of {', '.join(ESTIMATORS)}; got {task!r}")
        if not name.replace("_", "").isalnum():
            raise ValueError(f"a loss needs a name of letters, digits and underscores; got {name!r}")
        traits = Traits(name, task, _shape(name, shape), parabolic, exponentials, joint, dict(options or {}), origin)
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
    missing = [f"{method}({given})" for method, given in ARGUMENTS.items() if not callable(getattr(kind, method, None))]
    if missing:
        raise TypeError(f"the loss {named} lacks {', '.join(missing)}")
    if set(kind._fields) != set(options):
        raise ValueError(
            f"the loss {named} has the fields ({', '.join(kind._fields)}): declare for each of them what it may be; "
            f"options has ({', '.join(options)})"
        )


def _shape(name: str, shape: Shape | str) -> Shape:
    try:
        return Shape(shape)
    except ValueError:
        known = ", ".join(one.value for one in Shape)
        raise ValueError(f"loss {name!r}: shape must be one of {known}; got {shape!r}") from None


def names_of(task: Task | None = None) -> list[str]:
    """The names of all registered losses, or of those for a task."""
    return [name for name, kind in LOSSES.items() if task in (None, traits_of(kind).task)]


def parse_loss(text: str) -> tuple[type | None, dict[str, Any]]:
    """The class and the options of ``"name"`` or ``"name:option=value,option=value"``; no class if none is so named.

    Raises
    ------
    ValueError
        The loss has no such option.
    """
    name, _, listed = text.partition(":")
    kind = LOSSES.get(ALIASES.get(name, name))
    return kind, read_options(kind, listed) if kind is not None and listed else {}


def read_options(kind: type, listed: str) -> dict[str, Any]:
    """The options of ``"option=value,option=value"``; a value that is no number is left as it is.

    Raises
    ------
    ValueError
        The loss has no such option.
    """
    traits = traits_of(kind)
    found: dict[str, Any] = {}
    for option, equals, text in (one.partition("=") for one in listed.split(",") if one):
        if option not in traits.options or not equals:
            known = ", ".join(traits.options) or "none"
            raise ValueError(f"the loss {traits.name!r} has no option {option!r}; it has: {known}")
        try:
            found[option] = float(text)
        except ValueError:
            found[option] = text
    return found


def make_loss(loss: Any, *, task: Task | None = None, **given: float) -> Loss:
    """A loss object from its name, from name and options, or from its class; or the object itself. All checked.

    Parameters
    ----------
    loss : str, Loss or class
        A registered name or an alias, alone or with options (``"pinball:tau=0.8"``), a loss object, or its class.
    task : {"classification", "regression"}, optional
        The task that the loss must serve.
    **given
        Options of those losses that have them, where the text does not say; no loss need have any of them.

    Raises
    ------
    ValueError
        The name or an option is unknown, the loss does not fit the task, or an option is missing or out of range.
    """
    parsed: dict[str, Any] = {}
    kind: Any = loss if isinstance(loss, type) else type(loss)
    if isinstance(loss, str):
        kind, parsed = parse_loss(loss)
        if kind is None:
            raise ValueError(f"unknown loss {loss!r}: use one of {', '.join(names_of(task))}, or a loss object")
    elif not is_loss(kind):
        unlike = (
            f"; declare the class {kind.__name__} with @saddlesvm.register_loss" if hasattr(kind, "dual_step") else ""
        )
        raise ValueError(f"loss must be one of {', '.join(names_of(task))}, or a loss object; got {loss!r}{unlike}")
    traits = traits_of(kind)
    if task not in (None, traits.task):
        fitting = f"use {ESTIMATORS[traits.task]}, or one of {', '.join(names_of(task))}"
        raise ValueError(f"loss={traits.name!r} is a {traits.task} loss: {fitting}")
    whole = isinstance(loss, (str, type))
    options = kind._field_defaults | given | parsed if whole else loss._asdict()
    numbers = []
    for option, allowed in traits.options.items():
        if option not in options:
            raise ValueError(f"the loss {traits.name!r} needs {option}, such as loss='{traits.name}:{option}=...'")
        check(option, options[option], allowed)
        numbers.append(float(options[option]))
    made: Loss = kind(**dict(zip(traits.options, numbers, strict=True))) if whole else loss
    return made


def spelled(loss: Loss) -> str:
    """The text that :func:`make_loss` reads as this loss; options at their defaults are left out."""
    kind: Any = type(loss)
    options: dict[str, float] = loss._asdict()  # type: ignore[attr-defined]
    parts = [f"{option}={value:.12g}" for option, value in options.items() if value != kind._field_defaults.get(option)]
    return f"{loss_name(loss)}:{','.join(parts)}" if parts else loss_name(loss)


def split_losses(text: str) -> list[str]:
    """The losses of a list with commas, some of which stand between the options of one: ``"hinge,own:a=1,b=2"``."""
    found: list[str] = []
    for part in (one.strip() for one in text.split(",")):
        if found and "=" in part and ":" not in part:
            found[-1] += f",{part}"
        else:
            found.append(part)
    return found


def plain_loss(loss: Any) -> Any:
    """A loss, its class or its text as JSON can hold it; with the place of its class if that is not this package."""
    text = loss if isinstance(loss, str) else None
    kind = loss if text is None else parse_loss(loss)[0]
    if kind is None or (text is not None and not traits_of(kind).is_outside):
        return text
    options = None if text is not None or isinstance(loss, type) else loss._asdict()
    plain = {"loss": loss_name(kind), "options": options}
    return plain | {"text": text, "origin": traits_of(kind).origin} if traits_of(kind).is_outside else plain


def loss_from_plain(plain: Mapping[str, Any]) -> Any:
    """The loss given to :func:`plain_loss`. Nothing is imported: a user's own loss must have been registered before.

    Raises
    ------
    UnregisteredLoss
        The loss was not registered.
    """
    name, origin, text = plain["loss"], plain.get("origin"), plain.get("text")
    kind: Any = LOSSES.get(name)
    if kind is None or origin not in (None, traits_of(kind).origin):
        raise UnregisteredLoss(name, origin)
    if text is not None:
        return text
    return kind if plain["options"] is None else kind(**plain["options"])
