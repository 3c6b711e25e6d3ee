"""Checkpoints: the whole state of a run in one file of plain arrays, so that a killed fit can go on where it was."""

from __future__ import annotations

import dataclasses
import json
import time
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from saddlesvm.data.atomic import atomic_write
from saddlesvm.problem import Problem
from saddlesvm.trace import Trace

FORMAT = "saddlesvm checkpoint 1"


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

    def write(self, mark: dict[str, Any], state: Any, clocks: dict[str, float], trace: Trace) -> None:
        """Write the state under a temporary name and rename it."""
        arrays: dict[str, Any] = {}
        plain: dict[str, Any] = {}
        for column in dataclasses.fields(state):
            given = getattr(state, column.name)
            if isinstance(given, np.ndarray):
                arrays[column.name] = given
            elif isinstance(given, (bool, int, float, str, np.number)):
                plain[column.name] = given.item() if isinstance(given, np.number) else given
        header = {"format": FORMAT, "mark": mark, "state": plain, "clocks": clocks, "trace": list(trace)}
        text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
        with atomic_write(self.path) as file:
            np.savez(file, header=text, **arrays)
        self.written = time.monotonic()

    def read(self, mark: dict[str, Any], state: Any) -> tuple[Any, dict[str, float], list[dict[str, Any]]] | None:
        """The stored state (in the shape of the fresh `state`), clocks and trace; None when there is no file.

        Raises
        ------
        ValueError
            The file is damaged, or belongs to another problem or solver.
        """
        if not self.path.exists():
            return None
        try:
            with np.load(self.path, allow_pickle=False) as stored:
                header = json.loads(stored["header"].tobytes())
                arrays = {name: stored[name] for name in stored.files if name != "header"}
        except (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError) as error:
            raise ValueError(f"{self.path} is not a readable checkpoint ({error}); remove it to start anew") from error
        if header.get("format") != FORMAT:
            raise ValueError(f"{self.path} is not a checkpoint of this version of saddlesvm")
        stored_mark = header["mark"]
        different = [name for name in mark if stored_mark.get(name) != json.loads(json.dumps(mark[name]))]
        if different:
            raise ValueError(
                f"the checkpoint {self.path} belongs to another fit: {', '.join(different)} differ "
                f"(it holds: {stored_mark.get('problem')}, {stored_mark.get('solver')}); remove it or name another file"
            )
        return dataclasses.replace(state, **arrays, **header["state"]), header["clocks"], header["trace"]
