"""Blood cells: SDCA against Pegasos on lymphocytes and neutrophils.

Published: lambda = 1.6, averages of 100 runs, about 26 % test error on raw crops; SDCA about 3
times faster than Pegasos there, Pegasos faster with 40 principal components.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np
import pandas as pd

from experiments.datasets import blood_cells
from experiments.experiment import Experiment, Step, percent
from saddlesvm import SDCA, Pegasos
from saddlesvm.lab import (
    Dataset,
    Limits,
    TextTable,
    count_text,
    label_solver,
    make_dataset,
    medians,
    reach_times,
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
LEVELS = (1e-2, 1e-3)  # of relative suboptimality
LAST = Pegasos(batch_size=100, output="last")


class BloodCells(Experiment):
    """The blood-cell report repeated."""

    name: ClassVar[str] = "blood-cells"
    title: ClassVar[str] = "Blood cells: SDCA against Pegasos"

    @property
    def repeats(self) -> int:
        """Runs that are averaged."""
        return 2 if self.quick else 100

    def steps(self) -> Sequence[Step]:
        """Return the steps: raw crops, principal components."""
        return (
            ("raw crops", lambda: self.compare(self.raw, "raw crops")),
            (
                "principal components",
                lambda: self.compare(self.components, "40 principal components"),
            ),
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
        # The repeats' mean against epochs, their median against seconds.
        for quantity, word in (
            ("gap", "Gap"),
            ("suboptimality", "Suboptimality"),
            ("test_error", "Test error"),
        ):
            for against, centre in (("epochs", "mean"), ("seconds", "median")):
                title = f"{word} against {against}"
                section.items.append(curve_chart(trace, quantity, against, title, centre))
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
