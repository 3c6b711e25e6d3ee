"""The base of the experiments: options, a report filled step by step, and interruption between steps."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from saddlesvm.lab.report import Report

Step = tuple[str, Callable[[], None]]


@dataclass(frozen=True)
class Options:
    """How an experiment is run.

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


def percent(share: float) -> str:
    """A share as a percentage with two digits after the point."""
    return f"{100.0 * share:.2f}"
