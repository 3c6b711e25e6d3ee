"""The C, and gamma, that ``train`` chooses by cross-validation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline

from saddlesvm.cli.rows import Rows
from saddlesvm.estimators.cross_validation import LinearSVCCV
from saddlesvm.estimators.linear import LinearSVC

if TYPE_CHECKING:
    from saddlesvm.estimators.base import Estimator

FOLDS = 5  # if several values are given, but no number of folds; as in scikit-learn
CHOSEN = ("C", "gamma")  # parameters that folds choose


def choose_folds(asked: dict[str, Any], folds: int | None) -> int | None:
    """Return the number of folds, None for a fit without.

    Raises
    ------
    ValueError
        Options do not work together.
    """
    has_several = any(isinstance(asked.get(name), tuple) for name in CHOSEN)
    if folds is None and not has_several:
        return None
    if "lam" in asked:
        raise ValueError(
            "--cv chooses among values of C or gamma, not of --lambda: give --C 0.1,1,10 --cv 5"
        )
    if "checkpoint" in asked:
        raise ValueError(
            "--cv makes many fits, and --checkpoint holds one: leave one of the two out"
        )
    if isinstance(asked.get("C"), str):
        raise ValueError(
            f"--C {asked['C']} chooses C without folds: leave --cv out, or give values, as in "
            "--C 0.1,1,10"
        )
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
    grid = {name: sorted(asked[name]) for name in CHOSEN if isinstance(asked.get(name), tuple)}
    if not grid:
        if not hasattr(model, "C"):
            raise ValueError(f"--cv chooses C or gamma, and {name} has no C: give --gamma 0.1,1")
        grid["C"] = [model.C]
    make_splits = StratifiedKFold if is_classifier(model) else KFold
    splits = make_splits(folds, shuffle=True, random_state=asked["seed"])
    # Folds of a LinearSVC are certified, and share the rows, so that rows in files stay there.
    if type(model) is LinearSVC and not rows.has_words:
        best, columns = search_certified(model, grid["C"], splits, rows, y)
    else:
        best, columns = search_grid(model, grid, splits, rows, y)
    values = [
        dict(zip(columns, map(float, line), strict=True))
        for line in zip(*columns.values(), strict=True)
    ]
    chosen = {parameter: float(getattr(best, parameter)) for parameter in grid}
    return best, {"folds": folds, "values": values, "chosen": chosen}


def search_certified(
    model: LinearSVC, Cs: list[float], splits: Any, rows: Rows, y: np.ndarray
) -> tuple[Any, dict[str, Any]]:
    """Return the best model, and columns of the values of C, their scores and gaps."""
    search = LinearSVCCV(model.set_params(C=1.0), Cs=Cs, cv=splits)
    search.fit(rows.train.X, y, rows.train.sample_weight)
    return search.best_estimator_, {
        "C": search.Cs_,
        "accuracy": search.mean_scores_,
        "standard_error": search.standard_errors_,
        "largest_relative_gap": search.relative_gaps_.max(axis=1),
    }


def search_grid(
    model: Estimator, grid: dict[str, list[float]], splits: Any, rows: Rows, y: np.ndarray
) -> tuple[Any, dict[str, Any]]:
    """Return the best model, and columns of the values that were tried and their scores."""
    # Each fold encodes words anew. A pipeline names the parameters of its last step by the step.
    X = rows.train.X
    searched = model
    prefix = ""
    if rows.has_words:
        X = rows.train.frame
        searched = make_pipeline(clone(rows.preparation.before), model)
        prefix = f"{type(model).__name__.lower()}__"
    weights = {}
    if rows.train.sample_weight is not None:
        weights[f"{prefix}sample_weight"] = rows.train.sample_weight
    search = GridSearchCV(
        searched, {f"{prefix}{name}": values for name, values in grid.items()}, cv=splits
    )
    search.fit(X, y, **weights)
    results = search.cv_results_
    columns = {name: results[f"param_{prefix}{name}"] for name in grid}
    columns["accuracy" if is_classifier(model) else "r2"] = results["mean_test_score"]
    columns["standard_error"] = results["std_test_score"] / np.sqrt(splits.get_n_splits() - 1)
    best = search.best_estimator_[-1] if rows.has_words else search.best_estimator_
    return best, columns
