"""The choice of the method of a fit on a cluster: by the loss, and by what would travel."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import make_dataclass
from typing import Any, NamedTuple

from saddlesvm.cluster.one_worker import OneWorker
from saddlesvm.cluster.over_passes import ActiveSetRounds, NewtonRounds, is_suited, room_for
from saddlesvm.cluster.rounds import Rounds, Training
from saddlesvm.problem.loss import is_cornerless, is_smooth, loss_name
from saddlesvm.problem.penalties import holds_square
from saddlesvm.rows.memory_plan import LEAST_MEMORY
from saddlesvm.runtime.option_names import CLUSTER_SOLVERS
from saddlesvm.solvers.auto_on_files import INSIDE
from saddlesvm.solvers.register import parse_solver
from saddlesvm.solvers.second_order.equations import SPANNING

PASSES = 3.0  # over its rows that a partition does in a round, where nothing else is asked for
LEAST_ROOM = 0.03  # share of the rows that the active set must have room for
NEWTON_ROUNDS = 8  # rounds of Newton's method, as a rule

TOGETHER = ("auto", "gather")  # solvers that bring all rows together where these fit on a worker

Method = Callable[..., Rounds]


class ClusterSolver(NamedTuple):
    """The meaning of a solver's name on a cluster.

    Attributes
    ----------
    name : {"auto", "newton", "gather", "rounds"}
    passes : float
        Of "rounds": passes over its rows that a partition does in a round, more where communication is dear.
    """

    name: str
    passes: float = PASSES


def cluster_solver(solver: Any) -> ClusterSolver:
    """The method for ``"auto"``, ``"newton"``, ``"gather"``, ``"rounds"`` or ``"rounds:passes=5"``.

    Raises
    ------
    ValueError
        It is none of these, or the passes are not positive.
    """
    name = solver.partition(":")[0] if isinstance(solver, str) else ""
    if name not in CLUSTER_SOLVERS:
        allowed = ", ".join(map(repr, CLUSTER_SOLVERS))
        raise ValueError(f"on a cluster solver must be one of {allowed}; got {solver!r}")
    own: dict[str, Any] = {"rounds": [("passes", float, PASSES)]}  # no other method has an option
    options = parse_solver(solver, {one: make_dataclass(one, own.get(one, ())) for one in CLUSTER_SOLVERS})
    passes = getattr(options, "passes", PASSES)
    if not (isinstance(passes, (int, float)) and passes > 0.0):
        raise ValueError(f"passes must be positive; got {passes!r}")
    return ClusterSolver(name, float(passes))


def chosen(solver: str, plan: Training, n_bytes: int, memory: int, parts: int = 1) -> Method:
    """The method that a solver's name means for these data.

    Parameters
    ----------
    solver : {"auto", "newton", "rounds", "gather"}
    plan : Training
    n_bytes : int
        Of all rows.
    memory : int
        Bytes of rows that may be brought together on a worker.
    parts : int, default=1
        Partitions.

    Raises
    ------
    ValueError
        The method does not do it; the message says what does.
    """
    fits, smooth = n_bytes <= memory, is_smooth(plan.loss)
    check_for_partitions(solver, plan, n_bytes, fits)
    if solver == "gather" and not fits:
        raise ValueError(
            f"solver='gather' brings all rows together on a worker, {n_bytes / 2**20:,.0f} MiB; memory allows "
            f"{memory / 2**20:,.0f} MiB: give memory={memory_needed(n_bytes)}, or solver='auto'"
        )
    if solver == "auto" and not (plan.penalty.identity() and plan.joint is None):
        solver = "gather" if fits else "rounds"
    if solver == "auto":
        solver = _by_itself(plan, n_bytes, memory, parts)
    if plan.free and solver == "rounds":
        raise ValueError(
            f"intercept='free' with loss={loss_name(plan.loss)!r} and {plan.n_features:,} features works on a cluster "
            f"with solver='newton', or where all rows fit on a worker: memory={memory_needed(n_bytes)}. Otherwise take "
            "intercept='regularized'"
        )
    if solver == "gather":
        return OneWorker
    if solver == "rounds":
        return Rounds
    method: Method = NewtonRounds if smooth else ActiveSetRounds
    return functools.partial(method, most=room_for(plan.n, n_bytes, plan.problems, memory))


def check_for_partitions(solver: str, plan: Training, n_bytes: int, fits: bool) -> None:
    """Raise ValueError where only all rows together will do, and they do not fit on a worker or another method is
    asked for; the message says what goes."""
    needed = memory_needed(n_bytes)
    if plan.joint is not None and not (fits and solver in TOGETHER):
        raise ValueError(
            f"{plan.joint.title()} machine solves all classes in one problem: on a cluster where all rows fit on a "
            f"worker, with solver='auto' or 'gather' and memory={needed}. Otherwise take multi_class='ovr' or 'ovo'"
        )
    if plan.penalty.identity() or (fits and solver in TOGETHER):
        return
    if not holds_square(plan.penalty):
        raise ValueError(
            f"penalty='l1' works on a cluster where all rows fit on one worker, with solver='auto' or 'gather' and "
            f"memory={needed}. Otherwise take penalty='elasticnet', or 'l2'"
        )
    if plan.free:
        raise ValueError(
            "penalty='elasticnet' with intercept='free' works on a cluster where all rows fit on one worker, with "
            f"solver='auto' or 'gather' and memory={needed}. Otherwise take intercept='regularized', or penalty='l2'"
        )
    if solver == "newton":
        raise ValueError("solver='newton' takes penalty='l2' only; use 'auto', 'gather' or 'rounds' for 'elasticnet'")


def memory_needed(n_bytes: int) -> str:
    """The value of `memory` with which all rows fit on a worker."""
    return f"'{max(-(-n_bytes // 2**20), LEAST_MEMORY >> 20)}M'"


def _by_itself(plan: Training, n_bytes: int, memory: int, parts: int) -> str:
    """The name of the method for ``solver="auto"``: the rows come together where they are fewer bytes than the matrices
    of Newton's rounds."""
    suited = is_suited(plan.loss, plan.n_features, plan.problems)
    matrices = NEWTON_ROUNDS * parts * plan.problems * 8.0 * (plan.n_features + 1) ** 2
    if n_bytes <= memory and not (suited and matrices < n_bytes):
        return "gather"
    if is_smooth(plan.loss):
        # With fewer rows products flounder for a loss with corners, which needs a proximal term.
        spanned = is_cornerless(plan.loss) or plan.n >= SPANNING * plan.n_features
        return "newton" if suited or spanned or plan.free else "rounds"
    room = room_for(plan.n, n_bytes, plan.problems, memory)
    roomy = room >= max(LEAST_ROOM * plan.n, INSIDE * (plan.n_features + 1))
    return "newton" if roomy else "rounds"
