"""The facts that the subcommands show, as tables for people or as JSON for programs, and the progress of reading."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.data import Table
from saddlesvm.estimators.register import entry_of
from saddlesvm.fit.outcome import Outcome
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.losses import make_loss, spelled
from saddlesvm.rows.scores import dense_weights
from saddlesvm.rows.small_types import type_name
from saddlesvm.runtime.bar import Bar
from saddlesvm.runtime.shown import shown

Facts = dict[str, dict[str, Any]]
PATIENCE = 0.5  # seconds of work before a bar is drawn


def plain(value: Any) -> Any:
    """`value` as JSON holds it: NumPy numbers as numbers, infinity and NaN as null."""
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def in_words(name: str, value: Any) -> str:
    """`value` as text for people; the name says what it measures."""
    if isinstance(value, dict):
        parts = [f"{shown(str(key))}: {in_words(str(key), one)}" for key, one in list(value.items())[:12]]
        return ", ".join(parts) + (f", and {len(value) - 12} more" if len(value) > 12 else "")
    if isinstance(value, (list, tuple)):
        return "\n".join(in_words(name, one) for one in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    if isinstance(value, (float, np.floating)):
        value = float(value)
        if "accuracy" in name:
            return f"{100 * value:.2f} %"
        if "seconds" in name:
            return f"{value:.3f}"
        return f"{value:.3g}" if "gap" in name or abs(value) < 1e-3 else f"{value:.8g}"
    return shown(str(value))


def show(facts: Facts, as_json: bool) -> None:
    """Print facts as one table per group, or as one JSON object."""
    if as_json:
        json.dump(plain(facts), sys.stdout, indent=2)
        print()
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for place, (group, lines) in enumerate(facts.items()):
        if place:
            table.add_row("", "")
        table.add_row(Text(shown(group)), "")
        for name, value in lines.items():
            if value is not None:
                table.add_row(Text(shown(f"  {name}")), Text(in_words(name, value)))
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    with console.capture() as captured:
        console.print(table)
    sys.stdout.write("\n".join(line.rstrip() for line in captured.get().split("\n")))


@contextmanager
def progress_bar(what: str, quiet: bool = False) -> Iterator[Callable[[float], Any]]:
    """Draw the progress of some work on standard error, if that is a terminal, and unless it is done at once.

    Parameters
    ----------
    what : str
        What is being done.
    quiet : bool, default=False
        Draw nothing.

    Yields
    ------
    callable
        Call it with the share that is done, from 0 to 1.
    """
    began, bar, drawn = time.monotonic(), None, not quiet and sys.stderr.isatty()

    def advance(share: float) -> None:
        nonlocal bar
        if drawn and bar is None and time.monotonic() - began > PATIENCE:
            bar = Bar("words bar elapsed remaining", shown(what))
        if bar is not None:
            bar.show(completed=share)

    try:
        yield advance
    finally:
        if bar is not None:
            bar.stop()


def described(table: Table) -> dict[str, Any]:
    """Facts of the data that were read."""
    facts: dict[str, Any] = {
        "source": table.source,
        "format": table.format,
        "rows": table.n_rows,
        "features": table.n_features,
        "non-zeros": None if table.kinds is not None else table.n_nonzero,
        "precision": None if table.kinds is not None else type_name(table.X.dtype),
        "bytes": table.n_bytes or None,
    }
    if table.kinds is not None:
        facts["features"] = None
    if table.y is not None:
        values, counts = np.unique(table.y, return_counts=True)
        if values.size <= max(20, table.n_rows // 20) or table.y.dtype.kind in "US":
            facts["classes"] = {str(value): int(count) for value, count in zip(values, counts, strict=True)}
        else:
            facts["targets"] = f"{values[0]:g} to {values[-1]:g}"
    return facts


def worth(model: Any, certificate: Certificate) -> dict[str, Any]:
    """The proof of the model, and why the fit stopped."""
    outcome = getattr(model, "outcome_", None)
    above = f"{100 * max(certificate.excess, 0.0):.3g} %"
    if certificate.dual == -math.inf:
        above = (
            f"unknown: the kernel {model.kernel_.name} is not positive semi-definite on these rows: the problem is not "
            "convex and has no dual bound"
        )
    elif hasattr(model, "kernel_") and not model.kernel_.definite:
        above += f", if the kernel {model.kernel_.name} is positive semi-definite; nothing was found against it"
    return {
        "primal objective": certificate.primal,
        "dual bound": certificate.dual,
        "relative gap": certificate.relative_gap,
        "at most above the optimum": above,
        "outcome": None if outcome is None else str(outcome),
        "advice": None if outcome in (None, Outcome.CERTIFIED) else outcome.advice,
    }


def quality(model: Any, X: Any, y: np.ndarray | None, name: str) -> dict[str, Any]:
    """Accuracy, or R2 and mean absolute error, on some data."""
    return worth_of(model, model.predict(X), y, name)


def worth_of(model: Any, predicted: np.ndarray, y: np.ndarray | None, name: str) -> dict[str, Any]:
    """The same facts from given predictions."""
    entry = entry_of(model)
    if y is None or (entry is not None and entry.task == "novelty"):
        return {f"{name} share outside": float(np.mean(predicted == -1))}
    if entry is not None and entry.task == "regression":
        targets = np.asarray(y, dtype=np.float64)
        spread = float(((targets - targets.mean()) ** 2).sum())
        r2 = 1.0 - float(((targets - predicted) ** 2).sum()) / spread if spread > 0.0 else float("nan")
        return {f"{name} R2": r2, f"{name} mean absolute error": float(np.abs(targets - predicted).mean())}
    return {f"{name} accuracy": float(np.mean(predicted == y))}


def done(model: Any, table: Table) -> dict[str, Any]:
    """Facts of the fit."""
    return {
        "model": line_of(model),
        "solver": str(model.solver),
        "epochs": int(np.max(model.n_iter_)),
        "decisions": list(dict.fromkeys(decision_of(row) for row in model.trace_ if decision_of(row))) or None,
        "certificates": len(model.trace_),
        "seconds reading": table.seconds,
        "seconds solving": model.seconds_solving_,
        "seconds certifying": model.seconds_certifying_,
        "seconds compiling": getattr(model, "seconds_compiling_", 0.0) or None,
    }


def line_of(model: Any) -> str:
    """The kind of model, its loss, and how much it is regularised."""
    options = model.get_params(False)
    parts = [type(model).__name__]
    if "loss" in options:
        parts.append(f"loss {spelled(make_loss(model.loss))}")
    if "nu" in options:
        parts.append(f"nu = {model.nu:g}")
    if "C" in options:
        parts.append(strength_of(model))
    return ", ".join(parts)


def strength_of(model: Any) -> str:
    """C or lambda, as it was given or chosen."""
    if model.lam is not None:
        return f"lambda = {model.lam:g}"
    if not hasattr(model, "path_"):  # a loaded model has the chosen C as its own, and no path
        return f"C = {model.C:g}"
    return f"C = {model.C_:.4g} (chosen by leave-one-out estimates along {len(model.path_.knots)} certified fits)"


def decision_of(row: dict[str, Any]) -> str:
    """The automatic solver's decision in words; empty where it made none."""
    decision = row["remark"].partition(" | ")[0]
    return decision if decision.startswith("epoch ") else ""


def support(model: Any) -> dict[str, Any]:
    """Number of rows with a dual variable other than zero in any of the sub-problems."""
    if hasattr(model, "support_"):
        return {"support vectors": model.support_.size}
    if not hasattr(model, "dual_coef_"):
        return {}
    dual = sparse.csc_array(model.dual_coef_)
    return {"support vectors": int(np.count_nonzero(np.diff(dual.indptr)))}


def model_facts(model: Any, path: str) -> Facts:
    """Facts of a saved model."""
    facts: Facts = {
        "model": {
            "file": path,
            "kind": type(model).__name__,
            "options": {
                name: one for name, one in model.get_params(False).items() if one is not None and name != "verbose"
            },
            "features": model.n_features_in_,
            "classes": ", ".join(map(str, model.classes_)) if hasattr(model, "classes_") else None,
        }
    }
    if hasattr(model, "coef_"):
        weights = dense_weights(model.coef_)
        facts["model"]["non-zero weights"] = int(np.count_nonzero(weights))
        facts["model"]["norm of the weights"] = float(np.linalg.norm(weights))
    if hasattr(model, "kernel_"):
        facts["model"]["kernel"] = str(model.kernel_)
    if hasattr(model, "certificate_"):
        facts["quality"] = worth(model, model.certificate_)
    if hasattr(model, "dual_coef_"):
        facts.setdefault("quality", {}).update(support(model))
    if model.notes_:
        facts["notes"] = model.notes_
    return facts
