"""The runs of a comparison: what its verdict and its report are made from."""

from __future__ import annotations

from dataclasses import dataclass, field

import pandas as pd

from saddlesvm.lab.dataset import Dataset
from saddlesvm.lab.plan import Plan


@dataclass(eq=False)
class Results:
    """What a comparison found.

    Attributes
    ----------
    dataset : Dataset
    plan : Plan
    trace : DataFrame
        The tidy trace; columns as in :data:`saddlesvm.lab.tidy.COLUMNS`.
    notes : list of str
        What was left out, and why.
    interrupted : bool
        Ctrl-C ended it early; the trace holds what was done.
    command : str
        What makes it again.
    """

    dataset: Dataset
    plan: Plan
    trace: pd.DataFrame
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False
    command: str = ""
