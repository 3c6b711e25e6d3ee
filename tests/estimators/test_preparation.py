"""The traps of the first hour: files as people have them, read for a training and again for a model."""

from __future__ import annotations

import datetime
import decimal
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, ipc, parquet as pq

from saddlesvm import LinearSVC, load, save
from saddlesvm.data import DataError, convert
from saddlesvm.data.reading import Reading
from saddlesvm.estimators.preparation import Preparation
from saddlesvm.estimators.training_data import check_class_labels, describe_label, read_training

N = 60


def made(n: int = N) -> pd.DataFrame:
    """Two numbers and an answer that follows from them."""
    random = np.random.default_rng(0)
    a, b = random.normal(size=(2, n)).round(3)
    return pd.DataFrame({"a": a, "b": b, "t": np.where(a + 0.3 * b > 0, "yes", "no")})


def learnt(source: Path, **how: Any) -> tuple[Any, Any]:
    """The prepared training rows of a file, and the preparation."""
    table = read_training(str(source), Reading(**how))
    preparation = Preparation.learn(table, missing=how.get("missing"))
    return preparation.apply(table), preparation


@pytest.mark.parametrize(
    "index",
    [
        pd.Index(np.arange(N) * 3, name="customer_id"),
        pd.date_range("2024-01-01", periods=N, name="day"),
        pd.Index([f"c{k}" for k in range(N)], name="key"),
        pd.MultiIndex.from_arrays([np.arange(N), np.arange(N)[::-1]], names=["one", "two"]),
        pd.Index(np.arange(N) * 3),
    ],
)
def test_the_row_index_of_pandas_is_no_column(index: Any, tmp_path: Path) -> None:
    made().set_index(index).to_parquet(tmp_path / "x.parquet")
    table, _ = learnt(tmp_path / "x.parquet")
    assert table.label_name == "t" and table.X.shape == (N, 2) and set(table.y) == {"no", "yes"}


def test_equal_names_of_columns_get_a_number(tmp_path: Path) -> None:
    frame = made()
    columns = [pa.array(frame[name]) for name in ("a", "b", "t")]
    pq.write_table(pa.Table.from_arrays(columns, names=["a", "a", "t"]), tmp_path / "x.parquet")
    table, _ = learnt(tmp_path / "x.parquet")
    assert table.feature_names == ["a", "a.1"]
    (tmp_path / "x.csv").write_text(
        "a,a,c,t\n" + "".join(f"{k * k},{2 * k},w{k % 3},{'xy'[k % 2]}\n" for k in range(N))
    )
    assert [*read_training(str(tmp_path / "x.csv")).X.columns] == ["a", "a.1", "c"]


def test_decimals_categories_and_truth_values_of_arrow(tmp_path: Path) -> None:
    frame = made()
    table = pa.table(
        {
            "price": pa.array([decimal.Decimal(str(one)) for one in frame["a"]], pa.decimal128(10, 3)),
            "kind": pa.array(["x", "y"] * (N // 2)).dictionary_encode(),
            "new": pa.array([True, False, None] * (N // 3)),
            "t": frame["t"].tolist(),
        }
    )
    pq.write_table(table, tmp_path / "x.parquet")
    read = read_training(str(tmp_path / "x.parquet"))
    assert read.kinds == {"price": "number", "kind": "category", "new": "number"}
    assert read.X["price"].tolist() == frame["a"].tolist() and set(read.X["kind"]) == {"x", "y"}
    np.testing.assert_array_equal(read.X["new"][:3], [1.0, 0.0, np.nan])


TIMES = {
    "took": [datetime.timedelta(seconds=k) for k in range(N)],
    "at": [datetime.time(k % 24, k) for k in range(N)],
    "day": [datetime.date(2024, 1, 1 + k % 30) for k in range(N)],
    "when": pd.date_range("2024-01-01", periods=N, tz="Europe/Berlin"),
}


@pytest.mark.parametrize("name", TIMES)
def test_times_in_files_are_refused_or_left_out(name: str, tmp_path: Path) -> None:
    made().assign(**{name: TIMES[name]})[["a", name, "t"]].to_parquet(tmp_path / "x.parquet")
    with pytest.raises(DataError, match=f"x.parquet: column '{name}' holds values of type .*--columns {name}=drop"):
        read_training(str(tmp_path / "x.parquet"))
    assert read_training(str(tmp_path / "x.parquet"), Reading(drop_columns=(name,))).X.shape == (N, 1)
    with pytest.raises(DataError, match=f"column '{name}' .*of type .*must be numbers or text"):
        read_training(str(tmp_path / "x.parquet"), Reading(label=name))


def test_truth_values_are_the_same_classes_in_every_format(tmp_path: Path) -> None:
    frame = made().assign(t=lambda one: one["t"] == "yes")
    frame.to_parquet(tmp_path / "numbers.parquet")
    frame.to_csv(tmp_path / "numbers.csv", index=False)
    words = frame.assign(c="u").assign(c=lambda one: one["c"].where(one["a"] > 0, "v"))[["a", "c", "t"]]
    words.to_parquet(tmp_path / "words.parquet")
    words.to_csv(tmp_path / "words.csv", index=False)
    (tmp_path / "lower.csv").write_text(frame.to_csv(index=False).replace("True", "true").replace("False", "false"))
    expected = frame["t"].map(str).tolist()
    for name in ("numbers.parquet", "numbers.csv", "words.parquet", "words.csv", "lower.csv"):
        assert read_training(str(tmp_path / name)).y.tolist() == expected, name  # type: ignore[union-attr]
    store = convert(tmp_path / "numbers.parquet", tmp_path / "s")
    assert np.asarray(store.y).tolist() == expected


def test_streams_of_arrow_are_read(tmp_path: Path) -> None:
    table = pa.Table.from_pandas(made(), preserve_index=False)
    with ipc.new_stream(str(tmp_path / "x.arrows"), table.schema) as writer:
        writer.write_table(table, max_chunksize=7)
    (tmp_path / "plain").write_bytes((tmp_path / "x.arrows").read_bytes())
    feather.write_feather(table, tmp_path / "x.feather")
    expected = learnt(tmp_path / "x.feather")[0].X
    for name in ("x.arrows", "plain"):
        np.testing.assert_array_equal(learnt(tmp_path / name)[0].X, expected)


@pytest.mark.parametrize("quoted", ['"a\n(cm)"', '"a, in\ncm"', '"a ""b""\n"'])
def test_a_line_break_in_the_first_name(quoted: str, tmp_path: Path) -> None:
    rows = made().to_csv(index=False, header=False)
    (tmp_path / "x.csv").write_text(f"{quoted},b,t\n{rows}")
    table, _ = learnt(tmp_path / "x.csv")
    assert table.X.shape == (N, 2) and table.label_name == "t"
    words = "".join(f"{line},w{k % 2}\n" for k, line in enumerate(rows.splitlines()))
    (tmp_path / "y.csv").write_text(f"{quoted},b,t,c\n{words}")
    assert read_training(str(tmp_path / "y.csv"), Reading(label="t")).X.shape == (N, 3)


NEWS = [
    "Stocks rise as markets open higher today, the bank says again",
    "The match was won in the last minute by a goal",
]


def test_a_field_named_label_comes_before_the_last_one(tmp_path: Path) -> None:
    rows = [{"label": k % 2, "text": f"{NEWS[k % 2]} {k}"} for k in range(200)]
    path = tmp_path / "news.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    table, _ = learnt(path)
    assert table.label_name == "label" and describe_label(table, None) == (
        "column 'label', by its name (--label takes another)"
    )
    for name in ("Target", "class", "Y"):
        path = tmp_path / f"{name}.csv"
        path.write_text(f"{name},a,b\n" + "".join(f"{k % 2},{k},{k * k}\n" for k in range(N)))
        assert learnt(path)[0].label_name == name


def test_a_column_of_long_texts_is_no_label_and_takes_no_memory(tmp_path: Path) -> None:
    long = tmp_path / "long.csv"
    rows = [{"a": k * k, "text": "word " * (20_000 if k == 7 else 2)} for k in range(500)]
    pd.DataFrame(rows).to_csv(long, index=False)
    many = tmp_path / "many.csv"
    many.write_text("a,c,text\n" + "".join(f"{k},w{k % 2},note {k}\n" for k in range(2_000)))
    numeric = tmp_path / "numeric.csv"
    numeric.write_text("a,b,text\n" + "".join(f"{k},{k % 7},note {k} {'x' * (300 * (k == 9))}\n" for k in range(500)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for path, words in ((long, "a text of"), (many, "2,000 different texts"), (numeric, "a text of")):
        with pytest.raises(DataError, match=f"'text' holds {words}.*Name another with --label"):
            read_training(str(path))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kilobytes; once 4.8 GB
    with pytest.raises(DataError, match="--label"):
        convert(numeric, tmp_path / "s")


def test_a_file_without_names_is_noticed(tmp_path: Path) -> None:
    texts = [f"{NEWS[k % 2]}, message number {k}" for k in range(100)]
    path = tmp_path / "sms.tsv"
    path.write_text("".join(f"{'ham' if k % 3 else 'spam'}\t{text}\n" for k, text in enumerate(texts)))
    table, _ = learnt(path, label=0)
    assert table.n_rows == 100 and set(table.y) == {"ham", "spam"}
    assert describe_label(table, "0") == "column 1 (--label 0)"
    assert learnt(path, label="column 1")[0].y.tolist() == table.y.tolist()  # type: ignore[union-attr]
    with pytest.raises(DataError, match="--label"):  # the last column is the text
        check_class_labels(read_training(str(path)))
    path.write_text("".join(f"{k}\t{k % 2}x\t{text}\n" for k, text in enumerate(texts[1:])).replace("0x", "x", 1))
    with pytest.raises(DataError, match="header=True or header=False"):
        read_training(str(path))


def test_columns_without_names_are_called_alike_in_tables_of_numbers(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("".join(f"{k % 2},{k},{k * k}\n" for k in range(N)))
    for label in (0, "0", "column 1"):
        table, _ = learnt(path, label=label)
        assert table.label_name == "column 1" and describe_label(table, str(label)) == "column 1 (--label 0)"
        assert table.X[1].tolist() == [1.0, 1.0]
    with pytest.raises(DataError, match=r"its columns are 'column 1', .*give a position from 0"):
        read_training(str(path), Reading(label="kind"))


@pytest.mark.parametrize("labels", [range(4_173), [f"k{k}" for k in range(600)]])
def test_a_class_for_each_row_is_no_classification(labels: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b,c\n" + "".join(f"{k},{k % 5},{label}\n" for k, label in enumerate(labels)))
    with pytest.raises(DataError, match=r"rows have a label that no other row has: for a regression.*--label"):
        check_class_labels(read_training(str(path)))


def messy(tmp_path: Path, cell: str = "3") -> Path:
    path = tmp_path / "messy.csv"
    lines = ['city,age,"paid\nin euros",note,t']
    lines += [f'{["Ulm", "Bonn"][k % 2]},{k % 50},{k},"two\nlines {k}",{"xy"[k % 2]}' for k in range(N)]
    lines[31] = f'Ulm,{cell},7,"",x'
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_bad_cell_is_named_with_file_line_and_column(tmp_path: Path) -> None:
    read_training(str(messy(tmp_path)))
    line = 2 * 31 + 1  # every row before has two lines, the line of names, too
    with pytest.raises(DataError, match=rf"messy.csv: line {line}: column 'age': 'three' is not a number"):
        read_training(str(messy(tmp_path, "three")))
    path = tmp_path / "x.csv"
    rows = [f"{k if k != 33 else 'often'},{'uv'[k % 2]},{k % 2}" for k in range(N)]
    path.write_text("a,c,t\n\n" + "\n\n".join(rows))
    with pytest.raises(DataError, match=r"x.csv: line 69: column 'a': 'often' is not a number"):
        read_training(str(path))


@pytest.mark.parametrize("columns", [3, 5, 6])
def test_rows_of_another_length_are_named(columns: int, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    rows = [f"w{k % 3},{k},{k},{'xy'[k % 2]}" for k in range(N)]
    rows[20] = ",".join(["w1", "2", "3", "x", "5", "6"][:columns])
    path.write_text("c,a,b,t\n" + "\n".join(rows))
    with pytest.raises(DataError, match=f"line 22: has {columns} columns; the lines before have 4"):
        read_training(str(path))


@pytest.mark.parametrize("missing", [None, "mean", "median", "drop", "error"])
def test_gaps_of_tables_with_words_are_treated_as_asked_for(missing: str | None, tmp_path: Path) -> None:
    frame = made().assign(c=["u", "v"] * (N // 2))[["a", "b", "c", "t"]]
    whole = tmp_path / "whole.csv"
    frame.to_csv(whole, index=False)
    frame.loc[4, "a"] = np.nan
    frame.loc[9, "c"] = ""
    path = tmp_path / "gaps.csv"
    frame.to_csv(path, index=False)
    if missing == "error":
        with pytest.raises(DataError, match=r"gaps.csv: row 5: column 'a': the value is missing"):
            learnt(path, missing=missing)
        return
    table, preparation = learnt(path, missing=missing)
    assert table.n_rows == (N - 2 if missing == "drop" else N)
    if missing != "drop":
        filled = preparation.before.named_transformers_["number"][0].statistics_[0]
        assert filled == pytest.approx(frame["a"].median() if missing == "median" else frame["a"].mean())
    model = LinearSVC(random_state=0).fit(table.X, table.y)
    save(preparation.prepend_to(model), tmp_path / "m", preparation.notes)
    again, same = Preparation.from_model(load(tmp_path / "m"))
    np.testing.assert_array_equal(again.predict(same.read(str(path)).X), model.predict(table.X))
    if missing == "drop":
        assert preparation.facts == {"rows left out for missing values": 2}
        with pytest.raises(DataError, match="row 5: column 'a': the value is missing"):
            same.read(str(path), every_row=True)
    assert same.read(str(whole), every_row=True).n_rows == N
