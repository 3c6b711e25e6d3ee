"""The reports of a fitted model, and of a path."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from saddlesvm.fit.outcome import Outcome, Trace
from saddlesvm.lab.displays import GapDisplay, PathDisplay
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
    report.section("How the gap closed", *closing_items(model))
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
                f"Decisions: the exact optimum provably decides alike for {value} {rows}."
            )
    if getattr(model, "probability", False):
        sentences.append(
            "Decisions: none is proven, because the labels come from calibrated probabilities."
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


def closing_items(model: Estimator) -> list[Item]:
    """Return the chart of the gap, or a sentence if there is no line."""
    trace = model.trace_
    if not can_be_drawn(trace):
        return [
            Prose(
                "The first certificate of every problem was the last, so there is no line to draw."
            )
        ]
    display = GapDisplay(trace, type(model).__name__)
    is_single = len({record["problem"] for record in trace}) == 1
    return [display.closing_chart() if is_single else display.chart()]


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


def path_report(
    display: PathDisplay, name: str, facts: list[tuple[str, str]], command: str
) -> Report:
    """Assemble the report of a path.

    Parameters
    ----------
    display : PathDisplay
    name : str
        The name of the data.
    facts : list of (str, str)
        Facts of the data and of the options.
    command : str
        The command that repeats the report.
    """
    path = display.path
    title = "Every C between two ends, proven" if path.every_C else "A grid of C, every fit proven"
    report = Report(f"{title}: {name}", path_verdict(display), data=facts, command=command)
    report.section("What is proven", display.gap_chart())
    if display.scores:
        report.section("Which C", display.error_chart())
    models = report.section("The models", display.weights_chart())
    # A penalty with an l1 norm sets weights to zero: show how many are left.
    has_zero_weights = not all(np.all(model.coef_) for model in path.models)
    if has_zero_weights:
        models.items.append(display.features_chart())
    report.section("The fits", fits_table(path))
    return report


def path_verdict(display: PathDisplay) -> list[str]:
    """Return the findings in sentences that the proofs of the path support."""
    path = display.path
    ends = f"from {path.Cs[0]:.4g} to {path.Cs[-1]:.4g}"
    gap = f"a relative gap of {path.proven_gap:.2g}"
    # A certified path is about every C, a grid about its own values.
    if path.every_C:
        sentences = [
            f"{path.Cs.size} fits prove a model for every C {ends}: its objective is within {gap} "
            "of the optimum for that C."
        ]
        if path.unproven:
            stretches = ", ".join(f"{a:.4g} to {b:.4g}" for a, b in path.unproven)
            sentences.append(
                f"The path ended early ({path.outcome}): the requested gap of {path.gap:.2g} is "
                f"not proven for C from {stretches}."
            )
    else:
        sentences = [
            f"{path.Cs.size} fits, for C {ends}: the objective of each is within {gap} of the "
            "optimum for its C."
        ]
        counts = path.n_features_selected
        sentences.append(
            f"{counts[0]:,} features have a weight at the smallest C, {counts[-1]:,} at the "
            "largest."
        )
    if display.chosen is not None:
        sentences.append(f"The chosen C is {display.chosen:.4g}.")
    return sentences


def fits_table(path: Any) -> TextTable:
    """Return a table with a row for each fit of a path."""
    records = []
    for C, certificate, model in zip(path.Cs, path.fit_certificates, path.models, strict=True):
        records.append(
            {
                "C": f"{C:.4g}",
                "primal": f"{certificate.primal:.6g}",
                "dual": f"{certificate.dual:.6g}",
                "relative gap": f"{certificate.relative_gap:.1e}",
                "features with a weight": f"{model.n_features_selected_:,}",
                "epochs": f"{model.n_iter_}",
            }
        )
    caption = "Objectives in the C form."
    if path.every_C:
        caption += " The ends were fitted first."
    return TextTable.from_records(records, caption)
