"""Correctly rounded weights: the same bytes wherever they come from; models that learn and forget rows."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from saddlesvm import DCD, SDCA, LinearSVC, LinearSVR, Newton, NotCertifiedWarning, checker, load, save
from saddlesvm.answers.active_set import long_gradient, rounded
from saddlesvm.answers.neighbourhood import FACTORED
from saddlesvm.cli import parser as cli
from saddlesvm.data import Store, load_bundled
from saddlesvm.estimators.accountable import fingerprint
from saddlesvm.estimators.certify import certify_model
from saddlesvm.estimators.proofs import labels_of, rows_of
from saddlesvm.estimators.proven import Data
from saddlesvm.problem.losses import make_loss
from saddlesvm.rows.layouts import as_rows
from support import csr, shuffled, small_problem

HEART = load_bundled("heart")
X, Y = HEART.X / np.abs(HEART.X).max(axis=0), (HEART.y > 0).astype(int)


def test_rounding_is_to_the_nearest_of_the_grid_and_says_what_is_ambiguous() -> None:
    low = np.array([[0.75, -0.3, 0.0, 0.49999999999999994]])
    found = rounded(low, low, 4)
    assert found.exponents.tolist() == [-4]
    assert found.places.tolist() == [[12.0, -5.0, 0.0, 8.0]]
    assert found.ambiguous == 0
    assert rounded(low, low + np.array([[0.0, 0.02, 0.0, 0.04]]), 4).ambiguous == 2
    assert rounded(low, low + np.array([[0.3, 0.0, 0.0, 0.0]]), 4).ambiguous == 4  # the largest may be above 1
    assert rounded(low, np.full((1, 4), np.inf), 4).ambiguous == 4
    assert rounded(np.zeros((1, 3)), np.zeros((1, 3)), 4).ambiguous == 0


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "smooth_hinge"])
@pytest.mark.parametrize("intercept", ["regularized", "free"])
def test_the_digest_is_the_same_for_solvers_layouts_orders_and_threads(loss: str, intercept: str) -> None:
    options = {"loss": loss, "intercept": intercept, "canonical": 20}
    expected = LinearSVC(**options).fit(X, Y)
    assert expected.ambiguous_ == 0
    order = np.random.default_rng(0).permutation(len(Y))
    for solver in (DCD(), SDCA(), Newton(), "pegasos"):
        few = {"tol": 1e-2, "max_time": 20.0}
        assert LinearSVC(**options, **few, solver=solver, random_state=1).fit(X, Y).digest_ == expected.digest_
    same = [
        LinearSVC(**options, n_jobs=4).fit(X[order], Y[order]),
        LinearSVC(**options).fit(sparse.csr_array(X), Y),
        LinearSVC(**options, tol=1e-9).fit(X, Y),
    ]
    assert [one.digest_ for one in same] == [expected.digest_] * 3
    assert [one.coef_.tobytes() for one in same] == [expected.coef_.tobytes()] * 3
    assert LinearSVC(**options | {"C": 2.0}).fit(X, Y).digest_ != expected.digest_
    assert expected.certificate_.primal >= expected.certificate_.dual


def test_the_order_of_named_columns_does_not_change_the_digest() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"f{k}" for k in range(X.shape[1])])
    one = LinearSVC(canonical=16).fit(frame, Y)
    other = LinearSVC(canonical=16).fit(frame[frame.columns[::-1]], Y)
    assert one.digest_ == other.digest_
    assert one.coef_[0].tolist() == other.coef_[0, ::-1].tolist()


def test_rows_whose_values_stand_in_another_order_give_the_same_digest() -> None:
    unsorted = shuffled(csr(X))
    for part in (unsorted.data, unsorted.indices, unsorted.indptr):
        part.flags.writeable = False
    assert LinearSVC(canonical=20).fit(unsorted, Y).digest_ == LinearSVC(canonical=20).fit(X, Y).digest_


def test_a_store_gives_the_digest_of_its_rows(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "heart.store", X, Y)
    assert LinearSVC(canonical=20).fit(store).digest_ == LinearSVC(canonical=20).fit(X, Y).digest_


def test_more_bits_agree_with_fewer() -> None:
    fine, coarse = (LinearSVR(loss="squared", canonical=bits).fit(X, HEART.y) for bits in (30, 12))
    step = 2.0 ** (np.frexp(np.abs(np.append(fine.coef_, fine.intercept_)).max())[1] - 12)
    assert np.abs(fine.coef_ - coarse.coef_).max() <= 0.5 * step * (1 + 2.0**-17)


@pytest.mark.parametrize("layout", [np.asarray, csr])
def test_long_floats_give_the_gradient_within_their_bound(layout: Any) -> None:
    problem = small_problem(make_loss("squared_hinge"), weights=np.linspace(0.5, 2.0, 60))
    values, problem = problem.X.values, replace(problem, X=as_rows(layout(problem.X.values), problem.X.bias))
    w = np.linspace(-1.0, 1.0, problem.n_features + 1) / 3.0
    w[-1] = 0.0
    found = long_gradient(problem, w)
    if found is None:
        pytest.skip("long floats are float64 here")
    exact = [Fraction(float(one)) for one in w]
    for i in range(60):
        row = [Fraction(float(one)) for one in values[i]] + [Fraction(0)]
        y, s = Fraction(float(problem.y[i])), Fraction(float(problem.weights[i]))
        z = sum(a * Fraction(float(b)) for a, b in zip(row, w, strict=True))
        slope = -2 * y * max(Fraction(0), 1 - y * z) * s * Fraction(problem.C)
        exact = [e + slope * a for e, a in zip(exact, row, strict=True)]
    away = [Fraction(float(a)) - b for a, b in zip(found[0], exact, strict=True)][:-1]
    assert sum(one * one for one in away) <= Fraction(found[1]) ** 2


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_more_features_than_a_factor_may_have_are_rounded_by_the_gradient(loss: str) -> None:
    random = np.random.default_rng(0)
    wide = sparse.random_array((200, FACTORED + 50), density=0.01, rng=random, format="csr")
    y = np.where(wide @ random.normal(size=FACTORED + 50) > 0.0, "b", "a")
    order = random.permutation(200)
    one = LinearSVC(loss=loss, canonical=20).fit(wide, y)
    other = LinearSVC(loss=loss, canonical=20, solver=DCD(), tol=1e-2, random_state=1).fit(wide[order], y[order])
    assert one.ambiguous_ == 0
    assert one.digest_ == other.digest_


def test_a_hinge_whose_active_set_is_verified_has_a_digest() -> None:
    random = np.random.default_rng(0)
    rows = random.normal(size=(150, 10))
    y = (rows[:, 0] + random.normal(size=150) > 0.0).astype(int)
    one = LinearSVC(loss="hinge", canonical=20).fit(rows, y)
    other = LinearSVC(loss="hinge", canonical=20, solver=SDCA(), random_state=1).fit(rows[::-1], y[::-1])
    assert one.ambiguous_ == 0
    assert one.digest_ == other.digest_


def test_what_is_not_proven_is_left_and_said() -> None:
    twice, labels = np.vstack([X, X]), np.concatenate([Y, Y])  # rows on the margin depend on each other
    plain = LinearSVC(loss="hinge").fit(twice, labels)
    with pytest.warns(NotCertifiedWarning, match="canonical=30: the rounding of"):
        model = LinearSVC(loss="hinge", canonical=30).fit(twice, labels)
    assert model.ambiguous_ > 0
    assert not hasattr(model, "digest_")
    assert model.coef_.tobytes() == plain.coef_.tobytes()


def test_options_that_cannot_be_are_refused() -> None:
    for given in (0, 45, 2.5, "20"):
        with pytest.raises(ValueError, match="canonical must be a whole number of bits"):
            LinearSVC(canonical=given).fit(X, Y)
    with pytest.raises(ValueError, match="canonical is for multi_class"):
        LinearSVC(canonical=8, multi_class="multinomial", loss="logistic").fit(X, HEART.y)
    with pytest.raises(ValueError, match="give a number as C"):
        LinearSVC(canonical=8, C="auto").fit(X, Y)
    with pytest.raises(ValueError, match="does not round curves"):
        LinearSVC(canonical=8, probability=True).fit(X, Y)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "logistic"])
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_forgetting_and_learning_end_where_a_fit_ends(loss: str, multi_class: str) -> None:
    options = {"loss": loss, "multi_class": multi_class, "tol": 1e-8, "canonical": None if loss == "hinge" else 20}
    gone = np.array([0, 5, 17, 200])
    kept = np.setdiff1d(np.arange(len(X)), gone)
    fresh = LinearSVC(**options).fit(X[kept], HEART.y[kept])
    model = LinearSVC(**options).fit(X, HEART.y).forget(gone)
    told = json.loads(model.log_[0])
    assert (told["what"], told["rows"], told["left"]) == ("forgot", 4, len(kept))
    assert told["sha256"] == fingerprint(Data(X[gone], HEART.y[gone], None))
    away = sum(np.sqrt(2.0 * one.certificate_.gap) for one in (model, fresh))
    assert np.linalg.norm(model.coef_ - fresh.coef_) <= away
    assert getattr(model, "digest_", "") == getattr(fresh, "digest_", "")
    model.update(X[gone], HEART.y[gone])
    whole = LinearSVC(**options).fit(np.vstack([X[kept], X[gone]]), np.append(HEART.y[kept], HEART.y[gone]))
    assert getattr(model, "digest_", "") == getattr(whole, "digest_", "")
    assert [json.loads(one)["what"] for one in model.log_] == ["forgot", "added"]


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "logistic"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"solver": "dcd"},
        {"intercept": "free"},
        {"fit_intercept": False},
        {"lam": 1e-3},
        {"class_weight": "balanced"},
        {"penalty": "elasticnet", "l1_ratio": 0.2},
        {"max_iter": 500},
        {"sample_weight": True},
    ],
    ids=str,
)
def test_what_is_left_after_forgetting_is_certified(loss: str, options: dict[str, Any]) -> None:
    notes = load_bundled("banknote")
    weights = np.linspace(0.5, 2.0, len(notes.y)) if options.pop("sample_weight", False) else None
    C = {} if "lam" in options else {"C": 0.1}
    model = LinearSVC(loss=loss, random_state=0, **C, **options).fit(notes.X, notes.y, sample_weight=weights)
    for gone in ([7], np.arange(100, 130)):
        X, y = model.training_data().X, model.training_data().y
        model.forget(gone)
        left = np.setdiff1d(np.arange(len(y)), gone)
        s = None if weights is None else weights[left]
        weights = s
        fresh = LinearSVC(loss=loss, random_state=0, tol=1e-5, **C, **options).fit(X[left], y[left], sample_weight=s)
        assert model.certificate_.relative_gap <= model.tol
        assert model.certificate_.dual <= fresh.certificate_.primal
        assert fresh.certificate_.dual <= model.certificate_.primal
        assert model.dual_coef_.shape == (1, len(left))
        assert str(model.outcome_) == "certified"
    again = certify_model(model, X[left], y[left], sample_weight=weights)[0]
    assert again.primal == pytest.approx(model.certificate_.primal, rel=1e-9)


def test_rows_may_be_given_by_a_mask_with_weights_and_data_from_elsewhere(tmp_path: Path) -> None:
    weights = np.linspace(0.5, 1.5, len(Y))
    mask = np.arange(len(Y)) % 7 == 3
    model = LinearSVC(canonical=20).fit(X, Y, sample_weight=weights)
    save(model, tmp_path / "a.model")
    loaded = load(tmp_path / "a.model")
    assert loaded.digest_ == model.digest_
    with pytest.raises(ValueError, match="no training data"):
        loaded.forget(mask)
    fresh = LinearSVC(canonical=20).fit(sparse.csr_array(X[~mask]), Y[~mask], sample_weight=weights[~mask])
    assert loaded.forget(mask, X, Y, weights).digest_ == fresh.digest_
    for rows, message in (([], "0 of"), ([303], "no row 303"), (mask[:5], "297 entries"), ([0.5], "whole numbers")):
        with pytest.raises(ValueError, match=message):
            model.forget(rows)


def test_the_hash_of_arrays_is_the_checkers() -> None:
    for y in (Y, np.where(Y == 1, "ill", "well")):
        expected = checker.fingerprint(rows_of(X), labels_of(y, y.dtype.kind == "U"))
        for form in (X, sparse.csr_array(X)):
            assert fingerprint(Data(form, y, None)) == expected


def test_a_card_has_the_facts_as_markdown_and_json() -> None:
    model = LinearSVC(canonical=20).fit(X, Y)
    facts = json.loads(model.card(X, Y, format="json"))
    assert facts["canonical weights"]["digest"] == model.digest_
    assert facts["data"]["sha256"] == fingerprint(Data(X, Y, None))
    low, high = facts["accuracy"]["accuracy of the exact optimum, proven"]
    assert low <= facts["accuracy"]["score"] <= high
    assert f"| digest | {model.digest_} |" in model.card()
    with pytest.raises(ValueError, match="format"):
        model.card(format="html")  # type: ignore[arg-type]
    assert "## Changes" in model.forget([3]).card()


def test_the_command_line_forgets_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = str(tmp_path / "one.model"), str(tmp_path / "other.model")
    notes = load_bundled("banknote")
    save(LinearSVC(canonical=20).fit(notes.X, notes.y), one, notes={})
    assert cli.main(["forget", one, "banknote", "--rows", "3,7-9", "-o", other]) == 0
    kept = np.setdiff1d(np.arange(len(notes.y)), [3, 7, 8, 9])
    assert load(other).digest_ == LinearSVC(canonical=20).fit(notes.X[kept], notes.y[kept]).digest_
    assert load(other).digest_ in capsys.readouterr().out
    with pytest.raises(SystemExit):
        cli.main(["forget", one, "banknote", "--rows", "3-x", "-o", other])
