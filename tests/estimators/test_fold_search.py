"""Cross-validation over one set of rows: every fold's model is certified, whatever way led to it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import accuracy_score
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold

from saddlesvm import LinearSVC, LinearSVCCV
from saddlesvm.data import load_bundled
from saddlesvm.estimators.part_fits import PartFits

CS = [1e-2, 1.0, 30.0]


@pytest.fixture(scope="module")
def heart():
    table = load_bundled("heart")
    return table.X / table.X.std(axis=0), table.y


def fits_of(X, y, cv, **options):
    """The fits of all rows and of each fold, as a search makes them."""
    template = LinearSVC(random_state=0, **options)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    whole = PartFits(template, X, y, weights)
    parts = [whole.part(np.isin(np.arange(len(y)), train), weights) for train, _ in cv.split(np.zeros(len(y)), y)]
    for part in (whole, *parts):
        fitted = None
        for C in CS:
            fitted = part.fit(C, fitted)
            yield C, weights, part, fitted


@pytest.mark.parametrize("intercept", ["regularized", "free"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("multi", ["two", "ovr", "ovo"])
def test_every_model_is_as_near_to_the_optimum_as_it_says(heart, loss, intercept, multi):
    X, y = heart[0], heart[1] if multi == "two" else np.digitize(heart[0][:, 4], [4.0, 5.0])
    way = {} if multi == "two" else {"multi_class": multi}
    for C, weights, part, fitted in fits_of(X, y, StratifiedKFold(3), loss=loss, intercept=intercept, **way):
        chosen = np.ones(len(y), dtype=bool) if part.chosen is None else part.chosen
        alone = LinearSVC(C=C, loss=loss, intercept=intercept, random_state=0, tol=1e-6, **way)
        best = alone.fit(X[chosen], y[chosen], sample_weight=weights[chosen]).certificate_
        assert fitted.certificate.relative_gap <= 1e-4
        assert fitted.certificate.dual <= best.primal * (1 + 1e-9)
        assert best.dual <= fitted.certificate.primal * (1 + 1e-9)
        assert abs(fitted.duals[:, np.flatnonzero(~chosen)]).sum() == 0.0


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_threads_make_no_difference(heart, loss):
    one, two = (
        LinearSVCCV(LinearSVC(loss=loss, random_state=0), Cs=CS, cv=3, n_jobs=jobs).fit(*heart) for jobs in (None, 2)
    )
    np.testing.assert_array_equal(one.scores_, two.scores_)
    np.testing.assert_array_equal(one.relative_gaps_, two.relative_gaps_)
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_each_fold_follows_its_own_path_and_ends_where_single_fits_do():
    random = np.random.default_rng(5)
    X = sparse.random(150, 3000, 0.02, random_state=5, format="csr")
    y = np.where(X[:, :40].sum(axis=1).A1 + 0.1 * random.normal(size=150) > 0.3, 1, -1)
    model = LinearSVC(loss="logistic", tol=1e-6, random_state=0)
    Cs = np.geomspace(1e-2, 1e2, 5)
    one, two = (LinearSVCCV(model, Cs=Cs, cv=3, n_jobs=jobs).fit(X, y) for jobs in (None, 2))
    np.testing.assert_array_equal(one.scores_, two.scores_)
    np.testing.assert_array_equal(one.relative_gaps_, two.relative_gaps_)
    assert (one.relative_gaps_ <= 1e-6).all()
    for k, C in enumerate(Cs):
        alone = [LinearSVC(C=C, loss="logistic", tol=1e-6, random_state=0).fit(X[a], y[a]).score(X[b], y[b])
                 for a, b in StratifiedKFold(3).split(X, y)]  # fmt: skip
        np.testing.assert_array_equal(one.scores_[k], alone)


def test_no_fold_begins_at_weights_that_have_seen_its_held_out_rows(heart, monkeypatch):
    """A fold's first fit begins with nothing, the next at its own last one."""
    begun = []
    fit = PartFits.fit

    def recorded(self, C, former=None):
        model = fit(self, C, former)
        begun.append((self, former, model))
        return model

    monkeypatch.setattr(PartFits, "fit", recorded)
    LinearSVCCV(LinearSVC(random_state=0), Cs=CS, cv=3).fit(*heart)
    last = {}
    for part, former, model in begun:
        assert former is last.get(part)
        last[part] = model
    assert len(last) == 3


@pytest.mark.parametrize("cv", [ShuffleSplit(3, random_state=0), KFold(3, shuffle=True, random_state=0)])
def test_folds_may_overlap_and_be_masks(heart, cv):
    X, y = heart
    numbers = list(cv.split(X))
    masks = [tuple(np.isin(np.arange(len(y)), part) for part in split) for split in numbers]
    by_numbers, by_masks = (
        LinearSVCCV(LinearSVC(loss="logistic", random_state=0), Cs=CS, cv=given).fit(X, y) for given in (numbers, masks)
    )
    np.testing.assert_array_equal(by_numbers.scores_, by_masks.scores_)
    assert (by_numbers.relative_gaps_ <= 1e-4).all()


def test_a_row_drawn_twice_has_twice_the_weight(heart):
    X, y = heart
    train, test = np.random.default_rng(1).integers(0, 200, 250), np.arange(200, len(y))
    drawn = LinearSVCCV(LinearSVC(random_state=0, tol=1e-6), Cs=[0.1], cv=[(train, test)]).fit(X, y)
    alone = LinearSVC(C=0.1, random_state=0, tol=1e-6).fit(X[train], y[train])
    assert drawn.scores_[0, 0] == alone.score(X[test], y[test])


def by_hand(model, X, y):
    """Accuracy, by a scorer of one's own."""
    return accuracy_score(y, model.predict(X))


def test_any_scorer_judges(heart):
    X, y = heart
    model = LinearSVC(loss="logistic", random_state=0)
    search = LinearSVCCV(model, Cs=CS, cv=3, scoring="neg_log_loss").fit(X, y)
    for k, C in enumerate(CS):
        for fold, (train, test) in enumerate(StratifiedKFold(3).split(X, y)):
            alone = LinearSVC(loss="logistic", C=C, random_state=0).fit(X[train], y[train])
            of_label = alone.predict_proba(X[test])[np.arange(len(test)), np.searchsorted(alone.classes_, y[test])]
            assert search.scores_[k, fold] == pytest.approx(np.log(of_label).mean(), abs=0.02)
    named = LinearSVCCV(LinearSVC(random_state=0), Cs=CS, cv=3, scoring="accuracy").fit(X, y)
    called = LinearSVCCV(LinearSVC(random_state=0), Cs=CS, cv=3, scoring=by_hand)
    np.testing.assert_array_equal(named.scores_, called.fit(X, y).scores_)


def test_a_fold_without_a_class_has_the_others(heart):
    X, y = heart[0], np.digitize(heart[0][:, 4], [4.0, 5.0])
    order = np.argsort(y, kind="stable")
    search = LinearSVCCV(LinearSVC(random_state=0), Cs=[0.1, 1.0], cv=KFold(3)).fit(X[order], y[order])
    assert search.scores_.shape == (2, 3)
    with pytest.raises(ValueError, match="a fold holds 1 class only"):
        LinearSVCCV(Cs=2, cv=KFold(2)).fit(X[:200], np.arange(200) // 100)


def test_progress_is_shown_and_taken_away(heart, capsys):
    LinearSVCCV(LinearSVC(random_state=0), Cs=2, cv=2, verbose=1).fit(*heart)
    assert "Traceback" not in capsys.readouterr().err
