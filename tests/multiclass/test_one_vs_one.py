"""One-vs-one: its votes, its sub-problems, its decision function."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from sklearn.utils.multiclass import _ovr_decision_function

from saddlesvm import LinearSVC
from saddlesvm.estimators.fitted import fitted_value
from saddlesvm.multiclass.sub_problems import Pairs, vote
from saddlesvm.problem.losses import Hinge
from saddlesvm.rows.layouts import as_rows
from support import distance_bound
from support.classes import blobs


def test_votes_are_scikit_learns():
    random = np.random.default_rng(0)
    scores = random.normal(size=(50, 10))
    np.testing.assert_allclose(vote(scores, 5), _ovr_decision_function(scores > 0, scores, 5))


@pytest.mark.parametrize("strength", [{"C": 0.2}, {"lam": 0.05}])
def test_each_pair_is_the_two_class_problem_of_its_rows(strength):
    X, y = blobs(n=80)
    weights = np.where(np.arange(80) % 5 == 0, 0.0, 1.5)
    names = np.array(["c", "a", "b"])[y]
    model = LinearSVC(multi_class="ovo", tol=1e-7, **strength).fit(X, names, weights)
    for k, (first, second) in enumerate(combinations(model.classes_, 2)):
        mine = np.isin(names, [first, second])
        alone = LinearSVC(tol=1e-7, **strength).fit(X[mine], names[mine], weights[mine])
        unit = 1.0 if "C" in strength else mine.sum() * fitted_value(alone).C
        gaps = [unit * one.gap for one in (model.certificates_[k], alone.certificate_)]
        assert np.linalg.norm(model.coef_[k] - alone.coef_[0]) <= distance_bound(*gaps)
    assert model.certificate_.primal == pytest.approx(sum(one.primal for one in model.certificates_))


def test_the_decision_function_counts_votes():
    X, y = blobs(k=4)
    model = LinearSVC(multi_class="ovo", tol=1e-3, random_state=0).fit(X, y)
    pairs = X @ model.coef_.T + model.intercept_
    assert pairs.shape == (90, 6)
    np.testing.assert_allclose(model.decision_function(X), vote(pairs, 4), rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), model.decision_function(X).argmax(axis=1))
    assert not hasattr(LinearSVC(multi_class="ovo", loss="logistic"), "predict_proba")


def test_a_pair_is_a_view_of_the_rows():
    X, y = blobs()
    design = as_rows(X)
    problem = Pairs(y, np.arange(3))[1].problem(design, Hinge(), C=1.0, norms=np.ones(len(y)))
    assert problem.X is design
    np.testing.assert_array_equal(problem.members, np.flatnonzero(y != 1))
