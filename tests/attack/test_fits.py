"""Hypothesis draws problems for every estimator; a judge refutes what their certificates claim."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from saddlesvm.estimators import HOMES

from . import examples, posed
from .fits import refute_fits
from .public import READERS


def test_the_judge_knows_every_estimator_of_the_package() -> None:
    assert {*HOMES} == {*READERS} == {*posed.MAKERS}


@pytest.mark.parametrize("family", [*posed.MAKERS])
def test_no_claim_of_a_fit_is_refuted(family: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    @examples(6)
    @given(number=st.integers(0, 2**31))
    def judge(number: int) -> None:
        folder: Path = tmp_path_factory.mktemp("fits")
        assert refute_fits(folder, family, number) == []

    judge()
