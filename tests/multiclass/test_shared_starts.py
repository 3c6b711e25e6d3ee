"""Many classes that begin at weights found together end at the optima of fits of their own."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from saddlesvm import LinearSVC, NotCertifiedWarning
from saddlesvm.multiclass import linear_fit
from saddlesvm.multiclass.sub_problems import SharedTime

CLASSES = 12


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    y = random.permutation(np.arange(6_000) % CLASSES)
    X = random.standard_normal((CLASSES, 90))[y] + 3.0 * random.standard_normal((6_000, 90))
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float16), y


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of the batches whose starts were found together."""
    sizes: list[int] = []
    find = linear_fit.SharedStarts.find

    def count(starts: Any, subs: Any) -> Any:
        sizes.append(len(subs))
        return find(starts, subs)

    monkeypatch.setattr(linear_fit.SharedStarts, "find", count)
    return sizes


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@pytest.mark.parametrize("weighted", [False, True])
def test_each_class_ends_at_the_optimum_of_its_own_fit(
    data: tuple[np.ndarray, np.ndarray], counted: list[int], loss: Any, weighted: bool, jobs: int
) -> None:
    X, y = data
    weights = None
    factors: Any = None
    if weighted:
        weights = np.random.default_rng(1).uniform(0.0, 2.0, y.size)
        weights[:50] = 0.0
        factors = dict.fromkeys(range(CLASSES), 1.0) | {1: 3.0, 2: 0.0}
    options: dict[str, Any] = {"loss": loss, "C": 5.0, "tol": 1e-4, "random_state": 0}
    model = LinearSVC(class_weight=factors, n_jobs=jobs, **options).fit(X, y, sample_weight=weights)
    assert sum(counted) == CLASSES
    assert all(proof.relative_gap <= 1e-4 for proof in model.certificates_)
    for k in (0, 1, CLASSES - 1):
        own = np.ones(y.size) if weights is None else weights.copy()
        if factors:
            own[y == k] *= factors[k]
        alone = LinearSVC(**options).fit(X, y == k, sample_weight=own)
        a = model.certificates_[k]
        b = alone.certificate_
        # Intervals that hold the same optimum meet.
        assert max(a.dual, b.dual) <= min(a.primal, b.primal) * (1.0 + 1e-12)


@pytest.mark.parametrize("intercept", ["regularized", "free"])
def test_both_intercepts_and_several_labels_begin_together(
    data: tuple[np.ndarray, np.ndarray], counted: list[int], intercept: Any
) -> None:
    X, y = data
    labels = np.eye(CLASSES, dtype=int)[y] | np.eye(CLASSES, dtype=int)[(y * 5 + 1) % CLASSES]
    model = LinearSVC(intercept=intercept, tol=1e-3).fit(X, labels)
    assert sum(counted) == CLASSES
    assert all(proof.relative_gap <= 1e-3 for proof in model.certificates_)


def test_rows_that_overflow_in_float32_begin_at_zero(counted: list[int]) -> None:
    random = np.random.default_rng(2)
    X = random.standard_normal((6_000, 90)).astype(np.float32) * np.float32(1e25)
    y = np.arange(6_000) % CLASSES
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LinearSVC(C=1e-50, tol=1e-2, max_time=20.0).fit(X, y)
    assert np.isfinite(model.coef_).all()


def test_a_share_of_the_time_is_at_least_an_eighth() -> None:
    few = SharedTime(80.0, 4)
    many = SharedTime(80.0, 1000)
    assert few.share(1) == pytest.approx(20.0, rel=0.1)
    assert many.share(1) == pytest.approx(10.0, rel=0.1)
    assert many.share(1, problems=500) == pytest.approx(40.0, rel=0.1)


def test_a_short_limit_leaves_finite_weights_and_true_certificates(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertifiedWarning)
        model = LinearSVC(max_time=1e-3, tol=1e-6).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert all(proof.dual <= proof.primal for proof in model.certificates_)
