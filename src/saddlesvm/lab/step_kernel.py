"""Record kernel solvers one visit at a time: Pegasos by its counts, dual ascent by its variables."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from saddlesvm.estimators.kernel_machine import OF_KERNELS
from saddlesvm.fit.loop import fit
from saddlesvm.lab.dataset import Dataset
from saddlesvm.lab.step_plane import OPTIMAL, Plane, intercept_name, made_plane, plane_rows
from saddlesvm.lab.step_record import Recorder
from saddlesvm.problem.certificate import Evaluation
from saddlesvm.problem.kernel import make_kernel_problem
from saddlesvm.problem.loss import Loss
from saddlesvm.rows.kernels import Kernel, resolve_gamma
from saddlesvm.runtime.allowed import check
from saddlesvm.solvers.kernel.decomposition import KernelDecomposition
from saddlesvm.solvers.kernel.pegasos import KernelPegasos
from saddlesvm.solvers.kernel.stochastic import KernelSDCA


def kernel_plane(
    data: Dataset, loss: Loss, strength: dict[str, Any], intercept: bool, gamma: Any, rows: int, seed: int
) -> Plane:
    """The plane of a problem with a Gaussian kernel.

    Parameters
    ----------
    data : Dataset
        For classification, with at least two features.
    loss : Loss
    strength : dict
        ``C`` or ``lam``.
    intercept : bool
        A regularised intercept, or none.
    gamma : {"scale", "auto"} or float
    rows : int
        Most rows to draw, at random.
    seed : int

    Raises
    ------
    ValueError
        `gamma` is out of range, or the data have fewer than two features.
    """
    check("gamma", gamma, OF_KERNELS["gamma"])
    drawn = plane_rows(data.X, rows, seed)
    y = data.y[drawn.chosen]
    kernel = Kernel("rbf", resolve_gamma(gamma, drawn.X))
    problem: Any = make_kernel_problem(drawn.X, kernel, y, loss, intercept=intercept_name(intercept), **strength)[0]
    return made_plane(drawn, y, data.classes, problem, fit(problem, KernelDecomposition(), OPTIMAL), data.name)


class KernelRecorder(Recorder):
    """One kernel solver, one visit at a time.

    A frame holds `scale`, for which the decision function is ``f = scale sum_j b_j y_j k(x_j, .)`` with the bars b:
    for Pegasos its counts, for dual ascent its variables.
    """

    watched: ClassVar[tuple[type[Any], ...]] = (KernelPegasos, KernelSDCA)
    tangents: ClassVar[type] = KernelPegasos

    @property
    def _scale(self) -> float:
        if isinstance(self.solver, KernelPegasos):
            return float(self.solver.scale(self.problem)) / max(1, self.state.steps)
        return float(self.problem.C)

    def _model(self) -> np.ndarray:
        """The sums of kernel values at the rows."""
        return np.array(self.state.sums if isinstance(self.solver, KernelPegasos) else self.state.f)

    def _bars(self, point: Any) -> np.ndarray:
        if isinstance(self.solver, KernelPegasos):
            return np.abs(self.state.alpha)
        return np.abs(point.beta) / self.problem.C

    def _described(self, evaluation: Evaluation) -> dict[str, Any]:
        return {"scale": float(f"{self._scale:.6g}")}

    def _visit(
        self, i: int, before: np.ndarray, bars: tuple[np.ndarray, np.ndarray], evaluation: Evaluation
    ) -> dict[str, Any]:
        """The lower plane of row i; Pegasos judges it by the sums of the last step and the factor of the new one."""
        factor = self._scale if isinstance(self.solver, KernelPegasos) else 1.0
        margins = [float(self.problem.y[i] * factor * sums[i]) for sums in (before, self._model())]
        return {"plane": self._lower_planes((margins[0], margins[1]), (bars[0][i], bars[1][i]))}
