"""A loss from outside the package: registered, it is served by the estimators, model files and the command line."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import saddlesvm
from saddlesvm import LinearSVC, LinearSVR, certify, register_loss
from saddlesvm.cli import main
from saddlesvm.data import DataError
from saddlesvm.estimators.certify import certify_model
from saddlesvm.losses import POSITIVE, Hinge, Pinball, make_loss
from saddlesvm.models.persistence import load, save
from saddlesvm.problem.losses import LOSSES, loss_from_plain, loss_text, plain_loss
from saddlesvm.runtime.allowed import split_names
from support import OWN_LOSSES, csr, matrix
from support.own_losses import Expectile, SteepLogistic

SOURCE = Path(saddlesvm.__file__).parent
X = matrix(200, 5)
NOISE = np.random.default_rng(0).normal(size=200)
T = X @ np.cos(np.arange(5)) + NOISE
TRAITS: dict[str, Any] = {"task": "regression", "shape": "cornered", "parabolic": True, "exponentials": False}


@pytest.mark.parametrize("loss", ["expectile:tau=0.8", Expectile(0.8), "pinball:tau=0.8", "huber:delta=0.5"])
def test_a_regression_is_certified_by_every_face(loss: Any) -> None:
    model = LinearSVR(loss=loss, intercept="free", tol=1e-6, random_state=0).fit(X, T)
    assert model.certificate_.relative_gap <= 1e-6
    (proof,) = certify_model(model, X, T)
    assert 0.0 <= proof.gap <= 2e-6 * proof.primal
    alone = certify(X, T, model.coef_, model.intercept_, loss=loss, C=1.0, dual=model.dual_coef_)
    assert alone.relative_gap <= 2e-6


@pytest.mark.parametrize(("tau", "loss"), [(0.2, "pinball"), (0.8, "pinball"), (0.2, "expectile"), (0.8, "expectile")])
def test_quantiles_and_expectiles_are_where_they_belong(tau: float, loss: str) -> None:
    model = LinearSVR(loss=f"{loss}:tau={tau}", C=100.0, intercept="free", tol=1e-8).fit(X, T)
    below, above = np.minimum(T - model.predict(X), 0.0), np.maximum(T - model.predict(X), 0.0)
    if loss == "expectile":  # the offset has slope zero: the residuals balance, weighted
        assert (1.0 - tau) * -below.sum() == pytest.approx(tau * above.sum(), rel=1e-2)
    else:
        on_the_line = X.shape[1] + 1  # rows at most, in general position, that the plane goes through
        assert abs((below < -1e-4).sum() - tau * len(T)) <= on_the_line


def test_huber_meets_the_optimum_of_another_package() -> None:
    from scipy.optimize import minimize

    def objective(w: np.ndarray) -> float:
        r = np.abs(X @ w[:-1] + w[-1] - T)
        return float(0.5 * w[:-1] @ w[:-1] + np.where(r <= 0.5, 0.5 * r * r, 0.5 * (r - 0.25)).sum())

    best = minimize(objective, np.zeros(6), method="BFGS", options={"gtol": 1e-6}).fun
    model = LinearSVR(loss="huber:delta=0.5", intercept="free", tol=1e-9).fit(X, T)
    assert model.certificate_.dual <= best * (1.0 + 1e-12)
    assert model.certificate_.primal <= best * (1.0 + 1e-8)


def test_many_classes_paths_and_layouts() -> None:
    y = np.digitize(T, [-1.0, 1.0])
    dense = LinearSVC(loss=SteepLogistic(3.0), tol=1e-7, random_state=0).fit(X, y)
    sparse = LinearSVC(loss="steep_logistic:k=3", tol=1e-7, random_state=0).fit(csr(X), y)
    apart = sum(np.sqrt(2.0 * one.gap) for model in (dense, sparse) for one in model.certificates_)
    assert np.abs(dense.coef_ - sparse.coef_).max() <= apart
    assert not hasattr(dense, "predict_proba")
    path = LinearSVC(loss="steep_logistic").path(X, y, C=(0.1, 1.0), gap=1e-3)
    assert path.proven_gap <= 1e-3


@pytest.mark.parametrize("loss", [Expectile(0.8), Expectile, "expectile:tau=0.8", "expectile"])
def test_a_saved_model_has_its_loss(loss: Any, tmp_path: Path) -> None:
    model = LinearSVR(loss=loss).fit(X, T)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.loss == loss
    assert np.array_equal(again.predict(X), model.predict(X))


def test_loading_says_what_to_import(tmp_path: Path) -> None:
    for loss in (Expectile(0.8), "expectile:tau=0.8"):
        save(LinearSVR(loss=loss).fit(X, T), tmp_path / "model")
        kept = LOSSES.pop("expectile")
        try:
            with pytest.raises(DataError) as error:
                load(tmp_path / "model")
        finally:
            LOSSES["expectile"] = kept
        for words in ("expectile", "import support.own_losses", "--import support.own_losses"):
            assert words in str(error.value)


@pytest.mark.parametrize("loss", ["hinge", "pinball:tau=0.8", Hinge(), Pinball(0.3), *OWN_LOSSES, Expectile])
def test_plain_losses_come_back(loss: Any) -> None:
    assert loss_from_plain(plain_loss(loss)) == loss if not isinstance(plain_loss(loss), str) else plain_loss(loss)
    made = make_loss(loss)
    assert type(make_loss(loss_text(made))) is type(made)
    assert make_loss(loss_text(made)) == made


def test_lists_of_losses_keep_their_options() -> None:
    assert split_names("hinge, own:a=1,b=2,pinball:tau=0.5") == ["hinge", "own:a=1,b=2", "pinball:tau=0.5"]


@pytest.fixture
def own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder, the present one, with a loss in ``mine.py`` and data in ``data.csv``."""
    text = (Path(__file__).parents[1] / "support" / "own_losses.py").read_text().replace('"expectile"', '"mine"')
    (tmp_path / "mine.py").write_text(text.replace('"steep_logistic"', '"my_logistic"'))
    np.savetxt(tmp_path / "data.csv", np.column_stack([X, T]), delimiter=",")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in ("mine", "my_logistic"):
        LOSSES.pop(name, None)
    sys.modules.pop("mine", None)


def test_the_command_line_takes_a_class(own_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["train", "data.csv", "--import", "mine", "--loss", "mine:tau=0.8", "--tol", "1e-5", "--model", "m"]) == 0
    )
    assert "loss mine:tau=0.8" in capsys.readouterr().out
    assert main(["certify", "m", "data.csv", "--import", "mine", "--tol", "1e-4"]) == 0
    LOSSES.pop("mine")
    assert main(["predict", "m", "data.csv"]) == 2
    assert "--import mine" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--import", "nowhere"], "No module named 'nowhere'"),
        (["--import", "mine", "--loss", "mine:tau=2"], "tau"),
        (["--loss", "hinges"], "did you mean hinge?"),
    ],
)
def test_the_command_line_says_what_is_wrong(
    given: list[str], words: str, own_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "data.csv", *given]) == 2
    assert words in capsys.readouterr().err


def test_registration_names_what_is_missing() -> None:
    with pytest.raises(TypeError, match="shape"):
        register_loss("incomplete", task="regression", parabolic=True, exponentials=False)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"lacks value\(z, y\).*largest_curvature\(\)"):

        @register_loss("incomplete", **TRAITS)
        class Incomplete(NamedTuple):
            pass

    with pytest.raises(TypeError, match="NamedTuple"):
        register_loss("incomplete", **TRAITS)(object)
    with pytest.raises(ValueError, match="tau"):
        register_loss("incomplete", **TRAITS)(Expectile)
    with pytest.raises(ValueError, match="hinge"):
        register_loss("hinge", **TRAITS, options={"tau": POSITIVE})(Expectile)
    with pytest.raises(ValueError, match="kinked, cornered, smooth"):
        register_loss("incomplete", **TRAITS | {"shape": "round"}, options={"tau": POSITIVE})(Expectile)
    assert "incomplete" not in LOSSES


ANOTHER = """
import sys
import numpy as np
from saddlesvm import LinearSVC
X = np.random.default_rng(0).normal(size=(60, 3))
one, other = (LinearSVC(loss=loss).fit(X, X[:, 0] > 0.0) for loss in ("hinge", "hinge_again"))
print((one.coef_ == other.coef_).all(), other.certificate_.relative_gap <= 1e-4)
"""


def test_a_loss_of_the_package_is_one_class_in_one_file(tmp_path: Path) -> None:
    shutil.copytree(SOURCE, tmp_path / "saddlesvm", ignore=shutil.ignore_patterns("__pycache__", "bundled"))
    file = tmp_path / "saddlesvm" / "problem" / "margin_losses.py"
    text = file.read_text()
    hinge = text[text.index('@register(\n    "hinge"') : text.index('@register(\n    "squared_hinge"')]
    file.write_text(text + "\n\n" + hinge.replace('"hinge"', '"hinge_again"').replace("Hinge", "HingeAgain"))
    run = {"args": [sys.executable, "-c", ANOTHER], "cwd": tmp_path, "env": os.environ | {"PYTHONPATH": str(tmp_path)}}
    said = subprocess.run(**run, capture_output=True, text=True, check=True).stdout
    assert said == "True True\n"


COUNT = """
import mine
from kernels import of
print(of(mine.Expectile(0.5), 1.0, 0.0), sum(of.stats.cache_hits.values()))
"""
KERNEL = """
from saddlesvm.problem.loss import value
from saddlesvm.runtime.compiled import kernel
@kernel
def of(loss, z, y):
    return value(loss, z, y)
"""


def test_cached_kernels_follow_the_file_of_a_loss(own_file: Path) -> None:
    (own_file / "kernels.py").write_text(KERNEL)
    (own_file / "run.py").write_text(COUNT)

    def run() -> list[str]:
        done = subprocess.run([sys.executable, "run.py"], capture_output=True, text=True, check=True)
        return done.stdout.split()

    assert [run(), run()] == [["0.5", "0"], ["0.5", "1"]], "the second process loads what the first compiled"
    text = (own_file / "mine.py").read_text()
    (own_file / "mine.py").write_text(text.replace("* (z - y) ** 2\n", "* (z - y) ** 2 * 4.0\n"))
    assert run() == ["2.0", "0"], "an edited loss is compiled again"


def test_the_example_of_the_documentation_runs(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "own-loss.md").read_text()
    (example,) = (block for block in re.findall(r"```python\n(.*?)```", page, re.S) if "class Expectile" in block)
    (tmp_path / "mylosses.py").write_text(example)
    numbers = (0.7, -0.4, 1.3, 2.0, 1.5)
    run = f"from mylosses import Expectile; print(Expectile(0.9).dual_step(*{numbers}), Expectile(0.9).traits.name)"
    done = subprocess.run([sys.executable, "-c", run], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(Expectile(0.9).dual_step(*numbers)), "my_expectile"]
