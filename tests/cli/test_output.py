"""What names and outputs do to the commands: hostile labels, full disks, closed and narrow standard output."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from saddlesvm.cli import main
from saddlesvm.runtime.shown import one_line, shown, unbroken

HOSTILE = ("k\x1b]0;x\x07[/]", "é\u202e")
COMMAND = [sys.executable, "-m", "saddlesvm"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("hostile")
    data, model = folder / "evil.csv", folder / "evil.model"
    rows = [f"{k % 7},{k % 5},{HOSTILE[k % 2]}\n" for k in range(20)]
    data.write_text("a[red],b\x1b[31m,\u202egpj\n" + "".join(rows), encoding="utf-8")
    assert main(["train", str(data), "--model", str(model)]) in (0, 3)
    return data, model


def says(*words: str, shell: str = "", **environment: str) -> tuple[int, str]:
    """Exit code and standard error of a command of its own, with its output led as the shell says."""
    script = " ".join(f"'{word}'" for word in (*COMMAND, *words)) + f" {shell}"
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, env={**os.environ, **environment}, timeout=120
    )
    return done.returncode, done.stderr


def test_nothing_that_steers_a_terminal_is_shown(saved: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["info", str(saved[0])], ["info", str(saved[1])]):
        assert main(words) == 0
        out = capsys.readouterr().out
        assert "\x1b" not in out and "\x07" not in out and "\u202e" not in out
        assert r"k\x1b]0;x\x07[/]" in out and r"é\u202e" in out


def test_files_keep_labels_as_they_are(saved: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "predicted.txt"
    assert main(["predict", str(saved[1]), str(saved[0]), "--output", str(out)]) == 0
    assert set(out.read_text(encoding="utf-8").split("\n")[:-1]) <= set(HOSTILE)


def test_errors_name_files_with_control_characters_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "no\x1b[31m\nsuch\u2066.csv"]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "\x1b" not in err and "\u2066" not in err and r"\x1b[31m" in err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_outputs_that_fail_end_with_one_line(saved: tuple[Path, Path]) -> None:
    data, model = map(str, saved)
    for words, shell, said in (
        (["info", model], "> /dev/full", "standard output: cannot be written: No space left"),
        (["predict", model, data, "--output", "/dev/full"], "", "/dev/full: cannot be written: No space left"),
        (["info", model], ">&-", "standard output: is closed"),
        (["info", model], "| true; exit ${PIPESTATUS[0]}", "standard output: cannot be written: Broken pipe"),
    ):
        code, err = says(*words, shell=shell)
        assert code == 2 and said in err and err.count("\n") == 1


def test_an_encoding_that_lacks_a_character(saved: tuple[Path, Path]) -> None:
    data, model = map(str, saved)
    code, err = says("predict", model, data, PYTHONIOENCODING="ascii")
    assert code == 2 and "lacks" in err and err.count("\n") == 1
    code, err = says("info", model, shell="> /dev/null", PYTHONIOENCODING="ascii")
    assert (code, err) == (0, "")


def test_what_is_shown_can_be_printed() -> None:
    everything = "".join(map(chr, range(0x3000))) + "\ud800\U000e0001"
    assert all(mark.isprintable() or mark in "\u200c\u200d" or not mark.isascii() for mark in shown(everything))
    for mark in "\x00\x1b\x7f\x85\u061c\u200e\u202a\u2028\u2066\ufeff\ud800\U000e0001":
        assert mark not in shown(everything) and shown(mark).isascii()
    assert shown("Größe ☃ 日本") == "Größe ☃ 日本"
    assert unbroken("a\nb\u2028\tc") == r"a\nb\u2028" + "\tc"
    assert len(one_line("x" * 100_000)) < 2_100 and one_line("a\n  b\x1b") == r"a b\x1b"
