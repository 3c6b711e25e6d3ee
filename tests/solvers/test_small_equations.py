"""Newton's equations of small problems: single precision where it is enough, and runs that do not see each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from saddlesvm import LinearSVC
from saddlesvm.data import load_bundled
from saddlesvm.solvers.small import dense as equations
from saddlesvm.solvers.small.dense import SmallEquations, solve


def made(m: int, trace: float, scale: float = 1.0) -> tuple[SmallEquations, np.ndarray, np.ndarray]:
    """Equations of two runs whose matrices have about this trace, their second derivatives, and their right sides."""
    rng = np.random.default_rng(m)
    n = max(3 * m, equations.SINGLE_WORK // m**2)
    Z = scale * rng.normal(size=(n, m))
    bends = 10.0 ** rng.uniform(-6.0, 0.0, size=(2, n))
    bends *= trace / (bends @ (Z * Z).sum(axis=1))[:, None]
    return SmallEquations(Z, np.ones(m)), bends, rng.normal(size=(2, m))


def exact(rows: SmallEquations, bend: np.ndarray) -> np.ndarray:
    return np.eye(rows.Z.shape[1]) + (rows.Z.T * bend) @ rows.Z


@pytest.mark.parametrize("m", [5, 40])
@pytest.mark.parametrize("part", [1e-4, 0.99])
def test_single_precision_leaves_a_tenth_of_a_step_at_most(m: int, part: float) -> None:
    rows, bends, rhs = made(m, part * equations.SINGLE_TRACE)
    factors = rows.factors(bends)
    assert {factor.dtype for factor in factors} == {np.dtype(np.float32)}
    for bend, one, found in zip(bends, rhs, solve(factors, rhs), strict=True):
        matrix = exact(rows, bend)
        off = found - np.linalg.solve(matrix, one)
        assert off @ matrix @ off <= 0.1**2 * (one @ np.linalg.solve(matrix, one))


@pytest.mark.parametrize("given", [{"trace": 2e6}, {"trace": 1.0, "scale": 1e30}])
def test_other_equations_are_solved_in_double_precision(given: dict[str, Any]) -> None:
    rows, bends, rhs = made(5, **given)
    for bend, one, found in zip(bends, rhs, solve(rows.factors(bends), rhs), strict=True):
        assert found == pytest.approx(np.linalg.solve(exact(rows, bend), one), rel=1e-6)


@pytest.mark.parametrize("m", [5, 40])
def test_a_run_has_the_bits_of_the_run_alone(m: int) -> None:
    rows, bends, rhs = made(m, equations.SINGLE_TRACE)
    bends *= np.array([[0.5], [2.0]])  # one in either precision
    both = rows.factors(bends)
    assert {factor.dtype.itemsize for factor in both} == {4, 8}
    alone = [solve(rows.factors(bends[k : k + 1]), rhs[k : k + 1])[0] for k in range(2)]
    assert np.array_equal(solve(both, rhs), alone)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_single_precision_takes_no_more_steps(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = load_bundled("heart")
    steps = []
    for most in (equations.SINGLE_TRACE, 0.0):
        monkeypatch.setattr(equations, "SINGLE_TRACE", most)
        steps.append(LinearSVC(loss=loss, random_state=0).fit(table.X, table.y).n_iter_)  # type: ignore[arg-type]
    assert steps[0] <= steps[1]
