"""The help of the command line: plain words, options in groups, examples that parse."""

from __future__ import annotations

import argparse
import re
import shlex

import pytest

from saddlesvm.cli import parser as cli
from saddlesvm.cli.arguments import known_command
from saddlesvm.cli.options import COMMANDS, GROUPS
from saddlesvm.estimators import HOMES, register

WHOLE_HELP = [name for name, command in COMMANDS.items() if command.fits]


def commands():
    parser = cli.make_parser()
    return next(one.choices for one in parser._actions if isinstance(one, argparse._SubParsersAction))


@pytest.fixture
def said(capsys):
    def call(*words: str) -> str:
        with pytest.raises(SystemExit) as ended:
            cli.main(list(words))
        assert ended.value.code == 0
        return capsys.readouterr().out

    return call


@pytest.mark.parametrize("name", commands())
def test_a_command_has_two_examples_and_shows_all_its_options(name, said):
    parser, examples = commands()[name], known_command(COMMANDS[name].run).examples
    assert len(examples) == 2
    assert said(name, "--help").count(f"  saddlesvm {name}") == 2
    whole = said(name, "--help-all" if name in WHOLE_HELP else "--help")
    for action in parser._actions:
        assert all(spelling in whole for spelling in action.option_strings), action.dest
    for example in examples:
        parser.parse_args(shlex.split(example)[2:])


@pytest.mark.parametrize("name", commands())
def test_help_speaks_of_the_command_line_and_not_of_python(name, said):
    whole = said(name, "--help-all" if name in WHOLE_HELP else "--help")
    assert not re.search(r":\w+:|[`\u201c\u201d]|\b(None|True|False|ndarray|float, optional|SDCA\()", whole)


@pytest.mark.parametrize("name", WHOLE_HELP)
def test_every_option_of_a_fit_is_in_a_group(name):
    grouped = {option for options in GROUPS.values() for option in options}
    own = [entry for entry in register.known() if entry.name not in HOMES]  # of other tests
    grouped |= {option for entry in own for option in entry.options}
    assert {one.dest for one in commands()[name]._actions} <= grouped


def test_the_help_of_train_is_a_screen_and_a_half(said):
    assert len(said("train", "--help").splitlines()) <= 39
