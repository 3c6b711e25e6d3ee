"""The picture of docs/how/gap-and-accuracy.md: test errors along a fit, against the gap that is proven.

    python -m benchmarks.makers.gap_picture [--data DIR]

Fits the hinge by dual coordinate descent, one row of a table for each limit of epochs, and prints the table. Without
``--data`` only the sets that scikit-learn and this package bundle are drawn; with it, a9a and RCV1 too.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks.makers.front_pictures import save
from saddlesvm import LinearSVC, NotCertifiedWarning
from saddlesvm.data import load_bundled, read

EPOCHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
SEEDS = range(5)
SMALLEST = 1e-5  # the gap at which a fit ends
AT = (0.1, 1e-2, 1e-3, 1e-4)  # gaps of the printed table


class Split(NamedTuple):
    """Training and test rows of a set."""

    name: str
    X: Any
    y: Any
    X_test: Any
    y_test: Any


class Step(NamedTuple):
    """One fit: the seed, the proven relative gap, and the share of test rows that are wrong."""

    seed: int
    gap: float
    error: float


def halves(name: str, X: Any, y: Any) -> Split:
    """Half of the rows for training, columns scaled by it."""
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
    scaler = StandardScaler().fit(X)
    return Split(name, scaler.transform(X), y, scaler.transform(X_test), y_test)


def splits(data: Path | None) -> list[Split]:
    """The bundled sets, and those of the folder."""
    heart = load_bundled("heart")
    digits = load_digits()
    found = [
        halves("heart", heart.X, heart.y),
        halves("breast cancer", *load_breast_cancer(return_X_y=True)),
        halves("digits, even or odd", digits.data, digits.target % 2),
    ]
    for name, stem in () if data is None else (("a9a", "a9a"), ("RCV1", "rcv1-binary")):
        train = read(data / f"{stem}.bz2")
        test = read(data / f"{stem}.t.bz2", n_features=train.X.shape[1])
        found.append(Split(name, train.X, train.y, test.X, test.y))
    return found


def steps(split: Split) -> list[Step]:
    """Fits of growing numbers of epochs, from each seed, until the smallest gap is proven."""
    found = []
    for seed in SEEDS:
        for epochs in EPOCHS:
            model = LinearSVC(loss="hinge", C=1.0, solver="dcd", max_iter=epochs, tol=SMALLEST, random_state=seed).fit(
                split.X, split.y
            )
            gap = model.certificate_.relative_gap
            found.append(Step(seed, gap, 1.0 - model.score(split.X_test, split.y_test)))
            if gap <= SMALLEST:
                break
    return found


def first_below(found: list[Step], gap: float) -> np.ndarray:
    """Each seed's test error where its gap is at most `gap` for the first time."""
    firsts = [next((one.error for one in found if one.seed == seed and one.gap <= gap), np.nan) for seed in SEEDS]
    return np.array(firsts)


def table(sets: dict[str, list[Step]]) -> str:
    """Test errors in per cent at the first fit below each gap: the mean over the seeds, the least and the largest."""
    head = ["data", *(f"gap <= {gap:g}" for gap in (*AT, SMALLEST))]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name, found in sets.items():
        errors = [100.0 * first_below(found, gap) for gap in (*AT, SMALLEST)]
        cells = [f"{one.mean():.2f} ({one.min():.2f} to {one.max():.2f})" for one in errors]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(axes: Any, sets: dict[str, list[Step]], ink: tuple[str, str, str]) -> None:
    """A panel a set: a dot a fit, and the error at the optimum as a line."""
    text, dots, optimum = ink
    for ax, (name, found) in zip(axes, sets.items(), strict=True):
        final = 100.0 * first_below(found, SMALLEST).mean()
        ax.axvspan(SMALLEST / 3, 1e-3, color=optimum, alpha=0.12, linewidth=0)
        ax.axhline(final, color=optimum, linewidth=1.8)
        gaps = [max(one.gap, SMALLEST / 2) for one in found]
        errors = [100.0 * one.error for one in found]
        ax.scatter(gaps, errors, s=16, color=dots)
        ax.set(xscale="log", xlim=(3.0, SMALLEST / 3))
        ax.set_xticks([1.0, 1e-1, 1e-3, 1e-5], ["1", "0.1", "1e-3", "1e-5"])
        ax.set_title(name, color=text, fontsize=11)
        ax.minorticks_off()
    axes[0].set_ylabel("test error, %", color=text)
    axes[len(axes) // 2].set_xlabel("proven relative gap (log scale; the shaded part is below 1e-3)", color=text)


def main() -> None:
    """Fit, print the table, and draw the picture in light and in dark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with a9a and rcv1-binary as LIBSVM text")
    warnings.simplefilter("ignore", NotCertifiedWarning)
    sets = {split.name: steps(split) for split in splits(parser.parse_args().data)}
    print(table(sets))
    save("accuracy", (10.0, 2.8), draw, sets, columns=len(sets))


if __name__ == "__main__":
    main()
