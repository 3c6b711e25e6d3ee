"""What the command line answers before it loads anything heavy, and that what it tells then is true."""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
from typing import get_args

import pytest

import saddlesvm
from saddlesvm import cli, data
from saddlesvm.cli import arguments, parser
from saddlesvm.estimators import register
from saddlesvm.estimators.persistence import load
from saddlesvm.multiclass import splits
from saddlesvm.multiclass.kernel_fit import KERNEL_SOLVERS
from saddlesvm.problem.intercepts import InterceptName
from saddlesvm.problem.loss import ALIASES, LOSSES, traits_of
from saddlesvm.problem.margin_losses import ClassificationLoss
from saddlesvm.problem.residual_losses import RegressionLoss
from saddlesvm.rows.kernels import KERNELS
from saddlesvm.runtime import option_names
from saddlesvm.runtime.lazy import Later
from saddlesvm.solvers import SOLVERS

HEAVY = ("numpy", "scipy", "sklearn", "numba", "joblib", "rich")
ANSWERS = [
    (["--help"], 0, "usage: saddlesvm"),
    (["--version"], 0, saddlesvm.__version__),
    (["train", "--help"], 0, "--class-weight"),
    (["path", "--help"], 0, "--leave-one-out"),
    (["compare", "--help"], 0, "--solvers"),
    (["watch", "--help"], 0, "--against"),
    (["fly"], 2, "invalid choice"),
    (["train", "nothing.csv"], 2, "nothing.csv: no such file"),
    (["train", "banknote", "--test", "nothing.csv"], 2, "nothing.csv: no such file"),
    (["train", "banknote", "--model", "nowhere/model"], 2, "its folder does not exist"),
    (["train", "banknote", "--loss", "hingee"], 2, "unknown loss 'hingee'"),
    (["train", "banknote", "--solver", "fast"], 2, "unknown solver 'fast'"),
    (["train", "banknote", "--estimator", "Forest"], 2, "no estimator Forest"),
    (["train", "banknote", "--nu", "half"], 2, "invalid float value"),
    (["train", "banknote", "--kernel", "rbff"], 2, "invalid choice"),
    (["train", "banknote", "--wings", "2"], 2, "unrecognized arguments"),
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
        try:
            code = main(words)
        except SystemExit as end:
            code = end.code
    found.append((code, said.getvalue(), [name for name in json.loads(sys.argv[2]) if name in sys.modules]))
print(json.dumps(found))
"""


def test_help_and_errors_load_nothing_heavy(tmp_path):
    asked = json.dumps([one[0] for one in ANSWERS])
    told = subprocess.run(
        [sys.executable, "-c", ASK, asked, json.dumps(HEAVY)], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    for (given, code, words_), (ended, said, loaded) in zip(ANSWERS, json.loads(told.stdout), strict=True):
        assert (ended, loaded) == (code, []), given
        assert words_ in said, given


def test_the_package_is_a_command_of_python(tmp_path):
    told = subprocess.run(
        [sys.executable, "-m", "saddlesvm", "train", "nothing.csv"], capture_output=True, text=True, cwd=tmp_path
    )
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr.startswith("saddlesvm: error: nothing.csv: no such file")


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


@pytest.mark.parametrize("face", arguments.package_estimators(), ids=lambda face: face.name)
def test_what_the_text_of_an_estimator_says_is_what_is_registered(face):
    assert callable(load)  # whose module registers every estimator of the package
    entry = register.named(face.name)
    assert entry is not None
    assert face == arguments.known_estimator(entry.name, entry.kind, entry.options)


def test_the_package_lists_all_that_it_registers():
    own = [one.name for one in register.known() if one.kind.__module__.startswith("saddlesvm.")]
    assert own == [face.name for face in arguments.package_estimators()]


def test_the_words_are_those_that_are_registered():
    own = {name: kind for name, kind in LOSSES.items() if kind.__module__.startswith("saddlesvm.")}
    assert [*arguments.LOSSES] == list(own)
    for type_, names in (
        ("classification", arguments.CLASSIFICATION_LOSSES),
        ("regression", arguments.REGRESSION_LOSSES),
    ):
        assert {traits_of(own[name]).task for name in names} == {type_}
    assert {*get_args(ClassificationLoss), *get_args(RegressionLoss)} == {*own, *ALIASES}
    assert {*get_args(option_names.SolverName)} == {
        name for name, kind in SOLVERS.items() if kind.__module__.startswith("saddlesvm.")
    }
    assert {*get_args(option_names.KernelSolver)} == {*KERNEL_SOLVERS}
    assert option_names.KERNEL_NAMES == KERNELS
    assert {*option_names.INTERCEPTS} == {*get_args(option_names.Intercept)} == {*get_args(InterceptName)}
    assert get_args(option_names.MultiClass) == splits.WAYS
    assert get_args(option_names.ScoreShape) == splits.SPLITS


def test_every_command_has_its_function():
    commands = next(one for one in parser.make_parser()._actions if isinstance(one, argparse._SubParsersAction))
    for name, one in commands.choices.items():
        run = one.get_default("run")
        assert isinstance(run, Later), name
        assert callable(run.load())


def test_an_interruption_while_the_program_starts_is_silent(monkeypatch, capsys):
    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(Later, "load", interrupted)
    assert cli.main(["info", "toy"]) == 130
    assert capsys.readouterr() == ("", "")
