"""scikit-learn's own callbacks on our estimators: what they are told, stopping, outer estimators."""

from __future__ import annotations

import numpy as np
import pytest

callback = pytest.importorskip("sklearn.callback")

from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

from saddlesvm import LinearSVC, LinearSVR  # noqa: E402
from saddlesvm.data import load_bundled  # noqa: E402
from saddlesvm.fit.outcome import Outcome  # noqa: E402


class Listener:
    """Notes what it is told; asks to stop after so many certificates."""

    def __init__(self, patience=None):
        self.patience = patience
        self.told, self.scores = [], []

    def setup(self, estimator, context):
        self.told.append(("setup", context.task_name))

    def teardown(self, estimator, context):
        self.told.append(("teardown", context.task_name))

    def on_fit_task_begin(self, estimator, context):
        self.told.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context, *, X, y, fitted_estimator):
        self.told.append(("end", context.task_name))
        if fitted_estimator is not None:
            self.scores.append(fitted_estimator.score(X, y))
        return context.task_name == "certificate" and len(self.scores) == self.patience


pytestmark = pytest.mark.filterwarnings("ignore:stopped before the certificate")
SLOW = {"solver": "sdca", "tol": 1e-10, "max_iter": 40, "random_state": 0}


@pytest.fixture(scope="module")
def notes():
    table = load_bundled("banknote")
    return table.X, table.y


def test_a_fit_and_its_certificates_are_tasks(notes):
    listener = Listener()
    model = LinearSVC(**SLOW).set_callbacks(listener).fit(*notes)
    certificates = len(model.trace_)
    assert certificates > 1
    assert listener.told == [
        ("setup", "fit"), ("begin", "fit"), *[("begin", "certificate"), ("end", "certificate")] * certificates,
        ("end", "fit"), ("teardown", "fit"),
    ]  # fmt: skip
    assert listener.scores[-1] == model.score(*notes)
    plain = LinearSVC(**SLOW).fit(*notes)
    np.testing.assert_array_equal(model.coef_, plain.coef_)


def test_a_callback_can_stop_the_fit(notes):
    model = LinearSVC(**SLOW).set_callbacks(Listener(patience=1)).fit(*notes)
    assert model.outcome_ is Outcome.INTERRUPTED
    assert len(model.trace_) == 1


def test_a_failing_fit_is_torn_down(notes):
    listener = Listener()
    model = LinearSVC(callbacks=[lambda record: 1 / 0]).set_callbacks(listener)
    with pytest.raises(ZeroDivisionError):
        model.fit(*notes)
    assert listener.told[-1] == ("teardown", "fit")
    assert not hasattr(model, "_callback_fit_ctx")


@pytest.mark.parametrize("options", [{"multi_class": "ovr"}, {"multi_class": "ovo", "n_jobs": 2}])
def test_sub_problems_are_tasks_between(options):
    table = load_bundled("banknote")
    y = table.y + 2 * (table.X[:, 0] > 0)
    listener = Listener()
    model = LinearSVC(random_state=0, **options).set_callbacks(listener).fit(table.X, y)
    names = {name for kind, name in listener.told if kind == "end"} - {"fit", "certificate"}
    assert len(names) == len(model.coef_)
    assert sum(told[0] == "begin" for told in listener.told) == sum(told[0] == "end" for told in listener.told)
    assert listener.scores == [model.score(table.X, y)]


def test_regression_and_crammer_singer(notes):
    X, y = notes
    listener = Listener()
    model = LinearSVR(random_state=0).set_callbacks(listener).fit(X, y.astype(float))
    assert listener.scores[-1] == model.score(X, y)
    listener = Listener()
    joint = LinearSVC(multi_class="crammer_singer", random_state=0).set_callbacks(listener).fit(X, y)
    assert listener.scores == [joint.score(X, y)]


def test_callbacks_of_outer_estimators_reach_ours(notes):
    monitor = callback.ScoringMonitor(scoring="accuracy")
    pipeline = make_pipeline(StandardScaler(), LinearSVC(random_state=0))
    search = GridSearchCV(pipeline, {"linearsvc__C": [0.1, 1.0]}, cv=2).set_callbacks(callback.ProgressBar())
    search.fit(*notes)
    assert search.best_score_ > 0.9
    model = LinearSVC(random_state=0).set_callbacks(monitor).fit(*notes)
    scores = monitor.get_logs().data
    assert scores[-1]["accuracy"] == model.score(*notes)


def test_only_callbacks_are_taken():
    with pytest.raises(TypeError, match="FitCallback"):
        LinearSVC().set_callbacks(print)
