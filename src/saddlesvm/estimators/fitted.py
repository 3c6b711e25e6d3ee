"""What proofs, paths, folds and calibration ask of a linear model: its rows, its problems, its points and further fits.

They are functions of a model rather than methods, so that a model offers its users nothing but what they need.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.answers.labels import Rule
from saddlesvm.data.door import Design, check_design
from saddlesvm.estimators.base import Training
from saddlesvm.fit.outcome import FitResult
from saddlesvm.multiclass import splits
from saddlesvm.multiclass.linear_fit import FitRows, rows_of
from saddlesvm.multiclass.splits import FormerFit, GivenWeights
from saddlesvm.multiclass.sub_problems import SubProblem, likely_classes, workers
from saddlesvm.problem.crammer_singer import JointProblem
from saddlesvm.problem.intercepts import intercept_kind
from saddlesvm.problem.problem import Problem, resolve_C
from saddlesvm.rows.scores import dense_weights


def checked_rows(model: Any, X: Any) -> Any:
    """Return rows that a fitted model is asked about, as an array or a CSR matrix; ValueError for bad ones."""
    return check_design(X, model, finite=True).X


def label_rule(model: Any) -> Rule:
    """Return the rule by which the labels of a classifier follow from its scores."""
    if model.multilabel_:
        return "each"
    return "votes" if model.multi_class == "ovo" else "largest"


def indicate(scores: np.ndarray, kind: str) -> Any:
    """Return the indicator matrix, int64, "dense" or "sparse", of the labels with positive scores."""
    found = (scores > 0).astype(np.int64)
    return sparse.csr_array(found) if kind == "sparse" else found


def decide(model: Any, scores: np.ndarray) -> np.ndarray:
    """Return the labels, the indicator matrix or the targets that follow from scores of shape (n, problems)."""
    if not hasattr(model, "classes_"):
        return scores[:, 0] if scores.shape[1] == 1 else scores
    if model.multilabel_:
        return indicate(scores, model.indicator_)
    return model.classes_[likely_classes(scores, model.classes_.size, model.multi_class == "ovo")]


def weights_of(model: Any, value: float) -> np.ndarray:
    """Return the weights, shape (k, d + 1): an intercept is divided by the virtual feature's value."""
    coef = dense_weights(model.coef_)
    intercept = np.ravel(model.intercept_) / (value or 1.0)
    return np.column_stack([coef, np.broadcast_to(intercept, len(coef))])


def dual_row(model: Any, k: int) -> np.ndarray:
    """Return row k of ``dual_coef_`` as an array of shape (n,)."""
    duals = model.dual_coef_
    return np.ravel(duals[[k]].toarray() if sparse.issparse(duals) else duals[k])


def duals_for(model: Any, n: int) -> Any:
    """Return ``dual_coef_`` if the model has that of n rows, else None."""
    duals = getattr(model, "dual_coef_", None)
    return None if duals is None or duals.shape[1] != n else duals


def posed_C(model: Any, n: int) -> float:
    """Return the C of the problems that a fit to n rows solves: larger than its own if an l1 norm takes a share."""
    posed = model._posed()
    return resolve_C(posed.get("C"), posed.get("lam"), n)[0]


def former_fit(model: Any) -> FormerFit | None:
    """Return the fit that another one may go on from, as a warm start does; None without one."""
    if not hasattr(model, "_fitted_C"):
        return None
    return FormerFit(
        getattr(model, "dual_coef_", None),
        dense_weights(model.coef_),
        np.ravel(model.intercept_),
        model._fitted_C,
        model.certificate_.form == "lambda",
        getattr(model, "_phases", []),
    )


def begin_at(model: Any, former: FormerFit | None) -> None:
    """Let the next fit go on from another one, if there is one, as if it had been a fit of this model."""
    model._begin_at = former


def rows_for_parts(model: Any, X: Any, problems: int) -> FitRows | None:
    """Return the rows of X, ready for fits to parts of them; None if they are read block by block."""
    design = Design(X)
    if model._goes_by_blocks(design):
        return None
    jobs = workers(problems, model.n_jobs)
    return rows_of(design, model._intercept_kind(), float(model.intercept_scaling), jobs, model.n_jobs)


def part_problem(model: Any, sub: SubProblem, posed: Training, ready: FitRows) -> Problem:
    """Return the problem behind one of the sub-problems `posed`, over rows of :func:`rows_for_parts`."""
    options = {"weights": posed.weights, "intercept": model._intercept_kind(), **model._posed()}
    return ready.problem(sub, posed.loss, options)


def problems_over(
    model: Any, design: Design, posed: Training, strength: dict[str, Any] | None = None
) -> Iterator[tuple[SubProblem, Problem, np.ndarray]]:
    """Yield each of the sub-problems `posed` of a fitted model, its problem over the rows, and the weights of it.

    The virtual feature has the value that the user asked for; `strength` takes the place of the model's own, and of its
    penalty.
    """
    kind = model._intercept_kind()
    value = float(model.intercept_scaling) if intercept_kind(kind).present else 0.0
    X = design.with_feature(value)
    norms = design.norms() + value * value
    options = {"weights": posed.weights, "intercept": kind, "norms": norms, **(strength or model._posed())}
    W = weights_of(model, value)
    for sub in posed.problems:
        problem = sub.problem(X, posed.loss, **options)
        yield sub, problem, splits.each_class(W) if isinstance(problem, JointProblem) else W[sub.index]


def fit_part(model: Any, X: Any, posed: Training, ready: FitRows | None) -> list[FitResult]:
    """Fit the sub-problems `posed` over rows that are checked already, and keep the results; no warnings.

    Parameters
    ----------
    model : LinearModel
    X : ndarray or CSR matrix of shape (n, d)
    posed : Training
        Its sub-problems may have some of the rows as members.
    ready : FitRows or None
        Of :func:`rows_for_parts`.
    """
    fits = model._fits(Design(X), posed, ready)
    if model.callbacks:
        fits.callbacks_of = lambda sub: model.callbacks or ()
    results: list[FitResult] = fits.solve()
    model._fitted_C = posed_C(model, X.shape[0])
    model._keep(results)
    return results


def fit_together(X: Any, models: Sequence[Any], posed: Sequence[Training]) -> None:
    """Fit several parts of the rows of files, whose readings serve all; no warnings, and no dual variables.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        Rows in files.
    models : sequence of LinearModel
        One a part, all with the same options. If each has weights already, it begins there.
    posed : sequence of Training
        Of each part. Their sub-problems have members and weights of their own.
    """
    subs = [replace(sub, weights=one.weights) for one in posed for sub in one.problems]
    subs = [replace(sub, index=k) for k, sub in enumerate(subs)]
    start = None
    if all(hasattr(model, "coef_") for model in models):
        coefs = [model.coef_ for model in models]
        intercepts = [model.intercept_ for model in models]
        start = GivenWeights(np.vstack(coefs), np.hstack(intercepts))
    first = models[0]
    fits = first._fits(Design(X), Training(subs, posed[0].loss, None), start=start)
    fits.callbacks_of = lambda sub: first.callbacks or ()
    fits.keeps_duals = False
    results = fits.solve()
    done = 0
    for model, one in zip(models, posed, strict=True):
        model._fitted_C = posed_C(first, X.shape[0])
        model._keep(results[done : done + len(one.problems)])
        done += len(one.problems)
