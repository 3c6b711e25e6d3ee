"""Audits: suspects, influence, contradictions and separability, against refits and plain constructions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from saddlesvm import LinearSVC, LinearSVR, audit

N = 60


def clouds(classes=2, n=N, seed=0, apart=1.5, d=3):
    random = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return random.normal(size=(n, d)) + apart * np.eye(max(d, classes))[y][:, :d], y


def refit(model, X, y):
    return LinearSVC(**model.get_params()).set_params(tol=1e-10).fit(X, y)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_no_refit_contradicts_moves_margins_or_stable_decisions(loss, classes):
    X, y = clouds(classes)
    model = LinearSVC(loss=loss, C=0.3, tol=1e-3, random_state=0).fit(X, y)
    groups = np.arange(N) % 7
    found = audit(model, X, y, groups=groups)
    whole = refit(model, X, y)
    base = whole.predict(X)
    assert found.stable.any()
    for i in range(0, N, 4):
        kept = np.arange(N) != i
        other = refit(model, X[kept], y[kept])
        moved = np.hypot(np.linalg.norm(other.coef_ - whole.coef_), np.linalg.norm(other.intercept_ - whole.intercept_))
        assert found.moves_low[i] - 1e-4 <= moved <= found.moves_high[i] + 1e-4
        scores = other.decision_function(X[[i]])[0]
        lead = scores * (1 if y[i] else -1) if classes == 2 else scores[y[i]] - np.delete(scores, y[i]).max()
        assert found.margins_low[i] - 1e-4 <= lead <= found.margins_high[i] + 1e-4
        assert (other.predict(X)[found.stable] == base[found.stable]).all()
    for g, name in enumerate(found.groups.names):
        kept = groups != name
        other = refit(model, X[kept], y[kept])
        changed = np.sum(other.predict(X) != base)
        assert found.groups.changes_low[g] <= changed <= found.groups.changes_high[g]
        assert (other.predict(X)[found.groups.stable] == base[found.groups.stable]).all()
        moved = np.hypot(np.linalg.norm(other.coef_ - whole.coef_), np.linalg.norm(other.intercept_ - whole.intercept_))
        assert found.groups.moves_low[g] - 1e-4 <= moved <= found.groups.moves_high[g] + 1e-4
        wrong = np.mean(other.predict(X[~kept]) != y[~kept])
        assert found.groups.errors_low[g] - 1e-12 <= wrong <= found.groups.errors_high[g] + 1e-12


def test_turned_labels_are_the_first_suspects():
    X, y = clouds(3, n=120, seed=1, apart=4.0)
    turned = [5, 50, 77]
    y[turned] = (y[turned] + 1) % 3
    found = audit(LinearSVC(loss="logistic", C=0.1).fit(X, y), X, y)
    assert set(turned) <= set(found.suspects[:4].tolist())
    place = found.suspects.tolist().index(5)
    assert found.suggested[place] == (y[5] - 1) % 3
    assert (np.diff(found.margins[found.suspects]) >= 0.0).all()


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_contradictions_and_what_they_prove(kind):
    X, y = clouds(seed=2, apart=6.0)
    X[10], X[20], X[31] = X[1], X[1], X[40]  # 10 and 20 contradict 1; 31 contradicts 40
    found = audit(LinearSVC(C=0.1).fit(kind(X), y), kind(X), y)
    assert [one.tolist() for one in found.contradictions] == [[1, 10, 20], [31, 40]]
    assert found.separability[1].separable is False


def test_separability_is_proven_either_way():
    X, y = clouds(seed=3, apart=8.0)
    apart = audit(LinearSVC(C=1.0).fit(X, y), X, y).separability[1]
    exact = LinearSVC(C=1e6, loss="hinge", intercept="free", tol=1e-6).fit(X, y)
    assert apart.separable
    assert apart.low - 1e-6 <= 1.0 / np.linalg.norm(exact.coef_) <= apart.high + 1e-6
    near, y = clouds(seed=4, apart=1.0)
    assert audit(LinearSVC(C=1.0).fit(near, y), near, y).separability[1].separable is False


def test_other_models_are_refused_and_missing_curvature_is_told():
    X, y = clouds(seed=5)
    found = audit(LinearSVC(loss="hinge").fit(X, y), X, y)
    assert not found.stable.any()
    assert "influence is not proven" in found.notes[0]
    with pytest.raises(ValueError, match="an audit needs a classifier with one label a row"):
        audit(LinearSVR().fit(X, y), X, y)
    with pytest.raises(ValueError, match="an audit needs penalty='l2'; this model has 'l1'"):
        audit(LinearSVC(penalty="l1").fit(X, y), X, y)
