"""Bounds on scores, weights and labels against independent fits to 1e-12, on random problems: nothing is contradicted.

PYTHONPATH=tests python benchmarks/claims/answers_law.py [PROBLEMS]        # 20 a loss and intercept, and a machine
PYTHONPATH=tests python benchmarks/claims/answers_law.py refits [MANY]     # 1: 200 rows

`refits` trains again without single rows: leave-one-out bounds must hold.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm import LinearSVC, LinearSVR, NotCertifiedWarning, leave_one_out
from support import ALL_LOSSES

MACHINES = (
    ("ovr", "squared_hinge"), ("ovo", "logistic"), ("ovo", "hinge"), ("multinomial", "logistic"),
    ("crammer_singer", "hinge"),
)  # fmt: skip
ROUNDING = 1e-9  # of the independent fit's scores, beside what its gap allows


def drawn(seed: int, classes: int) -> tuple[Any, np.ndarray, Any, np.ndarray | None]:
    """Rows dense or sparse, float32 or float64; targets or labels; rows to ask about; row weights or none."""
    random = np.random.default_rng(seed)
    X, asked = (random.normal(size=(n, 6)) * (random.random((n, 6)) < 0.7) for n in (90, 40))
    target = X @ random.normal(size=6) + 0.7 * random.normal(size=90)
    y = target if classes == 0 else np.argsort(np.argsort(target)) * classes // 90
    weights = random.choice([0.0, 0.5, 1.0, 3.0], size=90) if seed % 2 else None
    rows = X.astype(np.float32) if seed % 3 == 0 else sparse.csr_array(X) if seed % 3 == 1 else X
    return rows, y, asked, weights


def contradicted(kind: Any, options: dict[str, Any], classes: int, seed: int) -> tuple[bool, float, float]:
    """Whether an independent fit contradicts what is proven; the share of proven labels, the median width."""
    X, y, asked, weights = drawn(seed, classes)
    random = np.random.default_rng(seed + 1)
    options = options | {"C": float(10.0 ** random.integers(-2, 3)), "random_state": seed}
    model = kind(tol=float(10.0 ** -random.integers(1, 8)), **options).fit(X, y, sample_weight=weights)
    exact = kind(tol=1e-12, **options).fit(X, y, sample_weight=weights)
    low, high = model.decision_bounds(asked)
    scores = asked @ exact.coef_.T + exact.intercept_
    scores = scores[:, 0] if scores.ndim > 1 and scores.shape[1] == 1 else scores
    apart = max(np.sqrt(2.0 * max(one.gap, 0.0)) for one in exact.certificates_)
    slip = (apart + ROUNDING) * 2.0 * (1.0 + np.linalg.norm(asked, axis=1).max())
    wrong = bool(((scores < low - slip) | (scores > high + slip)).any())
    least, most = model.coef_bounds()
    wrong |= bool(((exact.coef_ < least - slip) | (exact.coef_ > most + slip)).any())
    if not classes:
        return wrong, np.nan, float(np.median(high - low))
    proven = model.is_proven(asked)
    return (
        wrong | bool((exact.predict(asked) != model.predict(asked))[proven].any()),
        proven.mean(),
        float(np.median(high - low)),
    )


def fresh(seed: int) -> tuple[Any, np.ndarray, dict[str, Any]]:
    """A random problem of two classes, and options of a model with curvature."""
    X, y, _, _ = drawn(2 * seed, 2)
    loss = ("logistic", "squared_hinge", "smooth_hinge")[seed % 3]
    C = float(10.0 ** np.random.default_rng(seed).uniform(-2.0, 1.0))
    options = {"loss": loss, "intercept": ("regularized", "free")[seed % 2], "C": C, "random_state": 0}
    return (X.toarray() if sparse.issparse(X) else X), y, options


def exact(X: Any, y: np.ndarray, options: dict[str, Any], asked: Any) -> tuple[np.ndarray, np.ndarray]:
    """Scores of a fit to 1e-12, and how far they may be from the optimum's."""
    model = LinearSVC(tol=1e-12, **options).fit(X, y)
    apart = np.sqrt(2.0 * max(model.certificate_.gap, 0.0)) + ROUNDING
    return model.decision_function(asked), 3.0 * apart * (1.0 + np.linalg.norm(asked, axis=1))


def without_rows(seed: int) -> tuple[int, int, int]:
    """Ten single rows left out: refits, contradicted, finite bounds."""
    X, y, options = fresh(seed)
    found = leave_one_out(LinearSVC(**options).fit(X, y), X, y)
    wrong = 0
    known = 0
    for i in np.random.default_rng(seed).permutation(len(y))[:10]:
        kept = np.arange(len(y)) != i
        score, slip = exact(X[kept], y[kept], options, X[[i]])
        wrong += not found.low[i] - slip[0] <= score[0] <= found.high[i] + slip[0]
        known += bool(np.isfinite(found.high[i] - found.low[i]))
    return 10, wrong, known


REFITS = (("without a row", without_rows, 20),)


def refits(many: int) -> None:
    """Print a row for each kind of refit."""
    print("| refits | number | contradicted | with finite (p-values: exact) bounds |\n|---|---|---|---|")
    for name, kind, problems in REFITS:
        number, wrong, known = np.sum([kind(seed) for seed in range(problems * many)], axis=0)
        print(f"| {name} | {number} | {wrong} | {known} |", flush=True)


def main(problems: int) -> None:
    """Print a row for each loss with each intercept, and for each machine."""
    cases: list[tuple[str, Any, dict[str, Any], int]] = []
    for loss in ALL_LOSSES:
        regression = loss.traits.task == "regression"
        for intercept in ("regularized", "free", "none"):
            given = {"loss": loss, "fit_intercept": intercept != "none"}
            given |= {} if intercept == "none" else {"intercept": intercept}
            cases.append(
                (
                    f"{loss.traits.name}, {intercept}",
                    LinearSVR if regression else LinearSVC,
                    given,
                    0 if regression else 2,
                )
            )
    for way, loss in MACHINES:
        cases.append((f"{way}, {loss}", LinearSVC, {"multi_class": way, "loss": loss}, 4))
    free = {"multi_class": "multinomial", "loss": "logistic", "intercept": "free"}
    cases.append(("multinomial, logistic, free", LinearSVC, free, 4))
    print("| problem | contradicted | labels proven | median width |")
    print("|---|---|---|---|")
    for name, kind, given, classes in cases:
        found = [contradicted(kind, given, classes, seed) for seed in range(problems)]
        wrong, proven, width = zip(*found, strict=True)
        told = f"{100 * np.mean(proven):.1f} %" if classes else "-"
        print(f"| {name} | {sum(wrong)} of {problems} | {told} | {np.median(width):.1e} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore", NotCertifiedWarning)
    if sys.argv[1:2] == ["refits"]:
        refits(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
