"""Checkpoints: the last solution of a run in one file of plain arrays, to continue a killed fit.

The file is an ``.npz`` of these members. Its digest tells a damaged file, its mark a foreign one;
nothing else is checked, because a continued fit computes its certificates from the data.

    digest         SHA-256 of all other members
    header         JSON: format, mark (facts of problem, rows and solver), numbers, trace
    point.NAME     the last solution of the solver: w and alpha
    best.NAME      the best model and the best dual point that were certified so far: w and alpha
    state.NAME     further fields of the solver's state: as ``State.carried`` names them
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from saddlesvm.data.archives import DAMAGE, open_archive, shorten_text
from saddlesvm.data.errors import DataError, atomic_write, refuse_special

FORMAT = "saddlesvm checkpoint 3"

Arrays = dict[str, np.ndarray]


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written, to a full disk for example; the fit continues."""


@dataclass(frozen=True)
class Saved:
    """The contents of a checkpoint.

    Attributes
    ----------
    point : dict of str to ndarray
        The fields of the last solution.
    best : dict of str to ndarray
        The weights of the best model and the best dual point.
    state : dict of str to ndarray
        Further fields of the solver's state.
    numbers : dict
        Epochs, rows touched and seconds so far; "phases" holds seconds by name.
    trace : list of dict
    """

    point: Arrays
    best: Arrays
    state: Arrays
    numbers: dict[str, Any]
    trace: list[dict[str, Any]]


class Checkpoint:
    """The file of a fit's checkpoint, and how often it is written.

    Parameters
    ----------
    path : path-like
        The file. If it exists, a fit continues from it, so that the same call starts and continues.
    every : float, default=30.0
        Seconds between two writes; a last checkpoint is written when the fit ends.
    every_steps : int, optional
        Write also after this many steps of the solver; training block by block counts blocks.
    seeded : bool, default=True
        Whether a run with another seed is refused. An estimator without `random_state` draws a new
        seed each time, and still continues.

    Raises
    ------
    ValueError
        The folder does not exist or cannot be written to, or `every_steps` is below 1.

    Examples
    --------
    >>> import tempfile
    >>> from saddlesvm import LinearSVC
    >>> from saddlesvm.fit.checkpoint import Checkpoint
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> path = tempfile.mkdtemp() + "/run.ckpt"
    >>> model = LinearSVC(checkpoint=Checkpoint(path), random_state=0).fit(notes.X, notes.y)
    >>> print(model.outcome_)
    certified
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        every: float = 30.0,
        every_steps: int | None = None,
        seeded: bool = True,
    ) -> None:
        self.path = Path(path)
        self.every = every
        self.every_steps = every_steps
        self.seeded = seeded
        if every_steps is not None and not every_steps >= 1:
            raise ValueError(f"every_steps must be at least 1, or None; got {every_steps!r}")
        # A wrong folder shows now, not after the first half hour.
        folder = self.path.parent
        if not folder.is_dir():
            raise ValueError(f"the folder of the checkpoint {self.path} does not exist")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise ValueError(f"the folder of the checkpoint {self.path} cannot be written to")
        refuse_special(self.path, "a checkpoint is a file")
        if self.path.is_dir():
            raise ValueError(f"{str(path)!r} is a folder: name a file in it for the checkpoint")
        self.restart_clock()

    def restart_clock(self) -> None:
        """Count the time and the steps until the next write from now."""
        self.written = time.monotonic()
        self.steps = 0

    def marks(self, problem: Any, seed: int) -> dict[str, object]:
        """Return what a checkpoint and its fit must have in common besides problem and solver."""
        return {
            "form": "lambda" if problem.uses_lambda else "C",
            "seed": seed if self.seeded else None,
            "version": version("saddlesvm"),
        }

    def is_due(self) -> bool:
        """Count a step; return True if it is time to write."""
        self.steps += 1
        most_steps = self.every_steps or np.inf
        return time.monotonic() - self.written >= self.every or self.steps >= most_steps

    def write(self, mark: Mapping[str, object], saved: Saved) -> None:
        """Write everything under a temporary name and rename it; warn if that fails."""
        # The mark says whose checkpoint it is; numbers and trace go on in the next run.
        header = {
            "format": FORMAT,
            "mark": mark,
            "numbers": saved.numbers,
            "trace": saved.trace,
        }
        arrays = {"header": np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)}
        # An array's name is GROUP.FIELD.
        for group in ("point", "best", "state"):
            for name, array in getattr(saved, group).items():
                arrays[f"{group}.{name}"] = np.asarray(array)
        try:
            with atomic_write(self.path) as file:
                np.savez(file, digest=digest_of(arrays), **arrays)  # type: ignore[arg-type]
        except DataError as error:
            message = (
                f"{error}. The fit continues; a later run can go on from an earlier checkpoint only"
            )
            warnings.warn(message, CheckpointWarning, stacklevel=2)
        self.restart_clock()

    def read(self, mark: Mapping[str, object]) -> Saved | None:
        """Return the contents of the file; None if there is no file.

        Raises
        ------
        ValueError
            The file is damaged, of another version, or belongs to another problem or solver.
        """
        # Temporary files that an interrupted write has left.
        for file in self.path.parent.iterdir():
            if file.name.startswith(f".{self.path.name}.") and file.suffix == ".tmp":
                file.unlink(missing_ok=True)
        if not self.path.exists():
            return None
        try:
            arrays, header = read_contents(self.path)
            # A digest tells damage; a header without these parts may have a right one.
            held = dict(header["mark"])
            numbers = dict(header["numbers"])
            trace = list(header["trace"])
        except DAMAGE as error:
            found = " ".join(str(error).split())
            raise ValueError(
                f"{self.path} is not a readable checkpoint ({found}); remove it to start anew"
            ) from None
        self._refuse_other(held, mark)

        # Sort the arrays into their groups again.
        groups: dict[str, Arrays] = {"point": {}, "best": {}, "state": {}}
        for name, array in arrays.items():
            group, _, own = name.partition(".")
            groups[group][own] = array
        return Saved(**groups, numbers=numbers, trace=trace)

    def _refuse_other(self, held: dict[str, Any], mark: Mapping[str, object]) -> None:
        """Raise ValueError if the checkpoint was written by another fit."""
        # Compare as JSON writes the values: a tuple in memory is a list in the file.
        plain = json.loads(json.dumps(mark))
        different = [name for name, value in plain.items() if held.get(name) != value]
        if not different:
            return
        facts = [shorten_text(held[name], 200) for name in ("problem", "solver") if name in held]
        contents = ""
        if facts:
            contents = f" (it holds: {', '.join(facts)})"
        raise ValueError(
            f"the checkpoint {self.path} belongs to another fit: {', '.join(different)} differ"
            f"{contents}; remove it or name another file"
        )


def digest_of(arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the SHA-256 of names, types, shapes and values, as an array of bytes."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total.update(f"{name} {array.dtype.str} {np.shape(arrays[name])};".encode())
        total.update(array.reshape(-1).view(np.uint8).data)
    return np.frombuffer(total.digest(), dtype=np.uint8)


def read_contents(path: Path) -> tuple[Arrays, dict[str, Any]]:
    """Return the arrays and the header of a checkpoint; ValueError if it is damaged."""
    # Expansion 1: members are stored, not packed, so that a small file cannot fill the memory.
    with open_archive(path, expansion=1) as stored:
        arrays = {name: stored.read(name) for name in stored.names}
    header = json.loads(arrays["header"].tobytes())
    stated = header.get("format")
    if stated != FORMAT:
        raise ValueError(f"its format is {shorten_text(repr(stated))}; only {FORMAT!r} can be read")
    if not np.array_equal(arrays.pop("digest"), digest_of(arrays)):
        raise ValueError("its digest is not that of its content")
    del arrays["header"]
    return arrays, header


def checkpoint_of(
    given: str | os.PathLike[str] | Checkpoint | None, index: int, problems: int, seeded: bool
) -> Checkpoint | None:
    """Return the checkpoint of problem `index`; None if none is `given`.

    Several problems have a file each, beside the named file. Unless the run is `seeded`, its seed
    was drawn anew, and any seed continues the fit.
    """
    if given is None:
        return None
    # A copy: the path and the clock of each problem are its own.
    own = copy.copy(given) if isinstance(given, Checkpoint) else Checkpoint(given)
    if problems > 1:
        own.path = own.path.with_name(f"{own.path.name}.{index}")
    own.seeded = own.seeded and seeded
    return own
