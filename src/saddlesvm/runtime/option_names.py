"""The names that options take: types for editors and type checkers, and choices, without imports.

The objects that the names stand for are registered elsewhere; a test compares the two.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

PenaltyName: TypeAlias = Literal["l2", "l1", "elasticnet"]
Intercept: TypeAlias = Literal["regularized", "free", "none"]
MultiClass: TypeAlias = Literal["ovr", "ovo", "crammer_singer", "multinomial"]
ScoreShape: TypeAlias = Literal["ovr", "ovo"]
DualOption: TypeAlias = Literal["auto"] | bool
SolverName: TypeAlias = Literal["auto", "dcd", "sdca", "pegasos", "newton", "blocks", "columns"]
KernelSolver: TypeAlias = Literal["auto", "kernel-pegasos"]
ClusterSolver: TypeAlias = Literal["auto", "newton", "gather"]
Keep: TypeAlias = Literal["best", "last"]
KernelName: TypeAlias = Literal["linear", "poly", "rbf", "sigmoid", "precomputed"]

MISSING_VALUES = ("error", "drop", "mean", "median")  # what may happen to missing values
# Other names of losses, some of them scikit-learn's.
LOSS_ALIASES: dict[str, str] = {
    "l1": "hinge",
    "l2": "squared_hinge",
    "log_loss": "logistic",
    "squared_error": "squared",
    "absolute_error": "absolute",
}
PENALTY_NAMES: tuple[str, ...] = get_args(PenaltyName)
INTERCEPTS: tuple[str, ...] = get_args(Intercept)
MULTI_CLASS: tuple[str, ...] = get_args(MultiClass)
SCORE_SHAPES: tuple[str, ...] = get_args(ScoreShape)
KEPT: tuple[str, ...] = get_args(Keep)
CLUSTER_SOLVERS: tuple[str, ...] = get_args(ClusterSolver)
KERNEL_NAMES: tuple[str, ...] = get_args(KernelName)
