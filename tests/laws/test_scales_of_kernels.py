"""Claims of kernel machines on rows of any scale: no gap falls because rows are multiplied by a power of two, every
claim is true in exact fractions, and what float64 cannot hold is refused.
"""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from saddlesvm import SVC, SVR, NotCertifiedWarning, NuSVC, OneClassSVM
from saddlesvm.kernel.kernel_errors import kernel_errors
from saddlesvm.kernel.mercer import Kernel
from saddlesvm.problem.bounds import UNIT

N, D = 16, 3
RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((N, D))
LABELS = np.where(np.arange(N) % 2, 1, -1)
POWERS = (-480, -260, 0, 170, 260, 500)


def fitted(model: Any, rows: Any) -> Any:
    """The model, fitted without a word about an early end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertifiedWarning)
        return model.fit(rows, rows[:, 0] if isinstance(model, SVR) else LABELS)


def exact_objective(model: Any, rows: np.ndarray) -> Fraction:
    """The C form of the hinge's objective for a polynomial kernel, in fractions."""
    kernel = model.kernel_
    values = [[Fraction(float(v)) for v in row] for row in rows]
    gamma, coef0 = Fraction(float(kernel.gamma)), Fraction(float(kernel.coef0))
    beta = [Fraction(0)] * len(values)
    for i, value in zip(model.support_, model.dual_coef_[0], strict=True):
        beta[i] = Fraction(float(value))
    scores = []
    for one in values:
        inner = [sum((a * b for a, b in zip(one, other, strict=True)), Fraction(0)) for other in values]
        powers = [(gamma * product + coef0) ** kernel.degree for product in inner]
        scores.append(sum((b * k for b, k in zip(beta, powers, strict=True)), Fraction(0)))
    half = sum((b * f for b, f in zip(beta, scores, strict=True)), Fraction(0)) / 2
    offset = Fraction(float(model.intercept_[0]))
    losses = [max(Fraction(0), 1 - int(y) * (f + offset)) for y, f in zip(LABELS, scores, strict=True)]
    return half + Fraction(model.C) * sum(losses)


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("C", [1.0, 2e9])
def test_claims_of_polynomial_kernels_are_true_and_do_not_fall_at_other_scales(degree: int, C: float) -> None:
    claims = {}
    for power in POWERS:
        rows = np.ldexp(X, power)
        model = fitted(SVC(kernel="poly", degree=degree, C=C, tol=1e-5, max_time=60), rows)
        found = model.certificate_
        assert Fraction(found.primal) >= exact_objective(model, rows), f"rows times 2^{power}"
        claims[power] = found.relative_gap
    assert min(claims.values()) >= 0.99 * claims[0]


@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid"])
@pytest.mark.parametrize("coef0", [0.0, 1.0])
def test_bounds_on_the_rounding_do_not_fall_at_other_scales(kernel: str, coef0: float) -> None:
    bounds = []
    for power in POWERS:
        errors = kernel_errors(Kernel(kernel, 2.0 ** (-2 * power), 3, coef0), np.ldexp(X, power))
        bounds.append(errors.bound_expansion(np.ones(N), UNIT))
    at_one = bounds[POWERS.index(0)]
    assert all((bound >= 0.999 * at_one).all() for bound in bounds)
    assert all((bound <= 1.001 * at_one).all() for bound in bounds[1:])


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "sigmoid"])
@pytest.mark.parametrize("power", [-1060, -700, -515, -400, 400, 515, 700, 1020])
@pytest.mark.parametrize("model", [SVC(), NuSVC(nu=0.3), SVR(), OneClassSVM(nu=0.3)], ids=repr)
def test_extreme_rows_end_with_a_refusal_or_an_outcome(kernel: str, power: int, model: Any) -> None:
    rows = np.ldexp(X, power)
    for gamma in ("scale", 1.0):
        try:
            found = fitted(type(model)(**model.get_params() | {"kernel": kernel, "gamma": gamma, "max_time": 1}), rows)
        except ValueError as refused:
            said = str(refused)
            assert any(word in said for word in ("not finite", "too large", "float64 cannot hold"))
        else:
            assert found.outcome_ != "failed" and not np.isnan(found.certificate_.gap)
