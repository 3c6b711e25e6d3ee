"""LIBLINEAR's text models: files that LIBLINEAR 2.50 wrote, with the scores it gave, and round trips."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddlesvm.data import DataError, read_liblinear, write_liblinear

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
    return read_liblinear(path)


def test_two_classes_from_liblinear(tmp_path: Path) -> None:
    model = _read(tmp_path, TWO)
    assert (model.classes.tolist(), model.loss, model.bias) == ([2, 5], "squared_hinge", 2.0)
    np.testing.assert_allclose(X @ model.coef[0] + model.intercept[0], TWO_SCORES, rtol=1e-14)
    flipped = _read(tmp_path, TWO.replace("label 5 2", "label 2 5"))
    assert flipped.classes.tolist() == [2, 5]
    np.testing.assert_array_equal(flipped.coef, -model.coef)
    np.testing.assert_array_equal(flipped.intercept, -model.intercept)


def test_three_classes_from_liblinear(tmp_path: Path) -> None:
    model = _read(tmp_path, THREE)
    assert model.classes.tolist() == [1, 2, 3] and model.coef.shape == (3, 3)
    scores = X[0] @ model.coef.T + model.intercept
    np.testing.assert_allclose(scores, [THREE_FIRST_SCORES[label] for label in (1, 2, 3)], rtol=1e-14)


def test_crammer_singer_from_liblinear(tmp_path: Path) -> None:
    model = _read(tmp_path, CRAMMER_SINGER)
    assert model.coef.shape == (1, 3) and model.intercept.tolist() == [0.0]
    predicted = model.classes[(X @ model.coef[0] > 0).astype(int)]
    assert predicted.tolist() == CRAMMER_SINGER_PREDICTED


def test_regression_from_liblinear(tmp_path: Path) -> None:
    model = _read(tmp_path, REGRESSION)
    assert model.classes is None and model.loss == "epsilon_insensitive"
    np.testing.assert_array_equal(model.coef, [[0.68 - 6e-17, 0.84000000000000008, 0.30000000000000004]])


def test_what_is_written_is_what_liblinear_writes(tmp_path: Path) -> None:
    model = _read(tmp_path, TWO)
    write_liblinear(
        tmp_path / "m", model.coef, model.intercept, model.classes, loss="squared_hinge", intercept_scaling=2.0
    )
    assert (tmp_path / "m").read_text() == TWO
    model = _read(tmp_path, REGRESSION)
    write_liblinear(tmp_path / "m", model.coef, 0.0, None, loss="absolute", intercept_scaling=None)
    assert (tmp_path / "m").read_text() == REGRESSION


@pytest.mark.parametrize("scaling", [None, 1.0, 0.3])
@pytest.mark.parametrize("multi_class", ["ovr", "crammer_singer"])
@pytest.mark.parametrize("classes", [[-1, 1], [0, 4, 7], [0.0, 1.0, 2.0, 9.0], None])
def test_round_trip(tmp_path: Path, classes: Any, multi_class: str, scaling: float | None) -> None:
    random = np.random.default_rng(0)
    rows = 1 if classes is None or len(classes) == 2 else len(classes)
    coef = random.standard_normal((rows, 5))
    intercept = np.zeros(rows) if scaling is None else random.standard_normal(rows)
    loss = "squared_epsilon_insensitive" if classes is None else "hinge"
    write_liblinear(
        tmp_path / "m", coef, intercept, classes, loss=loss, intercept_scaling=scaling, multi_class=multi_class
    )
    model = read_liblinear(tmp_path / "m")
    np.testing.assert_array_equal(model.coef, coef)
    # dividing by the scale and multiplying again rounds twice
    np.testing.assert_allclose(model.intercept, intercept, rtol=4 * np.finfo(float).eps)
    assert model.loss == loss
    assert model.classes is None if classes is None else model.classes.tolist() == classes


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"classes": ["a", "b"]}, "whole numbers"),
        ({"classes": [0.5, 1]}, "whole numbers"),
        ({"classes": [1]}, "two or more"),
        ({"classes": [1, 2, 3]}, "coef has 1 rows; 3"),
        ({"loss": "smooth_hinge"}, "allowed are hinge, squared_hinge, logistic"),
        ({"loss": "absolute"}, "no classification"),
        ({"coef": [[np.nan, 1.0]]}, "finite"),
        ({"intercept_scaling": None}, "intercept is not zero"),
        ({"intercept_scaling": 0.0}, "positive"),
        ({"multi_class": "ovo"}, "'ovr' and 'crammer_singer'"),
    ],
)
def test_models_liblinear_cannot_hold(tmp_path: Path, change: dict[str, Any], found: str) -> None:
    options = {"coef": [[1.0, 2.0]], "intercept": 0.5, "classes": [0, 1], "loss": "hinge", **change}
    with pytest.raises(DataError, match=found):
        write_liblinear(tmp_path / "m", **options)
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
        read_liblinear(tmp_path / "nope")
    for lines in range(len(TWO.splitlines())):
        with pytest.raises(DataError, match=r"truncated|lines of weights"):
            _read(tmp_path, "\n".join(TWO.splitlines()[:lines]))
