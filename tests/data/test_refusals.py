"""A small file that claims to hold much is refused before that takes memory."""

from __future__ import annotations

import json
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from saddlesvm import LinearSVC
from saddlesvm.data import DataError, read
from saddlesvm.models.persistence import load, save

MOST = 100 * 10**6  # bytes


def array(kind: str, shape: tuple[int, ...], body: bytes = b"") -> bytes:
    """A .npy file that says what it is told to."""
    head = f"{{'descr': {kind!r}, 'fortran_order': False, 'shape': {shape!r}, }}\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + body


def packed(path: Path, members: dict[str, bytes]) -> Path:
    """A zip file of them."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in members.items():
            archive.writestr(name, body)
    return path


def sound(folder: Path) -> dict[str, bytes]:
    """The members of a sound model."""
    path = folder / "sound.model"
    save(LinearSVC().fit(np.array([[0.0], [1.0], [2.0]]), ["a", "b", "b"]), path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def with_header(members: dict[str, bytes], **changes: object) -> dict[str, bytes]:
    header = json.loads(members["model.json"])
    return members | {"model.json": json.dumps(header | changes).encode()}


MODELS: dict[str, Callable[[dict[str, bytes]], dict[str, bytes]]] = {
    "texts of no bytes": lambda sound: sound | {"classes.npy": array("<U0", (10**9,))},
    "bytes of no bytes": lambda sound: sound | {"classes.npy": array("|S0", (10**9,))},
    "many classes": lambda sound: sound | {"classes.npy": array("|i1", (10**8,), bytes(10**8))},
    "as many as are allowed": lambda sound: sound | {"classes.npy": array("|i1", (16_000_000,), bytes(16_000_000))},
    "a long text": lambda sound: sound | {"classes.npy": array("<U4000000", (1,), bytes(16_000_000))},
    "wide weights": lambda sound: sound | {"coef.npy": array("<f8", (1, 10**7), bytes(8 * 10**7))},
    "a header of many names": lambda sound: with_header(sound, arrays=["a"] * 390_000),
    "a header of many lists": lambda sound: with_header(sound, meta=[[]] * 390_000),
    "a header of one text": lambda sound: with_header(sound, kind="\U0001f600" * 600_000),
}


@pytest.mark.parametrize("what", MODELS)
def test_a_model_is_refused_in_little_memory(tmp_path: Path, what: str) -> None:
    path = packed(tmp_path / "lying.model", MODELS[what](sound(tmp_path)))
    assert path.stat().st_size < 200_000
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=r"lying.model"):
            load(path)
        assert tracemalloc.get_traced_memory()[1] < MOST
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("labels", [array("<U0", (10**9,)), array("<f8", (3,), bytes(24))])
def test_data_are_refused_in_little_memory(tmp_path: Path, labels: bytes) -> None:
    rows = array("|i1", (8_000_000, 2), bytes(16_000_000))
    path = packed(tmp_path / "lying.npz", {"X.npy": rows, "y.npy": labels})
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=r"lying.npz"):
            read(path)
        assert tracemalloc.get_traced_memory()[1] < MOST
    finally:
        tracemalloc.stop()
