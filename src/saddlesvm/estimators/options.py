"""The parameters that estimators share, with their types and defaults, and those that the command line offers.

An estimator names its tables of parameters among its bases. ``saddlesvm --help`` reads them there, and this file,
without the estimators, so that it imports nothing of the package but types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from saddlesvm.problem.penalties import BlockPenalty, Penalty
    from saddlesvm.runtime.words import (
        Calibration,
        ClusterSolver,
        DualOption,
        Intercept,
        Keep,
        KernelName,
        KernelSolver,
        PenaltyName,
        ScoreShape,
        SolverName,
    )
    from saddlesvm.solvers.base import SolverBase

OF_LINEAR = ("penalty", "l1_ratio", "checkpoint", "memory", "canonical", "liblinear")
OF_KERNELS = ("kernel", "gamma", "degree", "coef0", "cache_size", "checkpoint")
OF_SVMS = (*OF_KERNELS, "shrinking", "libsvm")
OF_CLASSIFIERS = ("class_weight", *OF_SVMS, "probability", "break_ties", "decision_function_shape")
OVER_LANDMARKS = ("approximation", "exact_tol")

# What a path over C is by default:
ENDS = (1e-3, 1e3)  # smallest and largest C
GAP = 1e-2  # relative gap
GRID = 13  # values of C


@dataclass(kw_only=True, eq=False, repr=False)
class LinearOptions:
    """The parameters of every linear estimator; :class:`~saddlesvm.LinearSVC` describes them."""

    penalty: PenaltyName | Penalty | BlockPenalty = "l2"
    l1_ratio: float = 0.15
    dual: DualOption = "auto"
    tol: float = 1e-4
    lam: float | None = None
    fit_intercept: bool = True
    intercept: Intercept = "regularized"
    intercept_scaling: float = 1.0
    solver: SolverName | ClusterSolver | SolverBase = "auto"
    max_iter: int | None = None
    max_time: float | None = None
    certify_every: float | None = None
    keep: Keep = "best"
    gap: float = 0.0
    warm_start: bool = False
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0
    callbacks: Sequence[Any] | None = None
    checkpoint: Any = None
    memory: int | str | None = None
    canonical: int | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class KernelOptions:
    """The parameters of every kernel machine; :class:`~saddlesvm.SVC` describes them."""

    kernel: KernelName | Callable[..., Any] = "rbf"
    degree: float = 3
    gamma: Literal["scale", "auto"] | float = "scale"
    coef0: float = 0.0
    tol: float = 1e-3
    cache_size: float = 200
    verbose: int = False
    max_time: float | None = None
    certify_every: float | None = None
    keep: Keep = "best"
    gap: float = 0.0
    solver: KernelSolver | SolverBase = "auto"
    n_jobs: int | None = None
    callbacks: Sequence[Any] | None = None
    warm_start: bool = False
    checkpoint: Any = None


@dataclass(kw_only=True, eq=False, repr=False)
class LandmarkOptions:
    """The parameters of machines that may be fitted over landmarks."""

    approximation: int | Literal["auto"] | None = None
    exact_tol: float | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class SVMOptions(KernelOptions):
    """The parameters of every machine with the name and the attributes of one in ``sklearn.svm``."""

    shrinking: bool = True
    max_iter: float | None = -1


@dataclass(kw_only=True, eq=False, repr=False)
class PairOptions(SVMOptions):
    """The parameters of SVC and NuSVC."""

    probability: bool | Calibration = False
    class_weight: dict[Any, float] | Literal["balanced"] | None = None
    decision_function_shape: ScoreShape = "ovr"
    break_ties: bool = False
    random_state: Any = None
