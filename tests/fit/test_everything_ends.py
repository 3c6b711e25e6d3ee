"""Problems that once ran on: each ends by itself, and says how. None is given a limit."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from saddlesvm import SVC, LinearSVC, LinearSVR, NotCertifiedWarning, Outcome

random = np.random.default_rng(0)
ROWS, CLASSES = random.normal(size=(120, 20)), random.integers(0, 3, 120)
CONSTANT = np.column_stack([random.normal(size=120), np.ones(120)])
PLANE, SIDES = random.normal(size=(60, 2)), np.where(random.normal(size=60) > 0.0, 1, -1)
ENDS = (Outcome.CERTIFIED, Outcome.NO_PROGRESS, Outcome.LIMITED_BY_ROUNDING)
JOINT = {"multi_class": "crammer_singer", "tol": 1e-5}


def linear(**options: Any) -> LinearSVC:
    return LinearSVC(random_state=0, **options)


NAMED = {
    "Crammer and Singer, C = 4417": (linear(C=4417.0, **JOINT), ROWS, CLASSES),
    "Crammer and Singer, a constant column, C = 4.7e4": (linear(C=4.7e4, **JOINT), CONSTANT, CLASSES),
    "Crammer and Singer, nothing but a constant": (linear(C=4.7e4, **JOINT), CONSTANT[:, 1:], CLASSES),
    "squared loss, free intercept, tol = 1e-8": (
        LinearSVR(loss="squared", intercept="free", tol=1e-8),
        ROWS,
        ROWS.sum(axis=1) + random.normal(size=120),
    ),
    "constant targets": (LinearSVR(loss="squared", intercept="free"), ROWS, np.ones(120)),
    "constant targets, insensitive loss": (LinearSVR(epsilon=0.0), ROWS, np.full(120, 7.0)),
    "identical rows": (linear(), np.ones((120, 3)), CLASSES > 0),
    "zero columns": (linear(), np.zeros((120, 3)), CLASSES > 0),
    "huge C": (linear(C=1e12), ROWS, CLASSES > 0),
    "huge C, hinge": (linear(C=1e12, loss="hinge"), ROWS, CLASSES > 0),
    "tiny tol": (linear(tol=1e-15), ROWS, CLASSES > 0),
    "tiny tol, hinge": (linear(tol=1e-15, loss="hinge", intercept="free"), ROWS, CLASSES > 0),
    "rbf kernel, C = 1e10, tol = 0.1": (SVC(C=1e10, tol=0.1), PLANE, SIDES),
    "linear kernel, C = 1e8, tol = 0.1": (SVC(kernel="linear", C=1e8, tol=0.1), PLANE, SIDES),
    "linear kernel, C = 1e12": (SVC(kernel="linear", C=1e12), PLANE, SIDES),
    "polynomial kernel, C = 1e10": (SVC(kernel="poly", C=1e10), PLANE, SIDES),
    "identical rows, kernel": (SVC(C=1e8, intercept="none"), np.ones((60, 2)), SIDES),
}


@pytest.mark.parametrize("name", NAMED)
def test_a_fit_without_limits_ends(name: str) -> None:
    model, X, y = NAMED[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertifiedWarning)
        model.fit(X, y)
    assert model.outcome_ in ENDS
    certificates = np.atleast_1d(np.array(model.certificate_, dtype=object))
    assert all(one.sound for one in certificates if hasattr(one, "sound"))
