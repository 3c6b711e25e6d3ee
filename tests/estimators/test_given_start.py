"""Fits that begin at given weights, and Pegasos' step sizes that let a start count."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

from saddlesvm import LinearSVC, LinearSVR, Pegasos
from saddlesvm.data import load_bundled
from saddlesvm.lab.recorder import Draws
from saddlesvm.lab.runs import iterates
from saddlesvm.problem.certificate import Point
from saddlesvm.problem.losses import Hinge, SquaredHinge
from saddlesvm.problem.problem import make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers.base import Budget
from saddlesvm.solvers.pegasos import first_steps
from support import Every, features, small_problem

NOTES = load_bundled("banknote")
SOLVERS = ["auto", "dcd", "sdca", "newton", "pegasos:delay=1e6"]


def epochs(model: Any, **start: Any) -> float:
    """Epochs of a fit of the notes, certified at its tolerance."""
    model.fit(NOTES.X, NOTES.y, **start)
    assert model.certificate_.relative_gap <= model.tol
    return float(np.max(model.n_iter_))


@functools.cache
def optimum(intercept: str) -> LinearSVC:
    """The notes' logistic machine, much nearer to the optimum than the fits that begin at it are to end."""
    return LinearSVC(loss="logistic", intercept=intercept, tol=1e-6, random_state=0).fit(NOTES.X, NOTES.y)


@pytest.mark.parametrize("intercept", ["regularized", "free", "none"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_start_near_the_optimum_ends_at_once(solver: str, intercept: str) -> None:
    """The first certificate is the second fit's last, whatever the solver makes of the weights."""
    options: dict[str, Any] = {"loss": "logistic", "intercept": intercept, "callbacks": [Every(0.5)], "random_state": 0}
    best = optimum(intercept)
    tol = 2e-2 if "pegasos" in solver else 1e-3  # its dual point is a mean over two epochs
    again = LinearSVC(solver=solver, tol=tol, max_iter=2, **options)
    assert epochs(again, coef_init=best.coef_, intercept_init=best.intercept_) <= 2


def test_every_split_and_regressions_take_their_start() -> None:
    X, y = load_iris(return_X_y=True)
    for split in ("ovr", "ovo", "multinomial"):
        options: dict[str, Any] = {"multi_class": split, "loss": "logistic" if split == "multinomial" else "hinge"}
        first = LinearSVC(tol=1e-4, **options).fit(X, y)
        again = LinearSVC(tol=1e-2, **options).fit(X, y, coef_init=first.coef_, intercept_init=first.intercept_)
        assert again.certificate_.relative_gap <= 1e-2
    line = LinearSVR(tol=1e-6, loss="squared").fit(X, y)
    near = LinearSVR(tol=1e-3, loss="squared").fit(X, y, coef_init=line.coef_, intercept_init=line.intercept_)
    assert near.certificate_.relative_gap <= 1e-3


@pytest.mark.parametrize(
    ("options", "start", "words"),
    [
        ({}, {"coef_init": np.zeros(3)}, r"1 x 4 and 1; got 1 x 3 and 1"),
        ({}, {"coef_init": np.zeros(4), "intercept_init": [0.0, 1.0]}, "got 1 x 4 and 2"),
        ({}, {"coef_init": np.full(4, np.nan)}, "finite"),
        ({}, {"intercept_init": 1.0}, "without coef_init"),
        ({"fit_intercept": False}, {"coef_init": np.zeros(4), "intercept_init": 1.0}, "has no intercept"),
        ({"C": "auto"}, {"coef_init": np.zeros(4)}, "C='auto'"),
        ({"multi_class": "crammer_singer"}, {"coef_init": np.zeros((2, 4))}, "start from dual points"),
    ],
)
def test_what_cannot_be_begun_is_refused(options: dict[str, Any], start: dict[str, Any], words: str) -> None:
    X = np.vstack([NOTES.X, NOTES.X[:1]]) if "multi_class" in options else NOTES.X
    y = np.append(NOTES.y, 9) if "multi_class" in options else NOTES.y
    if "multi_class" in options:
        start = {"coef_init": np.zeros((3, 4))}
    with pytest.raises(ValueError, match=words):
        LinearSVC(**options).fit(X, y, **start)


def test_a_joint_hinge_of_two_classes_begins_at_no_weights() -> None:
    """Its model has one vector, as those of two classes have, but its problem one for each class."""
    with pytest.raises(ValueError, match="start from dual points"):
        LinearSVC(multi_class="crammer_singer", loss="hinge").fit(NOTES.X, NOTES.y, coef_init=np.zeros(4))


@pytest.mark.parametrize("T", [1, 2, 40])
@pytest.mark.parametrize("delay", [0.0, 25.0])
@pytest.mark.parametrize("intercept", ["none", "regularized", "free"])
def test_pegasos_begins_at_its_start_as_the_plain_loop_does(intercept: str, delay: float, T: int) -> None:
    """The plain loop with t + delay for t, from the same weights and with the same rows; the ball holds it, too.

    Without a delay the start decides whether the first row counts, and is forgotten.
    """
    problem = small_problem(Hinge(), intercept=intercept)
    X, n = features(problem), problem.members.size
    v, lam = np.linspace(-3.0, 1.0, X.shape[1]), 1.0 / (problem.members.size * problem.C)
    solver = Pegasos(sampling="replacement", output="last", projection=True, delay=delay)
    if intercept == "none":
        v[-1] = 0.0
    ((_, point),) = iterates(problem, solver, [T / n], 3, Point(v.copy()))
    draws = [int(i) for i in _draws(3, n, T)]
    lift, w, b = problem.intercept.lift, v.copy(), 0.0
    if lift:
        w[-1], b = 0.0, problem.scale * v[-1]
        X = np.column_stack([X[:, :-1], np.zeros(n)])
    for t, i in enumerate(draws, start=1):
        slope = -problem.y[i] if problem.y[i] * (X[i] @ w + b) < 1.0 else 0.0
        w = (1.0 - 1.0 / (t + delay)) * w - slope / (lam * (t + delay)) * X[i]
        b -= slope / np.sqrt(t) if lift else 0.0
        w *= min(1.0, solver.radius(problem) / max(np.linalg.norm(w), 1e-300))
    assert point.w is not None
    expected = np.append(w[:-1], b / problem.scale if lift else w[-1])
    np.testing.assert_allclose(point.w, expected, rtol=1e-9, atol=1e-12)


def _draws(seed: int, n: int, count: int) -> list[int]:
    draws = Draws(seed)
    return [draws.below(n) for _ in range(count)]


def test_the_first_row_is_judged_by_the_start() -> None:
    """a_1 is 0 for weights that classify every row by a margin of 1, and w_2 then is zero; at w_1 = 0 it never is."""
    problem = small_problem(Hinge(), C=0.01)
    X = np.asarray(problem.X.values)
    easy = make_problem(as_rows(X), np.where(X[:, 0] > 0.0, 1.0, -1.0), Hinge(), C=0.01)
    apart = Point(np.eye(problem.n_features + 1)[0] / np.abs(X[:, 0]).min())
    solver = Pegasos(output="last")
    first = [next(iterates(easy, solver, [1.0 / len(X)], 0, start))[1].w for start in (None, apart)]
    assert first[0].any() and not first[1].any()
    mean = Pegasos(output="average")
    (_, point), (_, later) = iterates(easy, mean, [1.0 / len(X), 2.0 / len(X)], 0, apart)
    np.testing.assert_allclose(point.w, apart.w, rtol=1e-12)  # w_1 alone
    np.testing.assert_allclose(later.w, 0.5 * apart.w, rtol=1e-12, atol=1e-12)  # w_1 and w_2 = 0
    assert first_steps(small_problem(SquaredHinge())) > 0.0


def test_batches_of_a_subset_hold_no_row_twice_and_every_row_as_often() -> None:
    """Each iteration shows its rows by their number of visits; over many, every row comes as often as any other."""
    problem, k = small_problem(Hinge()), 20
    n, solver = problem.members.size, Pegasos(batch_size=20, sampling="subset", output="last")
    state = solver.init(problem, 1)
    before = state.visits.copy()
    for _ in range(n // k):  # as many as an epoch: then sub-gradients begin to be forgotten
        state = solver.step(problem, state, Budget(k))
        assert sorted(state.visits - before) == [0.0] * (n - k) + [1.0] * k
        before = state.visits.copy()
    counts = np.zeros(n)
    for seed in range(400):
        seen = solver.step(problem, solver.init(problem, seed), Budget(k)).visits
        counts += seen
    expected, spread = 400 * k / n, np.sqrt(400 * k / n * (1 - k / n))
    assert np.abs(counts - expected).max() <= 5.0 * spread
