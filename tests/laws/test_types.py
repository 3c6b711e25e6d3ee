"""A user's program keeps its types: what is right passes a type checker, and what is wrong is found in the editor."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import saddlesvm

api = pytest.importorskip("mypy.api")

PROGRAM = Path(__file__).parents[1] / "support" / "typed_user.py"
ROOT = Path(saddlesvm.__file__).parents[1]


def expected() -> list[tuple[int, str]]:
    """Line and code of each error that the program announces."""
    lines = PROGRAM.read_text().splitlines()
    found = [(number, re.search(r"# error: ([a-z-]+)$", line)) for number, line in enumerate(lines, 1)]
    return [(number, match[1]) for number, match in found if match]


def test_a_type_checker_finds_the_errors_of_a_program_and_no_others(tmp_path, monkeypatch):
    if ROOT.name == "src":  # an installed package is found without
        monkeypatch.setenv("MYPYPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.read_text())
    settings = tmp_path / "mypy.ini"
    settings.write_text("[mypy]\nignore_missing_imports = True\nfollow_imports = silent\n")
    said, problems, _ = api.run(["--strict", "--config-file", str(settings), "--no-color-output", str(program)])
    assert problems == ""
    found = re.findall(r"^program\.py:(\d+): error: .*\[([a-z-]+)\]$", said, re.MULTILINE)
    assert [(int(number), code) for number, code in found] == expected(), said


def test_another_type_checker_finds_errors_in_the_same_lines(tmp_path: Path) -> None:
    pytest.importorskip("pyright")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.read_text())
    settings = {"include": ["program.py"], "extraPaths": [str(ROOT)], "pythonVersion": "3.11"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    errors = [one for one in json.loads(said)["generalDiagnostics"] if one["severity"] == "error"]
    found = sorted({one["range"]["start"]["line"] + 1 for one in errors})
    assert found == [number for number, _ in expected()], said


def test_the_package_says_that_it_has_types():
    spec = importlib.util.find_spec("saddlesvm")
    assert spec is not None and spec.origin is not None
    assert Path(spec.origin).with_name("py.typed").exists()
