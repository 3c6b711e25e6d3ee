"""Small problems over the same rows that are solved and certified together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from saddlesvm import LinearSVC, LinearSVR
from saddlesvm.fit.outcome import Outcome
from saddlesvm.multiclass import small_classes

random = np.random.default_rng(5)
X = random.normal(size=(90, 6))
Y = (X[:, 0] + 0.5 * random.normal(size=90) > 0.0).astype(int) + (X[:, 1] > 0.5)
WEIGHTS = random.integers(0, 4, size=90).astype(float)


def alone(model: Any, monkeypatch: pytest.MonkeyPatch, *data: Any) -> Any:
    """The model fitted problem by problem."""
    with monkeypatch.context() as changed:
        changed.setattr("saddlesvm.multiclass.linear_fit.small_phase", lambda problem: None)
        return model.fit(*data)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "hinge"])
@pytest.mark.parametrize(
    "rows", [X, X[:, :1], np.hstack([X] * 20), sparse.csr_matrix(X)], ids=lambda one: str(one.shape)
)
@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}, {"class_weight": "balanced"}, {"C": 1e4}], ids=str)
def test_each_class_has_the_model_that_it_has_alone(
    loss: str, rows: Any, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for weights in (None, WEIGHTS):
        given = {"loss": loss, "random_state": 0, **options}
        whole = LinearSVC(**given).fit(rows, Y, weights)
        each = alone(LinearSVC(**given), monkeypatch, rows, Y, weights)
        assert whole.outcome_ is Outcome.CERTIFIED
        for one, other in zip(whole.certificates_, each.certificates_, strict=True):
            assert one.sound and one.relative_gap <= 1e-4
            assert one.dual <= other.primal and other.dual <= one.primal  # each bounds the other's model
        assert np.allclose(whole.coef_, each.coef_, rtol=0.0, atol=np.sqrt(4.0 * whole.certificate_.gap) + 1e-12)
        assert whole.dual_coef_.shape == each.dual_coef_.shape
        assert np.allclose(
            whole.dual_coef_ @ (rows.toarray() if sparse.issparse(rows) else rows),
            whole.coef_,
            rtol=0.0,
            atol=np.sqrt(2.0 * whole.certificate_.gap) + 1e-9,
        )


def test_several_targets_too(monkeypatch: pytest.MonkeyPatch) -> None:
    targets = X[:, :3] + random.normal(size=(90, 3))
    given: dict[str, Any] = {"loss": "squared_epsilon_insensitive", "random_state": 0}
    for y in (targets, targets[:, 0]):
        whole = LinearSVR(**given).fit(X, y)
        each = alone(LinearSVR(**given), monkeypatch, X, y)
        assert whole.outcome_ is Outcome.CERTIFIED
        assert np.allclose(whole.coef_, each.coef_, rtol=0.0, atol=np.sqrt(4.0 * whole.certificate_.gap) + 1e-12)


@pytest.mark.parametrize("penalty", ["l1", "l2"])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive", "squared", "huber", "absolute"])
def test_targets_whose_rows_have_two_variables_are_certified(loss: Any, penalty: Any) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.normal(size=(60, 2))
    model = LinearSVR(loss=loss, penalty=penalty, epsilon=0.1, random_state=0).fit(X, y)
    assert model.outcome_ is Outcome.CERTIFIED
    for k, certificate in enumerate(model.certificates_):
        alone = LinearSVR(loss=loss, penalty=penalty, epsilon=0.1, random_state=0).fit(X, y[:, k]).certificate_
        assert certificate.dual <= alone.primal and alone.dual <= certificate.primal


def test_what_is_not_certified_together_has_a_fit_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_classes, "MOST_STEPS", 2)  # too few for the harder classes
    model = LinearSVC(random_state=0, C=10.0).fit(X, Y)
    assert model.outcome_ is Outcome.CERTIFIED
    assert np.allclose(model.coef_, LinearSVC(random_state=0, C=10.0, tol=1e-10).fit(X, Y).coef_, atol=0.1)


def test_callbacks_see_each_class() -> None:
    seen: list[str] = []
    LinearSVC(random_state=0, callbacks=[lambda record: seen.append(record.problem)]).fit(X, Y)
    assert len(set(seen)) == 3
