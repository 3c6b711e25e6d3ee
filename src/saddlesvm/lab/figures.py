"""Every figure of the lab as a function that draws on matplotlib axes and returns them.

Each takes an optional `ax`; without it a figure of its own is made, which :func:`save` writes as PNG or SVG.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from saddlesvm.lab import curves
from saddlesvm.lab.charts import save
from saddlesvm.lab.pictures import (
    confusion,
    decision,
    margins,
    misclassified,
    shrinking,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "accuracy",
    "active_rows",
    "against_C",
    "change_of_w",
    "confusion",
    "decision",
    "gap",
    "margins",
    "misclassified",
    "primal_dual",
    "save",
    "shrinking",
    "suboptimality",
    "test_error",
]


def suboptimality(trace: pd.DataFrame, against: str = "epochs", ax: Axes | None = None) -> Axes:
    """Relative distance from the best dual bound, on a log scale; median and range over the repeats.

    Parameters
    ----------
    trace : DataFrame
        A tidy trace, such as ``compare(...).trace``.
    against : {"epochs", "rows", "seconds"}
    ax : matplotlib.axes.Axes, optional
    """
    return curves.curve_chart(trace, "suboptimality", against).draw(ax)


def gap(trace: pd.DataFrame, against: str = "epochs", ax: Axes | None = None) -> Axes:
    """Relative duality gap, on a log scale; parameters as for :func:`suboptimality`."""
    return curves.curve_chart(trace, "gap", against).draw(ax)


def primal_dual(trace: pd.DataFrame, against: str = "epochs", ax: Axes | None = None) -> Axes:
    """Primal and dual objective closing in on each other; parameters as for :func:`suboptimality`."""
    return curves.closing_chart(trace, against).draw(ax)


def test_error(trace: pd.DataFrame, against: str = "seconds", ax: Axes | None = None) -> Axes:
    """Test error over time; parameters as for :func:`suboptimality`."""
    return curves.curve_chart(trace, "test_error", against).draw(ax)


test_error.__test__ = False  # type: ignore[attr-defined]


def accuracy(trace: pd.DataFrame, against: str = "rows", ax: Axes | None = None) -> Axes:
    """Training accuracy against rows touched (iterations); parameters as for :func:`suboptimality`."""
    return curves.curve_chart(trace, "accuracy", against).draw(ax)


def active_rows(trace: pd.DataFrame, against: str = "epochs", ax: Axes | None = None) -> Axes:
    """Share of the rows that shrinking still works on; parameters as for :func:`suboptimality`."""
    return curves.curve_chart(trace, "active", against).draw(ax)


def change_of_w(trace: pd.DataFrame, against: str = "epochs", ax: Axes | None = None) -> Axes:
    """Norm of the change of w in a pass, for solvers that measure it; parameters as for :func:`suboptimality`."""
    return curves.curve_chart(trace, "change", against).draw(ax)


def against_C(trace: pd.DataFrame, quantity: str = "test_error", ax: Axes | None = None) -> Axes:
    """Where every run ended, against C.

    Parameters
    ----------
    trace : DataFrame
    quantity : {"test_error", "train_error", "seconds"}
    ax : matplotlib.axes.Axes, optional
    """
    return curves.strength_chart(trace, quantity).draw(ax)
