"""For the tests of the command line: a call of it in this process."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner

from saddlesvm import cli

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run() -> Run:
    """The exit code, output and errors of a command, given by its words."""

    def call(*words: object, stdin: str | None = None) -> tuple[int, str, str]:
        with CliRunner().isolation(input=stdin) as (out, err, _):
            code = cli.main([str(word) for word in words])
            sys.stderr.flush()
        return code, out.getvalue().decode(), err.getvalue().decode()

    return call


@pytest.fixture
def told(run: Run) -> Callable[..., dict[str, Any]]:
    """What a command tells as JSON; it succeeds, unless another exit code is expected."""

    def call(*words: object, stdin: str | None = None, code: int = 0) -> dict[str, Any]:
        ended, out, err = run(*words, "--json", stdin=stdin)
        assert ended == code, err
        found: dict[str, Any] = json.loads(out)
        return found

    return call


@pytest.fixture
def refusal(run: Run) -> Callable[..., str]:
    """The one line of a command that is refused before it prints anything."""

    def call(*words: object, stdin: str | None = None) -> str:
        code, out, err = run(*words, stdin=stdin)
        assert (code, out) == (2, ""), err
        assert err.startswith("saddlesvm: error: ") and err.count("\n") == 1, err
        return err

    return call
