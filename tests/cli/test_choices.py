"""What ``train`` chooses and holds out, and how commands read standard input and say what they took for labels."""

from __future__ import annotations

import numpy as np
import pytest

from saddlesvm.cli.rows import hold_out
from saddlesvm.data import DataError, Table, load_bundled

LINES = "a,b,kind\n" + "".join(f"{k % 7 - 3},{k % 5},{'in' if k % 7 > 3 else 'out'}\n" for k in range(60))


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(LINES)
    return path


def test_standard_input_is_read_like_a_file(run, told, rows, tmp_path):
    model = tmp_path / "m"
    piped = told("train", "-", "--model", model, stdin=LINES)
    assert piped["data"]["source"] == "standard input"
    assert piped["quality"] == told("train", rows)["quality"]
    code, from_pipe, _ = run("predict", model, "-", stdin=LINES)
    assert code == 0 and from_pipe == run("predict", model, rows)[1]


def test_errors_of_standard_input_name_it(refusal):
    lines = "".join(f"{k},{k},a\n" for k in range(20)) + "1,x,b\n"
    assert "standard input: line 21: column 2: 'x' is not a number" in refusal("train", "-", stdin=lines)


def test_the_column_of_the_labels_is_said(told, rows):
    assert told("train", rows)["data"]["label"] == "column 'kind', the last one (--label takes another)"


def test_a_regression_without_its_loss_names_the_losses(told, refusal, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b,price\n" + "".join(f"{k},{k % 3},{k / 8}\n" for k in range(20)))
    said = refusal("train", path)
    assert "in the column 'price', from 0 to 2.375: for a regression name its loss, --loss with one of" in said
    assert "epsilon_insensitive" in said
    assert told("train", path, "--loss", "squared")["quality"]["train_r2"] > 0.9


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--C", "0.1,1"], "a number or auto is allowed"),
        (["--validation", "2"], "2.0 is not in the range 0.0<x<1.0"),
    ],
)
def test_what_cannot_be_chosen_is_said(words, said, refusal):
    assert said in refusal("train", "toy", *words)


def test_rows_are_held_out_of_every_class_alike(told):
    table = load_bundled("banknote")
    kept, apart = hold_out(table, 0.25, 0, is_classification=True)
    assert kept.n_rows + apart.n_rows == table.n_rows
    whole = np.unique(table.y, return_counts=True)[1]
    assert np.abs(np.unique(apart.y, return_counts=True)[1] - 0.25 * whole).max() <= 1.0
    both = np.vstack([kept.X, apart.X])
    np.testing.assert_array_equal(np.sort(both, axis=0), np.sort(table.X, axis=0))
    for command in ("train", "path"):
        assert told(command, "banknote", "--validation", 0.25)["data"]["rows_held_out"] == apart.n_rows
    assert told("train", "banknote", "--validation", 0.25)["quality"]["validation_accuracy"] > 0.95


def test_the_rows_of_a_store_are_not_copied():
    rows = Table(np.zeros((4, 1)), np.arange(4), None, None, "rows.store", "store", 0, 0.0)
    with pytest.raises(DataError, match="copy rows out of a store: give other rows with --test"):
        hold_out(rows, 0.5, 0, is_classification=True)


def test_a_path_measures_errors_and_test_rows_choose_nothing(told, run):
    chosen = told("path", "heart", "--validation", 0.3, "--test", "heart")
    assert chosen["path"]["values"][0].keys() >= {"C", "relative_gap", "validation_error", "test_error"}
    errors = [row["validation_error"] for row in chosen["path"]["values"]]
    assert chosen["chosen"]["validation_error"] <= min(errors)
    tested = told("path", "heart", "--test", "heart")
    assert "chosen" not in tested and tested["path"]["values"][0]["test_error"] < 0.5
    assert "validation error" in run("path", "heart", "--validation", 0.3)[1]


def test_a_report_of_one_model_names_its_strongest_features(told, rows, tmp_path):
    report = tmp_path / "out.html"
    found = told("train", rows, "--report", report)
    assert found["written"]["report"] == str(report)
    text = report.read_text()
    for part in (
        "Certified: the objective is at most",
        "How the gap closed",
        "the exact optimum provably predicts the same for",
        "The strongest features",
        "at most",
        "For class in",
        ">a<",
    ):
        assert part in text or part.replace("'", "&#x27;") in text


def test_a_saved_model_of_a_chosen_C_is_certified(told, tmp_path):
    model = tmp_path / "chosen.model"
    chosen = told("train", "heart", "--C", "auto", "--model", model)
    found = told("certify", model, "heart")
    assert found["quality"]["relative_gap"] <= 1.01 * chosen["quality"]["relative_gap"]


def test_a_parameter_is_given_once(refusal):
    assert "--set C gives a parameter that has an option" in refusal("train", "heart", "--C", 1, "--set", "C=2")


def test_values_of_set(refusal, run):
    assert "--set tol=abc: a number is needed" in refusal("train", "heart", "--set", "tol=abc")
    assert run("train", "heart", "--set", "max_time=None")[0] == 0
