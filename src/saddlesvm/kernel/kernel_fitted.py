"""A fitted kernel machine as a value, and functions of it: scores, classes, weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, validate_data

from saddlesvm.data.door import check_design
from saddlesvm.estimators.fitted import FitFacts
from saddlesvm.kernel.definiteness import make_symmetric
from saddlesvm.kernel.mercer import Kernel, expand
from saddlesvm.multiclass.sub_problems import vote
from saddlesvm.rows.scores import linear_scores
from saddlesvm.runtime.data_types import RowsLike

if TYPE_CHECKING:
    from saddlesvm.estimators.base import Estimator

# Parameters that count when a model predicts, as in scikit-learn; the others count in the fit.
AT_PREDICTION = ("decision_function_shape", "break_ties")


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelFitted(FitFacts):
    """What a fit of a kernel machine leaves behind; its template is a KernelMachine.

    Attributes
    ----------
    kernel : Kernel
        With its parameters as numbers.
    support : int32 ndarray of shape (n_support,)
        Row numbers of the support vectors; of a classifier class by class.
    vectors : ndarray or CSR matrix of shape (n_support, d)
        Empty for a precomputed kernel.
    n_support : int32 ndarray of shape (max(n_classes, 1),)
    duals : ndarray of shape (max(n_classes - 1, 1), n_support), or CSR for sparse rows
        The coefficients of the support vectors, as scikit-learn keeps them.
    intercept : ndarray of shape (n_problems,)
    n_rows : int or None
        Of the training data; None if nobody knows it.
    class_weight : ndarray of shape (n_classes,) or None
        The factors of the classes.
    """

    kernel: Kernel
    support: np.ndarray
    vectors: Any
    n_support: np.ndarray
    n_rows: int | None = None
    class_weight: np.ndarray | None = None

    def attributes(self) -> dict[str, Any]:
        """Return the public attributes of an estimator that holds this fit."""
        found = super().attributes()
        found["kernel_"] = self.kernel
        found["support_"] = self.support
        found["support_vectors_"] = self.vectors
        found["n_support_"] = self.n_support
        if self.n_rows is not None:
            found["n_samples_fit_"] = self.n_rows
        if self.class_weight is not None:
            found["class_weight_"] = self.class_weight
        return found

    @property
    def n_classes(self) -> int:
        """The number of classes; 0 for a regression and for novelty detection."""
        return 0 if self.labels is None else int(self.labels.classes.size)


def held_machine(model: Any) -> KernelFitted:
    """Return the value that a kernel machine holds; arrays that were assigned by hand count.

    Raises
    ------
    NotFittedError
        It holds none.
    """
    check_is_fitted(model)
    held: KernelFitted = model._fitted
    duals = model.dual_coef_
    intercept = model.intercept_
    vectors = model.support_vectors_
    if duals is held.duals and intercept is held.intercept and vectors is held.vectors:
        return held
    return replace(held, duals=duals, intercept=intercept, vectors=vectors)


def make_machine(fitted: KernelFitted) -> Any:
    """Return a kernel machine that holds a fit."""
    return clone(fitted.template)._hold(fitted)


def check_kernel_rows(machine: Any, X: Any, *, reset: bool = False) -> Any:
    """Return X, checked; a precomputed kernel must be dense, and square in a fit.

    With `reset` the machine learns the features.
    """
    if machine.kernel != "precomputed":
        return check_design(X, machine, reset=reset, finite=True).plain
    X = validate_data(machine, X, reset=reset, dtype=[np.float64, np.float32])
    if not reset:
        return X
    if X.shape[0] != X.shape[1]:
        raise ValueError(
            f"a precomputed kernel is a square matrix of kernel values; X has shape {X.shape}"
        )
    return make_symmetric(X)


def dense_duals(duals: Any) -> np.ndarray:
    """Return the coefficients of support vectors as a dense array."""
    dense = duals.toarray() if sparse.issparse(duals) else duals
    return np.ascontiguousarray(dense)


def find_centres(fitted: KernelFitted) -> Any:
    """Return the support vectors, or their numbers for a precomputed kernel."""
    return fitted.support if fitted.kernel.precomputed else fitted.vectors


def score_problems(fitted: KernelFitted, X: RowsLike) -> np.ndarray:
    """Return the scores of the sub-problems, shape (rows, problems), in blocks of support vectors.

    Scores of pairs are positive for the earlier class, scores of two classes for the later class.
    """
    X = check_kernel_rows(fitted.template, X)
    duals = dense_duals(fitted.duals)
    centres = find_centres(fitted)
    count = fitted.n_classes
    # A machine with one problem, whose score is one sum; with the linear kernel, of features.
    if count == 0 and fitted.kernel.metric == "linear":
        return linear_scores(X, dense_weights_of(fitted), fitted.intercept)
    if count <= 2:
        return expand(fitted.kernel, X, centres, duals.T) + fitted.intercept

    # The score of a pair is the sum of what the support vectors of its two classes add to it.
    ends = np.concatenate([[0], np.cumsum(fitted.n_support)])
    class_sums = []
    for k in range(count):
        of_class = slice(ends[k], ends[k + 1])
        class_sums.append(expand(fitted.kernel, X, centres[of_class], duals[:, of_class].T))
    # In the pair (i, j), vectors of class i have their coefficients in line j - 1, those of j in
    # line i.
    pairs = combinations(range(count), 2)
    columns = [class_sums[i][:, j - 1] + class_sums[j][:, i] for i, j in pairs]
    return np.column_stack(columns) + fitted.intercept


def count_votes(fitted: KernelFitted, X: RowsLike) -> np.ndarray:
    """Return the votes of the pairs for each class, shape (rows, n_classes); of two, their score.

    Votes have a fraction, by which scores break ties.
    """
    scores = score_problems(fitted, X)
    if scores.shape[1] == 1:
        return scores
    return vote(-scores, fitted.n_classes)


def choose_classes(fitted: KernelFitted, X: RowsLike, break_ties: bool) -> np.ndarray:
    """Return the class of each row with most votes; scores decide ties if asked."""
    assert fitted.labels is not None
    classes = fitted.labels.classes
    votes = count_votes(fitted, X)
    if votes.shape[1] == 1:
        return classes[(votes[:, 0] > 0.0).astype(np.intp)]
    if not break_ties:
        votes = np.round(votes)
    return classes[votes.argmax(axis=1)]


def weigh_features(fitted: KernelFitted) -> Any:
    """Return the weights of the features in each score, shape (problems, d).

    They are for the linear kernel; sparse for sparse support vectors.
    """
    vectors = fitted.vectors
    duals = sparse.csr_array(pair_duals(fitted.duals, fitted.n_support, fitted.n_classes))
    weights = duals @ vectors
    if sparse.issparse(vectors):
        return type(vectors)(weights)
    return np.asarray(weights)


def dense_weights_of(fitted: KernelFitted) -> np.ndarray:
    """Return the weights of the features as a dense array."""
    weights = weigh_features(fitted)
    return np.asarray(weights.toarray() if sparse.issparse(weights) else weights)


def pair_duals(duals: object, n_support: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the coefficients of the support vectors in each score, shape (problems, n_support).

    A model keeps, as in scikit-learn, the coefficients of a vector against each of the other
    classes.
    """
    dense = dense_duals(duals)
    if n_classes <= 2:
        return dense
    pairs = list(combinations(range(n_classes), 2))
    ends = np.concatenate([[0], np.cumsum(n_support)])
    found = np.zeros((len(pairs), dense.shape[1]))
    # For i < j: vectors of class i have their coefficients against j in row j - 1, those of j in i.
    for row, (i, j) in zip(found, pairs, strict=True):
        row[ends[i] : ends[i + 1]] = dense[j - 1, ends[i] : ends[i + 1]]
        row[ends[j] : ends[j + 1]] = dense[i, ends[j] : ends[j + 1]]
    return found


def coefficients_of(model: Estimator, n: int) -> tuple[list[np.ndarray], list[float]]:
    """Return coefficients of all training rows, and the intercept, for each sub-problem.

    Both are positive for the later class; the coefficients have shape (n,).

    Parameters
    ----------
    model : estimator
        A kernel machine of this package or of ``sklearn.svm``.
    n : int
        Training rows.

    Raises
    ------
    ValueError
        The model has support vectors in more rows.
    """
    classes = getattr(model, "classes_", None)
    count = 0 if classes is None else classes.size
    duals = pair_duals(model.dual_coef_, model.n_support_, count)
    intercept = np.ravel(model.intercept_)
    # Scores of several pairs are positive for the earlier class.
    if count > 2:
        duals = -duals
        intercept = -intercept
    return spread_duals(duals, model.support_, n), intercept.tolist()


def spread_duals(duals: np.ndarray, support: object, n: int) -> list[np.ndarray]:
    """Return each problem's coefficients of all n training rows."""
    rows = np.asarray(support)
    if rows.size and rows.max() >= n:
        raise ValueError(f"the model has a support vector in row {rows.max()}; X has {n} rows")
    found = []
    for own in duals:
        beta = np.zeros(n)
        beta[rows] = own
        found.append(beta)
    return found
