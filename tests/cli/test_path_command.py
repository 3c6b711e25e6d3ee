"""The command ``path``, and C that is chosen on the command line."""

from __future__ import annotations

import pytest

from saddlesvm.cli import main


def test_the_command_writes_the_chosen_model(tmp_path, capsys):
    model = tmp_path / "m.model"
    arguments = ["path", "heart", "--C", "1e-2,1", "--tol", "0.05", "--loss", "logistic", "--validation", "0.2"]
    assert main([*arguments, "--model", str(model), "--test", "heart"]) == 0
    told = capsys.readouterr().out
    assert "test error" in told and "validation error" in told
    assert main(["predict", str(model), "heart", "--output", str(tmp_path / "out")]) == 0


def test_the_command_proves_paths_of_sparse_models(capsys):
    arguments = ["path", "heart", "--penalty", "l1", "--loss", "logistic", "--tol", "0.1", "--test", "heart"]
    assert main(arguments) == 0
    assert "certified" in capsys.readouterr().out


def test_train_chooses_C_on_the_command_line(capsys):
    assert main(["train", "heart", "--C", "auto:low=1e-2,high=1", "--loss", "logistic"]) == 0
    assert "chosen by leave-one-out estimates" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["path", "heart", "--C", "1"], "two numbers are needed, the smaller one first"),
        (["path", "heart", "--C", "2,1"], "two numbers are needed, the smaller one first"),
        (["path", "heart", "--tol", "0"], "--tol must be a number between 0 and 1"),
        (["train", "heart", "--C", "best"], "a number or auto is allowed"),
    ],
)
def test_bad_usage_is_one_line(arguments, message, capsys):
    code = main(arguments)
    assert code == 2
    assert message in capsys.readouterr().err
