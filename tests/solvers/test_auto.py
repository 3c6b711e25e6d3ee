"""The automatic solver: certified anywhere, repeatable, and it says what it does."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from saddlesvm import LinearSVC, LinearSVR, NotCertifiedWarning, Outcome
from saddlesvm.data import load_bundled
from saddlesvm.solvers import Auto, make_solver
from saddlesvm.solvers.auto import COORDINATES, FINISH

LOSSES = ["hinge", "squared_hinge", "logistic"]


@pytest.fixture(scope="module")
def heart():
    return load_bundled("heart")


@pytest.mark.parametrize("C", [0.01, 100.0, 1e4])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", ["regularized", "free"])
def test_unscaled_data_are_certified_at_any_c(heart, loss, C, intercept):
    model = LinearSVC(loss=loss, C=C, tol=1e-6, intercept=intercept, random_state=0).fit(heart.X, heart.y)
    assert model.outcome_ is Outcome.CERTIFIED
    assert -1e-12 <= model.certificate_.relative_gap <= 1e-6


@pytest.mark.parametrize("loss", LOSSES)
def test_float32_certifies_as_well_as_float64(heart, loss):
    fine = LinearSVC(loss=loss, C=10.0, tol=1e-6, random_state=0).fit(heart.X, heart.y)
    coarse = LinearSVC(loss=loss, C=10.0, tol=1e-6, random_state=0).fit(heart.X.astype(np.float32), heart.y)
    assert coarse.certificate_.relative_gap <= 1e-6
    # heart's values are exact in float32 (but for one column of tenths), so the optima are nearly the same
    assert coarse.certificate_.primal == pytest.approx(fine.certificate_.primal, rel=1e-4)


def test_sparse_rows_and_weights(heart):
    weights = np.random.default_rng(0).uniform(0.5, 2.0, size=heart.X.shape[0])
    dense = LinearSVC(loss="hinge", C=100.0, tol=1e-6, random_state=0).fit(heart.X, heart.y, weights)
    rows = LinearSVC(loss="hinge", C=100.0, tol=1e-6, random_state=0).fit(sparse.csr_array(heart.X), heart.y, weights)
    lower, upper = sorted([dense.certificate_.primal, rows.certificate_.primal])
    assert upper - lower <= 2e-6 * upper


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "absolute", "squared", "squared_epsilon_insensitive"])
def test_regression(heart, loss):
    X, y = heart.X[:, :-1], heart.X[:, -1]
    model = LinearSVR(loss=loss, epsilon=0.1, C=100.0, tol=1e-6, random_state=0).fit(X, y)
    assert model.outcome_ is Outcome.CERTIFIED


def test_the_decision_is_in_the_trace_in_words(heart):
    model = LinearSVC(loss="hinge", C=1.0, tol=1e-6, random_state=0).fit(heart.X, heart.y)
    said = " ".join(row["remark"] for row in model.trace_)
    assert "changing over" in said
    assert "Newton step" in said
    assert FINISH in model.phases_
    assert COORDINATES in model.phases_


def test_easy_problems_stay_with_coordinate_descent():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 10))
    y = np.where(X[:, 0] + rng.normal(size=500) > 0, 1, -1)
    model = LinearSVC(loss="squared_hinge", C=1e-3, random_state=0).fit(X, y)
    assert set(model.phases_) == {COORDINATES}


def test_repeatable(heart):
    one = LinearSVC(loss="hinge", C=10.0, tol=1e-6, random_state=3).fit(heart.X, heart.y)
    two = LinearSVC(loss="hinge", C=10.0, tol=1e-6, random_state=3).fit(heart.X, heart.y)
    assert (one.coef_ == two.coef_).all()
    assert one.n_iter_ == two.n_iter_


def test_a_checkpoint_is_continued_in_either_phase(tmp_path, heart):
    for epochs in (6, 14):
        path = tmp_path / f"run{epochs}"
        common = {"loss": "hinge", "C": 100.0, "tol": 1e-7, "random_state": 0, "checkpoint": path}
        with pytest.warns(NotCertifiedWarning):
            LinearSVC(max_iter=epochs, **common).fit(heart.X, heart.y)
        model = LinearSVC(**common).fit(heart.X, heart.y)
        assert model.outcome_ is Outcome.CERTIFIED


@pytest.mark.parametrize("seed", range(12))
def test_tiny_problems_whose_estimate_is_infinite_at_first(seed):
    rng = np.random.default_rng(seed)
    X = sparse.random(12, 3, density=0.5, format="csr", random_state=seed)
    model = LinearSVR(C=10.0 ** rng.integers(-3, 4), random_state=seed).fit(X, rng.integers(0, 3, size=12))
    assert model.outcome_ is Outcome.CERTIFIED


def test_options():
    assert make_solver("auto:memory=1e8") == Auto(memory=1e8)
    with pytest.raises(ValueError, match="memory must be positive"):
        Auto(memory=0.0)
    with pytest.raises(ValueError, match="begin must be"):
        Auto(begin="nonsense")


def test_little_memory_is_enough(heart):
    model = LinearSVC(loss="hinge", C=1.0, tol=1e-5, solver=Auto(memory=2e4), random_state=0).fit(heart.X, heart.y)
    assert model.outcome_ is Outcome.CERTIFIED


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_many_rows_that_bend_are_left_to_the_finish_early(loss):
    n, d = 4_000, 64  # too few rows per feature for samples
    X = np.random.default_rng(0).normal(size=(n, d)) * 10.0 ** np.linspace(-2, 1, d)
    y = np.where(X @ np.arange(1.0, d + 1.0) + 20.0 * d * np.random.default_rng(1).normal(size=n) > 0.0, 1, -1)
    model = LinearSVC(loss=loss, C=10.0, tol=1e-6, random_state=0).fit(X, y)
    assert model.outcome_ is Outcome.CERTIFIED
    assert FINISH in model.phases_
    assert model.n_iter_ <= 12


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_tall_data_begin_on_a_sample_where_that_is_cheaper(loss):
    random = np.random.default_rng(0)
    X = random.normal(size=(40_000, 10)) * 10.0 ** np.linspace(-1.0, 1.0, 10)
    y = np.where(X @ np.cos(np.arange(10)) + 3.0 * random.normal(size=40_000) > 0.0, 1, -1)
    for C, tol, begins in ((10.0, 1e-4, True), (1e-6, 1e-1, False)):
        model = LinearSVC(loss=loss, C=C, tol=tol, random_state=0).fit(X, y)
        assert model.outcome_ is Outcome.CERTIFIED
        assert set(model.phases_) == {FINISH if begins else COORDINATES}


def test_the_tighter_the_tolerance_the_sooner_a_sample_pays():
    random = np.random.default_rng(0)
    X = random.normal(size=(40_000, 10)) / np.sqrt(10.0)
    y = np.where(X @ np.cos(np.arange(10)) + 0.3 * random.normal(size=40_000) > 0.0, 1, -1)
    first = {tol: LinearSVC(loss="squared_hinge", C=0.05, tol=tol).fit(X, y).phases_ for tol in (1e-1, 1e-8)}
    assert set(first[1e-1]) == {COORDINATES}
    assert set(first[1e-8]) == {FINISH}


def test_few_rows_that_bend_are_not():
    X = np.random.default_rng(0).normal(size=(5_000, 300))
    y = np.where(X @ np.cos(np.arange(300)) > 0.0, 1, -1)
    chosen = np.abs(X @ np.cos(np.arange(300))) > 10.0  # a wide margin: few rows touch it
    model = LinearSVC(loss="squared_hinge", C=1e4, tol=1e-6, random_state=0).fit(X[chosen], y[chosen])
    assert model.outcome_ is Outcome.CERTIFIED
    assert not any(f"epoch {epoch}:" in row["remark"] for row in model.trace_ for epoch in (2, 4))


def test_logistic_problems_over_words_are_finished_by_conjugate_gradients():
    n, d, words = 3_000, 3_000, 20
    random, frequency = np.random.default_rng(0), 1.0 / np.arange(1, d + 1)
    columns = random.choice(d, size=n * words, p=frequency / frequency.sum())
    X = sparse.csr_array((np.ones(n * words), (np.repeat(np.arange(n), words), columns)), shape=(n, d))
    y = np.where(X @ random.normal(size=d) + random.normal(size=n) > 0.0, 1, -1)
    model = LinearSVC(loss="logistic", C=10.0, tol=1e-6, random_state=0).fit(X, y)
    assert model.outcome_ is Outcome.CERTIFIED
    assert set(model.phases_) == {COORDINATES, FINISH}
    assert "conjugate gradients" in model.trace_[-1]["remark"]
    assert model.n_iter_ < 30


def test_an_estimate_of_zero_is_no_evidence():
    """With a free intercept the rows may all be at rest while the sum of the dual variables is amiss."""
    random = np.random.default_rng(0)
    X = random.standard_normal((1000, 10))
    y = X[:, 0] + random.standard_normal(1000) > 1.0
    model = LinearSVC(loss="hinge", intercept="free", C=1e-5, random_state=0).fit(X, y)
    assert model.outcome_ is Outcome.CERTIFIED


@pytest.mark.parametrize("seed", [35, 94])
@pytest.mark.parametrize(("loss", "C"), [("hinge", 100.0), ("hinge", 1e4), ("squared_hinge", 1e4)])
def test_standing_still_is_a_reason_to_change_over(loss: str, C: float, seed: int):
    random = np.random.default_rng(seed)
    X = random.standard_normal((20, 5))
    y = X @ random.standard_normal(5) + random.standard_normal(20) > 0.0
    model = LinearSVC(loss=loss, C=C, random_state=0).fit(X, y)
    assert model.outcome_ is Outcome.CERTIFIED and "Newton" in model.phases_


@pytest.mark.parametrize("loss", ["squared", "squared_epsilon_insensitive", "absolute"])
@pytest.mark.parametrize("level", [1e2, 1e6])
def test_targets_far_from_zero_are_no_trouble(loss: str, level: float):
    """With a free intercept the dual variables' products with them cancel."""
    random = np.random.default_rng(0)
    X = random.standard_normal((500, 3))
    y = X[:, 0] + 0.01 * random.standard_normal(500)
    model = LinearSVR(loss=loss, intercept="free", random_state=0).fit(X, level + y)
    assert model.outcome_ is Outcome.CERTIFIED
    near = LinearSVR(loss=loss, intercept="free", random_state=0).fit(X, y)
    assert model.certificate_.primal == pytest.approx(near.certificate_.primal, rel=2e-4)


@pytest.mark.parametrize("seed", [4, 18, 24])
def test_where_no_row_bends_coordinate_descent_goes_on(seed: int):
    """A single row against many, far from zero: the smooth hinge is flat or linear everywhere."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(300, 4)) * [0.1, 3.0, 0.3, 1.0] + [10.0, -5.0, 10.0, 3.0]
    y = np.arange(300) == 0
    model = LinearSVC(loss="smooth_hinge", intercept="free", C=10.0, tol=1e-7, random_state=0).fit(X, y)
    assert model.outcome_ is Outcome.CERTIFIED


def test_a_sample_of_one_class_is_no_trouble():
    random = np.random.default_rng(0)
    X = random.normal(size=(50_000, 5)) + 10.0
    y = np.arange(50_000) % 10_000 == 0
    for loss in ("smooth_hinge", "squared_hinge", "logistic"):
        model = LinearSVC(loss=loss, intercept="free", C=100.0, tol=1e-6, random_state=0).fit(X, y)
        assert model.outcome_ is Outcome.CERTIFIED


@pytest.mark.parametrize("C", [1e4, 1e6, 1e10])
@pytest.mark.parametrize("intercept", ["regularized", "free"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "smooth_hinge", "logistic"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_separable_rows_are_certified_at_any_C(dtype, loss, intercept, C):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 450)).astype(dtype), rng.integers(0, 2, 300)
    model = LinearSVC(loss=loss, C=C, intercept=intercept, solver="auto", tol=1e-6, random_state=0).fit(X, y)
    assert model.certificate_.relative_gap <= 1e-6
