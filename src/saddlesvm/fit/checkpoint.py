"""Checkpoints: the last solution of a run in one file of plain arrays, to continue a killed fit.

The file is an ``.npz`` of these members. Everything is an array or a number; nothing in it is
trusted but its shapes, because a continued fit computes its certificates from the data.

    header         JSON: format, mark (a hash of the problem, its rows and the solver), numbers,
                   trace
    w, alpha       the last solution of the solver: weights and dual variables, if it has them
    best_w,        the best model and the best dual point that were certified so far
    best_alpha
    beta           the coefficients of a kernel machine, instead of w and alpha
    state_NAME     further fields of the solver's state: as ``State.carried`` names them
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from saddlesvm.data.archives import DAMAGE, Archive, open_archive, parse_json, shorten_text
from saddlesvm.data.errors import DataError, atomic_write, refuse_special
from saddlesvm.fit.outcome import Trace
from saddlesvm.problem.certificate import KernelPoint, Point

if TYPE_CHECKING:
    from saddlesvm.problem.problem import Problem
    from saddlesvm.solvers.base import State

FORMAT = "saddlesvm checkpoint 2"
NUMBERS = ("epochs", "rows_touched", "kernel_evaluations", "solving", "certifying")
MOST = 2.0**62  # largest count or number of seconds that is read: its integer fits into 64 bits
PLAIN = (bool, int, float, str, list, type(None))  # types of a trace's values


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written, to a full disk for example; the fit continues."""


class OtherFit(ValueError):
    """A checkpoint is readable, but belongs to another fit."""


@dataclasses.dataclass(frozen=True)
class Saved:
    """The contents of a checkpoint.

    Attributes
    ----------
    point : Point or KernelPoint
        The last solution.
    best : Point or None
        The best model and the best dual point.
    numbers : dict
        Epochs, rows touched, kernel values and seconds so far, by :data:`NUMBERS`; "phases" holds
        seconds by name.
    trace : Trace
    state : dict
        Further fields of the solver's state by name.
    """

    point: Any
    best: Point | None
    numbers: dict[str, Any]
    trace: Trace
    state: dict[str, Any]


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


class CheckpointFile:
    """Writes and reads the checkpoint of a fit.

    Parameters
    ----------
    given : path-like or Checkpoint
    suffix : str, default=""
        Appended to the name of the file, if a model has several problems.
    seeded : bool, default=True
        False: the seed was drawn anew, so that any seed continues the fit.
    """

    def __init__(
        self, given: str | os.PathLike[str] | Checkpoint, suffix: str = "", seeded: bool = True
    ) -> None:
        options = given if isinstance(given, Checkpoint) else Checkpoint(given)
        # Each sub-problem of a model has a file of its own, by its suffix.
        self.path = options.path.with_name(options.path.name + suffix)
        self.every = options.every
        self.every_steps = options.every_steps
        self.seeded = options.seeded and seeded
        self.steps = 0
        self.written = time.monotonic()

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
        """Write everything under a temporary name and rename it."""
        arrays = {f"state_{name}": np.asarray(given) for name, given in saved.state.items()}
        if isinstance(saved.point, KernelPoint):
            arrays["beta"] = saved.point.beta
        else:
            arrays |= point_arrays(saved.point, "")
        if saved.best is not None:
            arrays |= point_arrays(saved.best, "best_")
        # The mark says whose checkpoint it is; numbers and trace go on in the next run.
        header = {
            "format": FORMAT,
            "mark": mark,
            "numbers": saved.numbers,
            "trace": list(saved.trace),
        }
        self.store(header, arrays)

    def store(self, header: Mapping[str, object], arrays: dict[str, Any]) -> None:
        """Write a header and arrays under a temporary name, and rename it."""
        text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
        with atomic_write(self.path) as file:
            np.savez(file, header=text, **arrays)
        self.restart_clock()

    @contextmanager
    def warn_on_failure(self) -> Iterator[None]:
        """Warn, instead of raising, if a write fails; the next write is tried when it is due."""
        try:
            yield
        except DataError as error:
            message = (
                f"{error}. The fit continues; a later run can go on from an earlier checkpoint only"
            )
            warnings.warn(message, CheckpointWarning, stacklevel=2)
            self.restart_clock()

    def restart_clock(self) -> None:
        """Count the time and the steps until the next write from now."""
        self.written = time.monotonic()
        self.steps = 0

    def read(self, problem: Any, mark: Mapping[str, object]) -> Saved | None:
        """Return the contents of the file; None if there is no file.

        Raises
        ------
        ValueError
            The file is damaged, of another version, or belongs to another problem or solver.
        """
        # Temporary files that an interrupted write has left.
        self._clear_up()
        if not self.path.exists():
            return None
        with self.open(FORMAT, mark) as (stored, header):
            check_header(header)
            arrays = {name: stored.read(name) for name in stored.names if name != "header"}
            return check_contents(problem, header, arrays)

    @contextmanager
    def open(
        self, form: str, mark: Mapping[str, object], what: str = "fit"
    ) -> Iterator[tuple[Archive, dict[str, Any]]]:
        """Open the file, and yield it with its header.

        Raises
        ------
        OtherFit
            It belongs to another fit.
        ValueError
            It is damaged, which reading may show as well, or of another format.
        """
        try:
            with open_archive(self.path, expansion=1) as stored:
                header = parse_json(stored.read("header").tobytes(), stored.n_bytes)
                # Format first, then the owner: only then does the content mean anything.
                stated = header.get("format") if isinstance(header, dict) else header
                if stated != form:
                    raise ValueError(
                        f"its format is {shorten_text(repr(stated))}; only {form!r} can be read"
                    )
                demand(isinstance(header.get("mark"), dict), "its mark is missing")
                self._refuse_other(header["mark"], mark, what)
                yield stored, header
        except OtherFit:
            raise
        except DAMAGE as error:
            found = " ".join(str(error).split())
            raise ValueError(
                f"{self.path} is not a readable checkpoint ({found}); remove it to start anew"
            ) from None

    def _refuse_other(self, held: dict[str, Any], mark: Mapping[str, object], what: str) -> None:
        """Raise :class:`OtherFit` if a checkpoint was written by another fit."""
        # Compare as JSON writes the values: a tuple in memory is a list in the file.
        plain = json.loads(json.dumps(mark))
        different = [name for name, value in plain.items() if held.get(name) != value]
        if not different:
            return
        facts = [shorten_text(held[name], 200) for name in ("problem", "solver") if name in held]
        contents = f" (it holds: {', '.join(facts)})" if facts else ""
        raise OtherFit(
            f"the checkpoint {self.path} belongs to another {what}: {', '.join(different)} differ"
            f"{contents}; remove it or name another file"
        )

    def _clear_up(self) -> None:
        """Remove the unfinished files of a killed run."""
        for file in self.path.parent.iterdir():
            if file.name.startswith(f".{self.path.name}.") and file.suffix == ".tmp":
                file.unlink(missing_ok=True)


def demand(fine: object, what: str) -> None:
    """Raise ValueError, saying `what` is wrong, unless something is fine."""
    if not fine:
        raise ValueError(what)


def check_header(header: Mapping[str, object]) -> None:
    """Raise ValueError unless the header of a checkpoint has its numbers and its trace."""
    numbers: Any = header.get("numbers")
    trace: Any = header.get("trace")
    demand(
        isinstance(numbers, dict) and {*numbers} == {*NUMBERS, "phases"}, "its numbers are missing"
    )
    demand(isinstance(numbers["phases"], dict), "its phases are missing")

    # Counts and seconds: not negative, finite, and counts whole.
    amounts = [numbers[name] for name in NUMBERS] + list(numbers["phases"].values())
    plausible = all(type(amount) in (int, float) and 0.0 <= amount < MOST for amount in amounts)
    demand(plausible, "a count or a time is negative, too large or not a number")
    whole = all(type(numbers[name]) is int for name in ("rows_touched", "kernel_evaluations"))
    demand(whole, "its counts are not whole")

    # The trace: a list of dicts of plain values.
    is_table = isinstance(trace, list) and all(isinstance(row, dict) for row in trace)
    demand(is_table, "its trace is not a list of records")
    is_plain = all(isinstance(value, PLAIN) for row in trace for value in row.values())
    demand(is_plain, "its trace is not a list of records")


def check_contents(problem: Any, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Saved:
    """Return the contents of a checkpoint; ValueError if their shapes are not the problem's."""
    # Separate the fields of the solver's state from the points.
    state = {}
    rest = {}
    for name, array in arrays.items():
        if name.startswith("state_"):
            state[name.removeprefix("state_")] = array
            continue
        if array.dtype.kind == "f":
            demand(np.isfinite(array).all(), f"its {name} is not finite")
        rest[name] = array

    # The last solution, and the best points; what is left belongs to no checkpoint.
    best = None
    if "beta" in rest:
        beta = rest.pop("beta")
        demand(
            beta.dtype == np.float64 and beta.shape == problem.y.shape, "its beta has another size"
        )
        point: Any = KernelPoint(beta)
    else:
        point = take_point(problem, rest, "")
        if {"best_w", "best_alpha"} & {*rest}:
            best = take_point(problem, rest, "best_")
    unknown = shorten_text(next(iter(rest), ""), 40)
    demand(not rest, f"it holds an array {unknown!r}, which no checkpoint has")
    return Saved(point, best, header["numbers"], Trace(header["trace"]), state)


def point_arrays(point: Point, prefix: str) -> dict[str, np.ndarray]:
    """Return the arrays of a point by name."""
    arrays = {}
    if point.w is not None:
        arrays[f"{prefix}w"] = np.asarray(point.w)
    if point.alpha is not None:
        arrays[f"{prefix}alpha"] = np.asarray(point.alpha)
    return arrays


def take_point(problem: Problem, arrays: dict[str, np.ndarray], prefix: str) -> Point:
    """Take a point out of the arrays; ValueError unless it has the shape of the problem's."""
    w = arrays.pop(f"{prefix}w", None)
    alpha: Any = arrays.pop(f"{prefix}alpha", None)
    classes = getattr(problem, "n_classes", None)
    rows = (problem.n_features + 1,)
    wanted = rows if classes is None else (classes, *rows)
    floats = (np.float32, np.float64)
    if w is not None:
        fine = w.dtype in floats and w.shape == wanted
        demand(fine, f"its {prefix}w has shape {w.shape}; {wanted} is needed")
    if alpha is not None:
        # Problems that keep no dual variables write an empty array.
        shapes = ((problem.y.size,),) if classes is None else ((problem.y.size, classes), (0, 0))
        fine = alpha.dtype in floats and alpha.shape in shapes
        demand(
            fine,
            f"its {prefix}alpha has shape {alpha.shape}; the problem has {problem.y.size} rows",
        )
    demand(w is not None or alpha is not None, "its solution is missing")
    return Point(w, alpha)


def take_over(state: State, stored: Mapping[str, np.ndarray]) -> None:
    """Give a fresh state the fields that a checkpoint holds of it.

    Raises
    ------
    ValueError
        They are not the fields that `carried` names, or have other types or shapes.
    """
    names = type(state).carried
    demand({*stored} == {*names}, "its state belongs to another solver")
    for name in names:
        fresh = getattr(state, name)
        found = stored[name]
        if isinstance(fresh, np.ndarray):
            fine = found.dtype == fresh.dtype and found.shape == fresh.shape
            demand(fine, f"its {name} has shape {found.shape}; {fresh.shape} is needed")
            setattr(state, name, found)
        else:
            # A number must be one that a run can come to, whatever the file holds.
            fine = found.shape == () and found.dtype == np.asarray(fresh).dtype
            demand(fine and 0.0 <= found < MOST, f"its {name} is negative, too large or no number")
            setattr(state, name, type(fresh)(found))


def make_checkpoint_file(
    given: str | os.PathLike[str] | Checkpoint | None, index: int, problems: int, seeded: bool
) -> CheckpointFile | None:
    """Return the checkpoint of problem `index`; None if none is `given`.

    Several problems have a file each, beside the named file. Unless the run is `seeded`, its seed
    was drawn anew, and any seed continues the fit.
    """
    if given is None:
        return None
    return CheckpointFile(given, f".{index}" if problems > 1 else "", seeded)
