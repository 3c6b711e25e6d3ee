"""Leave-one-out without training again: close to what training again gives, and its bounds never wrong."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris

from saddlesvm import LinearSVC, LinearSVR, NotCertifiedWarning, leave_one_out
from saddlesvm.estimators.automatic_C import AutomaticC
from saddlesvm.estimators.held_out import draw_folds

N = 70
LOSSES = ["hinge", "squared_hinge", "logistic"]


def rows(n=N, d=4, seed=0):
    """Two overlapping clouds, and their labels."""
    random = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return random.normal(size=(n, d)) + 0.8 * y[:, None] * np.linspace(1.0, 0.2, d), y


def without_each(model, X, y):
    """The margin of each row for a model that is trained anew without it."""
    found = np.empty(len(y))
    for i in range(len(y)):
        kept = np.arange(len(y)) != i
        left_out = type(model)(**model.get_params()).set_params(tol=1e-8).fit(X[kept], y[kept])
        decide = getattr(left_out, "decision_function", left_out.predict)
        found[i] = decide(X[i : i + 1])[0]
    return found


@pytest.mark.parametrize("loss", LOSSES)
def test_estimates_come_close_to_training_again(loss):
    X, y = rows()
    model = LinearSVC(loss=loss, C=0.3, tol=1e-6, random_state=0).fit(X, y)
    exact, found = without_each(model, X, y), leave_one_out(model, X, y)
    moved = np.sqrt(np.mean((model.decision_function(X) - exact) ** 2))
    assert np.sqrt(np.mean((found.margins - exact) ** 2)) <= 0.5 * moved
    assert abs(found.error - np.mean((exact > 0) != (y > 0))) <= 2 / N
    assert found.trusted
    assert found.reasons == []


@pytest.mark.parametrize("tol", [1e-6, 1e-2])
@pytest.mark.parametrize("loss", LOSSES)
def test_bounds_hold_for_every_row(loss, tol):
    X, y = rows(seed=1)
    model = LinearSVC(loss=loss, C=0.3, tol=tol, random_state=0).fit(X, y)
    exact, found = without_each(model, X, y), leave_one_out(model, X, y)
    rounding = 1e-6 * np.abs(exact).max()
    assert (found.low <= exact + rounding).all()
    assert (exact <= found.high + rounding).all()
    right = ((found.low > 0) | (found.high < 0)).sum()
    assert found.proven == right


def test_rows_without_a_dual_variable_are_exact():
    X, y = rows()
    model = LinearSVC(loss="hinge", C=0.3, tol=1e-9, random_state=0).fit(X, y)
    found, idle = leave_one_out(model, X, y), np.ravel(model.dual_coef_) == 0.0
    np.testing.assert_array_equal(found.margins[idle], model.decision_function(X)[idle])


def test_regression_has_estimates_too():
    random = np.random.default_rng(2)
    X = random.normal(size=(60, 3))
    y = X @ [1.0, -1.0, 0.5] + 0.5 * random.normal(size=60)
    model = LinearSVR(loss="squared", C=0.2, tol=1e-9, random_state=0).fit(X, y)
    exact, found = without_each(model, X, y), leave_one_out(model, X, y)
    np.testing.assert_allclose(found.margins, exact, rtol=1e-3, atol=1e-3)  # exact for a quadratic
    np.testing.assert_allclose(found.error, np.mean((exact - y) ** 2), rtol=1e-3)
    assert found.proven is None
    assert np.isnan(found.log_loss)


def test_several_classes_layouts_and_weights():
    random = np.random.default_rng(3)
    y = np.arange(90) % 3
    X = random.normal(size=(90, 3)) + 1.5 * np.eye(3)[y]
    weights = random.uniform(0.5, 2.0, 90)
    model = LinearSVC(loss="logistic", class_weight="balanced", random_state=0).fit(X, y, weights)
    dense = leave_one_out(model, X, y, weights)
    of_csr = leave_one_out(model, sparse.csr_matrix(X), y, weights)
    assert dense.margins.shape == (90, 3)
    np.testing.assert_allclose(of_csr.margins, dense.margins, rtol=1e-9, atol=1e-9)
    assert dense.proven == 90
    assert dense.error_low == dense.error == dense.error_high


def test_a_free_intercept_is_proven_with_curvature_and_estimated_without():
    X, y = rows(seed=4)
    model = LinearSVC(loss="logistic", intercept="free", C=0.3, tol=1e-7, random_state=0).fit(X + 5.0, y)
    exact, found = without_each(model, X + 5.0, y), leave_one_out(model, X + 5.0, y)
    np.testing.assert_allclose(found.margins, exact, atol=0.05)
    assert found.proven == N
    kinked = LinearSVC(loss="hinge", intercept="free", C=0.3, random_state=0).fit(X, y)
    found = leave_one_out(kinked, X, y)
    assert not np.isfinite([found.low, found.high]).any()
    assert found.proven is None
    assert abs(found.error - np.mean((without_each(kinked, X, y) > 0.0) != (y > 0))) <= found.standard_error


def test_wide_rows_have_no_estimates_and_C_auto_is_chosen_by_folds():
    X, y = rows(n=60, d=30, seed=5)
    wide = sparse.hstack([sparse.csr_array(X), sparse.csr_array((60, 2_500))], format="csr")
    model = LinearSVC(loss="logistic", C=0.1, tol=1e-6, random_state=0).fit(wide, y)
    with pytest.raises(ValueError, match="needs at most 2,500 features; this model has 2,530: use cross-validation"):
        leave_one_out(model, wide, y)
    chosen = LinearSVC(C="auto:low=1e-2,high=1e2,size=5", random_state=0).fit(wide, y)
    choice = chosen.choice_
    assert choice.by_folds
    assert choice.estimates == []
    np.testing.assert_array_equal(chosen.path_.Cs, choice.Cs)
    folds = draw_folds(y, None, 0)
    for C, error in zip(choice.Cs, choice.errors, strict=True):
        wrong = np.concatenate(
            [
                LinearSVC(C=C, random_state=0).fit(wide[folds != k], y[folds != k]).predict(wide[folds == k])
                != y[folds == k]
                for k in range(5)
            ]
        )
        assert error == pytest.approx(wrong.mean(), abs=2 / 60)  # a fit to 1e-2 may turn a label


def test_a_model_that_fits_whatever_its_rows_say_is_not_trusted():
    random = np.random.default_rng(6)
    X, y = random.normal(size=(40, 60)), np.arange(40) % 2
    found = leave_one_out(LinearSVC(C=1e4, random_state=0).fit(X, y), X, y)
    assert not found.trusted
    assert "of the degrees of freedom of the rows" in found.reasons[0]
    chosen = LinearSVC(C="auto:low=1e3,high=1e5", random_state=0).fit(X, y).choice_
    assert chosen.by_folds
    assert np.isfinite(chosen.errors).all()


def test_other_rows_than_the_models_are_refused():
    X, y = rows()
    model = LinearSVC(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="the model has dual variables for 70 rows; X has 69"):
        leave_one_out(model, X[1:], y[1:])
    joint = LinearSVC(multi_class="ovo", random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="needs multi_class='ovr'; this model has 'ovo'"):
        leave_one_out(joint, X, y)


@pytest.mark.parametrize("loss", LOSSES)
def test_C_auto_is_a_certified_fit_at_the_C_it_chose(loss):
    X, y = rows(seed=7)
    model = LinearSVC(C="auto", loss=loss, tol=1e-5, random_state=0).fit(X, y)
    assert model.certificate_.relative_gap <= 1e-5
    assert model.get_params()["C"] == "auto"
    assert model.C_ in model.choice_.Cs
    path = model.path_
    np.testing.assert_array_equal(path.Cs, model.choice_.Cs)
    assert path.fit_gaps.max() <= 1e-2
    assert path.proven_gap <= path.gap
    between = float(np.sqrt(path.Cs[0] * path.Cs[1]))
    honest = LinearSVC(C=between, loss=loss, tol=1e-5, random_state=0).fit(X, y).certificate_
    assert path.certificate(between).dual <= honest.primal * (1 + 1e-12)
    assert honest.dual <= path.certificate(between).primal * (1 + 1e-12)
    alone = LinearSVC(C=model.C_, loss=loss, tol=1e-5, random_state=0).fit(X, y).certificate_
    assert model.certificate_.dual <= alone.primal * (1 + 1e-12)
    assert alone.dual <= model.certificate_.primal * (1 + 1e-12)
    assert not model.choice_.by_folds
    assert model.choice_.errors[model.choice_.Cs == model.C_] == model.choice_.errors.min()


def test_the_rule_of_one_standard_error_chooses_no_larger_C():
    X, y = rows(seed=8)
    best, careful = (
        LinearSVC(C=f"auto:rule={rule}", random_state=0).fit(X, y) for rule in ("best", "one_standard_error")
    )
    assert careful.C_ <= best.C_
    same = LinearSVC(C=AutomaticC(rule="best"), random_state=0).fit(X, y)
    assert same.C_ == best.C_


def test_C_auto_for_regression():
    random = np.random.default_rng(9)
    X = random.normal(size=(60, 3))
    y = X @ [1.0, -1.0, 0.5] + 0.1 * random.normal(size=60)
    model = LinearSVR(C="auto", loss="squared_epsilon_insensitive", epsilon=0.05, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.97
    assert model.certificate_.relative_gap <= 1e-4


@pytest.mark.parametrize(
    ("C", "message"),
    [
        ("automatic", "C must be a positive finite number, from 1e-200 to 1e.200, 'auto' or None; got 'automatic'"),
        ("auto:rule=worst", "the rule of C='auto' must be 'best' or 'one_standard_error'; got 'worst'"),
        ("auto:low=2,high=1", "low must be smaller than high"),
        ("auto:low=x", "low of C='auto' must be a positive finite number, from 1e-200 to 1e\\+200; got 'x'"),
        ("auto:lower=1", "C='auto' has no option 'lower'; it has: rule, low, high, gap, size"),
        ("auto:size=1", "size of C='auto' must be a whole number of at least 2"),
    ],
)
def test_bad_words_for_C_are_refused(C, message):
    X, y = rows()
    with pytest.raises(ValueError, match=message):
        LinearSVC(C=C).fit(X, y)


def test_C_auto_needs_one_vs_rest_and_no_lambda():
    X, y = rows()
    with pytest.raises(ValueError, match="C='auto' needs multi_class='ovr'"):
        LinearSVC(C="auto", multi_class="ovo").fit(X, y)
    with pytest.raises(ValueError, match="give either C or lam"):
        LinearSVC(C="auto", lam=0.1).fit(X, y)


def test_C_auto_keeps_to_a_time_limit():
    X, y = rows(n=200, d=20)
    with pytest.warns(NotCertifiedWarning):
        LinearSVC(C="auto", loss="hinge", max_time=1e-4, random_state=0).fit(X, y)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_error_lies_between_its_bounds(loss):
    X, y = rows(n=60, seed=11)
    model = LinearSVC(loss=loss, C=0.3, random_state=0).fit(X, y)
    found = leave_one_out(model, X, y)
    exact = without_each(model, X, y)
    assert found.error_low <= np.mean((exact > 0) != (y > 0)) <= found.error_high
    assert found.error_low <= found.error <= found.error_high
    if loss != "hinge":
        assert found.error_low == found.error_high


def test_C_auto_says_how_far_its_error_is_proven():
    X, y = rows(seed=12)
    choice = LinearSVC(C="auto:low=0.01,high=1,size=4", loss="logistic", random_state=0).fit(X, y).choice_
    low, high = choice.error_bounds
    assert low == high
    assert abs(choice.error - low) <= 2 / N


@pytest.mark.parametrize("loss", ["squared_hinge", "smooth_hinge", "logistic", "hinge"])
def test_rows_of_weight_zero_change_no_estimate_of_other_rows(loss: str) -> None:
    data = load_iris()
    weights = np.where(np.arange(150) % 5 == 0, 0.0, 1.0)
    counted = weights > 0.0
    model = LinearSVC(loss=loss, tol=1e-8).fit(data.data, data.target, sample_weight=weights)
    found = leave_one_out(model, data.data, data.target, sample_weight=weights)
    fewer = LinearSVC(loss=loss, tol=1e-8).fit(data.data[counted], data.target[counted])
    alone = leave_one_out(fewer, data.data[counted], data.target[counted])
    assert found.error == pytest.approx(alone.error, abs=0.01)
    np.testing.assert_allclose(found.margins[counted], alone.margins, rtol=0.05, atol=0.05)
    # A row that does not count is predicted by the model itself.
    own = model.decision_function(data.data[~counted])
    np.testing.assert_allclose(found.margins[~counted], own, atol=1e-2)
    assert (found.low <= found.high).all()
