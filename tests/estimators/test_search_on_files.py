"""Grids of C over stores larger than their memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from saddlesvm import LinearSVC, LinearSVCCV, Store
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
    assert {*model.phases_} == {"newton"}
    assert sum(epochs) <= 18
    inside = LinearSVC(C=1e-1, **OPTIONS).fit(np.array(large.X), large.y, large.sample_weight)
    assert all(near(model, inside, k) for k in range(3))


def test_cross_validation_over_blocks_is_refused_with_what_to_do(large: Store) -> None:
    with pytest.raises(ValueError, match=r"these are read block by block: fit LinearSVC\(warm_start=True\) for each C"):
        LinearSVCCV(LinearSVC(memory="16M"), Cs=[1e-3, 1e-1]).fit(large)


def test_given_weights_are_begun_at(large: Store) -> None:
    first = LinearSVC(C=1e-1, memory="16M", **OPTIONS).fit(large)
    again = LinearSVC(C=1e-1, memory="16M", tol=1.01 * TOL).fit(
        large.X, large.y, large.sample_weight, coef_init=first.coef_, intercept_init=first.intercept_
    )
    assert again.n_iter_ <= 2 < first.n_iter_
