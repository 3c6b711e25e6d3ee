"""Readers of text: LIBSVM and CSV, their labels, headers and faults by line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.datasets import dump_svmlight_file

from saddlesvm.data import convert, read
from saddlesvm.data.delimited import find_layout
from support.files import X, Y, fails, fails_on, write, write_csv


@settings(max_examples=30, deadline=None)
@given(
    values=arrays(np.float64, (3, 2), elements=st.floats(allow_nan=False, allow_infinity=False)),
    labels=st.lists(st.sampled_from(["yes", "no", "může být", "x,y", 'say "a"']), min_size=3, max_size=3),
)
def test_csv_reads_back_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, values: np.ndarray[Any, Any], labels: list[str]
) -> None:
    quoted = ['"' + label.replace('"', '""') + '"' for label in labels]
    lines = ["u,v,class"] + [f"{a!r},{b!r},{label}" for (a, b), label in zip(values.tolist(), quoted, strict=True)]
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    table = read(path)
    np.testing.assert_array_equal(table.X, values)
    assert table.y is not None and table.y.tolist() == labels


@pytest.mark.parametrize("label", ["b", 1, -3, "1", "-3"])
def test_label_column_by_name_and_position(tmp_path: Path, label: str | int) -> None:
    path = tmp_path / "t.csv"
    write_csv(path)
    table = read(path, label=label)
    np.testing.assert_array_equal(table.y, X[:, 1])
    np.testing.assert_array_equal(table.X, np.column_stack([X[:, [0, 2]], Y]))
    assert (table.feature_names, table.label_name) == (["a", "c", "class"], "b")


def test_text_labels_in_front_without_header(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("setosa;1;2\n virginica ;3;4\n")
    table = read(path, label=0)
    assert table.y is not None and table.y.tolist() == ["setosa", "virginica"]
    np.testing.assert_array_equal(table.X, [[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,b\n1,2\n", ["a"]),
        ("1,2\n3,4\n", None),
        ("1,yes\n3,no\n", None),
        ("0,1,label\n1,2,3\n", ["0", "1"]),
        ("0,1,label\n1,2,yes\n3,4,no\n", ["0", "1"]),
        ("0,1,label\n1,2,yes\n3,4,label\n", None),
        ("0,1,maybe\n1,2,yes\n3,4,no\n", None),
        ("0,1\n1,2\n3,4\n", None),
        ("a,b,kind\n1,2,yes\n3,4,kind\n", ["a", "b"]),
        ("\ufeffa,b\r\n1,2\r\n", ["a"]),
        ("\n\na,b\n\n1,2\n\n", ["a"]),
    ],
)
def test_header_is_told_from_rows(tmp_path: Path, text: str, names: list[str] | None) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    assert read(path).feature_names == names


def test_data_without_labels(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    write_csv(path)
    assert read(path, n_features=4).y is None
    assert read(path, label=False).n_features == 4
    assert read(path, n_features=3).y is not None
    np.savez(tmp_path / "t.npz", X=X)
    assert read(tmp_path / "t.npz", n_features=3).y is None
    fails(tmp_path / "t.npz", "no labels", "'X'")
    dump_svmlight_file(X, Y, str(tmp_path / "t.svm"), zero_based=False)
    assert read(tmp_path / "t.svm", label=False).y is None


def test_width_of_the_training_data(tmp_path: Path) -> None:
    for kind, name in (("libsvm", "t.svm"), ("sparse npz", "t.npz")):
        write(tmp_path / name, kind)
        wide = read(tmp_path / name, n_features=5).X
        assert wide.shape == (4, 5)
        np.testing.assert_array_equal(wide.toarray()[:, :3], X)
    fails(tmp_path / "t.svm", "line 1", "index 3", "2 features", n_features=2)
    fails(tmp_path / "t.npz", "3 features", "2 are expected", n_features=2)
    write_csv(tmp_path / "t.csv")
    fails(tmp_path / "t.csv", "has 4 columns", "7 features are expected", n_features=7)


def test_libsvm_comments_query_ids_and_base(tmp_path: Path) -> None:
    path = tmp_path / "t.svm"
    path.write_text("# made by hand\n+1 1:2 3:4 # first\n\n-1\n")
    table = read(path)
    np.testing.assert_array_equal(table.X.toarray(), [[2, 0, 4], [0, 0, 0]])
    path.write_text("1 0:2\n2 1:3\n")
    np.testing.assert_array_equal(read(path).X.toarray(), [[2, 0], [0, 3]])
    fails(path, "line 1", "index 0", "from 1", zero_based=False)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("1 1:abc", "'1:abc'"),
        ("1 1:2 foo", "'foo'"),
        ("1 1.5:2", "'1.5:2'"),
        ("x 1:2", "label 'x'"),
        ("1,2 1:2", "several"),
        ("1:2 2:2", "starts with '1:2'"),
        ("nan 1:2", "label 'nan'"),
        ("1 1:nan", "finite"),
        ("1 1:inf", "finite"),
        ("1 1:1e400", "finite"),
        ("1 2:1 1:1", "ascend"),
        ("1 2:1 2:1", "ascend"),
        ("1 -4:1", "index -4"),
        ("1 99999999999:1", "index 99999999999"),
    ],
)
def test_libsvm_fault_is_named_by_line(tmp_path: Path, line: str, found: str) -> None:
    fails_on(tmp_path, "t.svm", f"1 1:2\n# a comment\n-1 2:1\n{line}\n1 1:1\n", "line 4", found)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("1,2", "has 2 columns"),
        ("1,2,3,4", "has 4 columns"),
        ("1,abc,0", "column 'b': 'abc'"),
        ("?,2,0", "column 'a': the value is missing"),
        ("1,,0", "column 'b': the value is missing"),
        ("1,NA,0", "column 'b': the value is missing"),
        ("1,inf,0", "column 'b': 'inf'"),
        ("1,1e999,0", "column 'b': '1e999'"),
        ("1,2,", "column 'class': the label is missing"),
        ("1,2,nan", "column 'class': the label is missing"),
        ("1,2,inf", "column 'class': the label is 'inf'"),
    ],
)
def test_csv_fault_is_named_by_line_and_column(tmp_path: Path, line: str, found: str) -> None:
    fails_on(tmp_path, "t.csv", f"a,b,class\n1,2,0\n\n{line}\n3,4,1\n", "line 4", found)


def test_other_faults_of_tables(tmp_path: Path) -> None:
    good = "a,b,class\n1,2,0\n"
    fails_on(tmp_path, "t.csv", good, "'a', 'b', 'class'", label="target")
    fails_on(tmp_path, "t.csv", "1,2,0\n", "give a position from 0", label="target")
    fails_on(tmp_path, "t.csv", good, "column 3", "0 to 2", label=3)
    fails_on(tmp_path, "t.csv", "a,b,a\n1,2,0\n", "2 columns are named 'a'", label="a")
    fails_on(tmp_path, "t.csv", "a,b,class\n", "no rows")
    fails_on(tmp_path, "t.csv", "1\n2\n", "at least one feature")
    fails_on(tmp_path, "t.csv", "1,x,0\n1,2,0\n", "line 1", "header")
    fails_on(tmp_path, "t.csv", ",a,class\n0,1,2\n", "column 1 has no name")
    fails_on(tmp_path, "t.csv", b"a,b\n1,\xff\n", "UTF-8")
    fails_on(tmp_path, "t.csv", "a,b\n1e39,2\n", "line 2", "float32", dtype=np.float32)


@pytest.mark.parametrize("line", ['3,"4,z', '3,4,"z', '"3,4,z'])
def test_a_quote_that_is_not_closed_swallows_nothing(tmp_path: Path, line: str) -> None:
    text = f"a,b,y\n1,2,x\n\n{line}\n5,6,x\n7,8,z\n"
    fails_on(tmp_path, "t.csv", text, "line 4: a quote is opened and not closed in its line")


@pytest.mark.parametrize(
    ("first", "second", "is_header"),
    [
        ("a,b,c", "1,2,x", True),
        ("a,b,c", "x,y,z", True),
        ("x,y,z", "x,u,v", False),
        ("1,2,x", "3,4,y", False),
        ("1,2,x", "3,4,5", True),
        ("1,2,?", "3,4,5", False),
        ("1,?,x", "3,4,y", False),
    ],
)
def test_a_first_line_of_words_that_do_not_occur_again_holds_names(
    first: str, second: str, is_header: bool, tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"{first}\n{second}\n")
    layout = find_layout(path, None, "auto", None)
    assert layout.skip == int(is_header)
    assert layout.names == (first.split(",") if is_header else ["column 1", "column 2", "column 3"])


def test_a_name_that_occurs_again_below_is_still_a_name(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    # The name of the label column shows that the first line holds names.
    path.write_text("city,kind,label\nparis,x,yes\nrome,kind,no\n")
    assert find_layout(path, None, "auto", None).names == ["city", "kind", "label"]
    # Files with a header each, put together.
    path.write_text("a,b,label\n1,2,1\na,b,label\n5,6,0\n")
    fails(path, "line 1: looks like a header, and occurs again below", "header=True or header=False")


@pytest.mark.parametrize("name", ["t.csv", "t.svm"])
def test_whole_labels_of_2_53_or_more_are_read_exactly(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    labels = [2**53, 2**53 + 1, -(2**63), 2**63 - 1, 3]
    lines = [f"{label} 1:1.5 # row" if name == "t.svm" else f"1.5,{label}" for label in labels]
    path.write_text("\n".join(lines) + "\n")
    assert read(path).y.tolist() == labels
    assert convert(path, tmp_path / "t.store", memory=1 << 20).y.tolist() == labels


def test_blocks_of_other_spellings_do_not_round_whole_labels(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1.5,1.0\n2.5,2\n")
    (tmp_path / "b.csv").write_text(f"1.5,{2**53 + 1}\n")
    store = convert([tmp_path / "a.csv", tmp_path / "b.csv"], tmp_path / "t.store")
    assert store.y.tolist() == [1, 2, 2**53 + 1]


def test_names_of_pandas_are_no_row(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("0,1,2\n5,6,1\n7,8,0\n")
    fails(path, "line 1: counts the columns", "header=True or header=False")
    assert [read(path, header=header).n_rows for header in (True, False)] == [2, 3]
    path.write_text(",0,1,2\n0,5,6,1\n1,7,8,0\n")
    fails(path, "column 1 has no name (a saved row index?)")
