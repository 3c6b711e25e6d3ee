"""A short run of the attack with damaged files: each is one line or fine, never a crash, a hang or much memory."""

from __future__ import annotations

import importlib.util

import pytest

from .campaigns import CAMPAIGNS, KEPT, prepare
from .hunt import Findings, hunt_all

CASES = 40
SOLVERS = ("dcd", "sdca", "joint")  # whose kernels other tests compile too
KINDS = [kind for kind in CAMPAIGNS if kind not in ("parquet", "arrow") or importlib.util.find_spec("pyarrow")]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Findings]:
    """What became of the damaged files of every kind, in one process: most of its time goes into its start."""
    made = tmp_path_factory.mktemp("attack")
    prepare(made, SOLVERS)
    kept = [(kind, seed, number, number + 1) for kind in KINDS for seed, number in KEPT.get(kind, ())]
    return hunt_all(made, [*((kind, 0, 0, CASES) for kind in KINDS), *kept])


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_do_no_harm(found: dict[str, Findings], kind: str) -> None:
    assert not found[kind].failures, "\n".join(found[kind].failures)
    assert found[kind].cases == CASES + len(KEPT.get(kind, ()))
