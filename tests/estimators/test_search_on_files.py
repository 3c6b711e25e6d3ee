"""Grids of C and cross-validation over stores larger than their memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import KFold

from saddlesvm import LinearSVC, LinearSVCCV, Store
from saddlesvm.data.door import check_design
from saddlesvm.estimators.fitted import make_model
from saddlesvm.estimators.part_fits import PartFits, rows_of_fold
from saddlesvm.estimators.solve import fit_together
from saddlesvm.fit.outcome import Outcome
from support import distance_bound
from support.mapped import large_store

TOL = 1e-4
OPTIONS: dict[str, Any] = {"tol": TOL, "random_state": 0}


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return large_store(tmp_path_factory.mktemp("stores"))


def near(one: Any, other: Any, k: int) -> bool:
    """Whether sub-problem k of two models is solved alike, as far as their gaps say."""
    bound = distance_bound(one.certificates_[k].gap, other.certificates_[k].gap)
    return bool(np.linalg.norm(one.coef_[k] - other.coef_[k]) <= bound)


def test_a_grid_goes_on_from_C_to_C(large: Store) -> None:
    model = LinearSVC(memory="16M", warm_start=True, **OPTIONS)
    epochs = [model.set_params(C=C).fit(large).n_iter_ for C in (1e-3, 1e-2, 1e-1)]
    assert model.outcome_ is Outcome.CERTIFIED
    assert {*model.phases_} == {"Newton"}
    assert sum(epochs) <= 18
    inside = LinearSVC(C=1e-1, **OPTIONS).fit(np.array(large.X), large.y, large.sample_weight)
    assert all(near(model, inside, k) for k in range(3))


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_a_fold_over_shared_readings_is_a_fit_of_its_rows(loss: str, large: Store) -> None:
    X, y, weights = np.array(large.X), large.y > 0, large.sample_weight
    template = LinearSVC(loss=loss, C=1e-2, memory="16M", class_weight="balanced", **OPTIONS)
    design = check_design(large.X).X
    whole = PartFits(template, design, y, weights)
    trains = [train for train, _ in KFold(3, shuffle=True, random_state=0).split(y)]
    parts = [whole, *(whole.part(*rows_of_fold(whole, train)) for train in trains)]
    fits: list[Any] = []
    for C in (1e-2, 1e-1):
        fits = fit_together(whole.options_at(C), design, [part.training for part in parts], fits)
    for fitted, train in zip(fits[1:], trains, strict=True):
        model = make_model(fitted)
        assert model.certificate_.relative_gap <= TOL
        alone = LinearSVC(loss=loss, C=C, class_weight="balanced", **OPTIONS).fit(X[train], y[train], weights[train])
        assert near(model, alone, 0)


def test_cross_validation_shares_the_readings(large: Store) -> None:
    Cs = [1e-3, 1e-1]
    search = LinearSVCCV(LinearSVC(memory="16M", **OPTIONS), Cs=Cs, cv=KFold(3)).fit(large)
    assert search.best_estimator_.outcome_ is Outcome.CERTIFIED
    assert search.relative_gaps_.max() <= TOL
    train, test = next(iter(KFold(3).split(large.y)))
    X, y, s = np.array(large.X), large.y, large.sample_weight
    alone = LinearSVC(C=Cs[0], tol=1e-8, random_state=0).fit(X[train], y[train], s[train])
    scores = np.sort(alone.decision_function(X[test]), axis=1)
    away = [np.sqrt(2 * TOL * one.primal) * 2.0 for one in alone.certificates_]
    unsure = scores[:, -1] - scores[:, -2] <= 2 * max(away) * np.linalg.norm(X[test], axis=1) + 2 * max(away)
    assert abs(search.scores_[0, 0] - alone.score(X[test], y[test])) <= unsure.mean()
    with pytest.raises(ValueError, match="scoring"):
        LinearSVCCV(LinearSVC(memory="16M"), Cs=Cs, scoring="f1_macro").fit(large)


def test_given_weights_are_begun_at(large: Store) -> None:
    first = LinearSVC(C=1e-1, memory="16M", **OPTIONS).fit(large)
    again = LinearSVC(C=1e-1, memory="16M", tol=1.01 * TOL).fit(
        large.X, large.y, large.sample_weight, coef_init=first.coef_, intercept_init=first.intercept_
    )
    assert again.n_iter_ <= 2 < first.n_iter_
