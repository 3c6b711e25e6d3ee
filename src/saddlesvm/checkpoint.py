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

from saddlesvm.certificate import Certificate, Evaluation
from saddlesvm.data.atomic import atomic_write
from saddlesvm.problem import Problem
from saddlesvm.trace import Trace

FORMAT = "saddlesvm checkpoint 1"
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


def fingerprint(problem: Problem, solver: Any) -> dict[str, Any]:
    """What must be the same for a checkpoint to be continued: the problem's size, options and data sums, the solver."""
    members = problem.members
    weights = problem.weights[members] if problem.weights.size else problem.weights
    return {
        "problem": problem.describe(),
        "loss": repr(problem.loss),
        "scale": problem.scale,
        "C": problem.C,
        "labels": zlib.crc32(np.ascontiguousarray(problem.y[members]).data),
        "norms": zlib.crc32(np.ascontiguousarray(problem.norms[members]).data),
        "weights": zlib.crc32(np.ascontiguousarray(weights).data),
        "solver": repr(solver),
    }


class Checkpoint:
    """Writes and reads the checkpoint of one fit.

    Parameters
    ----------
    path : path-like
        The file; continued from where it exists, so that the same call starts and resumes.
    every : float, default=30.0
        Seconds between two writes; one more is written when the fit ends.
    """

    def __init__(self, path: Any, every: float = 30.0) -> None:
        self.path = Path(path)
        self.every = every
        self.written = time.monotonic()
        if not self.path.parent.is_dir():
            raise ValueError(f"the folder of the checkpoint {self.path} does not exist")

    def due(self) -> bool:
        """Whether it is time to write."""
        return time.monotonic() - self.written >= self.every

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
        header = {
            "format": FORMAT,
            "mark": mark,
            "state": plain,
            "numbers": saved.numbers,
            "points": points,
            "trace": list(saved.trace),
        }
        text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
        with atomic_write(self.path) as file:
            np.savez(file, header=text, **arrays)
        self.written = time.monotonic()

    def read(self, mark: dict[str, Any], state: Any) -> Saved | None:
        """What was stored, the state in the shape of the fresh `state`; None when there is no file.

        A field of the state that is neither number, text nor array is not stored, and comes back as None.

        Raises
        ------
        ValueError
            The file is damaged, or belongs to another problem or solver.
        """
        if not self.path.exists():
            return None
        try:
            header, arrays = self._load()
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

    def _load(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Header and arrays of the file."""
        with self.path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            header = json.loads(stored["header"].tobytes())
            arrays = {name: stored[name] for name in stored.files if name != "header"}
        if header.get("format") != FORMAT:
            raise ValueError(f"it says {header.get('format')!r} where {FORMAT!r} is read")
        return header, arrays


def _intercept(stored: Any) -> Any:
    """A number, or an array with one for each class of a joint model."""
    return np.array(stored) if isinstance(stored, list) else stored
