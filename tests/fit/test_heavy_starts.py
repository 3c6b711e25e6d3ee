"""Under a time limit, a start with many support vectors is certified by the kernel values that it was made with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from saddlesvm import NuSVC, OneClassSVM
from saddlesvm.kernel import kernel_problem as kernel
from saddlesvm.kernel.ascent_state import SAMPLE

ROWS, NU = 4200, 0.5  # rows of more than MIDDLE points are computed where they are needed, and not kept


@pytest.mark.parametrize(("kind", "groups"), [(OneClassSVM, 1), (NuSVC, 2)])
def test_no_kernel_value_is_computed_twice_where_no_time_is_left(
    kind: type, groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = np.random.default_rng(0).normal(size=(ROWS, 3))
    computed, whole = [0], kernel.expand

    def counted(one: Any, A: Any, centres: Any, coefficients: np.ndarray) -> np.ndarray:
        computed[0] += A.shape[0] * coefficients.shape[0]
        return whole(one, A, centres, coefficients)

    monkeypatch.setattr(kernel, "expand", counted)
    with pytest.warns(UserWarning, match="time_limit"):
        model = kind(nu=NU, max_time=1e-9).fit(X, X[:, 0] > 0.0)
    assert 0 < computed[0] <= ROWS * (NU * ROWS + groups * (2 * SAMPLE + 1))
    assert model.certificate_.sound and np.isfinite(model.certificate_.dual)
    assert len(model.trace_) == 1
