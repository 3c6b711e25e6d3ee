"""One-against-one Pegasos on Fashion-MNIST: 45 classifiers, a million iterations each.

Published: training accuracies of some pairs, 80.2 % test accuracy (scikit-learn 80.37 %), 5 to 7
seconds a pair and 3.5 to 5 minutes in all. The report does not state its lambda; its program has
lambda = 1 on pixels from 0 to 255, with a constant feature of 1 and without projection, and judges
w_(T+1). On pixels in [0, 1] that is lambda = 1 / 255^2 with a constant feature of 1 / 255: the same
scores.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from sklearn import svm

from experiments.datasets import images
from experiments.experiment import Experiment, Step, percent, time_fit
from saddlesvm import SVC, LinearSVC, Pegasos
from saddlesvm.lab import (
    Chart,
    Prose,
    Series,
    TextTable,
    iterates,
    make_dataset,
    usable_cores,
    warm_up,
)
from saddlesvm.lab.figures import confusion_grid
from saddlesvm.losses import Hinge

PUBLISHED_PAIRS = {
    (1, 0): 99.61,
    (2, 0): 91.23,
    (2, 1): 99.99,
    (3, 0): 91.47,
    (3, 1): 98.46,
    (3, 2): 98.31,
    (4, 0): 99.02,
}
PUBLISHED_TEST = 80.2
WAVERING = ((2, 0), (3, 0))  # the pairs whose last iterate moves by percents from seed to seed
SCALE = 255.0  # the program works on pixels from 0 to 255, ours in [0, 1]
CLASSES = (
    "T-shirt",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Boot",
)
LAM = 1.0 / SCALE**2  # the published one
# Values of lambda of the machines near the optimum.
WEAK = 1e-4
STRONG = 1e-3
ITERATIONS = 1_000_000
SEEDS = {LAM: 4, 1e-4: 2, 1e-6: 2}  # runs for each lambda
SKLEARN_SEEDS = 2  # runs of scikit-learn for each of its settings
MANY_SEEDS = 40  # runs of each wavering pair
PUBLISHED_MINUTES = "3.5 to 5 minutes"
WARM_ROWS = 100
OUTPUTS = ("last", "tail_average", "average")
PUBLISHED_RUN = Pegasos(output="last", sampling="replacement")
PUBLISHED_SKLEARN = 80.37
FEW_ITERATIONS = (2, 10)  # of the program's 1,000
Part = tuple[np.ndarray, np.ndarray]


def pair(X: np.ndarray, y: np.ndarray, first: int, second: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of two classes."""
    chosen = np.flatnonzero(np.isin(y, (first, second)))
    return X[chosen], y[chosen]


def pair_accuracies(model: Any, X: np.ndarray, y: np.ndarray) -> dict[tuple[int, int], float]:
    """Return the training accuracy of each pair on its own rows, by (later, earlier) class."""
    found = {}
    for place, (first, second) in enumerate(combinations(range(len(CLASSES)), 2)):
        chosen = np.flatnonzero(np.isin(y, (first, second)))
        scores = X[chosen] @ model.coef_[place].astype(X.dtype) + model.intercept_[place]
        found[second, first] = float((np.where(scores > 0.0, second, first) == y[chosen]).mean())
    return found


@dataclass(frozen=True)
class RunAccuracies:
    """A run of all pairs: its test accuracy, and the pairs' accuracies on their training rows."""

    test: float
    pairs: dict[tuple[int, int], float]


def write_range(values: Sequence[float]) -> str:
    """Return the smallest and the largest of some shares, in percent."""
    return f"{percent(min(values))} to {percent(max(values))}"


def pair_tables(runs: Sequence[RunAccuracies]) -> tuple[TextTable, TextTable]:
    """Return a table of the pairs with published figures, and a table of the other pairs."""
    known = []
    others = []
    for second, first in sorted(runs[0].pairs):
        values = [run.pairs[second, first] for run in runs]
        cells = [
            f"{second}-{first}  {CLASSES[second]}, {CLASSES[first]}",
            percent(values[0]),
            write_range(values),
        ]
        if (second, first) in PUBLISHED_PAIRS:
            known.append([cells[0], f"{PUBLISHED_PAIRS[second, first]:.2f}", *cells[1:]])
        else:
            others.append(cells)
    measured = ["seed 0 (%)", f"{len(runs)} seeds (%)"]
    return (
        TextTable(
            ["pair", "published (%)", *measured],
            known,
            "Training accuracy of the pairs that were published.",
        ),
        TextTable(["pair", *measured], others, "Training accuracy of the other pairs."),
    )


def strength_table(runs: dict[float, Sequence[RunAccuracies]]) -> TextTable:
    """Return a table of all pairs and of the wavering pairs, over lambda and a few seeds."""
    rows = []
    for lam, judged in runs.items():
        shown = [
            [run.test for run in judged],
            *([run.pairs[pair] for run in judged] for pair in WAVERING),
        ]
        rows.append(
            [f"{lam:.1e}", f"{lam * SCALE**2:.2g}", f"{len(judged)}", *map(write_range, shown)]
        )
    names = [
        f"pair {second}-{first} (published {PUBLISHED_PAIRS[second, first]:.2f})"
        for second, first in WAVERING
    ]
    columns = ["lambda, pixels in [0, 1]", "pixels in [0, 255]", "seeds"]
    columns += [f"test accuracy (published {PUBLISHED_TEST})", *names]
    return TextTable(columns, rows, "The published run over seeds, w_(T+1) as it is, in percent.")


def wavering_table(found: dict[tuple[int, int], np.ndarray]) -> tuple[TextTable, str]:
    """Return a table of the wavering pairs over many seeds, and a sentence about it."""
    rows = []
    said = []
    for (second, first), values in found.items():
        published = PUBLISHED_PAIRS[second, first]
        below = float((np.round(100.0 * values, 2) <= published).mean())
        inside = below > 0.0 and published <= 100.0 * values.max()
        said.append(
            f"{second}-{first} ({published:.2f} %) {'inside' if inside else 'outside'} of "
            f"{write_range(values.tolist())} %"
        )
        quantiles = np.quantile(values, (0.0, 0.05, 0.5, 1.0))
        shown = [percent(float(quantile)) for quantile in quantiles]
        rows.append([f"{second}-{first}", f"{published:.2f}", *shown, f"{100.0 * below:.0f} %"])
    seeds = len(next(iter(found.values())))
    columns = [
        "pair",
        "published (%)",
        "least",
        "5 % quantile",
        "median",
        "largest",
        "seeds at or below the published",
    ]
    caption = f"Training accuracy of w_(T+1) over {seeds} seeds of the published run (%)."
    sentence = f"Over {seeds} seeds of the published run the pairs are: {', '.join(said)}."
    return TextTable(columns, rows, caption), sentence


def objective(model: Any) -> float:
    """Return the mean objective of the pairs."""
    return float(np.mean([proof.primal for proof in model.certificates_]))


def sklearn_runs(train: Part, test: Part, seeds: int) -> tuple[TextTable, str]:
    """Return a table of test accuracies over seeds, and a sentence about it.

    Parameters
    ----------
    train, test : pair of ndarrays
        Images in [0, 1], and their labels.
    seeds : int
        Runs of each setting.
    """
    scale = train[0].dtype.type(SCALE)
    X = train[0].astype(np.float64) * scale
    X_test = test[0] * scale
    rows = []
    found = []
    for iterations in FEW_ITERATIONS:
        scores = []
        took = 0.0
        for seed in range(seeds):
            model, seconds = time_fit(
                svm.LinearSVC(dual=True, max_iter=iterations, random_state=seed), X, train[1]
            )
            scores.append(float(model.score(X_test, test[1])))
            took += seconds / seeds
        found += scores
        rows.append([f"{iterations}", write_range(scores), f"{took:.1f}"])
    columns = ["iterations", f"test accuracy, % (published {PUBLISHED_SKLEARN})", "seconds a run"]
    caption = (
        f"LinearSVC() on pixels from 0 to 255, {seeds} seeds each; the program allows "
        "1,000 iterations."
    )
    inside = min(found) <= PUBLISHED_SKLEARN / 100.0 <= max(found)
    words = "lies in the range" if inside else "is not in the range"
    return TextTable(columns, rows, caption), (
        f"scikit-learn's published {PUBLISHED_SKLEARN} % {words} of its unfinished models here, "
        f"{write_range(found)} %."
    )


@dataclass(frozen=True)
class Variant:
    """A line of the table of variants."""

    name: str
    solver: Pegasos
    options: dict[str, Any]


VARIANTS = (
    Variant("as published", PUBLISHED_RUN, {}),
    Variant("tail average", Pegasos(sampling="replacement"), {}),
    Variant("rows in random order", Pegasos(), {}),
    Variant("batches of 10", Pegasos(batch_size=10), {}),
    Variant("batches of 100", Pegasos(batch_size=100), {}),
    Variant("projection", Pegasos(projection=True), {}),
    Variant("constant feature of 1, not 1 / 255", Pegasos(), {"intercept_scaling": 1.0}),
    Variant("no bias", Pegasos(), {"fit_intercept": False}),
    Variant("bias, free", Pegasos(), {"intercept": "free"}),
    Variant("lambda = 1e-3", Pegasos(), {"lam": 1e-3}),
    Variant("lambda = 1e-4", Pegasos(), {"lam": 1e-4}),
)


class PegasosFashion(Experiment):
    """The one-vs-one Pegasos report, repeated."""

    name: ClassVar[str] = "pegasos-fashion"
    title: ClassVar[str] = "Pegasos on Fashion-MNIST, one against one"

    def steps(self) -> Sequence[Step]:
        """Return the steps: the published run, one pair, variants, kernels, the optimum, seeds."""
        return (
            ("45 pairs, 1,000,000 iterations each", self.repeat_published),
            ("pair 0-1", self.one_pair),
            ("variants", self.variants),
            ("kernels", self.kernels),
            ("near the optimum", self.optimum),
            ("lambda and seeds", self.strengths),
            ("scikit-learn", self.sklearn),
        )

    @property
    def iterations(self) -> int:
        """Iterations of each pair."""
        return 5_000 if self.quick else ITERATIONS

    @cached_property
    def train(self) -> tuple[np.ndarray, np.ndarray]:
        """Training images in [0, 1], and their labels."""
        X, y = images("fashion-mnist", "train", self.options.data)
        step = 10 if self.quick else 1
        X = np.ascontiguousarray(X[::step])
        y = y[::step]
        self.report.data = [
            ("data", "Fashion-MNIST, pixels in [0, 1]"),
            ("training rows", f"{len(y):,} x 784"),
        ]
        return X, y

    @cached_property
    def test(self) -> tuple[np.ndarray, np.ndarray]:
        """Test images and labels."""
        return images("fashion-mnist", "test", self.options.data)

    def fit_pairs(self, solver: Pegasos, iterations: int, **options: Any) -> tuple[Any, float]:
        """Fit a model of the last points after `iterations` iterations of each pair; time it."""
        X, y = self.train
        rows_a_pair = 2 * len(y) / len(CLASSES)
        passes: Any = iterations * solver.batch_size / rows_a_pair
        settings: dict[str, Any] = {
            "lam": LAM,
            "intercept_scaling": 1.0 / SCALE,
            "random_state": 0,
        } | options
        model = LinearSVC(
            multi_class="ovo",
            loss="hinge",
            solver=solver,
            tol=0.0,
            max_iter=passes,
            keep="last",
            n_jobs=min(usable_cores(), 2),
            **settings,
        )
        return time_fit(model, X, y)

    def accuracies_at(self, lam: float) -> list[RunAccuracies]:
        """Return the accuracies of the published run over the seeds."""
        if lam not in self.runs:
            self.runs[lam] = []
        while len(self.runs[lam]) < (1 if self.quick else SEEDS[lam]):
            seed = len(self.runs[lam])
            model, _ = self.fit_pairs(PUBLISHED_RUN, self.iterations, lam=lam, random_state=seed)
            self.runs[lam].append(self.accuracies_of(model))
        return self.runs[lam]

    def accuracies_of(self, model: Any) -> RunAccuracies:
        """Return the accuracy on the test part, and of the pairs on the training part."""
        return RunAccuracies(float(model.score(*self.test)), pair_accuracies(model, *self.train))

    @cached_property
    def runs(self) -> dict[float, list[RunAccuracies]]:
        """The results of the runs of each lambda."""
        return {}

    def repeat_published(self) -> None:
        """Repeat the published setting, w_(T+1): total, pairs, confusion, time."""
        # A short run first: it loads compiled code.
        self.fit_pairs(PUBLISHED_RUN, 20)
        began = time.process_time()
        model, took = self.fit_pairs(PUBLISHED_RUN, self.iterations)
        processor = time.process_time() - began
        predicted = model.predict(self.test[0])
        names = np.array(CLASSES)
        grid = confusion_grid(
            names[self.test[1]], names[predicted], CLASSES, "Confusion matrix, test images"
        )
        self.runs[LAM] = [self.accuracies_of(model)]
        runs = self.accuracies_at(LAM)
        totals = [run.test for run in runs]
        self.report.section(
            "The published run",
            TextTable(
                ["", "published", "seed 0", f"{len(runs)} seeds"],
                [
                    [
                        "test accuracy (%)",
                        f"{PUBLISHED_TEST}",
                        percent(totals[0]),
                        write_range(totals),
                    ],
                    ["mean objective of the pairs", "", f"{objective(model):.3g}", ""],
                ],
                f"{self.iterations:,} iterations a pair, w_(T+1), constant feature, no "
                f"projection, lambda = 1 on "
                "pixels in [0, 255].",
            ),
            *pair_tables(runs),
            TextTable(
                ["", "published", "measured"],
                [
                    [
                        "seconds a pair",
                        "5 to 7",
                        f"{model.seconds_solving_ / len(model.coef_):.2f}",
                    ],
                    ["45 pairs", PUBLISHED_MINUTES, f"{took:.1f} s"],
                    ["processor time, all cores", "", f"{processor:.1f} s"],
                ],
                "Time of the run with seed 0, its certificates included.",
            ),
            grid,
        )
        self.say(
            f"w_(T+1) of the published run has {write_range(totals)} % test accuracy over "
            f"{len(runs)} seeds (published: "
            f"{PUBLISHED_TEST} %)."
        )
        self.say(
            f"45 pairs of {self.iterations:,} iterations took {took:.1f} s with certificates "
            f"(published: "
            f"{PUBLISHED_MINUTES}).",
            timed=True,
        )

    def one_pair(self) -> None:
        """Show the accuracy against iterations for the pair 0-1, training and test."""
        train, test = (pair(*part, 0, 1) for part in (self.train, self.test))
        data = make_dataset(*train, test=test, positive=1, name="pair 0-1")
        problem = data.problem(Hinge(), lam=LAM)
        counts = np.unique(np.geomspace(10, self.iterations, 60).round())
        series = []
        for style, output in enumerate(OUTPUTS):
            solver = Pegasos(output=output, sampling="replacement")
            warm_up(problem, solver)
            points = iterates(problem, solver, list(counts / problem.n))
            weights = np.array([point.w for _, point in points], dtype=np.float64)
            on_train, on_test = data.errors_of(weights[:, :-1], np.zeros(counts.size))
            word = output.replace("_", " ")
            series.append(Series(f"{word}, training", counts, 1 - on_train, style=style))
            series.append(Series(f"{word}, test", counts, 1 - on_test, style=style, dash="dash"))
        caption = (
            f"Published for this pair: {PUBLISHED_PAIRS[1, 0]} % of the training images after "
            "1,000,000 iterations."
        )
        title = "Pair 0-1: accuracy against iterations"
        chart = Chart(title, "iterations", "accuracy", tuple(series), x_log=True, caption=caption)
        self.report.section("One pair in detail", chart)

    def variants(self) -> None:
        """Compare batches, projection, bias and lambda, with a tenth of the row visits each."""
        visits = self.iterations // 10
        rows = []
        for variant in VARIANTS:
            model, took = self.fit_pairs(
                variant.solver, visits // variant.solver.batch_size, **variant.options
            )
            train, test = (float(model.score(*part)) for part in (self.train, self.test))
            rows.append(
                {
                    "variant": variant.name,
                    "training accuracy (%)": percent(train),
                    "test accuracy (%)": percent(test),
                    "seconds, 45 pairs": f"{took:.2f}",
                    "mean objective": f"{objective(model):.4f}",
                }
            )
        caption = (
            f"{visits:,} row visits a pair; where nothing else is said, the published setting "
            f"with the tail average of "
            "rows in random order. Each solver's own point."
        )
        self.report.section(
            "Mini-batches, projection, bias, lambda", TextTable.from_records(rows, caption)
        )
        best = max(rows, key=lambda row: float(row["test accuracy (%)"]))
        said = (
            f"the best variant ({best['variant']}) has {best['test accuracy (%)']} % test accuracy."
        )
        self.say(f"With a tenth of the row visits, {said}")

    def kernels(self) -> None:
        """Compare kernel machines on a part of the data."""
        X, y = self.train
        part = slice(None, 300 if self.quick else 3_000)
        limits: dict[str, Any] = {
            "max_iter": 1 if self.quick else 5,
            "tol": 1e-3,
            "n_jobs": 2,
            "random_state": 0,
        }
        models = {
            "kernel Pegasos, rbf": SVC(solver="kernel-pegasos", lam=WEAK, **limits),
            "block decomposition, rbf": SVC(lam=WEAK, **limits),
            "linear Pegasos": LinearSVC(
                multi_class="ovo",
                loss="hinge",
                solver="pegasos",
                lam=WEAK,
                fit_intercept=False,
                **limits,
            ),
        }
        rows = []
        for name, model in models.items():
            time_fit(model, X[:WARM_ROWS], y[:WARM_ROWS])  # loads compiled code
            fitted, took = time_fit(model, X[part], y[part])
            train = float(fitted.score(X[part], y[part]))
            test = float(fitted.score(*self.test))
            rows.append([name, percent(train), percent(test), f"{took:.1f}"])
        columns = ["method", "training accuracy (%)", "test accuracy (%)", "seconds"]
        caption = f"The first {len(y[part]):,} training images, 5 epochs."
        self.report.section("Kernels, on a part of the data", TextTable(columns, rows, caption))

    def optimum(self) -> None:
        """Show the accuracy near the optimum, and the proven gap."""
        tol = 5e-1 if self.quick else 1e-2
        seconds = 0.02 if self.quick else 40.0
        rows = []
        for lam in (WEAK,) if self.quick else (STRONG, WEAK, LAM):
            model = LinearSVC(
                multi_class="ovo",
                loss="hinge",
                lam=lam,
                fit_intercept=False,
                tol=tol,
                max_time=seconds,
                n_jobs=2,
                random_state=0,
            )
            fitted, took = time_fit(model, *self.train)
            train, test = (float(fitted.score(*part)) for part in (self.train, self.test))
            worst = max(proof.relative_gap for proof in fitted.certificates_)
            gap = fitted.certificate_.relative_gap
            rows.append(
                {
                    "lambda": f"{lam:.2g}",
                    "mean objective": f"{objective(fitted):.4f}",
                    "relative gap, all pairs": f"{gap:.1e}",
                    "worst pair": f"{worst:.1e}",
                    "training accuracy (%)": percent(train),
                    "test accuracy (%)": percent(test),
                    "seconds": f"{took:.1f}",
                }
            )
        words = (
            "The objective that Pegasos minimises, brought down to a certified gap where the "
            "time allows. A better "
            "objective is not a better classifier by itself: what the iterations leave undone "
            "acts as regularisation."
        )
        self.report.section("Near the optimum", Prose(words), TextTable.from_records(rows))
        for row in rows:
            how = "certified"
            if float(row["worst pair"]) > tol:
                how = f"stopped by its time limit, not certified to {tol:g},"
            self.say(
                f"lambda = {row['lambda']}: a model {how} at a gap of "
                f"{row['relative gap, all pairs']} (worst pair {row['worst pair']}) after "
                f"{row['seconds']} s has {row['test accuracy (%)']} % test accuracy.",
                timed=True,
            )

    def sklearn(self) -> None:
        """Show scikit-learn's published accuracy beside the accuracies of its runs here."""
        found, sentence = sklearn_runs(self.train, self.test, 1 if self.quick else SKLEARN_SEEDS)
        self.report.section("scikit-learn's run", found)
        self.say(sentence)

    def strengths(self) -> None:
        """Show the published run over lambda and seeds: test accuracy, and two wavering pairs."""
        over_lambda = strength_table(
            {lam: self.accuracies_at(lam) for lam in sorted(SEEDS, reverse=True)}
        )
        over_seeds, sentence = wavering_table(
            {chosen: self.many_seeds(*chosen) for chosen in WAVERING}
        )
        self.report.section("Over lambda and seeds", over_lambda, over_seeds)
        self.say(sentence)

    def many_seeds(self, second: int, first: int) -> np.ndarray:
        """Return the training accuracies of a pair over many seeds of the published run."""
        X, y = pair(*self.train, first, second)
        passes: Any = self.iterations / len(y)
        model = LinearSVC(
            loss="hinge",
            solver=PUBLISHED_RUN,
            lam=LAM,
            intercept_scaling=1.0 / SCALE,
            tol=0.0,
            max_iter=passes,
            keep="last",
        )
        seeds = range(2 if self.quick else MANY_SEEDS)
        scores = []
        for seed in seeds:
            fitted, _ = time_fit(model.set_params(random_state=seed), X, y)
            scores.append(fitted.score(X, y))
        return np.array(scores)
