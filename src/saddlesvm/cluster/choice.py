"""The choice of the method of a fit on a cluster: by the loss, and by what would travel."""

from __future__ import annotations

import functools
from collections.abc import Callable

from saddlesvm.cluster.method import ClusterMethod, ClusterPlan
from saddlesvm.cluster.one_worker import OneWorker
from saddlesvm.cluster.over_passes import PassRounds, has_small_matrices, room_for_rows
from saddlesvm.cluster.rounds import DualRounds
from saddlesvm.problem.loss import is_cornerless, is_smooth, loss_name
from saddlesvm.problem.penalties import L2, holds_square
from saddlesvm.rows.memory_plan import LEAST_MEMORY
from saddlesvm.runtime.option_names import CLUSTER_SOLVERS
from saddlesvm.solvers.active_set import INSIDE
from saddlesvm.solvers.memory_equations import SPANNING

LEAST_ROOM = 0.03  # share of the rows that the active set must have room for; measured: 3 to 5 %
NEWTON_ROUNDS = 8  # rounds of Newton's method, as a rule; measured: six to nine
TOGETHER = ("auto", "gather")  # solvers that bring all rows together if these fit on a worker

MakeMethod = Callable[..., ClusterMethod]


def check_cluster_solver(solver: object) -> str:
    """Return the name of a solver on a cluster.

    Raises
    ------
    ValueError
        It is none.
    """
    if not isinstance(solver, str) or solver not in CLUSTER_SOLVERS:
        allowed = ", ".join(map(repr, CLUSTER_SOLVERS))
        raise ValueError(f"on a cluster solver must be one of {allowed}; got {solver!r}")
    return solver


def choose_method(
    solver: str, plan: ClusterPlan, n_bytes: int, memory: int, parts: int = 1
) -> MakeMethod:
    """Choose the method that a solver's name means for these data.

    Parameters
    ----------
    solver : {"auto", "newton", "rounds", "gather"}
    plan : ClusterPlan
    n_bytes : int
        Of all rows.
    memory : int
        Bytes of rows that may be brought together on a worker.
    parts : int, default=1
        Partitions.

    Raises
    ------
    ValueError
        The method cannot solve the problem; the message says what can.
    """
    fits = n_bytes <= memory
    check_for_partitions(solver, plan, n_bytes, fits)
    if solver == "gather" and not fits:
        raise ValueError(
            "solver='gather' brings all rows together on a worker, "
            f"{n_bytes / 2**20:,.0f} MiB; memory allows {memory / 2**20:,.0f} MiB: give "
            f"memory={memory_needed(n_bytes)}, or solver='auto'"
        )
    if solver == "auto":
        solver = choose_solver(plan, n_bytes, memory, parts)
    # Rounds of dual ascent have no free intercept, whether they were asked for or chosen by "auto".
    if plan.free and solver == "rounds":
        raise ValueError(
            f"intercept='free' with loss={loss_name(plan.loss)!r} and {plan.n_features:,} features "
            "works on a cluster with solver='newton', or where all rows fit on a worker: "
            f"memory={memory_needed(n_bytes)}. Otherwise take intercept='regularized'"
        )
    if solver == "gather":
        return OneWorker
    if solver == "rounds":
        return DualRounds
    most = room_for_rows(plan.n, n_bytes, plan.problems, memory)
    return functools.partial(PassRounds, most=most)


def check_for_partitions(solver: str, plan: ClusterPlan, n_bytes: int, fits: bool) -> None:
    """Raise ValueError if the problem needs all rows together, and they do not come together."""
    # An ordinary fit on one worker has none of the limits below.
    come_together = fits and solver in TOGETHER
    needed = memory_needed(n_bytes)
    if plan.joint is not None and not come_together:
        raise ValueError(
            f"{plan.joint.title()} machine solves all classes in one problem: on a cluster where "
            "all rows fit on a worker, with solver='auto' or 'gather' and "
            f"memory={needed}. Otherwise take multi_class='ovr' or 'ovo'"
        )
    if isinstance(plan.penalty, L2) or come_together:
        return
    if not holds_square(plan.penalty):
        raise ValueError(
            "penalty='l1' works on a cluster where all rows fit on one worker, with solver='auto' "
            f"or 'gather' and memory={needed}. Otherwise take penalty='elasticnet', or 'l2'"
        )
    if plan.free:
        raise ValueError(
            "penalty='elasticnet' with intercept='free' works on a cluster where all rows fit on "
            f"one worker, with solver='auto' or 'gather' and memory={needed}. Otherwise take "
            "intercept='regularized', or penalty='l2'"
        )
    if solver == "newton":
        raise ValueError(
            "solver='newton' takes penalty='l2' only; use 'auto', 'gather' or 'rounds' for "
            "'elasticnet'"
        )


def memory_needed(n_bytes: int) -> str:
    """Return the value of `memory` with which all rows fit on a worker."""
    return f"'{max(-(-n_bytes // 2**20), LEAST_MEMORY >> 20)}M'"


def choose_solver(plan: ClusterPlan, n_bytes: int, memory: int, parts: int) -> str:
    """Choose the solver for ``solver="auto"``."""
    fits = n_bytes <= memory
    if plan.joint is not None or not isinstance(plan.penalty, L2):
        return "gather" if fits else "rounds"

    # The rows come together unless the matrices of Newton's rounds are fewer bytes.
    suited = has_small_matrices(plan.loss, plan.n_features, plan.problems)
    matrices = NEWTON_ROUNDS * parts * plan.problems * 8.0 * (plan.n_features + 1) ** 2
    if fits and not (suited and matrices < n_bytes):
        return "gather"

    if is_smooth(plan.loss):
        # With fewer rows than that, a loss with corners needs a proximal term, which products lack.
        spans = is_cornerless(plan.loss) or plan.n >= SPANNING * plan.n_features
        return "newton" if suited or spans or plan.free else "rounds"

    # The active set needs room for the rows that are free.
    room = room_for_rows(plan.n, n_bytes, plan.problems, memory)
    needed = max(LEAST_ROOM * plan.n, INSIDE * (plan.n_features + 1))
    return "newton" if room >= needed else "rounds"
