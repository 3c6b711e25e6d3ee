"""The help of the command line: a screen, plain words, examples that parse, true defaults."""

from __future__ import annotations

import re
import shlex

import click
import pytest
from click.shell_completion import ShellComplete

from saddlesvm import LinearSVC
from saddlesvm.cli.command import Command
from saddlesvm.cli.program import COMMANDS, program

CONTEXT = click.Context(program, info_name="saddlesvm")
FOUND = {name: program.get_command(CONTEXT, name) for name in COMMANDS}
SCREEN = 40  # lines


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_is_a_screen_with_two_examples_that_parse(name, run, monkeypatch):
    code, out, _ = run(name, "--help")
    assert code == 0
    assert len(out.splitlines()) <= SCREEN
    assert out.count(f"  saddlesvm {name}") == 2
    command = FOUND[name]
    for parameter in command.params:  # the files of the examples are not there
        monkeypatch.setattr(parameter.type, "check", lambda name: None, raising=False)
    examples = re.findall(rf"^ +(saddlesvm {name} .*)$", command.epilog, re.M)
    assert len(examples) == 2
    for example in examples:
        command.make_context(name, shlex.split(example)[2:], parent=CONTEXT)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_shown_once(name, run):
    whole = run(name, "--help")[1]
    for option in FOUND[name].params:
        for flag in option.opts if isinstance(option, click.Option) else ():
            assert len(re.findall(rf"^  (?:-\w, )?{flag}\b|, {flag}\b", whole, re.M)) == 1, flag


@pytest.mark.parametrize("name", COMMANDS)
def test_help_speaks_of_the_command_line_and_not_of_python(name, run):
    whole = run(name, "--help")[1]
    assert not re.search(r":\w+:|[`\u201c\u201d]|\b(None|True|False|ndarray|float, optional|SDCA\()", whole)


def test_defaults_that_the_help_tells_are_those_of_the_estimator():
    told = {}
    for option in FOUND["train"].params:
        found = re.search(
            r"(?:^|[ ,.;])([\w.-]+)(?: \(default\)| by default|  for linear models| for linear models)",
            option.help or "",
        )
        if found and option.name not in ("label", "folds", "seed", "header", "zero_based"):
            told[option.name] = found[1]
    defaults = LinearSVC().get_params()
    assert told.keys() >= {"loss", "penalty", "tol", "intercept"}
    assert told == {name: str(defaults[name]).replace("0.0001", "1e-4") for name in told}


def test_the_shell_completes_commands_options_and_data():
    complete = ShellComplete(program, {}, "saddlesvm", "_SADDLESVM_COMPLETE")

    def offered(words, incomplete):
        return {one.value for one in complete.get_completions(words, incomplete)}

    assert "train" in offered([], "tr")
    assert {"--class-weight", "--C"} <= offered(["train", "heart"], "--")
    assert "rbf" in offered(["train", "heart", "--kernel"], "r")
    assert "banknote" in offered(["train"], "bank")
    assert offered(["predict", "no.model"], "no-such")  # a name that is not whole is no error


def test_commands_are_of_one_class():
    assert all(isinstance(one, Command) for one in FOUND.values())
