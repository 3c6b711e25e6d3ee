"""Labels and seeds: the quick ways through the checks give what the slow ones give."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.utils.multiclass import check_classification_targets

from saddlesvm import LinearSVC
from saddlesvm.data.label_checks import encode_classes
from saddlesvm.estimators.base import draw_seed
from saddlesvm.runtime.randomness import SEEDS

LABELS = [
    np.array([1, 0, 0, 1]),
    np.array([-1.0, 1.0, 1.0]),
    np.array([True, False, True]),
    np.array([-128, 127, 3] * 300, dtype=np.int8),
    np.array([2**63 + 5, 2**63, 2**63 + 9] * 20, dtype=np.uint64),
    np.array([7, 3, 5, 3, 7, 5, 3, 3, 3, 3]),
    np.array([-(2**62), 2**62, 0]),
    np.array([0.0, 2.0, 5.0]),
    np.array(["b", "a", "c", "a"]),
    np.array(["b", "a"], dtype=object),
    np.array([4, 4, 4]),
]


@pytest.mark.parametrize("labels", LABELS, ids=lambda labels: f"{labels.dtype}-{len(labels)}")
def test_labels_are_encoded_as_by_sorting(labels):
    classes, codes = encode_classes(labels)
    expected, numbers = np.unique(labels, return_inverse=True)
    np.testing.assert_array_equal(classes, expected)
    np.testing.assert_array_equal(codes, numbers)
    assert classes.dtype == expected.dtype
    assert codes.dtype.kind == "i"


@pytest.mark.parametrize("labels", [np.array([0.5, 1.0]), np.array([0.5, 1.0, 2.0])])
def test_labels_with_fractions_are_refused(labels):
    with pytest.raises(ValueError, match="continuous"):
        encode_classes(labels)


def test_labels_that_look_like_targets_are_warned_about_if_scikit_learn_does():
    labels = np.arange(30)
    with warnings.catch_warnings(record=True) as theirs:
        warnings.simplefilter("always")
        check_classification_targets(labels)  # warns from version 1.7 on
    with warnings.catch_warnings(record=True) as ours:
        warnings.simplefilter("always")
        encode_classes(labels)
    assert [str(warning.message) for warning in ours] == [str(warning.message) for warning in theirs]


@pytest.mark.parametrize("convert", [np.asarray, np.asfortranarray, np.ndarray.tolist, lambda X: X.astype(">f8")])
def test_layouts_that_are_converted_give_the_same_model(convert):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = np.where(X[:, 0] > 0, 1, -1)
    model, other = (LinearSVC(random_state=0).fit(rows, y) for rows in (X, convert(X)))
    np.testing.assert_array_equal(model.coef_, other.coef_)
    assert other.n_features_in_ == 3
    with pytest.raises(ValueError, match="features"):
        other.predict(X[:, :2].copy())


def test_rows_without_values_are_refused():
    for shape in ((0, 3), (3, 0)):
        with pytest.raises(ValueError, match="minimum of 1"):
            LinearSVC().fit(np.empty(shape), np.zeros(shape[0]))


def test_a_seed_is_the_random_states_own():
    assert draw_seed(3) == draw_seed(np.int64(3)) != draw_seed(4)
    assert all(0 <= draw_seed(state) < SEEDS for state in (0, 2**32 - 1, None))
    given, same = np.random.RandomState(5), np.random.RandomState(5)
    drawn = [draw_seed(given), draw_seed(given)]
    assert drawn == [draw_seed(same), draw_seed(same)] and drawn[0] != drawn[1]
    for bad in (-1, 2**32, "zero"):
        with pytest.raises(ValueError, match=r"seed|Seed"), warnings.catch_warnings():
            draw_seed(bad)
