"""The runs of a comparison, from which its verdict and its report are made."""

from __future__ import annotations

from dataclasses import dataclass, field

import pandas as pd

from saddlesvm.lab.dataset import Dataset
from saddlesvm.lab.plan import Plan


@dataclass(eq=False)
class Results:
    """The runs of a comparison.

    Attributes
    ----------
    dataset : Dataset
    plan : Plan
    trace : DataFrame
        The tidy trace; columns as in :data:`saddlesvm.lab.tidy.COLUMNS`.
    notes : list of str
        The runs that were left out, and why.
    interrupted : bool
        Ctrl-C ended it early; the trace holds the finished runs.
    command : str
        The command that repeats the comparison.
    """

    dataset: Dataset
    plan: Plan
    trace: pd.DataFrame
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False
    command: str = ""
