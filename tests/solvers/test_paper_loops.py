"""The solvers: certificates reached, the papers' loops written plainly, and what must not change an optimum."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.svm import SVC, SVR

from conftest import (
    ALL_LOSSES,
    csr,
    distance_bound,
    features,
    labels,
    matrix,
    named,
    plain_dual,
    plain_primal,
    small_problem,
    weight,
)
from saddlesvm.fit.limits import Limits
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Outcome
from saddlesvm.fit.result import FitResult
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.losses import Absolute, EpsilonInsensitive, Hinge, Logistic, Loss, SquaredHinge, is_smooth
from saddlesvm.problem.problem import Problem, make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.runtime.randomness import draw, seeded, shuffle
from saddlesvm.solvers import DCD, SDCA, SOLVERS, Pegasos, make_solver
from saddlesvm.solvers.base import Budget
from saddlesvm.solvers.dcd import EAGER, FEW, RECHECK
from saddlesvm.solvers.pegasos import first_steps

every_loss = pytest.mark.parametrize("loss", ALL_LOSSES, ids=named)
TIGHT = Limits(tol=1e-8, max_epochs=100_000)
SCALE, SQUARED_NORM = 0, 2  # places in Pegasos' numbers


def weights_of(result: FitResult) -> np.ndarray:
    return np.append(result.coef, result.intercept)


def run(problem: Problem, solver: Any, epochs: int, seed: int = 0, start: Point | None = None) -> Any:
    """The state after whole epochs, without the fit's loop."""
    state = solver.init(problem, seed, start)
    while state.epochs < epochs - 1e-9:
        state = solver.step(problem, state, Budget(problem.members.size))
    return state


def certified(problem: Problem, solver: Any, limits: Limits = TIGHT) -> FitResult:
    result = fit(problem, solver, limits)
    assert result.outcome is Outcome.CERTIFIED, f"{solver}: {result.message}"
    return result


# Certificates are reached


@every_loss
@pytest.mark.parametrize("solver", [SDCA(), DCD()], ids=["sdca", "dcd"])
def test_dual_solvers_certify_every_loss(solver: Any, loss: Loss) -> None:
    problem = small_problem(loss)
    # the absolute loss has a flat dual here, on which coordinate descent is slow below 4e-6
    result = certified(problem, solver, replace(TIGHT, tol=1e-5) if isinstance(loss, Absolute) else TIGHT)
    gap = plain_primal(problem, result.coef, result.intercept) - plain_dual(problem, result.alpha)
    assert gap <= 1.001 * (result.tol + 1e-12) * result.certificate.primal
    rebuilt = problem.C * result.alpha @ features(problem)[:, :-1]
    assert np.linalg.norm(result.coef - rebuilt) <= distance_bound(gap, gap)


@every_loss
@pytest.mark.parametrize("intercept", ["regularized", "free"])
def test_dual_solvers_certify_with_an_intercept(loss: Loss, intercept: str) -> None:
    problem = small_problem(loss, intercept=intercept)
    results = [certified(problem, solver, Limits(tol=1e-7, max_epochs=100_000)) for solver in (SDCA(), DCD())]
    first, second = results
    assert np.linalg.norm(first.coef - second.coef) <= distance_bound(first.certificate.gap, second.certificate.gap)
    if intercept == "free":
        assert abs(first.alpha.sum()) <= 1e-10 * np.abs(first.alpha).sum()


@pytest.mark.parametrize("sampling", ["permutation", "replacement", "cyclic"])
@pytest.mark.parametrize("start", ["zero", "sgd"])
@pytest.mark.parametrize("output", ["last", "average", "random"])
def test_every_kind_of_sdca_certifies(sampling: str, start: str, output: str) -> None:
    certified(small_problem(Hinge()), SDCA(sampling, start, output), Limits(tol=1e-3, max_epochs=20_000))


@pytest.mark.parametrize("permutation", [True, False])
@pytest.mark.parametrize("shrinking", [True, False])
@pytest.mark.parametrize("loss", [Hinge(), EpsilonInsensitive(0.2)], ids=named)
def test_every_kind_of_dcd_certifies(permutation: bool, shrinking: bool, loss: Loss) -> None:
    certified(small_problem(loss, intercept="regularized"), DCD(permutation, shrinking))


@pytest.mark.parametrize("stopping", ["projected_gradient", "weight_change"])
@pytest.mark.parametrize("shrinking", [True, False])
@every_loss
def test_dcd_stops_by_its_own_rules_close_to_the_optimum(stopping: str, shrinking: bool, loss: Loss) -> None:
    problem = small_problem(loss)
    solver = DCD(shrinking=shrinking, stopping=stopping, threshold=1e-7)
    result = fit(problem, solver, Limits(tol=0.0, max_epochs=100_000))
    assert result.outcome is Outcome.RULE_MET
    assert -1e-12 <= result.certificate.relative_gap <= 1e-4


@every_loss
@pytest.mark.parametrize("batch_size", [1, 7, 60])
def test_pegasos_comes_close_for_every_loss(loss: Loss, batch_size: int) -> None:
    problem = small_problem(loss, lam=0.1)
    best = certified(problem, DCD()).certificate
    # the bound of Pegasos' theorem 2 has an expectation and a logarithm; 5 % after 600 epochs is far within it
    result = fit(problem, Pegasos(batch_size), Limits(tol=1e-4, max_epochs=600))
    assert best.dual * (1 - 1e-12) <= result.certificate.primal <= 1.05 * best.primal
    assert result.certificate.dual <= best.primal * (1 + 1e-12)
    assert result.certificate.relative_gap <= 0.1


@pytest.mark.parametrize("output", ["tail_average", "last", "average", "random"])
@pytest.mark.parametrize("sampling", ["permutation", "replacement"])
@pytest.mark.parametrize("projection", [False, True])
@pytest.mark.parametrize("intercept", ["none", "regularized", "free"])
def test_every_kind_of_pegasos_comes_close(output: str, sampling: str, projection: bool, intercept: str) -> None:
    problem = small_problem(Hinge(), lam=0.1, intercept=intercept)
    best = certified(problem, DCD(), Limits(tol=1e-6, max_epochs=100_000)).certificate
    solver = Pegasos(5, projection, sampling, output)
    result = fit(problem, solver, Limits(tol=1e-3, max_epochs=1000))
    assert best.dual * (1 - 1e-12) <= result.certificate.primal <= 1.1 * best.primal
    assert result.certificate.dual <= best.primal * (1 + 1e-12)


@pytest.mark.parametrize("solver", [SDCA(), DCD(), DCD(shrinking=False)], ids=repr)
@pytest.mark.parametrize("loss", [Hinge(), Logistic(), EpsilonInsensitive(0.2)], ids=named)
def test_every_iterate_is_dual_feasible_for_any_weights(solver: Any, loss: Loss) -> None:
    """A certificate may be asked for after any epoch: each one's dual objective is finite and a bound."""
    problem = small_problem(loss, n=4000, C=1.0, weights=np.random.default_rng(0).uniform(1.0, 2.0, 4000))
    for seed in range(5):
        state = solver.init(problem, seed)
        for _ in range(6):
            state = solver.step(problem, state, Budget(4000))
            assert evaluate(problem, solver.solution(problem, state)).certificate.sound


@pytest.mark.parametrize("solver", [SDCA(), SDCA("cyclic"), DCD()], ids=repr)
@every_loss
def test_the_dual_objective_never_falls(solver: Any, loss: Loss) -> None:
    problem = small_problem(loss, C=20.0)
    state, before = solver.init(problem, 1), 0.0
    for _ in range(8):
        state = solver.step(problem, state, Budget(problem.members.size))
        dual = plain_dual(problem, state.alpha)
        assert dual >= before - 1e-10 * (1.0 + abs(before))
        before = dual


# The loops of the papers, written plainly


def plain_sweep(problem: Problem, order: Any, alpha: np.ndarray, w: np.ndarray) -> Iterator[None]:
    """Dual coordinate ascent over `order`, in place; pauses before every visit."""
    X = features(problem)
    for i in order:
        yield
        s, q = weight(problem, i), problem.C * float(X[i] @ X[i])
        step = problem.loss.dual_step(alpha[i], float(X[i] @ w), problem.y[i], q, s)
        alpha[i] += step
        w += problem.C * step * X[i]


def plain_orders(problem: Problem, sampling: str, epochs: int, random: np.ndarray, order: np.ndarray) -> Iterator[Any]:
    """The orders of the epochs, replayed from the run's own generator."""
    n = problem.members.size
    for _ in range(epochs):
        if sampling == "permutation":
            shuffle(random, order, n)
        yield order.copy() if sampling != "replacement" else order[[draw(random, n) for _ in range(n)]]


weighted_options: dict[str, Any] = {"weights": np.linspace(0.3, 2.0, 60), "intercept": "regularized"}


@every_loss
@pytest.mark.parametrize("sampling", ["cyclic", "permutation", "replacement"])
def test_sdca_is_the_plain_loop(loss: Loss, sampling: str) -> None:
    problem = small_problem(loss, **weighted_options)
    state = run(problem, SDCA(sampling), 4, seed=5)
    alpha, w = np.zeros(60), np.zeros(6)
    for order in plain_orders(problem, sampling, 4, seeded(5), problem.members.copy()):
        list(plain_sweep(problem, order, alpha, w))
    assert state.alpha == pytest.approx(alpha, rel=1e-8, abs=1e-10)
    assert state.w == pytest.approx(w, rel=1e-8, abs=1e-10)


@every_loss
def test_modified_sgd_is_the_plain_loop(loss: Loss) -> None:
    problem = small_problem(loss, **weighted_options)
    state = SDCA("cyclic", start="sgd").init(problem, 0)
    X, alpha, whole = features(problem), np.zeros(60), 60 * problem.C
    for t in range(1, 61):
        i = t - 1
        z = float(X[i] @ (whole / (t - 1) * alpha @ X)) if t > 1 else 0.0
        alpha[i] = loss.dual_step(0.0, z, problem.y[i], whole / t * float(X[i] @ X[i]), weight(problem, i))
    assert state.alpha == pytest.approx(alpha, rel=1e-8, abs=1e-10)
    assert state.w == pytest.approx(problem.C * alpha @ X, rel=1e-8, abs=1e-10)
    assert state.epochs == 1.0


def plain_iterates(problem: Problem, epochs: int) -> np.ndarray:
    """The dual points before each visit of cyclic SDCA."""
    alpha, w, seen = np.zeros(problem.y.size), np.zeros(problem.n_features + 1), []
    for _ in range(epochs):
        for _pause in plain_sweep(problem, problem.members, alpha, w):
            seen.append(alpha.copy())
    return np.array([*seen, alpha])


@pytest.mark.parametrize("epochs", [1, 2, 3, 5, 8, 11])
def test_sdca_averages_at_least_the_second_half(epochs: int) -> None:
    problem, solver = small_problem(Hinge()), SDCA("cyclic", output="average")
    state = run(problem, solver, epochs)
    seen = plain_iterates(problem, epochs)[:-1]
    assert state.earlier_start <= len(seen) / 2
    point = solver.solution(problem, state)
    assert point.alpha == pytest.approx(seen[state.earlier_start :].mean(axis=0), rel=1e-9, abs=1e-12)


def test_sdca_draws_one_of_the_second_half() -> None:
    problem, solver, epochs = small_problem(Hinge()), SDCA("cyclic", output="random"), 9
    seen, drawn = plain_iterates(problem, epochs), set()
    for seed in range(12):
        state = run(problem, solver, epochs, seed)
        point = solver.solution(problem, state)
        distance = np.abs(seen - point.alpha).max(axis=1)
        nearest = int(np.flatnonzero(distance <= 1e-10).max())  # a visit may leave everything as it was
        assert nearest >= state.earlier_start
        drawn.add(nearest)
    assert len(drawn) > 4


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), EpsilonInsensitive(0.2)], ids=named)
def test_dcd_is_the_plain_loop_with_shrinking(loss: Loss) -> None:
    problem = small_problem(loss, **weighted_options)
    X, n, seed = features(problem), 60, 4
    alpha, w = np.zeros(n), np.zeros(6)
    order, random = problem.members.copy(), seeded(seed)
    bound_up, bound_down, known, total = math.inf, -math.inf, math.inf, 0.0
    solver = DCD()
    state, shrunk, called_back, wholes, in_order = solver.init(problem, seed), 0, 0, False, False
    for _ in range(40):
        sequence, aside = order.copy(), set()
        if not in_order:
            shuffle(random, sequence, sequence.size)
        largest, smallest, residual, seen = -math.inf, math.inf, 0.0, 0.0
        for i in sequence:
            s, z = weight(problem, i), float(X[i] @ w)
            paid = s * loss.value(z, problem.y[i])
            residual += paid + loss.conjugate(alpha[i], problem.y[i], s) + alpha[i] * z
            seen += paid + 0.5 * alpha[i] * z
            left, right = loss.slopes(alpha[i], z, problem.y[i], s)
            if right > bound_up and left < bound_down:
                aside.add(i)
                continue
            projected = min(right, 0.0) or max(left, 0.0)
            largest, smallest = max(largest, projected), min(smallest, projected)
            step = loss.dual_step(alpha[i], z, problem.y[i], problem.C * float(X[i] @ X[i]), s)
            alpha[i] += step
            w += problem.C * step * X[i]
        bound_up = EAGER * largest if largest > 0.0 else math.inf
        bound_down = EAGER * smallest if smallest < 0.0 else -math.inf
        whole, order = order.size == n, np.array([i for i in order if i not in aside], dtype=order.dtype)
        shrunk, total = max(shrunk, n - order.size), seen if whole else total
        estimate, in_order = residual / total, False
        if whole:
            before, known = (known if wholes else math.inf), estimate
            if is_smooth(loss) and known < before < math.inf:
                estimate *= math.sqrt(known / before)
        elif largest - smallest <= 0.0 or residual / total <= RECHECK * known:
            in_order = order.size < FEW * n
            order, called_back = problem.members.copy(), called_back + 1
        wholes = whole
        state = solver.step(problem, state, Budget(sequence.size))
        assert state.active == order.size
        assert state.estimate == pytest.approx(estimate, rel=1e-6, abs=1e-12)
        assert state.alpha == pytest.approx(alpha, rel=1e-7, abs=1e-9)
    assert shrunk > 0 and called_back > 0


@pytest.mark.parametrize("passes", [1, 3, 17])
@pytest.mark.parametrize("stopping", ["gap", "projected_gradient", "weight_change"])
def test_dcd_stops_after_so_many_passes_over_the_active_rows(passes: int, stopping: str) -> None:
    problem = small_problem(Hinge())
    solver = DCD(stopping=stopping, threshold=1e-300, max_passes=passes)
    result = fit(problem, solver, Limits(tol=0.0))
    whole = fit(problem, replace(solver, shrinking=False), Limits(tol=0.0))
    assert result.outcome is whole.outcome is Outcome.RULE_MET
    assert result.rows_touched <= whole.rows_touched == passes * problem.members.size


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), Logistic()], ids=named)
@pytest.mark.parametrize("run_length", [1, 4, 16])
def test_runs_of_rows_change_the_way_and_not_the_optimum(loss: Loss, run_length: int, monkeypatch: Any) -> None:
    monkeypatch.setattr("saddlesvm.solvers.dcd.NEAR_BYTES", 0)
    problem = small_problem(loss)
    assert DCD(run_length=run_length).rules(problem).run == run_length
    one, other = (certified(problem, DCD(run_length=length)) for length in (run_length, 1))
    bound = distance_bound(one.certificate.gap, other.certificate.gap)
    assert np.linalg.norm(weights_of(one) - weights_of(other)) <= bound


def test_where_few_rows_were_active_the_others_are_checked_in_their_order() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(3_000, 5))
    y = np.sign(X[:, 0] + 0.3 * random.normal(size=3_000))
    problem, solver = make_problem(as_rows(X), y, Hinge(), C=1.0), DCD()
    state, in_order = solver.init(problem, 1), []
    for _ in range(100):
        whole = state.active == 3_000
        state = solver.step(problem, state, Budget(state.active, relative_gap=-1.0))
        if whole:
            in_order.append(bool((state.sequence == problem.members).all()))
    assert not in_order[0] and any(in_order[1:])


@every_loss
def test_dcd_without_its_options_is_cyclic_sdca(loss: Loss) -> None:
    problem = small_problem(loss, intercept="regularized")
    one, other = run(problem, DCD(False, False), 5), run(problem, SDCA("cyclic"), 5)
    assert one.alpha == pytest.approx(other.alpha, rel=1e-9, abs=1e-12)
    assert one.w == pytest.approx(other.w, rel=1e-9, abs=1e-12)


def plain_pegasos(problem: Problem, solver: Pegasos, iterations: int, seed: int) -> np.ndarray:
    """The iterates of Pegasos (figure 2 of the paper), in the order that the run's own generator gives."""
    X, lam, k, n = features(problem), problem.lam, solver.batch_size, problem.members.size
    order, random, position = problem.members.copy(), seeded(seed), 0
    delay, radius, w, seen = first_steps(problem), solver.radius(problem), np.zeros(X.shape[1]), []
    for t in range(1, iterations + 1):
        batch = []
        for _ in range(k):
            if solver.sampling == "replacement":
                batch.append(order[draw(random, n)])
                continue
            if position == 0:
                shuffle(random, order, n)
            batch.append(order[position])
            position = (position + 1) % n
        g = sum(weight(problem, i) * problem.loss.subgradient(float(X[i] @ w), problem.y[i]) * X[i] for i in batch)
        w = (1.0 - 1.0 / (t + delay)) * w - g / (lam * (t + delay) * k)
        w = w * min(1.0, radius / max(float(np.linalg.norm(w)), 1e-300))
        seen.append(w)
    return np.array(seen)


@every_loss
@pytest.mark.parametrize("batch_size", [1, 7])
@pytest.mark.parametrize("projection", [False, True])
@pytest.mark.parametrize("sampling", ["permutation", "replacement"])
def test_pegasos_is_the_plain_loop(loss: Loss, batch_size: int, projection: bool, sampling: str) -> None:
    problem = small_problem(loss, C=0.3, **weighted_options)
    solver = Pegasos(batch_size, projection, sampling, "last")
    state = solver.init(problem, 9)
    while state.iteration < 150:
        state = solver.step(problem, state, Budget(60))
        assert state.numbers[SCALE] * np.linalg.norm(state.w) <= solver.radius(problem) * (1 + 1e-9)
    seen = plain_pegasos(problem, solver, state.iteration, 9)
    size = np.abs(seen).max()
    assert solver.solution(problem, state).w == pytest.approx(seen[-1], rel=1e-7, abs=1e-9 * size)
    averaging = replace(solver, output="average")
    state = run(problem, averaging, 5, seed=9)
    mean = plain_pegasos(problem, averaging, state.iteration, 9).mean(axis=0)
    assert averaging.solution(problem, state).w == pytest.approx(mean, rel=1e-7, abs=1e-9 * size)


@pytest.mark.parametrize("iterations", [1, 2, 3, 10, 137, 400])
def test_pegasos_tail_average_is_of_the_last_half_or_a_little_less(iterations: int) -> None:
    problem, solver = small_problem(Hinge()), Pegasos()
    state = solver.init(problem, 2)
    while state.iteration < iterations:
        state = solver.step(problem, state, Budget(iterations - state.iteration))
    seen = plain_pegasos(problem, solver, iterations, 2)
    assert solver.solution(problem, state).w == pytest.approx(seen[state.earlier_start :].mean(axis=0), rel=1e-7)
    if iterations > 100:
        assert 0.29 <= 1.0 - state.earlier_start / iterations <= 0.51


def test_pegasos_draws_one_of_the_iterates() -> None:
    problem, solver, drawn = small_problem(Hinge()), Pegasos(60, output="random"), set()
    for seed in range(10):
        state = solver.init(problem, seed)
        for _ in range(12):
            state = solver.step(problem, state, Budget(240))
        seen = np.vstack([np.zeros(6), plain_pegasos(problem, solver, state.iteration, seed)])
        distance = np.abs(seen - solver.solution(problem, state).w).max(axis=1)
        assert distance.min() <= 1e-9
        drawn.add(int(distance.argmin()))
    assert len(drawn) > 3


@every_loss
def test_the_ball_holds_the_optimum(loss: Loss) -> None:
    problem = small_problem(loss, weights=np.linspace(0.3, 2.0, 60))
    best = certified(problem, DCD())
    radius = Pegasos(projection=True).radius(problem)
    assert np.linalg.norm(best.coef) <= radius + distance_bound(best.certificate.gap)
    assert Pegasos().radius(problem) == math.inf


def test_the_ball_of_the_hinge_is_the_papers() -> None:
    problem = small_problem(Hinge(), lam=0.04)
    assert Pegasos(projection=True).radius(problem) == pytest.approx(1.0 / math.sqrt(0.04))


@pytest.mark.parametrize("solver", [SDCA(), DCD()], ids=repr)
@pytest.mark.parametrize("intercept", ["none", "regularized", "free"])
def test_a_given_start_is_gone_on_from(solver: Any, intercept: str) -> None:
    problem = small_problem(Hinge(), intercept=intercept)
    best = certified(problem, solver, Limits(tol=1e-7, max_epochs=100_000))
    place = best.intercept / problem.scale if intercept == "free" else 0.0
    start = Point(np.append(best.coef, place), best.alpha)
    kept = best.alpha.copy()
    again = fit(problem, solver, Limits(tol=1e-6, max_epochs=100_000), start=start)
    assert again.outcome is Outcome.CERTIFIED
    assert again.epochs <= 5.0 < best.epochs
    assert np.array_equal(best.alpha, kept)
    with pytest.raises(ValueError, match=r"\(3,\).*60"):
        solver.init(problem, 0, Point(alpha=np.zeros(3)))


# What must not change an optimum

DUAL = pytest.mark.parametrize("solver", [SDCA(), DCD()], ids=["sdca", "dcd"])
SOME = pytest.mark.parametrize("loss", [Hinge(), SquaredHinge()], ids=named)


def same_optimum(one: FitResult, other: FitResult) -> None:
    gaps = one.certificate.gap, other.certificate.gap
    assert abs(one.certificate.primal - other.certificate.primal) <= max(gaps) + 1e-10 * one.certificate.primal
    assert np.linalg.norm(weights_of(one)[:-1] - weights_of(other)[:-1]) <= distance_bound(*gaps)


@pytest.mark.parametrize("solver", [SDCA(), DCD(), Pegasos(3)], ids=["sdca", "dcd", "pegasos"])
@SOME
def test_dense_equals_sparse_equals_mapped(solver: Any, loss: Loss, tmp_path: Path) -> None:
    dense = matrix(60, 5, density=0.7)
    y = labels(dense, loss)
    np.save(tmp_path / "X.npy", dense)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    states = [
        run(make_problem(as_rows(X, 1.0), y, loss, C=0.5, intercept="regularized"), solver, 4)
        for X in (dense, mapped, csr(dense))
    ]
    assert np.array_equal(states[0].w, states[1].w)
    assert states[0].w == pytest.approx(states[2].w, rel=1e-9, abs=1e-11)
    result = fit(
        make_problem(as_rows(csr(dense), 1.0), y, loss, C=0.5, intercept="regularized"), solver, Limits(tol=1e-2)
    )
    assert result.outcome is Outcome.CERTIFIED


@DUAL
@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_float32_data_reach_the_same_certificate(solver: Any, layout: str) -> None:
    """The data are the same numbers in both precisions, so it is the same problem."""
    narrow = matrix(60, 5, density=0.7).astype(np.float32)
    y = labels(narrow, Hinge())
    X32, X64 = narrow, narrow.astype(np.float64)
    sparse64 = layout == "csr"
    made = [make_problem(as_rows(csr(X, np.int64) if sparse64 else X), y, Hinge(), C=2.0) for X in (X32, X64)]
    one, other = (certified(problem, solver) for problem in made)
    same_optimum(one, other)
    assert one.coef.dtype == np.float64


def test_pegasos_in_float32_stays_near_float64() -> None:
    narrow = matrix(60, 5).astype(np.float32)
    y = labels(narrow, Hinge())
    one, other = (
        run(make_problem(as_rows(X), y, Hinge(), lam=0.1), Pegasos(output="last"), 3)
        for X in (narrow, narrow.astype(np.float64))
    )
    assert one.w.dtype == np.float32
    w = one.numbers[SCALE] * one.w.astype(np.float64), other.numbers[SCALE] * other.w
    # 180 steps, each with a relative rounding of 2^-24 a place
    assert np.linalg.norm(w[0] - w[1]) <= 180 * 6 * 2.0**-24 * np.linalg.norm(w[1]) + 1e-12


ALL_SOLVERS = [
    (SDCA(), TIGHT),
    (DCD(), TIGHT),
    (Pegasos(4), Limits(tol=2e-3, max_epochs=20_000)),
]
every_solver = pytest.mark.parametrize(("solver", "limits"), ALL_SOLVERS, ids=["sdca", "dcd", "pegasos"])


@every_solver
@SOME
def test_weights_equal_repetition(solver: Any, limits: Limits, loss: Loss) -> None:
    X = matrix(30, 4)
    y, times = labels(X, loss), np.arange(30) % 4
    weighted = make_problem(as_rows(X), y, loss, C=0.05, weights=times.astype(float))
    repeated = make_problem(as_rows(np.repeat(X, times, axis=0)), np.repeat(y, times), loss, C=0.05)
    same_optimum(certified(weighted, solver, limits), certified(repeated, solver, limits))


@every_solver
@SOME
def test_rows_of_weight_zero_are_as_absent(solver: Any, limits: Limits, loss: Loss) -> None:
    X = matrix(60, 4)
    y, weights = labels(X, loss), np.tile([1.0, 0.0, 1.5], 20)
    kept = weights > 0
    whole = make_problem(as_rows(X), y, loss, C=0.05, weights=weights)
    part = make_problem(as_rows(np.ascontiguousarray(X[kept])), y[kept], loss, C=0.05, weights=weights[kept])
    one, other = run(whole, solver, 3), run(part, solver, 3)
    assert np.array_equal(one.w, other.w)
    with_zeros, without = certified(whole, solver, limits), certified(part, solver, limits)
    same_optimum(with_zeros, without)
    assert not with_zeros.alpha[~kept].any()


@every_solver
@SOME
def test_rows_outside_the_members_are_as_absent(solver: Any, limits: Limits, loss: Loss) -> None:
    X = matrix(60, 4)
    y, members = labels(X, loss), np.flatnonzero(np.arange(60) % 3)
    some = make_problem(as_rows(X), y, loss, lam=0.3, members=members)
    alone = make_problem(as_rows(np.ascontiguousarray(X[members])), y[members], loss, lam=0.3)
    one, other = run(some, solver, 3), run(alone, solver, 3)
    assert np.array_equal(one.w, other.w)
    assert some.C == alone.C


@every_solver
@pytest.mark.parametrize("intercept", ["none", "free"])
def test_the_order_of_the_rows_does_not_matter(solver: Any, limits: Limits, intercept: str) -> None:
    X = matrix(60, 4)
    y, order = labels(X, Hinge()), np.random.default_rng(0).permutation(60)
    bias = 1.0 if intercept == "free" else 0.0
    limits = replace(limits, tol=max(limits.tol, 1e-7))
    if isinstance(solver, Pegasos) and intercept == "free":
        limits = replace(limits, tol=5e-2)
    made = [
        make_problem(as_rows(X[rows], bias), y[rows], Hinge(), C=0.05, intercept=intercept)  # type: ignore[arg-type]
        for rows in (np.arange(60), order)
    ]
    same_optimum(*(certified(problem, solver, limits) for problem in made))


@every_solver
@SOME
def test_a_regularized_intercept_is_an_appended_column(solver: Any, limits: Limits, loss: Loss) -> None:
    X = matrix(60, 4)
    y, scale = labels(X, loss), 2.5
    virtual = make_problem(as_rows(X, scale), y, loss, C=0.05, intercept="regularized")
    column = make_problem(as_rows(np.hstack([X, np.full((60, 1), scale)])), y, loss, C=0.05)
    one, other = run(virtual, solver, 4), run(column, solver, 4)
    assert one.w == pytest.approx(other.w[:-1], rel=1e-8, abs=1e-10)
    result, reference = certified(virtual, solver, limits), certified(column, solver, limits)
    gaps = result.certificate.gap, reference.certificate.gap
    assert abs(result.certificate.primal - reference.certificate.primal) <= max(gaps) + 1e-10
    assert abs(result.intercept / scale - reference.coef[-1]) <= distance_bound(*gaps)


@pytest.mark.parametrize("scale", [1.0, 10.0])
@DUAL
def test_a_free_intercept_finds_libsvms_optimum(solver: Any, scale: float) -> None:
    X = matrix(80, 4) + 0.5
    y, t = labels(X, Hinge()), labels(X, EpsilonInsensitive())
    for loss, target, theirs in (
        (Hinge(), y, SVC(kernel="linear", C=0.7, tol=1e-9)),
        (EpsilonInsensitive(0.2), t, SVR(kernel="linear", C=0.7, epsilon=0.2, tol=1e-9)),
    ):
        theirs.fit(X, target)
        problem = make_problem(as_rows(X, scale), target, loss, C=0.7, intercept="free")
        result = certified(problem, solver, Limits(tol=1e-7, max_epochs=100_000))
        reached = plain_primal(problem, theirs.coef_.ravel(), float(theirs.intercept_[0]))
        gap = max(result.certificate.gap, 0.0)
        assert result.certificate.dual <= reached * (1 + 1e-12)
        assert abs(reached - result.certificate.primal) <= gap + 1e-6 * reached
        distance = np.linalg.norm(result.coef - theirs.coef_.ravel())
        assert distance <= distance_bound(gap, gap + 1e-6 * reached)


@DUAL
def test_a_free_intercept_of_a_smooth_loss_is_scipys(solver: Any) -> None:
    problem = small_problem(Logistic(), intercept="free")

    def primal(point: np.ndarray) -> float:
        return plain_primal(problem, point[:-1], point[-1])

    theirs = minimize(primal, np.zeros(6), method="BFGS", options={"gtol": 1e-8})
    result = certified(problem, solver)
    assert abs(result.certificate.primal - theirs.fun) <= max(result.certificate.gap, 0.0) + 1e-8 * theirs.fun
    assert result.certificate.dual <= theirs.fun * (1 + 1e-12)


# The objects

OPTIONS: list[Callable[[], Any]] = [
    lambda: SDCA("cyclic", "sgd", "average"),
    lambda: DCD(permutation=False, stopping="weight_change", threshold=0.5),
    lambda: Pegasos(64, True, "replacement", "random"),
]


@pytest.mark.parametrize("make", OPTIONS)
def test_solvers_print_compare_copy_and_pickle(make: Callable[[], Any]) -> None:
    solver = make()
    assert solver == make() and hash(solver) == hash(make())
    assert solver != type(solver)()
    assert eval(repr(solver)) == solver
    assert pickle.loads(pickle.dumps(solver)) == solver
    assert clone(solver) == solver and clone(solver, safe=False) is not solver
    assert type(solver)(**solver.get_params()) == solver
    assert make_solver(solver) is solver
    with pytest.raises(FrozenInstanceError):
        solver.threshold = 1.0


@pytest.mark.parametrize("name", ["dcd", "sdca", "pegasos"])
def test_a_name_stands_for_a_solver_with_its_defaults(name: str) -> None:
    assert make_solver(name) == SOLVERS[name]()
    assert SOLVERS[name].name == name


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: SDCA(sampling="random"), ["sampling", "'cyclic'", "'random'"]),
        (lambda: SDCA(start="alpha"), ["start", "'sgd'", "'alpha'"]),
        (lambda: SDCA(output="tail"), ["output", "'average'", "'tail'"]),
        (lambda: DCD(max_passes=0), ["max_passes", "at least 1", "0"]),
        (lambda: DCD(run_length=0), ["run_length", "at least 1", "0"]),
        (lambda: DCD(stopping="never"), ["stopping", "'projected_gradient'", "'never'"]),
        (lambda: DCD(threshold=0.0), ["threshold", "positive", "0.0"]),
        (lambda: DCD(threshold=math.nan), ["threshold", "nan"]),
        (lambda: Pegasos(0), ["batch_size", "at least 1", "0"]),
        (
            lambda: Pegasos(2.5),  # type: ignore[arg-type]
            ["batch_size", "2.5"],
        ),
        (lambda: Pegasos(sampling="cyclic"), ["sampling", "'cyclic'"]),
        (lambda: Pegasos(output="best"), ["output", "'tail_average'", "'best'"]),
        (lambda: make_solver("liblinear"), ["liblinear", "dcd", "sdca", "pegasos"]),
        (lambda: Pegasos(61).init(small_problem(Hinge()), 0), ["batch_size", "61", "60"]),
    ],
)
def test_bad_options_are_named(make: Callable[[], Any], words: list[str]) -> None:
    with pytest.raises(ValueError) as error:
        make()
    assert all(word in str(error.value) for word in words), str(error.value)
