"""What the command line answers before it loads anything heavy, and that what it tells then is true."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from typing import get_args

import pytest

import saddlesvm
from saddlesvm import cli, data
from saddlesvm.cli import options, program
from saddlesvm.estimators import HOMES, register
from saddlesvm.kernel.kernel_fits import KERNEL_SOLVERS
from saddlesvm.multiclass import splits
from saddlesvm.problem.intercepts import InterceptName
from saddlesvm.problem.loss import LOSS_ALIASES, LOSSES, traits_of
from saddlesvm.problem.margin_losses import ClassificationLoss
from saddlesvm.problem.residual_losses import RegressionLoss
from saddlesvm.runtime import option_names
from saddlesvm.runtime.lazy import LateFunction
from saddlesvm.solvers import SOLVERS

HEAVY = ("numpy", "scipy", "sklearn", "numba", "joblib", "rich")
ANSWERS = [
    (["--help"], 0, "Usage: saddlesvm"),
    ([], 2, "Usage: saddlesvm"),
    (["--version"], 0, saddlesvm.__version__),
    *([name, "--help"] for name in program.COMMANDS),
    (["fly"], 2, "there is no command 'fly'"),
    (["train", "nothing.csv"], 2, "nothing.csv: no such file"),
    (["train", "banknote", "--test", "nothing.csv"], 2, "nothing.csv: no such file"),
    (["train", "banknote", "--model", "nowhere/model"], 2, "its folder does not exist"),
    (["train", "banknote", "--kernel", "rbff"], 2, "is not one of"),
    (["train", "banknote", "--wings", "2"], 2, "No such option"),
    (["predict", "no.model", "banknote"], 2, "no.model: no such file"),
    (["convert", "nothing.csv", "made.store"], 2, "nothing.csv: no such file"),
]
ASK = """
import contextlib, io, json, sys
from saddlesvm.cli import main
found = []
for words in json.loads(sys.argv[1]):
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = main(words)
    found.append((code, said.getvalue(), [name for name in json.loads(sys.argv[2]) if name in sys.modules]))
print(json.dumps(found))
"""


def test_help_and_errors_load_nothing_heavy(tmp_path):
    answers = [one if isinstance(one, tuple) else (one, 0, f"saddlesvm {one[0]}") for one in ANSWERS]
    asked = json.dumps([one[0] for one in answers])
    told = subprocess.run(
        [sys.executable, "-c", ASK, asked, json.dumps(HEAVY)], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    for (given, code, words), (ended, said, loaded) in zip(answers, json.loads(told.stdout), strict=True):
        assert (ended, loaded) == (code, []), given
        assert words in said, given


def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, saddlesvm, saddlesvm.data; print([name for name in sys.argv[1:] if name in sys.modules])"
    told = subprocess.run([sys.executable, "-c", code, *HEAVY], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


@pytest.mark.parametrize("package", [saddlesvm, data], ids=lambda one: one.__name__)
def test_every_public_name_is_there(package):
    for name in package.__all__:
        assert getattr(package, name) is not None
        assert name in dir(package)
    with pytest.raises(AttributeError, match="no attribute 'Forest'"):
        _ = package.Forest


def test_a_function_stays_one_when_its_room_is_imported():
    importlib.import_module("saddlesvm.data.conversion")
    assert callable(data.convert)


def test_the_package_lists_all_that_it_registers():
    for home in HOMES.values():
        importlib.import_module(home)
    own = [one.name for one in register.list_entries() if one.kind.__module__.startswith("saddlesvm.")]
    assert own == list(HOMES)


def test_the_words_are_those_that_are_registered():
    own = {name: kind for name, kind in LOSSES.items() if kind.__module__.startswith("saddlesvm.")}
    for task, text in (
        ("classification", options.CLASSIFICATION_LOSSES),
        ("regression", options.REGRESSION_LOSSES),
    ):
        named = [word.split(" ")[0] for word in text.split(", ") if word != "..."]
        assert {traits_of(own[name]).task for name in named} == {task}
    assert {*get_args(ClassificationLoss), *get_args(RegressionLoss)} == {*own, *LOSS_ALIASES}
    assert {*get_args(option_names.SolverName)} == {
        name for name, kind in SOLVERS.items() if kind.__module__.startswith("saddlesvm.")
    }
    assert {*get_args(option_names.KernelSolver)} == {*KERNEL_SOLVERS}
    assert {*option_names.INTERCEPTS} == {*get_args(InterceptName)}
    assert get_args(option_names.MultiClass) == (*splits.SPLITS, *splits.JOINT)
    assert get_args(option_names.ScoreShape) == splits.SPLITS


def test_an_interruption_while_the_program_starts_is_silent(monkeypatch, capsys):
    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(LateFunction, "load", interrupted)
    assert cli.main(["info", "toy"]) == 130
    assert capsys.readouterr() == ("", "")


def test_ctrl_c_within_an_import_of_compiled_code_is_told_as_such(monkeypatch, capsys):
    def interrupted(name):
        raise ImportError("initialization failed") from KeyboardInterrupt()

    monkeypatch.setattr("saddlesvm.cli.program.import_command", interrupted)
    assert cli.main(["info", "toy"]) == 130
    assert capsys.readouterr().err == "saddlesvm: interrupted\n"
