"""The C that ``train`` chooses by cross-validation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from saddlesvm.cli.rows import Rows
from saddlesvm.estimators.cross_validation import LinearSVCCV
from saddlesvm.estimators.linear import LinearSVC

if TYPE_CHECKING:
    from saddlesvm.estimators.register import Entry

FOLDS = 5  # if several values are given, but no number of folds; as in scikit-learn


def check_folds(asked: dict[str, Any], entry: Entry) -> None:
    """Raise ValueError for options that folds do not work with."""
    if not issubclass(entry.kind, LinearSVC):
        raise ValueError(
            f"--cv and several values of --C are for LinearSVC; this is a {entry.name}: use "
            "scikit-learn's GridSearchCV in Python"
        )
    if "lam" in asked:
        raise ValueError(
            "--cv chooses among values of C, not of --lambda: give --C 0.1,1,10 --cv 5"
        )
    if isinstance(asked.get("C"), str):
        raise ValueError(
            f"--C {asked['C']} chooses C without folds: leave --cv out, or give values, as in "
            "--C 0.1,1,10"
        )


def choose_by_folds(
    model: LinearSVC, asked: dict[str, Any], folds: int | None, rows: Rows, y: np.ndarray
) -> tuple[LinearSVC, dict[str, Any]]:
    """Choose C; return the fitted model, and the scores of the folds.

    The encoding of words was learnt from the rows of all folds.
    """
    splits = StratifiedKFold(folds or FOLDS, shuffle=True, random_state=asked["seed"])
    Cs = np.ravel(asked.get("C", model.C)).tolist()
    search = LinearSVCCV(model.set_params(C=1.0), Cs=Cs, cv=splits)
    search.fit(rows.train.X, y, rows.train.sample_weight)
    values = [
        {"C": C, "accuracy": score, "standard_error": error, "largest_relative_gap": gap}
        for C, score, error, gap in zip(
            search.Cs_,
            search.mean_scores_,
            search.standard_errors_,
            search.relative_gaps_.max(axis=1),
            strict=True,
        )
    ]
    found = {"folds": splits.get_n_splits(), "values": values, "chosen": {"C": search.C_}}
    return search.best_estimator_, found
