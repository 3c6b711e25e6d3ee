"""How the work of each solver grows with 1/lambda, 1/eps, n and the batch size.

Work is counted in row visits until the model's objective, in the lambda form, is within eps of the
optimum and stays there. Rows have norm one. The rates that the papers state stand beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any, ClassVar

import numpy as np

from experiments.experiment import Experiment, Step
from experiments.pegasos_bound import gaussian, slope_of
from saddlesvm import DCD, Pegasos
from saddlesvm.lab import (
    Chart,
    Dataset,
    Limits,
    Series,
    TextTable,
    fit,
    hinge_objective,
    iterates,
    label_solver,
    make_dataset,
    parse_solvers,
    run_in_threads,
)
from saddlesvm.losses import Hinge

SOLVERS = (
    "pegasos,pegasos:batch_size=16,sdca:sampling=replacement,sdca:start=sgd,dcd,newton:warm_up=0"
)
# Slopes of the stated rates in 1/lambda, 1/eps and n, by the solver's name.
STATED = {
    "pegasos": ("1", "1", "0"),
    "sdca": ("0 to 1", "0 to 1", "1 to 0"),
    "dcd": ("not stated", "0 in the end", "not stated"),
    "newton": ("not stated", "0", "1"),
}
LAMBDAS = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4)
ACCURACIES = tuple(10.0 ** -np.arange(1.0, 6.5, 0.5))
BATCHES = (1, 4, 16, 64, 256)
# The values of lambda and eps while other quantities vary.
LAM = 1e-3
EPS = 1e-3
SPACING = 1.15  # ratio of successive numbers of row visits with an evaluation
LASTING = 2.0  # length of a run, as a multiple of the visits to the finest accuracy
MOST_VISITS = 3_000_000  # row visits of a run at most
Works = dict[tuple[float, int, str], np.ndarray]


class Rates(Experiment):
    """Work against lambda, eps, n and batch size."""

    name: ClassVar[str] = "rates"
    title: ClassVar[str] = "The rates: work against lambda, eps, n and batch size"

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self.sizes = (500, 2_000) if self.quick else (500, 2_000, 10_000, 50_000)
        self.n = self.sizes[-1] if self.quick else 10_000
        self.lambdas = LAMBDAS[:3] if self.quick else LAMBDAS
        self.lam = self.lambdas[-1] if self.quick else LAM
        self.repeats = 2 if self.quick else 5
        self.most = 100_000 if self.quick else MOST_VISITS
        self.solvers = parse_solvers(SOLVERS)
        self.works: Works = {}
        self.optimum = cache(self._optimum)
        self.sets = {n: make_dataset(*gaussian(n, 5), name="") for n in self.sizes}
        self.report.data = [
            ("data", "two Gaussian classes in 20 dimensions, 10 % label noise, rows of norm one"),
            (
                "criterion",
                "row visits until P(w) - P(w*) <= eps for good, in the lambda form; medians",
            ),
            ("runs", f"{self.repeats} for each solver and setting"),
        ]

    def steps(self) -> Sequence[Step]:
        """Return a step for each setting, then the findings."""
        settings = [(lam, self.n) for lam in self.lambdas]
        settings += [(self.lam, n) for n in self.sizes if (self.lam, n) not in settings]
        steps: list[Step] = []
        for lam, n in settings:
            steps.append((f"lambda = {lam:g}, n = {n:,}", partial(self.measure, lam, n)))
        return [
            *steps,
            ("lambda", self.against_lambda),
            ("eps", self.against_eps),
            ("n", self.against_n),
            ("batch size", self.against_batch),
            ("crossing", self.crossing),
        ]

    def _optimum(self, lam: float, n: int) -> float:
        """Return the least objective, to a relative gap of 1e-9."""
        problem = self.sets[n].problem(Hinge(), lam=lam)
        return float(fit(problem, DCD(), Limits(tol=1e-9, max_epochs=20_000.0)).certificate.primal)

    def measure(self, lam: float, n: int) -> None:
        """Measure the median work of each solver for each accuracy."""
        self.optimum(lam, n)  # before the threads, which would all compute it
        runs = [(solver, seed) for solver in self.solvers for seed in range(self.repeats)]
        found = np.array(run_in_threads(lambda run: self._work(run[0], lam, n, run[1]), runs))
        medians = np.median(found.reshape(len(self.solvers), self.repeats, -1), axis=1)
        for solver, median in zip(self.solvers, medians, strict=True):
            self.works[lam, n, label_solver(solver)] = median

    def _work(self, solver: Any, lam: float, n: int, seed: int) -> np.ndarray:
        """Return the row visits after which the objective stays within each accuracy."""
        # A dual solver's objective may pass through a small value by chance early in its first
        # epoch, and rise again. A run goes on until it has stayed within the finest accuracy for as
        # many visits as it took to get there.
        data: Dataset = self.sets[n]
        problem = data.problem(Hinge(), lam=lam)
        optimum = self.optimum(lam, n)
        start = max(1.0, float(getattr(solver, "batch_size", 1)))
        marks = start * SPACING ** np.arange(1.0 + np.log(self.most / start) / np.log(SPACING))
        since = np.full(len(ACCURACIES), np.inf)
        wanted = np.array(ACCURACIES)
        for state, point in iterates(problem, solver, list(np.unique(marks.round()) / n), seed):
            inside = hinge_objective(data, lam, point.w) - optimum <= wanted
            since = np.where(inside, np.minimum(since, state.rows_touched), np.inf)
            if state.rows_touched >= LASTING * since[-1]:
                break
        return since

    def _work_at(self, lam: float, n: int, solver: Any, eps: float) -> float:
        """Return the work of a solver to one accuracy."""
        place = int(np.argmin(np.abs(np.array(ACCURACIES) - eps)))
        return float(self.works[lam, n, label_solver(solver)][place])

    def _add_section(
        self, title: str, axis: str, x: np.ndarray, which: int, found: list[np.ndarray]
    ) -> None:
        """Add a section with a line for each solver, and the fitted and the stated slopes."""
        series = []
        rows = []
        for style, (solver, y) in enumerate(zip(self.solvers, found, strict=True)):
            shown = np.isfinite(y)
            series.append(Series(label_solver(solver), x[shown], y[shown], style=style))
            slope, error = slope_of(x[shown], y[shown])
            fitted = "too few points"
            if np.isfinite(slope) and shown.sum() > 2:
                fitted = f"{slope:.2f} +- {error:.2f}"
            ends = []
            for value in (y[0], y[-1]):
                ends.append(f"{value:,.0f}" if np.isfinite(value) else f"over {self.most:,}")
            rows.append([label_solver(solver), *ends, fitted, STATED[solver.name][which]])
        ends = [f"visits at {axis} = {value:,.0f}" for value in (x[0], x[-1])]
        table = TextTable(
            ["solver", *ends, "fitted slope", "stated slope"], rows, "Slopes in log-log."
        )
        chart = Chart(
            title,
            axis,
            "row visits",
            tuple(series),
            x_log=True,
            y_log=True,
            caption="Medians over the runs.",
        )
        self.report.section(title, chart, table)

    def against_lambda(self) -> None:
        """Show the work against 1/lambda."""
        x = 1.0 / np.array(self.lambdas)
        found = [
            np.array([self._work_at(lam, self.n, solver, EPS) for lam in self.lambdas])
            for solver in self.solvers
        ]
        self._add_section(
            f"Work against 1/lambda, n = {self.n:,}, eps = {EPS:g}", "1/lambda", x, 0, found
        )

    def against_eps(self) -> None:
        """Show the work against 1/eps."""
        x = 1.0 / np.array(ACCURACIES)
        found = [self.works[self.lam, self.n, label_solver(solver)] for solver in self.solvers]
        self._add_section(
            f"Work against 1/eps, n = {self.n:,}, lambda = {self.lam:g}", "1/eps", x, 1, found
        )

    def against_n(self) -> None:
        """Show the work against the number of rows."""
        found = [
            np.array([self._work_at(self.lam, n, solver, EPS) for n in self.sizes])
            for solver in self.solvers
        ]
        title = f"Work against n, lambda = {self.lam:g}, eps = {EPS:g}"
        self._add_section(title, "n", np.array(self.sizes, dtype=float), 2, found)

    def against_batch(self) -> None:
        """Show iterations and row visits of Pegasos against the batch size."""
        place = int(np.argmin(np.abs(np.array(ACCURACIES) - EPS)))
        visits = []
        for size in BATCHES:
            runs = [
                self._work(Pegasos(batch_size=size), self.lam, self.n, seed)[place]
                for seed in range(self.repeats)
            ]
            visits.append(float(np.median(runs)))
        sizes = np.array(BATCHES, dtype=float)
        rows = np.array(visits)
        iterations = rows / sizes
        series = (
            Series("iterations", sizes, iterations, style=0),
            Series("row visits", sizes, rows, style=1),
        )
        title = f"Pegasos against the batch size, lambda = {self.lam:g}, eps = {EPS:g}"
        slope, _ = slope_of(sizes, iterations)
        caption = "The theorem states as many iterations whatever the batch size: slope 0."
        chart = Chart(
            title, "rows an iteration", "work", series, x_log=True, y_log=True, caption=caption
        )
        cells = [
            [str(size), f"{i:,.0f}", f"{r:,.0f}"]
            for size, i, r in zip(BATCHES, iterations, rows, strict=True)
        ]
        table = TextTable(
            ["batch size", "iterations", "row visits"],
            cells,
            f"Slope of the iterations: {slope:.2f}.",
        )
        self.report.section(title, chart, table)
        self.say(
            f"{BATCHES[-1]} rows an iteration instead of one: "
            f"{iterations[0] / iterations[-1]:.0f} times fewer "
            f"iterations (the theorem promises none fewer), {rows[-1] / rows[0]:.1f} times as "
            f"many row visits."
        )

    def crossing(self) -> None:
        """Show the accuracy at which SDCA overtakes Pegasos, against 1 / (lambda n)."""
        pegasos = label_solver(self.solvers[0])
        sdca = label_solver(self.solvers[2])
        rows = []
        points = []
        for lam, n in sorted({(lam, n) for lam, n, _ in self.works}):
            eps = crossing_of(self.works[lam, n, pegasos], self.works[lam, n, sdca])
            said = f"{eps:.2g}" if isinstance(eps, float) else eps
            rows.append([f"{lam:g}", f"{n:,}", f"{1.0 / (lam * n):.2g}", said])
            if isinstance(eps, float):
                points.append((1.0 / (lam * n), eps))
        columns = ["lambda", "n", "1 / (lambda n)", "SDCA needs fewer visits from eps ="]
        table = TextTable(columns, rows, "Where the two curves of work against eps cross.")
        section = self.report.section("Where SDCA overtakes Pegasos", table)
        if len(points) > 1:
            x, y = np.array(sorted(points)).T
            series = (
                Series("measured", x, y, dash="none"),
                Series("1 / (lambda n)", x, x, style=7, dash="dot"),
            )
            axis = "eps from which on SDCA needs fewer visits"
            section.items.append(
                Chart("The crossing point", "1 / (lambda n)", axis, series, x_log=True, y_log=True)
            )
            ratios = y / x
            self.say(
                f"SDCA overtakes Pegasos at an eps of {ratios.min():.2g} to {ratios.max():.2g} "
                f"times 1 / (lambda n), "
                f"in the {len(points)} of {len(rows)} settings in which the two cross."
            )


def crossing_of(first: np.ndarray, second: np.ndarray) -> float | str:
    """Return the accuracy from which on the second solver needs less work than the first.

    Parameters
    ----------
    first, second : ndarray of shape (len(ACCURACIES),)
        Work for each of :data:`ACCURACIES`, infinite if it was not reached.

    Returns
    -------
    float or str
        Interpolated in log-log between two accuracies; words if one solver is always ahead, or the
        end is not known.
    """
    ahead = second < first
    if ahead.all():
        return "all that were tried"
    if not ahead[-1]:
        return "none that was tried"
    # The curves cross after the last accuracy at which the first is ahead.
    last = int(np.flatnonzero(~ahead)[-1])
    before = np.log(first[last : last + 2])
    after = np.log(second[last : last + 2])
    low = np.log(ACCURACIES[last])
    high = np.log(ACCURACIES[last + 1])
    apart = after - before
    # An infinite work has no place on the line between the two points: take the middle.
    if not np.isfinite(apart).all():
        return float(np.exp(0.5 * (low + high)))
    return float(np.exp(low + (high - low) * apart[0] / (apart[0] - apart[1])))
