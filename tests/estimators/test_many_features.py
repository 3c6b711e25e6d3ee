"""Sparse rows of more features than there is room for, or than there are values: no array of all features in vain."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from saddlesvm import LinearSVC, LinearSVR, OneClassSVM
from saddlesvm.data import door
from saddlesvm.estimators.scale_hint import scale_hint
from saddlesvm.fit.outcome import Outcome
from saddlesvm.kernel.mercer import Kernel
from saddlesvm.rows import memory_plan
from saddlesvm.rows.csr_checks import canonical

MOST = 2**31 - 1


def few_values(d: int = MOST, unit: float = 1.0) -> sparse.csr_array:
    """Four rows of two values each, not in order."""
    columns = np.array([d - 1, 0, 5, 3, d - 1, 3, 7, 0], dtype=np.int32)
    values = np.array([1.0, 2.0, -1.0, 3.0, 2.0, 1.0, unit, -2.0])
    return sparse.csr_array((values, columns, np.arange(0, 9, 2, dtype=np.int32)), shape=(4, d))


@pytest.mark.parametrize(
    "model",
    [LinearSVC(max_time=3), LinearSVR(max_time=3), LinearSVC(multi_class="ovo")],
    ids=["classes", "targets", "pairs"],
)
def test_weights_beyond_the_memory_are_refused_before_any_work(model: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_plan, "available_memory", lambda: 2**34)
    monkeypatch.setattr(door, "check_norms", lambda *_: pytest.fail("there was work"))
    with pytest.raises(ValueError, match=r"2,147,483,647 features are too many .* at least 80 GiB .* 16 GiB"):
        model.fit(few_values(), [0, 1, 0, 1])  # type: ignore[attr-defined]


def test_kernel_machines_need_no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_plan, "available_memory", lambda: 2**34)
    monkeypatch.setattr(sparse.csr_array, "tocsc", lambda *_, **__: pytest.fail("an array of all features was made"))
    assert OneClassSVM(kernel="linear").fit(few_values()).outcome_ is Outcome.CERTIFIED


@pytest.mark.parametrize("metric", ["linear", "rbf", "poly", "sigmoid"])
def test_features_without_values_do_not_change_a_kernel(metric: str) -> None:
    narrow, wide = few_values(9), few_values(1_000)
    kernel = Kernel(metric, gamma=0.5, coef0=1.0)
    np.testing.assert_array_equal(kernel(wide[:3], wide[1:]), kernel(few_values(9)[:3].toarray(), narrow[1:].toarray()))


def test_every_vector_of_a_model_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_plan, "available_memory", lambda: 2**27)
    memory_plan.demand_room_for_weights(2**20, 12)
    with pytest.raises(ValueError, match="13 x 1,048,576 weights"):
        memory_plan.demand_room_for_weights(2**20, 13)


def test_rows_of_few_values_are_checked_without_a_mark_for_each_feature() -> None:
    X = few_values()
    assert canonical(X) is X
    twice = few_values()
    twice.indices[1] = MOST - 1
    assert canonical(twice)[0, MOST - 1] == 3.0
    twice.indices[3] = -1
    with pytest.raises(ValueError, match="malformed in row 1"):
        canonical(twice)


def test_scales_are_those_of_the_features_with_values() -> None:
    [found] = scale_hint(few_values(unit=1e-3))
    assert f"largest: column {3}, smallest: column {7}" in str(found)
    assert not scale_hint(few_values())
    assert not scale_hint(few_values() * 0.0)
    narrow = few_values(9, 1e-3)
    assert scale_hint(narrow) == scale_hint(narrow.toarray())


def test_features_that_were_standardised_have_no_hint() -> None:
    """A sample of the rows would miss the rare ones, which standardising makes large."""
    rare = np.zeros((20_000, 3))
    rare[:, 0] = np.random.default_rng(0).normal(size=20_000)
    rare[:2, 1] = 1.0
    rare[::2, 2] = 1.0
    assert scale_hint(StandardScaler().fit_transform(rare)) == []
