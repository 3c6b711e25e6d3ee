"""The page of an audit: suspects with their rows, what rows and groups do, contradictions, separability."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.estimators.audit import Audit
from saddlesvm.lab.charts import Chart, Series
from saddlesvm.lab.report import Item, Prose, Report, Table
from saddlesvm.runtime.shown import shown

SHOWN = 50  # rows of a table
VALUES = 8  # of a row that are shown: those with the largest share in its score


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
    report = Report(f"Audit: {name}", verdict(found), data=facts, command=command)
    report.section("Suspects", *suspects(found, model, X, y))
    report.section("Influence of single rows", *influence(found, y))
    if found.groups is not None:
        report.section("Influence of groups", groups(found))
    report.section("Contradictions", contradictions(found, model, X, y))
    report.section("Separability", separability(found))
    return report


def verdict(found: Audit) -> list[str]:
    """The findings in sentences."""
    loo, n = found.leave_one_out, found.margins.size
    told = [
        f"{found.suspects.size:,} of {n:,} rows are given to another class by the model without them "
        f"({int(np.sum(found.margins_high < 0.0)):,} proven).",
        f"The leave-one-out error is {between(100 * loo.error_low, 100 * loo.error_high)} %, proven.",
        f"{int(found.stable.sum()):,} of {found.stable.size:,} decisions cannot be changed by leaving out one row.",
    ]
    if found.groups is not None:
        stable = found.groups.stable
        told.append(f"{int(stable.sum()):,} of {stable.size:,} cannot be changed by leaving out a single group.")
    told.append(f"{len(found.contradictions):,} sets of equal rows have different labels.")
    return told + found.notes


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
    told = [f"{shown(str(j if names is None else names[j]))} = {row[j]:.4g}" for j in np.sort(largest) if row[j]]
    return ", ".join(told) + (", ..." if np.count_nonzero(row) > len(told) else "")


def influence(found: Audit, y: np.ndarray) -> list[Item]:
    """The rows that move the weights most."""
    if not np.isfinite(found.moves_high).any():
        return [Prose("Nothing is proven: the loss has no curvature that is known, or there are too many features.")]
    order = np.argsort(-found.moves_high, kind="stable")[:SHOWN]
    rows = [[str(i), str(y[i]), between(float(found.moves_low[i]), float(found.moves_high[i]))] for i in order]
    return [Table(["row", "label", "move of the weights, proven"], rows, f"Largest first; {len(rows)} of {y.size:,}.")]


def groups(found: Audit) -> Item:
    """What leaving out each group does."""
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
    """What is proven of each class."""
    words = {True: "yes", False: "no", None: "not decided"}
    rows = [
        [str(name), words[one.separable], between(one.low, one.high), one.reason]
        for name, one in found.separability.items()
    ]
    return Table(["class", "separable", "margin", "proof"], rows)
