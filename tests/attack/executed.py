"""Which lines of a file a test executes, and which lines belong to one statement."""

from __future__ import annotations

import ast
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def executed(path: Path) -> Iterator[set[int]]:
    """The numbers of a file's lines that are executed within the context, in every thread that begins there."""
    name, lines = str(path), set[int]()

    def of_line(frame: Any, event: str, argument: Any) -> Any:
        if event == "line":
            lines.add(frame.f_lineno)
        return of_line

    def of_call(frame: Any, event: str, argument: Any) -> Any:
        return of_line if frame.f_code.co_filename == name else None

    before = sys.gettrace()
    threading.settrace(of_call)
    sys.settrace(of_call)
    try:
        yield lines
    finally:
        sys.settrace(before)
        threading.settrace(None)  # type: ignore[arg-type]


def statement_at(text: str, line: int) -> range:
    """The lines of the smallest statement at a line; of one that holds others, its lines before them if it is there."""
    found = range(1, len(text.splitlines()) + 1)
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.stmt):
            continue
        whole = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        inner = [one.lineno for one in ast.walk(node) if isinstance(one, ast.stmt) and one is not node]
        head = range(node.lineno, max(min(inner, default=whole.stop), node.lineno + 1))
        for lines in (whole, head):
            if line in lines and len(lines) < len(found):
                found = lines
    return found


def body_of(text: str, line: int) -> range | None:
    """The lines of the body of the function whose arguments stand at a line; None at other lines."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.lineno <= line < node.body[0].lineno:
            return range(node.body[0].lineno, (node.end_lineno or 0) + 1)
    return None
