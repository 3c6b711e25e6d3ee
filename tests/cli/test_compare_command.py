"""The commands ``compare`` and ``watch``."""

from __future__ import annotations

import sys

import pytest

pytest.importorskip("pandas")
pytest.importorskip("matplotlib")


def test_solvers_are_compared_auto_among_them(run, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["saddlesvm", "compare", "toy"])
    path = tmp_path / "report.html"
    words = ("--max-time", "0.2", "--tol", "1e-2", "--with", "sklearn", "--report", path)
    code, out, err = run("compare", "toy", *words)
    assert code == 0, err
    assert "came within 1e-2 of the optimum first" in out
    assert "saddlesvm compare toy" in path.read_text()
    assert "auto" in path.read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("compare", "nowhere.csv", "--report", "r.html"), "no such file"),
        (("compare", "toy", "--report", "r.html", "--solvers", "magic"), "unknown solver"),
        (("compare", "toy", "--report", "r.html", "--with", "magic"), "unknown peer"),
        (("compare", "toy", "--report", "r.html", "--C", "1", "--lambda", "1"), "give either C or lam"),
        (("compare", "toy"), "Missing option '--report'"),
        (("watch", "toy", "--solvers", "dcd,sdca,pegasos"), "one or two solvers"),
        (("watch", "toy", "--solvers", "auto"), "cannot show auto"),
        (("watch", "toy", "--report", "."), "is a folder"),
    ],
)
def test_what_cannot_be_compared_is_refused(words, said, refusal, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert said in refusal(*words)


def test_two_solvers_are_watched(run, tmp_path):
    page = tmp_path / "watch.html"
    words = ("--max-iter", "2", "--solvers", "pegasos:projection=true,sdca", "--report", page)
    code, out, err = run("watch", "toy", *words)
    assert code == 0, err
    assert "rows visited" in out and page.exists()
    assert run("watch", "toy", "--max-iter", "1", "--solvers", "dcd", "--report", page)[0] == 0
