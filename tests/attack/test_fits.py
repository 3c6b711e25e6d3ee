"""The short form of the attack on claims; ``python -m tests.attack --only fits --count 20000`` has the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from saddlesvm.estimators import HOMES

from .fits import fits
from .posed import MAKERS
from .public import READERS

FITS = 12  # of each estimator, at least


def test_the_judge_knows_every_estimator_of_the_package() -> None:
    assert {*HOMES} == {*READERS} == {*MAKERS}


@pytest.mark.parametrize("name", MAKERS)
def test_no_claim_of_a_fit_is_refuted(tmp_path: Path, name: str) -> None:
    found = fits(tmp_path, seed=0, first=0, count=FITS, only=name)
    assert not found.failures, "\n".join(found.failures)
    assert found.cases >= FITS
