"""Checkpoints: the whole state of a run in one file of plain arrays, so that a killed fit can go on where it was."""

from __future__ import annotations

import dataclasses
import json
import struct
import time
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from saddlesvm.data.atomic import atomic_write
from saddlesvm.fit.trace import Trace
from saddlesvm.problem.certificate import Certificate, Evaluation
from saddlesvm.rows.files import mapping_of

FORMAT = "saddlesvm checkpoint 3"
# The first wrote an array again for each of its names; the first two wrote records as plain arrays.
READABLE = ("saddlesvm checkpoint 1", "saddlesvm checkpoint 2", FORMAT)
DAMAGE = (
    OSError, ValueError, KeyError, TypeError, EOFError, RuntimeError, AttributeError, struct.error,
    zlib.error, zipfile.BadZipFile, MemoryError,
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Saved:
    """What a checkpoint holds: the solver's state, the run's numbers, its best model and bound, and its trace."""

    state: Any
    numbers: dict[str, Any]
    points: dict[str, Evaluation]
    trace: Trace


class Checkpoint:
    """Writes and reads the checkpoint of one fit.

    Parameters
    ----------
    path : path-like
        The file; continued from where it exists, so that the same call starts and resumes.
    every : float, default=30.0
        Seconds between two writes; one more is written when the fit ends.
    every_steps : int, optional
        Write after so many steps of the solver too: blocks, where training goes block by block.
    """

    def __init__(self, path: Any, every: float = 30.0, every_steps: int | None = None) -> None:
        self.path = Path(path)
        self.every, self.every_steps = every, every_steps
        self.steps = 0
        if every_steps is not None and not every_steps >= 1:
            raise ValueError(f"every_steps must be at least 1, or None; got {every_steps!r}")
        self.written = time.monotonic()
        if not self.path.parent.is_dir():
            raise ValueError(f"the folder of the checkpoint {self.path} does not exist")

    def due(self) -> bool:
        """Whether it is time to write; asked after each step."""
        self.steps += 1
        return time.monotonic() - self.written >= self.every or self.steps >= (self.every_steps or np.inf)

    def write(self, mark: dict[str, Any], saved: Saved) -> None:
        """Write everything under a temporary name and rename it."""
        arrays: dict[str, Any] = {}
        plain: dict[str, Any] = {}
        for column in dataclasses.fields(saved.state):
            given = getattr(saved.state, column.name)
            if isinstance(given, np.ndarray):
                arrays[f"state.{column.name}"] = given
            elif isinstance(given, (bool, int, float, str, np.number)):
                plain[column.name] = given.item() if isinstance(given, np.number) else given
        points = {}
        for name, point in saved.points.items():
            arrays[f"{name}.coef"], arrays[f"{name}.alpha"] = point.coef, point.alpha
            points[name] = {
                "intercept": np.asarray(point.intercept).tolist(),
                "certificate": dataclasses.asdict(point.certificate),
            }
        first: dict[int, str] = {}
        same = {name: first[id(one)] for name, one in arrays.items() if first.setdefault(id(one), name) != name}
        header = {
            "format": FORMAT,
            "same": same,
            "mark": mark,
            "state": plain,
            "numbers": saved.numbers,
            "points": points,
            "trace": list(saved.trace),
        }
        text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
        with atomic_write(self.path) as file:
            np.savez(file, header=text, **{name: one for name, one in arrays.items() if name not in same})
        self.written, self.steps = time.monotonic(), 0

    def read(self, mark: dict[str, Any], state: Any) -> Saved | None:
        """What was stored, the state in the shape of the fresh `state`; None when there is no file.

        A field of the state that is neither number, text nor array is not stored, and comes back as None.

        Raises
        ------
        ValueError
            The file is damaged, or belongs to another problem or solver.
        """
        self._clear_up()
        if not self.path.exists():
            return None
        try:
            header, arrays = self._load(state)
            different = [name for name in mark if header["mark"].get(name) != json.loads(json.dumps(mark[name]))]
        except DAMAGE as error:
            raise ValueError(f"{self.path} is not a readable checkpoint ({error}); remove it to start anew") from error
        if different:
            raise ValueError(
                f"the checkpoint {self.path} belongs to another fit: {', '.join(different)} differ (it holds: "
                f"{header['mark'].get('problem')}, {header['mark'].get('solver')}); remove it or name another file"
            )
        kept = {name.removeprefix("state."): one for name, one in arrays.items() if name.startswith("state.")}
        points = {
            name: Evaluation(
                arrays[f"{name}.coef"],
                _intercept(one["intercept"]),
                arrays[f"{name}.alpha"],
                Certificate(**one["certificate"]),
            )
            for name, one in header["points"].items()
        }
        lost = {
            column.name: None
            for column in dataclasses.fields(state)
            if column.name not in kept and column.name not in header["state"]
        }
        restored = dataclasses.replace(state, **kept, **header["state"], **lost)
        return Saved(restored, header["numbers"], points, Trace(header["trace"]))

    def _clear_up(self) -> None:
        """Remove what a killed run left of a file that it was writing."""
        for file in self.path.parent.iterdir():
            if file.name.startswith(f".{self.path.name}.") and file.suffix == ".tmp":
                file.unlink(missing_ok=True)

    def _load(self, state: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Header and arrays of the file; an array of the `state` that is mapped is filled, and stays mapped."""
        with self.path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            header = json.loads(stored["header"].tobytes())
            if header.get("format") not in READABLE:
                raise ValueError(f"it says {header.get('format')!r} where {FORMAT!r} is read")
            arrays = {}
            for name in stored.files:
                room: Any = getattr(state, name.removeprefix("state."), None) if name.startswith("state.") else None
                if name != "header":
                    mapped = mapping_of(room) is not None
                    arrays[name] = _filled(stored, name, room) if mapped else _recorded(stored[name], room)
        return header, arrays | {name: arrays[other] for name, other in header.get("same", {}).items()}


def _recorded(stored: np.ndarray, room: Any) -> np.ndarray:
    """The array as it is; where the state has records and the file one place for each of their numbers, as records."""
    if not isinstance(room, np.ndarray) or room.dtype.names is None or stored.dtype.names is not None:
        return stored
    return np.ascontiguousarray(stored, dtype=np.float64).view(room.dtype).reshape(room.shape)


def _filled(stored: Any, name: str, room: np.ndarray) -> np.ndarray:
    """An array of an open ``.npz`` file: read into `room`, if that has its type and shape; a new one otherwise."""
    with stored.zip.open(f"{name}.npy") as file:
        np.lib.format.read_magic(file)
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        if shape != room.shape or dtype != room.dtype or not room.flags.c_contiguous:
            return np.asarray(stored[name])
        left = memoryview(room.data).cast("B")
        while left and (done := file.readinto(left)):
            left = left[done:]
        if left or file.read(1):
            raise ValueError(f"its array {name} has another length than it says")
    return room


def _intercept(stored: Any) -> Any:
    """A number, or an array with one for each class of a joint model."""
    return np.array(stored) if isinstance(stored, list) else stored
