"""Proven leave-one-out errors, and suspects beside five folds: figures of docs/guides.

OMP_NUM_THREADS=1 python benchmarks/claims/audits.py FOLDER        # with a9a.bz2 and blood-cells.npz
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from saddlesvm import LinearSVC, NotCertifiedWarning, audit, leave_one_out
from saddlesvm.data import load_bundled, read

TURNED = 0.05  # share of the labels that are changed
SEEDS = 5


def spent(work: Any) -> tuple[float, Any]:
    """Processor seconds of a call, and what it returned."""
    began = time.process_time()
    found = work()
    return time.process_time() - began, found


def large(folder: Path) -> dict[str, tuple[Any, np.ndarray, tuple[float, ...]]]:
    """a9a, and lymphocytes against neutrophils, with values of C."""
    table, cells = read(folder / "a9a.bz2"), np.load(folder / "blood-cells.npz")
    kept = (cells["split"] == 0) & np.isin(cells["label"], [1, 3])
    images = cells["images"][kept].reshape(int(kept.sum()), -1) / 255.0
    return {
        "a9a": (sparse.csr_array(table.X), np.asarray(table.y), (0.05, 1.0)),
        "blood cells": (images, (cells["label"][kept] == 1).astype(int), (0.005, 0.05)),
    }


def errors_proven(folder: Path) -> None:
    """Bounds of the leave-one-out error, and their time beside the fit's."""
    print("| data | loss | C | error, proven, % | s, fit | s, bounds |")
    print("|---|---|---|---|---|---|")
    for name, (X, y, Cs) in large(folder).items():
        for loss in ("logistic", "squared_hinge"):
            for C in Cs:
                template = LinearSVC(loss=loss, C=C, random_state=0)
                leave_one_out(template.fit(X, y), X, y)
                fitting, model = spent(lambda template=template, X=X, y=y: clone(template).fit(X, y))
                took, found = spent(lambda model=model, X=X, y=y: leave_one_out(model, X, y))
                ends = f"{100 * found.error_low:.3f} to {100 * found.error_high:.3f}"
                print(f"| {name} | {loss} | {C:g} | {ends} | {fitting:.2f} | {took:.2f} |", flush=True)


def small(folder: Path) -> dict[str, tuple[Any, np.ndarray]]:
    """Five sets for turned labels."""
    cancer, digits, table = load_breast_cancer(), load_digits(), read(folder / "a9a.bz2")
    notes, heart = load_bundled("banknote"), load_bundled("heart")
    return {
        "cancer": (StandardScaler().fit_transform(cancer.data), cancer.target),
        "digits": (MaxAbsScaler().fit_transform(digits.data), digits.target),
        "banknote": (StandardScaler().fit_transform(notes.X), np.asarray(notes.y)),
        "heart": (np.asarray(heart.X), np.asarray(heart.y)),
        "a9a, 5,000 rows": (sparse.csr_array(table.X)[:5000], np.asarray(table.y)[:5000]),
    }


def turned_labels(folder: Path) -> None:
    """How many of as many suspects as turned labels are turned: by an audit, and by five folds' self-confidence."""
    print("\n| data | C | turned, true among suspects, % | five folds, % | s, audit's margins | s, five folds |")
    print("|---|---|---|---|---|---|")
    for name, (X, y) in small(folder).items():
        C, shares, took = 0.1, np.zeros(2), np.zeros(2)
        for seed in range(SEEDS):
            random, labels, classes = np.random.default_rng(seed), y.copy(), np.unique(y)
            turned = random.permutation(len(y))[: int(TURNED * len(y))]
            codes = np.searchsorted(classes, y[turned])
            labels[turned] = classes[(codes + random.integers(1, classes.size, turned.size)) % classes.size]
            began = time.process_time()
            found = audit(LinearSVC(loss="logistic", C=C, random_state=0).fit(X, labels), X, labels)
            took[0] += time.process_time() - began
            worst = np.argsort(found.margins, kind="stable")[: turned.size]
            began = time.process_time()
            peer = LogisticRegression(C=C, max_iter=1000)
            held = cross_val_predict(peer, X, labels, cv=5, method="predict_proba")
            took[1] += time.process_time() - began
            confidence = held[np.arange(len(y)), np.searchsorted(classes, labels)]
            doubtful = np.argsort(confidence, kind="stable")[: turned.size]
            shares += [np.isin(worst, turned).mean(), np.isin(doubtful, turned).mean()]
        ours, theirs = 100 * shares / SEEDS
        print(
            f"| {name} | {C:g} | {ours:.1f} | {theirs:.1f} | {took[0] / SEEDS:.2f} | {took[1] / SEEDS:.2f} |",
            flush=True,
        )


def main(folder: Path) -> None:
    """Print the two tables."""
    warnings.simplefilter("ignore", NotCertifiedWarning)
    errors_proven(folder)
    turned_labels(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
