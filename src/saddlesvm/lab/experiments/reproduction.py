"""Run the published experiments again: each gives a report with the published figures beside the measured ones."""

from __future__ import annotations

import importlib
import os
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from saddlesvm.lab.experiments import HOMES
from saddlesvm.lab.machine import LabProgress, command_line
from saddlesvm.lab.report import Report
from saddlesvm.runtime.threads import interruptible

EXPERIMENTS = tuple(HOMES)
Step = tuple[str, Callable[[], None]]


@dataclass(frozen=True)
class Options:
    """The options of an experiment.

    Attributes
    ----------
    data : path or None
        Folder with the data files.
    quick : bool
        A part of the data and few repeats.
    command : str
        The command that repeats the report.
    bundled : bool
        Only the data that come with the package.
    """

    data: str | os.PathLike[str] | None = None
    quick: bool = False
    command: str = ""
    bundled: bool = False


class Experiment(ABC):
    """A published experiment, repeated.

    Attributes
    ----------
    name, title : str
    report : Report
        Filled by the steps.
    """

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.report = Report(self.title, [], command=options.command)
        if options.quick:
            self.report.verdict.append("Quick run: a part of the data, few repeats; the figures are not the real ones.")

    @property
    def quick(self) -> bool:
        """Whether only a part is done."""
        return self.options.quick

    @abstractmethod
    def steps(self) -> Sequence[Step]:
        """Words and work of each step, in order."""

    def say(self, sentence: str, timed: bool = False) -> None:
        """Add a sentence to the findings; `timed` says that it depends on the clock."""
        self.report.verdict.append(sentence)
        if timed:
            self.report.timed.add(sentence)


def timed(model: Any, X: np.ndarray, y: np.ndarray) -> tuple[Any, float]:
    """The fitted model and the seconds of its fit. Runs cut by a limit are expected: warnings are not shown."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        model.fit(X, y)
        return model, time.perf_counter() - began


def percent(share: float) -> str:
    """A share as a percentage with two digits after the point."""
    return f"{100.0 * share:.2f}"


def reproduce(
    name: str | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    report: str | os.PathLike[str] | None = None,
    quick: bool = False,
    *,
    figures: str | os.PathLike[str] | None = None,
    progress: bool = False,
    command: str | None = None,
) -> dict[str, Report]:
    """Run one of the published experiments, or all of them.

    Parameters
    ----------
    name : str, optional
        One of :data:`EXPERIMENTS`; all when left out.
    data_dir : path, optional
        Folder with the data files; by default the cache folder is searched, then OpenML.
    report : path, optional
        For one experiment the HTML file, for all a folder. Nothing is written when left out.
    quick : bool, default=False
        A part of the data and few repeats, in seconds.
    figures : path, optional
        Folder for every figure as PNG.
    progress : bool, default=False
        Show a progress bar on standard error.
    command : str, optional
        The command that repeats the report; by default the command line of this process.

    Returns
    -------
    dict of str to Report
        Ctrl-C ends the work after the present step; the report of the finished steps is written, and says so.

    Raises
    ------
    ValueError
        There is no experiment of this name.
    DataError
        Data are missing, or a file cannot be written.

    Examples
    --------
    >>> from saddlesvm.lab import EXPERIMENTS, reproduce
    >>> "pegasos-bound" in EXPERIMENTS
    True
    >>> reproduce("no-such-experiment")
    Traceback (most recent call last):
        ...
    ValueError: ...
    """
    if name is not None and name not in HOMES:
        raise ValueError(f"there is no experiment {name!r}: use one of {', '.join(EXPERIMENTS)}")
    options = Options(data_dir, quick, command or command_line())
    chosen = [experiment(one, options) for one in ([name] if name else EXPERIMENTS)]
    done: dict[str, Report] = {}
    with interruptible() as stop, LabProgress(sum(len(one.steps()) for one in chosen), progress) as bar:
        for one in chosen:
            for words, work in one.steps():
                if stop.is_set():
                    one.report.verdict.insert(0, f"Interrupted before {words}; the report has the finished part.")
                    break
                bar.begin(f"{one.name}: {words}")
                began, on_cores = time.perf_counter(), time.process_time()
                work()
                one.report.seconds += time.perf_counter() - began
                one.report.processor_seconds += time.process_time() - on_cores
                bar.done()
            done[one.name] = one.report
            if report is not None:
                one.report.write(Path(report) if name else Path(report) / f"{one.name}.html")
            if figures is not None:
                one.report.save_figures(Path(figures) / one.name, ("png",))
            if stop.is_set():
                break
    return done


def experiment(name: str, options: Options) -> Experiment:
    """The experiment of that name."""
    module = importlib.import_module(f"saddlesvm.lab.experiments.{HOMES[name][0]}")
    made: Experiment = getattr(module, HOMES[name][1])(options)
    return made
