"""``saddlesvm audit``: the suspects, in a table, as JSON and on a page."""

from __future__ import annotations

import json

import numpy as np
import pytest

from saddlesvm.data import load_bundled


@pytest.fixture
def data(tmp_path):
    """The banknotes' third rows with one label turned, and a contradiction."""
    notes = load_bundled("banknote")
    X, y = notes.X[::3].copy(), notes.y[::3].copy()
    y[7] = 1 - y[7]
    X[20] = X[300]
    np.savetxt(tmp_path / "notes.csv", np.column_stack([X, y]), delimiter=",", fmt="%.17g")
    (tmp_path / "groups.txt").write_text("".join(f"batch {i % 5}\n" for i in range(len(y))))
    return tmp_path


def test_suspects_are_told_and_drawn(data, run):
    page = data / "audit.html"
    code, out, _ = run("audit", data / "notes.csv", "--loss", "logistic", "--report", page)
    assert code == 0
    assert "row 7" in out
    assert "rows 20, 300" in out
    assert "Influence of single rows" in page.read_text()


def test_json_has_groups_and_bad_groups_are_refused(data, run):
    words = ("audit", data / "notes.csv", "--loss", "logistic", "--json", "--groups")
    code, out, _ = run(*words, data / "groups.txt")
    told = json.loads(out)
    assert code == 0
    assert set(told["groups"]) == {f"batch {k}" for k in range(5)}
    assert told["proven"]["leave-one-out error from"] <= told["proven"]["leave-one-out error to"] < 0.05
    (data / "short.txt").write_text("one\n")
    code, _, err = run(*words, data / "short.txt")
    assert code == 2
    assert "has 1 lines; the data has 458 rows: give one name a line" in err


def test_a_table_of_words_is_audited_as_its_encoding(tmp_path, run):
    towns, bought = ["Ulm", "Bonn", "Ulm", "Bonn"] * 5, ["yes", "no", "yes", "no"] * 5
    bought[3] = "yes"
    rows = "".join(f"{20 + k},{town},{word}\n" for k, (town, word) in enumerate(zip(towns, bought, strict=True)))
    (tmp_path / "people.csv").write_text(f"age,town,bought\n{rows}")
    page = tmp_path / "audit.html"
    code, out, _ = run("audit", tmp_path / "people.csv", "--loss", "logistic", "--report", page)
    assert code == 0
    assert "row 3 " in out and "label yes, suggested no" in out
    assert "town=Bonn = 1" in page.read_text()
