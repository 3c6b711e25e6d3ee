"""The report of one fitted model: what it is worth, how its bound closed, and its strongest features."""

from __future__ import annotations

from collections import Counter
from typing import Any

from saddlesvm.lab.displays import GapDisplay
from saddlesvm.lab.report import Item, Prose, Report, Table

SHOWN = 15  # features a class


def model_report(model: Any, name: str, groups: dict[str, list[tuple[str, str]]], command: str) -> Report:
    """Assemble the report of a fitted estimator.

    Parameters
    ----------
    model : estimator
        With ``certificate_``, ``outcome_`` and ``trace_``.
    name : str
        Of the data.
    groups : dict of str to list of (str, str)
        Facts in words; the first group is of the data.
    command : str
        The command that repeats the report.
    """
    certificate = model.certificate_
    verdict = [
        f"The fit ended as {model.outcome_}: {model.outcome_.advice}",
        f"The objective of the model is {certificate.primal:.6g}, and proven to be at most "
        f"{100 * max(certificate.excess, 0.0):.3g} % above the optimum (a relative gap of "
        f"{certificate.relative_gap:.2g}).",
    ]
    (_, data), *others = groups.items()
    report = Report(f"{type(model).__name__}: {name}", verdict, data=data, command=command)
    for title, facts in others:
        report.section(title.capitalize(), Table(["", ""], facts))
    report.section("How the bound closed", closing(model))
    if hasattr(model, "top_features"):
        tables = [features(best, heading(model, label)) for label, best in model.top_features(SHOWN).items()]
        report.section("The strongest features", *tables)
    return report


def closing(model: Any) -> Item:
    """The chart of the gaps, or a sentence where no sub-problem has two certificates to draw a line between."""
    if max(Counter(record["problem"] for record in model.trace_).values(), default=0) > 1:
        return GapDisplay(model.trace_, type(model).__name__).chart()
    return Prose("There is no line to draw: the first certificate of every problem was the last.")


def features(best: list[tuple[Any, float]], caption: str) -> Item:
    """A table of features, or a sentence where there are none."""
    if not best:
        return Prose(f"{caption} No feature speaks for it: all weights point the other way, or are zero.")
    return Table(["feature", "weight"], [[str(one), f"{weight:+.4g}"] for one, weight in best], caption)


def heading(model: Any, label: Any) -> str:
    """What the features of a table speak for, in words."""
    if not hasattr(model, "classes_"):
        return "The largest weights, of either sign."
    if isinstance(label, tuple):
        return f"For {label[0]!r}, against {label[1]!r}."
    return f"For {label!r}."
