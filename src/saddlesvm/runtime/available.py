"""Methods that an object has with some options only, and that say what to do without them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import MethodType
from typing import Any, cast


class Available:
    """A method that exists if a check does not raise AttributeError.

    Like :func:`sklearn.utils.metaestimators.available_if`, whose message names the method alone.
    """

    def __init__(self, method: Callable[..., object], check: Callable[[object], object]) -> None:
        self.method = method
        self.check = check
        functools.update_wrapper(cast(Any, self), method)

    def refuse(self, thing: object) -> None:
        """Raise AttributeError, with what the check says, if the object has no such method."""
        name = self.method.__name__
        try:
            self.check(thing)
        except AttributeError as error:
            kind = type(thing).__name__
            message = f"This {kind!r} has no attribute {name!r}: {error}"
            raise AttributeError(message, name=name, obj=thing) from None

    def __get__(self, thing: object, owner: type | None = None) -> Callable[..., object]:
        if thing is not None:
            self.refuse(thing)
            return MethodType(self.method, thing)

        # The method of the class takes the object as its first argument.
        @functools.wraps(self.method)
        def check_and_call(estimator: object, *given: object, **options: object) -> object:
            self.refuse(estimator)
            return self.method(estimator, *given, **options)

        return check_and_call


def available_if(check: Callable[[object], object]) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a method that exists if `check` does not raise AttributeError."""
    return functools.partial(Available, check=check)
