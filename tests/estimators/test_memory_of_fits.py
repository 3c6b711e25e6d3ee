"""A fit of 50 float32 features in memory takes at most half of their memory besides: no row is copied."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from saddlesvm import LinearSVC, LinearSVR

N, D = 100_000, 50
BLOCKS = 6e6  # bytes of blocks that fit into a cache, however many rows there are
LIMIT = 0.5 * N * D * np.dtype(np.float32).itemsize + BLOCKS


def rows(kind: str) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    X = np.round(30.0 * random.standard_normal((N, D), dtype=np.float32))
    scores = X @ random.standard_normal(D) / 30.0 + 10.0 * random.standard_normal(N)
    return X.astype(kind), scores


def peak(model: object, X: np.ndarray, y: np.ndarray) -> int:
    """The most bytes that a fit allocates; an earlier fit has imported and compiled all it needs."""
    model.fit(X, y)  # type: ignore[attr-defined]
    tracemalloc.start()
    try:
        model.fit(X, y)  # type: ignore[attr-defined]
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "logistic"])
@pytest.mark.parametrize("intercept", ["regularized", "free"])
def test_a_fit_takes_half_of_the_rows_memory(loss: str, intercept: str) -> None:
    X, scores = rows("float32")
    model = LinearSVC(loss=loss, intercept=intercept, random_state=0)
    assert peak(model, X, np.where(scores > 0.0, 1, -1)) < LIMIT
    assert model.outcome_ == "certified"


@pytest.mark.parametrize("kind", ["float16", "int8"])
def test_rows_of_small_numbers_are_not_copied(kind: str) -> None:
    X, scores = rows(kind)
    assert peak(LinearSVC(random_state=0), X, np.where(scores > 0.0, 1, -1)) < LIMIT


def test_mapped_rows_are_not_copied(tmp_path: Path) -> None:
    X, scores = rows("float32")
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    assert peak(LinearSVC(random_state=0), mapped, np.where(scores > 0.0, 1, -1)) < LIMIT


def test_a_regression_takes_half_of_the_rows_memory() -> None:
    X, scores = rows("float32")
    assert peak(LinearSVR(random_state=0), X, scores) < LIMIT
