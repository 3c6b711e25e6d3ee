"""The one-against-one classifiers of Fashion-MNIST pair by pair, beside the figures that were published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.svm import LinearSVC

from saddlesvm.lab.experiments.reproduction import percent, timed
from saddlesvm.lab.report import Table

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
CLASSES = ("T-shirt", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Boot")


def pair(X: np.ndarray, y: np.ndarray, first: int, second: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows of two classes."""
    chosen = np.flatnonzero(np.isin(y, (first, second)))
    return X[chosen], y[chosen]


def pair_accuracies(model: Any, X: np.ndarray, y: np.ndarray) -> dict[tuple[int, int], float]:
    """Training accuracy of each pair's classifier on its own rows, by (later, earlier) class."""
    found = {}
    for place, (first, second) in enumerate(combinations(range(len(CLASSES)), 2)):
        chosen = np.flatnonzero(np.isin(y, (first, second)))
        scores = X[chosen] @ model.coef_[place].astype(X.dtype) + model.intercept_[place]
        found[second, first] = float((np.where(scores > 0.0, second, first) == y[chosen]).mean())
    return found


@dataclass(frozen=True)
class RunAccuracies:
    """One run of all pairs: its accuracy on the test part, and those of the pairs on their own training rows."""

    test: float
    pairs: dict[tuple[int, int], float]


def ranged(values: Sequence[float]) -> str:
    """The least and the largest of some shares, in percent."""
    return f"{percent(min(values))} to {percent(max(values))}"


def pair_tables(runs: Sequence[RunAccuracies]) -> tuple[Table, Table]:
    """The pairs with a published figure beside it, and the others: of the first run, and over all."""
    known, others = [], []
    for second, first in sorted(runs[0].pairs):
        values = [run.pairs[second, first] for run in runs]
        cells = [f"{second}-{first}  {CLASSES[second]}, {CLASSES[first]}", percent(values[0]), ranged(values)]
        if (second, first) in PUBLISHED_PAIRS:
            known.append([cells[0], f"{PUBLISHED_PAIRS[second, first]:.2f}", *cells[1:]])
        else:
            others.append(cells)
    measured = ["seed 0 (%)", f"{len(runs)} seeds (%)"]
    return (
        Table(["pair", "published (%)", *measured], known, "Training accuracy of the pairs that were published."),
        Table(["pair", *measured], others, "Training accuracy of the other pairs."),
    )


def strength_table(runs: dict[float, Sequence[RunAccuracies]]) -> Table:
    """Total and wavering pairs over lambda and a few seeds."""
    rows = []
    for lam, judged in runs.items():
        shown = [[run.test for run in judged], *([run.pairs[pair] for run in judged] for pair in WAVERING)]
        rows.append([f"{lam:.1e}", f"{lam * SCALE**2:.2g}", f"{len(judged)}", *map(ranged, shown)])
    names = [f"pair {second}-{first} (published {PUBLISHED_PAIRS[second, first]:.2f})" for second, first in WAVERING]
    columns = ["lambda, pixels in [0, 1]", "pixels in [0, 255]", "seeds"]
    columns += [f"test accuracy (published {PUBLISHED_TEST})", *names]
    return Table(columns, rows, "The published run over seeds, w_(T+1) as it is, in percent.")


def wavering_table(found: dict[tuple[int, int], np.ndarray]) -> tuple[Table, str]:
    """The wavering pairs over many seeds of the published run, and whether the published figures are among them."""
    rows, said = [], []
    for (second, first), values in found.items():
        published = PUBLISHED_PAIRS[second, first]
        below = float((np.round(100.0 * values, 2) <= published).mean())
        inside = below > 0.0 and published <= 100.0 * values.max()
        said.append(
            f"{second}-{first} ({published:.2f} %) {'inside' if inside else 'outside'} of {ranged(values.tolist())} %"
        )
        shown = [percent(float(one)) for one in np.quantile(values, (0.0, 0.05, 0.5, 1.0))]
        rows.append([f"{second}-{first}", f"{published:.2f}", *shown, f"{100.0 * below:.0f} %"])
    seeds = len(next(iter(found.values())))
    columns = ["pair", "published (%)", "least", "5 % quantile", "median", "largest", "seeds at or below the published"]
    caption = f"Training accuracy of w_(T+1) over {seeds} seeds of the published run (%)."
    return Table(columns, rows, caption), f"Over {seeds} seeds of the published run the pairs are: {', '.join(said)}."


def objective(model: Any) -> float:
    """Mean objective of the pairs."""
    return float(np.mean([proof.primal for proof in model.certificates_]))


PUBLISHED_SKLEARN = 80.37
ITERATIONS = (2, 10)  # of the program's 1,000
Part = tuple[np.ndarray, np.ndarray]


def sklearn_runs(train: Part, test: Part, seeds: int) -> tuple[Table, str]:
    """Test accuracies over seeds after a few numbers of iterations, and what they say.

    Parameters
    ----------
    train, test : pair of ndarrays
        Images in [0, 1], and their labels.
    seeds : int
        Runs of each setting.
    """
    scale = train[0].dtype.type(SCALE)
    X, X_test = train[0].astype(np.float64) * scale, test[0] * scale
    rows, found = [], []
    for iterations in ITERATIONS:
        scores, took = [], 0.0
        for seed in range(seeds):
            model, seconds = timed(LinearSVC(dual=True, max_iter=iterations, random_state=seed), X, train[1])
            scores.append(float(model.score(X_test, test[1])))
            took += seconds / seeds
        found += scores
        rows.append([f"{iterations}", ranged(scores), f"{took:.1f}"])
    columns = ["iterations", f"test accuracy, % (published {PUBLISHED_SKLEARN})", "seconds a run"]
    caption = f"LinearSVC() on pixels from 0 to 255, {seeds} seeds each; the program allows 1,000 iterations."
    inside = min(found) <= PUBLISHED_SKLEARN / 100.0 <= max(found)
    words = "lies in the range" if inside else "is not in the range"
    return Table(columns, rows, caption), (
        f"scikit-learn's published {PUBLISHED_SKLEARN} % {words} of its unfinished models here, {ranged(found)} %."
    )
