"""The end of hard kernel problems: a linear problem over a factor of the kernel matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from saddlesvm import SVC, LinearSVC
from saddlesvm.kernel.kernel_certificate import evaluate_kernel
from saddlesvm.kernel.kernel_problem import make_kernel_problem
from saddlesvm.kernel.linear_finish import factor, factor_of, linear_dual, solve_free_rows
from saddlesvm.kernel.mercer import Kernel, gram
from saddlesvm.problem.certificate import KernelPoint
from saddlesvm.problem.losses import make_loss

random = np.random.default_rng(3)
X = random.normal(size=(60, 2))
LABELS = np.where(random.normal(size=60) > 0.0, 1.0, -1.0)
TARGETS = X.sum(axis=1) + random.normal(size=60)
KERNELS = [Kernel("linear"), Kernel("poly", gamma=0.5, degree=3), Kernel("rbf", gamma=0.5)]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda one: one.name)
def test_the_factor_gives_the_matrix_back(kernel: Kernel) -> None:
    K = gram(kernel, X)
    L = factor(K)
    assert np.allclose(L @ L.T, K, rtol=0.0, atol=1e-12 * K.diagonal().max())


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("rows", [1, 60])  # fewer than features, or more
@pytest.mark.parametrize("intercept", ["none", "free"])
def test_rows_are_a_factor_of_their_products(layout: Any, rows: int, intercept: Any) -> None:
    given = layout(X[:rows])
    problem, _ = make_kernel_problem(
        given, Kernel("linear"), LABELS[:rows], make_loss("hinge"), C=1.0, intercept=intercept
    )
    L, K = factor_of(problem), X[:rows] @ X[:rows].T
    assert np.allclose(L @ L.T, K, rtol=0.0, atol=1e-12 * K.diagonal().max())


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda one: one.name)
@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
@pytest.mark.parametrize("intercept", ["none", "free"])
@pytest.mark.parametrize("weighted", [False, True])
def test_what_it_finds_is_proven_by_the_kernel_problems_own_certificate(
    kernel: Kernel, loss: str, intercept: Any, weighted: bool
) -> None:
    y = TARGETS if loss == "epsilon_insensitive" else LABELS
    weights = np.linspace(0.5, 2.0, y.size) if weighted else None
    problem, _ = make_kernel_problem(X, kernel, y, make_loss(loss), C=100.0, intercept=intercept, weights=weights)
    found = linear_dual(problem, 1e-9)
    assert found is not None
    beta = solve_free_rows(problem, found)
    low, high = problem.box()
    assert ((beta >= low) & (beta <= high)).all()
    judged = evaluate_kernel(problem, KernelPoint(beta)).certificate
    assert judged.sound and judged.gap <= 1e-6 * judged.primal + 2.0 * judged.rounding


@pytest.mark.parametrize("kernel", ["linear", "poly"])
@pytest.mark.parametrize("C", [1e8, 1e10])
def test_huge_C_ends_certified_or_at_rounding(kernel: str, C: float) -> None:
    model = SVC(kernel=kernel, C=C, tol=1e-3)
    if C > 1e9:  # what rounding allows is more than tol
        with pytest.warns(UserWarning, match="limited_by_rounding"):
            model.fit(X, LABELS)
    else:
        model.fit(X, LABELS)
    found = model.certificate_
    assert found.gap <= 1e-3 * found.primal + 2.0 * found.rounding


def test_a_linear_kernel_has_the_objective_of_the_linear_machine() -> None:
    options = {"C": 1e7, "tol": 1e-5, "intercept": "none"}
    kernel = SVC(kernel="linear", **options).fit(X, LABELS).certificate_
    linear = LinearSVC(loss="hinge", **options).fit(X, LABELS).certificate_
    assert kernel.dual <= linear.primal and linear.dual <= kernel.primal


@pytest.mark.parametrize("C", [1e3, 1e6, 1e10])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
def test_separable_rows_are_certified_at_any_C(kernel: str, classes: int, C: float) -> None:
    random = np.random.default_rng(0)
    X, y = random.normal(size=(150, 200)), random.integers(0, classes, 150)
    for model in (SVC(kernel=kernel, C=C, tol=1e-6), SVC(kernel=kernel, C=C, tol=1e-6, intercept="none")):
        model.fit(X, y)
        assert max(one.relative_gap for one in model.certificates_) <= 1e-6
