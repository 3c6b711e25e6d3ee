"""The theorems as functions: their inverses, their order, and that they hold on data."""

import inspect
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from saddlesvm.lab import bounds
from saddlesvm.lab.dataset import make_dataset
from saddlesvm.lab.runs import iterates
from saddlesvm.problem.certificate import evaluate
from saddlesvm.problem.losses import Hinge, SmoothHinge
from saddlesvm.solvers import SDCA

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.makers.many_runs import pegasos_runs, sampler

PEGASOS = {
    "deterministic_regret_bound": (1.0, 0.01),
    "expected_average_bound": (1.0, 0.01),
    "expected_suffix_bound": (1.0, 0.01),
    "average_iterate_bound": (1.0, 0.01, 0.05),
    "random_iterate_bound": (1.0, 0.01, 0.05),
    "kakade_tewari_average_bound": (1.0, 0.01, 0.05),
    "pegasos_average_bound": (1.0, 0.01, 0.05),
    "freedman_average_bound": (1.0, 0.01, 0.05),
}
SDCA_BOUNDS = {
    "sdca_smooth_bound": (500, 0.01, 1.0),
    "sdca_lipschitz_bound": (500, 0.01, 1.0),
    "sdca_lipschitz_dual_bound": (500, 0.01, 1.0),
}


@pytest.mark.parametrize(("name", "arguments"), [*PEGASOS.items(), *SDCA_BOUNDS.items()])
@pytest.mark.parametrize("eps", [0.3, 1e-4])
def test_the_inverse_is_the_least_number_of_iterations(name, arguments, eps):
    bound = getattr(bounds, name)
    T = bounds.iterations_for(eps, bound, *arguments)
    place = _place(bound)
    assert bound(*arguments[:place], T, *arguments[place:]) <= eps
    assert bound(*arguments[:place], T - 1, *arguments[place:]) > eps
    # The arguments may be given by name, too.
    names = [name for name in inspect.signature(bound).parameters if name != "T"]
    assert bounds.iterations_for(eps, bound, **dict(zip(names, arguments, strict=False))) == T


def _place(bound):
    return bound.__code__.co_varnames.index("T")


@pytest.mark.parametrize("projection", [False, True])
@pytest.mark.parametrize("lam", [0.2, 1e-2, 1e-4])
@pytest.mark.parametrize("T", [100, 10_000, 1_000_000])
def test_the_sharper_bounds_are_sharper(projection, lam, T):
    published, kakade, sharp = (
        bound(1.0, lam, T, 0.05, projection=projection)
        for bound in (bounds.average_iterate_bound, bounds.kakade_tewari_average_bound, bounds.freedman_average_bound)
    )
    between = bounds.pegasos_average_bound(1.0, lam, T, 0.05, projection=projection)
    assert bounds.expected_average_bound(1.0, lam, T, projection=projection) < sharp < between < kakade < published
    assert published / sharp > 3.0


def test_the_sharper_bound_solves_its_inequality():
    """``D <= Reg + a sqrt(D)`` with equality, where the range of the noise is not what decides."""
    R, lam, T, delta = 1.0, 0.01, 10_000, 0.05
    log = math.log(4 * math.log(T) / delta)
    total = T * bounds.freedman_average_bound(R, lam, T, delta)
    regret = T * bounds.deterministic_regret_bound(R, lam, T)
    assert total == pytest.approx(regret + math.sqrt(8 * R * R * log / lam * total), rel=1e-12)


def test_the_general_theorem_and_its_case():
    """Theorem 3.6 at its constants, written out and as the general theorem; the published constants with k = 4."""
    R, lam, T, delta = 1.0, 0.01, 1e5, 0.05
    assert round(bounds.pegasos_average_bound(R, lam, T, delta), 3) == 0.317
    log, c = math.log(4 * math.log(T) / delta), 4 * R * R
    logs = 1 + math.log(T)
    written = c / (2 * lam * T) * (logs + 4 * math.sqrt(logs * log) + 16 * log)
    assert bounds.pegasos_average_bound(R, lam, T, delta) == pytest.approx(written, rel=1e-12)
    regret = T * bounds.deterministic_regret_bound(R, lam, T)
    for k, bound in ((2.0, bounds.pegasos_average_bound), (4.0, bounds.kakade_tewari_average_bound)):
        general = bounds.strongly_convex_average_bound(regret, math.sqrt(c), lam, 151.0, T, delta, k=k)
        assert general == pytest.approx(bound(R, lam, T, delta), rel=1e-12)
    # 3.2 with the variance of the theorem, at the sum D that solves the inequality: the general theorem is above it
    total = regret
    for _ in range(200):
        total = regret + bounds.martingale_bound(2 * c / lam * total, 2 * 151.0, T, delta)
    assert regret < total <= T * bounds.pegasos_average_bound(R, lam, T, delta)


def test_the_inequality_for_martingales_holds():
    """Sums whose variance depends on the past: fair bets of a size that grows when the last one was lost."""
    random, T, delta, runs = np.random.default_rng(0), 200, 0.2, 4000
    coins = random.choice([-1.0, 1.0], (runs, T))
    sizes = np.where(np.roll(coins, 1, axis=1) < 0, 1.0, 0.1)
    limits = [bounds.martingale_bound(variance, 1.0, T, delta) for variance in (sizes**2).sum(axis=1)]
    assert ((coins * sizes).sum(axis=1) > limits).mean() <= delta


@pytest.mark.parametrize(("n", "lam", "eps"), [(1000, 0.01, 0.1), (50, 1e-3, 1e-3), (100_000, 1e-4, 1e-6)])
def test_the_stated_iterations_of_sdca_are_enough(n, lam, eps):
    """The theorem's steps; the best split of its inequality saves at most a tenth, and what it rounds up to n."""
    smooth = bounds.sdca_smooth_iterations(n, lam, 1.0, eps)
    assert smooth == bounds.iterations_for(eps, bounds.sdca_smooth_bound, n, lam, 1.0)
    stated = bounds.sdca_lipschitz_iterations(n, lam, 1.0, eps)
    least = bounds.iterations_for(eps, bounds.sdca_lipschitz_bound, n, lam, 1.0)
    assert least <= stated <= least + 3 * n + 2.0 / (lam * eps) + 1
    assert bounds.sdca_lipschitz_bound(n, lam, 1.0, 0.5 * n) == math.inf


def test_the_constants_of_the_hinge_and_of_the_sgd_start():
    n, lam, eps, R = 10_000, 0.1, 0.01, 2.0
    published = bounds.sdca_lipschitz_iterations(n, lam, 1.0, eps, R=R)
    first = math.ceil(n * math.log(lam * n / (2 * R * R)))
    assert published == first + n + 20 * R * R / (lam * eps)
    own = bounds.sdca_lipschitz_iterations(n, lam, 1.0, eps, R=R, spread=1.0)
    assert own == math.ceil(n * math.log(2 * lam * n / (R * R))) + n + 5 * R * R / (lam * eps)
    begun = bounds.sdca_lipschitz_iterations(n, lam, 1.0, eps, R=R, start="sgd")
    assert begun == math.ceil(n * math.log(math.log(math.e * n))) + n + 20 * R * R / (lam * eps)
    assert own < published and begun < published
    with pytest.raises(ValueError, match="start must be 'zero' or 'sgd'; got 'random'"):
        bounds.sdca_lipschitz_bound(n, lam, 1.0, 5 * n, start="random")


@pytest.mark.parametrize(
    ("bound", "arguments", "message"),
    [
        (bounds.freedman_average_bound, (1.0, 0.01, 2, 0.05), "T must be at least 3"),
        (bounds.freedman_average_bound, (1.0, 0.01, 100, 1.0), "delta must be between 0 and 1"),
        (bounds.martingale_bound, (-1.0, 1.0, 100, 0.1), "variance must be at least 0"),
        (bounds.strongly_convex_average_bound, (-1.0, 1.0, 1.0, 1.0, 100, 0.1), "regret must be at least 0"),
        (bounds.strongly_convex_average_bound, (1.0, 1.0, 0.0, 1.0, 100, 0.1), "nu must be positive"),
        (bounds.expected_suffix_bound, (1.0, 0.01, 100, 1.0), "share must be between 0 and 1"),
        (bounds.sdca_smooth_bound, (100, 0.0, 1.0, 100), "lam must be positive"),
        (bounds.sdca_smooth_bound, (100, 0.1, 1.0, -1), "T must be at least 0"),
        (bounds.iterations_for, (0.0, bounds.rate, 0.1), "eps must be positive"),
        (bounds.iterations_for, (0.1, bounds.gradient_constant, 0.1), "has no parameter T"),
    ],
)
def test_a_condition_that_is_not_met_is_named(bound, arguments, message):
    with pytest.raises(ValueError, match=message):
        bound(*arguments)


def _normalised(n, seed):
    random = np.random.default_rng(seed)
    y = random.choice([-1.0, 1.0], n)
    X = random.standard_normal((n, 5)) + 0.7 * y[:, None]
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


@pytest.mark.parametrize("projection", [False, True])
def test_pegasos_stays_within_its_bounds(projection):
    """200 runs on rows of norm one: the mean below the expected bounds, every run below those with probability."""
    X, y = _normalised(300, 0)
    lam, T, options = 0.02, 3000, {"projection": projection}
    problem = make_dataset(X, y, name="").problem(Hinge(), lam=lam)
    optimum = evaluate(problem, [*iterates(problem, SDCA(), [200.0])][-1][1]).certificate.dual

    def excess(w):
        losses = np.maximum(0.0, 1.0 - y * (w @ X.T)).mean(axis=1)
        return losses + 0.5 * lam * (w**2).sum(axis=1) - optimum

    half, whole = pegasos_runs(sampler(X, y), lam, [T // 2, T], 200, seed=1, **options)
    average, suffix = excess(whole.total / T), excess((whole.total - half.total) / (T // 2))
    assert average.mean() < bounds.expected_average_bound(1.0, lam, T, **options)
    assert suffix.mean() < bounds.expected_suffix_bound(1.0, lam, T, 0.5, **options)
    assert average.max() < bounds.freedman_average_bound(1.0, lam, T, 0.05, **options)
    assert (excess(whole.random) > bounds.freedman_average_bound(1.0, lam, T, 0.05, **options) / 0.5).mean() <= 0.55
    if projection:
        assert (np.linalg.norm(whole.last, axis=1) <= 1.0 / math.sqrt(lam) + 1e-12).all()


def test_runs_side_by_side_are_pegasos():
    """One run is the study page's algorithm on the same rows, and the random iterate is one of the iterates."""
    X, y = _normalised(40, 3)
    drawn = []

    def draw(random, count):
        rows = sampler(X, y)(random, count)
        drawn.append(rows)
        return rows

    ends = [*pegasos_runs(draw, 0.1, [1, 100], 1)]
    w, iterates_ = np.zeros(5), []
    rows = [pair for block in drawn[1:] for pair in zip(*block, strict=True)]
    for t, (x, label) in enumerate(rows, start=1):
        iterates_.append(w)
        violated = label * (x @ w) < 1.0
        w = (1.0 - 1.0 / t) * w + violated * label * x / (0.1 * t)
    np.testing.assert_allclose(ends[1].last[0], w, rtol=1e-12)
    np.testing.assert_allclose(ends[1].total[0], np.sum(iterates_, axis=0), rtol=1e-12)
    assert min(np.abs(ends[1].random[0] - one).max() for one in iterates_) < 1e-12


@pytest.mark.parametrize(("loss", "output"), [(SmoothHinge(1.0), "last"), (Hinge(), "average")])
def test_sdca_stays_within_its_bounds(loss, output):
    """The mean gap over 20 runs, with draws as in the theorem; for the average of the second half of the steps."""
    X, y = _normalised(200, 2)
    n, lam = y.size, 0.02
    problem = make_dataset(X, y, name="").problem(loss, lam=lam)
    epochs = [4.0, 8.0, 16.0]
    gaps = np.array(
        [
            [
                evaluate(problem, point).certificate.gap
                for _, point in iterates(problem, SDCA(sampling="replacement", output=output), epochs, seed)
            ]
            for seed in range(20)
        ]
    )
    for epoch, gap in zip(epochs, gaps.mean(axis=0), strict=True):
        if output == "last":
            limit = bounds.sdca_smooth_bound(n, lam, loss.width, epoch * n)
        else:
            limit = bounds.sdca_lipschitz_bound(n, lam, 1.0, epoch * n, T0=0.5 * epoch * n)
        assert 0.0 <= gap < limit


def test_sdca_after_modified_sgd_stays_within_its_bounds():
    """Theorem 8 after the pass, theorem 3 and the hinge's own constants after it; means over 20 runs."""
    X, y = _normalised(200, 2)
    n, lam = y.size, 0.2
    problem = make_dataset(X, y, name="").problem(Hinge(), lam=lam)
    optimum = evaluate(problem, [*iterates(problem, SDCA(), [200.0])][-1][1]).certificate.primal
    epochs = [1.0, 3.0, 9.0]
    found = np.array(
        [
            [
                optimum - evaluate(problem, point).certificate.dual
                for _, point in iterates(problem, SDCA(sampling="replacement", start="sgd"), epochs, seed)
            ]
            for seed in range(20)
        ]
    ).mean(axis=0)
    assert 0.0 < found[0] <= 2.0 * math.log(math.e * n) / (lam * n)
    for epoch, error in zip(epochs[1:], found[1:], strict=True):
        for spread in (None, 1.0):
            limit = bounds.sdca_lipschitz_dual_bound(n, lam, 1.0, (epoch - 1.0) * n, start="sgd", spread=spread)
            assert -1e-9 <= error <= limit
