"""Pictures of models and paths."""

from __future__ import annotations

import numpy as np
import pytest

from saddlesvm import LinearSVC
from saddlesvm.cli import main
from saddlesvm.data import load_bundled

pytest.importorskip("matplotlib").use("Agg")
from saddlesvm.lab import GapDisplay, PathDisplay  # noqa: E402


@pytest.fixture(scope="module")
def heart():
    found = load_bundled("heart")
    return found.X / np.abs(found.X).max(axis=0), found.y


@pytest.fixture(scope="module")
def chosen(heart):
    return LinearSVC(C="auto:low=1e-2,high=1e1,gap=0.05", loss="logistic", random_state=0).fit(*heart)


def test_a_gap_display_draws_every_certificate(chosen):
    drawn = GapDisplay.from_estimator(chosen).ax_
    (line,) = drawn.get_lines()
    np.testing.assert_allclose(line.get_ydata(), [record["relative_gap"] for record in chosen.trace_])


def test_a_path_display_draws_what_is_proven(chosen):
    path = chosen.path_
    display = PathDisplay(path)
    gaps = display.gap_chart().series[0]
    proven = [path.certificate(C).relative_gap for C in gaps.x]
    np.testing.assert_allclose(gaps.y, np.maximum(proven, 1e-16))
    assert gaps.y.max() <= path.proven_gap
    assert set(path.Cs) <= set(gaps.x)


@pytest.mark.parametrize("kind", ["gap", "error"])
def test_every_kind_can_be_drawn(chosen, heart, kind):
    assert PathDisplay.from_path(chosen.path_, *heart, kind=kind).ax_.get_title()
    assert PathDisplay.from_estimator(chosen, kind=kind).ax_.get_xlabel() == "C"


def test_an_unknown_kind_is_refused(chosen):
    with pytest.raises(ValueError, match="kind must be 'gap' or 'error'; got 'pie'"):
        PathDisplay(chosen.path_).plot(kind="pie")
    with pytest.raises(ValueError, match="there is no error to draw"):
        PathDisplay(chosen.path_).plot(kind="error")


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


def test_the_text_of_a_display_is_short(chosen):
    assert repr(GapDisplay(chosen.trace_, "heart")) == "GapDisplay(name='heart')"
    assert repr(PathDisplay.from_estimator(chosen)).startswith("PathDisplay(chosen=")
    with pytest.raises(ValueError, match="against must be 'epochs' or 'seconds'; got 'rows'"):
        GapDisplay(chosen.trace_).plot(against="rows")
