"""The progress line: what happens now, the gap and its target, the time left."""

from __future__ import annotations

from typing import Any

import pytest

from saddlesvm import LinearSVC, NotCertifiedWarning
from saddlesvm.data import load_bundled
from saddlesvm.fit import progress
from saddlesvm.fit.progress import ProgressBar, format_time
from saddlesvm.runtime.clock import WATCH


class Lines:
    """Takes the place of the bar, and notes its words."""

    def __init__(self, *_: Any, now: Any = str) -> None:
        self.words: list[str] = []
        self.now = now

    def show(self, words: str, completed: float) -> None:
        self.words.append(words)

    def plot(self, value: float) -> None: ...

    def say(self, line: str) -> None: ...

    def stop(self) -> None: ...


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[Lines]:
    made: list[Lines] = []

    def bar(*given: Any, **options: Any) -> Lines:
        made.append(Lines(*given, **options))
        return made[-1]

    monkeypatch.setattr(progress, "Bar", bar)
    return made


def test_the_line_names_what_happens_and_its_end(lines: list[Lines]) -> None:
    notes = load_bundled("heart")
    with pytest.warns(NotCertifiedWarning):
        LinearSVC(solver="dcd", tol=1e-2, max_iter=2000, verbose=1, random_state=0).fit(notes.X, notes.y)
    words = lines[0].words
    assert any(word.startswith("solving, gap ") for word in words)
    assert all("of 1e-02" in word for word in words)


def test_the_line_counts_problems_and_tells_the_time_left(lines: list[Lines], monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, 30.0, 60.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(times))
    with ProgressBar(1e-4, problems=2) as bar:
        bar.tick(3.0, 1e-2, 1.0)
        assert lines[0].words[-1] == "problem 1 of 2, solving, gap 1e+00 of 1e-04, epoch 3, 90 s left"
        bar.next_problem()
        bar.tick(1.0, 1e-2, 1.0)
        assert lines[0].words[-1] == "problem 2 of 2, solving, gap 1e+00 of 1e-04, epoch 1, 20 s left"


def test_it_says_when_a_kernel_is_compiled(lines: list[Lines], monkeypatch: pytest.MonkeyPatch) -> None:
    with ProgressBar(1e-4):
        assert lines[0].now() == ""
        monkeypatch.setattr(WATCH, "state", (0.0, 1.0))
        assert lines[0].now() == "compiling for this processor, once"


def test_times_are_short() -> None:
    assert [format_time(one) for one in (0.2, 90.0, 150.0, 7300.0)] == ["1 s", "90 s", "2 min", "2 h"]
