"""Damage with a method: bytes, numbers, words, members of archives, headers of arrays, values of JSON."""

from __future__ import annotations

import gzip
import io
import json
import re
import shutil
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

HOSTILE_NUMBERS = (
    0,
    1,
    -1,
    2,
    7,
    127,
    128,
    255,
    2**15,
    2**31 - 1,
    2**31,
    -(2**31),
    2**32,
    2**53,
    2**62,
    2**63 - 1,
    2**63,
    10**30,
)
HOSTILE_WORDS = (
    b"nan", b"inf", b"-inf", b"1e999", b"1_000", b"0x10", b"--1", b"", b" ", b"\t", b"\0", b"\r", b"\n", b"\"", b"'",
    b",", b";", b":", b"::", b"1:", b":1", b"#", b"\xff", b"\xef\xbb\xbf", b"\xe2\x80\xae", b"\x1b[31m", "١".encode(),
    b"1.5:1", b"-1:1",
    b"4294967297:1", b"99999999999999999999:1", b"qid:", b"qid:1", b"9" * 400, b"A" * 5000, b"1e-400", b".", b"e", b"+",
)  # fmt: skip
HOSTILE_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**40, 1e308, -1e308, float("nan"), float("inf"), "", "a",
    "os:system", "\x1b[31m", "\u202e", "../x", "A" * 2000, [], {}, [[]], [1], {"a": 1}, [None], "hinge",
    "kernel-pegasos", "nan",
    0.5, {"solver": "dcd"},
    {"loss": "hinge"}, {"pairs": [[[], 1]]}, {"solver": "auto", "options": {}, "kernel": False},
)  # fmt: skip
HOSTILE_SHAPES = (
    (),
    (0,),
    (1,),
    (-1,),
    (2**62,),
    (10**10, 10**10),
    (3, 3),
    (2**31, 2**31),
    (24, 5),
    (5, 24),
    (1,) * 40,
)
HOSTILE_TYPES = (
    "<f8",
    "<f4",
    ">f8",
    "<i8",
    "<i4",
    "|u1",
    "|b1",
    "|O",
    "<U10",
    "<U1000000",
    "|S3",
    "<c16",
    "<M8[s]",
    "|V8",
    "[('a', '<f8')]",
)


def damaged_bytes(whole: bytes, random: np.random.Generator) -> bytes:
    """Flip, cut, double, insert, or write a hostile number over some bytes."""
    data = bytearray(whole)
    for _ in range(int(random.integers(1, 5))):
        size = len(data)
        if not size:
            break
        at, length = int(random.integers(size)), int(random.integers(1, 33))
        way = random.integers(7)
        if way == 0:
            data[at] ^= 1 << int(random.integers(8))
        elif way == 1:
            del data[at:]
        elif way == 2:
            del data[at : at + length]
        elif way == 3:
            data[at:at] = data[at : at + length]
        elif way == 4:
            data[at:at] = random.bytes(length)
        elif way == 5:
            number = HOSTILE_NUMBERS[int(random.integers(len(HOSTILE_NUMBERS)))] % 2**64
            width = int(random.choice([1, 2, 4, 8]))
            data[at : at + width] = struct.pack(random.choice(["<Q", ">Q"]), number)[:width]
        else:
            other = int(random.integers(size))
            data[at : at + length] = data[other : other + length]
    return bytes(data)


def damaged_text(whole: bytes, random: np.random.Generator) -> bytes:
    """Put hostile words in the place of some, or double, drop and join lines."""
    lines = whole.split(b"\n")
    for _ in range(int(random.integers(1, 4))):
        at = int(random.integers(len(lines)))
        way = random.integers(6)
        if way <= 2:
            mark = bytes(random.choice([b" ", b",", b":"]))
            words = lines[at].split(mark)
            words[int(random.integers(len(words)))] = HOSTILE_WORDS[int(random.integers(len(HOSTILE_WORDS)))]
            lines[at] = mark.join(words)
        elif way == 3:
            lines.insert(at, lines[int(random.integers(len(lines)))])
        elif way == 4 and len(lines) > 1:
            del lines[at]
        else:
            place = int(random.integers(len(lines[at]) + 1))
            lines[at] = lines[at][:place] + HOSTILE_WORDS[int(random.integers(len(HOSTILE_WORDS)))] + lines[at][place:]
    return b"\n".join(lines)


def damaged_json(value: Any, random: np.random.Generator) -> Any:
    """One value, somewhere inside, is another, is missing, or is there twice."""
    if isinstance(value, dict) and value and random.random() < 0.85:
        key = list(value)[int(random.integers(len(value)))]
        changed = dict(value)
        if random.random() < 0.1:
            del changed[key]
        elif random.random() < 0.05:
            changed[str(HOSTILE_WORDS[int(random.integers(len(HOSTILE_WORDS)))])] = value[key]
        else:
            changed[key] = damaged_json(value[key], random)
        return changed
    if isinstance(value, list) and value and random.random() < 0.7:
        at = int(random.integers(len(value)))
        return [*value[:at], damaged_json(value[at], random), *value[at + 1 :]]
    if type(value) in (int, float) and random.random() < 0.4:
        return HOSTILE_NUMBERS[int(random.integers(len(HOSTILE_NUMBERS)))]
    return HOSTILE_VALUES[int(random.integers(len(HOSTILE_VALUES)))]


def damaged_array(whole: bytes, random: np.random.Generator) -> bytes:
    """Another shape or type in the header, other values, or another array altogether."""
    way = random.integers(5)
    if way == 0:
        return damaged_bytes(whole, random)
    array = np.lib.format.read_array(io.BytesIO(whole))
    shape, kind, body = array.shape, array.dtype.str, array.tobytes()
    if way == 1:
        shape = HOSTILE_SHAPES[int(random.integers(len(HOSTILE_SHAPES)))]
    elif way == 2:
        kind = HOSTILE_TYPES[int(random.integers(len(HOSTILE_TYPES)))]
    elif array.size and array.dtype.kind in "iuf":
        array = array.copy()
        number = HOSTILE_NUMBERS[int(random.integers(len(HOSTILE_NUMBERS)))]
        with np.errstate(all="ignore"):
            value = np.array(number % 2**64, np.uint64).astype(np.int64)
            array.flat[int(random.integers(array.size))] = (
                value.astype(array.dtype)
                if way == 3
                else np.nan
                if array.dtype.kind == "f"
                else value.astype(array.dtype)
            )
        body = array.tobytes()
    named = kind if kind.startswith("[") else repr(kind)
    head = f"{{'descr': {named}, 'fortran_order': {bool(random.integers(2))}, 'shape': {shape!r}, }}\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + body


def damaged_zip(whole: bytes, random: np.random.Generator) -> bytes:
    """One member damaged by its kind, renamed, doubled, dropped, or packed anew; the directory is sound then."""
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    names = list(members)
    name = names[int(random.integers(len(names)))]
    way = random.random()
    extra: list[tuple[str, bytes]] = []
    if "model.json" in members and way < 0.4:
        members["model.json"] = json.dumps(damaged_json(json.loads(members["model.json"]), random)).encode()
    elif "header.npy" in members and way < 0.5:
        text = np.lib.format.read_array(io.BytesIO(members["header.npy"])).tobytes()
        changed = json.dumps(damaged_json(json.loads(text), random)).encode()
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, np.frombuffer(changed, np.uint8))
        members["header.npy"] = buffer.getvalue()
    elif way < 0.8 and name.endswith(".npy"):
        members[name] = damaged_array(members[name], random)
    elif way < 0.86:
        del members[name]
    elif way < 0.9:
        extra = [(str(random.choice(["../x.npy", "a/b.npy", "x", name, "coef.npy", "\x1b.npy"])), members[name])]
    elif way < 0.94:
        members[name] = members[names[int(random.integers(len(names)))]]
    elif way < 0.97:
        extra = [("bomb.npy", b"\0" * int(random.integers(1 << 20)))]
    else:
        members[name] = b""
    packing = int(random.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2], p=[0.45, 0.5, 0.05]))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", packing) as archive:
        for one, body in [*members.items(), *extra]:
            archive.writestr(zipfile.ZipInfo(one), body, packing)
    return buffer.getvalue()


def lying_zip(whole: bytes, random: np.random.Generator) -> bytes:
    """A size, a checksum, a place or a number of members that an archive tells of is another."""
    fields = {  # of local headers, of the directory, of its end: offset and width of what each tells
        b"PK\x03\x04": ((8, 2), (14, 4), (18, 4), (22, 4), (26, 2), (28, 2)),
        b"PK\x01\x02": ((10, 2), (16, 4), (20, 4), (24, 4), (28, 2), (30, 2), (32, 2), (42, 4)),
        b"PK\x05\x06": ((8, 2), (10, 2), (12, 4), (16, 4), (20, 2)),
    }
    data = bytearray(whole)
    places = [(at, mark) for mark in fields for at in positions_of(whole, mark)]
    for _ in range(int(random.integers(1, 3))):
        at, mark = places[int(random.integers(len(places)))]
        offset, width = fields[mark][int(random.integers(len(fields[mark])))]
        number = HOSTILE_NUMBERS[int(random.integers(len(HOSTILE_NUMBERS)))]
        old = int.from_bytes(data[at + offset : at + offset + width], "little")
        new = (old + int(random.integers(-9, 10)) if random.random() < 0.3 else number) % 256**width
        data[at + offset : at + offset + width] = new.to_bytes(width, "little")
    return bytes(data)


def lying_gzip(whole: bytes, random: np.random.Generator) -> bytes:
    """Another length or checksum at the end, or a small member that becomes 64 MB of zeros or of one line."""
    way = random.random()
    if way < 0.2:
        filling = bytes(random.choice([b"\0", b"1", b" ", b"\n", b","])) * (64 << 20)
        bomb = gzip.compress(filling, 1)
        return bomb + whole if random.random() < 0.5 else whole + bomb
    number = HOSTILE_NUMBERS[int(random.integers(len(HOSTILE_NUMBERS)))] % 2**32
    at = len(whole) - (4 if way < 0.7 else 8)
    return whole[:at] + struct.pack("<I", number) + whole[at + 4 :]


def positions_of(whole: bytes, mark: bytes) -> list[int]:
    """Where some bytes stand."""
    return [match.start() for match in re.finditer(re.escape(mark), whole)]


def damaged_store(source: Path, target: Path, random: np.random.Generator) -> None:
    """A copy of a store with one of its files damaged."""
    shutil.copytree(source, target)
    files = sorted(target.iterdir())
    path = target / "store.json" if random.random() < 0.5 else files[int(random.integers(len(files)))]
    whole = path.read_bytes()
    if path.suffix == ".json" and random.random() < 0.8:
        path.write_text(json.dumps(damaged_json(json.loads(whole), random)))
    elif path.suffix == ".npy" and random.random() < 0.6:
        path.write_bytes(damaged_array(whole, random))
    elif random.random() < 0.05:
        path.unlink()
    else:
        path.write_bytes(damaged_bytes(whole, random))


def damaged_file(source: Path, kind: str, random: np.random.Generator) -> bytes:
    """What a damaged copy of a file holds; by its kind, or byte by byte."""
    whole = source.read_bytes()
    if kind == "lying":
        return (lying_gzip if source.suffix == ".gz" else lying_zip)(whole, random)
    if kind == "proof" and random.random() < 0.7:
        lines = whole.splitlines()
        at = int(random.integers(len(lines)))
        lines[at] = json.dumps(damaged_json(json.loads(lines[at]), random)).encode()
        return b"\n".join(lines) + b"\n"
    if kind == "npy" and random.random() < 0.7:
        return damaged_array(whole, random)
    if kind in ("libsvm", "csv", "liblinear") and random.random() < 0.7:
        return damaged_text(whole, random)
    if kind in ("model", "checkpoint", "npz") and random.random() < 0.75:
        return damaged_zip(whole, random)
    if kind == "idx" and random.random() < 0.5:
        number = HOSTILE_NUMBERS[int(random.integers(len(HOSTILE_NUMBERS)))] % 2**32
        at = int(random.choice([4, 8, 12]))
        return whole[:at] + struct.pack(">I", number) + whole[at + 4 :]
    return damaged_bytes(whole, random)
