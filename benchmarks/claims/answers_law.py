"""Bounds on scores, weights and labels against independent fits to 1e-12, on random problems: nothing is contradicted.

PYTHONPATH=tests python benchmarks/claims/answers_law.py [PROBLEMS]        # 20 a loss and intercept, and a machine
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm import LinearSVC, LinearSVR, NotCertifiedWarning
from support import ALL_LOSSES

MACHINES = (
    ("ovr", "squared_hinge"), ("ovo", "logistic"), ("ovo", "hinge"), ("multinomial", "logistic"),
    ("crammer_singer", "hinge"), ("top_k", "hinge"),
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
    if options.get("multi_class") == "ovo":
        exact.set_params(decision_function_shape="ovo")
    scores = exact.decision_function(asked) if classes else exact.predict(asked)
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


def main(problems: int) -> None:
    """Print a row for each loss with each intercept, and for each machine."""
    warnings.simplefilter("ignore", NotCertifiedWarning)
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
    print("| problem | contradicted | labels proven | median width |")
    print("|---|---|---|---|")
    for name, kind, given, classes in cases:
        found = [contradicted(kind, given, classes, seed) for seed in range(problems)]
        wrong, proven, width = zip(*found, strict=True)
        told = f"{100 * np.mean(proven):.1f} %" if classes else "-"
        print(f"| {name} | {sum(wrong)} of {problems} | {told} | {np.median(width):.1e} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
