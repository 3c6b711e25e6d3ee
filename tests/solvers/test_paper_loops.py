"""Pegasos, SDCA and DCD against the loops of their papers, written plainly."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits, Outcome
from saddlesvm.problem.certificate import Point
from saddlesvm.problem.loss import Loss, is_smooth
from saddlesvm.problem.losses import EpsilonInsensitive, Hinge, Logistic, SquaredHinge, make_loss
from saddlesvm.problem.penalties import ElasticNet
from saddlesvm.problem.problem import Problem, make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.runtime.randomness import draw, make_random, shuffle
from saddlesvm.solvers import DCD, SDCA, Pegasos
from saddlesvm.solvers.base import Budget
from saddlesvm.solvers.dcd import EAGER, FEW, KINKED_FALL, RECHECK
from saddlesvm.solvers.pegasos import first_steps
from support import (
    ALL_LOSSES,
    LOSSES_BY_KIND,
    distance_bound,
    features,
    matrix,
    named,
    small_problem,
    weight,
)
from support.solving import certified, run, weights_of

every_loss = pytest.mark.parametrize("loss", ALL_LOSSES, ids=named)
kinds_of_losses = pytest.mark.parametrize("loss", LOSSES_BY_KIND, ids=named)


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
    for order in plain_orders(problem, sampling, 4, make_random(5), problem.members.copy()):
        list(plain_sweep(problem, order, alpha, w))
    assert state.alpha == pytest.approx(alpha, rel=1e-8, abs=1e-10)
    assert state.w == pytest.approx(w, rel=1e-8, abs=1e-10)


@kinds_of_losses
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


def run_in_pieces(problem: Problem, solver: Any, steps: int, seed: int = 0) -> Any:
    """The state after so many steps, done in pieces of odd lengths."""
    state, pieces = solver.init(problem, seed), np.random.default_rng(seed)
    while state.clock < steps:
        state = solver.step(problem, state, Budget(min(int(pieces.integers(1, 40)), steps - state.clock)))
    return state


@pytest.mark.parametrize("T", [2, 3, 59, 60, 61, 119, 240, 481])
def test_sdca_averages_exactly_the_second_half(T: int) -> None:
    """The paper's average of a run of T steps: of the iterates before the steps after T / 2."""
    problem, solver = small_problem(Hinge()), SDCA("cyclic", output="average", iterations=T)
    state = run_in_pieces(problem, solver, T)
    assert solver.exhausted(state)
    seen = plain_iterates(problem, -(-T // 60))
    expected = seen[T // 2 : T].mean(axis=0)
    assert solver.solution(problem, state).alpha == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("epochs", "half"), [(2, (1, 2)), (3, (1, 2)), (4, (2, 4)), (9, (4, 8)), (16, (8, 16))])
def test_sdca_without_a_length_averages_the_second_half_of_a_power_of_two(epochs: int, half: Any) -> None:
    problem, solver = small_problem(Hinge()), SDCA("cyclic", output="average")
    state = run_in_pieces(problem, solver, 60 * epochs)
    expected = plain_iterates(problem, epochs)[60 * half[0] : 60 * half[1]].mean(axis=0)
    assert solver.solution(problem, state).alpha == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("iterations", "first", "last"), [(None, 240, 480), (541, 270, 541), (30, 15, 30)])
def test_sdca_draws_one_of_the_second_half(iterations: int | None, first: int, last: int) -> None:
    problem = small_problem(Hinge())
    solver = SDCA("cyclic", output="random", iterations=iterations)
    seen, drawn = plain_iterates(problem, 10), set()
    for seed in range(40):
        state = run_in_pieces(problem, solver, iterations or 570, seed)
        point = solver.solution(problem, state)
        distance = np.abs(seen - point.alpha).max(axis=1)
        same = np.flatnonzero(distance <= 1e-10)  # a visit may leave everything as it was
        assert ((same >= first) & (same < last)).any()
        assert first <= state.drawn < last or iterations is None
        drawn.add(int(same[0]))
    assert len(drawn) > 4


@pytest.mark.parametrize("k", [1, 7, 60])
@pytest.mark.parametrize("T", [1, 2, 100, 123])
def test_pegasos_does_exactly_its_iterations(k: int, T: int) -> None:
    """Whatever the batch size, and whether k divides the number of rows or not."""
    problem = small_problem(Hinge())
    solver = Pegasos(batch_size=k, sampling="replacement", output="last", iterations=T)
    found = fit(problem, solver, Limits(tol=0.0, max_epochs=1e6, keep="last"), seed=3)
    assert (found.rows_touched, found.outcome) == (k * T, Outcome.EPOCH_LIMIT)
    state = solver.init(problem, 3)
    for _ in range(T):
        state = replace(solver, iterations=None).step(problem, state, Budget(1))
    point = solver.solution(problem, state)
    assert point.w is not None
    np.testing.assert_array_equal(found.coef, point.w[:-1])


def test_pegasos_draws_every_iterate_equally_often() -> None:
    """Of T = 5 iterations each of w_1, ..., w_5, with probability 1 / 5, however the run is cut into pieces."""
    problem, T, runs = small_problem(Hinge()), 5, 2_000
    solver = Pegasos(sampling="replacement", output="random", iterations=T)
    last = replace(solver, output="last", iterations=None)
    counts = np.zeros(T)
    for seed in range(runs):
        state, plain = solver.init(problem, seed), last.init(problem, seed)
        seen = []
        for t in range(T):
            seen.append(last.solution(problem, plain).w)
            plain = last.step(problem, plain, Budget(1))
            if seed % 2 or t == T - 1:
                state = solver.step(problem, state, Budget(1 if seed % 2 else T))
        while state.iteration < T:
            state = solver.step(problem, state, Budget(T))
        chosen = solver.solution(problem, state).w
        counts[next(k for k, w in enumerate(seen) if np.array_equal(w, chosen))] += 1
    assert np.abs(counts - runs / T).max() <= 4.5 * math.sqrt(runs / T * (1 - 1 / T))


def test_pegasos_refuses_a_start_outside_of_its_ball() -> None:
    problem = small_problem(Hinge())
    solver = Pegasos(projection=True)
    radius = solver.radius(problem)
    inside, outside = np.full(6, 0.0), np.full(6, 0.0)
    inside[0], outside[0] = radius, 1.01 * radius
    solver.init(problem, 0, Point(inside))
    with pytest.raises(ValueError, match=r"outside of the ball of radius .*: shorten them"):
        solver.init(problem, 0, Point(outside))
    Pegasos().init(problem, 0, Point(outside))


@pytest.mark.parametrize("solver", [Pegasos, SDCA])
@pytest.mark.parametrize("iterations", [0, -3, 1.5, "ten", True])
def test_iterations_are_whole_numbers(solver: Any, iterations: Any) -> None:
    with pytest.raises(ValueError, match="iterations must be a whole number of at least 1, or None"):
        solver(iterations=iterations)


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), EpsilonInsensitive(0.2)], ids=named)
def test_dcd_is_the_plain_loop_with_shrinking(loss: Loss) -> None:
    problem = small_problem(loss, **weighted_options)
    X, n, seed = features(problem), 60, 4
    alpha, w = np.zeros(n), np.zeros(6)
    order, random = problem.members.copy(), make_random(seed)
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
            if known < before < math.inf:
                estimate *= max(math.sqrt(known / before), 0.0 if is_smooth(loss) else KINKED_FALL)
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
    assert result.outcome is whole.outcome is Outcome.EPOCH_LIMIT
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


def weights_of_pull(problem: Problem, v: np.ndarray) -> np.ndarray:
    """The weights that minimise R less the pull; an intercept's is its own pull."""
    return problem.regularizer.weights(v)


def plain_pegasos(problem: Problem, solver: Pegasos, iterations: int, seed: int) -> np.ndarray:
    """The pulls of Pegasos (figure 2 of the paper: its iterates), in the order that the run's own generator gives."""
    X, lam, k, n = features(problem), problem.lam, solver.batch_size, problem.members.size
    order, random, position = problem.members.copy(), make_random(seed), 0
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
        u = weights_of_pull(problem, w)
        g = sum(weight(problem, i) * problem.loss.subgradient(float(X[i] @ u), problem.y[i]) * X[i] for i in batch)
        w = (1.0 - 1.0 / (t + delay)) * w - g / (lam * (t + delay) * k)
        w = w * min(1.0, radius / max(float(np.linalg.norm(w)), 1e-300))
        seen.append(w)
    return np.array(seen)


def from_the_first(seen: np.ndarray) -> np.ndarray:
    """w_1, ..., w_T of w_2, ..., w_(T+1), where w_1 is zero: those that the theorems are about."""
    return np.vstack([np.zeros_like(seen[:1]), seen[:-1]])


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
        assert state.numbers["scale"][0] * np.linalg.norm(state.w) <= solver.radius(problem) * (1 + 1e-9)
    seen = plain_pegasos(problem, solver, state.iteration, 9)
    size = np.abs(seen).max()
    assert solver.solution(problem, state).w == pytest.approx(seen[-1], rel=1e-7, abs=1e-9 * size)
    averaging = replace(solver, output="average")
    state = run(problem, averaging, 5, seed=9)
    mean = from_the_first(plain_pegasos(problem, averaging, state.iteration, 9)).mean(axis=0)
    assert averaging.solution(problem, state).w == pytest.approx(mean, rel=1e-7, abs=1e-9 * size)


@kinds_of_losses
@pytest.mark.parametrize("output", ["last", "average"])
def test_proximal_pegasos_is_the_plain_loop(loss: Loss, output: str) -> None:
    problem = small_problem(loss, C=0.3, penalty=ElasticNet(0.4), **weighted_options)
    state = run(problem, solver := Pegasos(7, output=output), 9, seed=9)
    seen = plain_pegasos(problem, solver, state.iteration, 9)
    wanted = weights_of_pull(problem, seen[-1] if output == "last" else from_the_first(seen).mean(axis=0))
    found = solver.solution(problem, state).w
    assert found == pytest.approx(wanted, rel=1e-7, abs=1e-9 * np.abs(seen).max())
    assert np.array_equal(found == 0.0, wanted == 0.0)


@pytest.mark.parametrize("intercept", ["none", "regularized", "free"])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_proximal_pegasos_is_certified(intercept: Any, layout: Any) -> None:
    X = layout(matrix(60, 5, 0))
    y = small_problem(Logistic()).y
    rows = as_rows(X, 0.0 if intercept == "none" else 1.0)
    problem = make_problem(rows, y, Logistic(), C=0.05, penalty=ElasticNet(1.0), intercept=intercept)
    result = fit(problem, Pegasos(), Limits(tol=0.02, max_epochs=2000))
    assert result.outcome is Outcome.CERTIFIED
    assert 0 < np.count_nonzero(result.coef) < 5
    start = Point(np.append(result.coef, result.intercept), None)
    again = fit(problem, Pegasos(delay=60.0 * result.epochs), Limits(tol=0.02, max_epochs=2000), start=start)
    assert again.outcome is Outcome.CERTIFIED


def test_proximal_pegasos_has_no_projection() -> None:
    with pytest.raises(ValueError, match=r"projection=True needs penalty='l2'.*; got ElasticNet"):
        fit(small_problem(Hinge(), penalty=ElasticNet(0.4)), Pegasos(projection=True), Limits())


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
        assert distance.argmin() < state.iteration  # of w_1, ..., w_T, without w_(T+1)
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


@pytest.mark.parametrize("name", ["squared", "squared_hinge", "squared_epsilon_insensitive", "huber"])
@pytest.mark.parametrize("kind", ["free", "regularized", "none"])
def test_pegasos_does_not_overshoot_where_weights_of_rows_are_spread(name: str, kind: Any) -> None:
    random = np.random.default_rng(0)
    X, weights = random.normal(size=(12, 3)) + 3.0, 10.0 ** random.uniform(-6, 6, 12)
    y = np.where(random.normal(size=12) > 0.0, 1.0, -1.0)
    rows = as_rows(X, 0.0 if kind == "none" else 1.0)
    problem = make_problem(rows, y, make_loss(name), C=1e-6, weights=weights, intercept=kind)  # type: ignore[arg-type]
    result = fit(problem, Pegasos(), Limits(tol=1e-15, max_epochs=20))
    without = problem.C * sum(s * problem.loss.value(0.0, label) for s, label in zip(weights, y, strict=True))
    assert result.outcome is not Outcome.FAILED
    assert result.certificate.primal <= without
