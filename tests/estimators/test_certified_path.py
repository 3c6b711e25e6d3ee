"""A model and a proof for every C: no fit made anew may ever contradict what the path claims."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import accuracy_score

from saddlesvm import LinearSVC, LinearSVR, NotCertifiedWarning, Outcome, Store
from saddlesvm.data import load_bundled
from saddlesvm.problem.path_bounds import Interval, Knot
from saddlesvm.svm import C_max

GAP = 2e-2
ENDS = (1e-2, 1e2)
CS = np.geomspace(*ENDS, 9)[1:-1]


@pytest.fixture(scope="module")
def heart():
    return load_bundled("heart")


def objective(model, X, y, weights=None):
    """The objective of a model in the C form, by the textbook."""
    z = X @ np.ravel(model.coef_) + np.ravel(model.intercept_)[0]
    if isinstance(model, LinearSVR):
        losses = {"epsilon_insensitive": np.maximum(np.abs(z - y) - model.epsilon, 0), "squared": (z - y) ** 2}
    else:
        margin = np.where(y == model.classes_[1], 1.0, -1.0) * z
        short = np.maximum(0.0, 1.0 - margin)
        losses = {"hinge": short, "squared_hinge": short**2, "logistic": np.logaddexp(0.0, -margin)}
    ratio = {"l1": 1.0, "elasticnet": model.l1_ratio}.get(model.penalty, 0.0)
    coef, b = np.ravel(model.coef_), np.ravel(model.intercept_)[0] / model.intercept_scaling
    penalty = (1.0 - ratio) * (coef @ coef) + 2.0 * ratio * np.abs(coef).sum()
    if model.intercept == "regularized":
        penalty += (1.0 - ratio) * b * b if ratio < 1.0 else 2.0 * abs(b)
    paid = losses[model.loss] @ (np.ones(len(y)) if weights is None else weights)
    return 0.5 * penalty + model.C * paid


@pytest.mark.parametrize("intercept", ["regularized", "free"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_no_fit_contradicts_a_claim(heart, loss, intercept):
    X = heart.X / np.abs(heart.X).max(axis=0)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    options = {"loss": loss, "intercept": intercept, "random_state": 0}
    path = LinearSVC(**options).path(X, heart.y, C=ENDS, gap=GAP, sample_weight=weights)
    assert path.outcome is Outcome.CERTIFIED
    assert not path.unproven
    assert path.proven_gap <= GAP
    for C in CS:
        claim, model = path.certificate(C), path.model(C)
        best = LinearSVC(C=C, tol=1e-9, **options).fit(X, heart.y, sample_weight=weights).certificate_
        assert claim.relative_gap <= path.proven_gap
        assert claim.dual <= best.primal * (1 + 1e-12)
        assert best.dual <= objective(model, X, heart.y, weights) <= claim.primal * (1 + 1e-12)


@pytest.mark.parametrize("penalty", ["elasticnet", "l1"])
@pytest.mark.parametrize(("loss", "intercept"), [("hinge", "regularized"), ("logistic", "free")])
def test_no_fit_contradicts_a_claim_with_an_l1_norm(heart, penalty, loss, intercept):
    X = heart.X / np.abs(heart.X).max(axis=0)
    options = {"loss": loss, "intercept": intercept, "penalty": penalty, "l1_ratio": 0.4, "random_state": 0}
    path = LinearSVC(**options).path(X, heart.y, gap=GAP)
    assert path.outcome is Outcome.CERTIFIED
    assert path.proven_gap <= GAP
    assert path.Cs[0] == C_max(LinearSVC(**options), X, heart.y)
    for C in np.geomspace(*path.Cs[[0, -1]], 7)[1:-1]:
        claim, model = path.certificate(C), path.model(C)
        best = LinearSVC(C=C, tol=1e-9, **options).fit(X, heart.y).certificate_
        assert claim.relative_gap <= path.proven_gap
        assert claim.dual <= best.primal * (1 + 1e-12)
        assert best.dual <= objective(model, X, heart.y) <= claim.primal * (1 + 1e-12)
        again = model.set_params(warm_start=True, tol=2 * GAP).fit(X, heart.y)
        assert again.n_iter_ <= 1  # the mixture is proven as it is, by its own dual variables


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared"])
def test_regression_has_paths_too(loss):
    random = np.random.default_rng(1)
    X = random.normal(size=(80, 4))
    y = X @ [1.0, -2.0, 0.5, 0.0] + 0.3 * random.normal(size=80)
    path = LinearSVR(loss=loss, epsilon=0.1, random_state=0).path(X, y, C=ENDS, gap=GAP)
    for C in CS[::2]:
        best = LinearSVR(C=C, loss=loss, epsilon=0.1, tol=1e-9, random_state=0).fit(X, y).certificate_
        assert path.certificate(C).dual <= best.primal * (1 + 1e-12)
        assert best.dual <= objective(path.model(C), X, y) <= path.certificate(C).primal * (1 + 1e-12)
    assert path.score(X, y).max() > 0.9


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_several_classes_have_one_path(multi_class):
    random = np.random.default_rng(2)
    y = np.arange(120) % 3
    X = random.normal(size=(120, 3)) + 2.0 * np.eye(3)[y]
    options = {"multi_class": multi_class, "loss": "logistic", "random_state": 0}
    path = LinearSVC(**options).path(X, y, C=ENDS, gap=GAP)
    for C in (0.03, 0.7, 20.0):
        best = LinearSVC(C=C, tol=1e-9, **options).fit(X, y)
        claims = path.certificates(C)
        assert len(claims) == 3
        for claim, own in zip(claims, best.certificates_, strict=True):
            assert claim.dual <= own.primal * (1 + 1e-12)
            assert own.dual <= claim.primal * (1 + 1e-12)
        assert path.certificate(C).relative_gap <= GAP


@pytest.mark.parametrize("kind", ["csr", "float32", "store"])
def test_every_layout_has_the_same_path(heart, kind, tmp_path):
    X = (heart.X / np.abs(heart.X).max(axis=0)).astype(np.float32)
    whole = LinearSVC(loss="hinge", random_state=0).path(X.astype(np.float64), heart.y, C=ENDS, gap=GAP)
    given = {"csr": sparse.csr_matrix(X), "float32": X}.get(kind)
    if kind == "store":
        path = LinearSVC(loss="hinge", random_state=0).path(Store.create(tmp_path / "s", X, heart.y), C=ENDS, gap=GAP)
    else:
        path = LinearSVC(loss="hinge", random_state=0).path(given, heart.y, C=ENDS, gap=GAP)
    for C in CS[::5]:
        claim, other = path.certificate(C), whole.certificate(C)
        assert claim.relative_gap <= GAP
        assert claim.dual <= other.primal * (1 + 1e-9)
        assert other.dual <= claim.primal * (1 + 1e-9)


def test_a_path_in_lambda_is_that_in_C(heart):
    X, n = heart.X / np.abs(heart.X).max(axis=0), len(heart.X)
    lam = (1e-4, 1e-1)
    path = LinearSVC(loss="hinge", random_state=0).path(X, heart.y, lam=lam, gap=GAP)
    np.testing.assert_allclose(path.Cs[[0, -1]], [1 / (lam[1] * n), 1 / (lam[0] * n)])
    model = path.model(path.Cs[0] * 3.0)
    assert model.certificate_.form == "lambda"
    np.testing.assert_allclose(model.lam, 1.0 / (n * path.Cs[0] * 3.0))
    alone = LinearSVC(lam=model.lam, loss="hinge", tol=1e-9, random_state=0).fit(X, heart.y)
    assert model.certificate_.dual <= alone.certificate_.primal <= model.certificate_.primal
    again = model.set_params(warm_start=True, tol=1e-6).fit(X, heart.y)
    assert again.certificate_.relative_gap <= 1e-6


def test_threads_make_no_difference(heart):
    X = heart.X / np.abs(heart.X).max(axis=0)
    one, two = (
        LinearSVC(loss="logistic", random_state=0, n_jobs=jobs).path(X, heart.y, C=ENDS, gap=GAP) for jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.Cs, two.Cs)
    for first, second in zip(one.knots, two.knots, strict=True):
        np.testing.assert_array_equal(first.coef, second.coef)


def test_scores_are_those_of_the_models(heart):
    X = heart.X / np.abs(heart.X).max(axis=0)
    path = LinearSVC(random_state=0).path(X, heart.y, C=ENDS, gap=GAP)
    by_mixing = path.score(X, heart.y, CS)
    one_by_one = [accuracy_score(heart.y, path.model(C).predict(X)) for C in CS]
    np.testing.assert_array_equal(by_mixing, one_by_one)
    np.testing.assert_array_equal(path.score(X, heart.y, CS, scoring="accuracy"), one_by_one)
    assert path.best(X, heart.y, CS) == CS[np.argmax(by_mixing)]
    assert path.grid().size == path.score(X, heart.y).size


def test_a_stopped_path_keeps_what_it_has_proven(heart):
    X = heart.X / np.abs(heart.X).max(axis=0)
    fits = []

    def third(record):
        fits.append(record)
        return len(fits) > 6

    with pytest.warns(NotCertifiedWarning, match=r"the path ended early \(interrupted\)"):
        path = LinearSVC(loss="logistic", random_state=0, callbacks=[third]).path(X, heart.y, C=ENDS, gap=1e-4)
    assert path.outcome is Outcome.INTERRUPTED
    assert path.proven_gap > 1e-4
    for low, high in path.unproven:
        C = np.sqrt(low * high)
        best = LinearSVC(C=C, tol=1e-9, loss="logistic", random_state=0).fit(X, heart.y).certificate_
        assert path.certificate(C).dual <= best.primal * (1 + 1e-12)


def test_a_time_limit_ends_a_path(heart):
    with pytest.warns(NotCertifiedWarning, match="1e-06 was asked for"):
        path = LinearSVC(loss="hinge", random_state=0, max_time=1e-3).path(heart.X, heart.y, C=ENDS, gap=1e-6)
    assert path.outcome is Outcome.TIME_LIMIT


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"C": 1.0}, r"C of a path is its two ends, C=\(smallest, largest\); got C=1.0"),
        ({"C": (1.0, 0.1)}, r"the ends of a path must ascend; got \(1.0, 0.1\)"),
        ({"C": (0.0, 1.0)}, "C must be"),
        ({"C": (1.0, 2.0, 3.0)}, "two ends"),
        ({"C": (0.1, 1.0), "lam": (0.1, 1.0)}, "in C or in lam"),
        ({"gap": 0.0}, "gap must be"),
        ({"gap": 0.1, "multi_class": "crammer_singer"}, r"multi_class='ovr' or 'ovo'"),
        ({"gap": 0.1, "warm_start": True}, "leave warm_start out"),
    ],
)
def test_bad_paths_are_refused(heart, options, message):
    asked = {name: options[name] for name in ("C", "lam", "gap") if name in options}
    own = {name: given for name, given in options.items() if name not in asked}
    with pytest.raises(ValueError, match=message):
        LinearSVC(**own).path(heart.X, heart.y, **asked)


def test_C_outside_the_ends_is_refused(heart):
    path = LinearSVC(random_state=0).path(heart.X, heart.y, C=(0.5, 1.0), gap=0.5)
    with pytest.raises(ValueError, match=r"C must be between 0\.5 and 1, the ends of the path; got 2\.0"):
        path.certificate(2.0)


def test_the_largest_gap_between_two_fits_is_found_in_closed_form():
    """A path over six decades must not look proven because its middle was not looked at closely enough."""
    random = np.random.default_rng(3)
    for trial in range(60):
        k, d = int(random.integers(1, 4)), int(random.integers(1, 4))
        C1 = 10.0 ** random.uniform(-4, 2)
        C2 = C1 * 10.0 ** random.uniform(0.01, 6)
        knots = []
        for C in (C1, C2):
            w, v = random.normal(size=(2, k, d)) * 10.0 ** random.uniform(-3, 1)
            R = 0.5 * np.einsum("kj,kj->k", w, w)
            primal = R + C * random.uniform(0.1, 10.0, k)
            dual, root = primal * random.uniform(0.5, 1.0, k), (1.0, 0.5, 0.0)[trial % 3]
            knots.append(Knot(C, w, np.zeros(k), root * w, root * v, primal, dual, charged=R))
        interval = Interval(*knots)
        grid = np.concatenate([np.geomspace(C1, C2, 201), np.linspace(C1, C2, 201)])
        grid = np.clip(grid, C1, C2)
        seen = max(knot.relative_gap for knot in knots)
        for C in grid:
            primal, dual = (side.sum() for side in interval.bounds(C))
            seen = max(seen, (primal - dual) / max(abs(primal), abs(dual)))
        assert seen <= interval.gap, trial
        assert interval.gap <= seen + 5e-2 * abs(seen) + 1e-6, trial


@pytest.mark.parametrize("seed", range(24, 36))
def test_the_proven_gap_holds_at_every_knot_too(seed):
    random = np.random.default_rng(seed)
    n, d = int(random.integers(20, 80)), int(random.integers(1, 6))
    X = random.normal(size=(n, d))
    y = np.where(X @ random.normal(size=d) + random.normal(size=n) > 0, 1, -1)
    low = 10.0 ** random.uniform(-5, 1)
    ends, gap = (low, low * 10.0 ** random.uniform(0, 0.5)), 10.0 ** random.uniform(-3.5, -1)
    loss, intercept = "hinge", str(random.choice(["regularized", "free"]))
    path = LinearSVC(loss=loss, intercept=intercept, random_state=0).path(X, y, C=ends, gap=gap)
    for C in (*path.Cs, *np.geomspace(*ends, 5)[1:-1]):
        best = LinearSVC(C=C, tol=1e-12, max_iter=2000, loss=loss, intercept=intercept, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotCertifiedWarning)
            proof = best.fit(X, y).certificate_
        paid = objective(path.model(C), X, y)
        assert paid - proof.primal <= path.proven_gap * paid  # an independent fit knows the true excess
        assert path.certificate(C).relative_gap <= path.proven_gap


def test_a_fit_that_ends_before_it_has_a_dual_point_proves_zero():
    random = np.random.default_rng(0)
    X, weights = random.normal(size=(32, 6)), 10.0 ** random.uniform(-5.0, 6.0, 32)
    Y = random.integers(0, 2, (32, 2))
    options = {"loss": "logistic", "intercept": "free", "max_iter": 1, "max_time": 1e-9}
    with pytest.warns(NotCertifiedWarning):
        alone = LinearSVC(C=ENDS[0], **options).fit(X, Y, sample_weight=weights)
    assert not hasattr(alone, "dual_coef_")
    how = LinearSVC(C="auto:low=1e-2,high=1e2,size=3", **options)
    with pytest.warns(NotCertifiedWarning):
        found = how.fit(X, Y, sample_weight=weights)
    assert found.outcome_ is not Outcome.CERTIFIED
    assert np.isfinite(found.certificate_.primal)
