"""What can be looked at during a fit: diagnostics, certificates on request, kernel values, averages, both rules."""

from __future__ import annotations

import numpy as np
import pytest

from saddlesvm import DCD, SVC, LinearSVC, LinearSVR
from saddlesvm.data import load_bundled
from saddlesvm.lab import Diagnostics
from support import Every


@pytest.fixture(scope="module")
def notes():
    table = load_bundled("banknote")
    return table.X[::4], table.y[::4]


def test_diagnostics_add_up_to_the_objective(notes):
    """``||w||^2 / 2 + C sum of the classes' losses`` is the primal of the same certificate."""
    X, y = notes
    seen = Diagnostics(X, y, every=2)
    model = LinearSVC(loss="hinge", C=0.1, fit_intercept=False, callbacks=[seen], random_state=0)
    trace = model.fit(X, y).trace_
    for row, certified in zip(seen.rows, trace, strict=True):
        paid = sum((y == label).sum() * row[f"loss_{label}"] for label in (0, 1))
        assert row["half_norm"] + 0.1 * paid == pytest.approx(certified["primal"], rel=1e-9)
        assert row["margin_0.05"] <= row["margin_0.5"] <= row["margin_0.95"]
    wrong = sum((y == label).sum() * seen.rows[-1][f"error_{label}"] for label in (0, 1))
    assert wrong == pytest.approx((model.predict(X) != y).sum())
    assert len(seen.to_frame()) == len(trace)


def test_estimators_certify_as_often_as_asked(notes):
    X, y = notes
    for model in (
        LinearSVC(solver="dcd", callbacks=[Every(2)], max_iter=6, tol=0.0, random_state=0),
        LinearSVR(solver="dcd", callbacks=[Every(2)], max_iter=6, tol=0.0, random_state=0),
        SVC(solver="kernel-pegasos", callbacks=[Every(2)], max_iter=6, tol=0.0, random_state=0),
    ):
        np.testing.assert_allclose(model.fit(X, y).trace_.column("epoch"), [2.0, 4.0, 6.0])
    with pytest.raises(ValueError, match="must be positive"):
        LinearSVC(callbacks=[Every(0)]).fit(X, y)


def test_kernel_values_are_counted(notes):
    """Without repetition no more than n^2 are needed; a fit that sees every row of a small kernel computes them all."""
    X, y = notes
    n = len(y)
    counted = SVC(C=1.0, random_state=0).fit(X, y).trace_.column("kernel_evaluations")
    assert (np.diff(counted) >= 0).all() and 0 < counted[-1] <= n * n
    assert LinearSVC(random_state=0).fit(X, y).trace_[-1]["kernel_evaluations"] == 0


@pytest.mark.parametrize("shrinking", [False, True])
def test_both_rules_stop_when_the_later_one_does(notes, shrinking):
    X, y = notes
    passes = {}
    for rule in ("projected_gradient", "weight_change", "both"):
        solver = DCD(stopping=rule, threshold=1e-3, shrinking=shrinking)
        model = LinearSVC(loss="hinge", C=0.01, solver=solver, tol=0.0, max_iter=5000, random_state=0).fit(X, y)
        assert str(model.outcome_) == "rule_met"
        passes[rule] = model.trace_[-1]["epoch"]
    if not shrinking:  # the visits are then the same until one of them stops
        assert passes["both"] >= max(passes["projected_gradient"], passes["weight_change"])
    assert np.isfinite(model.trace_[-1]["change"])
