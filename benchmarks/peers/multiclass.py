"""Many classes: Fashion-MNIST three ways, Crammer and Singer against LIBLINEAR, published Pegasos, 1,000 classes.

    python -m benchmarks.peers.multiclass --data FOLDER           figures 1, 2, 3 and 5
    python -m benchmarks.peers.multiclass --data FOLDER --full    and 1,000 classes x 100,000 rows x 256 features

The second takes minutes.
FOLDER holds ``fashion-mnist`` with its four idx files, compressed with gzip. Kernels are compiled before the clock
starts; runs of ours and of the peer take turns; everything runs in one thread but for Pegasos, which has two. In the
second table the peer's objective is recomputed in float64, "excess" is how far it is above ours (negative: below), and
"to its level" the seconds that ours takes with the peer's own distance from our bound as its tol.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, load_iris
from sklearn.svm import LinearSVC as Liblinear
from threadpoolctl import threadpool_limits

from benchmarks.common import interleaved, seconds
from saddlesvm import LinearSVC, Pegasos
from saddlesvm.data import read

FASHION = {"C": 0.01, "loss": "hinge", "random_state": 0}
PEGASOS_ITERATIONS, PEGASOS_LAMBDA = 1_000_000, 1e-4


def fashion(folder: Path, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Pixels / 255 in float32, and labels; part "train" or "t10k"."""
    table = read(folder / "fashion-mnist" / f"{part}-images-idx3-ubyte.gz", dtype=np.float32)
    return table.X / np.float32(255.0), table.y


def embeddings(n: int, d: int, classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of norm 1 around class centres, float32, like embeddings of a network."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((classes, d), dtype=np.float32)
    y = random.integers(0, classes, n)
    X = centres[y] + 1.5 * random.standard_normal((n, d), dtype=np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, y


def joint_objective(X: np.ndarray, y: np.ndarray, coef: np.ndarray, intercept: np.ndarray, C: float) -> float:
    """Crammer and Singer's objective in float64."""
    z = X.astype(np.float64) @ coef.T + intercept
    own = z[np.arange(len(y)), y]
    paid = (z + 1.0 - np.eye(coef.shape[0])[y]).max(axis=1) - own
    return float(0.5 * (np.vdot(coef, coef) + intercept @ intercept) + C * paid.sum())


def show(title: str, head: list[str], lines: list[list[str]]) -> None:
    """Print a table."""
    print(f"\n{title}\n\n| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for line in lines:
        print("| " + " | ".join(line) + " |")


def three_ways(folder: Path, repeats: int) -> None:
    """Figure 1: Fashion-MNIST, C = 0.01, hinge, every sub-problem certified at 1e-3."""
    (X, y), (test_X, test_y) = fashion(folder, "train"), fashion(folder, "t10k")
    wide = X.astype(np.float64)
    ways = ("ovr", "ovo", "crammer_singer")
    works: dict[str, Any] = {
        way: (lambda way=way: LinearSVC(multi_class=way, tol=1e-3, **FASHION).fit(X, y)) for way in ways
    }
    for work in ways:
        LinearSVC(multi_class=work, tol=1e-3, **FASHION).fit(X[:8000], y[:8000])
    measured = interleaved(works, repeats)
    measured["scikit-learn LinearSVC"] = seconds(lambda: Liblinear(**FASHION).fit(wide, y))
    lines = []
    for name, (spent, model) in measured.items():
        gaps = [one.relative_gap for one in getattr(model, "certificates_", [])]
        proven = f"{max(gaps):.1e} ({len(gaps)})" if gaps else "-"
        accuracy = model.score(test_X if gaps else test_X.astype(np.float64), test_y)
        times = measured[name][0] / measured["ovr"][0]
        lines.append([name, f"{spent:.2f}", f"{times:.1f}", proven, f"{100 * accuracy:.2f}"])
    head = ["way", "seconds", "times ovr's", "largest gap (sub-problems)", "test accuracy, %"]
    show("Fashion-MNIST, 60,000 x 784, C = 0.01, hinge", head, lines)


def against_liblinear(folder: Path, repeats: int) -> None:
    """Figure 2: Crammer and Singer's machine, the same objective as LIBLINEAR's, and the time it takes."""
    X, y = fashion(folder, "train")
    sets = {
        "iris": load_iris(return_X_y=True),
        "digits / 16": (load_digits().data / 16.0, load_digits().target),
        "Fashion-MNIST, 5,000 rows": (X[:5000].astype(np.float64), y[:5000]),
    }
    lines = []
    for name, (rows, labels) in sets.items():
        C = 0.01 if name.startswith("Fashion") else 0.1
        ours = LinearSVC(multi_class="crammer_singer", C=C, tol=1e-4, random_state=0)
        theirs = Liblinear(multi_class="crammer_singer", C=C, max_iter=100_000, random_state=0)
        ours.fit(rows, labels)
        works = {"ours": partial(ours.fit, rows, labels), "theirs": partial(theirs.fit, rows, labels)}
        measured = interleaved(works, repeats)
        reached = joint_objective(rows, labels, theirs.coef_, theirs.intercept_, C)
        proof = ours.certificate_
        level = max(1e-9, 1.0 - proof.dual / reached)
        finer = LinearSVC(multi_class="crammer_singer", C=C, tol=level, random_state=0)
        same, close = seconds(partial(finer.fit, rows, labels))
        agrees = proof.dual <= reached * (1 + 1e-12) and reached <= proof.primal * (1 + 1e-4)
        lines.append([
            name, f"{C:g}", f"{proof.primal:.6f}", f"{proof.relative_gap:.1e}", f"{reached / proof.primal - 1:+.1e}",
            "yes" if agrees else "NO", f"{measured['ours'][0]:.3f}", f"{measured['theirs'][0]:.3f}",
            f"{same:.3f} ({close.certificate_.relative_gap:.0e})",
        ])  # fmt: skip
    head = ["data", "C", "objective", "gap", "LIBLINEAR's excess", "agree", "seconds", "LIBLINEAR", "to its level"]
    show("Crammer and Singer's machine against LIBLINEAR", head, lines)


def published_pegasos(folder: Path) -> None:
    """Figure 3: 45 pairs, 1,000,000 iterations of Pegasos each, two threads."""
    (X, y), (test_X, test_y) = fashion(folder, "train"), fashion(folder, "t10k")
    epochs = PEGASOS_ITERATIONS / (2 * np.bincount(y).min())
    options: dict[str, Any] = {
        "multi_class": "ovo", "loss": "hinge", "solver": Pegasos(sampling="replacement", output="last"),
        "lam": PEGASOS_LAMBDA, "tol": 0.0, "random_state": 0, "fit_intercept": False,
    }  # fmt: skip
    seconds(lambda: LinearSVC(**options, max_iter=1).fit(X[:200], y[:200]))
    spent, model = seconds(lambda: LinearSVC(**options, max_iter=epochs, n_jobs=2).fit(X, y))
    touched: dict[str, int] = {}
    for record in model.trace_:
        touched[record["problem"]] = record["rows_touched"]
    certificate = model.certificate_
    lines = [[
        f"{len(touched)}", f"{min(touched.values()):,} to {max(touched.values()):,}", f"{spent:.1f}",
        f"{100 * model.score(test_X, test_y):.2f}", f"{certificate.relative_gap:.2e}",
    ]]  # fmt: skip
    head = ["classifiers", "iterations each", "seconds, 2 threads", "test accuracy, %", "gap of the sum"]
    show(f"One-vs-one Pegasos, Fashion-MNIST, lambda = {PEGASOS_LAMBDA:g}, last iterate", head, lines)


def many_classes(full: bool, repeats: int) -> None:
    """Figure 5: one-vs-rest over many classes."""
    lines = []
    for classes, n in ((100, 20_000), (1000, 100_000)) if full else ((100, 20_000),):
        X, y = embeddings(n, 256, classes)
        work = partial(LinearSVC(C=1.0, tol=1e-3, random_state=0).fit, X, y)
        spent, model = interleaved({"fit": work}, repeats if n <= 20_000 else 1)["fit"]
        gap = max(proof.relative_gap for proof in model.certificates_)
        kept = model.dual_coef_.data.nbytes / 1e6
        lines.append([f"{classes:,} x {n:,} x 256", f"{spent:.1f}", f"{gap:.1e}", f"{kept:.0f}"])
    head = ["classes x rows x features", "seconds", "gap", "MB of duals"]
    show("One-vs-rest, squared hinge, float32, C = 1, tol 1e-3, one thread", head, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with threadpool_limits(1):
        three_ways(options.data, options.repeats)
        against_liblinear(options.data, options.repeats)
        published_pegasos(options.data)
        many_classes(options.full, options.repeats)


if __name__ == "__main__":
    main()
