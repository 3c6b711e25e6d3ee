"""What commands say of data and places that are not as they should be: one line that names the next step."""

from __future__ import annotations

import argparse
import os
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import pytest

from saddlesvm.cli import main
from saddlesvm.cli.console import why_unwritten
from saddlesvm.cli.running import run

ROWS = "a,kind,id\n1,x,1\n2,y,2\n3,x,3\n4,y,4\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    path.write_text(ROWS)
    return path


def error_of(capsys: pytest.CaptureFixture[str], *words: Any) -> str:
    assert main([str(word) for word in words]) == 2
    return capsys.readouterr().err


def test_a_column_of_words_is_encoded_and_the_label_column_named(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", str(table)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "labels column 'id'" in told and "kind: category (2 values)" in told


def test_several_sources_that_are_no_stores_lead_to_convert(capsys: pytest.CaptureFixture[str]) -> None:
    assert "nowhere/*.store: no such file" in error_of(capsys, "train", "nowhere/*.store")
    told = error_of(capsys, "train", "toy", "heart")
    assert "toy: is not a store" in told and "saddlesvm convert" in told


def test_labels_that_the_model_lacks_are_named(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = table.with_name("m")
    main(["train", str(table), "--label", "kind", "--model", str(model)])
    capsys.readouterr()
    table.write_text(ROWS.replace("x", "z"))
    assert main(["predict", str(model), str(table), "--label", "kind"]) == 0
    told = capsys.readouterr().err
    assert "does not know these labels of the data: 'z'; its classes are 'x', 'y'" in told
    table.write_text(ROWS)
    assert main(["predict", str(model), str(table), "--label", "kind"]) == 0
    assert capsys.readouterr().err.startswith("accuracy")


def test_a_folder_that_may_not_be_written_is_found_before_the_fit(
    table: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    told = error_of(capsys, "train", table, "--label", "kind", "--model", table.with_name("m"))
    assert "m: cannot be written: permission denied in its folder" in told
    assert not table.with_name("m").exists()


def test_warnings_are_one_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    def command(options: argparse.Namespace) -> int:
        warnings.warn("first\nsecond", UserWarning, stacklevel=1)
        return 0

    asked: Any = argparse.Namespace(run=types.SimpleNamespace(load=lambda: command, home="here"))
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = lambda told, *place: sys.stderr.write(warnings.formatwarning(told, *place))  # type: ignore[assignment]
        assert run(asked) == 0
    assert capsys.readouterr().err == "saddlesvm: warning: first second\n"


def test_a_store_that_is_cut_off_while_it_is_read_is_named() -> None:
    assert why_unwritten(OSError("a.store/values.npy: ends before byte 8: it was cut off")).startswith("a.store/")
    assert why_unwritten(OSError(28, "No space left")) == "standard output: cannot be written: No space left"


def test_certify_says_of_which_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(tmp_path / "m")
    assert main(["train", "banknote", "--C", "0.5", "--liblinear", model]) == 0
    capsys.readouterr()
    assert main(["certify", model, "banknote"]) == 0
    told = capsys.readouterr().out
    assert "LinearSVC, loss squared_hinge, C = 1\n" in told and "do not hold C: C = 1 is assumed" in told
    assert main(["certify", model, "banknote", "--C", "0.5"]) == 0
    told = capsys.readouterr().out
    assert "LinearSVC, loss squared_hinge, C = 0.5\n" in told and "assumed" not in told
    assert main(["certify", model, "banknote", "--lambda", "0.25"]) == 0
    assert "lambda = 0.25\n" in capsys.readouterr().out


def test_too_little_memory_is_told_as_it_was_given(capsys: pytest.CaptureFixture[str]) -> None:
    assert "memory must be at least 16M; got '1M'" in error_of(capsys, "train", "banknote", "--memory", "1M")
