"""Data that a model cannot be of."""

from __future__ import annotations

from pathlib import Path

import pytest

from saddlesvm import cli


def test_whole_labels_beyond_2_53_in_a_file_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"{i}.5,{2**53 + i % 3}" for i in range(12)]
    (tmp_path / "a.csv").write_text("\n".join(["x,label", *lines]))
    assert cli.main(["train", str(tmp_path / "a.csv")]) == 2
    assert "2^53 or more" in capsys.readouterr().err
