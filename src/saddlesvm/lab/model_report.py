"""The report of one fitted model: what it is worth, how its bound closed, and its strongest features."""

from __future__ import annotations

from typing import Any

from saddlesvm.lab.displays import GapDisplay
from saddlesvm.lab.report import Report, Table

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
    if model.trace_:
        report.section("How the bound closed", GapDisplay(model.trace_, type(model).__name__).chart())
    if hasattr(model, "top_features"):
        tables = [
            Table(["feature", "weight"], [[str(one), f"{weight:+.4g}"] for one, weight in best], heading(model, label))
            for label, best in model.top_features(SHOWN).items()
        ]
        report.section("The strongest features", *tables)
    return report


def heading(model: Any, label: Any) -> str:
    """What the features of a table speak for, in words."""
    if not hasattr(model, "classes_"):
        return "The largest weights, of either sign."
    if isinstance(label, tuple):
        return f"For {label[0]!r}, against {label[1]!r}."
    return f"For {label!r}."
