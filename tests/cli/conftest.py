"""For the tests of the command line: a call of it in this process."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from saddlesvm.cli import parser as cli


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """The exit code, output and errors of a command, given by its words."""

    def call(*arguments: object) -> tuple[int, str, str]:
        try:
            code = cli.main([str(argument) for argument in arguments])
        except SystemExit as ended:
            code = int(ended.code or 0)
        said = capsys.readouterr()
        return code, said.out, said.err

    return call
