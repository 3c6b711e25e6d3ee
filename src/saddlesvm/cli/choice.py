"""The C, and gamma, that ``train`` chooses by cross-validation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline

from saddlesvm.cli.rows import Rows
from saddlesvm.data import Table
from saddlesvm.estimators.automatic_C import AutomaticC, parse_automatic
from saddlesvm.estimators.cross_validation import LinearSVCCV, standard_errors
from saddlesvm.estimators.linear import LinearSVC

if TYPE_CHECKING:
    from saddlesvm.estimators.base import Estimator

FOLDS = 5  # if several values are given, but no number of folds; as in scikit-learn


def choose_folds(asked: dict[str, object], folds: int | None) -> int | None:
    """Return the number of folds, None for a fit without; ``auto`` becomes values of C in `asked`.

    Raises
    ------
    ValueError
        Options do not work together.
    """
    has_several = any(isinstance(asked.get(name), tuple) for name in ("C", "gamma"))
    if folds is None and not has_several:
        return None
    # The folds choose among values of C or gamma, each a fit from the start.
    if "lam" in asked:
        raise ValueError(
            "--cv chooses among values of C or gamma, not of --lambda: give --C 0.1,1,10 --cv 5"
        )
    if "checkpoint" in asked:
        raise ValueError(
            "--cv makes many fits, and --checkpoint holds one: leave one of the two out"
        )
    # `auto` with folds: the grid of the automatic choice, judged by the folds.
    rule = parse_automatic(asked.get("C"))
    if rule is not None:
        if rule.rule != AutomaticC.rule:
            raise ValueError(
                f"--cv takes the best C; rule={rule.rule} works without --cv: leave one of the "
                "two out"
            )
        asked["C"] = tuple(np.geomspace(rule.low, rule.high, rule.size).tolist())
    return FOLDS if folds is None else folds


def choose_by_folds(
    model: Estimator, asked: dict[str, Any], folds: int, rows: Rows, y: np.ndarray
) -> tuple[Any, dict[str, Any]]:
    """Choose C, and gamma; return the fitted model, and the scores of the folds.

    Parameters
    ----------
    model : estimator
    asked : dict
        Options of the command.
    folds : int
    rows : Rows
        If they have words, each fold learns an encoding of its own.
    y : ndarray

    Raises
    ------
    ValueError
        The estimator learns without labels, or has neither C nor gamma.
    """
    name = type(model).__name__
    if not (is_classifier(model) or is_regressor(model)):
        raise ValueError(f"--cv needs labels or targets, and {name} learns without: leave it out")
    make_splits = StratifiedKFold if is_classifier(model) else KFold
    splits = make_splits(folds, shuffle=True, random_state=asked["seed"])
    encoder = rows.preparation.before if rows.has_words else None
    table = rows.train
    # Folds of a LinearSVC can be certified, unless words must be encoded anew in each fold.
    if type(model) is LinearSVC and encoder is None:
        return choose_C(model, asked, splits, table, y)
    grid = values_to_try(model, asked)
    if not grid:
        raise ValueError(f"--cv chooses C or gamma, and {name} has no C: give --gamma 0.1,1")

    # With an encoder, the search goes over a pipeline, which names the parameters of its last
    # step by the name of the step.
    X = table.X
    searched = model
    prefix = ""
    if encoder is not None:
        X = table.frame
        searched = make_pipeline(clone(encoder), model)
        prefix = f"{name.lower()}__"
    weights = {}
    if table.sample_weight is not None:
        weights[f"{prefix}sample_weight"] = table.sample_weight
    grid = {f"{prefix}{parameter}": values for parameter, values in grid.items()}
    search = GridSearchCV(searched, grid, cv=splits)
    search.fit(X, y, **weights)

    results = search.cv_results_
    scores = np.column_stack([results[f"split{k}_test_score"] for k in range(folds)])
    measure = "accuracy" if is_classifier(model) else "r2"
    values = []
    for point, mean, error in zip(
        results["params"], results["mean_test_score"], standard_errors(scores), strict=True
    ):
        line = remove_prefix(point, prefix)
        line[measure] = float(mean)
        line["standard_error"] = float(error)
        values.append(line)
    chosen = {
        parameter: float(value)
        for parameter, value in remove_prefix(search.best_params_, prefix).items()
    }
    best = search.best_estimator_
    if encoder is not None:
        best = best[-1]
    return best, {"folds": folds, "values": values, "chosen": chosen}


def remove_prefix(parameters: dict[str, object], prefix: str) -> dict[str, Any]:
    """Return the parameters of a pipeline's last step under their own names."""
    return {name.removeprefix(prefix): value for name, value in parameters.items()}


def values_to_try(model: Estimator, asked: dict[str, Any]) -> dict[str, list[float]]:
    """Return the values of C and gamma; the model's own C if no others are given."""
    known = model.get_params(deep=False)
    grid = {}
    if "C" in known:
        grid["C"] = [known["C"]]
    for name in ("C", "gamma"):
        if name in known and isinstance(asked.get(name), tuple):
            grid[name] = sorted(asked[name])
    return grid


def choose_C(
    model: Any, asked: dict[str, Any], folds: Any, table: Table, y: np.ndarray
) -> tuple[Any, dict[str, Any]]:
    """Choose the C of a LinearSVC by certified folds; return the model, and their scores.

    The folds share the rows, so that rows in files stay there.

    Parameters
    ----------
    model : LinearSVC
    asked : dict
    folds : splitter
    table : Table
    y : ndarray
    """
    Cs = values_to_try(model, asked)["C"]
    search = LinearSVCCV(model.set_params(C=1.0), Cs=Cs, cv=folds)
    search.fit(table.X, y, table.sample_weight)
    columns = {
        "C": search.Cs_,
        "accuracy": search.mean_scores_,
        "standard_error": search.standard_errors_,
        "largest_relative_gap": search.relative_gaps_.max(axis=1),
    }
    values = [
        {name: float(column[k]) for name, column in columns.items()} for k in range(len(search.Cs_))
    ]
    chosen = {"C": float(search.C_)}
    return search.best_estimator_, {
        "folds": folds.get_n_splits(),
        "values": values,
        "chosen": chosen,
    }
