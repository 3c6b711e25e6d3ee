"""A pytest plugin that says which kernels some tests have called, and fails where one was not.

    NUMBA_DISABLE_JIT=1 python -m pytest -p tests.attack.kernels TESTS
    NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(mktemp -d) python -m pytest -p tests.attack.kernels TESTS

A kernel is a function with one of the decorators of :mod:`saddlesvm.runtime.compiled`. As plain Python it is met where
it is called; compiled, where Numba has compiled it, for itself or into another kernel (so the cache must be empty).
"""

from __future__ import annotations

import ast
import gc
import sys
import threading
from pathlib import Path
from types import CodeType
from typing import Any

SOURCE = Path(__file__).resolve().parents[2] / "src" / "saddlesvm"
DECORATORS = {
    "kernel",
    "allocating_kernel",
    "searching_kernel",
    "allocating_search",
    "inlined",
    "inlined_search",
}
Place = tuple[str, int]  # a file, and the first line of a function, that of its first decorator
seen: set[CodeType] = set()


def kernels() -> dict[Place, str]:
    """The name of each kernel, by its place."""
    found = {}
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and DECORATORS & {
                getattr(one, "id", "") for one in node.decorator_list
            }:
                home = ".".join(file.relative_to(SOURCE).with_suffix("").parts)
                found[str(file), node.decorator_list[0].lineno] = f"{home}.{node.name}"
    return found


def called(frame: Any, event: str, argument: Any) -> None:
    """Note the code that a thread calls."""
    seen.add(frame.f_code)


def met() -> set[Place]:
    """The places of the functions that were called, or compiled."""
    from saddlesvm.runtime.compiled import Compiled

    codes = set(seen)
    for one in gc.get_objects():
        if type(one) is Compiled and one.made is not None and one.made.overloads:
            codes.add(one.py_func.__code__)
    return {(code.co_filename, code.co_firstlineno) for code in codes}


def pytest_sessionstart() -> None:
    """Begin to note calls, where kernels are plain Python."""
    from saddlesvm.runtime.compiled import INTERPRETED

    if INTERPRETED:
        threading.setprofile(called)
        sys.setprofile(called)


def pytest_sessionfinish(session: Any) -> None:
    """Say which kernels were not met; all must be."""
    sys.setprofile(None)
    threading.setprofile(None)  # type: ignore[arg-type]
    known, there = kernels(), met()
    missing = sorted(name for place, name in known.items() if place not in there)
    print(f"\n{len(known) - len(missing)} of {len(known)} kernels were met; not met: {', '.join(missing) or 'none'}")
    if missing and session.exitstatus == 0:
        session.exitstatus = 1
