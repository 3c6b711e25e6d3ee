"""No fit to a gap of 1e-9 at a random C may contradict what a certified path claims about that C."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from hypothesis import given, strategies as st
from scipy import sparse

from saddlesvm import LinearSVC, LinearSVR

from . import examples

LOSSES = ("hinge", "squared_hinge", "smooth_hinge", "logistic")
TARGET_LOSSES = ("epsilon_insensitive", "squared_epsilon_insensitive", "squared", "absolute", "huber")
PENALTIES = ("l2", "l2", "elasticnet", "l1")
VALUES = 10  # of C, at random, for each problem
SECONDS = 2.0  # for a fit to 1e-9; one that does not get there still proves a bound


def draw_problem(random: np.random.Generator) -> tuple[Any, np.ndarray, np.ndarray | None, Any, dict[str, Any]]:
    """Draw rows, labels, weights, an estimator's class and its options."""
    n = int(random.integers(20, 150))
    d = int(random.integers(1, 12))
    X = random.normal(size=(n, d)) * 10.0 ** random.uniform(-1, 1, d)
    score = X @ random.normal(size=d) + random.normal(size=n)
    weights = random.uniform(0.2, 3.0, n) if random.random() < 0.3 else None
    options = {
        "intercept": str(random.choice(["regularized", "free"])),
        "fit_intercept": bool(random.random() < 0.8),
        "penalty": str(random.choice(PENALTIES)),
        "l1_ratio": float(random.uniform(0.05, 0.95)),
    }
    rows = sparse.csr_array(np.where(np.abs(X) > 0.3, X, 0.0)) if random.random() < 0.4 else X
    if random.random() < 0.7:
        y = np.where(score > np.quantile(score, random.uniform(0.2, 0.8)), 1, -1)
        return rows, y, weights, LinearSVC, options | {"loss": str(random.choice(LOSSES))}
    return rows, score, weights, LinearSVR, options | {"loss": str(random.choice(TARGET_LOSSES)), "epsilon": 0.1}


@examples(4)
@given(number=st.integers(0, 2**31))
def test_no_fit_at_a_random_C_contradicts_a_path(number: int) -> None:
    random = np.random.default_rng([number, 1])
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        X, y, weights, kind, options = draw_problem(random)
        low = 10.0 ** random.uniform(-4, 0)
        high = low * 10.0 ** random.uniform(0.5, 6)
        gap = 10.0 ** random.uniform(-3, -1)
        path = kind(max_time=20.0, random_state=0, **options).path(X, y, C=(low, high), gap=gap, sample_weight=weights)
        for C in np.clip(low * (high / low) ** random.uniform(0, 1, VALUES), low, high):
            claim = path.certificate(C)
            fit = kind(C=C, tol=1e-9, max_time=SECONDS, random_state=0, **options).fit(X, y, sample_weight=weights)
            best = fit.certificate_
            told = f"{kind.__name__} {options} C={C:.6g} gap={gap:.2g}"
            assert claim.dual <= best.primal, f"{told}: the path's bound is above a fit's objective"
            assert best.dual <= claim.primal, f"{told}: a fit's bound is above the objective of the path's model"
            if path.proven_gap < np.inf:
                assert claim.relative_gap <= path.proven_gap * (1.0 + 1e-9), f"{told}: a smaller gap was promised"
