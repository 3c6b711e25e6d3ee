"""The report of one fitted model: what it is worth, how its bound closed, and its strongest features."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from saddlesvm.fit.outcome import Outcome
from saddlesvm.lab.displays import GapDisplay
from saddlesvm.lab.report import Item, Prose, Report, Table

SHOWN = 15  # features a class
ENOUGH = 2  # certificates that a line goes through, at least


def model_report(
    model: Any, name: str, groups: dict[str, list[tuple[str, str]]], command: str, names: Any = None
) -> Report:
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
    names : sequence of str, optional
        Of the features, where the model does not have them.
    """
    (_, data), *others = groups.items()
    facts = dict(others)
    report = Report(
        f"{type(model).__name__}: {name}", verdict(model, dict(facts.get("worth", ()))), data=data, command=command
    )
    if "worth" in facts:
        report.section("What the model is worth", Table(["", ""], facts.pop("worth")))
    report.section("How the gap closed", *closing(model))
    if hasattr(model, "top_features"):
        proven = any(name.endswith("labels proven") for name, _ in groups.get("worth", ()))
        best_of = model.top_features(SHOWN, names, bounds=proven)
        tables = [features(best, heading(model, label)) for label, best in best_of.items()]
        report.section("The strongest features", *tables)
    for title, lines in facts.items():
        report.section("The fit" if title == "done" else title.capitalize(), Table(["", ""], lines))
    return report


def verdict(model: Any, worth: dict[str, str]) -> list[str]:
    """What the fit came to, in sentences: how good the model is proven to be, why the fit ended, and its scores."""
    certificate, outcome = model.certificate_, model.outcome_
    excess = f"{100 * max(certificate.excess, 0.0):.3g} %" if np.isfinite(certificate.excess) else "an unknown share"
    found = [
        f"{'Certified' if outcome is Outcome.CERTIFIED else 'Not certified'}: the objective is at most {excess} above "
        f"the optimum (relative gap {certificate.relative_gap:.2g}).",
    ]
    if outcome is not Outcome.CERTIFIED:
        found.append(f"The fit ended as {outcome}. {outcome.advice}")
    scores = [f"{name} {value}" for name, value in worth.items() if "accuracy" in name or "R2" in name]
    found += [
        f"Decisions: {value} {name.removesuffix(' proven')} are proven to be those of the exact optimum."
        for name, value in worth.items()
        if name.endswith("labels proven")
    ]
    if scores:
        found.append(f"Scores: {', '.join(scores)}.")
    return found


def closing(model: Any) -> list[Item]:
    """The charts of objectives and gap; a sentence where no sub-problem has two certificates to draw a line between."""
    counts = Counter(record["problem"] for record in model.trace_)
    if max(counts.values(), default=0) < ENOUGH:
        return [Prose("There is no line to draw: the first certificate of every problem was the last.")]
    display = GapDisplay(model.trace_, type(model).__name__)
    return [display.closing_chart()] if len(counts) == 1 else [display.chart()]


def features(best: list[tuple[Any, ...]], caption: str) -> Item:
    """A table of features, with bounds on the optimum's weights where they are known; or a sentence."""
    if not best:
        return Prose(f"{caption} No feature speaks for it: all weights point the other way, or are zero.")
    titles = ["feature", "weight", "the optimum's: at least", "at most"][: len(best[0])]
    return Table(titles, [[str(one), *(f"{value:+.4g}" for value in values)] for one, *values in best], caption)


def heading(model: Any, label: Any) -> str:
    """What the features of a table speak for, in words."""
    if not hasattr(model, "classes_"):
        return "The largest weights, of either sign."
    if isinstance(label, tuple):
        return f"For {label[0]!r}, against {label[1]!r}."
    return f"For {label!r}."
