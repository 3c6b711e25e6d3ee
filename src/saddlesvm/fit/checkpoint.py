"""Checkpoints: the whole state of a run in one file of plain arrays, from which a killed fit resumes."""

from __future__ import annotations

import copy
import dataclasses
import json
import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.data.archives import DAMAGE, Archive, open_archive, short
from saddlesvm.data.errors import DataError, atomic_write, refuse_special
from saddlesvm.fit.outcome import Trace
from saddlesvm.fit.restored import check_header, check_points, held_duals, plain_duals, restored_state, verify
from saddlesvm.problem.certificate import Certificate, Evaluation, evaluate
from saddlesvm.rows.files import mapping_of
from saddlesvm.runtime.durable import demand, part_of, stored_fields
from saddlesvm.runtime.lazy import internal

FORMAT = "saddlesvm checkpoint 1"


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written, because the disk is full, say; the fit goes on without it."""


class OtherFit(ValueError):
    """A checkpoint is readable, but belongs to another fit."""


@dataclasses.dataclass(frozen=True)
class Saved:
    """The contents of a checkpoint.

    Attributes
    ----------
    state : State
        The solver's.
    numbers : dict
        Those of the run.
    points : dict
        The run's best model and bound, and others.
    trace : Trace
    limits : dict
        The fit's.
    end : tuple of (str, str) or ()
        Outcome and reason, where certificates of this state have ended the run.
    """

    state: Any
    numbers: dict[str, Any]
    points: dict[str, Evaluation]
    trace: Trace
    limits: dict[str, Any]
    end: tuple[str, ...] = ()


class Checkpoint:
    """Writes and reads the checkpoint of one fit.

    Parameters
    ----------
    path : path-like
        The file; a fit resumes from it where it exists, so that the same call starts and resumes.
    every : float, default=30.0
        Seconds between two writes; one more is written when the fit ends.
    every_steps : int, optional
        Write also after this many steps of the solver; training block by block counts blocks.
    seeded : bool, default=True
        Whether a run with another seed is refused. An estimator without `random_state` draws a new seed each time, and
        still resumes.

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

    def __init__(self, path: Any, every: float = 30.0, every_steps: int | None = None, seeded: bool = True) -> None:
        self.path = Path(path)
        self.every, self.every_steps, self.seeded = every, every_steps, seeded
        self.steps = 0
        if every_steps is not None and not every_steps >= 1:
            raise ValueError(f"every_steps must be at least 1, or None; got {every_steps!r}")
        self.written = time.monotonic()
        if not self.path.parent.is_dir():
            raise ValueError(f"the folder of the checkpoint {self.path} does not exist")
        if not os.access(self.path.parent, os.W_OK | os.X_OK):
            raise ValueError(f"the folder of the checkpoint {self.path} cannot be written to")
        refuse_special(self.path, "a checkpoint is a file")

    @internal
    def marks(self, problem: Any, seed: int) -> dict[str, Any]:
        """The marks, besides problem and solver, in which a checkpoint and the fit that resumes it must agree."""
        form = "lambda" if problem.uses_lambda else "C"
        return {"form": form, "seed": seed if self.seeded else None, "version": version("saddlesvm")}

    @internal
    def due(self) -> bool:
        """Whether it is time to write; asked after each step."""
        self.steps += 1
        return time.monotonic() - self.written >= self.every or self.steps >= (self.every_steps or np.inf)

    @internal
    def write(self, mark: dict[str, Any], saved: Saved) -> None:
        """Write everything under a temporary name and rename it."""
        arrays: dict[str, Any] = {}
        plain: dict[str, Any] = {}
        for name, given in stored_fields(saved.state).items():
            if isinstance(given, np.ndarray):
                arrays[f"state.{name}"] = given
            else:
                plain[name] = given.item() if isinstance(given, np.generic) else given
        points = {}
        for name, point in saved.points.items():
            arrays[f"{name}.coef"], arrays[f"{name}.alpha"] = point.coef, plain_duals(point.alpha)
            points[name] = {
                "listed": sparse.issparse(point.alpha),
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
            "limits": saved.limits,
            "end": saved.end,
        }
        self.store(header, {name: one for name, one in arrays.items() if name not in same})

    @internal
    def store(self, header: dict[str, Any], arrays: dict[str, Any]) -> None:
        """Write a header and arrays under a temporary name, and rename it."""
        text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
        with atomic_write(self.path) as file:
            np.savez(file, header=text, **arrays)
        self.wrote()

    @internal
    @contextmanager
    def warned(self) -> Iterator[None]:
        """Do a write without which the fit can do: where it fails, warn, and try again when the next one is due."""
        try:
            yield
        except DataError as error:
            message = f"{error}. The fit continues; a later run can resume from an earlier checkpoint only"
            warnings.warn(message, CheckpointWarning, stacklevel=2)
            self.wrote()

    @internal
    def wrote(self) -> None:
        """The file was written now, or could not be."""
        self.written, self.steps = time.monotonic(), 0

    @internal
    def read(self, problem: Any, solver: Any, mark: dict[str, Any], state: Any) -> Saved | None:
        """The stored facts, the state in the shape of the fresh `state`; None when there is no file.

        Raises
        ------
        ValueError
            The file is damaged, of another version, or belongs to another problem or solver.
        """
        self._clear_up()
        if not self.path.exists():
            return None
        with self.opened(FORMAT, mark) as (stored, header):
            return self._restored(problem, solver, header, self._arrays(stored, header, state), state)

    @internal
    @contextmanager
    def opened(self, form: str, mark: dict[str, Any], what: str = "fit") -> Iterator[tuple[Archive, dict[str, Any]]]:
        """The file, and its header.

        Raises
        ------
        OtherFit
            It belongs to another fit.
        ValueError
            It is damaged, which reading may show as well, or of another format.
        """
        try:
            with open_archive(self.path, expansion=1) as stored:
                header = stored.json("header")
                stated = header.get("format") if isinstance(header, dict) else header
                if stated != form:
                    raise ValueError(f"it says {short(repr(stated))} where {form!r}, the one version there is, is read")
                demand(isinstance(header.get("mark"), dict), "its mark is missing")
                self._refuse_other(header["mark"], mark, what)
                yield stored, header
        except OtherFit:
            raise
        except DAMAGE as error:
            found = " ".join(str(error).split())
            raise ValueError(f"{self.path} is not a readable checkpoint ({found}); remove it to start anew") from None

    def _restored(
        self, problem: Any, solver: Any, header: dict[str, Any], arrays: dict[str, np.ndarray], state: Any
    ) -> Saved:
        check_points(problem, header["points"], arrays)
        points = {
            name: Evaluation(
                arrays[f"{name}.coef"],
                _intercept(one["intercept"]),
                held_duals(problem, arrays[f"{name}.alpha"]) if one.get("listed") else arrays[f"{name}.alpha"],
                Certificate(**one["certificate"]),
            )
            for name, one in header["points"].items()
        }
        verify(problem, points)
        state = restored_state(problem, solver, state, part_of(arrays, "state.") | header["state"])
        if problem.stored_points == "made anew":
            found = evaluate(problem, solver.solution(problem, state))
            points = {"best": found, "bound": found, "last": found}
        return Saved(state, header["numbers"], points, Trace(header["trace"]), header["limits"], tuple(header["end"]))

    def _refuse_other(self, held: dict[str, Any], mark: dict[str, Any], what: str) -> None:
        """Raise :class:`OtherFit` where a checkpoint was written by a fit that is not this one."""
        different = [name for name, one in mark.items() if held.get(name) != json.loads(json.dumps(one))]
        if different:
            facts = ", ".join(short(held[name], 200) for name in ("problem", "solver") if name in held)
            raise OtherFit(
                f"the checkpoint {self.path} belongs to another {what}: {', '.join(different)} differ"
                f"{f' (it holds: {facts})' if facts else ''}; remove it or name another file"
            )

    def _clear_up(self) -> None:
        """Remove what a killed run left of a file that it was writing."""
        for file in self.path.parent.iterdir():
            if file.name.startswith(f".{self.path.name}.") and file.suffix == ".tmp":
                file.unlink(missing_ok=True)

    @staticmethod
    def _arrays(stored: Archive, header: dict[str, Any], state: Any) -> dict[str, np.ndarray]:
        """The arrays of the file; one of the `state` that is mapped is filled, and stays mapped."""
        names = [name for name in stored.names if name != "header"]
        check_header(header, names)
        arrays, fields = {}, stored_fields(state)
        for name in names:
            room = fields.get(name.removeprefix("state.")) if name.startswith("state.") else None
            arrays[name] = stored.read(name, room if mapping_of(room) is not None else None)
        return arrays | {name: arrays[other] for name, other in header["same"].items()}


def checkpoint_of(given: Any, index: int, problems: int, seeded: bool) -> Checkpoint | None:
    """The checkpoint of a problem: the file that was named, or where there are several one of its own beside it.

    Parameters
    ----------
    given : path-like, Checkpoint or None
    index, problems : int
        Number of the problem, and of all.
    seeded : bool
        False: the seed was drawn anew, and makes no other fit.
    """
    if given is None:
        return None
    found = copy.copy(given) if isinstance(given, Checkpoint) else Checkpoint(given)
    found.seeded = found.seeded and seeded
    if problems > 1:
        found.path = found.path.with_name(f"{found.path.name}.{index}")
    return found


def _intercept(stored: Any) -> Any:
    """A number, or an array with one for each class of a joint model."""
    return np.array(stored) if isinstance(stored, list) else stored
