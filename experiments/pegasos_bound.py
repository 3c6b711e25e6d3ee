"""Pegasos: excess error and bounds over a thousand runs, and the error for several data sizes.

Published: the test error of the last iterate after T iterations does not depend on how many rows
there are; the bounds hold; a hundred iterations are enough, by test error. The population here is
finite, so that its risk and its optimum are known: every iteration draws a fresh row of it, and
excess error is the distance of the population's objective from its optimum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.stats import linregress, norm

from experiments.experiment import Experiment, Step, percent
from saddlesvm import DCD, Pegasos
from saddlesvm.lab import (
    Chart,
    Dataset,
    Limits,
    Problem,
    Prose,
    Series,
    TextTable,
    bounds,
    fit,
    iterates,
    make_dataset,
    run_in_threads,
)
from saddlesvm.losses import Hinge

FEATURES = 20
DISTANCE = 2.5  # standard deviations between each class mean and the border
NOISE = 0.1
LAMBDAS = (0.1, 0.01, 0.001)
DELTA = 0.05  # probability that a bound fails
MISS = 0.5  # and, for a random iterate, that the bound fails over the draw of the iterate
OUTPUTS = ("average", "last", "random")
WORDS = {"last": "last iterate", "average": "average iterate", "random": "random iterate"}
HUNDRED = 100  # iterations that were claimed to be enough
WANTED = 0.01  # excess error that counts as enough
NEAR = 0.005  # test error above the least possible one that counts as enough
JUDGED_AT_ONCE = 100  # models per pass over the rows
TEST_ROWS = 50_000
COLUMNS = 5  # of the table of sizes, each for a number of iterations


def gaussian(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw two Gaussian classes beside a border, with 10 % wrong labels and rows of norm one.

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
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


def bounds_at(lam: float) -> dict[str, tuple[str, Callable[[float], float]]]:
    """Return the bounds for rows of norm one: name, the output that is bounded, and value at T."""
    return {
        "theorem 1, in expectation": (
            "average",
            lambda T: bounds.expected_average_bound(1.0, lam, T),
        ),
        "Freedman": ("average", lambda T: bounds.freedman_average_bound(1.0, lam, T, DELTA)),
        "Kakade and Tewari": (
            "average",
            lambda T: bounds.kakade_tewari_average_bound(1.0, lam, T, DELTA),
        ),
        "theorem 2": ("average", lambda T: bounds.average_iterate_bound(1.0, lam, T, DELTA)),
        "Freedman, random iterate": (
            "random",
            lambda T: bounds.freedman_average_bound(1.0, lam, T, DELTA) / MISS,
        ),
        "theorem 2, random iterate": (
            "random",
            lambda T: bounds.random_iterate_bound(1.0, lam, T, DELTA),
        ),
    }


class PegasosBound(Experiment):
    """The bounds of Pegasos beside its measured errors."""

    name: ClassVar[str] = "pegasos-bound"
    title: ClassVar[str] = "Pegasos: excess error, its bounds, and how many rows it needs"

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self.runs = 40 if self.quick else 1000
        # The numbers of iterations at which the errors are measured.
        last = 1_000 if self.quick else 30_000
        marks = np.geomspace(10, last, 8 if self.quick else 14).round()
        self.marks = np.unique(np.append(marks, HUNDRED)).astype(int)
        rows = 1_000 if self.quick else 10_000
        self.population = make_dataset(*gaussian(rows, 1), name="the population")
        self.test = gaussian(TEST_ROWS, 3)
        self.sizes = (200, 1_000) if self.quick else (200, 1_000, 10_000, 100_000)
        self.size_runs = 4 if self.quick else 40
        self.excess: dict[tuple[float, str], np.ndarray] = {}
        self.errors: dict[int, np.ndarray] = {}
        # Test errors after a hundred iterations.
        self.hundred: dict[tuple[float, str], np.ndarray] = {}
        self.report.data = [
            (
                "population",
                f"{self.population.y.size:,} rows of norm one, {FEATURES} features, 10 % label "
                f"noise",
            ),
            (
                "runs",
                f"{self.runs:,} for each lambda and output, one fresh row an iteration, no "
                f"projection",
            ),
            ("lambda", ", ".join(f"{lam:g}" for lam in LAMBDAS)),
            ("data sizes", ", ".join(f"{n:,}" for n in self.sizes)),
        ]

    def steps(self) -> Sequence[Step]:
        """Return a step for each lambda and each size, then the findings."""
        steps: list[Step] = []
        for lam in LAMBDAS:
            steps.append((f"lambda = {lam:g}", partial(self.measure, lam)))
        for n in self.sizes:
            steps.append((f"{n:,} rows", partial(self.measure_size, n)))
        return [
            *steps,
            ("excess error", self.rates),
            ("coverage", self.coverage),
            ("enough", self.enough),
            ("sizes", self.generalisation),
        ]

    def measure(self, lam: float) -> None:
        """Measure the excess errors of all runs at all marks, for each output."""
        problem = self.population.problem(Hinge(), lam=lam)
        optimum = fit(problem, DCD(), Limits(tol=1e-9)).certificate.dual
        for output in OUTPUTS:
            weights = self._weights(problem, output, self.runs, self.marks)
            by_mark = weights.transpose(1, 0, 2)
            excess = [risk_of(self.population, lam, models) - optimum for models in by_mark]
            self.excess[lam, output] = np.array(excess)
            place = np.searchsorted(self.marks, HUNDRED)
            self.hundred[lam, output] = self.test_errors(by_mark[place])

    def test_errors(self, models: np.ndarray) -> np.ndarray:
        """Return the errors on new data of models of shape (k, d); shape (k,)."""
        X, y = self.test
        errors = []
        for start in range(0, len(models), JUDGED_AT_ONCE):
            block = models[start : start + JUDGED_AT_ONCE]
            is_wrong = (X @ block.T > 0.0) != (y > 0.0)[:, None]
            errors.append(is_wrong.mean(axis=0))
        return np.concatenate(errors)

    @property
    def least(self) -> float:
        """The test error of the best possible classifier."""
        return float(((self.test[0][:, 0] > 0.0) != (self.test[1] > 0.0)).mean())

    @staticmethod
    def _weights(problem: Problem, output: str, runs: int, marks: np.ndarray) -> np.ndarray:
        """Return the weights of each run at each mark, shape (runs, marks, d)."""
        solver = Pegasos(sampling="replacement", output=output)
        epochs = list(marks / problem.n)

        def run(seed: int) -> np.ndarray:
            weights = []
            for _, point in iterates(problem, solver, epochs, seed):
                assert point.w is not None
                weights.append(point.w[:-1])
            return np.array(weights)

        return np.array(run_in_threads(run, range(runs)))

    def measure_size(self, n: int) -> None:
        """Measure the errors on new data of the last iterate, trained on n rows."""
        problem = make_dataset(*gaussian(n, 2), name="").problem(Hinge(), lam=LAMBDAS[1])
        weights = self._weights(problem, "last", self.size_runs, self.marks)
        self.errors[n] = np.array(
            [self.test_errors(models) for models in weights.transpose(1, 0, 2)]
        )

    def rates(self) -> None:
        """Show the excess error against iterations, log-log, with fitted slopes."""
        section = self.report.section("Excess error against iterations")
        for lam in LAMBDAS:
            section.items.append(self._chart(lam))
        rows = []
        for lam in LAMBDAS:
            late = self._late(lam)
            for output in OUTPUTS:
                mean = self.excess[lam, output].mean(axis=1)
                slope, error = slope_of(self.marks[late], mean[late])
                ends = [
                    f"{value:.2g}"
                    for value in (mean[np.searchsorted(self.marks, HUNDRED)], mean[-1])
                ]
                rows.append([f"{lam:g}", WORDS[output], *ends, f"{slope:.2f} +- {error:.2f}"])
            rated, _ = slope_of(
                self.marks[late], np.array([bounds.rate(lam, T) for T in self.marks[late]])
            )
            rows.append([f"{lam:g}", "ln T / (lambda T)", "", "", f"{rated:.2f}"])
        columns = ["lambda", "output", f"mean at T = {HUNDRED}", f"at T = {self.marks[-1]:,}"]
        caption = "Mean excess error, and slopes fitted in log-log over the later marks."
        section.items.append(TextTable([*columns, "slope of the second half"], rows, caption))

    def _late(self, lam: float) -> np.ndarray:
        """Return the later half of the marks, in the logarithm; at least the last three."""
        # The rates hold from about 1 / lambda iterations on.
        middle = np.sqrt(self.marks[0] * self.marks[-1])
        late = np.flatnonzero(self.marks >= max(middle, 1.0 / lam))
        if late.size >= 3:
            return late
        return np.arange(self.marks.size - 3, self.marks.size)

    def _chart(self, lam: float) -> Chart:
        """Return the excess error of each output against the bounds."""
        series = []
        for style, output in enumerate(OUTPUTS):
            found = self.excess[lam, output]
            low, high = np.quantile(found, (0.05, 0.95), axis=1)
            series.append(
                Series(WORDS[output], self.marks, found.mean(axis=1), low, high, style=style)
            )
        for style, (name, (_, bound)) in enumerate(list(bounds_at(lam).items())[:4], start=3):
            values = np.array([bound(T) for T in self.marks])
            series.append(Series(name, self.marks, values, style=style, dash="dash"))
        words = (
            f"Mean of {self.runs:,} runs; the bands leave out 5 % on each side. Bounds are "
            "dashed, with delta = 0.05."
        )
        title = f"Excess error and its bounds, lambda = {lam:g}"
        axis = "excess error on the population"
        return Chart(
            title, "iterations", axis, tuple(series), x_log=True, y_log=True, caption=words
        )

    def coverage(self) -> None:
        """Show how many runs exceed each bound, and how far below it the others are."""
        section = self.report.section("Coverage of the bounds")
        rows = []
        broken = []
        for lam in LAMBDAS:
            for name, (output, bound) in bounds_at(lam).items():
                found = self.excess[lam, output]
                limit = np.array([bound(T) for T in self.marks])[:, None]
                # A bound in expectation is about the mean, the others about each run.
                allowed = DELTA
                judged = found
                of = f"{self.runs:,}"
                if "expectation" in name:
                    allowed = 0.0
                    judged = found.mean(axis=1, keepdims=True)
                    of = "1 mean"
                elif output == "random":
                    allowed = DELTA + MISS
                worst = int((judged > limit).sum(axis=1).max())
                if worst > allowed * self.runs:
                    broken.append(f"{name} at lambda = {lam:g}")
                near = float((np.quantile(found, 0.95, axis=1) / limit[:, 0]).max())
                rows.append(
                    {
                        "lambda": f"{lam:g}",
                        "bound": name,
                        "exceeded, at the worst T": f"{worst} of {of}",
                        "allowed": f"{allowed * 100:.0f} %",
                        "bound / 95 % quantile, at the least": f"{1.0 / near:,.0f}",
                    }
                )
        section.items.append(
            TextTable.from_records(
                rows, "Every bound over all runs, at the number of iterations where it does worst."
            )
        )
        verdict = "kept by every bound"
        if broken:
            verdict = f"exceeded more often than it allows: {'; '.join(broken)}"
        self.say(f"Over {self.runs:,} runs the stated probability is {verdict}.")
        ratios = [
            bounds.average_iterate_bound(1.0, lam, T, DELTA)
            / bounds.freedman_average_bound(1.0, lam, T, DELTA)
            for lam in LAMBDAS
            for T in self.marks
        ]
        self.say(
            f"Freedman's form is {min(ratios):.1f} to {max(ratios):.1f} times below theorem "
            f"2's, at the same delta."
        )

    def enough(self) -> None:
        """Judge a hundred iterations by test error, as it was claimed, and by the objective."""
        section = self.report.section("Are a hundred iterations enough?", self._by_test_error())
        rows = []
        fine = []
        place = int(np.searchsorted(self.marks, HUNDRED))
        for lam in LAMBDAS:
            found = self.excess[lam, "average"]
            mean = float(found[place].mean())
            reached = np.flatnonzero(found.mean(axis=1) <= WANTED)
            first = f"more than {self.marks[-1]:,}"
            if reached.size:
                first = f"{self.marks[reached[0]]:,}"
            proven = [
                f"{bounds.iterations_for(WANTED, bound, 1.0, lam, DELTA):,}"
                for bound in (bounds.freedman_average_bound, bounds.average_iterate_bound)
            ]
            rows.append(
                [
                    f"{lam:g}",
                    f"{mean:.2g}",
                    f"{np.quantile(found[place], 0.95):.2g}",
                    first,
                    *proven,
                ]
            )
            if mean <= WANTED:
                fine.append(f"{lam:g}")
        columns = [
            "lambda",
            f"mean at T = {HUNDRED}",
            "95 % quantile",
            f"first T with a mean of {WANTED:g}",
        ]
        columns += ["T by Freedman's form", "T by theorem 2"]
        section.items.append(
            TextTable(columns, rows, f"Excess error of the average iterate; enough is {WANTED:g}.")
        )
        where = f"for lambda = {' and '.join(fine)} only"
        if not fine:
            where = "for none of these lambdas"
        elif len(fine) == len(LAMBDAS):
            where = "for each of these lambdas"
        self.say(
            f"By the objective, a hundred bring the mean excess of the average iterate to "
            f"{WANTED:g} {where}."
        )

    def _by_test_error(self) -> TextTable:
        """Return a table of the test errors after a hundred iterations."""
        rows = []
        near = []
        for lam in LAMBDAS:
            medians = {output: float(np.median(self.hundred[lam, output])) for output in OUTPUTS}
            quantile = float(np.quantile(self.hundred[lam, "last"], 0.95))
            rows.append(
                [
                    f"{lam:g}",
                    *map(percent, (medians["last"], quantile, medians["average"], self.least)),
                ]
            )
            if max(medians["last"], medians["average"]) <= self.least + NEAR:
                near.append(
                    f"{lam:g} ({percent(medians['last'])} and {percent(medians['average'])} %)"
                )
        where = "for none of these lambdas"
        if near:
            where = f"for lambda = {' and '.join(near)}"
        self.say(
            "After a hundred iterations the median test errors of the last and of the average "
            "iterate are within half "
            f"a point of the least possible error, {percent(self.least)} %, {where}."
        )
        columns = [
            "lambda",
            "last iterate, median",
            "95 % quantile",
            "average iterate, median",
            "least possible",
        ]
        return TextTable(columns, rows, f"Test error (%) after {HUNDRED} iterations.")

    def generalisation(self) -> None:
        """Show the error on new data against iterations, with a line for each size."""
        data = (
            f"two Gaussian classes, {self.sizes[0]:,} to {self.sizes[-1]:,} training rows of "
            "norm one"
        )
        section = self.report.section("Error against iterations for several data sizes", data=data)
        best = self.least
        words = (
            f"The best classifier there is errs on {percent(best)} % of the {TEST_ROWS:,} test rows"
        )
        section.items.append(Prose(f"{words} ({percent(least_error())} % in expectation)."))
        section.items.append(size_chart(self.marks, self.errors, best, LAMBDAS[1]))
        section.items.append(size_table(self.marks, self.errors))
        for place in (len(self.marks) // 2, len(self.marks) - 1):
            medians = [float(np.median(self.errors[n][place])) for n in self.sizes]
            self.say(
                f"After {self.marks[place]:,} iterations the last iterate errs on "
                f"{percent(min(medians))} to "
                f"{percent(max(medians))} % of new data, for {self.sizes[0]:,} to "
                f"{self.sizes[-1]:,} training rows "
                f"(the best classifier there is: {percent(best)} %)."
            )


def risk_of(data: Dataset, lam: float, models: np.ndarray) -> np.ndarray:
    """Return the hinge objective, in the lambda form, of models of shape (k, d); shape (k,)."""
    risks = []
    for start in range(0, len(models), JUDGED_AT_ONCE):
        block = models[start : start + JUDGED_AT_ONCE]
        losses = np.maximum(0.0, 1.0 - data.y[:, None] * (data.X @ block.T)).mean(axis=0)
        risks.append(losses + 0.5 * lam * np.einsum("kd,kd->k", block, block))
    return np.concatenate(risks)


def least_error() -> float:
    """Return the expected error of the best possible classifier on these data."""
    # It has the border's side as its label, and errs on the noise and on rows beyond the border.
    return float(NOISE + (1.0 - 2.0 * NOISE) * norm.sf(DISTANCE))


def size_chart(marks: np.ndarray, errors: dict[int, np.ndarray], best: float, lam: float) -> Chart:
    """Return the error against iterations, with a line for each size: median and quartiles.

    Parameters
    ----------
    marks : ndarray of shape (m,)
        Numbers of iterations.
    errors : dict of int to ndarray of shape (m, runs)
        By the number of training rows.
    best : float
        The least possible error.
    lam : float
    """
    series = []
    for style, (n, found) in enumerate(errors.items()):
        low, middle, high = np.quantile(found, (0.25, 0.5, 0.75), axis=1)
        series.append(Series(f"{n:,} rows", marks, middle, low, high, style=style))
    words = f"Last iterate, lambda = {lam:g}: median over the runs, with the quartiles."
    levels = {best: "least possible"}
    title = "Test error of the last iterate"
    axis = "error on new data"
    return Chart(title, "iterations", axis, tuple(series), x_log=True, levels=levels, caption=words)


def size_table(marks: np.ndarray, errors: dict[int, np.ndarray]) -> TextTable:
    """Return a table of the medians at a few numbers of iterations, in percent."""
    places = np.unique(np.linspace(0, marks.size - 1, COLUMNS).round().astype(int))
    rows = [
        [f"{n:,}", *(percent(float(np.median(found[place]))) for place in places)]
        for n, found in errors.items()
    ]
    columns = ["rows", *(f"{marks[place]:,} iterations" for place in places)]
    return TextTable(columns, rows, "Test error (%) of the last iterate, median over the runs.")


def slope_of(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return the slope of log y against log x, and its standard error; NaN without two points."""
    keep = (np.asarray(x) > 0.0) & (np.asarray(y) > 0.0)
    u = np.log(np.asarray(x, dtype=float)[keep])
    v = np.log(np.asarray(y, dtype=float)[keep])
    if u.size < 2 or np.ptp(u) == 0.0:
        return float("nan"), float("nan")
    found = linregress(u, v)
    return float(found.slope), float(found.stderr)
