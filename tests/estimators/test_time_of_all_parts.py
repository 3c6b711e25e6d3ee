"""`max_time` counts every part of a fit: by a clock that only the parts themselves turn."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from saddlesvm import LinearSVC
from saddlesvm.answers.changed_rows import ChangedRows
from saddlesvm.estimators import leave_one_out as estimates
from saddlesvm.fit.run import Fit
from saddlesvm.runtime import clock as clocks
from saddlesvm.runtime.clock import end_of_fit, limit_to_share, time_is_up

pytestmark = pytest.mark.filterwarnings("ignore::saddlesvm.NotCertifiedWarning")


class Turned:
    """A clock whose hand moves where a test moves it."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Turned:
    turned = Turned()
    monkeypatch.setattr(time, "perf_counter", turned)
    monkeypatch.setattr(clocks.WATCH, "state", (0.0, None))
    return turned


def slow(monkeypatch: pytest.MonkeyPatch, now: Turned, place: Any, name: str, seconds: float) -> None:
    """Let each call of a function take so many seconds."""
    whole = getattr(place, name)

    def taking(*given: Any, **options: Any) -> Any:
        now.seconds += seconds
        return whole(*given, **options)

    monkeypatch.setattr(place, name, taking)


def noisy(n: int, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    X = random.standard_normal((n, 4))
    score = X[:, 0] + 2.0 * random.standard_normal(n)
    return X, np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))


@pytest.mark.parametrize(("of_step", "of_gradients"), [(0.5, 2.0), (0.0, 5.0)])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "hinge"])
def test_the_choice_of_C_and_its_proof_end_in_time(
    monkeypatch: pytest.MonkeyPatch, now: Turned, loss: str, of_step: float, of_gradients: float
) -> None:
    slow(monkeypatch, now, Fit, "step", of_step)
    slow(monkeypatch, now, ChangedRows, "gradients", of_gradients)
    slow(monkeypatch, now, estimates, "leave_out_rows", of_step)
    monkeypatch.setattr("saddlesvm.answers.changed_rows.count_at_once", lambda near: 1)  # row by row
    X, y = noisy(300)
    model = LinearSVC(C="auto", loss=loss, max_time=20.0, random_state=0)
    began = now.seconds
    model.fit(X, y)
    assert now.seconds - began <= 20.5 + of_gradients  # the last part may have begun just before
    assert model.choice_.C == model.C_
    assert model.choice_.error_bounds[0] <= model.choice_.error_bounds[1]


def test_a_share_of_the_time_ends_fits_and_steps_within(now: Turned) -> None:
    with clocks.begin_fit(10.0):
        with limit_to_share(0.5):
            assert end_of_fit() == 105.0
            now.seconds += 5.0
            assert time_is_up()
        assert end_of_fit() == 110.0
        assert not time_is_up()
    with limit_to_share(0.5):
        assert end_of_fit() == float("inf")
        assert not time_is_up()
