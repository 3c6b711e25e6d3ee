"""Tables with columns of words on the command line: trained on, predicted, certified, described, in any format."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer

from saddlesvm import load
from saddlesvm.table import read
from support.tables import notes, titanic_like

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def people(tmp_path: Path) -> tuple[Path, Path]:
    """Files of rows to train on, and to test."""
    table, y = titanic_like(300)
    table["bought"] = y.tolist()
    for name, part in (("train", slice(0, 200)), ("test", slice(200, 300))):
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(table)
            writer.writerows(zip(*(values[part] for values in table.values()), strict=True))
    return tmp_path / "train.csv", tmp_path / "test.csv"


def facts(run: Run, *words: object) -> dict[str, Any]:
    code, out, err = run(*words, "--json")
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


def test_one_command_trains_on_mixed_columns(people: tuple[Path, Path], run: Run, tmp_path: Path) -> None:
    train, test = people
    model = tmp_path / "m"
    told = facts(run, "train", train, "--label", "bought", "--test", test, "--model", model, "--columns", "name=drop")
    assert "ticket: drop (an id: all values differ)" in told["data"]["columns"]
    assert {"sex: category (2 values)", "sailed: category (12 values)"} <= {*told["data"]["columns"]}
    assert told["quality"]["relative_gap"] <= 1e-4 and told["quality"]["test_accuracy"] > 0.6
    frame, y = read(test, label="bought")
    again = load(model)
    assert isinstance(again[0], ColumnTransformer) and again.score(frame, y) == told["quality"]["test_accuracy"]
    code, out, err = run("predict", model, test)
    assert (code, out.split()) == (0, again.predict(frame).tolist()) and "accuracy" in err
    assert facts(run, "certify", model, train)["quality"]["relative_gap"] <= 1e-4
    described = facts(run, "info", model)
    assert "sex: category" in described["columns"]["columns"] and "sex=" in str(described["strongest"])
    assert "sex: category (2 values)" in facts(run, "info", test, "--label", "bought")["data"]["columns"]


def test_columns_may_come_in_another_order(people: tuple[Path, Path], run: Run, tmp_path: Path) -> None:
    train, test = people
    model = tmp_path / "m"
    facts(run, "train", train, "--model", model)
    _, expected, _ = run("predict", model, test)
    rows = list(csv.DictReader(test.read_text().splitlines()))
    other = tmp_path / "other.csv"
    with other.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["colour", *reversed([one for one in rows[0] if one not in ("bought", "ship")])])
        writer.writeheader()
        for row in rows:
            writer.writerow({name: row.get(name, "red") for name in writer.fieldnames})
    code, out, err = run("predict", model, other)
    assert (code, out) == (0, expected) and "which are left out: 'colour'" in err
    other.write_text("age,sex\n3,male\n")
    code, _, err = run("predict", model, other)
    assert code == 2 and "lacks columns of the model: 'fare', 'cabin', 'sailed', 'name'" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [(("--columns", "sexx=category"), "has no column 'sexx'"), (("--columns", "sex=colour"), "'colour' is not a kind"),
     (("--columns", "sex"), "as in city=category"),
     (("--columns", "bought=text", "--label", "bought"), "is the label column"),
     (("--columns", "sex=number"), "train.csv: line 2: column 'sex': '.*' is not a number")],
)  # fmt: skip
def test_what_does_not_go_is_refused(words: tuple[str, ...], said: str, people: tuple[Path, Path], run: Run) -> None:
    code, _, err = run("train", people[0], *words)
    assert code == 2 and re.search(said, err), err


def test_held_out_rows_are_no_part_of_what_is_learnt(people: tuple[Path, Path], run: Run) -> None:
    told = facts(run, "train", people[0], "--C", "auto", "--validation", "0.2")
    assert "validation_accuracy" in told["quality"]
    assert "chosen by leave-one-out" in told["fit"]["model"]
    told = facts(run, "path", people[0], "--C", "0.1,1", "--validation", "0.2", "--test", people[1])
    assert "sex: category (2 values)" in told["data"]["columns"] and "chosen" in told


@pytest.mark.parametrize("options", [[], ["--columns", "sex=category"]])
def test_words_are_not_converted_and_the_error_says_what_to_do(
    options: list[str], people: tuple[Path, Path], run: Run, tmp_path: Path
) -> None:
    code, _, error = run("convert", people[0], tmp_path / "t.store", "--label", "bought", *options)
    assert code == 2 and "saddlesvm.table" in error
    assert list(tmp_path.glob("t.store*")) == []


def test_texts_of_lines(run: Run, tmp_path: Path) -> None:
    table, y = notes(200)
    rows = [{"text": text, "stars": int(label)} for text, label in zip(table["text"], y, strict=True)]
    lines = tmp_path / "reviews.csv"
    pd.DataFrame(rows).to_csv(lines, index=False)
    told = facts(run, "train", lines, "--label", "stars", "--model", tmp_path / "m")
    assert told["data"]["columns"] == ["text: text (16 words on average)"] and told["quality"]["train_accuracy"] > 0.85


FRESH = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pandas", "pyarrow", "polars", "skops"):
            raise ImportError(name)

sys.meta_path.insert(0, Absent())
from saddlesvm.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_tables_with_words_say_that_they_need_the_extra_and_numbers_need_none(
    people: tuple[Path, Path], tmp_path: Path
) -> None:
    numbers = tmp_path / "numbers.csv"
    numbers.write_text("a,b,kind\n" + "".join(f"{k},{k % 3},{'xy'[k % 2]}\n" for k in range(40)))

    def fresh(*words: object) -> Any:
        command = [sys.executable, "-c", FRESH, *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True)

    told = fresh("train", people[0], "--model", tmp_path / "m")
    assert told.returncode == 2 and "needs pandas" in told.stderr and "[files]" in told.stderr
    told = fresh("train", numbers, "--standardize", "--model", tmp_path / "m")
    assert told.returncode == 2 and "skops" in told.stderr and "[files]" in told.stderr
    assert fresh("train", numbers, "--standardize").returncode in (0, 3)
    assert fresh("train", numbers, "--model", tmp_path / "m").returncode in (0, 3)
    assert fresh("predict", tmp_path / "m", numbers).returncode == 0


def test_an_error_names_the_file_once(tmp_path, run):
    lines = tmp_path / "notes.csv"
    lines.write_text("note,kind\ngood,1\nbad,\n")
    code, _, err = run("info", lines, "--label", "kind")
    assert code == 2
    assert err.count(str(lines)) == 1 and "line 3: the label is missing" in err
