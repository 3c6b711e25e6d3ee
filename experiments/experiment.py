"""Run experiments; each fills a report with the published figures beside the measured figures."""

from __future__ import annotations

import importlib
import os
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from experiments import HOMES
from saddlesvm.lab import Report, catch_interrupts, show_progress

Step = tuple[str, Callable[[], None]]


@dataclass(frozen=True)
class Options:
    """The options of an experiment.

    Attributes
    ----------
    data : path or None
        Folder with the data files.
    quick : bool
        Run a part of the data, with few repeats.
    command : str
        The command that repeats the report.
    bundled : bool
        Use only the data that come with the package.
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
            self.say(
                "Quick run: a part of the data, few repeats; the figures are not the real ones."
            )

    @property
    def quick(self) -> bool:
        """Whether only a part of the experiment is run."""
        return self.options.quick

    @abstractmethod
    def steps(self) -> Sequence[Step]:
        """Return words and work of each step, in order."""

    def say(self, sentence: str, timed: bool = False) -> None:
        """Add a sentence to the findings; `timed` says that it depends on the clock."""
        self.report.verdict.append(sentence)
        if timed:
            self.report.timed.add(sentence)


def time_fit(model: Any, X: np.ndarray, y: np.ndarray) -> tuple[Any, float]:
    """Fit a model, and return it with the seconds of the fit."""
    with warnings.catch_warnings():
        # Runs that a limit ends are expected here.
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        model.fit(X, y)
        return model, time.perf_counter() - began


def percent(share: float) -> str:
    """Return a share as a percentage with two digits after the point."""
    return f"{100.0 * share:.2f}"


def make_experiment(name: str, options: Options) -> Experiment:
    """Return the experiment of a name."""
    module, class_name = HOMES[name]
    kind = getattr(importlib.import_module(f"experiments.{module}"), class_name)
    experiment: Experiment = kind(options)
    return experiment


def run_experiments(
    names: Iterable[str],
    options: Options,
    *,
    reports: str | os.PathLike[str] | None = None,
    figures: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> dict[str, Report]:
    """Run experiments one after the other.

    Parameters
    ----------
    names : iterable of str
        Keys of :data:`experiments.HOMES`.
    options : Options
    reports : path, optional
        Folder for the HTML reports ``NAME.html``; none are written without it.
    figures : path, optional
        Folder for every figure as PNG.
    progress : bool, default=False
        Show a progress bar on standard error.

    Returns
    -------
    dict of str to Report
        Ctrl-C ends the work after the current step. The report of the finished steps is written,
        and says so.

    Raises
    ------
    DataError
        Data are missing, or a file cannot be written.
    """
    chosen = [make_experiment(name, options) for name in names]
    n_steps = sum(len(experiment.steps()) for experiment in chosen)
    done: dict[str, Report] = {}
    with catch_interrupts() as stop, show_progress(n_steps, progress) as begin:
        for experiment in chosen:
            report = experiment.report
            for words, work in experiment.steps():
                if stop.is_set():
                    sentence = f"Interrupted before {words}; the report has the finished part."
                    report.verdict.insert(0, sentence)
                    break
                begin(f"{experiment.name}: {words}")
                began = time.perf_counter()
                began_on_cores = time.process_time()
                work()
                report.seconds += time.perf_counter() - began
                report.processor_seconds += time.process_time() - began_on_cores
            done[experiment.name] = report
            if reports is not None:
                report.write(Path(reports) / f"{experiment.name}.html")
            if figures is not None:
                report.save_figures(Path(figures) / experiment.name, ("png",))
            if stop.is_set():
                break
    return done
