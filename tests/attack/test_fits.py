"""The short form of the attack on claims; ``python -m tests.attack --only fits --count 20000`` has the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from saddlesvm.estimators import HOMES

from . import posed
from .fits import fits
from .public import READERS

FITS = 20  # of each estimator, at least


def test_the_judge_knows_every_estimator_of_the_package() -> None:
    assert {*HOMES} == {*READERS} == {*posed.MAKERS}


@pytest.mark.parametrize(
    ("seed", "number", "way"),
    [(101, 1245, "approximation"), (101, 2230, "NuSVC"), (101, 21099, "NuSVC"), (404, 3544, "approximation")],
)
def test_no_claim_is_refuted_that_was_once(tmp_path: Path, seed: int, number: int, way: str) -> None:
    """Landmarks that depend on each other, margins rho that are nearly rounding, an objective that underflows."""
    found = fits(tmp_path, seed=seed, first=number, count=1, way=way)
    assert not found.failures, "\n".join(found.failures)


@pytest.mark.parametrize("name", [*posed.MAKERS])
def test_no_claim_of_a_fit_is_refuted(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the default solvers and layout alone: all of them would be long to compile."""
    monkeypatch.setattr(posed, "LINEAR_SOLVERS", dict.fromkeys(posed.LINEAR_SOLVERS, ("auto",)))
    monkeypatch.setattr(posed, "KERNEL_SOLVERS", ("auto",))
    monkeypatch.setattr(posed, "LAYOUTS", 2 * posed.LAYOUTS[:1])
    monkeypatch.setattr(posed, "BLOCKS", 0.0)
    found = fits(tmp_path, seed=0, first=0, count=FITS, only=name)
    assert not found.failures, "\n".join(found.failures)
    assert found.cases >= FITS
