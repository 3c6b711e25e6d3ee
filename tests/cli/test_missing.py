"""``--missing``: a table with gaps is encoded, or loses rows, the same for every file of a model and in a store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddlesvm.cli import main
from saddlesvm.data import DataError, convert, load_bundled
from saddlesvm.models.persistence import load

# Models of named columns are asked about arrays here.
pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")
HOLES = [(3, 0), (10, 2), (11, 2), (40, 1)]


@pytest.fixture
def gaps(tmp_path: Path) -> tuple[str, np.ndarray, np.ndarray]:
    """Banknotes with holes: the file, the values with NaN, and the labels."""
    notes = load_bundled("banknote")
    X, y = notes.X[::9].copy(), notes.y[::9]
    path = tmp_path / "gaps.csv"
    lines = [[f"{value!r}" for value in row] for row in X.tolist()]
    for spelled, (row, column) in zip(["", "?", "NA", "null"], HOLES, strict=True):
        lines[row][column] = spelled
        X[row, column] = np.nan
    rows = (",".join([*line, str(label)]) for line, label in zip(lines, y, strict=True))
    path.write_text("a,b,c,d,kind\n" + "\n".join(rows) + "\n")
    return str(path), X, y


def told(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main([*arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_by_default_the_first_gap_is_an_error(
    gaps: tuple[str, np.ndarray, np.ndarray], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", gaps[0]]) == 2
    error = capsys.readouterr().err
    assert "line 5: column 'a': the value is missing ('')" in error and "leave such rows out (--missing drop)" in error


def table_of(X: np.ndarray) -> Any:
    """The columns of the file as a data frame, with gaps."""
    return pytest.importorskip("pandas").DataFrame(X, columns=list("abcd"))


@pytest.mark.parametrize("how", ["mean", "median"])
def test_values_are_filled_in_from_the_training_rows(
    how: str, gaps: tuple[str, np.ndarray, np.ndarray], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, X, y = gaps
    file = str(tmp_path / "m")
    frame = table_of(X)
    found = told(["train", path, "--missing", how, "--model", file, "--test", path], capsys)
    model: Any = load(file)
    imputer = model[0].named_transformers_["number"][0]
    centre = np.nanmean if how == "mean" else np.nanmedian
    np.testing.assert_allclose(imputer.statistics_, centre(X, axis=0), rtol=1e-12)
    assert found["quality"]["test_accuracy"] == pytest.approx(model.score(frame, y))
    assert main(["predict", file, path]) == 0
    assert capsys.readouterr().out.split() == model.predict(frame).astype(str).tolist()
    assert told(["certify", file, path], capsys)["quality"]["relative_gap"] <= 1e-3


def test_rows_are_left_out(
    gaps: tuple[str, np.ndarray, np.ndarray], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pandas")
    path, X, _ = gaps
    file = str(tmp_path / "m")
    found = told(["train", path, "--missing", "drop", "--model", file], capsys)
    assert found["data"]["rows_left_out_for_missing_values"] == len(HOLES)
    assert load(file).notes_["rows"] == len(X) - len(HOLES)
    assert told(["certify", file, path], capsys)["quality"]["relative_gap"] <= 1e-3
    assert main(["predict", file, path]) == 2
    assert "row 4: column 'a': the value is missing" in capsys.readouterr().err


def test_what_cannot_be_left_out_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pandas")
    path = tmp_path / "empty.csv"
    path.write_text("a,b,kind\n1,?,0\n?,2,1\n3,?,0\n?,4,1\n")
    assert main(["train", str(path), "--missing", "drop"]) == 2
    assert "every row has missing values" in capsys.readouterr().err


@pytest.mark.parametrize("data", ["toy", "rows.npz", "rows.svm"])
def test_only_tables_have_gaps_to_treat(data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if data != "toy":
        data = str(tmp_path / data)
        np.savez(tmp_path / "rows.npz", X=np.eye(2), y=[0, 1])
        (tmp_path / "rows.svm").write_text("1 1:1\n-1 2:1\n")
    assert main(["train", data, "--missing", "mean"]) == 2
    assert "--missing mean is for tables" in capsys.readouterr().err


def test_a_file_with_gaps_is_not_converted(gaps: tuple[str, np.ndarray, np.ndarray], tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"line 5: column 'a': the value is missing"):
        convert(gaps[0], tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_info_names_the_first_gap(gaps: tuple[str, np.ndarray, np.ndarray], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", gaps[0]]) == 2
    assert "line 5: column 'a': the value is missing ('')" in capsys.readouterr().err


def test_a_path_treats_gaps_as_train_does(
    gaps: tuple[str, np.ndarray, np.ndarray], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, X, _ = gaps
    frame = table_of(X)
    asked = ["path", path, "--tol", "1e-2", "--test", path, "--model", str(tmp_path / "kept.model"), "--missing"]
    assert told([*asked, "drop"], capsys)["data"]["rows_left_out_for_missing_values"] == len(HOLES)
    told([*asked, "median"], capsys)
    assert main(["predict", str(tmp_path / "kept.model"), path]) == 0
    said = capsys.readouterr().out.split()
    assert said == list(map(str, load(str(tmp_path / "kept.model")).predict(frame).tolist()))


def test_proofs_ask_for_data_without_gaps(
    gaps: tuple[str, np.ndarray, np.ndarray], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pandas")
    kept = str(tmp_path / "kept.model")
    told(["train", gaps[0], "--missing", "mean", "--model", kept], capsys)
    assert main(["prove", kept, gaps[0], "-o", str(tmp_path / "out")]) == 2
    assert "a proof is about a linear model on the numbers of the data as they are" in capsys.readouterr().err
