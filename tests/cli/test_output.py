"""What names and outputs do to the commands: hostile labels, full disks, pipes, closed and narrow standard output."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings

import pytest

from saddlesvm.cli.console import explain_failed_write, format_warning
from saddlesvm.runtime.safe_text import escape_hidden, escape_line_breaks, one_line

HOSTILE = ("k\x1b]0;x\x07[/]", "é\u202e")
COMMAND = [sys.executable, "-m", "saddlesvm"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    from saddlesvm.cli import main

    folder = tmp_path_factory.mktemp("hostile")
    data, model = folder / "evil.csv", folder / "evil.model"
    rows = [f"{k % 7},{k % 5},{HOSTILE[k % 2]}\n" for k in range(20)]
    data.write_text("a[red],b\x1b[31m,\u202egpj\n" + "".join(rows), encoding="utf-8")
    assert main(["train", str(data), "--model", str(model)]) in (0, 3)
    return data, model


def says(*words, shell="", **environment):
    """Exit code and standard error of a command of its own, with its output led as the shell says."""
    script = " ".join(f"'{word}'" for word in (*COMMAND, *words)) + f" {shell}"
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, env={**os.environ, **environment}, timeout=120
    )
    return done.returncode, done.stderr


def test_nothing_that_steers_a_terminal_is_shown(saved, run):
    for words in (["info", saved[0]], ["info", saved[1]]):
        code, out, _ = run(*words)
        assert code == 0
        assert "\x1b" not in out and "\x07" not in out and "\u202e" not in out
        assert r"k\x1b]0;x\x07[/]" in out and r"é\u202e" in out


def test_files_keep_labels_as_they_are(saved, run, tmp_path):
    out = tmp_path / "predicted.txt"
    assert run("predict", saved[1], saved[0], "--output", out)[0] == 0
    assert set(out.read_text(encoding="utf-8").split("\n")[:-1]) <= set(HOSTILE)


def test_errors_name_files_with_control_characters_in_one_line(refusal):
    said = refusal("info", "no\x1b[31m\nsuch\u2066.csv")
    assert "\x1b" not in said and "\u2066" not in said and r"\x1b[31m" in said


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_outputs_that_fail_end_with_one_line(saved):
    data, model = map(str, saved)
    for words, shell, said in (
        (["info", model], "> /dev/full", "standard output: cannot be written: No space left"),
        (["predict", model, data, "--output", "/dev/full"], "", "/dev/full: cannot be written: No space left"),
        (["info", model], ">&-", "standard output: is closed"),
    ):
        code, err = says(*words, shell=shell)
        assert code == 2 and said in err and err.count("\n") == 1


def test_a_pipe_whose_reader_has_enough_is_no_error_to_tell(saved, tmp_path):
    model = str(saved[1])
    many = tmp_path / "many.csv"
    many.write_text("".join(f"{k % 7},{k % 5}\n" for k in range(200_000)))
    code, err = says(
        "predict", model, str(many), "--header", "no", shell="| head -1 > /dev/null; exit ${PIPESTATUS[0]}"
    )
    assert (code, err) == (2, "")


def test_ctrl_c_keeps_the_best_model_so_far(tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text("".join(f"{k % 97},{k * k % 89},{k * 7 % 83},{k % 2}\n" for k in range(20_000)))
    model = tmp_path / "m"
    words = [*COMMAND, "train", str(rows), "--model", str(model), "--tol", "0"]
    for setting in (f"checkpoint={tmp_path / 'c'}", "solver=sdca", "max_iter=1000000"):
        words += ["--set", setting]
    # A program in the background may ignore SIGINT, and its children with it: the command must not.
    listening = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    running = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **listening)
    while not (tmp_path / "c").exists() and running.poll() is None:
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 3, err
    assert "interrupted" in out and model.exists()


def test_an_encoding_that_lacks_a_character(saved):
    data, model = map(str, saved)
    code, err = says("predict", model, data, PYTHONIOENCODING="ascii")
    assert code == 2 and "lacks" in err and err.count("\n") == 1
    code, err = says("info", model, shell="> /dev/null", PYTHONIOENCODING="ascii")
    assert (code, err) == (0, "")


def test_the_package_is_a_command_of_python(tmp_path):
    told = subprocess.run([*COMMAND, "train", "nothing.csv"], capture_output=True, text=True, cwd=tmp_path)
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr.startswith("saddlesvm: error: nothing.csv: no such file")


def test_a_warning_is_one_line(run, monkeypatch):
    assert format_warning("first\nsecond") == "saddlesvm: warning: first second\n"
    formats = []
    monkeypatch.setattr("saddlesvm.cli.show.show", lambda *_: formats.append(warnings.formatwarning))
    usual = warnings.formatwarning
    assert run("info", "toy")[0] == 0
    assert formats == [format_warning] and warnings.formatwarning is usual


def test_what_cannot_be_written_is_named():
    assert explain_failed_write(OSError("a.store/values.npy: ends before byte 8: it was cut off")).startswith(
        "a.store/"
    )
    assert explain_failed_write(OSError(28, "No space left")) == "standard output: cannot be written: No space left"


def test_what_is_shown_can_be_printed():
    everything = "".join(map(chr, range(0x3000))) + "\ud800\U000e0001"
    assert all(mark.isprintable() or mark in "\u200c\u200d" or not mark.isascii() for mark in escape_hidden(everything))
    for mark in "\x00\x1b\x7f\x85\u061c\u200e\u202a\u2028\u2066\ufeff\ud800\U000e0001":
        assert mark not in escape_hidden(everything) and escape_hidden(mark).isascii()
    assert escape_hidden("Größe ☃ 日本") == "Größe ☃ 日本"
    assert escape_line_breaks("a\nb\u2028\tc") == r"a\nb\u2028" + "\tc"
    assert len(one_line("x" * 100_000)) < 2_100 and one_line("a\n  b\x1b") == r"a b\x1b"


def test_rows_that_were_not_fitted_are_suspected(run, tmp_path):
    (tmp_path / "all.csv").write_text("-1,2,a\n1,2,b\n" * 20)
    (tmp_path / "some.csv").write_text("-1,2,b\n1,2,a\n" * 5)
    run("train", tmp_path / "all.csv", "--model", tmp_path / "a.model", "--C", 100)
    hint = "which may be other rows than the model was fitted on"
    assert hint not in " ".join(run("certify", tmp_path / "a.model", tmp_path / "all.csv")[1].split())
    assert hint in " ".join(run("certify", tmp_path / "a.model", tmp_path / "some.csv")[1].split())
