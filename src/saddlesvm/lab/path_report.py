"""The report of a certified path: its band, its errors, its weights, and a table of its fits."""

from __future__ import annotations

from typing import Any

from saddlesvm.lab.displays import PathDisplay
from saddlesvm.lab.report import Report, Table


def path_report(display: PathDisplay, name: str, facts: list[tuple[str, str]], command: str) -> Report:
    """Assemble the report of a path.

    Parameters
    ----------
    display : PathDisplay
    name : str
        Of the data.
    facts : list of (str, str)
        The data and the options.
    command : str
        The command that repeats the report.
    """
    path = display.path
    report = Report(f"Every C between two ends, proven: {name}", verdict(display), data=facts, command=command)
    report.section("What is proven", display.gap_chart(), display.band_chart())
    if display.scores:
        report.section("Which C", display.error_chart())
    report.section("The models", display.weights_chart())
    report.section("The fits", fits(path))
    return report


def verdict(display: PathDisplay) -> list[str]:
    """The findings, in sentences that the path's proofs support."""
    path = display.path
    low, high = path.Cs[0], path.Cs[-1]
    found = [
        f"{len(path.knots)} fits prove a model for every C from {low:.3g} to {high:.3g}: its objective is within a "
        f"relative gap of {path.proven_gap:.2g} of the optimum for that C."
    ]
    if path.unproven:
        stretches = ", ".join(f"{a:.3g} to {b:.3g}" for a, b in path.unproven)
        found.append(
            f"It ended early ({path.outcome}): {path.gap:.2g} was asked for, and is not proven for C from {stretches}."
        )
    if display.chosen is not None:
        found.append(f"The chosen C is {display.chosen:.4g}.")
    return found


def fits(path: Any) -> Table:
    """A row for each fit."""
    rows = [
        [
            f"{knot.C:.4g}",
            f"{knot.primal.sum():.6g}",
            f"{knot.dual.sum():.6g}",
            f"{knot.relative_gap:.1e}",
            f"{model.n_iter_}",
        ]
        for knot, model in zip(path.knots, path.models, strict=True)
    ]
    return Table(["C", "primal", "dual", "relative gap", "epochs"], rows, "In the C form; the ends were fitted first.")
