"""The C, and gamma, that ``train`` chooses by cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline

from saddlesvm.cli.rows import Rows
from saddlesvm.estimators.automatic_C import AutomaticC, made_automatic
from saddlesvm.estimators.cross_validation import LinearSVCCV, standard_errors
from saddlesvm.estimators.linear import LinearSVC

FOLDS = 5  # if several values are given, and no number of folds


def settle_folds(asked: dict[str, Any], folds: int | None) -> int | None:
    """The number of folds, or None for a fit without; a range of C that ``auto`` means becomes its values in `asked`.

    Raises
    ------
    ValueError
        Options that do not go together.
    """
    if folds is None and not any(isinstance(asked.get(name), tuple) for name in ("C", "gamma")):
        return None
    if "lam" in asked:
        raise ValueError("--cv needs --C or --gamma, one or several numbers or auto: --C 0.1,1,10 --cv 5")
    if "checkpoint" in asked:
        raise ValueError("--cv does not work with --checkpoint")
    rule = made_automatic(asked.get("C"))
    if rule is not None:
        if rule.rule != AutomaticC.rule:
            raise ValueError(f"--cv takes the best C; rule={rule.rule} is for --C auto without --cv")
        asked["C"] = tuple(np.geomspace(rule.low, rule.high, rule.size).tolist())
    return FOLDS if folds is None else folds


def choose_by_folds(
    model: Any, asked: dict[str, Any], folds: int, rows: Rows, y: np.ndarray
) -> tuple[Any, dict[str, Any]]:
    """Choose C, and gamma, among the values of the options; the fitted model, and what the folds showed.

    Parameters
    ----------
    model : estimator
    asked : dict
        Options of the command.
    folds : int
    rows : Rows
        Of rows with words, each fold learns an encoding of its own.
    y : ndarray

    Raises
    ------
    ValueError
        The estimator learns without labels, or has no C and no gamma to choose from.
    """
    if not (is_classifier(model) or is_regressor(model)):
        raise ValueError(f"--cv needs labels or targets; {type(model).__name__} learns without")
    kind = StratifiedKFold if is_classifier(model) else KFold
    splits = kind(folds, shuffle=True, random_state=asked["seed"])
    encoder = rows.preparation.before if rows.has_words else None
    table = rows.train
    X = table.X if encoder is None else table.frame
    if type(model) is LinearSVC and encoder is None:
        return choose_C(model, asked, splits, (table.X, y, table.sample_weight))
    grid = values_to_try(model, asked)
    if not grid:
        raise ValueError(f"--cv chooses C or gamma; {type(model).__name__} takes --gamma 0.1,1")

    # A pipeline names the parameters of its last step by the name of the step.
    step = ""
    searched = model
    if encoder is not None:
        step = f"{type(model).__name__.lower()}__"
        searched = make_pipeline(clone(encoder), model)
    weights = {} if table.sample_weight is None else {f"{step}sample_weight": table.sample_weight}
    search = GridSearchCV(searched, {f"{step}{name}": values for name, values in grid.items()}, cv=splits)
    search.fit(X, y, **weights)

    results = search.cv_results_
    errors = standard_errors(np.column_stack([results[f"split{k}_test_score"] for k in range(folds)]))
    points = [{name.removeprefix(step): value for name, value in point.items()} for point in results["params"]]
    score = "accuracy" if is_classifier(model) else "r2"
    values = [
        {**point, score: float(mean), "standard_error": float(error)}
        for point, mean, error in zip(points, results["mean_test_score"], errors, strict=True)
    ]
    chosen = {name.removeprefix(step): float(value) for name, value in search.best_params_.items()}
    best = search.best_estimator_[-1] if step else search.best_estimator_
    return best, {"folds": folds, "values": values, "chosen": chosen}


def values_to_try(model: Any, asked: dict[str, Any]) -> dict[str, list[float]]:
    """The values of C and gamma; C alone keeps the model's own."""
    known = model.get_params(deep=False)
    grid = {"C": [known["C"]]} if "C" in known else {}
    several = {name: asked[name] for name in ("C", "gamma") if isinstance(asked.get(name), tuple)}
    return grid | {name: sorted(values) for name, values in several.items() if name in known}


def choose_C(model: Any, asked: dict[str, Any], folds: Any, data: tuple[Any, Any, Any]) -> tuple[Any, dict[str, Any]]:
    """Choose C by the accuracy of folds that begin at each other's solutions, and are certified.

    Parameters
    ----------
    model : LinearSVC or its twin on a cluster
    asked : dict
    folds : splitter or int
    data : tuple
        Rows, labels, weights.
    """
    Cs = list(asked["C"]) if isinstance(asked.get("C"), tuple) else [model.C]
    search = LinearSVCCV(model.set_params(C=1.0), Cs=Cs, cv=folds).fit(*data)
    rows = [
        {"C": float(C), "accuracy": float(mean), "standard_error": float(error), "largest_relative_gap": float(gap)}
        for C, mean, error, gap in zip(
            search.Cs_, search.mean_scores_, search.standard_errors_, search.relative_gaps_.max(axis=1), strict=True
        )
    ]
    count = folds if isinstance(folds, int) else folds.get_n_splits()
    return search.best_estimator_, {"folds": count, "values": rows, "chosen": {"C": float(search.C_)}}
