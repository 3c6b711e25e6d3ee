"""The command line as a person and as a program would use it."""

from __future__ import annotations

import errno
import io
import json
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from saddlesvm import LinearSVC
from saddlesvm.cli import parser as cli
from saddlesvm.data import load_bundled
from saddlesvm.estimators import persistence


@pytest.fixture(scope="module")
def notes(tmp_path_factory):
    table = load_bundled("banknote")
    path = tmp_path_factory.mktemp("data") / "notes.svm"
    dump_svmlight_file(table.X, table.y, str(path), zero_based=False)
    return path


def test_train_says_what_was_read_done_and_what_it_is_worth(run):
    code, out, err = run("train", "banknote", "--loss", "hinge", "--C", 0.1)
    assert code == 0, err
    for said in ("1,372", "relative gap", "certified", "support vectors", "train accuracy", "seconds solving"):
        assert said in out
    assert all(line == line.rstrip() for line in out.splitlines())


def test_json_says_the_same_for_programs(run, notes):
    code, out, _ = run("train", notes, "--test", notes, "--loss", "hinge", "--lambda", 1e-3, "--json")
    facts = json.loads(out)
    assert code == 0
    assert facts["read"]["rows"] == 1372
    assert facts["read"]["format"] == "libsvm"
    assert facts["quality"]["relative gap"] <= 1e-4
    assert facts["quality"]["train accuracy"] == facts["quality"]["test accuracy"] > 0.97


def test_regression_reports_r2(run, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    path = tmp_path / "targets.csv"
    np.savetxt(path, np.column_stack([X, X @ [1.0, 2.0, 3.0]]), delimiter=",")
    code, out, err = run("train", path, "--loss", "epsilon_insensitive", "--epsilon", 0.01, "--json")
    assert code == 0, err
    assert json.loads(out)["quality"]["train R2"] > 0.99


def test_a_saved_model_predicts_certifies_and_is_described(run, notes, tmp_path):
    model = tmp_path / "notes.model"
    assert run("train", notes, "--loss", "hinge", "--model", model)[0] == 0
    code, out, err = run("predict", model, notes, "--scores")
    table = load_bundled("banknote")
    ours = LinearSVC(loss="hinge", random_state=0).fit(table.X, table.y)
    lines = np.array([line.split() for line in out.splitlines()])
    assert code == 0
    assert (lines[:, 0].astype(int) == ours.predict(table.X)).mean() > 0.995
    assert "accuracy" in err
    code, out, _ = run("certify", model, notes, "--tol", 1e-3, "--json")
    assert code == 0
    assert 0.0 <= json.loads(out)["quality"]["relative gap"] <= 1e-3
    code, out, _ = run("info", model)
    assert code == 0
    assert "LinearSVC" in out
    assert "certified" in out
    target = tmp_path / "out.txt"
    assert run("predict", model, notes, "--output", target)[0] == 0
    assert len(target.read_text().splitlines()) == 1372


def test_liblinear_models_are_written_and_read(run, notes, tmp_path):
    model = tmp_path / "notes.liblinear"
    assert run("train", notes, "--loss", "hinge", "--liblinear", model)[0] == 0
    assert model.read_text().startswith("solver_type L2R_L1LOSS_SVC_DUAL")
    code, out, _ = run("certify", model, notes, "--C", 1.0, "--refine", 50, "--json")
    assert code == 0
    assert json.loads(out)["quality"]["relative gap"] < 0.5
    assert run("predict", model, notes)[0] == 0
    assert "LIBLINEAR" in run("info", model)[1]


def test_info_has_the_hint_about_scale(run):
    code, out, _ = run("info", "heart")
    assert code == 0
    assert "spread over a factor" in out


def test_an_early_stop_exits_with_3(run):
    code, out, _ = run("train", "toy", "--solver", "dcd", "--max-iter", 1)
    assert code == 3
    assert "epoch_limit" in out
    assert "Raise max_iter" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "nosuchfile"], "nosuchfile"),
        (["train", "toy", "--C", "-1"], "C must be a positive"),
        (["train", "toy", "--C", "1", "--lambda", "1"], "not allowed with"),
        (["train", "toy", "--nonsense"], "unrecognized arguments"),
        (["train", "toy", "--C", "1", "heart"], "one source of data goes here, and 'heart' came after 'toy'"),
        (["compare", "toy", "heart", "--report", "r"], "one source of data goes here, and 'heart' came after 'toy'"),
        (["train", "toy", "--solver", "nonsense"], "unknown solver"),
        (["train", "toy", "--class-weight", "7=2"], "LABEL=FACTOR"),
        (["train", "toy", "--loss", "absolute", "--epsilon", "1"], "--epsilon does not work with the loss absolute"),
        (["train", "toy", "--loss", "absolute", "--class-weight", "balanced"], "does not work with the loss absolute"),
        (["train", "toy", "--kernel", "rbf", "--memory", "1G"], "--memory does not work with --kernel rbf"),
        (
            ["train", "toy", "--nu", "0.1", "--penalty", "l1"],
            "; it is an option of LinearSVC, LinearSVR",
        ),
        (["train", "toy", "--degree", "2"], "--degree does not work with the loss squared_hinge"),
        (["train", "toy", "--model", "/nonexistent/folder/model"], "folder does not exist"),
        (["predict", "nosuchmodel", "toy"], "no such file"),
        (["nonsense"], "invalid choice"),
        ([], "required"),
    ],
)
def test_bad_usage_is_one_line_and_exit_code_2(run, arguments, said):
    code, out, err = run(*arguments)
    assert code == 2
    assert out == ""
    assert len(err.strip().splitlines()) == 1
    assert said in err


def test_a_malformed_file_is_named_with_its_line(run, tmp_path):
    path = tmp_path / "broken.svm"
    path.write_text("1 1:0.5 2:1\n-1 1:oops\n")
    code, _, err = run("train", path)
    assert code == 2
    assert "broken.svm" in err
    assert "2" in err


def test_a_model_that_does_not_fit_the_data(run, tmp_path):
    model = tmp_path / "toy.model"
    assert run("train", "toy", "--model", model)[0] == 0
    code, _, err = run("certify", model, "banknote")
    assert code == 2
    assert "features" in err


def test_columns_in_another_order_are_named(run, tmp_path):
    for names in ("a,b", "b,a", "a,c"):
        (tmp_path / names).write_text(f"{names},y\n1,5,0\n2,9,1\n3,4,0\n8,8,1\n")
    data, swapped, renamed = (tmp_path / names for names in ("a,b", "b,a", "a,c"))
    model = tmp_path / "m"
    assert run("train", data, "--model", model)[0] in (0, 3)
    assert list(persistence.load(model).feature_names_in_) == ["a", "b"]
    assert run("predict", model, data)[2].startswith("accuracy")
    for calls in (
        ("predict", model, swapped),
        ("certify", model, swapped),
        ("train", data, "--test", swapped),
        ("convert", data, swapped, tmp_path / "store"),
        ("compare", data, "--test", swapped, "--report", tmp_path / "r.html"),
    ):
        code, _, err = run(*calls)
        assert code == 2
        assert "feature 1 is 'b'" in err
        assert "(the same names in another order)" in err
    assert "lacks features of" in run("predict", model, renamed)[2]
    fewer = tmp_path / "fewer.csv"
    fewer.write_text("a\n1\n2\n")
    assert "has 1 columns ('a'); 2 features are expected" in run("predict", model, fewer)[2]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "iris", "--loss", "smooth_hinge", "--model", "a", "--liblinear", "b"], "loss='smooth_hinge'"),
        (["train", "iris", "--multi-class", "ovo", "--model", "a", "--liblinear", "b"], "no one-vs-one models"),
        (["train", "iris", "--model", "a", "--liblinear", "./a"], "is given for two outputs"),
        (["train", "iris", "--model", "."], "is a folder"),
        (["compare", "toy", "--report", "."], "is a folder; the report is a file"),
        (["compare", "toy", "--report", "r.html", "--figures", "iris"], "is a file; the figures go to a folder"),
    ],
)
def test_outputs_that_cannot_be_written_are_refused_before_any_work(run, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(LinearSVC, "fit", lambda *_: pytest.fail("it was trained"))
    monkeypatch.setattr("saddlesvm.lab.compare", lambda *_, **__: pytest.fail("it was run"))
    (tmp_path / "iris").write_text("0 1:1\n1 1:2\n2 1:3\n")
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert [path.name for path in tmp_path.iterdir()] == ["iris"]


def test_a_full_disk_is_one_line(capsys, monkeypatch):
    class Full(io.StringIO):
        def write(self, text):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys, "stdout", Full())
    assert cli.main(["info", "toy"]) == 2
    assert capsys.readouterr().err == "saddlesvm: error: standard output: cannot be written: No space left on device\n"


@pytest.mark.parametrize("form", ["text", "store"])
def test_further_text_counts_its_features_as_the_training_data_did(run, tmp_path, form):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = np.where(X[:, 1] > 0.0, 1, -1)
    data, part, model = (tmp_path / name for name in ("data.svm", "part.svm", "model"))
    dump_svmlight_file(X, y, str(data), zero_based=True)
    X[:, 0] = 0.0  # index 0 occurs no more
    dump_svmlight_file(X, y, str(part), zero_based=True)
    if form == "store":
        assert run("convert", data, tmp_path / "store")[0] == 0
        data = tmp_path / "store"
    for _ in range(2):
        code, out, err = run("train", data, "--test", part, "--model", model, "--json")
        assert code == 0, err
        assert json.loads(out)["quality"]["test accuracy"] > 0.9
    assert float(run("predict", model, part)[2].split()[1]) > 0.9
    assert float(run("predict", model, part, "--index-base", 1)[2].split()[1]) < 0.7
    certified = json.loads(run("certify", model, part, "--json")[1])["quality"]["primal objective"]
    shifted = json.loads(run("certify", model, part, "--index-base", 1, "--json")[1])["quality"]["primal objective"]
    assert certified < 0.7 * shifted
    assert "indices count from 1" in run("info", tmp_path / "data.svm", "--index-base", 1)[2]


@pytest.mark.parametrize(
    ("kernel", "bounded"),
    [(["rbf"], True), (["poly"], True), (["poly", "--coef0", "-1"], False), (["sigmoid"], False)],
)
def test_the_gap_of_a_kernel_that_may_be_indefinite_bounds_nothing(run, kernel, bounded):
    code, out, _ = run("train", "toy", "--kernel", *kernel, "--json")
    found = json.loads(out)["quality"]
    said = found["at most above the optimum"]
    assert said.endswith(" %") == bounded
    assert ("is not positive semi-definite" in said) != bounded
    assert (found["outcome"] == "stationary") != bounded and (code == 0) == bounded


def test_an_interrupt_while_reading_is_one_line(run, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("saddlesvm.estimators.preparation.read", interrupted)
    assert run("train", "toy") == (130, "", "saddlesvm: interrupted\n")


def test_class_weights_and_solver_options(run):
    code, out, err = run(
        "train", "toy", "--class-weight=-1=2,1=1", "--solver", "sdca:start=sgd", "--intercept", "free", "--json"
    )
    assert code == 0, err
    assert "sgd" in json.loads(out)["done"]["solver"]


def test_what_would_prove_or_change_nothing_is_refused(run):
    code, out, err = run("train", "toy", "--tol", "2")
    assert (code, out) == (2, "") and "tol must be a relative gap, at least 0 and below 1" in err
    code, out, err = run("train", "toy", "--top-k", "3")
    assert (code, out) == (2, "") and "--top-k is for the top-k machine: give --multi-class top_k too" in err


def test_the_installed_command_runs():
    done = subprocess.run([sys.executable, "-m", "saddlesvm", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("saddlesvm ")
