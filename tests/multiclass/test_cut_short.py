"""Sub-problems that their share of the time cut short go on in the time that the others left over."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from saddlesvm import LinearSVC, NotCertifiedWarning, Outcome
from saddlesvm.multiclass import fits, sub_problems


@pytest.fixture
def ticking(monkeypatch: Any) -> list[float]:
    """A clock that stands still until the test moves it."""
    now = [0.0]
    monkeypatch.setattr(sub_problems, "clock", lambda: now[0])
    monkeypatch.setattr("saddlesvm.fit.run.clock", lambda: now[0])
    monkeypatch.setattr("saddlesvm.runtime.clock.clock", lambda: now[0])
    return now


def data() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 5))
    return X, np.digitize(X[:, 0] + 0.5 * random.normal(size=300), [-0.5, 0.5])


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("intercept", ["regularized", "free"])
def test_what_was_cut_short_goes_on(ticking: list[float], multi_class: str, intercept: str) -> None:
    slow: list[str] = []

    def slowly(record: Any) -> None:
        if not slow:
            slow.append(record.problem)

    class Slow:
        def __call__(self, record: Any) -> None:
            slowly(record)

        def tick(self, epoch: float, estimate: float, seconds: float) -> None:
            if not slow:
                ticking[0] += 4.0  # the first sub-problem takes more than its share of 9 seconds

    options = {"solver": "sdca", "tol": 1e-6, "random_state": 0, "multi_class": multi_class, "intercept": intercept}
    X, y = data()
    model = LinearSVC(max_time=9.0, callbacks=[Slow()], **options).fit(X, y)
    assert model.outcome_ is Outcome.CERTIFIED
    assert max(one.relative_gap for one in model.certificates_) <= 1e-6
    first = [record for record in model.trace_ if record["problem"] == slow[0]]
    assert first[0]["relative_gap"] > 1e-6


def test_the_better_of_both_is_kept(ticking: list[float], monkeypatch: Any) -> None:
    seen: list[Any] = []
    kept = fits.join_results

    def watched(earlier: Any, later: Any) -> Any:
        seen.append((earlier, later, kept(earlier, later)))
        return seen[-1][2]

    class Slow:
        def __call__(self, record: Any) -> None:
            pass

        def tick(self, epoch: float, estimate: float, seconds: float) -> None:
            ticking[0] += 0.7

    monkeypatch.setattr(fits, "join_results", watched)
    X, y = data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertifiedWarning)
        LinearSVC(solver="pegasos", tol=1e-9, max_time=9.0, callbacks=[Slow()], random_state=0).fit(X, y)
    for earlier, later, both in seen:
        assert both.certificate.primal == min(earlier.certificate.primal, later.certificate.primal)
        assert both.certificate.dual == max(earlier.certificate.dual, later.certificate.dual)
        assert both.epochs == earlier.epochs + later.epochs
