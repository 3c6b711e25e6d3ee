"""Dual coordinate descent on four data sets: accuracy and time beside scikit-learn's LinearSVC, C in {1, 10, 100}.

Published: tables of accuracy and seconds for DCD without shrinking, with shrinking, and scikit-learn's LinearSVC; L2
loss, tolerance 1e-4. The published accuracies of banknote (453 rows), heart (99) and toy (660) are those of a third of
the rows held out; the seed is not known, so the same rows cannot be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from saddlesvm import Certificate, certify
from saddlesvm.fit.outcome import Limits
from saddlesvm.lab.charts import Chart
from saddlesvm.lab.dataset import Dataset, make_dataset
from saddlesvm.lab.experiments.dcd_setting import (
    ENTRANTS,
    FITTED_WITH_CERTIFICATE,
    PUBLISHED_ACCURACY,
    PUBLISHED_LINE,
    PUBLISHED_ROWS,
    PUBLISHED_SECONDS,
    SCALED,
    THEIRS,
    accuracies,
    digits,
    ended,
    entrants,
    held_out,
    line_table,
    passes_of,
    published_counts,
    split_chart,
    split_rows,
    split_table,
    split_verdict,
)
from saddlesvm.lab.experiments.reproduction import Experiment, Step, percent, timed
from saddlesvm.lab.figures import confusion_grid, margins_chart, misclassified, plane_chart, shrinking_charts
from saddlesvm.lab.report import Picture, Prose, Section, Table
from saddlesvm.lab.runs import run_solver
from saddlesvm.lab.tidy import curve_chart, tidy
from saddlesvm.problem.losses import SquaredHinge
from saddlesvm.solvers import DCD

DIGITS = "mnist 1-7"  # the one set that does not come with the package
STRENGTHS = (1.0, 10.0, 100.0)
MOST_PASSES = 1000  # passes over the active rows
MANY_SPLITS = 100  # splits of each set; a tenth of them for the digits
REFINE = 300  # epochs of dual ascent that tighten the bound on scikit-learn's models
PATIENCE = 1.0  # seconds that the timed fits of a cell may take; one is always done
CALL = 2e-3  # seconds: the fixed cost of a call that the comparison allows
SETS = (*PUBLISHED_ACCURACY, SCALED)


@dataclass(frozen=True)
class Cell:
    """One fit: median seconds, accuracy on the test part, and the fitted estimator."""

    seconds: float
    accuracy: float
    model: Any


class DCDTables(Experiment):
    """The dual-coordinate-descent report, repeated."""

    name: ClassVar[str] = "dcd-tables"
    title: ClassVar[str] = "Dual coordinate descent: accuracy and time beside scikit-learn"

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self.sets: dict[str, Dataset] = {}
        self.cells: dict[tuple[str, str, float], Cell] = {}
        self.proofs: dict[tuple[str, str, float], Certificate] = {}

    def steps(self) -> Sequence[Step]:
        """A step for each data set, then the tables and pictures."""
        names = [name for name in SETS if name != DIGITS or not self.options.bundled]
        fits = [(name, lambda name=name: self.measure(name)) for name in names]
        shown = (("tables", self.tables), ("splits", self.splits), ("curves", self.curves), ("pictures", self.pictures))
        return (*fits, *shown)

    @property
    def timings(self) -> int:
        """Fits of each cell, of whose times the median is taken."""
        return 1 if self.quick or self.options.bundled else 7

    def dataset(self, name: str) -> Dataset:
        """One of the four sets, split as published."""
        if name != DIGITS:
            return held_out(name)
        train, test = (digits(part, self.options.data) for part in ("train", "test"))
        step = 12 if self.quick else 1
        X, y = train[0][::step], train[1][::step]
        return make_dataset(X, y, test=test, name=name, image_shape=(28, 28))

    def measure(self, name: str) -> None:
        """Fit every entrant for every C in turn, so that a disturbance of the machine affects all of them."""
        data = self.sets[name] = self.dataset(name)
        self.report.data += data.describe()
        for C in STRENGTHS:
            found: dict[str, list[tuple[float, Any]]] = {entrant.name: [] for entrant in ENTRANTS}
            for turn in range(self.timings + 1):
                for entrant in ENTRANTS:
                    if sum(took for took, _ in found[entrant.name]) > PATIENCE:
                        continue
                    passes = 1 if turn == 0 else 50 if self.quick else MOST_PASSES
                    model, took = timed(entrant.make(C, passes), data.X, data.y)
                    if turn:  # the first one loads compiled code
                        found[entrant.name].append((took, model))
            for who, fits in found.items():
                model = fits[-1][1]
                accuracy = float((model.predict(data.test_X) == data.test_y).mean())
                self.cells[name, who, C] = Cell(float(np.median([took for took, _ in fits])), accuracy, model)

    def tables(self) -> None:
        """Accuracy and seconds, published and measured, and whether any cell is slower than scikit-learn's."""
        section = self.report.section("Tables")
        section.items += [
            self._each_fit(
                lambda *key: percent(self.cells[key].accuracy), "Accuracy on the held-out rows (%).", PUBLISHED_ACCURACY
            ),
            self._each_fit(
                lambda *key: f"{self.cells[key].seconds:.4f}",
                "Seconds of a fit, checks of the input and certificates included; medians of up to seven.",
                PUBLISHED_SECONDS,
            ),
            self._each_fit(
                lambda *key: f"{self.proof(*key).relative_gap:.1e}",
                "Relative duality gap proven of each model; scikit-learn's dual point is found anew.",
            ),
        ]
        section.items += [self._compare_times(), Prose(published_counts()), self._passes()]
        self._compare_accuracies()

    def _each_fit(self, cell: Callable[..., str], caption: str, published: dict[str, Any] | None = None) -> Table:
        """A line for each set and entrant, below the published ones; `cell` takes the set, the entrant and C."""
        rows = []
        for name in self.sets:
            for who, numbers in zip(PUBLISHED_ROWS, (published or {}).get(name, ()), strict=False):
                rows.append([name, f"{who} (published)", *(f"{number:g}" for number in numbers)])
            rows += [[name, one.name, *(cell(name, one.name, C) for C in STRENGTHS)] for one in ENTRANTS]
        return Table(["data", "solver", *(f"C = {C:g}" for C in STRENGTHS)], rows, caption)

    def _passes(self) -> Table:
        """Passes of every model: ours are visits of as many rows as there are, scikit-learn's of its active rows."""
        ours = [cell.model for (_, who, _), cell in self.cells.items() if who != THEIRS]
        cut = sum(ended(model) != "" for model in ours)
        self.say(f"{cut} of our {len(ours)} runs were cut by the limit on passes, and met no stopping rule.")
        return self._each_fit(
            lambda *key: f"{passes_of(self.cells[key].model):,.0f}{ended(self.cells[key].model)}",
            "Passes: ours are visits of as many rows as there are; scikit-learn's are over the rows still active. Cut: "
            f"by the limit of {MOST_PASSES:,} passes over the active rows, before any rule was met.",
        )

    def proof(self, name: str, who: str, C: float) -> Certificate:
        """The certificate of a cell's model."""
        key = (name, who, C)
        if key not in self.proofs:
            data, model = self.sets[name], self.cells[key].model
            self.proofs[key] = getattr(model, "certificate_", None) or certify(
                data.X, data.y, model.coef_, float(model.intercept_[0]), loss="squared_hinge", C=C,
                penalized_intercept=True, refine=10 if self.quick else REFINE,
            )  # fmt: skip
        return self.proofs[key]

    def _compare_times(self) -> Table:
        """The times of our cells beside scikit-learn's in the same run."""
        rows, ours = [], [entrant.name for entrant in ENTRANTS[:-1]]
        for who in ours:
            cells = {(name, C): self.cells[name, who, C].seconds for name in self.sets for C in STRENGTHS}
            theirs = {(name, C): self.cells[name, "scikit-learn", C].seconds for name, C in cells}
            slower = {key: took - theirs[key] for key, took in cells.items() if took > theirs[key] + CALL}
            middle = float(np.median([took / theirs[key] for key, took in cells.items()]))
            worst = max(slower, key=lambda key: slower[key]) if slower else None
            words = "none" if worst is None else f"{worst[0]}, C = {worst[1]:g}: {1e3 * slower[worst]:.1f} ms"
            rows.append([who, f"{len(slower)} of {len(cells)}", words, f"{middle:.2g}"])
            words = f"{who}: {len(slower)} of {len(cells)} cells are slower than scikit-learn's by more than 2 ms."
            self.say(words, timed=True)
        columns = ["solver", "cells slower by more than 2 ms", "the worst", "median ratio of times"]
        caption = (
            "Times beside scikit-learn's in the same run. Without shrinking a pass visits all rows; scikit-learn's "
            "passes visit those that its shrinking leaves."
        )
        return Table(columns, rows, caption)

    def _compare_accuracies(self) -> None:
        """Whether our models and scikit-learn's differ only on rows where their gaps allow it.

        The objective of the C form is strongly convex with modulus 1, so ``||w - w*||^2 <= 2 gap``, and two models
        differ on a row x by at most ``||x|| (sqrt(2 gap) + sqrt(2 gap'))``, the intercept's constant feature included.
        """
        differing = beyond = 0
        for (name, who, C), cell in self.cells.items():
            data, other = self.sets[name], self.cells[name, "scikit-learn", C].model
            scores, others = cell.model.decision_function(data.test_X), other.decision_function(data.test_X)
            gaps = [max(self.proof(name, one, C).gap, 0.0) for one in (who, "scikit-learn")]
            lengths = np.sqrt(np.square(data.test_X.astype(np.float64)).sum(axis=1) + 1.0)
            apart = (scores > 0.0) != (others > 0.0)
            differing += int(apart.sum())
            beyond += int(
                (apart & (np.abs(scores - others) > 1.001 * lengths * np.sqrt(2.0 * np.array(gaps)).sum())).sum()
            )
        self.say(
            f"Over all cells our models and scikit-learn's disagree on {differing} test rows; on {beyond} of them by "
            "more than their certified gaps allow."
        )

    def splits(self) -> None:
        """The published accuracies among those of many splits."""
        few = 2 if self.quick else MANY_SPLITS
        found = {}
        for name in (one for one in PUBLISHED_ACCURACY if one in self.sets):
            digital = name == DIGITS
            made = self._split_digits() if digital else held_out
            seeds = max(2, few // 10) if digital else few
            found[name] = accuracies(partial(made, name), STRENGTHS, seeds, 20 if self.quick else MOST_PASSES)
        section = self.report.section("The published accuracies among many splits", split_table(found, STRENGTHS))
        section.items += [split_chart(name, cells, STRENGTHS) for name, cells in found.items()]
        self.say(split_verdict(found, STRENGTHS))
        models = {entrant.name: self.cells["toy", entrant.name, PUBLISHED_LINE[0]].model for entrant in entrants()}
        line, sentence = line_table(found["toy"], models)
        self.report.section("The toy's line", line)
        self.say(sentence)

    def _split_digits(self) -> Callable[[str, int], Dataset]:
        """Ones and sevens of the training images with a third held out, as published."""
        X, y = digits("train", self.options.data)
        step = 12 if self.quick else 1
        return partial(split_rows, X[::step], y[::step])

    def curves(self) -> None:
        """Change of w, suboptimality and active rows along the passes."""
        section = self.report.section("Curves")
        for name, data in self.sets.items():
            for C in STRENGTHS if name in ("banknote", "toy") else STRENGTHS[:1]:
                section.items += self._curves_of(data, name, C)

    def _curves_of(self, data: Dataset, name: str, C: float) -> list[Chart]:
        problem = data.problem(SquaredHinge(), C, "regularized")
        rows = []
        limits = Limits(tol=1e-8, max_epochs=15.0 if self.quick else 400.0, max_time=5.0, certify_every=1.0)
        for shrinking in (False, True):
            solver = DCD(shrinking=shrinking, stopping="weight_change", threshold=1e-12)
            found, _ = run_solver(data, problem, solver, limits)
            options = "shrinking" if shrinking else "no shrinking"
            cell = {"solver": "dcd", "options": options, "loss": "squared_hinge", "C": C}
            rows += [row | cell for row in found]
        trace = tidy(rows)
        words = {"change": "change of w in a pass", "suboptimality": "suboptimality", "active": "active rows"}
        charts = [curve_chart(trace, one, "epochs", f"{name}, C = {C:g}: {word}") for one, word in words.items()]
        return [chart for chart in charts if chart.series]

    def pictures(self) -> None:
        """The toy's plane and its shrinking by epoch; decision functions; the misclassified digits."""
        toy = self.sets["toy"]
        model = self.cells["toy", FITTED_WITH_CERTIFICATE, 1.0].model
        plane = plane_chart(
            toy.X, toy.y, model.decision_function, "toy: decision function",
            names=toy.classes, alpha=model.duals_of(0),
        )  # fmt: skip
        published = self.cells["toy", "DCD, shrinking", PUBLISHED_LINE[0]].model
        line = plane_chart(
            toy.X, toy.y, published.decision_function, f"toy: the line at C = {PUBLISHED_LINE[0]:g}",
            names=toy.classes, alpha=published.duals_of(0),
        )  # fmt: skip
        epochs = (1, 3, 5, 7, 9, 11)
        shrunk = shrinking_charts(toy.problem(SquaredHinge(), 1.0, "regularized"), epochs, names=toy.classes)
        self.report.sections.append(Section("The toy, epoch by epoch", [plane, line, *shrunk]))
        section = self.report.section("Decision functions")
        for name, data in self.sets.items():
            scores = self.cells[name, FITTED_WITH_CERTIFICATE, 1.0].model.decision_function(data.X)
            section.items.append(margins_chart(scores, data.y, data.classes, f"{name}, C = 1"))
        if DIGITS in self.sets:
            self._digits()

    def _digits(self) -> None:
        data = self.sets[DIGITS]
        assert data.test_y is not None
        model = self.cells[DIGITS, FITTED_WITH_CERTIFICATE, STRENGTHS[-1]].model
        scores = model.decision_function(data.test_X)
        names = np.array(data.classes)
        true, taken = names[np.where(data.test_y > 0, 1, 0)], names[(scores > 0).astype(int)]
        self.report.section(
            "Misclassified digits",
            confusion_grid(true, taken, data.classes),
            Picture(
                "Misclassified ones and sevens",
                f"C = {STRENGTHS[-1]:g}, as published; the worst mistakes first.",
                lambda: misclassified(data.test_X, true, taken, (28, 28), scores),
            ),
        )
