"""Every block of code on every page runs, in the order of the page, in a folder of its own.

``python`` and ``pycon`` blocks of a page share one set of names; of ``console`` blocks the lines that begin with
``$ saddlesvm`` are run, and must end with exit code 0. A block that cannot run is preceded by
``<!-- not run: reason -->``.
"""

from __future__ import annotations

import doctest
import re
import shlex
import warnings
from pathlib import Path
from typing import Any

import pytest
from pages import ROOT, Block, blocks, pages

from saddlesvm.cli import main

LABEL = re.compile(
    r"(  )?[a-z]"
)  # the beginning of a line of facts; deeper ones are continued text
FENCE = re.compile(
    r"^(?P<fence>`{3,})(?P<directive>\{?)[^\n]*\n(?P<code>.*?)^(?P=fence)$", re.M | re.S
)
COLUMN = 88  # characters of a line of code on a page
WITH_BLOCKS = [page for page in pages() if blocks(page)]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def run_python(block: Block, page: Path, names: dict[str, Any]) -> None:
    """Run a block as it is printed; errors name the line of the page."""
    exec(compile("\n" * (block.line - 1) + block.code, str(page), "exec"), names)


def run_session(block: Block, page: Path, names: dict[str, Any]) -> None:
    """Run a block with prompts, and compare what it prints."""
    test = doctest.DocTestParser().get_doctest(
        block.code, names, page.name, str(page), block.line - 1
    )
    said: list[str] = []
    failed, _ = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(
        test, out=said.append, clear_globs=False
    )
    names.update(test.globs)
    assert not failed, "".join(said)


def run_commands(block: Block, capsys: pytest.CaptureFixture[str]) -> None:
    """Run the lines that call the command line; every label that the page shows must be among what they printed."""
    shown = []
    for line in block.code.replace(
        "\\\n", ""
    ).splitlines():  # a backslash continues a line
        if line.startswith("$ saddlesvm "):
            code = main(expanded(shlex.split(line.removeprefix("$ saddlesvm "))))
            assert code == 0, f"{line}: exit code {code}; {capsys.readouterr().err}"
        elif LABEL.match(line):
            shown.append(line.strip().split("  ")[0])
    said = capsys.readouterr().out
    assert all(label in said for label in shown), [
        label for label in shown if label not in said
    ]


def expanded(words: list[str]) -> list[str]:
    """Patterns replaced by the files that they stand for, as a shell does."""
    return [
        one
        for word in words
        for one in (sorted(map(str, Path().glob(word))) if "*" in word else [word])
    ]


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_code_fits_its_column(page: Path) -> None:
    wide = [
        line
        for block in FENCE.finditer(page.read_text(encoding="utf-8"))
        if not block["directive"]
        for line in block["code"].splitlines()
        if len(line) > COLUMN
    ]
    assert not wide, "\n".join(wide)


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=name_of)
def test_every_block_of_a_page_runs(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__page__"}
    with warnings.catch_warnings():
        for block in blocks(page):
            if block.excuse:
                continue
            if block.language == "python":
                run_python(block, page, names)
            elif block.language == "pycon":
                run_session(block, page, names)
            else:
                run_commands(block, capsys)
