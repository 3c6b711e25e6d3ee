"""A short run of the attack with damaged files: each is one line or fine, never a crash, a hang or much memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from .campaigns import CAMPAIGNS, KEPT, prepare

CASES = 40
SOLVERS = ("dcd", "sdca", "joint")  # whose kernels other tests compile too


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("attack")
    prepare(made, SOLVERS)
    return made


@pytest.mark.parametrize("kind", CAMPAIGNS)
def test_damaged_files_do_no_harm(folder: Path, kind: str) -> None:
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    found = CAMPAIGNS[kind](folder, 0, 0, CASES)
    assert found.cases == CASES and not found.failures, "\n".join(found.failures)
    for seed, number in KEPT.get(kind, ()):
        assert not CAMPAIGNS[kind](folder, seed, number, 1).failures
