"""Pegasos' generalisation error against iterations for several data sizes, and its bounds beside what it reaches.

Published: Gaussian, nearly separable data with 10 % of the labels turned around; the error after T iterations does not
depend on how many rows there are, and the bounds hold with room to spare.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from saddlesvm.fit.limits import Limits
from saddlesvm.fit.loop import fit
from saddlesvm.lab import bounds
from saddlesvm.lab.charts import Chart, Series
from saddlesvm.lab.curves import summarised
from saddlesvm.lab.dataset import Dataset, make_dataset
from saddlesvm.lab.experiments.base import Experiment, Step, percent
from saddlesvm.lab.machine import in_threads
from saddlesvm.lab.report import Prose, Table
from saddlesvm.lab.runs import hinge_objective, iterates
from saddlesvm.problem.losses import Hinge
from saddlesvm.solvers import DCD, Pegasos

FEATURES = 20
DISTANCE = 2.5  # of each class mean from the border, in standard deviations
NOISE = 0.1
LAM = 1e-2
DELTA = 0.05
TEST_ROWS = 50_000
OUTPUTS = ("last", "average", "random")
WORDS = {"last": "last iterate", "average": "average iterate", "random": "random iterate"}


def gaussian(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two Gaussian classes on both sides of a border, 10 % of the labels turned around.

    Parameters
    ----------
    n : int
    seed : int

    Returns
    -------
    X : ndarray of shape (n, FEATURES)
    y : ndarray of shape (n,), -1 and +1
    """
    random = np.random.default_rng(seed)
    y = random.choice([-1.0, 1.0], n)
    X = random.standard_normal((n, FEATURES))
    X[:, 0] += DISTANCE * y
    y[random.random(n) < NOISE] *= -1.0
    return X, y


class PegasosBound(Experiment):
    """The bounds of Pegasos, and what it does."""

    name: ClassVar[str] = "pegasos-bound"
    title: ClassVar[str] = "Pegasos: generalisation against iterations, and its bounds"

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        sizes = (500, 2_000) if self.quick else (500, 2_000, 10_000, 50_000, 200_000)
        self.sizes = sizes
        self.most = 3_000 if self.quick else 300_000
        self.iterations = np.unique(np.geomspace(10, self.most, 40).round()).astype(int)
        self.repeats = 2 if self.quick else 10
        self.test = gaussian(TEST_ROWS, 1)
        self.sets = {n: make_dataset(*gaussian(n, 2), name="Gaussian, 10 % label noise") for n in sizes}
        self.errors: dict[tuple[int, str], list[np.ndarray]] = {}
        self.report.data = [
            ("data", f"Gaussian, {FEATURES} features, class means {DISTANCE:g} from the border, 10 % label noise"),
            ("rows", ", ".join(f"{n:,}" for n in sizes)),
            ("test rows", f"{TEST_ROWS:,}"),
            ("lambda", f"{LAM:g}"),
        ]

    def steps(self) -> Sequence[Step]:
        """A step for each size, then the bounds."""
        sizes = [(f"{n:,} rows", lambda n=n: self.walk(n)) for n in self.sizes]
        return (*sizes, ("generalisation", self.generalisation), ("bounds", self.against_bounds))

    def walk(self, n: int) -> None:
        """Test errors of the three outputs along the iterations."""
        problem = self.sets[n].problem(Hinge(), lam=LAM)
        epochs = list(self.iterations / n)
        X, y = self.test

        def errors(run: tuple[str, int]) -> np.ndarray:
            solver = Pegasos(sampling="replacement", output=run[0])
            return _errors(X, y, [point.w for _, point in iterates(problem, solver, epochs, run[1])])

        runs = [(output, seed) for output in OUTPUTS for seed in range(self.repeats)]
        for (output, _), found in zip(runs, in_threads(errors, runs), strict=True):
            self.errors.setdefault((n, output), []).append(found)

    def generalisation(self) -> None:
        """Generalisation error against iterations, one chart an output, one line a size."""
        section = self.report.section("Generalisation error against iterations")
        best = percent(least_error())
        section.items.append(Prose(f"No classifier can have less than {best} % error on these data."))
        for output in OUTPUTS:
            section.items.append(self._chart(output))
        section.items.append(self._table())
        spread = {T: self._spread(T) for T in (self.iterations[len(self.iterations) // 2], self.iterations[-1])}
        for T, (low, high) in spread.items():
            self.say(
                f"After {T:,} iterations the average iterate errs on {percent(low)} to {percent(high)} % of new data, "
                f"for {self.sizes[0]:,} to {self.sizes[-1]:,} training rows (the least possible is {best} %)."
            )

    def _spread(self, T: int) -> tuple[float, float]:
        place = int(np.searchsorted(self.iterations, T))
        medians = [float(np.median([run[place] for run in self.errors[n, "average"]])) for n in self.sizes]
        return min(medians), max(medians)

    def _chart(self, output: str) -> Chart:
        series = tuple(
            summarised(f"{n:,} rows", [(self.iterations, run) for run in self.errors[n, output]], style)
            for style, n in enumerate(self.sizes)
        )
        caption = "Median over the runs, and their range."
        title, levels = f"Test error of the {WORDS[output]}", {least_error(): "least possible"}
        return Chart(title, "iterations", "error on new data", series, x_log=True, levels=levels, caption=caption)

    def _table(self) -> Table:
        places = np.unique(np.linspace(0, len(self.iterations) - 1, 5).round().astype(int))
        rows = []
        for output in OUTPUTS:
            for n in self.sizes:
                middle = np.median(self.errors[n, output], axis=0)
                rows.append([WORDS[output], f"{n:,}", *(percent(middle[place]) for place in places)])
        columns = ["output", "rows", *(f"{self.iterations[place]:,} iterations" for place in places)]
        return Table(columns, rows, "Test error (%), median over the runs.")

    def against_bounds(self) -> None:
        """Suboptimality of the three outputs beside the bounds."""
        n = self.sizes[min(2, len(self.sizes) - 1)]
        data = self.sets[n]
        problem = data.problem(Hinge(), lam=LAM)
        optimum = fit(problem, DCD(), Limits(tol=1e-6, max_time=10.0)).certificate.dual
        R = float(np.sqrt(problem.norms.max()))
        series = [self._suboptimality(data, output, optimum, style) for style, output in enumerate(OUTPUTS)]
        T = self.iterations.astype(float)
        drawn = {
            "bound, average iterate": (bounds.average_iterate_bound, "dash"),
            "bound, random iterate (probability 1/2)": (bounds.random_iterate_bound, "dashdot"),
        }
        for name, (bound, dash) in drawn.items():
            y = np.array([bound(R, LAM, float(t), DELTA) for t in T])
            series.append(Series(name, T, y, style=4, dash=dash))
        series.append(Series("ln T / (lambda T)", T, np.array([bounds.rate(LAM, t) for t in T]), style=7, dash="dot"))
        caption = f"{n:,} rows, lambda = {LAM:g}, the largest row norm R = {R:.2f}, delta = {DELTA:g}."
        title = "Suboptimality and its bounds"
        chart = Chart(title, "iterations", "f(w) - f(w*)", tuple(series), True, True, caption=caption)
        self.report.section("The bounds", chart, self._bound_table(R))
        last, reached = float(T[-1]), float(series[1].y[-1])
        most = bounds.average_iterate_bound(R, LAM, last, DELTA)
        self.say(
            f"After {last:,.0f} iterations the average iterate is {reached:.2g} above the optimum; the bound says at "
            f"most {most:.2g}: {most / reached:,.0f} times as much. "
            f"ln T/(lambda T) alone is {bounds.rate(LAM, last):.2g}."
        )

    def _suboptimality(self, data: Dataset, output: str, optimum: float, style: int) -> Series:
        problem = data.problem(Hinge(), lam=LAM)
        solver = Pegasos(sampling="replacement", output=output)
        epochs = list(self.iterations / problem.n)

        def above(seed: int) -> tuple[np.ndarray, np.ndarray]:
            values = [hinge_objective(data, LAM, point.w) for _, point in iterates(problem, solver, epochs, seed)]
            return self.iterations, np.array(values) - optimum

        return summarised(WORDS[output], in_threads(above, range(self.repeats)), style, logarithmic=True)

    def _bound_table(self, R: float) -> Table:
        rows = []
        for T in (1e3, 1e5, 1e7, 1e9):
            numbers = [
                bounds.rate(LAM, T),
                bounds.deterministic_regret_bound(R, LAM, T),
                bounds.average_iterate_bound(R, LAM, T, DELTA),
                bounds.random_iterate_bound(R, LAM, T, DELTA),
                bounds.average_iterate_bound(R, LAM, T, DELTA, projection=True),
            ]
            rows.append([f"{T:,.0f}", *(f"{number:.3g}" for number in numbers)])
        columns = [
            "T",
            "ln T/(lambda T)",
            "theorem 1, regret",
            "average iterate",
            "random iterate",
            "average, with projection",
        ]
        return Table(columns, rows, f"The bounds for R = {R:.2f}, lambda = {LAM:g}, delta = {DELTA:g}.")


def _errors(X: np.ndarray, y: np.ndarray, weights: list[np.ndarray | None]) -> np.ndarray:
    """Test error of each of the models, whose weights have a place for the virtual feature."""
    found = np.array(weights, dtype=np.float64)[:, :-1]
    return np.array(((X @ found.T > 0.0) != (y > 0.0)[:, None]).mean(axis=0))


def least_error() -> float:
    """The error of the best classifier that there can be on these data."""
    from scipy.stats import norm

    return float(NOISE + (1.0 - 2.0 * NOISE) * norm.sf(DISTANCE))
