"""The reports of one fitted model, and of a path."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from saddlesvm.fit.outcome import Outcome, Trace
from saddlesvm.lab.displays import GapDisplay, PathDisplay
from saddlesvm.lab.report import Item, Prose, Report, Table

FEATURES = 15  # features a class
ENOUGH = 2  # certificates that a line goes through, at least


def model_report(
    model: Any,
    name: str,
    groups: dict[str, list[tuple[str, str]]],
    command: str,
    names: Any = None,
    trace: Trace | None = None,
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
        Names of the features, if the model has none.
    trace : Trace, optional
        Of the same fit with more certificates, to be drawn in place of the model's own.
    """
    (_, data), *others = groups.items()
    facts = dict(others)
    report = Report(
        f"{type(model).__name__}: {name}",
        model_verdict(model, dict(facts.get("quality", ()))),
        data=data,
        command=command,
    )
    if "quality" in facts:
        report.section("Quality of the model", Table(["", ""], facts.pop("quality")))
    report.section("How the gap closed", *closing(model, trace))
    if hasattr(model, "top_features"):
        proven = any(name.endswith("labels proven") for name, _ in groups.get("quality", ()))
        best_of = model.top_features(FEATURES, names, bounds=proven)
        tables = [features(best, heading(model, label)) for label, best in best_of.items()]
        report.section("The strongest features", *tables)
    for title, lines in facts.items():
        report.section("The fit" if title == "done" else title.capitalize(), Table(["", ""], lines))
    return report


def model_verdict(model: Any, worth: dict[str, str]) -> list[str]:
    """The result of the fit, in sentences: the proven distance from the optimum, the reason of the
    end, the scores.
    """
    certificate = model.certificate_
    outcome = model.outcome_
    excess = (
        f"{100 * max(certificate.excess, 0.0):.3g} %"
        if np.isfinite(certificate.excess)
        else "an unknown share"
    )
    found = [
        f"{'Certified' if outcome is Outcome.CERTIFIED else 'Not certified'}: the objective is "
        f"at most {excess} above "
        f"the optimum (relative gap {certificate.relative_gap:.2g}).",
    ]
    if certificate.dual == -np.inf:
        found = [
            "Not certified: the kernel is not positive semi-definite, so nothing is known about "
            "the optimum."
        ]
    if outcome is not Outcome.CERTIFIED:
        found.append(f"The fit ended as {outcome}. {outcome.advice}")
    scores = [
        f"{name} {value}" for name, value in worth.items() if "accuracy" in name or "R2" in name
    ]
    found += [
        f"Decisions: {value} {name.removesuffix(' proven')} are proven to be those of the exact "
        f"optimum."
        for name, value in worth.items()
        if name.endswith("labels proven")
    ]
    if getattr(model, "probability", False):
        found.append("Decisions: none is proven, as the labels come from calibrated probabilities.")
    if scores:
        found.append(f"Scores: {', '.join(scores)}.")
    return found


def can_be_drawn(trace: Trace) -> bool:
    """Return True if a sub-problem has two certificates, between which a line can be drawn."""
    return max(Counter(record["problem"] for record in trace).values(), default=0) >= ENOUGH


def closing(model: Any, other: Trace | None) -> list[Item]:
    """The chart of objectives or gaps, of another trace where the model's own has no line; or a
    sentence.
    """
    trace = model.trace_ if other is None else other
    if not can_be_drawn(trace):
        return [
            Prose(
                "The first certificate of every problem was the last, so there is no line to draw."
            )
        ]
    display = GapDisplay(trace, type(model).__name__)
    several = len({record["problem"] for record in trace}) > 1
    chart = display.chart() if several else display.closing_chart()
    explanation = (
        "The fit needed one certificate. The picture shows the same fit with a "
        "certificate after each epoch."
    )
    return [chart] if other is None else [Prose(explanation), chart]


def features(best: list[tuple[Any, ...]], caption: str) -> Item:
    """A table of features, with bounds on the optimum's weights where they are known; or a
    sentence.
    """
    if not best:
        return Prose(
            f"{caption} No feature speaks for this class: all weights are zero, or speak "
            f"against it."
        )
    titles = ["feature", "weight", "optimum from", "to"][: len(best[0])]
    return Table(
        titles,
        [[str(one), *(f"{value:+#.4g}" for value in values)] for one, *values in best],
        caption,
    )


def heading(model: Any, label: Any) -> str:
    """The class that the features of a table support, in words."""
    if not hasattr(model, "classes_"):
        return "The largest weights, of either sign."
    if isinstance(label, tuple):
        return f"For class {label[0]}, against class {label[1]}."
    return f"For class {label}."


def path_report(
    display: PathDisplay, name: str, facts: list[tuple[str, str]], command: str
) -> Report:
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
    report = Report(f"{title}: {name}", path_verdict(display), data=facts, command=command)
    report.section("What is proven", display.gap_chart())
    if display.scores:
        report.section("Which C", display.error_chart())
    sparse = not all(np.all(model.coef_) for model in path.models)
    report.section(
        "The models", display.weights_chart(), *([display.features_chart()] if sparse else [])
    )
    report.section("The fits", fits(path))
    return report


def path_verdict(display: PathDisplay) -> list[str]:
    """The findings, in sentences that the path's proofs support."""
    path = display.path
    low = path.Cs[0]
    high = path.Cs[-1]
    which = (
        f"every C from {low:.4g} to {high:.4g}"
        if path.every_C
        else f"its own C, from {low:.4g} to {high:.4g}"
    )
    each = "fits prove a model for" if path.every_C else "fits, each of which proves the model of"
    found = [
        f"{path.Cs.size} {each} {which}: its objective is within a relative gap of "
        f"{path.proven_gap:.2g} of the "
        "optimum for that C."
    ]
    if not path.every_C:
        fewest = path.n_features_selected[0]
        most = path.n_features_selected[-1]
        found.append(
            f"{fewest:,} features have a weight at the smallest C, {most:,} at the largest."
        )
    elif path.unproven:
        stretches = ", ".join(f"{a:.4g} to {b:.4g}" for a, b in path.unproven)
        found.append(
            f"It ended early ({path.outcome}): {path.gap:.2g} was asked for, and is not proven "
            f"for C from {stretches}."
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
    return Table(
        columns,
        rows,
        "In the C form; the ends were fitted first." if path.every_C else "In the C form.",
    )
