"""Rows on a device: the same optimum, a true certificate, results in the library of the rows, and refusals in words."""

from __future__ import annotations

import array_api_strict as strict
import numpy as np
import pytest

from saddlesvm import LinearSVC, LinearSVR
from saddlesvm.fit.outcome import Outcome
from saddlesvm.problem.loss import methods_of
from saddlesvm.problem.losses import make_loss
from saddlesvm.rows.array_libraries import copy_to_device, copy_to_numpy, is_on_device
from saddlesvm.rows.device import Device
from saddlesvm.rows.device_array import DeviceArray

FAR = strict.Device("device1")


def far(values, dtype=None):
    """Values on a device of the strict array API that is not the CPU."""
    return strict.asarray(values, dtype=dtype, device=FAR)


def torch_rows(values, dtype=None):
    """Values as a tensor of torch, which the place keeps as it is."""
    torch = pytest.importorskip("torch")
    return torch.as_tensor(values, dtype=dtype)


@pytest.fixture
def data():
    random = np.random.default_rng(8)
    X = random.standard_normal((900, 9))
    y = np.where(X @ random.standard_normal(9) + random.standard_normal(900) + 0.3 > 0.0, 1, -1)
    return X, y


PLACES = {"strict": lambda X: Device.of(far(X)), "torch": lambda X: Device.of(torch_rows(X))}


@pytest.mark.parametrize("intercept", ["free", "regularized"])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "smooth_hinge", "hinge"])
@pytest.mark.parametrize("place", PLACES)
def test_the_optimum_is_that_of_rows_in_memory(data, place, loss, intercept):
    X, y = data
    there = LinearSVC(loss=loss, intercept=intercept, C=0.5, tol=1e-7).fit(PLACES[place](X), y)
    here = LinearSVC(loss=loss, intercept=intercept, C=0.5, tol=1e-7, solver="dcd").fit(X, y)
    assert there.outcome_ is Outcome.CERTIFIED
    assert there.certificate_.dual <= here.certificate_.primal
    assert here.certificate_.dual <= there.certificate_.primal
    coef = copy_to_numpy(there.coef_)[0]
    scores = X @ coef + copy_to_numpy(there.intercept_)
    losses = {"logistic": np.logaddexp(0.0, -y * scores), "squared_hinge": np.maximum(0.0, 1.0 - y * scores) ** 2}
    if loss in losses:
        charged = coef @ coef + (copy_to_numpy(there.intercept_)[0] ** 2 if intercept == "regularized" else 0.0)
        assert 0.5 * charged + 0.5 * losses[loss].sum() == pytest.approx(there.certificate_.primal, rel=1e-10)


@pytest.mark.parametrize("intercept", ["free", "regularized"])
@pytest.mark.parametrize("place", PLACES)
def test_classes_compete_there_too(data, place, intercept):
    X, y = data
    y = np.where(X[:, 0] > 0.7, 2, y)
    for split in ("multinomial", "ovr"):
        given = {"loss": "logistic", "multi_class": split, "intercept": intercept, "tol": 1e-6}
        there, here = LinearSVC(**given).fit(PLACES[place](X), y), LinearSVC(**given).fit(X, y)
        assert there.outcome_ is Outcome.CERTIFIED
        assert there.certificate_.dual <= here.certificate_.primal
        assert here.certificate_.dual <= there.certificate_.primal


def test_results_are_where_the_rows_are(data):
    X, y = data
    rows = far(X, strict.float32)
    assert is_on_device(rows)
    assert not is_on_device(strict.asarray(X))  # the CPU's memory is NumPy's, too
    model = LinearSVC(loss="logistic").fit(rows, far(y))
    for found in (model.coef_, model.intercept_, model.predict(rows), model.decision_function(rows)):
        assert found.device == FAR
    same = LinearSVC(loss="logistic").fit(X.astype(np.float32), y)
    assert (copy_to_numpy(model.predict(rows)) == same.predict(X.astype(np.float32))).mean() > 0.99
    assert model.score(X, y) == (model.predict(X) == y).mean()
    regression = LinearSVR(loss="huber:delta=1.0").fit(rows, far(X[:, 0]))
    assert regression.predict(rows).device == FAR


@pytest.mark.parametrize("kind", ["float16", "float32", "bfloat16", "int8"])
def test_narrow_tensors_are_certified_in_double_precision(data, kind):
    torch = pytest.importorskip("torch")
    rows = (torch.as_tensor(data[0]) * 10.0).to(getattr(torch, kind))
    model = LinearSVC(loss="logistic", C=0.01, tol=1e-8).fit(Device.of(rows), data[1])
    assert model.outcome_ is Outcome.CERTIFIED
    scores = rows.double().numpy() @ copy_to_numpy(model.coef_)[0] + copy_to_numpy(model.intercept_)
    charged = float((copy_to_numpy(model.coef_) ** 2).sum() + (copy_to_numpy(model.intercept_) ** 2).sum())
    primal = 0.5 * charged + 0.01 * np.logaddexp(0.0, -data[1] * scores).sum()
    assert primal == pytest.approx(model.certificate_.primal, rel=1e-10)


def test_what_a_device_does_not_do_is_refused_in_words(data):
    X, y = data
    rows = far(X)
    for given in ({"penalty": "l1"}, {"solver": "dcd"}):
        with pytest.raises(ValueError, match=r"place of their own|on a device"):
            LinearSVC(**given).fit(rows, y)
    with pytest.raises(ValueError, match="place of their own"):
        LinearSVC(multi_class="crammer_singer").fit(rows, np.where(X[:, 0] > 0.7, 2, y))
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        LinearSVC().fit(far(X), y)
    with pytest.raises(ValueError, match="two axes"):
        LinearSVC().fit(far(X[0]), y)


@pytest.mark.parametrize("multi_class", ["ovr", "multinomial"])
@pytest.mark.parametrize("intercept", ["free", "regularized"])
def test_weights_of_rows_count_there(data, intercept, multi_class):
    X, y = data
    y = np.where(X[:, 0] > 0.7, 2, y) if multi_class == "multinomial" else y
    weights = np.random.default_rng(3).uniform(0.0, 2.0, y.size)
    given = {"loss": "logistic", "multi_class": multi_class, "intercept": intercept, "tol": 1e-6}
    there = LinearSVC(**given).fit(far(X), y, sample_weight=far(weights))
    here = LinearSVC(**given).fit(X, y, sample_weight=weights)
    assert there.outcome_ is Outcome.CERTIFIED
    assert there.certificate_.dual <= here.certificate_.primal
    assert here.certificate_.dual <= there.certificate_.primal


@pytest.mark.parametrize("loss", ["squared", "huber", "squared_epsilon_insensitive"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("place", PLACES)
def test_targets_are_fitted_there_in_blocks(data, monkeypatch, place, weighted, loss):
    monkeypatch.setattr("saddlesvm.rows.device.BLOCK_VALUES", 100)
    monkeypatch.setattr("saddlesvm.rows.device.IN_CACHE", 100)
    X, y = data[0], data[0] @ np.arange(9.0) + data[1]
    weights = np.random.default_rng(3).uniform(0.0, 2.0, y.size).round(1) if weighted else None
    given = {"loss": loss, "C": 0.1, "tol": 1e-8}
    there = LinearSVR(**given).fit(PLACES[place](X), y, sample_weight=weights)
    here = LinearSVR(**given).fit(X, y, sample_weight=weights)
    assert there.outcome_ is Outcome.CERTIFIED
    assert there.certificate_.dual <= here.certificate_.primal
    assert here.certificate_.dual <= there.certificate_.primal


@pytest.mark.parametrize("name", ["logistic", "squared_hinge", "smooth_hinge", "hinge", "huber", "squared"])
def test_a_loss_is_computed_there_as_here(name):
    loss = make_loss(name)
    methods = methods_of(loss)
    random = np.random.default_rng(1)
    z = random.normal(size=40) * np.repeat([1e-3, 1.0, 1e2, 1e4], 10)
    y = np.where(random.random(40) < 0.5, -1.0, 1.0)
    s = random.uniform(0.1, 3.0, 40)
    there = [DeviceArray(far(values)) for values in (z, y, s)]
    a = -s * methods.subgradient(loss, z, y)
    a_there = -there[2] * methods.subgradient(loss, there[0], there[1])
    pairs = [
        (a, a_there),
        (methods.value(loss, z, y), methods.value(loss, there[0], there[1])),
        (methods.conjugate(loss, a, y, s), methods.conjugate(loss, a_there, there[1], there[2])),
        (s * methods.curvature(loss, z, y), there[2] * methods.curvature(loss, there[0], there[1])),
    ]
    for here, found in pairs:
        assert np.asarray(found) == pytest.approx(here, rel=1e-13)


class SinglePrecision:
    """An array of a device without double precision, as far as it is asked."""

    shape = (20, 3)
    dtype = "single.float32"
    device = "small"

    def __dlpack_device__(self):
        return (8, 0)

    def __array_namespace__(self):
        return self

    float64 = "single.float64"

    def asarray(self, values, dtype, device):
        raise TypeError("no float64 here")


def test_a_device_without_double_precision_is_refused():
    with pytest.raises(ValueError, match="no double precision"):
        LinearSVC().fit(SinglePrecision(), np.resize([0, 1], 20))


def test_rows_of_jax_on_a_device_are_refused(data):
    kind = type("ArrayImpl", (SinglePrecision,), {"__module__": "jaxlib._jax"})
    with pytest.raises(ValueError, match=r"torch\.from_dlpack"):
        LinearSVC().fit(kind(), np.resize([0, 1], 20))


def test_arrays_go_and_come_unchanged():
    values = np.arange(6.0).reshape(2, 3)
    assert (copy_to_numpy(copy_to_device(values, far(values))) == values).all()
    assert (copy_to_numpy(copy_to_device(values.T, torch_rows(values))) == values.T).all()
