"""The command `compare`."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("pandas")
pytest.importorskip("matplotlib")

from saddlesvm.cli import main


def test_command_compares(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["saddlesvm", "compare", "toy"])
    path, trace = tmp_path / "report.html", tmp_path / "trace.csv"
    words = ("--solvers", "dcd,sdca:start=sgd", "--max-time", "0.2", "--tol", "1e-2", "--with", "sklearn")
    code = main(["compare", "toy", *words, "--report", str(path), "--trace", str(trace), "--quiet"])
    assert code == 0
    said = capsys.readouterr().out
    assert "came within 1e-2 of the optimum first" in said
    assert "saddlesvm compare toy" in path.read_text()
    assert trace.exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("compare", "nowhere.csv", "--report", "r.html"), "no such file"),
        (("compare", "toy", "--report", "r.html", "--solvers", "magic"), "unknown solver"),
        (("compare", "toy", "--report", "r.html", "--with", "magic"), "unknown peer"),
        (("compare", "toy", "--report", "r.html", "--image", "a"), "28x28"),
    ],
)
def test_command_refuses_in_one_line(words, message, capsys):
    assert main(words) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_the_commands_load_nothing_heavy():
    code = (
        "import sys; from saddlesvm.cli.parser import make_parser; make_parser();"
        "print([name for name in ('matplotlib', 'saddlesvm.lab.comparison') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
