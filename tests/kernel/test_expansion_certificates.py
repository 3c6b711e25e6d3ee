"""certify_kernel on expansion points: a linear machine over landmarks, judged in the exact kernel problem."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris, make_moons
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline

from saddlesvm import SVC, SVR, LinearSVC, LinearSVR, NotCertifiedWarning, OneClassSVM, certify_kernel
from saddlesvm.kernel.mercer import Kernel

X, y = make_moons(300, noise=0.2, random_state=0)
TARGETS = X[:, 0] * X[:, 1]


def over_landmarks(linear: Any, rows: Any, labels: Any, count: int = 60, **options: Any) -> dict[str, Any]:
    """The arguments of certify_kernel for a linear machine over Nystroem's landmarks."""
    landmarks = Nystroem(gamma=1.0, n_components=count, random_state=0, **options)
    make_pipeline(landmarks, linear).fit(rows, labels)
    return {
        "points": landmarks.components_,
        "coef": np.atleast_2d(linear.coef_) @ landmarks.normalization_,
        "intercept": linear.intercept_,
        "dual": linear.dual_coef_,
    }


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_more_landmarks_are_nearer_to_the_exact_optimum_and_no_bound_is_above_it(loss: str, form: Any) -> None:
    exact = SVC(gamma=1.0, loss=loss, tol=1e-6, random_state=0).fit(X, y).certificate_
    gaps = []
    for count in (5, 20, 80, 300):
        linear = LinearSVC(loss=loss, intercept="free", tol=1e-6, random_state=0)
        given = over_landmarks(linear, X, y, count)
        found = certify_kernel(SVC(gamma=1.0, loss=loss), form(X), y, **given)
        assert found.primal >= exact.dual and found.dual <= exact.primal
        # Given dual variables prove at least as much as derived ones, but for the rounding that is counted.
        derived = certify_kernel(SVC(gamma=1.0, loss=loss), form(X), y, **given | {"dual": None})
        assert found.dual + found.dual_rounding >= derived.dual
        gaps.append(found.relative_gap)
    assert gaps[0] > gaps[-1] and gaps[-1] <= 1e-4


def test_a_fitted_machine_has_the_same_certificate_as_its_own_expansion() -> None:
    model = SVC(gamma=1.0, tol=1e-6, random_state=0).fit(X, y)
    beta = np.zeros(X.shape[0])
    beta[model.support_] = model.dual_coef_[0]
    expansion = {"points": model.support_vectors_, "coef": model.dual_coef_, "intercept": model.intercept_}
    found = certify_kernel(SVC(gamma=1.0), X, y, **expansion, dual=beta)
    own = certify_kernel(model, X, y)
    assert found.primal == pytest.approx(own.primal, rel=1e-9) and found.dual == pytest.approx(own.dual, rel=1e-9)


def test_the_objective_is_that_of_fractions() -> None:
    random = np.random.default_rng(0)
    rows, points = random.normal(size=(12, 3)), random.normal(size=(4, 3))
    labels, coef, offset = np.where(np.arange(12) % 2, 1, -1), random.normal(size=4), 0.25
    weights = random.uniform(0.5, 2.0, 12)
    model = SVC(kernel="poly", degree=2, gamma=0.5, coef0=1.0, C=3.0)
    found = certify_kernel(model, rows, labels, sample_weight=weights, points=points, coef=coef, intercept=offset)

    def k(a: np.ndarray, b: np.ndarray) -> Fraction:
        inner = sum((Fraction(float(p)) * Fraction(float(q)) for p, q in zip(a, b, strict=True)), Fraction(0))
        return (inner / 2 + 1) ** 2

    def f(x: np.ndarray) -> Fraction:
        return sum((Fraction(float(c)) * k(z, x) for c, z in zip(coef, points, strict=True)), Fraction(0))

    half = sum((Fraction(float(c)) * f(z) for c, z in zip(coef, points, strict=True)), Fraction(0)) / 2
    losses = [
        Fraction(float(s)) * max(Fraction(0), 1 - int(label) * (f(x) + Fraction(offset)))
        for s, x, label in zip(weights, rows, labels, strict=True)
    ]
    exact = half + 3 * sum(losses)
    assert 0 <= Fraction(found.primal) - exact <= 1e-12 * exact
    best = SVC(kernel="poly", degree=2, gamma=0.5, coef0=1.0, C=3.0, tol=1e-9).fit(rows, labels, weights)
    assert found.dual <= best.certificate_.primal


def test_pairs_of_classes_weights_and_targets() -> None:
    rows, labels = load_iris(return_X_y=True)
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    names = np.array(["a", "b", "c"])[labels]
    machine = SVC(gamma=1.0, class_weight={"a": 2.0, "b": 1.0, "c": 0.5})
    weighted = {"class_weight": machine.class_weight, "random_state": 0}
    linear = LinearSVC(loss="hinge", intercept="free", multi_class="ovo", tol=1e-5, **weighted)
    found = certify_kernel(machine, rows, names, **over_landmarks(linear, rows, names, 150))
    exact = machine.set_params(tol=1e-6).fit(rows, names).certificate_
    assert found.relative_gap <= 1e-3 and exact.dual <= found.primal and found.dual <= exact.primal

    linear = LinearSVR(loss="squared", intercept="free", tol=1e-6, random_state=0)
    machine = SVR(gamma=1.0, loss="squared", tol=1e-6)
    found = certify_kernel(machine, X, TARGETS, **over_landmarks(linear, X, TARGETS, 300))
    assert found.relative_gap <= 1e-4
    assert found.dual <= machine.fit(X, TARGETS).certificate_.primal


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (SVC(), {"coef": np.ones((1, 3))}, "coef has shape"),
        (SVC(), {"coef": None}, "need coef"),
        (SVC(), {"points": np.ones((2, 5))}, "points have 5 features, X has 2"),
        (SVC(), {"coef": np.full((1, 2), np.nan)}, "finite"),
        (SVC(), {"dual": np.zeros(7)}, "dual must hold"),
        (SVC(), {"intercept": np.zeros(3)}, "intercept has shape"),
        (SVC(kernel="precomputed"), {}, "precomputed"),
        (SVC(), {"points": None}, "give these as points"),
    ],
)
def test_what_does_not_fit_is_refused(model: Any, options: dict[str, Any], message: str) -> None:
    given = {"points": X[:2], "coef": np.ones((1, 2)), "intercept": 0.0} | options
    with pytest.raises(ValueError, match=message):
        certify_kernel(model, X, y, **given)


def test_other_machines_pose_no_problem_for_points() -> None:
    with pytest.raises(TypeError, match="an SVC or SVR of saddlesvm"):
        certify_kernel(OneClassSVM(), X, points=X[:2], coef=np.ones((1, 2)))


def test_a_kernel_that_is_not_definite_has_no_bound() -> None:
    model = SVC(kernel="sigmoid", gamma=1.0, coef0=1.0)
    with pytest.warns(NotCertifiedWarning, match="no dual bound"):
        found = certify_kernel(model, X, y, points=X[:2], coef=np.ones((1, 2)))
    values = Kernel("sigmoid", 1.0, 3, 1.0)(X, X[:2]).sum(axis=1)
    own = values[:2].sum() / 2
    paid = np.maximum(0.0, 1.0 - np.where(y == 1, 1, -1) * values).sum()
    assert found.dual == -np.inf and found.primal == pytest.approx(own + paid)
