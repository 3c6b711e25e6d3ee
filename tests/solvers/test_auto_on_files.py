"""The solver of rows in files is chosen by the room for what its steps need, before any row is read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from saddlesvm.problem.loss import is_smooth
from saddlesvm.problem.losses import Hinge, Logistic, SquaredHinge
from saddlesvm.problem.penalties import L2, ElasticNet
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers import DCD, Auto, Blocks, Newton
from saddlesvm.solvers.auto_on_files import BlocksThenActiveSet, solver_on_files
from saddlesvm.solvers.newton_on_files import NewtonOnFiles

ROWS = as_rows(np.zeros((2_000, 20)))
ROOMY = 1e7
TIGHT = 3e4  # bytes: neither a matrix of the features nor four rows for each of them have room


@pytest.mark.parametrize("loss", [Logistic(), SquaredHinge(), Hinge()], ids=lambda loss: type(loss).__name__)
def test_blocks_serve_if_there_is_no_room_for_newtons_method_or_the_active_set(loss: Any) -> None:
    roomy = NewtonOnFiles if is_smooth(loss) else BlocksThenActiveSet
    assert isinstance(solver_on_files(Auto(), loss, L2(), ROWS, ROOMY), roomy)
    assert isinstance(solver_on_files(Auto(), loss, L2(), ROWS, TIGHT), Blocks)
    assert isinstance(solver_on_files(Auto(), loss, L2(), ROWS, ROOMY, problems=1_000), Blocks)
    assert isinstance(solver_on_files(Auto(), loss, ElasticNet(0.5), ROWS, ROOMY), Blocks)


def test_a_solver_that_is_named_is_taken() -> None:
    assert isinstance(solver_on_files(Newton(), Logistic(), L2(), ROWS, ROOMY), NewtonOnFiles)
    assert solver_on_files(DCD(), Hinge(), L2(), ROWS, ROOMY) == DCD()


def test_newtons_method_without_room_is_refused_with_the_memory_that_is_enough() -> None:
    wide = as_rows(np.zeros((10, 2_000)))
    with pytest.raises(ValueError, match=r"2,000 features for 3 problems: give memory='1467M'"):
        solver_on_files(Newton(), Logistic(), L2(), wide, 2**30, problems=3)
    assert isinstance(solver_on_files(Newton(), Logistic(), L2(), wide, 1467 * 2**20, 3), NewtonOnFiles)
