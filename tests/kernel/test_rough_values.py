"""Values of an expansion in float32: within their bounds in exact arithmetic, and enough for a certificate."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from saddlesvm.kernel.kernel_certificate import certify_values, evaluate_kernel, function_of, nearest_feasible
from saddlesvm.kernel.kernel_problem import make_kernel_problem
from saddlesvm.kernel.mercer import Kernel
from saddlesvm.kernel.rough_values import MANY, MANY_FEATURES, rough_expansion
from saddlesvm.kernel.row_blocks import radial_rows
from saddlesvm.kernel.svm import SVR
from saddlesvm.problem.certificate import KernelPoint
from saddlesvm.problem.losses import make_loss

RANDOM = np.random.default_rng(0)
N = MANY + 64
SHAPE = (N, MANY_FEATURES)
NORMAL = RANDOM.normal(size=SHAPE)
SPREAD = NORMAL * 10.0 ** RANDOM.uniform(-6, 0, N)[:, None]
GAMMA = 0.5 / MANY_FEATURES
# The rows, gamma, and the size of the coefficients.
CASES = {
    "float32": (NORMAL.astype(np.float32), GAMMA, 1.0),
    "float64": (NORMAL, GAMMA, 1.0),
    "values of float16": (NORMAL.astype(np.float16).astype(np.float64), GAMMA, 1.0),
    "norms of 1e4": ((1250.0 * NORMAL).astype(np.float32), GAMMA / 1250.0**2, 1.0),
    "a common shift of 1e4": ((NORMAL + 1e4).astype(np.float32), GAMMA, 1.0),
    "a huge gamma": (1e-9 * NORMAL, GAMMA * 1e18, 1.0),
    "a tiny gamma": (1e8 * NORMAL, GAMMA * 1e-16, 1.0),
    "exponents of a hundred": (NORMAL, 60.0 * GAMMA, 1.0),
    "exponents of nothing": (1e-12 * NORMAL, GAMMA, 1.0),
    "rows of many scales": (SPREAD.astype(np.float32), 8.0 * GAMMA, 1.0),
    "huge coefficients": (NORMAL.astype(np.float32), GAMMA, 1e12),
    "tiny coefficients": (NORMAL.astype(np.float32), GAMMA, 1e-30),
}


def exact_value(x: np.ndarray, z: np.ndarray, gamma: float) -> Fraction:
    """The kernel value of two rows, to fifty digits."""
    square = sum(((Fraction(float(a)) - Fraction(float(b))) ** 2 for a, b in zip(x, z, strict=True)), Fraction(0))
    exponent = -Fraction(gamma) * square
    with localcontext() as context:
        context.prec = 60
        return Fraction((Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp())


@pytest.mark.parametrize("name", CASES)
def test_no_value_in_float32_is_further_from_the_exact_value_than_its_bound(name: str) -> None:
    X, gamma, size = CASES[name]
    support = np.sort(RANDOM.choice(N, 9, replace=False))
    coefficients = size * RANDOM.normal(size=support.size)
    found = rough_expansion(radial_rows(X, gamma), support, coefficients)
    assert found is not None
    values, slips = found
    others = RANDOM.choice(N, 8, replace=False)
    for i in np.concatenate([support[:2], others, [np.argmax(np.abs(X).sum(axis=1))]]):
        total = Fraction(0)
        whole = Fraction(0)
        for j, coefficient in zip(support, coefficients, strict=True):
            term = Fraction(float(coefficient)) * exact_value(X[i], X[j], gamma)
            total += term
            whole += abs(term)
        assert abs(Fraction(float(values[i])) - total) <= Fraction(float(slips[i]))
        # A bound that says nothing would be true, too.
        assert slips[i] <= 0.02 * float(whole) + 1e-30 * size


@pytest.mark.parametrize("scale", [100.0, 1e4, 1e20])
def test_values_whose_bounds_would_be_wide_are_left_to_float64(scale: float) -> None:
    rows = radial_rows((scale * NORMAL).astype(np.float32), GAMMA)
    assert rough_expansion(rows, np.arange(5), np.ones(5)) is None


@pytest.mark.parametrize("intercept", ["free", "none"])
def test_the_certificate_is_that_of_float64_within_the_account_of_rounding(intercept: str) -> None:
    """Most rows have large margins, so that float32 values prove that they pay nothing."""
    score = NORMAL[:, 0] + NORMAL[:, 1]
    rows = np.where(np.abs(score) < 0.3, 0.1, 1.0)[:, None] * NORMAL
    rows[:, 0] += 4.0 * np.sign(score)
    y = np.sign(score)
    given = {"C": 10.0, "intercept": intercept}
    problem, _ = make_kernel_problem(rows, Kernel("rbf", 0.02), y, make_loss("hinge"), **given)
    beta = np.zeros(N)
    support = RANDOM.choice(N, 400, replace=False)
    beta[support] = y[support] * RANDOM.uniform(0.0, 0.1, 400)
    beta = nearest_feasible(problem, beta)
    found = evaluate_kernel(problem, KernelPoint(beta))
    own = function_of(problem, beta, problem.margins(beta))
    plain = certify_values(problem, (beta, own), (beta, own))
    near = found.certificate.rounding + plain.certificate.rounding
    assert abs(found.certificate.primal - plain.certificate.primal) <= near
    assert abs(found.certificate.dual - plain.certificate.dual) <= near
    # Some rows have values in float32, and these do not widen the certificate.
    assert (found.margins != plain.margins).sum() > 100
    assert near <= 1e-9 * plain.certificate.primal
    assert np.abs(found.margins - plain.margins).max() <= 1e-3


def test_a_model_without_support_vectors_has_a_certificate() -> None:
    problem, _ = make_kernel_problem(NORMAL, Kernel("rbf", 0.02), np.sign(NORMAL[:, 0]), make_loss("hinge"), C=1.0)
    certificate = evaluate_kernel(problem, KernelPoint(np.zeros(N))).certificate
    assert certificate.dual <= 0.0 < certificate.primal < np.inf


def test_a_tube_that_holds_all_targets_is_certified_at_zero_by_working_sets() -> None:
    y = np.clip(NORMAL[:, 0], -0.1, 0.1)
    model = SVR(epsilon=1.0, gamma=0.01).fit(NORMAL, y)
    assert model.certificate_.relative_gap == 0.0
    assert model.support_.size == 0
