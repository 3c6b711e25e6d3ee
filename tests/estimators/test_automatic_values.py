"""Which values of C are estimated by ``C="auto"``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from saddlesvm import LinearSVC
from saddlesvm.estimators.automatic_C import AutomaticC, next_place
from saddlesvm.estimators.leave_one_out import leave_one_out

N = 1_000


def judged(error: float, log_loss: float) -> tuple[float, float, float]:
    """What is known of a value; its error is not to be trusted if it is infinite."""
    noise = float(np.sqrt(error * (1.0 - error) / N)) if np.isfinite(error) else 0.0
    return error, noise, log_loss


def visited(how: AutomaticC, errors: Any, log_losses: Any) -> list[int]:
    """The places that are estimated, in their order."""
    seen: dict[int, tuple[float, float, float]] = {}
    while (place := next_place(how, seen)) is not None:
        assert place not in seen
        assert 0 <= place < how.size
        seen[place] = judged(float(errors[place]), float(log_losses[place]))
    return list(seen)


@pytest.mark.parametrize("size", [2, 3, 4, 5, 8, 13])
@pytest.mark.parametrize("rule", ["best", "one_standard_error"])
@pytest.mark.parametrize("seed", range(10))
def test_the_search_ends_and_what_it_finds_is_no_worse_than_its_neighbours(size: int, rule: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    best = random.integers(size)
    away = (np.arange(size) - best) / size
    errors = 0.05 + 0.9 * np.where(away < 0.0, -away, 0.7 * away)
    log_losses = 10.0 * errors
    found = visited(AutomaticC(size=size, rule=rule), errors, log_losses)
    assert best in found
    drawn = random.uniform(0.0, 0.5, size)
    drawn[random.uniform(size=size) < 0.3] = np.inf
    found = visited(AutomaticC(size=size, rule=rule), drawn, random.uniform(size=size))
    if not np.isfinite(drawn[found]).any():
        assert sorted(found) == list(range(size))


def test_nothing_is_estimated_between_values_that_differ_by_noise_only() -> None:
    errors = np.where(np.arange(13) < 3, 0.3, 0.1)
    assert visited(AutomaticC(), errors, np.full(13, 0.2))[:4] == [3, 6, 9, 12]
    assert not set(visited(AutomaticC(), errors, np.full(13, 0.2))) & {4, 5, 7, 8, 10, 11}


def test_no_larger_C_is_tried_where_the_error_has_risen() -> None:
    errors = np.linspace(0.05, 0.5, 13)
    assert max(visited(AutomaticC(), errors, errors)) == 6


def test_targets_have_no_log_loss() -> None:
    errors = 0.1 + 0.01 * np.abs(np.arange(13) - 6.8)
    assert 7 in visited(AutomaticC(), errors, np.full(13, np.nan))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_the_bounds_of_a_choice_contain_those_of_leave_one_out(loss: str) -> None:
    random = np.random.default_rng(3)
    X = random.standard_normal((120, 6))
    y = np.sign(X[:, 0] + random.standard_normal(120))
    model = LinearSVC(C="auto", loss=loss, random_state=0).fit(X, y)
    low, high = model.choice_.error_bounds
    found = leave_one_out(model.path_.model(model.C_), X, y)
    assert low <= found.error_low <= found.error_high <= high
    for one in model.choice_.estimates:
        assert one.error_low <= one.error <= one.error_high
