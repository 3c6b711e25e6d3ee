"""Numbers of one and two bytes: which types are kept, how they are read, and in which precision weights are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
import pytest

from saddlesvm.rows import small_types
from saddlesvm.rows.small_types import HALF, bfloat16, in_place, kept_type, number, precision_of, type_name, widen
from saddlesvm.runtime.compiled import INTERPRETED

VALUES = np.array([0.0, -1.5, 2.0, 96.0, 0.0078125])  # exact in all floating types


def of_type(dtype: Any) -> np.ndarray:
    """The values, or their whole parts, in a type; bfloat16 has the upper half of the bits of float32."""
    if dtype is bfloat16:
        return (VALUES.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).view(bfloat16)
    return VALUES.astype(dtype)


def plain(dtype: Any) -> np.ndarray:
    return VALUES if dtype is bfloat16 else VALUES.astype(dtype).astype(np.float64)


KEPT = [np.float64, np.float32, np.float16, bfloat16, np.int8, np.uint8, np.bool_]
OTHERS = [np.int16, np.uint16, np.int32, np.int64]
ids = type_name


@pytest.mark.parametrize("dtype", [*KEPT, *OTHERS], ids=ids)
@pytest.mark.filterwarnings("ignore:invalid value")  # of a negative number as one without a sign
def test_a_type_is_kept_where_kernels_read_it(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    values = of_type(dtype)
    assert (kept_type(dtype) == np.dtype(dtype)) == (dtype in KEPT)
    assert (kept_type(dtype) is None) == (dtype in OTHERS)
    small = np.dtype(dtype).itemsize <= 2 or dtype is np.float32
    assert precision_of(values.dtype) == (np.float32 if small else np.float64)
    view = in_place(values)
    assert np.shares_memory(view, values)
    assert view.dtype == {np.float16: HALF, np.bool_: np.uint8}.get(dtype, np.dtype(dtype))
    assert precision_of(view.dtype) == precision_of(values.dtype)
    for at_once in (2, 10):
        monkeypatch.setattr(small_types, "AT_ONCE", at_once)
        for given in (values, view):
            found = widen(given)
            assert found.dtype == precision_of(values.dtype)
            assert np.array_equal(found, plain(dtype))
            assert np.array_equal(widen(given.reshape(5, 1), np.float64), plain(dtype)[:, None])
    assert (widen(values) is values) == (dtype in (np.float32, np.float64))
    assert type_name(dtype) == ("bfloat16" if dtype is bfloat16 else np.dtype(dtype).name)


@pytest.mark.parametrize("dtype", [*KEPT, *OTHERS], ids=ids)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_kernels_read_a_number_as_numpy_does(dtype: Any) -> None:
    values = in_place(of_type(dtype))
    body = small_types._pick_number(numba.typeof(values).dtype)
    read = body if INTERPRETED else numba.njit(body)
    records = values.view(np.recarray) if values.dtype.names and INTERPRETED else values  # with fields as attributes
    for k, exact in enumerate(plain(dtype)):
        assert read(records[k]) == number(values[k]) == exact
    small = np.dtype(dtype).itemsize <= 2 or dtype is np.float32
    if INTERPRETED:
        assert type(read(records[0])) is (np.float32 if small else np.float64)


def test_a_bfloat16_of_another_package_is_the_same_sixteen_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_types, "np", SimpleNamespace(dtype=lambda one: one))
    assert kept_type(SimpleNamespace(name="bfloat16", itemsize=2)) is bfloat16
    assert kept_type(SimpleNamespace(name="bfloat16", itemsize=1)) is None
    assert kept_type(SimpleNamespace(name="bfloat16", itemsize=4)) is None
