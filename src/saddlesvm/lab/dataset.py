"""The data of a comparison: rows, labels as numbers, a test part, and what a report says about
them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy import sparse

from saddlesvm.data.door import Design, check_design, check_labels, check_targets
from saddlesvm.kernel.decomposition import Decomposition
from saddlesvm.kernel.kernel_machine import OF_KERNELS
from saddlesvm.kernel.kernel_problem import make_kernel_problem
from saddlesvm.kernel.mercer import KERNELS, Kernel, expand, resolve_gamma
from saddlesvm.problem.intercepts import InterceptName, intercept_kind
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.problem import make_problem
from saddlesvm.runtime.allowed import check
from saddlesvm.solvers.base import SolverBase
from saddlesvm.solvers.dcd import DCD

BLOCK_SCORES = 1_000_000  # scores computed at a time
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
        What -1 and +1 stand for; empty for a regression.
    test_X, test_y
        The test part in the same form, or None.
    image_shape : tuple of int, optional
        Height and width, where a row is an image.
    kernel : Kernel, optional
        Of a comparison of kernel machines; their models are coefficients of the training rows.
    """

    name: str
    X: Any
    y: np.ndarray
    task: Task
    classes: tuple[str, ...] = ()
    test_X: Any = None
    test_y: np.ndarray | None = None
    image_shape: tuple[int, int] | None = None
    kernel: Kernel | None = None

    @property
    def fingerprint(self) -> str:
        """A short hash of the data and the kernel, by which a trace recognises them."""
        digest = hashlib.sha256(repr((self.X.shape, str(self.X.dtype), self.task)).encode())
        values = self.X.data if sparse.issparse(self.X) else self.X.ravel()
        digest.update(np.ascontiguousarray(values[:: max(1, values.size // 4096)]).tobytes())
        digest.update(self.y.tobytes())
        if self.kernel is not None:
            digest.update(
                repr(
                    (self.kernel.name, self.kernel.gamma, self.kernel.degree, self.kernel.coef0)
                ).encode()
            )
        return digest.hexdigest()[:12]

    @property
    def reference_solver(self) -> SolverBase:
        """The solver of the model that a report shows."""
        return DCD() if self.kernel is None else Decomposition()

    def describe(self) -> list[tuple[str, str]]:
        """A description of the data, as pairs of words for a table."""
        n, d = self.X.shape
        stored = int(self.X.nnz) if sparse.issparse(self.X) else n * d
        layout = "sparse (CSR)" if sparse.issparse(self.X) else "dense"
        found = [
            ("data", self.name),
            ("rows x features", f"{n:,} x {d:,}"),
            ("layout", f"{layout}, {self.X.dtype}, {stored:,} stored values"),
        ]
        if self.classes:
            counts = [int((self.y == sign).sum()) for sign in (-1.0, 1.0)]
            words = ", ".join(
                f"{count:,} of {name}" for name, count in zip(self.classes, counts, strict=True)
            )
            found.append(("classes", words))
        if self.test_X is not None:
            found.append(("test rows", f"{self.test_X.shape[0]:,}"))
        if (kernel := self.kernel) is not None:
            words = (
                f"{kernel.name}, gamma = {kernel.gamma:.4g}, degree = {kernel.degree:g}, coef0 = "
                f"{kernel.coef0:g}"
            )
            found.append(("kernel", words))
        return found

    def problem(
        self,
        loss: Loss,
        C: float | None = None,
        intercept: InterceptName = "none",
        scaling: float = 1.0,
        lam: float | None = None,
    ) -> Any:
        """The regularised risk problem over all training rows: a `Problem`, or a `KernelProblem`
        with a kernel.

        Parameters
        ----------
        loss : Loss
        C, lam : float
            One of them; with `lam` objectives are reported in the lambda form.
        intercept : {"none", "regularized", "free"}
        scaling : float
            Value of the constant feature of a regularised intercept.
        """
        if self.kernel is not None:
            given: dict[str, Any] = {"C": C, "lam": lam, "intercept": intercept, "scale": scaling}
            return make_kernel_problem(self.X, self.kernel, self.y, loss, **given)[0]
        given_rows = Design(self.X)
        norms = given_rows.norms()
        value = intercept_kind(intercept).value(scaling, lambda: norms)
        design = given_rows.with_feature(float(value))
        lifted = norms + value * value
        return make_problem(design, self.y, loss, C=C, lam=lam, intercept=intercept, norms=lifted)

    def scores_of(self, X: Any, coefs: np.ndarray, intercepts: np.ndarray) -> np.ndarray:
        """Scores of the rows of X, shape (m, d), by k models; shape (m, k), float64.

        The coefficients have shape (k, d); with a kernel (k, n), one for each training row.
        """
        if self.kernel is not None:
            support = np.flatnonzero(coefs.any(axis=0))
            return (
                expand(self.kernel, X, self.kernel.centres(self.X, support), coefs[:, support].T)
                + intercepts
            )
        return np.asarray(X @ coefs.T.astype(X.dtype), dtype=np.float64) + intercepts

    def errors(self, coef: np.ndarray, intercept: float) -> tuple[float, float]:
        """Training and test error of a linear model; NaN without a test part.

        The error is the share of rows on the wrong side, for a regression the mean absolute error.
        """
        train, test = self.errors_of(coef[None, :], np.array([intercept]))
        return float(train[0]), float(test[0])

    def errors_of(self, coefs: np.ndarray, intercepts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Training and test errors of k models in few passes over the rows, each of shape (k,).

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
        self, X: Any, y: np.ndarray, coefs: np.ndarray, intercepts: np.ndarray
    ) -> np.ndarray:
        together = max(1, BLOCK_SCORES // y.size)
        found = []
        for k in range(0, intercepts.size, together):
            part = slice(k, k + together)
            scores = self.scores_of(X, coefs[part], intercepts[part])
            if self.task == "regression":
                found.append(np.abs(scores - y[:, None]).mean(axis=0))
            else:
                found.append(((scores > 0.0) != (y > 0.0)[:, None]).mean(axis=0))
        return np.concatenate(found)


def make_dataset(
    X: Any,
    y: Any,
    *,
    test: tuple[Any, Any] | None = None,
    task: Task = "classification",
    positive: Any = None,
    name: str = "data",
    image_shape: tuple[int, int] | None = None,
) -> Dataset:
    """Check and encode data.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
    y : array-like of shape (n,)
    test : tuple (X, y), optional
    task : {"classification", "regression"}
    positive : label, optional
        The class that is +1, all others being -1; needed for more than two classes. Of two classes
        the greater one.
    name : str
        For the report.
    image_shape : tuple of int, optional
        Height and width, where a row is an image.

    Raises
    ------
    ValueError
        Labels that do not fit the rows or the task, or an image shape that does not fit the
        features.
    """
    design = check_design(X).plain
    labels = check_labels(y, design.shape[0])
    held_out = None if test is None else check_design(test[0]).plain
    if held_out is not None and held_out.shape[1] != design.shape[1]:
        raise ValueError(
            f"the test data have {held_out.shape[1]} features; the training data have "
            f"{design.shape[1]}"
        )
    if image_shape is not None and image_shape[0] * image_shape[1] != design.shape[1]:
        raise ValueError(
            f"images of {image_shape[0]} x {image_shape[1]} do not have {design.shape[1]} features"
        )
    test_labels = (
        None if test is None or held_out is None else check_labels(test[1], held_out.shape[0])
    )
    if task == "regression":
        targets = check_targets(labels, design.shape[0])
        held = (
            None
            if test_labels is None or held_out is None
            else check_targets(test_labels, held_out.shape[0])
        )
        return Dataset(name, design, targets, task, (), held_out, held, image_shape)
    chosen, classes = choose_positive(labels, positive)
    if test_labels is not None and (strange := np.setdiff1d(test_labels, labels)).size:
        raise ValueError(f"the test data have a label that the training data lack: {strange[0]!r}")
    signs = np.where(labels == chosen, 1.0, -1.0)
    held = None if test_labels is None else np.where(test_labels == chosen, 1.0, -1.0)
    return Dataset(name, design, signs, task, classes, held_out, held, image_shape)


def choose_positive(labels: np.ndarray, positive: Any) -> tuple[Any, tuple[str, str]]:
    """The label that becomes +1, and the names of both sides.

    Raises
    ------
    ValueError
        `positive` is no label, is missing with more than two classes, or there is one class only.
    """
    found = np.unique(labels)
    if found.size < 2:
        raise ValueError(f"y holds one class only, {found[0]}; a comparison needs two")
    if positive is None:
        if found.size > 2:
            raise ValueError(
                f"y has {found.size} classes; say which one is compared with the rest "
                f"(positive=...)"
            )
        return found[1], (str(found[0]), str(found[1]))
    matching = [label for label in found if str(label) == str(positive)]
    if not matching:
        raise ValueError(
            f"positive={positive!r} is none of the labels {', '.join(map(str, found[:12]))}"
        )
    others = [label for label in found if label != matching[0]]
    return matching[0], (
        str(others[0]) if len(others) == 1 else f"not {matching[0]}",
        str(matching[0]),
    )


def check_intercept(intercept: str) -> InterceptName:
    """`intercept`, if it is one of the three kinds."""
    return intercept_kind(intercept).name


def with_kernel(
    data: Dataset, metric: str | Callable[..., Any], gamma: Any, degree: float, coef0: float
) -> Dataset:
    """The data with a kernel.

    Parameters
    ----------
    data : Dataset
    metric : str or callable
        As in :class:`~saddlesvm.SVC`, but for "precomputed".
    gamma : {"scale", "auto"} or float
    degree, coef0 : float

    Raises
    ------
    ValueError
        There is no such kernel, a parameter is out of range, or the data are none of
        classification.
    """
    able = [name for name in KERNELS if name != "precomputed"]
    if not callable(metric) and metric not in able:
        raise ValueError(f"kernel must be one of {', '.join(able)}, or a function; got {metric!r}")
    for name, given in {"gamma": gamma, "degree": degree, "coef0": coef0}.items():
        check(name, given, OF_KERNELS[name])
    if data.task != "classification":
        raise ValueError("the kernel solvers of a comparison are for classification")
    kernel = Kernel(metric, resolve_gamma(gamma, data.X), degree, coef0)
    return replace(data, kernel=kernel)
