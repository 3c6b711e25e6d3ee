"""LIBLINEAR's text models: files that LIBLINEAR 2.50 wrote, with the scores it gave, and round trips."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddlesvm import LinearSVC, LinearSVR, load, save_liblinear
from saddlesvm.data import DataError

X = np.array([[1, 0.5, 0], [-1, 0, 0.3], [0.2, 1, 0], [0, -1, 0.4], [0, 0, 1.0]])

# labels 5 and 2, -s 1 -B 2; its score is that of the first label
TWO = """solver_type L2R_L2LOSS_SVC_DUAL
nr_class 2
label 5 2
nr_feature 3
bias 2
w
0.62282219963147956 
0.67549118386598539 
-0.62727250497966514 
-0.048080822710544625 
"""  # noqa: W291
TWO_SCORES = [0.864406146143383, -0.9071655965464683, 0.703893978371192, -1.0225618312789406, -0.7234341504007544]

# labels 3, 1 and 2, -s 1 -B 1; one column of scores a label, in this order
THREE = """solver_type L2R_L2LOSS_SVC_DUAL
nr_class 3
label 3 1 2
nr_feature 3
bias 1
w
0.98495124307111526 -0.73023966081947089 0.014182033147475565 
-0.011286161549714124 -0.82684665328558149 0.76679740287210207 
-0.34038312825357697 -0.55674818504306633 0.8367310500640216 
-0.60621243713700612 0.058163317082269794 -0.50380421504961159 
"""  # noqa: W291
THREE_FIRST_SCORES = {3: 0.37309572515925205, 1: -1.085499670379992, 2: -0.10622348046608499}

# labels 1 and -1, -s 4, no bias; two columns
CRAMMER_SINGER = """solver_type MCSVM_CS
nr_class 2
label 1 -1
nr_feature 3
bias -1
w
0.642696330579829 -0.64269633057982889 
0.69952201013899251 -0.69952201013899251 
0.49880502534748089 -0.49880502534748106 
"""  # noqa: W291
CRAMMER_SINGER_PREDICTED = [1, -1, 1, -1, 1]

REGRESSION = """solver_type L2R_L1LOSS_SVR_DUAL
nr_class 2
nr_feature 3
bias -1
w
0.67999999999999994 
0.84000000000000008 
0.30000000000000004 
"""  # noqa: W291


def _read(tmp_path: Path, text: str) -> Any:
    path = tmp_path / "m"
    path.write_text(text)
    return load(path)


def test_two_classes_from_liblinear(tmp_path: Path) -> None:
    model = _read(tmp_path, TWO)
    assert (model.classes_.tolist(), model.loss, model.intercept_scaling) == ([2, 5], "squared_hinge", 2.0)
    np.testing.assert_allclose(model.decision_function(X), TWO_SCORES, rtol=1e-14)
    flipped = _read(tmp_path, TWO.replace("label 5 2", "label 2 5"))
    assert flipped.classes_.tolist() == [2, 5]
    np.testing.assert_array_equal(flipped.coef_, -model.coef_)
    np.testing.assert_array_equal(flipped.intercept_, -model.intercept_)


def test_three_classes_from_liblinear(tmp_path: Path) -> None:
    model = _read(tmp_path, THREE)
    assert model.classes_.tolist() == [1, 2, 3] and model.coef_.shape == (3, 3)
    expected = [THREE_FIRST_SCORES[label] for label in (1, 2, 3)]
    np.testing.assert_allclose(model.decision_function(X)[0], expected, rtol=1e-14)


def test_crammer_singer_from_liblinear(tmp_path: Path) -> None:
    model = _read(tmp_path, CRAMMER_SINGER)
    assert model.multi_class == "crammer_singer" and not model.fit_intercept
    assert model.predict(X).tolist() == CRAMMER_SINGER_PREDICTED


def test_regression_from_liblinear(tmp_path: Path) -> None:
    model = _read(tmp_path, REGRESSION)
    assert model.loss == "epsilon_insensitive"
    np.testing.assert_array_equal(model.coef_, [0.68 - 6e-17, 0.84000000000000008, 0.30000000000000004])


@pytest.mark.parametrize("text", [TWO, CRAMMER_SINGER, REGRESSION])
def test_what_is_written_is_what_liblinear_writes(tmp_path: Path, text: str) -> None:
    save_liblinear(_read(tmp_path, text), tmp_path / "again")
    written = (tmp_path / "again").read_text().splitlines()
    expected = text.splitlines()
    assert written[: expected.index("w")] == expected[: expected.index("w")]
    np.testing.assert_allclose(np.loadtxt(written[expected.index("w") + 1 :]),
                               np.loadtxt(expected[expected.index("w") + 1 :]), rtol=1e-15)  # fmt: skip


@pytest.mark.parametrize("scaling", [None, 1.0, 0.3])
@pytest.mark.parametrize("multi_class", ["ovr", "crammer_singer"])
@pytest.mark.parametrize("classes", [[-1, 1], [0, 4, 7], [0.0, 1.0, 2.0, 9.0], None])
def test_round_trip(tmp_path: Path, classes: Any, multi_class: str, scaling: float | None) -> None:
    rows = np.random.default_rng(0).standard_normal((40, 5))
    options: dict[str, Any] = {"fit_intercept": scaling is not None, "intercept_scaling": scaling or 1.0, "tol": 0.1}
    if classes is None:
        model: Any = LinearSVR(random_state=0, **options).fit(rows, rows[:, 0])
    else:
        y = np.resize(classes, len(rows))
        model = LinearSVC(random_state=0, multi_class=multi_class, loss="hinge", **options).fit(rows, y)
    save_liblinear(model, tmp_path / "m")
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(again.coef_, model.coef_)
    # Dividing by the scale and multiplying again rounds twice.
    np.testing.assert_allclose(again.intercept_, model.intercept_, rtol=4 * np.finfo(float).eps)
    assert again.loss == ("epsilon_insensitive" if classes is None else "hinge")
    if classes is not None:
        assert again.classes_.tolist() == classes


@pytest.mark.parametrize(
    ("options", "labels", "found"),
    [
        ({}, ["a", "b"], "whole numbers"),
        ({}, [0.5, 1.0], "continuous|whole numbers"),
        ({"loss": "smooth_hinge"}, [0, 1], "allowed are hinge, squared_hinge, logistic"),
        ({"multi_class": "ovo"}, [0, 1, 2], "'ovr' or 'crammer_singer'"),
    ],
)
def test_models_liblinear_cannot_hold(tmp_path: Path, options: dict[str, Any], labels: Any, found: str) -> None:
    rows = np.random.default_rng(0).standard_normal((12, 2))
    with pytest.raises(ValueError, match=found):
        save_liblinear(LinearSVC(random_state=0, **options).fit(rows, np.resize(labels, 12)), tmp_path / "m")
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("0.67549118386598539", "abc", "its weights cannot be read: .*'abc'"),
        ("0.67549118386598539", "nan", "1 finite numbers a line"),
        ("0.67549118386598539", "1 2", "its weights cannot be read: the number of columns changed"),
        ("-0.048080822710544625 \n", "", "3 lines of weights; its header says 4"),
        ("w\n", "w\n1\n", "5 lines of weights"),
        ("\nw\n", "\n", "line 6"),
        ("nr_feature 3\n", "", "no line 'nr_feature'"),
        ("nr_class 2", "nr_class x", "'nr_class' is 'x'"),
        ("nr_class 2", "nr_class 3", "nr_class 3 and the labels"),
        ("label 5 2", "label 5 5", "different labels"),
        ("label 5 2", "label a b", "whole numbers"),
        ("bias 2", "bias nan", "'bias' is 'nan'"),
        ("L2R_L2LOSS_SVC_DUAL", "ONECLASS_SVM", "'ONECLASS_SVM'; allowed are"),
        ("solver_type", "PK", "line 1: found 'PK"),
    ],
)
def test_files_that_are_not_as_they_must_be(tmp_path: Path, old: str, new: str, found: str) -> None:
    assert old in TWO
    with pytest.raises(DataError, match=found):
        _read(tmp_path, TWO.replace(old, new))


def test_truncated_and_missing_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        load(tmp_path / "nope")
    for lines in range(len(TWO.splitlines())):
        with pytest.raises(DataError, match=r"truncated|lines of weights"):
            _read(tmp_path, "\n".join(TWO.splitlines()[:lines]))
