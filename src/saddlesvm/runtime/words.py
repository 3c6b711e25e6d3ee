"""The words that options take: types for editors and type checkers, and choices where nothing heavy is loaded.

The objects that the words stand for are registered elsewhere; a test compares the two.

Text from files made safe to show: characters that steer a terminal or turn the direction of text are spelled out.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal, TypeAlias, get_args

PenaltyName: TypeAlias = Literal["l2", "l1", "elasticnet"]
Intercept: TypeAlias = Literal["regularized", "free", "none"]
MultiClass: TypeAlias = Literal["ovr", "ovo", "crammer_singer", "multinomial", "top_k"]
ScoreShape: TypeAlias = Literal["ovr", "ovo"]
DualOption: TypeAlias = Literal["auto"] | bool
Calibration: TypeAlias = Literal["sigmoid", "isotonic", "temperature"]
SolverName: TypeAlias = Literal["auto", "dcd", "sdca", "pegasos", "newton", "blocks", "columns"]
KernelSolver: TypeAlias = Literal["auto", "kernel-decomposition", "kernel-sdca", "kernel-pegasos"]
ClusterSolver: TypeAlias = Literal["auto", "newton", "gather", "rounds"]
Keep: TypeAlias = Literal["best", "last"]
KernelName: TypeAlias = Literal[
    "additive_chi2", "chi2", "cosine", "laplacian", "linear", "poly", "polynomial", "rbf", "sigmoid", "precomputed"
]

MISSING_VALUES = ("error", "drop", "mean", "median")  # what may happen to missing values; medians need all rows at once
LOSS_ALIASES: dict[str, str] = {  # other names, some of them scikit-learn's
    "l1": "hinge",
    "l2": "squared_hinge",
    "log_loss": "logistic",
    "squared_error": "squared",
    "absolute_error": "absolute",
}
INTERCEPTS: tuple[str, ...] = ("none", "regularized", "free")
KEPT: tuple[str, ...] = get_args(Keep)
SOLVER_NAMES: tuple[str, ...] = tuple(dict.fromkeys((*get_args(SolverName), *get_args(KernelSolver))))
CLUSTER_SOLVERS: tuple[str, ...] = get_args(ClusterSolver)
KERNEL_NAMES: tuple[str, ...] = get_args(KernelName)

# What ``warmup`` compiles for.
LAYOUTS = ("dense", "csr", "csr64")
USUAL_LAYOUTS = ("dense", "csr")
DTYPES = ("float64", "float32", "float16", "bfloat16", "int8", "uint8", "bool")
USUAL_LOSSES = ("squared_hinge", "epsilon_insensitive")  # those that LinearSVC and LinearSVR have by default
KERNEL_LOSSES = ("hinge", "epsilon_insensitive")  # those that SVC and SVR have by default


JOINERS = "\u200c\u200d"  # joiners of several scripts and of emoji: they change neither direction nor line
LINE_BREAKS = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029\ud800-\udfff]")
LONGEST = 2_000  # characters of a message


def shown(text: str) -> str:
    """`text` with control, format and direction characters, line breaks and lone surrogates spelled as in Python."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_spelled(mark) if _is_hidden(mark) else mark for mark in text)


def _is_hidden(mark: str) -> bool:
    return unicodedata.category(mark) in ("Cc", "Cf", "Cs", "Zl", "Zp") and mark not in JOINERS


def _spelled(mark: str) -> str:
    return mark.encode("ascii", errors="backslashreplace").decode() if ord(mark) > 127 else repr(mark)[1:-1]


def unbroken(text: str) -> str:
    """`text` with its line breaks and lone surrogates spelled out, so that it stays one line of a file."""
    return LINE_BREAKS.sub(lambda found: _spelled(found[0]), text)


def one_line(message: str) -> str:
    """A message as one line that can be shown, cut in its middle where it is very long."""
    line = shown(" ".join(part.strip() for part in message.splitlines() if part.strip()))
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 400]} ... {line[-400:]}"
