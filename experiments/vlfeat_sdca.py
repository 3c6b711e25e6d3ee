"""SDCA on five losses: objective, dual and gap, lambda against C, the bias multiplier, weights.

Published: VLFeat's SVM documentation, which trains one 2-D problem with SDCA on the hinge, squared
hinge, logistic, L1 and L2 losses and draws the energies as they close in on each other. Its own
points are not published; the toy set replaces them, in VLFeat's form of the objective: lambda =
0.01 and a bias that is the weight of a constant feature.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from experiments.experiment import Experiment, Step, percent
from saddlesvm import SDCA
from saddlesvm.data import read
from saddlesvm.lab import (
    Chart,
    Dataset,
    FitResult,
    Limits,
    Problem,
    Prose,
    Series,
    TextTable,
    fit,
    iterates,
    make_dataset,
    run_solver,
    tidy_trace,
    warm_up,
)
from saddlesvm.lab.figures import closing_chart, curve_chart, plane_chart
from saddlesvm.losses import Absolute, Hinge, Logistic, Loss, Squared, SquaredHinge

LAM = 0.01
CLOSED = 1e-6  # gap in the lambda form that counts as closed
LOSSES: dict[str, Loss] = {
    "hinge": Hinge(),
    "squared hinge": SquaredHinge(),
    "logistic": Logistic(),
    "L1": Absolute(),
    "L2": Squared(),
}
MULTIPLIERS = (0.1, 1.0, 10.0, 100.0)


class VLFeatSDCA(Experiment):
    """VLFeat's SDCA demonstration, repeated."""

    name: ClassVar[str] = "vlfeat-sdca"
    title: ClassVar[str] = "SDCA on five losses, as in VLFeat"

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        table = read("toy")
        assert table.y is not None
        step = 5 if self.quick else 1
        self.data: Dataset = make_dataset(
            table.X[::step] + np.array([1.0, 0.0]), table.y[::step], name="toy, moved by 1"
        )
        self.report.data = self.data.describe()

    @property
    def repeats(self) -> int:
        """Runs of each loss."""
        return 2 if self.quick else 20

    def steps(self) -> Sequence[Step]:
        """Return the steps: losses, weights, lambda and C, bias."""
        return (
            ("five losses", self.losses),
            ("weights", self.weights),
            ("lambda and C", self.strengths),
            ("bias multiplier", self.bias),
        )

    def problem(self, loss: Loss, multiplier: float = 1.0) -> Problem:
        """Return the problem in VLFeat's form."""
        return self.data.problem(loss, lam=LAM, intercept="regularized", scaling=multiplier)

    def losses(self) -> None:
        """Show objective, dual and gap of each loss along the epochs."""
        section = self.report.section("Objective, dual and gap")
        table = []
        found = []
        for name, loss in LOSSES.items():
            problem = self.problem(loss)
            rows_of_loss = []
            limits = Limits(tol=1e-8, max_epochs=30.0 if self.quick else 300.0, certify_every=1.0)
            warm_up(problem, SDCA())
            for seed in range(self.repeats):
                records, result = run_solver(self.data, problem, SDCA(), limits, seed=seed)
                rows_of_loss += [record | {"options": name} for record in records]
            table.append(self._row(name, result))
            trace = tidy_trace(rows_of_loss)
            section.items.append(closing_chart(trace, "epochs", f"{name}: objective and dual"))
            found += rows_of_loss
        whole = tidy_trace(found)
        charts = []
        for quantity, against in (
            ("gap", "epochs"),
            ("gap", "seconds"),
            ("suboptimality", "epochs"),
        ):
            title = f"{quantity} of the five losses against {against}"
            chart = curve_chart(whole, quantity, against, title)
            charts.append(replace(chart, series=restyle(chart.series)))
        columns = [
            "loss",
            "objective",
            "dual",
            "gap",
            "epochs",
            "w1",
            "w2",
            "bias",
            "training error (%)",
        ]
        section.items[:0] = [
            TextTable(columns, table, "Each run until its relative gap was 1e-8 or 300 epochs."),
            *charts,
        ]
        slowest = max(table, key=lambda row: float(row[4]))
        closed = sum(float(row[3]) <= CLOSED for row in table)
        self.say(
            f"{closed} of {len(table)} losses close their gap to {CLOSED:g}: the slowest "
            f"({slowest[0]}) ends after "
            f"{slowest[4]} epochs; the largest gap is {max(float(row[3]) for row in table):.1e}."
        )

    def _row(self, name: str, result: FitResult) -> list[str]:
        """Return the table's row of a loss."""
        proof = result.certificate
        error, _ = self.data.errors(result.coef, result.intercept)
        numbers = [
            f"{proof.primal:.8f}",
            f"{proof.dual:.8f}",
            f"{proof.gap:.1e}",
            f"{result.epochs:.0f}",
        ]
        return [name, *numbers, *_weights(result), percent(error)]

    def weights(self) -> None:
        """Show the weights along the epochs, and the final decision line."""
        section = self.report.section("Weights")
        epochs = list(np.unique(np.round(np.geomspace(1, 100, 40))))
        for name, loss in LOSSES.items():
            path = np.array([point.w for _, point in iterates(self.problem(loss), SDCA(), epochs)])
            series = tuple(
                Series(label, np.array(epochs), path[:, place], style=place)
                for place, label in enumerate(("w1", "w2", "bias"))
            )
            section.items.append(Chart(f"{name}: weights", "epochs", "weight", series, x_log=True))
        result = fit(self.problem(Hinge()), SDCA(), Limits(tol=1e-6))
        section.items.append(
            plane_chart(
                self.data.X,
                self.data.y,
                lambda rows: rows @ result.coef + result.intercept,
                "hinge: decision function",
                names=self.data.classes,
                alpha=result.alpha,
            )
        )

    def strengths(self) -> None:
        """Compare lambda with C = 1 / (lambda n): one model, two scales of the objective."""
        lines = []
        largest = 0.0
        for name, loss in LOSSES.items():
            by_lam = self.problem(loss)
            by_C = self.data.problem(loss, C=by_lam.C, intercept="regularized")
            limits = Limits(tol=1e-8, max_epochs=300.0)
            first = fit(by_lam, SDCA(), limits)
            second = fit(by_C, SDCA(), limits)
            difference = float(np.abs(first.coef - second.coef).max())
            largest = max(largest, difference)
            ratio = second.certificate.primal / first.certificate.primal
            lines.append(
                {
                    "loss": name,
                    "lambda": f"{LAM:g}",
                    "C = 1/(lambda n)": f"{by_lam.C:g}",
                    "largest difference of a weight": f"{difference:.1e}",
                    "objectives, C : lambda": f"{ratio:.6f}",
                    "1/lambda": f"{1 / LAM:g}",
                }
            )
        words = (
            "Both forms are the same problem; the objective of the C form is 1/lambda times "
            "the other one."
        )
        self.report.section("lambda and C", Prose(words), TextTable.from_records(lines))
        self.say(
            f"lambda = {LAM:g} and C = 1/(lambda n) give the same weights: they differ by "
            f"{largest:.1e} at most."
        )

    def bias(self) -> None:
        """Show the bias for larger and larger multipliers, and the bias that is free of penalty."""
        limits = Limits(tol=0.0, max_epochs=30.0 if self.quick else 3000.0)
        free = fit(
            self.data.problem(Hinge(), lam=LAM, intercept="free"),
            SDCA(),
            Limits(tol=1e-6, max_epochs=5000.0),
        )
        results = {}
        for multiplier in MULTIPLIERS:
            problem = self.problem(Hinge(), multiplier)
            results[f"{multiplier:g}"] = fit(problem, SDCA(), limits)
        results["free"] = free
        lines = []
        for name, result in results.items():
            proof = result.certificate
            ends = [f"{proof.primal:.8f}", f"{proof.relative_gap:.1e}", f"{result.epochs:.0f}"]
            lines.append([name, *_weights(result), *ends])
        columns = ["bias multiplier", "w1", "w2", "bias", "objective", "relative gap", "epochs"]
        caption = (
            "Hinge. The larger the constant feature, the less its weight is penalised; the bias "
            "goes to that of the "
            "exactly free one. But the norm of the rows grows with it, and SDCA slows down: see "
            "the gaps. All "
            "runs have the same epochs, the free one ends at a relative gap of 1e-6."
        )
        self.report.section("Bias multiplier", TextTable(columns, lines, caption))
        self.say(
            f"With multipliers {', '.join(line[0] for line in lines[:-1])} the bias is "
            f"{', '.join(line[3] for line in lines[:-1])}; exactly free it is {lines[-1][3]}."
        )


def _weights(result: FitResult) -> list[str]:
    """Return weights and bias as text."""
    return [f"{value:.5f}" for value in (*result.coef, result.intercept)]


def restyle(series: Sequence[Series]) -> tuple[Series, ...]:
    """Return solid lines with the colour and the name of their loss."""
    names = list(LOSSES)
    lines = []
    for line in series:
        # The name is that of the solver with the loss in brackets.
        name = line.name.split("(")[1].split(")")[0]
        lines.append(replace(line, name=name, style=names.index(name), dash="solid"))
    return tuple(lines)
