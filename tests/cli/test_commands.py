"""The command line as a person and as a program would use it."""

from __future__ import annotations

import errno
import io
import json
import sys

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from saddlesvm import LinearSVC, cli
from saddlesvm.data import load_bundled
from saddlesvm.models import persistence
from saddlesvm.models.liblinear_models import save_liblinear


@pytest.fixture(scope="module")
def notes(tmp_path_factory):
    table = load_bundled("banknote")
    path = tmp_path_factory.mktemp("data") / "notes.svm"
    dump_svmlight_file(table.X, table.y, str(path), zero_based=False)
    return path


def test_train_ends_with_accuracy_gap_and_seconds(run):
    code, out, err = run("train", "banknote", "--loss", "hinge", "--C", 0.1, "--validation", 0.25)
    assert code == 0, err
    for said in ("1,372", "relative gap", "certified", "support vectors", "train accuracy", "seconds solving"):
        assert said in out
    assert all(line == line.rstrip() for line in out.splitlines())
    last = out.splitlines()[-1]
    assert last.startswith("validation accuracy ") and " %, relative gap " in last and last.endswith(" seconds")
    assert "epochs left" not in out + err


def test_json_says_the_same_for_programs(told, notes):
    facts = told("train", notes, "--test", notes, "--loss", "hinge", "--lambda", 1e-3)
    assert facts["data"]["rows"] == 1372 and facts["data"]["format"] == "libsvm"
    assert facts["quality"]["relative_gap"] <= 1e-4
    assert facts["quality"]["excess"] <= 1.01e-4
    assert facts["quality"]["train_accuracy"] == facts["quality"]["test_accuracy"] > 0.97


def identifiers_of(value):
    """The names in some JSON, but for those of classes and parameters, which are the user's."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield name
            if name not in ("classes", "options", "chosen", "strongest"):
                yield from identifiers_of(one)
    elif isinstance(value, list):
        for one in value:
            yield from identifiers_of(one)


def test_names_in_json_are_identifiers(told, notes, tmp_path):
    model, proof = tmp_path / "m", tmp_path / "p.json"
    found = [
        told("train", notes, "--validation", 0.2, "--C", "auto", "--model", model),
        told("certify", model, notes),
        told("path", "heart", "--validation", 0.2, "--C", "0.1,1"),
        told("convert", "heart", tmp_path / "s.store"),
        told("info", tmp_path / "s.store"),
        told("info", model),
        told("info", notes),
        told("prove", model, notes, "-o", proof),
        told("verify", proof, notes),
    ]
    names = {name for one in found for name in identifiers_of(one)}
    assert [name for name in names if not name.isidentifier()] == []


def test_regression_reports_r2(told, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    path = tmp_path / "targets.csv"
    np.savetxt(path, np.column_stack([X, X @ [1.0, 2.0, 3.0]]), delimiter=",")
    facts = told("train", path, "--loss", "epsilon_insensitive", "--set", "epsilon=0.01")
    assert facts["quality"]["train_r2"] > 0.99


def test_a_saved_model_predicts_certifies_and_is_described(run, told, notes, tmp_path):
    model = tmp_path / "notes.model"
    assert run("train", notes, "--loss", "hinge", "--model", model)[0] == 0
    code, out, err = run("predict", model, notes, "--scores")
    table = load_bundled("banknote")
    ours = LinearSVC(loss="hinge", random_state=0).fit(table.X, table.y)
    lines = np.array([line.split() for line in out.splitlines()])
    assert code == 0
    assert (lines[:, 0].astype(int) == ours.predict(table.X)).mean() > 0.995
    accuracy = told("train", notes, "--loss", "hinge")["quality"]["train_accuracy"]
    assert err == f"accuracy {100 * accuracy:.2f} %\n"
    assert 0.0 <= told("certify", model, notes, "--tol", 1e-3)["quality"]["relative_gap"] <= 1e-3
    code, out, _ = run("info", model)
    assert code == 0 and "LinearSVC" in out and "certified" in out
    target = tmp_path / "out.txt"
    assert run("predict", model, notes, "--output", target)[0] == 0
    assert len(target.read_text().splitlines()) == 1372


def test_liblinear_models_are_read(run, told, notes, tmp_path):
    model = tmp_path / "notes.liblinear"
    table = load_bundled("banknote")
    save_liblinear(LinearSVC(loss="hinge").fit(table.X, table.y), model)
    assert model.read_text().startswith("solver_type L2R_L1LOSS_SVC_DUAL")
    assert told("certify", model, notes, "--C", 1.0, "--refine", 50)["quality"]["relative_gap"] < 0.5
    assert run("predict", model, notes)[0] == 0
    assert "LIBLINEAR" in run("info", model)[1]


def test_an_early_stop_exits_with_3_and_says_what_to_do(run):
    code, out, _ = run("train", "toy", "--set", "solver=dcd", "--set", "max_iter=1")
    assert code == 3
    assert "epoch_limit" in out and "Raise max_iter" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["train", "nosuchfile"], "nosuchfile: no such file; the bundled data sets are banknote, heart, toy"),
        (["train", "toy", "--C", "-1"], "C must be a positive"),
        (["train", "toy", "--C", "2", "--lambda", "1"], "give either C or lam"),
        (["train", "toy", "--C", "1", "--lambda", "1"], "give either C or lam"),
        (["train", "toy", "--nonsense"], "No such option '--nonsense'"),
        (["train", "toy", "--clas-weight", "balanced"], "--class-weight"),
        (["predict", "toy", "toy", "--probabilites"], "--probabilities"),
        (["traim", "toy"], "there is no command 'traim'; did you mean train?"),
        (["compare", "toy", "heart", "--report", "r"], "unexpected extra argument"),
        (["train", "toy", "--loss", "hingee"], "did you mean hinge?"),
        (["train", "toy", "--set", "solver=nonsense"], "unknown solver"),
        (["train", "toy", "--estimator", "LinearSVM"], "there is no estimator 'LinearSVM'; did you mean LinearSVR?"),
        (["train", "toy", "--kernel", "rbff"], "'rbff' is not one of"),
        (["train", "toy", "--set", "nu=0.5"], "LinearSVC has no parameter 'nu'"),
        (["train", "toy", "--class-weight", "7=2"], "LABEL=FACTOR"),
        (["train", "toy", "--loss", "absolute", "--class-weight", "balanced"], "--class-weight does not work with"),
        (["train", "toy", "--kernel", "rbf", "--memory", "1G"], "--memory does not work with SVC"),
        (["train", "toy", "--set", "gamma=0.1"], "LinearSVC has no parameter 'gamma'"),
        (["train", "toy", "--set", "degre=2", "--kernel", "poly"], "no parameter 'degre'; did you mean degree?"),
        (["train", "toy", "--set", "warm_start=maybe"], "--set warm_start=maybe: yes or no is allowed"),
        (["train", "toy", "--set", "gap=x"], "a number is needed"),
        (["train", "toy", "--set", "gap"], "a parameter and its value are needed"),
        (["train", "toy", "--model", "/nonexistent/folder/model"], "folder does not exist"),
        (["train", "toy", "--tol", "2"], "tol must be a relative gap, at least 0 and below 1"),
        (["train", "toy", "--import", "no_such_module"], "cannot import no_such_module"),
        (["path", "toy", "--estimator", "SVC"], "path is for linear models"),
        (["predict", "nosuchmodel", "toy"], "nosuchmodel: no such file; a model is needed here"),
        (["certify", "heart", "heart"], "heart: is a bundled data set; a model is needed here, which 'saddlesvm train"),
        (["verify", "heart", "heart"], "a proof is needed here, which 'saddlesvm prove"),
        (["predict", ".", "heart"], ".: is a folder; a model is needed here"),
        (["convert", "toy"], "give the data first, then the name of the store"),
        (["train", "toy", "--tol", "0"], "--tol 0 never ends a fit: give gap, max_iter or max_time too"),
        (["train", "toy", "--seed", "-1"], "Invalid value for '--seed': -1 is not in the range"),
        (["nonsense"], "there is no command 'nonsense'"),
        (["train"], "Missing argument"),
    ],
)
def test_bad_usage_is_one_line_that_helps(refusal, words, said):
    assert said in refusal(*words)


def test_the_program_alone_lists_its_commands(run):
    code, out, _ = run()
    assert code == 2
    assert "  train " in out and "  verify " in out


def test_a_malformed_file_is_named_with_its_line(refusal, tmp_path):
    path = tmp_path / "broken.svm"
    path.write_text("1 1:0.5 2:1\n-1 1:oops\n")
    assert "broken.svm: line 2" in refusal("train", path)


@pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n\x00\xff", b"{", b"[1, 2]", b'{"a": 1}', b"[" * 100_000])
def test_a_file_that_is_no_proof_is_refused_in_words(refusal, tmp_path, content):
    path = tmp_path / "proof"
    path.write_bytes(content)
    said = refusal("verify", path, "toy")
    assert f"{path}: is not " in said and "a proof is" in said and "saddlesvm prove" in said and "codec" not in said


def test_errors_name_flags_and_no_parameters_of_python(refusal, tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text("a,1\n2,3\n")
    for words in (("train", path), ("train", tmp_path / "odd.csv", "--header", "yes", "--label", "b")):
        said = refusal(*words)
        assert "=True" not in said


def test_a_model_and_data_that_are_swapped_are_told_apart(run, refusal, tmp_path):
    data = tmp_path / "rows.csv"
    data.write_text("a,b,y\n1,5,0\n2,9,1\n3,4,0\n8,8,1\n")
    for command in ("predict", "certify"):
        said = refusal(command, data, "toy")
        assert "rows.csv: is not a model" in said and "the model stands before the data" in said


def test_a_model_given_as_data_is_told(run, refusal, tmp_path):
    assert run("train", "toy", "--model", tmp_path / "m")[0] == 0
    for words in (("predict", tmp_path / "m", tmp_path / "m"), ("train", tmp_path / "m")):
        assert "m: is a saved model, not data" in refusal(*words)


def test_a_model_that_does_not_fit_the_data(run, refusal, tmp_path):
    model = tmp_path / "toy.model"
    assert run("train", "toy", "--model", model)[0] == 0
    assert "features" in refusal("certify", model, "banknote")


def test_columns_in_another_order_are_named(run, refusal, tmp_path):
    for names in ("a,b", "b,a", "a,c"):
        (tmp_path / names).write_text(f"{names},y\n1,5,0\n2,9,1\n3,4,0\n8,8,1\n")
    data, swapped, renamed = (tmp_path / names for names in ("a,b", "b,a", "a,c"))
    model = tmp_path / "m"
    assert run("train", data, "--model", model)[0] in (0, 3)
    assert list(persistence.load(model).feature_names_in_) == ["a", "b"]
    assert run("predict", model, data)[2].startswith("accuracy")
    for words in (
        ("predict", model, swapped),
        ("certify", model, swapped),
        ("train", data, "--test", swapped),
        ("convert", data, swapped, tmp_path / "store"),
        ("compare", data, "--test", swapped, "--report", tmp_path / "r.html"),
    ):
        said = refusal(*words)
        assert "feature 1 is 'b'" in said and "(the same names in another order)" in said
    assert "lacks features of" in refusal("predict", model, renamed)
    fewer = tmp_path / "fewer.csv"
    fewer.write_text("a\n1\n2\n")
    assert "has 1 columns ('a'); 2 features are expected" in refusal("predict", model, fewer)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["train", "iris", "--model", "a", "--report", "./a"], "is given for two outputs"),
        (["train", "iris", "--model", "."], "is a folder"),
        (["compare", "toy", "--report", "."], "is a folder"),
    ],
)
def test_outputs_that_cannot_be_written_are_refused_before_any_work(refusal, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(LinearSVC, "fit", lambda *_: pytest.fail("it was trained"))
    monkeypatch.setattr("saddlesvm.lab.compare", lambda *_, **__: pytest.fail("it was run"))
    (tmp_path / "iris").write_text("0 1:1\n1 1:2\n2 1:3\n")
    assert said in refusal(*words)
    assert [path.name for path in tmp_path.iterdir()] == ["iris"]


@pytest.mark.parametrize("words", [("train", "toy"), ("compare", "toy")])
def test_a_report_without_matplotlib_says_how_to_install_it(refusal, tmp_path, monkeypatch, words):
    monkeypatch.setattr("saddlesvm.cli.values.find_spec", lambda name: None)
    said = refusal(*words, "--report", tmp_path / "r.html")
    assert "a report needs matplotlib" in said and "pip install '.[lab]'" in said


def test_a_full_disk_is_one_line(capsys, monkeypatch):
    class Full(io.StringIO):
        def write(self, text):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys, "stdout", Full())
    assert cli.main(["info", "toy"]) == 2
    assert capsys.readouterr().err == "saddlesvm: error: standard output: cannot be written: No space left on device\n"


@pytest.mark.parametrize("form", ["text", "store"])
def test_further_text_counts_its_features_as_the_training_data_did(run, told, tmp_path, form):
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
    assert told("train", data, "--test", part, "--model", model)["quality"]["test_accuracy"] > 0.9
    assert float(run("predict", model, part)[2].split()[1]) > 90
    assert float(run("predict", model, part, "--index-base", 1)[2].split()[1]) < 70
    certified = told("certify", model, part)["quality"]["primal_objective"]
    shifted = told("certify", model, part, "--index-base", 1)["quality"]["primal_objective"]
    assert certified < 0.7 * shifted
    assert "indices count from 1" in run("info", tmp_path / "data.svm", "--index-base", 1)[2]


@pytest.mark.parametrize(
    ("kernel", "bounded"),
    [(["rbf"], True), (["poly"], True), (["poly", "--set", "coef0=-1"], False), (["sigmoid"], False)],
)
def test_the_gap_of_a_kernel_that_may_be_indefinite_bounds_nothing(run, kernel, bounded):
    code, out, _ = run("train", "toy", "--kernel", *kernel, "--json")
    found = json.loads(out)["quality"]
    assert (found["excess"] is not None) == bounded
    assert ("is not positive semi-definite" in found.get("note", "")) != bounded
    assert (found["outcome"] == "stationary") != bounded and (code == 0) == bounded


def test_an_interrupt_while_reading_is_one_line(run, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("saddlesvm.cli.rows.read_training", interrupted)
    assert run("train", "toy") == (130, "", "saddlesvm: interrupted\n")


def test_class_weights_and_solver_options(told, tmp_path):
    given = ("--class-weight", "-1=2,1=1", "--set", "solver=sdca:start=sgd", "--intercept", "free")
    facts = told("train", "toy", *given, "--model", tmp_path / "m")
    assert "sgd" in facts["fit"]["solver"]
    model = persistence.load(tmp_path / "m")
    assert model.class_weight == {-1: 2.0, 1: 1.0} and model.intercept == "free"


def test_any_parameter_of_the_estimator_is_set_with_its_type(told, tmp_path):
    settings = ("--set", "degree=2", "--set", "shrinking=no", "--set", "coef0=0.5")
    told("train", "heart", "--kernel", "poly", *settings, "--model", tmp_path / "m")
    model = persistence.load(tmp_path / "m")
    assert (model.degree, model.shrinking, model.coef0) == (2, False, 0.5)
    told("train", "heart", "--set", "intercept-scaling=10", "--model", tmp_path / "m")
    assert persistence.load(tmp_path / "m").intercept_scaling == 10
