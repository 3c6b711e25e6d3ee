"""LIBSVM text in compiled code: numbers exactly as Python reads them, rows as scikit-learn reads them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from saddlesvm.data import DataError, read
from saddlesvm.data.libsvm import libsvm_blocks, libsvm_source
from saddlesvm.data.libsvm_kernel import parse_decimal, powers_of_five
from saddlesvm.data.reading import Reading
from saddlesvm.runtime.compiled import kernel
from support import matrix


@kernel
def parse_one(text: Any, powers: Any, bits: Any) -> int:
    bits[0], p = parse_decimal(text, 0, text.size, powers)
    return p


def parsed(text: str) -> float | None:
    """The number, or None where the kernel leaves it to Python."""
    bits = np.zeros(1, dtype=np.uint64)
    end = parse_one(np.frombuffer(text.encode(), dtype=np.uint8), powers_of_five(), bits)
    assert end in (-1, len(text))
    return None if end < 0 else float(bits.view(np.float64)[0])


def agrees(text: str) -> None:
    found = parsed(text)
    if found is not None:
        assert found.hex() == float(text).hex(), text


DECIMALS = st.from_regex(r"[-+]?([0-9]{1,25}(\.[0-9]{0,25})?|\.[0-9]{1,25})([eE][-+]?[0-9]{1,3})?", fullmatch=True)


@settings(max_examples=500)
@given(text=DECIMALS)
@example("9007199254740993")
@example("9007199254740992.5")
@example("8.41e21")
@example("1e23")
@example("5e-324")
@example("2.2250738585072011e-308")
@example("1.7976931348623159e308")
@example("0." + "0" * 400 + "1")
@example("1" + "0" * 400)
@example("-0")
def test_a_decimal_is_rounded_as_python_rounds_it(text: str) -> None:
    agrees(text)


@settings(max_examples=500)
@given(number=st.floats(allow_nan=False, allow_infinity=False), digits=st.integers(1, 25))
def test_every_double_reads_back(number: float, digits: int) -> None:
    agrees(repr(number))
    agrees(f"{number:.{digits}g}")


@settings(max_examples=300)
@given(number=st.floats(1e-5, 1e15), way=st.sampled_from([-1, 0, 1]))
def test_ties_between_two_doubles_go_as_in_python(number: float, way: int) -> None:
    from fractions import Fraction

    tie = (Fraction(number) + Fraction(float(np.nextafter(number, np.inf)))) / 2 + way * Fraction(1, 10**90)
    digits = str(int(tie * 10**90)).rjust(91, "0")
    agrees(f"{digits[:-90]}.{digits[-90:]}")


@pytest.mark.parametrize(
    "text", ["1", "0", "0.5", "-3.25", "1e5", "123456.789", "0.30000000000000004", "1e-300", "1e300"]
)
def test_usual_numbers_are_not_left_to_python(text: str) -> None:
    assert parsed(text) == float(text)


@pytest.mark.parametrize("text", ["", "-", ".", "e5", "1e", "1e+", "nan", "inf", "x"])
def test_what_is_no_decimal_is_left_to_python(text: str) -> None:
    bits = np.zeros(1, dtype=np.uint64)
    end = parse_one(np.frombuffer(text.encode() + b" ", dtype=np.uint8), powers_of_five(), bits)
    assert end == -1 or text[end:].strip()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("zero_based", [True, False])
def test_rows_are_those_that_scikit_learn_reads(tmp_path: Path, dtype: Any, zero_based: bool) -> None:
    X = matrix(200, 30, density=0.3) * 10.0 ** np.random.default_rng(0).integers(-12, 12, size=(200, 1))
    y = np.round(X[:, 0], 3)
    path = tmp_path / "t.svm"
    dump_svmlight_file(X, y, str(path), zero_based=zero_based)
    ours = libsvm_source(path, Reading(dtype=dtype, zero_based=zero_based)).rows()
    theirs, labels = load_svmlight_file(str(path), dtype=dtype, zero_based=zero_based)
    np.testing.assert_array_equal(ours.X.toarray(), theirs.toarray())
    np.testing.assert_array_equal(ours.y, labels)
    assert ours.X.dtype == dtype


ODD = (
    "1 1:2 3:4\n"
    "\n"
    "   \t \n"
    "# all of it\n"
    "+1\t1:.5  \t2:-1e-3\r\n"
    "-1 2:1 # why\n"
    "2#close\n"
    "  3 1:1E3 +2:1 \n"
    "4 1:123456789012345678901234567890.5 3:5e-324\n"
    "5 2:0.1"
)


@pytest.mark.parametrize("n_bytes", [1, 2, 3, 7, 20, 64, 10_000])
def test_odd_spellings_are_read_in_blocks_of_any_size(tmp_path: Path, n_bytes: int) -> None:
    path = tmp_path / "t.svm"
    path.write_text(ODD)
    blocks = list(libsvm_blocks(path, Reading(), n_bytes=n_bytes))
    y = np.concatenate([block.y for block in blocks])
    rows = []
    for block in blocks:
        X = block.X
        for start, end in pairwise(X.indptr):
            rows.append(dict(zip((X.indices[start:end] + 1).tolist(), X.data[start:end].tolist(), strict=True)))
    assert y.tolist() == [1, 1, -1, 2, 3, 4, 5]
    assert rows == [
        {1: 2, 3: 4},
        {1: 0.5, 2: -1e-3},
        {2: 1},
        {},
        {1: 1000, 2: 1},
        {1: 123456789012345678901234567890.5, 3: 5e-324},
        {2: 0.1},
    ]
    assert blocks[-1].share == 1.0
    np.testing.assert_array_equal(read(path).X.toarray()[:, 1], [0, -1e-3, 1, 0, 1, 0, 0.1])


def test_a_fault_behind_the_first_block_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "t.svm"
    path.write_text("# head\n" + "1 1:2\n" * 50 + "1 2:x\n" + "1 1:2\n" * 50)
    with pytest.raises(DataError, match="line 52: found '2:x'"):
        list(libsvm_blocks(path, Reading(), n_bytes=40))
    path.write_text("1 0:1\n" + "1 1:2\n" * 50 + "1 2:1\n")
    with pytest.raises(DataError, match=r"line 52: index 2; .* \(2 features are expected\)"):
        read(path, n_features=2)


def test_query_ids_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "t.svm"
    path.write_text("1 1:2\n" * 50 + "1 qid:3 2:1\n")
    with pytest.raises(DataError, match="line 51: found 'qid:3'; query ids are not read: remove them"):
        read(path)


def test_share_of_the_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t.svm"
    path.write_text("1 1:2\n" * 300_000 + "0 2:1\n" * 1_500_000)
    shares: list[float] = []
    table = read(path, advance=shares.append)
    assert table.n_rows == table.n_nonzero == 1_800_000
    assert shares == sorted(shares) and len(shares) > 1 and shares[-1] == 1.0
