"""Data that a model cannot be of."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from saddlesvm import cli, load
from support.files import write_parquet


def test_whole_labels_beyond_64_bits_in_a_file_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"{i}.5,{2**63 + i % 3}" for i in range(12)]
    (tmp_path / "a.csv").write_text("\n".join(["x,label", *lines]))
    assert cli.main(["train", str(tmp_path / "a.csv")]) == 2
    assert "2^53 or more" in capsys.readouterr().err
    assert cli.main(["info", str(tmp_path / "a.csv"), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)["data"]
    assert "2^53 or more" in data["labels"]
    assert "classes" not in data


def test_whole_labels_of_64_bits_are_classes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"{i}.5,{2**53 + i % 2}" for i in range(12)]
    (tmp_path / "a.csv").write_text("\n".join(["x,label", *lines]))
    assert cli.main(["train", str(tmp_path / "a.csv"), "--model", str(tmp_path / "a.model")]) == 0
    assert load(tmp_path / "a.model").classes_.tolist() == [2**53, 2**53 + 1]
    capsys.readouterr()
    assert cli.main(["info", str(tmp_path / "a.csv"), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)["data"]
    assert data["classes"] == {str(2**53): 6, str(2**53 + 1): 6}


def test_a_gap_is_told_with_advice_that_every_command_can_give(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_text("u,v,kind\n1,2,a\n,4,b\n5,6,a\n")
    for command in ("watch", "info", "compare"):
        options = ["--report", str(tmp_path / "page.html")] if command != "info" else []
        assert cli.main([command, str(tmp_path / "a.csv"), *options]) == 2
        error = capsys.readouterr().err
        assert "column 'u': the value is missing" in error
        assert "saddlesvm train and path leave such rows out (--missing drop)" in error
    for command in ("train", "path"):
        assert cli.main([command, "--help"]) == 0
        assert "--missing" in capsys.readouterr().out


def test_a_nan_in_a_table_is_told_with_its_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_parquet(tmp_path / "t.parquet", height=[1.0, 2.0, 3.0], width=[1.0, np.nan, 2.0], kind=[0, 1, 0])
    assert cli.main(["train", str(tmp_path / "t.parquet")]) == 2
    error = capsys.readouterr().err
    assert "row 2, column 'width' is nan" in error and "--missing mean" in error
