"""The data of a comparison in the feature space of a kernel: models are coefficients of the training rows."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from saddlesvm.estimators.kernel_machine import OF_KERNELS
from saddlesvm.lab.dataset import Dataset
from saddlesvm.problem.intercepts import InterceptName
from saddlesvm.problem.kernel import KernelProblem, make_kernel_problem
from saddlesvm.problem.losses import Loss
from saddlesvm.rows.kernels import KERNELS, Kernel, expand, resolve_gamma
from saddlesvm.runtime.allowed import check
from saddlesvm.solvers.base import SolverBase
from saddlesvm.solvers.kernel.decomposition import KernelDecomposition


@dataclasses.dataclass(frozen=True, eq=False)
class KernelDataset(Dataset):
    """Rows and labels, and a kernel over them."""

    kernel: Kernel = Kernel()  # noqa: RUF009 - it cannot be changed

    @property
    def fingerprint(self) -> str:
        """A short hash of the data and of the kernel: a trace of another kernel is one of other problems."""
        kernel = (self.kernel.name, self.kernel.gamma, self.kernel.degree, self.kernel.coef0)
        return hashlib.sha256((super().fingerprint + repr(kernel)).encode()).hexdigest()[:12]

    @property
    def reference_solver(self) -> SolverBase:
        """The solver for a model to look at."""
        return KernelDecomposition()

    def describe(self) -> list[tuple[str, str]]:
        """A description of the data and of the kernel, as pairs of words for a table."""
        kernel = self.kernel
        words = f"{kernel.name}, gamma = {kernel.gamma:.4g}, degree = {kernel.degree:g}, coef0 = {kernel.coef0:g}"
        return [*super().describe(), ("kernel", words)]

    def problem(
        self,
        loss: Loss,
        C: float | None = None,
        intercept: InterceptName = "none",
        scaling: float = 1.0,
        lam: float | None = None,
    ) -> KernelProblem:
        """The regularised risk problem over all training rows; see :meth:`Dataset.problem`."""
        problem, _ = make_kernel_problem(
            self.X, self.kernel, self.y, loss, C=C, lam=lam, intercept=intercept, scale=scaling
        )
        return problem

    def scores_of(self, X: Any, coefs: np.ndarray, intercepts: np.ndarray) -> np.ndarray:
        """Scores of the rows of X by k models, shape (m, k), of coefficients of the training rows, shape (k, n)."""
        support = np.flatnonzero(coefs.any(axis=0))
        return expand(self.kernel, X, self.kernel.centres(self.X, support), coefs[:, support].T) + intercepts


def with_kernel(data: Dataset, metric: str | Callable[..., Any], gamma: Any, degree: float, coef0: float) -> Dataset:
    """The data with a kernel.

    Parameters
    ----------
    data : Dataset
    metric : str or callable
        As in :class:`~saddlesvm.KernelSVC`, but for "precomputed".
    gamma : {"scale", "auto"} or float
    degree, coef0 : float

    Raises
    ------
    ValueError
        There is no such kernel, a parameter is out of range, or the data are none of classification.
    """
    able = [name for name in KERNELS if name != "precomputed"]
    if not callable(metric) and metric not in able:
        raise ValueError(f"kernel must be one of {', '.join(able)}, or a function; got {metric!r}")
    for name, given in {"gamma": gamma, "degree": degree, "coef0": coef0}.items():
        check(name, given, OF_KERNELS[name])
    if data.task != "classification":
        raise ValueError("the kernel solvers of a comparison are for classification")
    kernel = Kernel(metric, resolve_gamma(gamma, data.X), degree, coef0)
    fields = {field.name: getattr(data, field.name) for field in dataclasses.fields(data)}
    return KernelDataset(**fields, kernel=kernel)
