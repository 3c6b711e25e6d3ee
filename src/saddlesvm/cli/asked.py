"""The estimator that the options of a command ask for, and the C that ``train`` chooses by cross-validation."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline

from saddlesvm.cli.arguments import FOLDS
from saddlesvm.data import DataError, Table
from saddlesvm.estimators import register
from saddlesvm.estimators.automatic_C import AutomaticC, made_automatic
from saddlesvm.estimators.cross_validation import LinearSVCCV, standard_errors
from saddlesvm.estimators.linear_svc import LinearSVC
from saddlesvm.problem.losses import make_loss, traits_of

SHARED_OPTIONS = (
    "C", "lam", "loss", "solver", "tol", "gap", "max_iter", "max_time", "keep", "intercept_scaling", "n_jobs"
)  # fmt: skip
LOSS_OPTIONS = ("epsilon", "width")  # options of losses that are options of the command too


def class_weights(text: str | None, y: np.ndarray) -> Any:
    """``"balanced"``, or ``LABEL=FACTOR,LABEL=FACTOR`` as a dict over the labels of y."""
    if text is None or text == "balanced":
        return text
    known = {str(label): label for label in np.unique(y)}
    factors = {}
    for part in text.split(","):
        label, equals, factor = part.rpartition("=")
        if not equals or label not in known:
            raise ValueError(f"--class-weight {part!r}: LABEL=FACTOR is allowed, with a label of {', '.join(known)}")
        try:
            factors[known[label]] = float(factor)
        except ValueError:
            raise ValueError(f"--class-weight {part!r}: {factor!r} is not a number") from None
    return factors


def task_of(options: argparse.Namespace) -> Any:
    """``"regression"`` for a regression loss or estimator, else None: the labels then may be any."""
    entry = register.named(options.estimator or "")
    task_of_loss = None if options.loss is None else traits_of(make_loss(options.loss)).task
    regression = task_of_loss == "regression" if entry is None else entry.task == "regression"
    return "regression" if regression else None


def estimator_kind(options: argparse.Namespace) -> register.Entry:
    """The estimator that the options ask for.

    Raises
    ------
    ValueError
        The estimator does not have an option that was given.
    """
    entry = register.named(options.estimator or "") or asked_for(options)
    if options.top_k is not None and options.multi_class != "top_k" and "multi_class" in entry.parameters:
        raise ValueError("--top-k is for the top-k machine: give --multi-class top_k too")
    loss: Any = options.loss or getattr(entry.kind(), "loss", None)
    offered = {name: None for one in register.known() for name in one.options}
    absent = [name for name in SHARED_OPTIONS if name not in entry.parameters]
    absent += [name for name in offered if name not in entry.options and name not in LOSS_OPTIONS]
    of_the_loss = () if loss is None else traits_of(make_loss(loss)).options
    absent += sorted(name for name in LOSS_OPTIONS if name not in of_the_loss or name not in entry.options)
    for name in absent:
        if getattr(options, name, None) is not None:
            what = f"the loss {loss}"
            if options.estimator:
                what = f"--estimator {options.estimator}"
            elif entry.asked_by and name not in LOSS_OPTIONS:
                what = f"--{entry.asked_by} {getattr(options, entry.asked_by)}"
            others = [one.name for one in register.known() if name in one.options and name not in LOSS_OPTIONS]
            advice = f"; it is an option of {', '.join(others)} (--estimator)" if others else ""
            raise ValueError(f"--{name.replace('_', '-')} does not work with {what}{advice}")
    return entry


def asked_for(options: argparse.Namespace) -> register.Entry:
    """The kind of estimator that an option names, or else the one for the task of the loss."""
    kinds = register.known()
    asked = [one for one in kinds if one.asked_by and getattr(options, one.asked_by) is not None]
    named = {one.asked_by for one in asked}
    among = [one for one in asked if named <= {*one.options}] or asked or [one for one in kinds if not one.asked_by]
    return next((one for one in among if one.task == (task_of(options) or "classification")), among[0])


def make_estimator(options: argparse.Namespace, y: np.ndarray) -> Any:
    """The estimator that the options describe; missing options keep the estimator's own defaults."""
    entry = estimator_kind(options)
    given: dict[str, Any] = {name: getattr(options, name, None) for name in (*SHARED_OPTIONS, *entry.options)}
    given["random_state"] = options.seed
    given["verbose"] = int(sys.stderr.isatty() and not options.json)
    for name in ("C", "gamma"):
        if isinstance(given.get(name), tuple):
            given[name] = None  # cross-validation sets it
    if options.intercept is not None:
        given["fit_intercept"] = options.intercept != "none"
        given["intercept"] = None if options.intercept == "none" else options.intercept
    if "class_weight" in given:
        given["class_weight"] = class_weights(options.class_weight, y)
    return entry.kind(**{name: one for name, one in given.items() if one is not None and name in entry.parameters})


def check_choice(options: argparse.Namespace) -> None:
    """Raise ValueError for options of the choice that do not go together; with folds, ``auto`` is its values of C."""
    several = isinstance(options.C, tuple) or isinstance(options.gamma, tuple)
    if several and options.cv is None:
        options.cv = FOLDS
    if options.cv is None:
        return
    if options.lam is not None:
        raise ValueError("--cv needs --C or --gamma, one or several numbers or auto: --C 0.1,1,10 --cv 5")
    how = made_automatic(options.C)
    if how is not None:
        if how.rule != AutomaticC.rule:
            raise ValueError(f"--cv takes the best C; rule={how.rule} is for --C auto without --cv")
        options.C = tuple(np.geomspace(how.low, how.high, how.size).tolist())
    if options.checkpoint:
        raise ValueError("--cv does not work with --checkpoint")


def held_out(table: Table, part: float, seed: int, classes: bool, pairwise: bool = False) -> tuple[Table, Table]:
    """The table without, and with, a share of its rows drawn at random; of every class alike where that can be.

    `pairwise` rows are values of a kernel: those between them and the rows that are kept stay.

    Raises
    ------
    DataError
        The rows are those of a store, or too few.
    """
    if table.format == "store":
        raise DataError(f"{table.source}: --validation copies rows; those of a store stay in their files: use --test")
    n = table.n_rows
    size = max(1, round(part * n))
    if size >= n:
        raise DataError(
            f"{table.source}: --validation {part:g} takes all {n} rows, and none is left to train on: give a smaller "
            "part"
        )
    counts = np.unique(np.asarray(table.y), return_counts=True)[1] if classes else np.zeros(0)
    stratify = table.y if classes and counts.min() >= 2 and counts.size <= min(size, n - size) else None
    kept, apart = train_test_split(np.arange(n), test_size=size, random_state=seed, stratify=stratify)
    kept = np.sort(kept)
    parts = (_rows_of(table, rows) for rows in (kept, np.sort(apart)))
    one, other = (dataclasses.replace(half, X=half.X[:, kept]) if pairwise else half for half in parts)
    return one, other


def _rows_of(table: Table, chosen: np.ndarray) -> Table:
    weights = None if table.sample_weight is None else table.sample_weight[chosen]
    y = None if table.y is None else table.y[chosen]
    return dataclasses.replace(table, X=table.X[chosen], y=y, sample_weight=weights, known_nonzero=None)


def cross_validated(model: Any, options: argparse.Namespace, table: Table, y: np.ndarray) -> tuple[Any, dict[str, Any]]:
    """Choose C, and gamma, among those of the options by cross-validation; the fitted model, and a row of facts each.

    Raises
    ------
    ValueError
        The estimator learns without labels, or has no C and no gamma to choose from.
    """
    if not (is_classifier(model) or is_regressor(model)):
        raise ValueError(f"--cv needs labels or targets; {type(model).__name__} learns without")
    called = "accuracy" if is_classifier(model) else "R2"
    kind: Any = StratifiedKFold if is_classifier(model) else KFold
    folds = kind(options.cv, shuffle=True, random_state=options.seed)
    if type(model) is LinearSVC and table.frame is None:
        return best_C(model, options, folds, table.X, y, table.sample_weight)
    given = model.get_params(deep=False)
    grid = {name: [given[name]] for name in ("C",) if name in given}
    grid |= {
        name: sorted(getattr(options, name))
        for name in ("C", "gamma")
        if name in given and isinstance(getattr(options, name), tuple)
    }
    if not grid:
        raise ValueError(f"--cv chooses C or gamma; {type(model).__name__} takes --gamma 0.1,1")
    step, searched, X = "", model, table.X
    if table.frame is not None:  # each fold then learns an encoding of its own
        step, X = f"{type(model).__name__.lower()}__", table.encoder.cells(table.frame)
        searched = make_pipeline(clone(table.encoder), model)
    search = GridSearchCV(searched, {f"{step}{name}": values for name, values in grid.items()}, cv=folds)
    search.fit(X, y, **({} if table.sample_weight is None else {"sample_weight": table.sample_weight}))
    results = search.cv_results_
    errors = standard_errors(np.column_stack([results[f"split{k}_test_score"] for k in range(options.cv)]))
    found = results["mean_test_score"], errors, None
    points = [{name.removeprefix(step): value for name, value in point.items()} for point in results["params"]]
    chosen = {name.removeprefix(step): float(one) for name, one in search.best_params_.items()}
    best = search.best_estimator_[-1] if step else search.best_estimator_
    return best, choice_facts(options.cv, points, called, found, chosen)


def best_C(
    model: Any, options: argparse.Namespace, folds: Any, X: Any, y: Any, weights: Any
) -> tuple[Any, dict[str, Any]]:
    """Choose C among those of the options by the accuracy of folds; the fitted model, and a row of facts for each C."""
    Cs = list(options.C) if isinstance(options.C, tuple) else [model.C]
    search = LinearSVCCV(model.set_params(C=1.0), Cs=Cs, cv=folds).fit(X, y, weights)
    found = search.mean_scores_, search.standard_errors_, search.relative_gaps_.max(axis=1)
    points = [{"C": C} for C in search.Cs_.tolist()]
    return search.best_estimator_, choice_facts(options.cv, points, "accuracy", found, {"C": search.C_})


def choice_facts(
    folds: int, points: Sequence[dict[str, float]], called: str, found: tuple[Any, Any, Any], chosen: dict[str, float]
) -> dict[str, Any]:
    """A row of facts for each point of a grid: the mean score, its standard error, and the largest gap where gaps were
    `found`; and the `chosen` one."""
    means, errors, gaps = found
    facts: dict[str, Any] = {"folds": folds}
    for k, point in enumerate(points):
        name = ", ".join(f"{one} = {value:g}" for one, value in point.items())
        facts[name] = {called: float(means[k]), "standard error": float(errors[k])}
        if gaps is not None:
            facts[name]["largest relative gap"] = float(gaps[k])
    return facts | {f"chosen {one}": value for one, value in chosen.items()}
