"""Stochastic dual coordinate ascent with a kernel: the paper's loop, the optimum of every machine, its options."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.metrics.pairwise import rbf_kernel

from saddlesvm import SVR, KernelDecomposition, KernelSDCA, KernelSVC, NuSVC, NuSVR, OneClassSVM
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits, Outcome
from saddlesvm.lab.study import Draws
from saddlesvm.multiclass.kernel_fit import make_kernel_solver
from saddlesvm.problem.kernel import KernelProblem, make_kernel_problem
from saddlesvm.problem.losses import Hinge, SmoothHinge, SquaredHinge
from saddlesvm.rows.kernels import Kernel
from saddlesvm.solvers.base import Budget

LOSSES = [Hinge(), SquaredHinge(), SmoothHinge(0.5)]


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    X, y = make_classification(150, 6, n_informative=4, flip_y=0.1, class_sep=0.8, random_state=4)
    return X, np.where(y == 1, 1.0, -1.0)


def problem_of(X, y, loss=Hinge(), intercept="none", **options) -> KernelProblem:  # noqa: B008
    return make_kernel_problem(X, Kernel("rbf", 0.1), y, loss, intercept=intercept, C=1.0, **options)[0]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("sampling", ["permutation", "replacement"])
def test_it_is_the_papers_loop(data, loss, sampling):
    X, y = data
    n, K = len(y), rbf_kernel(X, gamma=0.1)
    problem, solver = problem_of(X, y, loss), KernelSDCA(sampling=sampling)
    state = solver.step(problem, solver.init(problem, 5), Budget(3 * n))
    draws, order, alpha = Draws(5), np.arange(n), np.zeros(n)
    for _ in range(3):
        if sampling == "permutation":
            draws.shuffle(order)
        for i in order if sampling == "permutation" else [draws.below(n) for _ in range(n)]:
            alpha[i] += loss.dual_step(alpha[i], float(K[i] @ alpha), y[i], K[i, i], 1.0)
    assert state.rows_touched == 3 * n
    np.testing.assert_allclose(state.beta, alpha, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("cache_size", [200.0, 0.01])
@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge()], ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("intercept", ["none", "regularized", "free"])
def test_the_optimum_is_that_of_decomposition(data, loss, intercept, cache_size):
    problem = problem_of(*data, loss, intercept, cache_size=cache_size, weights=np.linspace(0.2, 2.0, 150))
    best = fit(problem, KernelDecomposition(), Limits(tol=1e-8)).certificate
    result = fit(problem, KernelSDCA(), Limits(tol=1e-3, max_epochs=20_000.0))
    assert result.outcome is Outcome.CERTIFIED
    assert result.certificate.dual <= best.primal * (1 + 1e-12) and result.certificate.primal >= best.dual * (1 - 1e-12)


def test_kernel_values_are_counted_and_a_visit_that_moves_nothing_costs_none():
    X, y = make_classification(800, 6, n_informative=4, class_sep=2.0, flip_y=0.01, random_state=0)
    problem = problem_of(X, np.where(y == 1, 1.0, -1.0))
    solver = KernelSDCA()
    state = solver.step(problem, solver.init(problem, 0), Budget(5 * 800))
    once = state.kernel_evaluations
    assert once == 800 * state.cache.computed == 800 * np.count_nonzero(state.cache.slot >= 0)  # each row once
    assert np.count_nonzero(state.beta) <= state.cache.computed < 800  # rows that never move are never computed
    tight = problem_of(X, problem.y, cache_size=800 * 40 * 4 / 2**20)
    state = solver.step(tight, solver.init(tight, 0), Budget(5 * 800))
    assert once < state.kernel_evaluations < 5 * 800 * 800


@pytest.mark.parametrize(
    "model",
    [SVR(epsilon=0.3), NuSVR(nu=0.4), OneClassSVM(nu=0.3), NuSVC(nu=0.3)],
    ids=lambda model: type(model).__name__,
)
def test_every_machine_takes_it(data, model):
    X, y = data
    targets = y if isinstance(model, NuSVC) else X @ np.arange(6.0) / 10.0
    model.set_params(solver="kernel-sdca", tol=1e-2).fit(X, targets)
    assert model.outcome_ is Outcome.CERTIFIED


def test_its_options():
    with pytest.raises(ValueError, match="no option 'working_set'"):
        make_kernel_solver("kernel-sdca:block=16,working_set=64")
    assert make_kernel_solver("kernel-sdca:block=16") == KernelSDCA(16)
    assert pickle.loads(pickle.dumps(KernelSDCA(7))) == KernelSDCA(7)
    with pytest.raises(ValueError, match="sampling"):
        KernelSDCA(sampling="cyclic")
    with pytest.raises(ValueError, match="block must be at least 1"):
        KernelSDCA(block=0)


def test_a_saved_model_knows_its_solver_again(data, tmp_path):
    from saddlesvm.estimators.persistence import load, save

    model = KernelSVC(solver=KernelSDCA(block=32), tol=1e-2, random_state=0).fit(*data)
    save(model, tmp_path / "kernel.model")
    assert load(tmp_path / "kernel.model").solver == KernelSDCA(block=32)
