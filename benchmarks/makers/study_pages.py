"""Bring the pages in docs/study up to date: the lines of the kernels that they show, and their pictures.

    <!-- lines of saddlesvm.solvers.dcd.visit_rows -->  the body of that function, its docstring left out
    <!-- end -->

python benchmarks/makers/study_pages.py [--check] [--pictures]
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import re
import subprocess
import sys
import textwrap
from pathlib import Path

from saddlesvm.data import atomic_write

PAGES = Path(__file__).parents[2] / "docs" / "study"
COLUMN = 88  # characters of a line of code on a page
LINES = re.compile(r"<!-- lines of ([\w.]+) -->\n(.*?)<!-- end -->", re.DOTALL)
COMMENT = re.compile(r"^([ ]*)#.*\n(?:\1#.*\n)*", re.MULTILINE)  # whole lines with the same indent


def lines_of(name: str) -> str:
    """The source of a function without its decorators and its docstring, as a Markdown block."""
    module, _, function = name.rpartition(".")
    found = getattr(importlib.import_module(module), function)
    source = textwrap.dedent(inspect.getsource(getattr(found, "py_func", found)))
    node = ast.parse(source).body[0]
    assert isinstance(node, ast.FunctionDef)
    rows = source.splitlines()
    head = rows[node.lineno - 1 : node.body[0].lineno - 1]
    body = rows[node.body[0].end_lineno :]
    if ast.get_docstring(node) is None:
        body = rows[node.body[0].lineno - 1 :]
    return f"```py\n{fitted(chr(10).join([*head, *body]))}```\n"


def fitted(code: str) -> str:
    """The code in lines that fit the column of a page, as `ruff format` breaks them."""
    run = ["ruff", "format", "--isolated", "--line-length", str(COLUMN), "--stdin-filename", "excerpt.py", "-"]
    made = subprocess.run(run, input=code, capture_output=True, text=True, check=True).stdout
    return COMMENT.sub(with_short_lines, made)


def with_short_lines(comment: re.Match[str]) -> str:
    """A comment of whole lines, filled again if one of them is too wide for the column."""
    if all(len(line) <= COLUMN for line in comment[0].splitlines()):
        return comment[0]
    begin = f"{comment[1]}# "
    words = " ".join(line.strip().removeprefix("#").strip() for line in comment[0].splitlines())
    return textwrap.fill(words, COLUMN, initial_indent=begin, subsequent_indent=begin) + "\n"


def filled(text: str) -> str:
    """A page with all its excerpts as the sources are now."""
    return LINES.sub(lambda found: f"<!-- lines of {found[1]} -->\n{lines_of(found[1])}<!-- end -->", text)


def main() -> int:
    """Fill the pages, or only compare them; the exit code is 1 where one is out of date."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; say which pages are out of date")
    parser.add_argument("--pictures", action="store_true", help="draw the pictures again too, in half a minute")
    options = parser.parse_args()
    stale = []
    for page in sorted(PAGES.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        made = filled(text)
        if made != text:
            stale.append(page.name)
            if not options.check:
                with atomic_write(page) as file:
                    file.write(made.encode())
    if options.pictures and not options.check:
        import study_pictures

        study_pictures.draw_all(PAGES / "pictures")
    print(*stale or ["all pages are up to date"], sep="\n")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
