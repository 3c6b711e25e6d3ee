"""The data of a comparison: rows, labels as numbers, a test part, and their description."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import sparse

from saddlesvm.data.door import Design, check_design
from saddlesvm.data.label_checks import check_labels, check_targets
from saddlesvm.problem.intercepts import InterceptName, intercept_kind
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.problem import Problem, make_problem
from saddlesvm.runtime.data_types import Matrix

BLOCK_SCORES = 1_000_000  # scores computed at a time, 8 MB (guessed)
LABELS_SHOWN = 12  # labels in a message
Task = Literal["classification", "regression"]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows and labels, checked.

    Attributes
    ----------
    name : str
    X : ndarray or CSR matrix of shape (n, d), float32 or float64
    y : ndarray of shape (n,), float64
        -1 and +1, or targets.
    task : {"classification", "regression"}
    classes : tuple of two str
        The names of -1 and +1; empty for a regression.
    test_X, test_y
        The test part in the same form, or None.
    """

    name: str
    X: Any
    y: np.ndarray
    task: Task
    classes: tuple[str, ...] = ()
    test_X: Any = None
    test_y: np.ndarray | None = None

    def describe(self) -> list[tuple[str, str]]:
        """Return a description of the data, as pairs of words for a table."""
        n, d = self.X.shape
        stored = n * d
        layout = "dense"
        if sparse.issparse(self.X):
            stored = int(self.X.nnz)
            layout = "sparse (CSR)"
        pairs = [
            ("data", self.name),
            ("rows x features", f"{n:,} x {d:,}"),
            ("layout", f"{layout}, {self.X.dtype}, {stored:,} stored values"),
        ]
        if self.classes:
            negative, positive = self.classes
            n_positive = int((self.y == 1.0).sum())
            words = f"{n - n_positive:,} of {negative}, {n_positive:,} of {positive}"
            pairs.append(("classes", words))
        if self.test_X is not None:
            pairs.append(("test rows", f"{self.test_X.shape[0]:,}"))
        return pairs

    def problem(
        self,
        loss: Loss,
        C: float | None = None,
        intercept: InterceptName = "none",
        scaling: float = 1.0,
        lam: float | None = None,
    ) -> Problem:
        """Return the problem over all training rows.

        Parameters
        ----------
        loss : Loss
        C, lam : float
            One of them; with `lam` objectives are reported in the lambda form.
        intercept : {"none", "regularized", "free"}
        scaling : float
            Value of the constant feature of a regularised intercept.
        """
        given_rows = Design(self.X)
        norms = given_rows.norms()
        # The intercept is the weight of a virtual feature that has this value in every row.
        value = intercept_kind(intercept).value(scaling, lambda: norms)
        design = given_rows.with_feature(float(value))
        lifted = norms + value * value
        return make_problem(design, self.y, loss, C=C, lam=lam, intercept=intercept, norms=lifted)

    def errors(self, coef: np.ndarray, intercept: float) -> tuple[float, float]:
        """Return training and test error of a linear model; NaN without a test part.

        The error is the share of rows on the wrong side; for a regression, the mean absolute error.
        """
        train, test = self.errors_of(coef[None, :], np.array([intercept]))
        return float(train[0]), float(test[0])

    def errors_of(self, coefs: np.ndarray, intercepts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return training and test errors of k models, each of shape (k,).

        Parameters
        ----------
        coefs : ndarray of shape (k, d)
        intercepts : ndarray of shape (k,)
        """
        train = self._errors(self.X, self.y, coefs, intercepts)
        if self.test_X is None or self.test_y is None:
            return train, np.full(train.size, np.nan)
        return train, self._errors(self.test_X, self.test_y, coefs, intercepts)

    def _errors(
        self, X: Matrix, y: np.ndarray, coefs: np.ndarray, intercepts: np.ndarray
    ) -> np.ndarray:
        """Return the errors of k models on some rows."""
        # As many models in a pass over the rows as the memory for scores allows.
        n_models = max(1, BLOCK_SCORES // y.size)
        errors = []
        for start in range(0, intercepts.size, n_models):
            block = slice(start, start + n_models)
            products = np.asarray(X @ coefs[block].T.astype(X.dtype), dtype=np.float64)
            scores = products + intercepts[block]
            if self.task == "regression":
                errors.append(np.abs(scores - y[:, None]).mean(axis=0))
            else:
                is_wrong = (scores > 0.0) != (y > 0.0)[:, None]
                errors.append(is_wrong.mean(axis=0))
        return np.concatenate(errors)


def make_dataset(
    X: Any,
    y: object,
    *,
    test: tuple[Any, Any] | None = None,
    task: Task = "classification",
    positive: Any = None,
    name: str = "data",
) -> Dataset:
    """Check and encode data.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
    y : array-like of shape (n,)
    test : tuple (X, y), optional
    task : {"classification", "regression"}
    positive : label, optional
        The class that becomes +1; the others become -1. It is needed for more than two classes; of
        two classes, the greater one by default.
    name : str
        The name of the data in the report.

    Raises
    ------
    ValueError
        Labels that do not fit the rows or the task.
    """
    design = check_design(X).plain
    n, d = design.shape
    labels = check_labels(y, n)
    test_X = None
    test_labels = None
    if test is not None:
        test_X = check_design(test[0]).plain
        if test_X.shape[1] != d:
            raise ValueError(
                f"the test data have {test_X.shape[1]} features; the training data have {d}"
            )
        test_labels = check_labels(test[1], test_X.shape[0])

    # Targets stay numbers.
    if task == "regression":
        targets = check_targets(labels, n)
        test_y = None
        if test_X is not None:
            test_y = check_targets(test_labels, test_X.shape[0])
        return Dataset(name, design, targets, task, (), test_X, test_y)

    # Labels become signs.
    chosen, classes = choose_positive(labels, positive)
    test_y = None
    if test_labels is not None:
        unknown = np.setdiff1d(test_labels, labels)
        if unknown.size:
            raise ValueError(
                f"the test data have a label that the training data lack: {unknown[0]!r}"
            )
        test_y = np.where(test_labels == chosen, 1.0, -1.0)
    signs = np.where(labels == chosen, 1.0, -1.0)
    return Dataset(name, design, signs, task, classes, test_X, test_y)


def choose_positive(labels: np.ndarray, positive: object) -> tuple[object, tuple[str, str]]:
    """Return the label that becomes +1, and the names of both sides.

    Raises
    ------
    ValueError
        `positive` is not a label, or is missing with more than two classes, or there is only one
        class.
    """
    found = np.unique(labels)
    if found.size < 2:
        raise ValueError(f"y has one class only, {found[0]}; a comparison needs two")
    if positive is None:
        if found.size > 2:
            raise ValueError(
                f"y has {found.size} classes; say which one is compared with the rest "
                "(positive=...)"
            )
        return found[1], (str(found[0]), str(found[1]))
    # The command line gives text: compare labels as text.
    matching = [label for label in found if str(label) == str(positive)]
    if not matching:
        known = ", ".join(map(str, found[:LABELS_SHOWN]))
        raise ValueError(f"positive={positive!r} is not one of the labels {known}")
    chosen = matching[0]
    others = [label for label in found if label != chosen]
    rest = str(others[0]) if len(others) == 1 else f"not {chosen}"
    return chosen, (rest, str(chosen))
