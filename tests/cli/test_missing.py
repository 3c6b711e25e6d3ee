"""``--missing``: rows left out, or values filled in, the same for every file of a model; also in making a store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddlesvm.cli import main
from saddlesvm.data import DataError, Store, convert, load_bundled, read
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


def test_kept_values_are_nan(gaps: tuple[str, np.ndarray, np.ndarray], tmp_path: Path) -> None:
    path, X, y = gaps
    table = read(path, missing="keep")
    np.testing.assert_array_equal(table.X, X)
    np.testing.assert_array_equal(table.y, y)
    pytest.importorskip("pyarrow")
    pd = pytest.importorskip("pandas")
    pd.DataFrame(X, columns=list("abcd")).assign(kind=y).to_parquet(tmp_path / "gaps.parquet")
    np.testing.assert_array_equal(read(tmp_path / "gaps.parquet", missing="keep").X, X)
    np.savez(tmp_path / "gaps.npz", X=X, y=y)
    np.testing.assert_array_equal(read(tmp_path / "gaps.npz", missing="keep").X, X)


def test_faults_beside_gaps_are_found(tmp_path: Path) -> None:
    for cell, fault in (("1_000", "'1_000' is not a number"), ("inf", "not a finite"), ("x", "'x' is not a number")):
        (tmp_path / "odd.csv").write_text(f"1,?,0\n2,{cell},1\n")
        with pytest.raises(DataError, match=f"line 2: column 2: .*{fault}"):
            read(tmp_path / "odd.csv", missing="keep")
    with pytest.raises(DataError, match="missing is 'mean'; allowed are 'error' and 'keep'"):
        read("toy", missing="mean")  # type: ignore[arg-type]


def test_by_default_the_first_gap_is_an_error(
    gaps: tuple[str, np.ndarray, np.ndarray], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", gaps[0]]) == 2
    error = capsys.readouterr().err
    assert "line 5: column 'a': the value is missing ('')" in error and "--missing drop leaves such rows out" in error


@pytest.mark.parametrize("how", ["mean", "median"])
def test_values_are_filled_in_from_the_training_rows(
    how: str, gaps: tuple[str, np.ndarray, np.ndarray], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, X, y = gaps
    file = str(tmp_path / "m")
    found = told(["train", path, "--missing", how, "--model", file, "--test", path], capsys)
    assert found["data"][f"missing_values_filled_in_with_the_{how}"] == len(HOLES)
    centre = np.nanmean if how == "mean" else np.nanmedian
    filled = np.where(np.isnan(X), centre(X, axis=0), X)
    model: Any = load(file)
    assert found["quality"]["test_accuracy"] == pytest.approx(model.score(filled, y))
    assert main(["predict", file, path]) == 0
    assert capsys.readouterr().out.split() == model.predict(filled).astype(str).tolist()
    assert told(["certify", file, path], capsys)["quality"]["relative_gap"] <= 1e-3


def test_rows_are_left_out(
    gaps: tuple[str, np.ndarray, np.ndarray], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, X, _ = gaps
    file = str(tmp_path / "m")
    found = told(["train", path, "--missing", "drop", "--model", file], capsys)
    assert found["data"]["rows_left_out_for_missing_values"] == len(HOLES)
    assert load(file).notes_["rows"] == len(X) - len(HOLES)
    assert told(["certify", file, path], capsys)["quality"]["relative_gap"] <= 1e-3
    assert main(["predict", file, path]) == 2
    assert "row 4 has missing values" in capsys.readouterr().err


def test_what_cannot_be_filled_in_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "empty.csv"
    path.write_text("a,b,kind\n1,?,0\n2,?,1\n3,?,0\n")
    assert main(["train", str(path), "--missing", "mean"]) == 2
    assert "feature 'b' has no value in any row" in capsys.readouterr().err
    assert main(["train", str(path), "--missing", "drop"]) == 2
    assert "every row has missing values" in capsys.readouterr().err


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
@pytest.mark.parametrize("how", ["drop", "mean"])
def test_a_store_is_made_without_missing_values(
    how: str, ending: str, gaps: tuple[str, np.ndarray, np.ndarray], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, X, y = gaps
    halves = [tmp_path / f"{half}.{ending}" for half in "ab"]
    for half, part in zip(halves, (slice(0, 11), slice(11, None)), strict=True):
        if ending == "npz":
            np.savez(half, X=X[part], y=y[part])
        elif ending == "parquet":
            pytest.importorskip("pyarrow")
            pd = pytest.importorskip("pandas")
            pd.DataFrame(X[part], columns=list("abcd")).assign(kind=y[part]).to_parquet(half)
        else:
            lines = Path(path).read_text().splitlines()
            half.write_text("\n".join([lines[0], *lines[1:][part]]) + "\n")
    store, model = str(tmp_path / "whole.store"), str(tmp_path / "m")
    found = told(["convert", *map(str, halves), store, "--missing", how], capsys)
    whole = ~np.isnan(X).any(axis=1)
    if how == "drop":
        assert found["store"]["missing_values"] == {"treated": "drop", "count": (~whole).sum()}
        wanted, labels = X[whole], y[whole]
    else:
        assert found["store"]["missing_values"] == {"treated": "mean", "count": len(HOLES)}
        wanted, labels = np.where(np.isnan(X), np.nanmean(X, axis=0), X), y
    made = Store(store)
    np.testing.assert_allclose(made.X, wanted, rtol=1e-12)
    np.testing.assert_array_equal(made.y, labels)
    told(["train", store, "--missing", "mean", "--model", model], capsys)
    predicted = main(["predict", model, path])
    if how == "drop":
        assert predicted == 2 and "has missing values" in capsys.readouterr().err
    else:
        filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
        assert capsys.readouterr().out.split() == load(model).predict(filled).astype(str).tolist()


def test_scaled_values_are_filled_in_in_their_own_units_and_stores_of_stores_keep_them(
    gaps: tuple[str, np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    path, X, _ = gaps
    store = convert(path, tmp_path / "one.store", missing="mean", scale=0.5)
    filled = 0.5 * np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    np.testing.assert_allclose(store.X, filled, rtol=1e-12)
    again = convert([tmp_path / "one.store"], tmp_path / "two.store")
    np.testing.assert_allclose(again.header["missing values"]["values"], 0.5 * np.nanmean(X, axis=0), rtol=1e-12)


def test_what_a_conversion_cannot_fill_in_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.csv"
    path.write_text("a,b,kind\n1,?,0\n2,?,1\n3,?,0\n")
    for how, fault in (("mean", "feature 'b' has no value in any row"), ("drop", "every row has missing values")):
        with pytest.raises(DataError, match=fault):
            convert(path, tmp_path / "no.store", missing=how)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="missing is 'median'; allowed are 'error', 'drop', 'mean'"):
        convert(path, tmp_path / "no.store", missing="median")  # type: ignore[arg-type]
    assert [one.name for one in tmp_path.iterdir()] == ["empty.csv"]


def test_a_damaged_note_on_missing_values_is_named(gaps: tuple[str, np.ndarray, np.ndarray], tmp_path: Path) -> None:
    convert(gaps[0], tmp_path / "a.store", missing="mean")
    header = tmp_path / "a.store" / "store.json"
    sound = json.loads(header.read_text())
    for damage in (
        "mean",
        {"how": "mean"},
        {"how": "mode", "values": [], "count": 1},
        {"how": "mean", "values": [1.0], "count": 1},
    ):
        header.write_text(json.dumps(sound | {"missing values": damage}))
        with pytest.raises(DataError, match=r"is damaged: (its|the field) .?missing values"):
            Store(tmp_path / "a.store")


def test_info_counts_rows_with_gaps_and_describes_the_others(
    gaps: tuple[str, np.ndarray, np.ndarray], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, X, _ = gaps
    found = told(["info", path], capsys)
    assert found["data"]["rows"] == len(X) and found["data"]["rows_with_missing_values"] == len(HOLES)
    norms = np.linalg.norm(X[~np.isnan(X).any(axis=1)], axis=1)
    assert found["rows"]["largest_norm"] == pytest.approx(norms.max())
    (tmp_path / "none.csv").write_text("1,?,0\n?,2,1\n")
    assert told(["info", str(tmp_path / "none.csv")], capsys).keys() == {"data"}


def test_a_path_treats_gaps_as_train_does(
    gaps: tuple[str, np.ndarray, np.ndarray], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, X, y = gaps
    asked = ["path", path, "--tol", "1e-2", "--test", path, "--model", str(tmp_path / "kept.model"), "--missing"]
    assert told([*asked, "drop"], capsys)["data"]["rows_left_out_for_missing_values"] == len(HOLES)
    assert told([*asked, "median"], capsys)["data"]["missing_values_filled_in_with_the_median"] == len(HOLES)
    assert main(["predict", str(tmp_path / "kept.model"), path]) == 0
    filled = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
    said = capsys.readouterr().out.split()
    assert said == list(map(str, load(str(tmp_path / "kept.model")).predict(filled).tolist()))
    assert len(said) == len(y)


def test_proofs_ask_for_data_without_gaps(
    gaps: tuple[str, np.ndarray, np.ndarray], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, X, y = gaps
    kept = str(tmp_path / "kept.model")
    told(["train", path, "--missing", "mean", "--model", kept], capsys)
    assert main(["prove", kept, path, "-o", str(tmp_path / "out")]) == 2
    assert "line 5: column 'a': the value is missing" in capsys.readouterr().err
    full = tmp_path / "full.csv"
    filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    np.savetxt(full, np.column_stack([filled, y]), delimiter=",", header="a,b,c,d,kind", comments="", fmt="%.17g")
    assert main(["prove", kept, str(full), "-o", str(tmp_path / "out")]) == 0
