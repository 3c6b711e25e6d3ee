"""The question of a Newton pass: its answer is what plain sums over the same rows are."""

from __future__ import annotations

import numpy as np
import pytest

from saddlesvm.problem.loss import Loss, is_smooth
from saddlesvm.problem.losses import Logistic
from saddlesvm.problem.problem import Problem, make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers.newton_question import NewtonQuestion, draw_rows
from saddlesvm.solvers.search import PLACES
from support import ALL_LOSSES, csr, labels, matrix, named

SMOOTH = [loss for loss in ALL_LOSSES if is_smooth(loss)]
LAYOUTS = ["dense", "csr", "float32"]


def posed(loss: Loss, layout: str) -> tuple[Problem, np.ndarray, np.ndarray]:
    """A problem of sixty weighted rows, the numbers of some of them, and their values with the virtual feature."""
    X = matrix(60, 4, density=0.6)
    if layout == "float32":
        X = X.astype(np.float32)
    s = 1.0 + np.arange(60) % 3
    rows = as_rows(csr(X) if layout == "csr" else X, 1.0)
    problem = make_problem(rows, labels(X, loss), loss, C=0.7, weights=s, intercept="regularized")
    chosen = np.arange(60)[10:50]
    return problem, chosen, np.array([problem.X.dense_row(i) for i in chosen], dtype=np.float64)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("loss", SMOOTH, ids=named)
def test_a_pass_answers_with_plain_sums(loss: Loss, layout: str) -> None:
    problem, chosen, dense = posed(loss, layout)
    y, s = problem.y[chosen], problem.weights[chosen]
    w, back = np.random.default_rng(1).normal(size=(2, 5))
    look = NewtonQuestion(w, back, matrix_share=1.0, kind=np.float64, signs=True)
    told, alpha = look.empty(), np.zeros(60)
    for part in (chosen[:7], chosen[7:]):
        look.add_to(told, problem.terms, part, alpha)
    z, before = dense @ w, dense @ back
    a = np.array([-s[i] * loss.subgradient(z[i], y[i]) for i in range(40)])
    bend = np.array([s[i] * loss.curvature(z[i], y[i]) for i in range(40)])

    def paid(margins: np.ndarray) -> float:
        return sum(s[i] * loss.value(margins[i], y[i]) for i in range(40))

    conjugates = [loss.conjugate(a[i], y[i], s[i]) for i in range(40)]
    sums = [paid(z), sum(conjugates), a @ z, np.abs(conjugates).sum(), np.abs(a * z).sum()]
    assert told.sums == pytest.approx(sums)
    assert told.line == pytest.approx([paid(before + t * (z - before)) for t in PLACES])
    assert told.pulled == pytest.approx(dense.T @ a)
    assert np.tril(told.matrix) == pytest.approx(np.tril(dense.T @ (bend[:, None] * dense)))
    assert told.signed[:2] == pytest.approx([a[a > 0.0].sum(), -a[a < 0.0].sum()])
    assert told.bent == pytest.approx([40, np.count_nonzero(bend), (dense**2).sum()])
    assert np.allclose(alpha[chosen], a)
    assert not alpha[:10].any()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_pass_answers_with_plain_sums_of_classes(layout: str) -> None:
    problem, chosen, dense = posed(Logistic(), layout)
    codes = np.arange(60) % 3
    s = problem.weights[chosen]
    W, back = np.random.default_rng(2).normal(size=(2, 5, 3))
    look = NewtonQuestion(W, back, matrix_share=1.0, kind=np.float64)
    told = look.empty()
    terms = problem.terms._replace(y=codes.astype(np.float64))
    for part in (chosen[:7], chosen[7:]):
        look.add_to(told, terms, part)

    def losses(Z: np.ndarray) -> np.ndarray:
        return np.log(np.exp(Z).sum(axis=1)) - Z[np.arange(40), codes[chosen]]

    Z = dense @ W
    P = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
    A = s[:, None] * (np.eye(3)[codes[chosen]] - P)
    own = A[np.arange(40), codes[chosen]]
    entropy = -(P * np.log(P)).sum(axis=1)
    assert told.sums[0] == pytest.approx(s @ losses(Z))
    assert told.sums[1] == pytest.approx(-s @ entropy)
    assert told.sums[2] == pytest.approx(own @ np.linalg.norm(dense, axis=1))
    assert told.pulled == pytest.approx(dense.T @ A)
    before = dense @ back
    assert told.line == pytest.approx([s @ losses(before + t * (Z - before)) for t in PLACES])
    mean = s * (P * (1.0 - P)).sum(axis=1) / 3.0
    assert np.tril(told.matrix) == pytest.approx(np.tril(dense.T @ (mean[:, None] * dense)))


def test_rows_are_drawn_with_odds_that_make_their_sums_those_of_all() -> None:
    sizes = np.append(np.random.default_rng(3).exponential(size=1000), np.zeros(50))
    random = np.random.default_rng(4)
    sums, counts = [], []
    for _ in range(400):
        some, odds = draw_rows(sizes, 0.1, random)
        assert (sizes[some] > 0.0).all()
        sums.append((1.0 / odds).sum())
        counts.append(some.size)
    assert np.mean(counts) <= 0.1 * sizes.size + 5.0
    # The number of rows with a size, to five standard errors of the mean.
    assert abs(np.mean(sums) - 1000.0) <= 5.0 * np.std(sums) / np.sqrt(len(sums))
    some, odds = draw_rows(sizes, 1.0, random)
    assert some.size == 1000
    assert (odds == 1.0).all()
