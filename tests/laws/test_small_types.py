"""Half precision, bytes and bools are used as they are: the optimum, certificate and predictions of a float64 copy."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddlesvm import LinearSVC, Store, certify
from saddlesvm.data import DataError, StoreWriter, convert
from saddlesvm.problem.losses import Hinge
from saddlesvm.rows import layouts as rows
from saddlesvm.rows.layouts import as_rows
from saddlesvm.rows.matrix import WIDENED
from saddlesvm.rows.passes import squared_norms
from saddlesvm.rows.small_types import SMALL, bfloat16, type_name, widen
from support import labels, matrix

N, D = 3000, 40  # above the size that becomes float32 at the door
WIDE = matrix(N, D)
Y = labels(WIDE, Hinge())


def small(dtype: np.dtype, X: np.ndarray = WIDE) -> np.ndarray:
    """The rows in a type of one or two bytes."""
    if dtype == bfloat16:
        return (X.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).view(bfloat16)
    if dtype.kind == "b":
        return X > 0.5
    if dtype.kind in "iu":
        return (X * 25 + (100 if dtype.kind == "u" else 0)).clip(0 if dtype.kind == "u" else -128, 127).astype(dtype)
    return X.astype(dtype)


def C_of(dtype: np.dtype) -> float:
    return 1e-4 if dtype.kind in "iu" else 0.05


@pytest.fixture(params=SMALL, ids=type_name)
def dtype(request: pytest.FixtureRequest) -> np.dtype:
    return request.param


def test_products_norms_and_sums_are_those_of_the_stored_numbers(dtype: np.dtype) -> None:
    X, random = as_rows(small(dtype, matrix(37, 21)), 1.5), np.random.default_rng(0)
    plain = np.array([X.dense_row(i) for i in range(37)])
    members, w = np.arange(0, 37, 2, dtype=np.int32), random.normal(size=22)
    z, moved, c = np.empty(members.size), np.zeros(22), random.normal(size=37)
    rows.dot_in_turn(X, members, w, z)
    rows.add_in_lists(X, members, c, moved, np.empty(5, dtype=np.int32))
    np.testing.assert_allclose(z, plain[members] @ w, rtol=0, atol=30 * np.finfo(float).eps * abs(plain).max() * 22)
    np.testing.assert_allclose(moved, c[members] @ plain[members], rtol=1e-12, atol=1e-10)
    norms = np.empty(37)
    rows.norms_in_turn(X, np.arange(37, dtype=np.int32), norms)
    assert norms == pytest.approx(np.square(plain).sum(axis=1), rel=1e-14)
    assert squared_norms(X) == pytest.approx(norms, rel=1e-14)  # in NumPy


def test_every_number_of_half_precision_is_read_exactly() -> None:
    bits = np.arange(2**16, dtype=np.uint16)
    half = bits.view(np.float16)
    finite = np.isfinite(half)
    own = half[finite, None]
    product = np.empty(own.size)
    rows.dot_in_turn(as_rows(own), np.arange(own.size, dtype=np.int32), np.array([1.0, 0.0]), product)
    np.testing.assert_array_equal(product, own[:, 0].astype(np.float64))
    # Many numbers at once, in either precision; not finite ones as well.
    with np.errstate(all="ignore"):
        for dtype in (np.float32, np.float64):
            np.testing.assert_array_equal(widen(half, dtype), half.astype(dtype))
            np.testing.assert_array_equal(np.signbit(widen(half[finite], dtype)), np.signbit(half[finite]))
    brain = (bits.astype(np.uint32) << 16).view(np.float32)
    finite = np.isfinite(brain)
    own = bits[finite, None].view(bfloat16)
    product = np.empty(own.size)
    rows.dot_in_turn(as_rows(own), np.arange(own.size, dtype=np.int32), np.array([1.0, 0.0]), product)
    np.testing.assert_array_equal(product, brain[finite].astype(np.float64))
    np.testing.assert_array_equal(widen(own)[:, 0], brain[finite])


@pytest.mark.parametrize("place", ["dense", "mapped", "store"])
def test_a_fit_is_that_of_the_float64_copy(dtype: np.dtype, place: str, tmp_path: Path) -> None:
    X = small(dtype)
    wide = widen(X, np.float64)
    options: dict[str, Any] = {"loss": "hinge", "C": C_of(dtype), "tol": 1e-3, "random_state": 0}
    given: Any = X
    if place == "mapped":
        np.save(tmp_path / "X.npy", X)
        given = np.load(tmp_path / "X.npy", mmap_mode="r")
        options |= {"memory": "16M", "solver": "blocks"}
    elif place == "store":
        given = Store.create(tmp_path / "X.store", X, Y)
        assert given.dtype == dtype
    model = LinearSVC(**options).fit(given, Y)
    same = LinearSVC(**options | {"memory": None, "solver": "auto"}).fit(wide, Y)
    proof = model.certificate_
    assert proof.relative_gap <= 1e-3
    assert proof.dual <= same.certificate_.primal and same.certificate_.dual <= proof.primal
    found = certify(wide, Y, model.coef_, model.intercept_[0], loss="hinge", C=options["C"], penalized_intercept=True)
    slack = 1e-9 * abs(proof.primal)
    assert proof.dual - slack <= found.primal <= proof.primal + slack  # what is proven of the stored numbers holds
    assert model.coef_.dtype == np.float64
    np.testing.assert_array_equal(model.decision_function(X), model.decision_function(wide))


def test_smooth_and_joint_machines_take_half_precision() -> None:
    X, codes = small(np.dtype(np.float16)), np.digitize(WIDE @ np.sin(np.arange(D)), [-1.0, 1.0])
    wide = X.astype(np.float64)
    for kind in ({"loss": "logistic"}, {"multi_class": "multinomial", "loss": "logistic"}):
        model, same = (LinearSVC(C=0.05, tol=1e-3, **kind).fit(one, codes) for one in (X, wide))
        for one, other in ((model, same), (same, model)):
            for proof, bound in zip(np.atleast_1d(one.certificates_), np.atleast_1d(other.certificates_), strict=True):
                assert proof.relative_gap <= 1e-3
                assert proof.dual <= bound.primal


def test_no_copy_is_larger_than_that_of_a_fit_of_float32(dtype: np.dtype) -> None:
    X = small(dtype)
    peaks = {}
    for name, given in (("small", X), ("float32", widen(X, np.float32))):
        model = LinearSVC(loss="hinge", C=C_of(dtype), tol=1e-2).fit(given, Y)
        tracemalloc.start()
        model.fit(given, Y).predict(given)
        peaks[name] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    # A few buffers of 8,192 values, and a block of them widened: kernels read float32 as it lies.
    assert peaks["small"] <= peaks["float32"] + 2**17 + WIDENED * 8


def test_few_values_become_float32() -> None:
    X = small(np.dtype(np.int8))[:50]
    model = LinearSVC().fit(X, Y[:50])
    same = LinearSVC().fit(X.astype(np.float32), Y[:50])
    np.testing.assert_array_equal(model.coef_, same.coef_)


@pytest.mark.parametrize("kind", [np.int16, np.int64])
def test_memory_holds_for_mapped_whole_numbers(kind: type, tmp_path: Path) -> None:
    """The float64 copy alone would be 9.6 MB."""
    X = np.tile(small(np.dtype(np.int8)), (10, 1)).astype(kind)
    np.save(tmp_path / "X.npy", X)
    mapped, y = np.load(tmp_path / "X.npy", mmap_mode="r"), np.tile(Y, 10)
    model = LinearSVC(C=1e-5, tol=1e-2, memory="16M", solver="blocks", loss="hinge").fit(mapped, y)
    tracemalloc.start()
    model.fit(mapped, y)
    assert tracemalloc.get_traced_memory()[1] < 8e6
    tracemalloc.stop()
    same = LinearSVC(C=1e-5, tol=1e-2, loss="hinge").fit(X, y)
    assert model.certificate_.dual <= same.certificate_.primal


def test_stores_keep_small_types(dtype: np.dtype, tmp_path: Path) -> None:
    X = small(dtype)[:80]
    np.savez(tmp_path / "rows.npz", X=X, y=Y[:80])
    store = convert(tmp_path / "rows.npz", tmp_path / "a.store")
    again = convert([tmp_path / "a.store", tmp_path / "a.store"], tmp_path / "b.store")
    assert store.dtype == again.dtype == dtype
    np.testing.assert_array_equal(widen(again.X), np.tile(widen(X), (2, 1)))
    with (
        pytest.raises(DataError, match="do not go into a store of"),
        StoreWriter(tmp_path / "d.store", dtype=dtype) as writer,
    ):
        writer.append(WIDE[:5])


def test_bfloat16_of_ml_dtypes_is_the_same_type(tmp_path: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    X = WIDE.astype(ml_dtypes.bfloat16)
    model, same = (
        LinearSVC(loss="hinge", C=0.05, random_state=0).fit(one, Y) for one in (X, X.view(np.uint16).view(bfloat16))
    )
    np.testing.assert_array_equal(model.coef_, same.coef_)
    np.testing.assert_array_equal(model.decision_function(X), model.decision_function(X.astype(np.float64)))
    assert Store.create(tmp_path / "a.store", X).dtype == bfloat16


def test_frames_of_one_small_type_need_no_wide_copy() -> None:
    pandas = pytest.importorskip("pandas")
    X = small(np.dtype(bool))
    frame = pandas.DataFrame(X, columns=[f"c{k}" for k in range(D)])
    model = LinearSVC(loss="hinge", C=0.05, random_state=0).fit(frame, Y)
    assert list(model.feature_names_in_) == list(frame.columns)
    np.testing.assert_array_equal(model.coef_, LinearSVC(loss="hinge", C=0.05, random_state=0).fit(X, Y).coef_)
