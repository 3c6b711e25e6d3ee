"""What ``train`` chooses and holds out, and how commands read standard input and say what they took for labels."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddlesvm.cli.asked import held_out
from saddlesvm.cli.parser import main
from saddlesvm.data import DataError, Table, load_bundled
from saddlesvm.estimators.persistence import load

LINES = "a,b,kind\n" + "".join(f"{k % 7 - 3},{k % 5},{'in' if k % 7 > 3 else 'out'}\n" for k in range(60))


class Piped:
    """Standard input that holds some text."""

    def __init__(self, text: str) -> None:
        self.buffer = io.BytesIO(text.encode())


def told(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main([*arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def refusal(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    try:
        assert main(arguments) == 2
    except SystemExit as ended:
        assert ended.code == 2
    return capsys.readouterr().err


def test_standard_input_is_read_like_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model, file = str(tmp_path / "m"), tmp_path / "rows.csv"
    file.write_text(LINES)
    monkeypatch.setattr("sys.stdin", Piped(LINES))
    piped = told(["train", "-", "--model", model], capsys)
    assert piped["read"]["source"] == "standard input"
    assert piped["quality"] == told(["train", str(file)], capsys)["quality"]
    monkeypatch.setattr("sys.stdin", Piped(LINES))
    assert main(["predict", model, "-"]) == 0
    from_pipe = capsys.readouterr().out
    assert main(["predict", model, str(file)]) == 0
    assert capsys.readouterr().out == from_pipe


def test_errors_of_standard_input_name_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", Piped("".join(f"{k},{k},a\n" for k in range(20)) + "1,x,b\n"))
    assert "standard input: line 21: column 2: 'x' is not a number" in refusal(["train", "-"], capsys)


def test_the_column_of_the_labels_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rows.csv").write_text(LINES)
    read = told(["train", str(tmp_path / "rows.csv")], capsys)["read"]
    assert read["labels"] == "column 'kind', the last one (--label takes another)"


def test_a_regression_without_its_loss_names_the_losses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rows.csv").write_text("a,b,price\n" + "".join(f"{k},{k % 3},{k / 8}\n" for k in range(20)))
    said = refusal(["train", str(tmp_path / "rows.csv")], capsys)
    assert "in the column 'price', from 0 to 2.375: for a regression name its loss, --loss with one of" in said
    assert "epsilon_insensitive" in said
    assert told(["train", str(tmp_path / "rows.csv"), "--loss", "squared"], capsys)["quality"]["train R2"] > 0.9


@pytest.mark.parametrize("loss", [[], ["--loss", "squared"]])
def test_a_table_of_cross_validation_and_the_best_of_it(
    loss: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = str(tmp_path / "m")
    found = told(["train", "toy", "--C", "1e-5,1", "--cv", "3", "--model", model, *loss], capsys)["cross-validation"]
    assert found["folds"] == 3
    named = "R2" if loss else "accuracy"
    scores = {C: found[f"C = {C:g}"][named] for C in (1e-5, 1.0)}
    assert found["chosen C"] == max(scores, key=lambda C: scores[C]) == load(model).C


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--C", "auto:rule=one_standard_error", "--cv", "3"], "--cv takes the best C"),
        (["--C", "auto:size=1", "--cv", "3"], "size of C='auto' must be a whole number of at least 2"),
        (["--lambda", "1", "--cv", "3"], "--cv needs --C or --gamma"),
        (["--C", "1,x"], "a number, several with commas, as in 0.1,1,10, or auto"),
        (["--cv", "1"], "a whole number of folds is needed, at least 2"),
        (["--validation", "2"], "a file goes with --test"),
    ],
)
def test_what_cannot_be_chosen_is_said(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert said in refusal(["train", "toy", *arguments], capsys)


def test_rows_are_held_out_of_every_class_alike(capsys: pytest.CaptureFixture[str]) -> None:
    table = load_bundled("banknote")
    kept, apart = held_out(table, 0.25, 0, classes=True)
    assert kept.n_rows + apart.n_rows == table.n_rows
    whole = np.unique(table.y, return_counts=True)[1]
    assert np.abs(np.unique(apart.y, return_counts=True)[1] - 0.25 * whole).max() <= 1.0
    both = np.vstack([kept.X, apart.X])
    np.testing.assert_array_equal(np.sort(both, axis=0), np.sort(table.X, axis=0))
    found = told(["train", "banknote", "--validation", "0.25"], capsys)
    assert found["read"]["rows held out for validation"] == apart.n_rows
    assert found["quality"]["validation accuracy"] > 0.95


def test_the_rows_of_a_store_are_not_copied() -> None:
    rows = Table(np.zeros((4, 1)), np.arange(4), None, None, "rows.store", "store", 0, 0.0)
    with pytest.raises(DataError, match="stay in their files: use --test"):
        held_out(rows, 0.5, 0, classes=True)


def test_a_report_of_one_model_names_its_strongest_features(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rows.csv").write_text(LINES)
    report = tmp_path / "out.html"
    found = told(["train", str(tmp_path / "rows.csv"), "--report", str(report)], capsys)
    assert found["done"]["report written to"] == str(report)
    text = report.read_text()
    for part in (
        "Certified: the objective is at most",
        "How the gap closed",
        "labels are proven to be those of the exact optimum",
        "The strongest features",
        "at most",
        "For class in",
        ">a<",
    ):
        assert part in text or part.replace("'", "&#x27;") in text


def test_a_report_says_why_no_label_is_proven(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "out.html"
    told(["train", "heart", "--probability", "yes", "--report", str(report)], capsys)
    assert "none is proven, as the labels come from calibrated probabilities" in report.read_text()


def test_the_picture_of_a_quick_fit_does_not_change_its_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report, with_one, without = tmp_path / "out.html", tmp_path / "one.model", tmp_path / "other.model"
    found = told(["train", "heart", "--report", str(report), "--model", str(with_one)], capsys)
    told(["train", "heart", "--model", str(without)], capsys)
    assert found["done"]["certificates"] == 1
    assert "primal, from above" in report.read_text()
    one, other = load(with_one), load(without)
    assert one.coef_.tobytes() == other.coef_.tobytes()
    assert one.get_params() == other.get_params()


def test_a_saved_model_of_a_chosen_C_is_certified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(tmp_path / "chosen.model")
    chosen = told(["train", "heart", "--C", "auto", "--model", model], capsys)
    found = told(["certify", model, "heart"], capsys)
    assert found["quality"]["relative gap"] <= 1.01 * chosen["quality"]["relative gap"]
