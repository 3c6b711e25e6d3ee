"""The report of a certified path: its band, its errors, its weights, and a table of its fits."""

from __future__ import annotations

from typing import Any

import numpy as np

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
    title = "Every C between two ends, proven" if path.every_C else "A grid of C, every fit proven"
    report = Report(f"{title}: {name}", verdict(display), data=facts, command=command)
    report.section("What is proven", display.gap_chart(), *([display.band_chart()] if path.every_C else []))
    if display.scores:
        report.section("Which C", display.error_chart())
    sparse = not all(np.all(model.coef_) for model in path.models)
    report.section("The models", display.weights_chart(), *([display.features_chart()] if sparse else []))
    report.section("The fits", fits(path))
    return report


def verdict(display: PathDisplay) -> list[str]:
    """The findings, in sentences that the path's proofs support."""
    path = display.path
    low, high = path.Cs[0], path.Cs[-1]
    which = f"every C from {low:.4g} to {high:.4g}" if path.every_C else f"its own C, from {low:.4g} to {high:.4g}"
    each = "fits prove a model for" if path.every_C else "fits, each of which proves the model of"
    found = [
        f"{path.Cs.size} {each} {which}: its objective is within a relative gap of {path.proven_gap:.2g} of the "
        "optimum for that C."
    ]
    if not path.every_C:
        fewest, most = path.n_features_selected[0], path.n_features_selected[-1]
        found.append(f"{fewest:,} features have a weight at the smallest C, {most:,} at the largest.")
    elif path.unproven:
        stretches = ", ".join(f"{a:.4g} to {b:.4g}" for a, b in path.unproven)
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
            f"{C:.4g}",
            f"{certificate.primal:.6g}",
            f"{certificate.dual:.6g}",
            f"{certificate.relative_gap:.1e}",
            f"{model.n_features_selected_:,}",
            f"{model.n_iter_}",
        ]
        for C, certificate, model in zip(path.Cs, path.fit_certificates, path.models, strict=True)
    ]
    columns = ["C", "primal", "dual", "relative gap", "features with a weight", "epochs"]
    return Table(columns, rows, "In the C form; the ends were fitted first." if path.every_C else "In the C form.")
