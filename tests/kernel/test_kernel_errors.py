"""How far computed kernel expansions can be off: the bounds against a sum over all pairs, and against exact values."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from saddlesvm.kernel.kernel_errors import SLACK, kernel_errors
from saddlesvm.kernel.mercer import Kernel, expand, leaf_of

N, D, UNIT = 40, 6, 2.0**-53
X = np.random.default_rng(0).normal(size=(N, D)) * 10.0 ** np.linspace(-1, 1, N)[:, None]
MADE = X @ X.T
KERNELS = {
    "linear": Kernel("linear"),
    "rbf": Kernel("rbf", 0.3),
    "poly": Kernel("poly", 0.2, 3, -1.5),
    "no power": Kernel("poly", 0.2, 0, 0.0),
    "sigmoid": Kernel("sigmoid", 0.1, 3, -0.5),
    "precomputed": Kernel("precomputed"),
    "function": Kernel(lambda A, B: A @ B.T),
}
named = pytest.mark.parametrize("name", KERNELS)


def points(name: str) -> np.ndarray:
    return MADE if name == "precomputed" else X


def pairwise(name: str, count: int, r: np.ndarray) -> np.ndarray:
    """The bound on the error of each pair's term, with coefficients of one, as the module has it."""
    d = points(name).shape[1]
    g = SLACK * (d + 8) * UNIT
    summed = SLACK * (leaf_of(count) + count / leaf_of(count) + 6) * UNIT
    product, one = np.outer(r, r), np.ones((r.size, r.size))
    match name:
        case "linear":
            return (g + summed) * product
        case "rbf":
            return (2 * g + summed) * one + g * 0.3 * np.add.outer(r, r) ** 2
        case "poly":
            return (4 * g + 48 * UNIT + summed) * 2.0**2 * ((0.2 * product) ** 3 + 1.5**3)
        case "no power":
            return (g + 16 * UNIT + summed) * 2 * one
        case "sigmoid":
            return g * 0.1 * product + g * 0.5 + g + summed
        case _:
            return summed * product


@named
def test_the_bound_is_a_sum_over_pairs(name: str) -> None:
    errors = kernel_errors(KERNELS[name], points(name))
    beta = np.random.default_rng(1).normal(size=N)
    r = errors.lengths if name in ("precomputed", "function") else errors.radii
    plain = pairwise(name, N, r) @ np.abs(beta)
    assert errors.bound_expansion(beta, UNIT) == pytest.approx(plain, rel=1e-12, abs=0.0)
    few = np.array([5, 2])
    assert errors.select(few).radii.tolist() == errors.radii[few].tolist()
    assert errors.select(few).lengths.tolist() == errors.lengths[few].tolist()


@named
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_radii_and_lengths_are_no_less_than_norms(name: str, form: type) -> None:
    if form is sparse.csr_array and name not in ("linear", "rbf", "poly", "no power", "sigmoid"):
        pytest.skip("dense rows only")
    given = points(name)
    errors, kernel = kernel_errors(KERNELS[name], form(given)), KERNELS[name]
    own = given.diagonal() if name == "precomputed" else np.diagonal(kernel(given, given))
    assert (errors.lengths**2 >= np.abs(own) * (1.0 - 1e-12)).all()
    if name not in ("precomputed", "function"):
        norms = np.linalg.norm(given, axis=1)
        assert (errors.radii >= norms).all()
        assert errors.radii == pytest.approx(norms, rel=0.02)
    if name in ("linear", "rbf", "no power", "precomputed", "function"):
        assert errors.lengths**2 == pytest.approx(own, rel=0.05)


@pytest.mark.parametrize("name", ["linear", "poly"])
def test_no_computed_expansion_is_further_from_the_exact_one(name: str) -> None:
    kernel, beta = KERNELS[name], np.random.default_rng(2).normal(size=N)
    found, bound = expand(kernel, X, X, beta), kernel_errors(kernel, X).bound_expansion(beta, UNIT)
    exact = [[Fraction(float(x)) for x in row] for row in X]
    for i in range(0, N, 13):
        total = Fraction(0)
        for j in range(N):
            value = sum((a * b for a, b in zip(exact[i], exact[j], strict=True)), Fraction(0))
            if name == "poly":
                value = (Fraction(0.2) * value - Fraction(1.5)) ** 3
            total += Fraction(float(beta[j])) * value
        assert abs(Fraction(float(found[i])) - total) <= Fraction(float(bound[i]))
