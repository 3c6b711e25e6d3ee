"""Laws of every registered estimator, one from outside the package among them: saved, certified, run by command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

import support.own_estimators  # noqa: F401 (registers an estimator)
from saddlesvm import register_estimator
from saddlesvm.cli import main
from saddlesvm.data import DataError
from saddlesvm.estimators import register
from saddlesvm.estimators.certify import certify_model
from saddlesvm.estimators.register import Entry
from saddlesvm.kernel.certify_kernel import certify_kernel
from saddlesvm.models.persistence import load, save
from support import distance_bound, matrix

X = matrix(120, 4, seed=3)
SCORES = X @ np.array([1.0, -2.0, 0.5, 0.0]) + np.random.default_rng(0).normal(size=len(X))
EVERY = pytest.mark.parametrize("entry", register.list_entries(), ids=lambda entry: entry.name)
KERNEL = pytest.mark.parametrize(
    "entry", [e for e in register.list_entries() if not e.linear], ids=lambda entry: entry.name
)
LINEAR = pytest.mark.parametrize(
    "entry", [e for e in register.list_entries() if e.linear], ids=lambda entry: entry.name
)


def targets(entry: Entry) -> np.ndarray:
    """What the estimator learns: numbers, or two classes named by text."""
    return SCORES if entry.task == "regression" else np.where(SCORES > 0.0, "yes", "no")


def seeded(entry: Entry) -> dict[str, int]:
    return {"random_state": 0} if "random_state" in entry.parameters else {}


def strength(entry: Entry) -> dict[str, float]:
    """C, or nu for those without."""
    return {"C": 0.3} if "C" in entry.parameters else {"nu": 0.3}


def fitted(entry: Entry, **options: Any) -> Any:
    return entry.kind(**seeded(entry), **options).fit(X, targets(entry))


def values_of(model: Any) -> np.ndarray:
    """The scores of a radial machine without the intercept."""
    return np.asarray(rbf_kernel(X, model.support_vectors_, gamma=0.5) @ model.dual_coef_.T)


@pytest.fixture
def file(tmp_path: Path, entry: Entry) -> str:
    """The data as a CSV file."""
    lines = [",".join([*map(repr, row), str(y)]) for row, y in zip(X.tolist(), targets(entry).tolist(), strict=True)]
    (tmp_path / "data.csv").write_text("\n".join(["a,b,c,d,y", *lines]) + "\n")
    return str(tmp_path / "data.csv")


@EVERY
def test_a_saved_model_comes_back_whole(entry: Entry, tmp_path: Path) -> None:
    model = fitted(entry, **strength(entry))
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    assert type(again) is entry.kind
    assert again.set_params(**seeded(entry)).get_params() == model.get_params()
    assert set(vars(model)) <= set(vars(again))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.certificate_ == model.certificate_


@LINEAR
def test_a_model_is_certified_as_it_was_trained(entry: Entry) -> None:
    model = fitted(entry, C=0.3)
    certificates = certify_model(model, X, targets(entry))
    total = sum(one.primal for one in certificates)
    assert total == pytest.approx(model.certificate_.primal, rel=1e-12)
    assert sum(one.dual for one in certificates) <= total
    assert max(one.relative_gap for one in certificates) <= 2.0 * model.tol


@KERNEL
def test_a_kernel_machine_is_certified_as_it_was_trained(entry: Entry) -> None:
    model = fitted(entry, **strength(entry))
    found = certify_kernel(model, X, targets(entry))
    assert found.primal == pytest.approx(model.certificate_.primal, rel=1e-5)
    assert found.dual <= found.primal
    assert found.relative_gap <= 2.0 * model.tol


@EVERY
def test_weights_equal_repetition(entry: Entry) -> None:
    counts = 1 + np.arange(len(X)) % 3
    y = targets(entry)
    options: dict[str, Any] = {"tol": 1e-9}
    if not entry.linear:
        options |= {"kernel": "rbf", "gamma": 0.5} | ({"nu": 0.333} if "nu" in entry.parameters else {})
        options |= {"intercept": "none"} if "intercept" in entry.parameters else {}
    weighted = entry.kind(**options).fit(X, y, sample_weight=counts.astype(float))
    repeated = entry.kind(**options).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    if not entry.linear:
        one, other = (values_of(model) for model in (weighted, repeated))
        reach = np.sqrt(2.0) * max(1.0, np.abs(weighted.dual_coef_).max())
    else:
        one, other, reach = np.ravel(weighted.coef_), np.ravel(repeated.coef_), 1.0
    away = distance_bound(weighted.certificate_.gap, repeated.certificate_.gap)
    assert np.abs(one - other).max() <= reach * away


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@EVERY
def test_the_command_line_trains_it(
    entry: Entry, file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, own = str(tmp_path / "m"), ["--import", entry.kind.__module__]
    task = ["--loss", entry.kind().loss] if entry.task == "regression" and "loss" in entry.parameters else []
    [(strong, number)] = strength(entry).items()
    strength_flags = ["--C", f"{number}"] if strong == "C" else ["--set", f"{strong}={number}"]
    asked = ["--estimator", entry.name, *own, *task, *strength_flags]
    assert main(["train", file, *asked, "--model", model, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["fit"]["model"].startswith(f"{entry.name}, ")
    assert f"{strong} = 0.3" in told["fit"]["model"]
    loaded = load(model)
    assert type(loaded) is entry.kind
    assert main(["predict", model, file, *own]) == 0
    printed = capsys.readouterr().out.split()
    np.testing.assert_array_equal(np.array(printed, dtype=loaded.predict(X).dtype), loaded.predict(X))
    assert main(["certify", model, file, "--tol", "2e-3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["quality"]["relative_gap"] <= 2e-3


def test_its_own_option_is_read_from_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(tmp_path / "m")
    asked = ["train", "toy", "--import", "support.own_estimators", "--estimator", "LeastSquaresSVC"]
    assert main([*asked, "--set", "upper-cost=2.5", "--model", model]) == 0
    assert load(model).upper_cost == 2.5
    capsys.readouterr()
    assert main(["train", "toy", "--set", "upper_cost=2.5"]) == 2
    assert "LinearSVC has no parameter 'upper_cost'" in capsys.readouterr().err
    assert main([*asked, "--set", "upper_cost=0"]) == 2
    assert "upper_cost must be positive; got 0" in capsys.readouterr().err
    assert main([*asked, "--kernel", "rbf"]) == 2
    assert "--kernel does not work with LeastSquaresSVC" in capsys.readouterr().err


def test_a_file_of_an_estimator_that_is_not_registered_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = register.find_entry("LeastSquaresSVC")
    assert entry is not None
    save(fitted(entry), tmp_path / "m")
    monkeypatch.delitem(register.ENTRIES, "LeastSquaresSVC")
    with pytest.raises(
        DataError, match=r"of the kind 'LeastSquaresSVC'; this version knows .*LinearSVC, .*; import the"
    ):
        load(tmp_path / "m")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--import", "nowhere_at_all"], "No module named 'nowhere_at_all'"),
        (["--estimator", "Mine"], "there are LinearSVC, LinearSVR"),
    ],
)
def test_an_estimator_that_is_not_there_is_one_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "toy", *words]) == 2
    [line] = capsys.readouterr().err.strip().splitlines()
    assert said in line


class Half:
    """An estimator that is not finished."""

    def fit(self, X: Any, y: Any) -> Half:
        return self


class Taken(register.find_entry("LinearSVC").kind):  # type: ignore[misc, union-attr]
    """An estimator with a name that is taken."""


@pytest.mark.parametrize(
    ("kind", "options", "error", "said"),
    [
        (Half, {"task": "regression"}, TypeError, "lacks predict, get_params, _check_options, _pose"),
        (
            Taken,
            {"task": "ranking"},
            ValueError,
            "task must be one of classification, regression, novelty; got 'ranking'",
        ),
        (Taken, {"name": "LinearSVC", "task": "classification"}, ValueError, "named 'LinearSVC' exists already"),
    ],
)
def test_what_an_estimator_lacks_is_named(kind: type, options: dict[str, Any], error: type, said: str) -> None:
    with pytest.raises(error, match=said):
        register_estimator(**options)(kind)
