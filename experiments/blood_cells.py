"""Blood cells: SDCA against Pegasos on lymphocytes and neutrophils, and how their work grows.

Published: lambda = 1.6, averages of 100 runs, about 26 % test error on raw crops; SDCA about 3
times faster than Pegasos there, Pegasos faster with 40 principal components.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from experiments.datasets import blood_cells
from experiments.experiment import Experiment, Step, percent
from saddlesvm import DCD, SDCA, Auto, Pegasos
from saddlesvm.lab import (
    Chart,
    Dataset,
    Limits,
    Prose,
    Series,
    Switch,
    TextTable,
    count_text,
    fit,
    hinge_objective,
    iterates,
    label_solver,
    make_dataset,
    medians,
    reach_times,
    run_in_threads,
    run_solver,
    seconds_text,
    tidy_trace,
    warm_up,
)
from saddlesvm.lab.figures import closing_chart, curve_chart
from saddlesvm.losses import Hinge

# Numbers of the two classes in the file.
LYMPHOCYTE = 1
NEUTROPHIL = 3
LAM = 1.6  # the published one
COMPONENTS = 40
LAMBDAS = (10.0, 1.0, 1e-1, 1e-2, 1e-3, 1e-4)
ACCURACIES = (1e-1, 1e-2, 1e-3)
FOLDS = 5
LEVELS = (1e-2, 1e-3)  # of relative suboptimality
LAST = Pegasos(batch_size=100, output="last")


class BloodCells(Experiment):
    """The blood-cell report repeated, and the questions that it leaves open."""

    name: ClassVar[str] = "blood-cells"
    title: ClassVar[str] = "Blood cells: SDCA against Pegasos"

    @property
    def repeats(self) -> int:
        """Runs that are averaged."""
        return 2 if self.quick else 100

    def steps(self) -> Sequence[Step]:
        """Return the steps: raw crops, principal components, lambda, n, cross-validation."""
        return (
            ("raw crops", lambda: self.compare(self.raw, "raw crops")),
            (
                "principal components",
                lambda: self.compare(self.components, "40 principal components"),
            ),
            ("epochs against 1/(lambda eps)", self.rate_in_lambda),
            ("epochs against n", self.rate_in_rows),
            ("lambda by cross-validation", self.validate),
        )

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """The file's rows of the two classes."""
        arrays = blood_cells(self.options.data)
        chosen = np.flatnonzero(np.isin(arrays["label"], (LYMPHOCYTE, NEUTROPHIL)))
        if self.quick:
            chosen = chosen[::12]
        return {name: arrays[name][chosen] for name in ("images", "label", "split", "source")}

    @cached_property
    def raw(self) -> Dataset:
        """Grey negatives in [0, 1]."""
        negatives = (255.0 - self.arrays["images"].astype(np.float32)) / np.float32(255)
        data = self._dataset(negatives.reshape(len(negatives), -1), "raw crops")
        self.report.data = data.describe()
        return data

    @cached_property
    def components(self) -> Dataset:
        """The first principal components of the training part, centred by its mean."""
        from sklearn.decomposition import PCA

        raw = self.raw
        pca = PCA(COMPONENTS, random_state=0).fit(raw.X)
        rows = np.empty((len(self.arrays["split"]), COMPONENTS), dtype=np.float32)
        rows[self._train] = pca.transform(raw.X)
        rows[~self._train] = pca.transform(raw.test_X)
        return self._dataset(rows, "40 principal components")

    @property
    def _train(self) -> np.ndarray:
        """Which rows are training rows."""
        return self.arrays["split"] == 0

    def _dataset(self, X: np.ndarray, name: str) -> Dataset:
        """Return features with the labels, split as in the file."""
        labels = np.where(self.arrays["label"] == LYMPHOCYTE, "lymphocyte", "neutrophil")
        train = self._train
        test = (X[~train], labels[~train])
        return make_dataset(
            X[train], labels[train], test=test, positive="lymphocyte", name=f"blood cells, {name}"
        )

    def compare(self, data: Dataset, name: str) -> None:
        """Repeat the published comparison on one kind of features."""
        entrants = [SDCA(), SDCA(start="sgd"), LAST, Pegasos(batch_size=100)]
        every = 0.5 if data is self.components else 1.0
        limits = Limits(tol=1e-4, max_epochs=20.0, max_time=5.0, certify_every=every)
        problem = data.problem(Hinge(), lam=LAM)
        rows = []
        for solver in entrants:
            warm_up(problem, solver)
        for seed in range(self.repeats):
            for solver in entrants:
                rows += run_solver(data, problem, solver, limits, seed=seed)[0]
        trace = tidy_trace(rows)
        self._state_times(trace, data, name)
        tables = times_table(trace), ends_table(trace, data)
        section = self.report.section(f"lambda = {LAM}: {name}", *tables, data=data.name)
        charts: dict[tuple[str, ...], Chart] = {
            (word, against): curve_chart(
                trace, quantity, against, f"{word} against {against}", centre
            )
            for quantity, word in (
                ("gap", "Gap"),
                ("suboptimality", "Suboptimality"),
                ("test_error", "Test error"),
            )
            for against, centre in (("epochs", "mean"), ("seconds", "median"))
        }
        words = (
            "The repeats' mean against epochs, their median against seconds; the band holds "
            "their middle half."
        )
        section.items.append(
            Switch("Closing in on the optimum", words, ("quantity", "against"), charts)
        )
        section.items.append(closing_chart(trace, "epochs", "Primal and dual"))

    def _state_times(self, trace: pd.DataFrame, data: Dataset, name: str) -> None:
        """Add a sentence with the measured times and errors beside the published ones."""
        times = medians(reach_times(trace, 1e-3)).set_index("label")["seconds"]
        ends = trace[(trace["solver"] == "sdca") & (trace["outcome"] != "")]
        error = ends["test_error"].mean()
        sdca = times["sdca"]
        pegasos = times[label_solver(LAST)]
        said = "Pegasos faster"
        if "raw" in name:
            said = "SDCA about 3 times faster than Pegasos, 26 % test error"
        self.say(
            f"{name}, lambda = {LAM}: time to within 1e-3 of the optimum: SDCA "
            f"{seconds_text(sdca)}, "
            f"Pegasos (batches of 100, last iterate) {seconds_text(pegasos)}; test error "
            f"{percent(error)} %. "
            f"Published: {said}.",
            timed=True,
        )

    def rate_in_lambda(self) -> None:
        """Show the row visits until the gap is eps, against 1/(lambda eps)."""
        data = self.components
        visits = {
            (lam, eps): self._visits(data, lam, eps)
            for lam in LAMBDAS[: 3 if self.quick else None]
            for eps in ACCURACIES
        }
        n = data.X.shape[0]
        series = []
        for style, eps in enumerate(ACCURACIES):
            lambdas = [lam for lam, accuracy in visits if accuracy == eps]
            x = np.array([1.0 / (lam * eps) for lam in lambdas])
            y = np.array([visits[lam, eps] for lam in lambdas])
            series.append(Series(f"SDCA, eps = {eps:g}", x, y, style=style))
        every = [1.0 / (lam * eps) for lam, eps in visits]
        line = np.geomspace(min(every), max(every), 40)
        series += [
            Series("n + 1/(lambda eps)", line, n + line, style=7, dash="dash"),
            Series("1/(lambda eps)", line, line, style=7, dash="dot"),
        ]
        caption = (
            "The stated rate of SDCA is O(n + 1/(lambda eps)), that of Pegasos O(1/(lambda "
            "eps)); constants left out."
        )
        title = "Row visits until the gap is eps"
        chart = Chart(
            title, "1/(lambda eps)", "row visits", tuple(series), True, True, caption=caption
        )
        rows = [
            [f"{lam:g}", *(f"{visits[lam, eps] / n:.1f}" for eps in ACCURACIES)]
            for lam in dict.fromkeys(lam for lam, _ in visits)
        ]
        columns = ["lambda", *(f"epochs to gap {eps:g}" for eps in ACCURACIES)]
        title = "Beyond: how the work grows with 1/(lambda eps)"
        self.report.section(title, chart, TextTable(columns, rows), data=data.name)
        smallest = min(lam for lam, _ in visits)
        below = sum(found <= n + 1.0 / (lam * eps) for (lam, eps), found in visits.items())
        self.say(
            f"SDCA needed {visits[smallest, 1e-3] / n:.0f} epochs for a gap of 1e-3 at lambda = "
            f"{smallest:g}, where "
            f"n + 1/(lambda eps) is {(n + 1000 / smallest) / n:.0f}. In {below} of "
            f"{len(visits)} settings it "
            "needed less than n + 1/(lambda eps) row visits (the stated rate, with a constant "
            "of 1)."
        )

    def rate_in_rows(self) -> None:
        """Show the row visits to a gap (for Pegasos a distance of the primal) of eps, against n."""
        data = self.components
        lam = 1e-2
        eps = 1e-2
        sizes = [
            data.X.shape[0] >> halvings for halvings in reversed(range(2 if self.quick else 6))
        ]
        order = np.random.default_rng(0).permutation(data.X.shape[0])
        sdca = []
        pegasos = []
        for size in sizes:
            part = make_dataset(data.X[order[:size]], data.y[order[:size]], name="part")
            sdca.append(self._visits(part, lam, eps))
            pegasos.append(self._pegasos_visits(part, lam, eps))
        x = np.array(sizes, dtype=float)
        stated = 1.0 / (lam * eps)
        series = (
            Series("SDCA, gap", x, np.array(sdca)),
            Series("Pegasos, primal suboptimality", x, np.array(pegasos), style=1),
            Series("n + 1/(lambda eps)", x, x + stated, style=7, dash="dash"),
            Series("1/(lambda eps)", x, np.full(x.size, stated), style=7, dash="dot"),
        )
        title = f"Row visits against n, lambda = {lam:g}, eps = {eps:g}"
        caption = "SDCA pays for every row at least once; what Pegasos needs does not grow with n."
        chart = Chart(title, "n", "row visits", series, True, True, caption=caption)
        self.report.section("Beyond: how the work grows with n", chart, data=data.name)
        self.say(
            f"From {sizes[0]} to {sizes[-1]} rows (lambda = eps = 0.01) SDCA's row visits went "
            f"from {sdca[0]:,.0f} to "
            f"{sdca[-1]:,.0f}, those of Pegasos from {pegasos[0]:,.0f} to {pegasos[-1]:,.0f}."
        )

    def _visits(self, data: Dataset, lam: float, eps: float) -> float:
        """Return the median row visits of SDCA until its gap, in the lambda form, is eps."""
        problem = data.problem(Hinge(), lam=lam)
        counts = []
        for seed in range(3):
            limits = Limits(tol=eps * 0.2, max_epochs=3000.0, max_time=6.0, certify_every=0.1)
            rows, _ = run_solver(data, problem, SDCA(), limits, seed=seed)
            met = [row["rows_touched"] for row in rows if row["gap"] <= eps]
            counts.append(met[0] if met else np.inf)
        return float(np.median(counts))

    def _pegasos_visits(self, data: Dataset, lam: float, eps: float) -> float:
        """Return the median iterations of Pegasos until its primal is within eps of the optimum."""
        problem = data.problem(Hinge(), lam=lam)
        bound = fit(problem, DCD(), Limits(tol=eps * 1e-2, max_time=5.0)).certificate.dual
        counts = np.unique(np.geomspace(10, 200_000, 60).round())
        solver = Pegasos(sampling="replacement")
        found = []
        for seed in range(3):
            epochs = list(counts / problem.n)
            points = zip(counts, iterates(problem, solver, epochs, seed), strict=True)
            first = np.inf
            for count, (_, point) in points:
                if hinge_objective(data, lam, point.w) <= bound + eps:
                    first = count
                    break
            found.append(first)
        return float(np.median(found))

    def validate(self) -> None:
        """Choose lambda by cross-validation, with folds of photographs and of rows."""
        lambdas = LAMBDAS[: 3 if self.quick else None]
        cuts = self._cuts()
        pieces = [
            (lam, word, fold) for lam in lambdas for word, folds in cuts.items() for fold in folds
        ]
        found = run_in_threads(lambda piece: self._held_out(piece[0], *piece[2]), pieces)
        whole = run_in_threads(lambda lam: self.raw.errors(*_model(self.raw, lam)), lambdas)
        rows = []
        best = {}
        for lam, (train, test) in zip(lambdas, whole, strict=True):
            scores = {word: _mean(found, pieces, (lam, word)) for word in cuts}
            best[lam] = (scores["photograph"], test)
            rows.append(
                [
                    f"{lam:g}",
                    *(percent(scores[word]) for word in cuts),
                    percent(train),
                    percent(test),
                ]
            )
        columns = [
            "lambda",
            *(f"error, folds by {word} (%)" for word in cuts),
            "training error (%)",
            "test error (%)",
        ]
        chosen = min(best, key=lambda lam: best[lam][0])
        words = (
            "Copies of one photograph share a source number. Folds cut by row put copies of the "
            "same photograph on "
            "both sides, which can promise too much; folds cut by photograph cannot."
        )
        self.report.section(
            "Beyond: lambda by cross-validation", Prose(words), TextTable(columns, rows)
        )
        self.say(
            f"Cross-validation cut by photograph chooses lambda = {chosen:g}, with "
            f"{percent(best[chosen][1])} % test "
            f"error."
        )

    def _cuts(self) -> dict[str, list[tuple[np.ndarray, np.ndarray]]]:
        """Return folds (training and held-out rows) of photographs, and of single rows."""
        from sklearn.model_selection import GroupKFold, KFold

        data = self.raw
        source = self.arrays["source"][self._train]
        return {
            "photograph": list(GroupKFold(FOLDS).split(data.X, data.y, source)),
            "row": list(KFold(FOLDS, shuffle=True, random_state=0).split(data.X)),
        }

    def _held_out(self, lam: float, train: np.ndarray, test: np.ndarray) -> float:
        """Return the error on the held-out rows of a model of the other rows."""
        data = self.raw
        part = Dataset(
            "fold",
            data.X[train],
            data.y[train],
            data.task,
            data.classes,
            data.X[test],
            data.y[test],
        )
        return part.errors(*_model(part, lam))[1]


def _mean(errors: list[float], pieces: list[Any], cell: tuple[float, str]) -> float:
    """Return the mean over the folds of a cell."""
    pairs = zip(errors, pieces, strict=True)
    return float(np.mean([error for error, piece in pairs if piece[:2] == cell]))


def _model(data: Dataset, lam: float) -> tuple[np.ndarray, float]:
    """Return weights and intercept near the optimum: to a gap of 1e-3, or after 10 seconds."""
    result = fit(data.problem(Hinge(), lam=lam), Auto(), Limits(tol=1e-3, max_time=10.0))
    return result.coef, result.intercept


def times_table(trace: pd.DataFrame) -> TextTable:
    """Return a table of the median seconds and epochs to two levels of suboptimality."""
    tables = [medians(reach_times(trace, level)).set_index("label") for level in LEVELS]
    columns = ["solver"]
    for level in LEVELS:
        columns += [f"time to {level:g}", "epochs"]
    rows = []
    for label in tables[0].index:
        row = [label]
        for table in tables:
            reached = table.loc[label]
            row += [seconds_text(reached["seconds"]), count_text(reached["epochs"])]
        rows.append(row)
    return TextTable(
        columns,
        rows,
        "Time of solving until the primal was within a fraction of the optimum; medians.",
    )


def ends_table(trace: pd.DataFrame, data: Dataset) -> TextTable:
    """Return a table of the ends of the runs, means over the repeats."""
    ends = trace.groupby(["solver", "options", "repeat"], sort=False).last()
    rows = []
    for (solver, options), runs in ends.groupby(["solver", "options"], sort=False):
        mean = runs[["primal", "relative_gap", "epoch", "train_error", "test_error"]].mean()
        name = f"{solver} ({options})" if options else str(solver)
        numbers = [f"{mean['primal']:.6f}", f"{mean['relative_gap']:.1e}", f"{mean['epoch']:.1f}"]
        rows.append([name, *numbers, percent(mean["train_error"]), percent(mean["test_error"])])
    columns = [
        "solver",
        "objective (lambda form)",
        "relative gap",
        "epochs",
        "training error (%)",
        "test error (%)",
    ]
    caption = (
        f"Means over the repeats; {data.X.shape[0]:,} training rows. Published test error "
        "on raw crops: about 26 %."
    )
    return TextTable(columns, rows, caption)
