"""The reports of one fitted model, of a path, and of an audit."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.estimators.audit import Audit
from saddlesvm.fit.outcome import Outcome, Trace
from saddlesvm.lab.charts import Chart, Series
from saddlesvm.lab.displays import GapDisplay, PathDisplay
from saddlesvm.lab.report import Item, Prose, Report, Table
from saddlesvm.runtime.shown import shown

FEATURES = 15  # features a class
ENOUGH = 2  # certificates that a line goes through, at least
SHOWN = 50  # rows of an audit's table
VALUES = 8  # of a row that are shown: the largest in size


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
    """The result of the fit, in sentences: the proven distance from the optimum, the reason of the end, the scores."""
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
    if getattr(model, "probability", False):
        found.append("Decisions: none is proven, as the labels come from calibrated probabilities.")
    if scores:
        found.append(f"Scores: {', '.join(scores)}.")
    return found


def can_be_drawn(trace: Trace) -> bool:
    """Whether a sub-problem has two certificates, between which a line can be drawn."""
    return max(Counter(record["problem"] for record in trace).values(), default=0) >= ENOUGH


def closing(model: Any, other: Trace | None) -> list[Item]:
    """The chart of objectives or gaps, of another trace where the model's own has no line; or a sentence."""
    trace = model.trace_ if other is None else other
    if not can_be_drawn(trace):
        return [Prose("The first certificate of every problem was the last, so there is no line to draw.")]
    display = GapDisplay(trace, type(model).__name__)
    several = len({record["problem"] for record in trace}) > 1
    chart = display.chart() if several else display.closing_chart()
    explanation = "The fit needed one certificate. The picture shows the same fit with a certificate after each epoch."
    return [chart] if other is None else [Prose(explanation), chart]


def features(best: list[tuple[Any, ...]], caption: str) -> Item:
    """A table of features, with bounds on the optimum's weights where they are known; or a sentence."""
    if not best:
        return Prose(f"{caption} No feature speaks for this class: all weights are zero, or speak against it.")
    titles = ["feature", "weight", "optimum from", "to"][: len(best[0])]
    return Table(titles, [[str(one), *(f"{value:+#.4g}" for value in values)] for one, *values in best], caption)


def heading(model: Any, label: Any) -> str:
    """The class that the features of a table support, in words."""
    if not hasattr(model, "classes_"):
        return "The largest weights, of either sign."
    if isinstance(label, tuple):
        return f"For class {label[0]}, against class {label[1]}."
    return f"For class {label}."


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
    report = Report(f"{title}: {name}", path_verdict(display), data=facts, command=command)
    report.section("What is proven", display.gap_chart(), *([display.band_chart()] if path.every_C else []))
    if display.scores:
        report.section("Which C", display.error_chart())
    sparse = not all(np.all(model.coef_) for model in path.models)
    report.section("The models", display.weights_chart(), *([display.features_chart()] if sparse else []))
    report.section("The fits", fits(path))
    return report


def path_verdict(display: PathDisplay) -> list[str]:
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
        [f"{C:.4g}", f"{certificate.primal:.6g}", f"{certificate.dual:.6g}", f"{certificate.relative_gap:.1e}",
         f"{model.n_features_selected_:,}", f"{model.n_iter_}"]
        for C, certificate, model in zip(path.Cs, path.fit_certificates, path.models, strict=True)
    ]  # fmt: skip
    columns = ["C", "primal", "dual", "relative gap", "features with a weight", "epochs"]
    return Table(columns, rows, "In the C form; the ends were fitted first." if path.every_C else "In the C form.")


def audit_report(
    found: Audit, model: Any, X: Any, y: np.ndarray, name: str, facts: list[tuple[str, str]], command: str
) -> Report:
    """Assemble the page.

    Parameters
    ----------
    found : Audit
    model : LinearSVC
        That was audited.
    X, y
        Its rows.
    name : str
        Of the data.
    facts : list of (str, str)
        The data and the options.
    command : str
        The command that repeats the page.
    """
    report = Report(f"Audit: {name}", audit_verdict(found), data=facts, command=command)
    report.section("Suspects", *suspects(found, model, X, y))
    report.section("Influence of single rows", *influence(found, y))
    if found.groups is not None:
        report.section("Influence of groups", groups(found))
    report.section("Contradictions", contradictions(found, model, X, y))
    report.section("Separability", separability(found))
    return report


def audit_verdict(found: Audit) -> list[str]:
    """The findings in sentences."""
    loo, n = found.leave_one_out, found.margins.size
    sentences = [
        f"{found.suspects.size:,} of {n:,} rows are given to another class by the model without them "
        f"({int(np.sum(found.margins_high < 0.0)):,} proven).",
        f"The leave-one-out error is {between(100 * loo.error_low, 100 * loo.error_high)} %, proven.",
        f"{int(found.stable.sum()):,} of {found.stable.size:,} decisions cannot be changed by leaving out one row.",
    ]
    if found.groups is not None:
        stable = found.groups.stable
        sentences.append(f"{int(stable.sum()):,} of {stable.size:,} cannot be changed by leaving out a single group.")
    sentences.append(f"{len(found.contradictions):,} sets of equal rows have different labels.")
    return sentences + found.notes


def between(low: float, high: float) -> str:
    """An interval in words; one number where its ends are the same to four digits."""
    first, last = f"{low:.4g}", f"{high:.4g}"
    return first if first == last else f"{first} to {last}"


def suspects(found: Audit, model: Any, X: Any, y: np.ndarray) -> list[Item]:
    """The suspects with their rows, and where they stand among all margins."""
    if not found.suspects.size:
        return [Prose("The model without a row gives every row its own class.")]
    names = getattr(model, "feature_names_in_", None)
    rows = [
        [
            str(i), str(y[i]), str(suggested), f"{found.margins[i]:.3g}",
            between(float(found.margins_low[i]), float(found.margins_high[i])), row_in_words(X, i, names),
        ]
        for i, suggested in zip(found.suspects[:SHOWN].tolist(), found.suggested, strict=False)
    ]  # fmt: skip
    columns = ["row", "label", "suggested", "margin without it", "proven", "values"]
    order = np.sort(found.margins)
    line = Series("rows", order, np.arange(1, order.size + 1) / order.size)
    chart = Chart(
        "Margins without each row", "margin of the own class", "share of the rows", (line,),
        caption="Rows left of zero are given to another class by the model without them.", uprights=(0.0,),
    )  # fmt: skip
    return [Table(columns, rows, f"Worst first; {len(rows)} of {found.suspects.size:,}."), chart]


def row_in_words(X: Any, i: int, names: Any) -> str:
    """The values of a row that are largest in size."""
    row = np.ravel(X[[i]].toarray() if sparse.issparse(X) else X[i]).astype(np.float64)
    largest = np.argsort(-np.abs(row), kind="stable")[:VALUES]
    entries = [f"{shown(str(j if names is None else names[j]))} = {row[j]:.4g}" for j in np.sort(largest) if row[j]]
    return ", ".join(entries) + (", ..." if np.count_nonzero(row) > len(entries) else "")


def influence(found: Audit, y: np.ndarray) -> list[Item]:
    """The rows that move the weights most."""
    if not np.isfinite(found.moves_high).any():
        return [Prose("Nothing is proven: the loss has no known curvature, or there are too many features.")]
    order = np.argsort(-found.moves_high, kind="stable")[:SHOWN]
    rows = [[str(i), str(y[i]), between(float(found.moves_low[i]), float(found.moves_high[i]))] for i in order]
    return [Table(["row", "label", "move of the weights, proven"], rows, f"Largest first; {len(rows)} of {y.size:,}.")]


def groups(found: Audit) -> Item:
    """The effects of leaving out each group."""
    one = found.groups
    assert one is not None
    order = np.argsort(-one.changes_high, kind="stable")[:SHOWN]
    rows = [
        [
            str(one.names[k]), between(float(one.moves_low[k]), float(one.moves_high[k])),
            between(float(one.changes_low[k]), float(one.changes_high[k])),
            between(100 * float(one.errors_low[k]), 100 * float(one.errors_high[k])),
        ]
        for k in order
    ]  # fmt: skip
    columns = ["group", "move of the weights", "decisions that change", "error on its rows, %"]
    return Table(columns, rows, f"All between proven bounds; {len(rows)} of {one.names.size:,}.")


def contradictions(found: Audit, model: Any, X: Any, y: np.ndarray) -> Item:
    """Equal rows with different labels."""
    if not found.contradictions:
        return Prose("No two rows with the same values have different labels.")
    names = getattr(model, "feature_names_in_", None)
    rows = [
        [*(", ".join(map(str, one.tolist())) for one in (some, y[some])), row_in_words(X, int(some[0]), names)]
        for some in found.contradictions[:SHOWN]
    ]
    return Table(["rows", "labels", "values"], rows, f"{len(rows)} of {len(found.contradictions):,} sets.")


def separability(found: Audit) -> Item:
    """The proven separability of each class."""
    words = {True: "yes", False: "no", None: "not decided"}
    rows = [
        [str(name), words[one.separable], between(one.low, one.high), one.reason]
        for name, one in found.separability.items()
    ]
    return Table(["class", "separable", "margin", "proof"], rows)
