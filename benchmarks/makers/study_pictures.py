"""The pictures of the study pages: each algorithm's rate beside its theorem, on small data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.makers.many_runs import pegasos_runs, sampler
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits
from saddlesvm.kernel.decomposition import Decomposition
from saddlesvm.kernel.kernel_pegasos import KernelPegasos
from saddlesvm.kernel.kernel_problem import KernelProblem
from saddlesvm.kernel.mercer import Kernel
from saddlesvm.lab import bounds
from saddlesvm.lab.charts import Chart, Series, save
from saddlesvm.lab.dataset import make_dataset
from saddlesvm.lab.runs import iterates
from saddlesvm.problem.certificate import evaluate
from saddlesvm.problem.crammer_singer import make_joint_problem
from saddlesvm.problem.intercepts import Absent
from saddlesvm.problem.losses import Hinge, SmoothHinge, SquaredHinge
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers import DCD, SDCA, Newton
from saddlesvm.solvers.base import Budget
from saddlesvm.solvers.crammer_singer import CrammerSinger

LAM = 0.02
ROWS = 400
DELTA = 0.05


def two_classes(n: int = ROWS, d: int = 5, distance: float = 0.7) -> tuple[np.ndarray, np.ndarray]:
    """Two classes on the unit sphere."""
    random = np.random.default_rng(0)
    y = random.choice([-1.0, 1.0], n)
    X = random.standard_normal((n, d)) + distance * y[:, None]
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


def pegasos() -> Chart:
    """Excess error of the average and of the last iterate, and the bounds."""
    X, y = two_classes()
    marks = np.unique(np.geomspace(10, 30_000, 25).round()).astype(int)
    problem = make_dataset(X, y, name="").problem(Hinge(), lam=LAM)
    optimum = fit(problem, DCD(), Limits(tol=1e-9)).certificate.dual

    def excess(w: np.ndarray) -> np.ndarray:
        losses = np.maximum(0.0, 1.0 - y * (w @ X.T)).mean(axis=1)
        return losses + 0.5 * LAM * (w**2).sum(axis=1) - optimum

    average = []
    last = []
    for seen in pegasos_runs(sampler(X, y), LAM, marks, 200):
        average.append(excess(seen.total / seen.T))
        last.append(excess(seen.last))
    means = np.array(average)
    ends = np.array(last)
    series = [
        Series("average iterate, mean", marks, means.mean(axis=1), means.min(axis=1), means.max(axis=1), style=0),
        Series("last iterate, mean", marks, ends.mean(axis=1), style=1),
    ]
    stated: list[tuple[str, Callable[[float], float]]] = [
        ("expected, theorem 1", lambda T: bounds.expected_average_bound(1.0, LAM, T)),
        ("Freedman, 95 %", lambda T: bounds.freedman_average_bound(1.0, LAM, T, DELTA)),
        ("theorem 2, 95 %", lambda T: bounds.average_iterate_bound(1.0, LAM, T, DELTA)),
    ]
    for style, (name, bound) in enumerate(stated, start=2):
        series.append(Series(name, marks, np.array([bound(T) for T in marks]), style=style, dash="dash"))
    return Chart("Pegasos: 200 runs and three bounds", "iterations", "f(w) - f(w*)", tuple(series), True, True)


def kernel_pegasos() -> Chart:
    """Excess error of the last iterate in the space of a Gaussian kernel."""
    X, y = two_classes()
    K = np.exp(-2.0 * ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2))
    given = (np.empty(0), Hinge(), 1.0 / (LAM * ROWS), ROWS, Absent())
    problem = KernelProblem(K, Kernel("precomputed"), y, *given, uses_lambda=True)
    solver = KernelPegasos()
    marks = np.unique(np.geomspace(10, 20_000, 20).round()).astype(int)
    found = []
    best = fit(problem, Decomposition(), Limits(tol=1e-8)).certificate.dual
    for seed in range(50):
        state = solver.init(problem, seed)
        values = []
        for mark in marks:
            state = solver.step(problem, state, Budget(int(mark) - state.rows_touched))
            beta = state.alpha / (LAM * state.steps)
            values.append(np.maximum(0.0, 1.0 - y * (K @ beta)).mean() + 0.5 * LAM * beta @ K @ beta)
        found.append(values)
    above = np.array(found) - best
    more = (1.0 + np.log(marks)) / marks  # for rows that figure 3 counts as violated and are not
    stated = more + np.array([bounds.expected_average_bound(1.0, LAM, T) for T in marks])
    series = (
        Series("last iterate, mean", marks, above.mean(axis=0), above.min(axis=0), above.max(axis=0)),
        Series("theorem 1 (of the average)", marks, stated, style=2, dash="dash"),
    )
    title = "Kernel Pegasos: 50 runs and the bound"
    return Chart(title, "iterations", "f(w) - f(w*)", series, True, True)


def sdca() -> Chart:
    """Gaps of the smooth hinge and of the averaged hinge."""
    X, y = two_classes()
    epochs = np.arange(1, 41)
    series = []
    for style, (words, loss, output) in enumerate(
        [("smooth hinge, last iterate", SmoothHinge(1.0), "last"), ("hinge, average", Hinge(), "average")]
    ):
        problem = make_dataset(X, y, name="").problem(loss, lam=LAM)
        # An average is over the second half of a run, so each length has runs of its own.
        runs: list[tuple[SDCA, list[int]]] = [(SDCA(sampling="replacement"), list(epochs))]
        if output == "average":
            runs = [(SDCA(sampling="replacement", output="average", iterations=int(T) * ROWS), [T]) for T in epochs]
        gaps = np.array(
            [
                [
                    evaluate(problem, point).certificate.gap
                    for solver, marks in runs
                    for _, point in iterates(problem, solver, marks, seed)
                ]
                for seed in range(20)
            ]
        )
        series.append(Series(words, epochs, gaps.mean(axis=0), gaps.min(axis=0), gaps.max(axis=0), style=style))
        steps = epochs * ROWS
        if output == "last":
            stated = [bounds.sdca_smooth_bound(ROWS, LAM, 1.0, T) for T in steps]
        else:
            stated = [bounds.sdca_lipschitz_bound(ROWS, LAM, 1.0, T, T0=T / 2, spread=1.0) for T in steps]
        shown = np.isfinite(stated)
        series.append(Series(f"bound: {words}", epochs[shown], np.array(stated)[shown], style=style, dash="dash"))
    return Chart("SDCA: 20 runs and the theorems", "epochs", "duality gap, mean", tuple(series), False, True)


def dcd() -> Chart:
    """Distance from the optimum, range of the slopes, and active rows."""
    random = np.random.default_rng(0)
    y = random.choice([-1.0, 1.0], 500)
    X = random.standard_normal((500, 10)) + 0.5 * y[:, None]
    problem = make_dataset(X, y, name="").problem(Hinge(), C=1.0)
    best = fit(problem, DCD(), Limits(tol=1e-13, max_epochs=3000.0)).certificate.primal
    series = []
    for style, shrinking in enumerate((False, True)):
        solver = DCD(stopping="projected_gradient", threshold=1e-9, shrinking=shrinking, run_length=1)
        state = solver.init(problem, 0)
        passes = []
        distance = []
        active = []
        while not state.satisfied and state.epochs < 400.0:
            state = solver.step(problem, state, Budget(max(1, state.active)))
            passes.append(state.rows_touched / 500)
            distance.append((best - evaluate(problem, solver.solution(problem, state)).certificate.dual) / best)
            active.append(state.active / 500)
        words = "with shrinking" if shrinking else "without shrinking"
        kept = np.array(distance) > 1e-13
        series.append(Series(f"distance {words}", np.array(passes)[kept], np.array(distance)[kept], style=style))
        if shrinking:
            series.append(
                Series("share of rows that are active", np.array(passes), np.array(active), style=2, dash="dot")
            )
    title = "Dual coordinate descent: linear in the end"
    return Chart(title, "visits / rows", "relative distance of the dual", tuple(series), False, True)


def newton() -> Chart:
    """Relative gap against epochs, until rounding is all that is left."""
    random = np.random.default_rng(0)
    y = random.choice([-1.0, 1.0], 1000)
    X = random.standard_normal((1000, 10)) + 0.4 * y[:, None]
    data = make_dataset(X, y, name="")
    epochs = np.arange(1.0, 81.0)
    series = []
    for style, C in enumerate((0.01, 1.0, 100.0)):
        for loss, words, dash in ((Hinge(), "hinge", "solid"), (SquaredHinge(), "squared hinge", "dash")):
            problem = data.problem(loss, C=C)
            points = iterates(problem, Newton(warm_up=0), list(epochs))
            gaps = np.array([evaluate(problem, one).certificate.relative_gap for _, one in points])
            shown = slice(0, int(gaps.argmin()) + 1)
            series.append(Series(f"{words}, C = {C:g}", epochs[shown], gaps[shown], style=style, dash=dash))
    return Chart("Newton's method, from zero", "epochs", "relative gap", tuple(series), False, True)


def crammer_singer() -> Chart:
    """Relative gap against passes on five classes."""
    random = np.random.default_rng(0)
    y = random.integers(0, 5, 500)
    X = random.standard_normal((500, 8)) + 1.2 * np.eye(5, 8)[y]
    problem = make_joint_problem(as_rows(X), y, 5, Hinge(), C=1.0)
    series = []
    for style, shrinking in enumerate((False, True)):
        passes = list(np.arange(1.0, 201.0))
        points = iterates(problem, CrammerSinger(shrinking=shrinking), passes)
        seen = [(state.epochs, evaluate(problem, one).certificate.relative_gap) for state, one in points]
        x, gaps = np.array(seen).T
        shown = gaps > 1e-13
        words = "with shrinking" if shrinking else "without shrinking"
        series.append(Series(words, x[shown], gaps[shown], style=style))
    title = "Crammer and Singer's machine, five classes"
    return Chart(title, "scores computed / (rows x classes)", "relative gap", tuple(series), False, True)


def draw_all(folder: Path) -> None:
    """Draw them as PNG."""
    folder.mkdir(exist_ok=True)
    for make in (pegasos, kernel_pegasos, sdca, dcd, newton, crammer_singer):
        ax = make().draw()
        save(ax, str(folder / f"{make.__name__.replace('_', '-')}.png"))
