"""The report of a fitted model."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from saddlesvm.fit.outcome import Outcome, Trace
from saddlesvm.lab.curves import gap_chart
from saddlesvm.lab.report import Item, Prose, Report, TextTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from saddlesvm.estimators.base import Estimator

FEATURES_SHOWN = 15  # features for each class (guessed: a screen)
CERTIFICATES_OF_A_LINE = 2


def model_report(
    model: Estimator,
    name: str,
    groups: dict[str, list[tuple[str, str]]],
    command: str,
    names: object = None,
) -> Report:
    """Assemble the report of a fitted estimator.

    Parameters
    ----------
    model : estimator
        With ``certificate_``, ``outcome_`` and ``trace_``.
    name : str
        The name of the data.
    groups : dict of str to list of (str, str)
        Facts in words; the first group is about the data.
    command : str
        The command that repeats the report.
    names : sequence of str, optional
        Names of the features, if the model has none.
    """
    first, *others = groups
    data = groups[first]
    facts = {title: groups[title] for title in others}
    report = Report(
        f"{type(model).__name__}: {name}",
        model_verdict(model, dict(facts.get("quality", ()))),
        data=data,
        command=command,
    )
    if "quality" in facts:
        report.section("Quality of the model", TextTable(["", ""], facts.pop("quality")))
    report.section("How the gap closed", *gap_items(model))
    if hasattr(model, "top_features"):
        # The bounds of the weights take a proof, which the report has if it counts proven labels.
        has_proof = any(name.endswith("labels proven") for name, _ in groups.get("quality", ()))
        strongest = model.top_features(FEATURES_SHOWN, names, bounds=has_proof)
        tables = [
            features_table(best, class_heading(model, label)) for label, best in strongest.items()
        ]
        report.section("The strongest features", *tables)
    for title, lines in facts.items():
        report.section(title.capitalize(), TextTable(["", ""], lines))
    return report


def model_verdict(model: Estimator, quality: dict[str, str]) -> list[str]:
    """Return the result of the fit in sentences: the proof, why the fit ended, and the scores."""
    certificate = model.certificate_
    outcome = model.outcome_
    is_certified = outcome is Outcome.CERTIFIED
    if certificate.dual == -np.inf:
        sentences = [
            "Not certified: the kernel is not positive semi-definite, so nothing is known about "
            "the optimum."
        ]
    else:
        excess = "an unknown share"
        if np.isfinite(certificate.excess):
            excess = f"{100 * max(certificate.excess, 0.0):.3g} %"
        sentences = [
            f"{'Certified' if is_certified else 'Not certified'}: the objective is at most "
            f"{excess} above the optimum (relative gap {certificate.relative_gap:.2g})."
        ]
    if not is_certified:
        sentences.append(f"The fit ended as {outcome}. {outcome.advice}")
    # Decisions of the exact optimum, if the fit was proven so far.
    for name, value in quality.items():
        if name.endswith("labels proven"):
            rows = name.removesuffix(" proven")
            sentences.append(
                f"Predictions: the exact optimum provably predicts the same for {value} {rows}."
            )
    scores = [
        f"{name} {value}" for name, value in quality.items() if "accuracy" in name or "R2" in name
    ]
    if scores:
        sentences.append(f"Scores: {', '.join(scores)}.")
    return sentences


def can_be_drawn(trace: Trace) -> bool:
    """Return True if a sub-problem has two certificates, between which a line can be drawn."""
    counts = Counter(record["problem"] for record in trace)
    return max(counts.values(), default=0) >= CERTIFICATES_OF_A_LINE


def gap_items(model: Estimator) -> list[Item]:
    """Return the chart of the gap, or a sentence if there is no line."""
    trace = model.trace_
    if not can_be_drawn(trace):
        return [
            Prose(
                "The first certificate of every problem was the last, so there is no line to draw."
            )
        ]
    return [gap_chart(trace, type(model).__name__)]


def features_table(best: Sequence[tuple[object, ...]], caption: str) -> Item:
    """Return a table of features, with bounds of the optimum's weights if they are known."""
    if not best:
        return Prose(
            f"{caption} No feature speaks for this class: all weights are zero, or speak against "
            "it."
        )
    titles = ["feature", "weight", "optimum from", "to"][: len(best[0])]
    rows = [[str(name), *(f"{value:+#.4g}" for value in values)] for name, *values in best]
    return TextTable(titles, rows, caption)


def class_heading(model: Estimator, label: object) -> str:
    """Return the class that the features of a table speak for, in words."""
    if not hasattr(model, "classes_"):
        return "The largest weights, of either sign."
    if isinstance(label, tuple):
        return f"For class {label[0]}, against class {label[1]}."
    return f"For class {label}."
