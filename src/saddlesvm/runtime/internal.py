"""Methods that other modules of the package call and users do not: kept out of the reference and of ``dir``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

Method = TypeVar("Method", bound=Callable[..., object])
MARK = "_saddlesvm_internal"


def internal(method: Method) -> Method:
    """Mark a method as internal, with those of subclasses that override it."""
    setattr(method, MARK, True)
    return method


def is_internal(kind: type, name: str) -> bool:
    """Whether a class or one of its bases marks a method of this name as internal."""
    return any(hasattr(vars(base).get(name), MARK) for base in kind.__mro__)


class PublicDir:
    """Leaves internal methods out of ``dir(object)``, which completion in notebooks offers."""

    def __dir__(self) -> Iterable[str]:
        return [name for name in super().__dir__() if not is_internal(type(self), name)]
