"""Certified paths of random problems, before independent fits: no fit to 1e-9 may contradict what a path claims.

For each problem a path is made, and at random C between its ends a single fit is trained to a relative gap of 1e-9. A
claim is refuted where the path's lower bound is above that fit's objective, or where the fit's own lower bound is above
what the path says of its model's objective.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm import LinearSVC, LinearSVR

from .tally import Tally

LOSSES = ("hinge", "squared_hinge", "smooth_hinge", "logistic")
TARGET_LOSSES = ("epsilon_insensitive", "squared_epsilon_insensitive", "squared", "absolute", "huber")
PENALTIES = ("l2", "l2", "elasticnet", "l1")
VALUES = 200  # random C a problem
SECONDS = 2.0  # for a fit to 1e-9; one that does not come there is still a bound


def paths(seed: int, first: int, count: int, values: int = VALUES) -> Tally:
    """Judge the paths of these problems at random C."""
    tally = Tally(name="paths")
    for number in range(first, first + count):
        random = np.random.default_rng([seed, number, 1])
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            said, outcome = judged(random, values)
        tally.cases += 1
        tally.outcomes[outcome] += 1
        tally.failures += [f"path {seed}:{number}: {one}" for one in said]
    return tally


def posed(random: np.random.Generator) -> tuple[Any, np.ndarray, np.ndarray | None, Any, dict[str, Any]]:
    """Rows, labels, weights, the estimator's class and its options."""
    n, d = int(random.integers(20, 150)), int(random.integers(1, 12))
    X = random.normal(size=(n, d)) * 10.0 ** random.uniform(-1, 1, d)
    score = X @ random.normal(size=d) + random.normal(size=n)
    weights = random.uniform(0.2, 3.0, n) if random.random() < 0.3 else None
    options = {"intercept": str(random.choice(["regularized", "free"])), "fit_intercept": bool(random.random() < 0.8)}
    options |= {"penalty": str(random.choice(PENALTIES)), "l1_ratio": float(random.uniform(0.05, 0.95))}
    given = sparse.csr_array(np.where(np.abs(X) > 0.3, X, 0.0)) if random.random() < 0.4 else X
    if random.random() < 0.7:
        y = np.where(score > np.quantile(score, random.uniform(0.2, 0.8)), 1, -1)
        return given, y, weights, LinearSVC, options | {"loss": str(random.choice(LOSSES))}
    return given, score, weights, LinearSVR, options | {"loss": str(random.choice(TARGET_LOSSES)), "epsilon": 0.1}


def judged(random: np.random.Generator, values: int) -> tuple[list[str], str]:
    """What random fits say of one path, and how it ended."""
    X, y, weights, kind, options = posed(random)
    low = 10.0 ** random.uniform(-4, 0)
    ends, gap = (low, low * 10.0 ** random.uniform(0.5, 6)), 10.0 ** random.uniform(-3, -1)
    path = kind.path(X, y, C=ends, gap=gap, sample_weight=weights, max_time=20.0, random_state=0, **options)
    said = []
    for C in np.clip(ends[0] * (ends[1] / ends[0]) ** random.uniform(0, 1, values), *ends):
        claim = path.certificate(C)
        fit = kind(C=C, tol=1e-9, max_time=SECONDS, random_state=0, **options).fit(X, y, sample_weight=weights)
        best, where = fit.certificate_, f"{kind.__name__} {options} C={C:.6g} gap={gap:.2g}"
        if claim.dual > best.primal:
            said.append(f"{where}: the path's bound {claim.dual!r} is above a fit's objective {best.primal!r}")
        if best.dual > claim.primal:
            said.append(f"{where}: the fit's bound {best.dual!r} is above the path's model, {claim.primal!r}")
        if path.proven_gap < np.inf and claim.relative_gap > path.proven_gap * (1.0 + 1e-9):
            said.append(f"{where}: a gap of {claim.relative_gap:.3g}, {path.proven_gap:.3g} was promised")
    return said, str(path.outcome)
