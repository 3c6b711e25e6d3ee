"""The choice of the method of a fit on a cluster: by the loss, and by what would travel."""

from __future__ import annotations

from saddlesvm.cluster.method import ClusterPlan
from saddlesvm.cluster.over_passes import has_small_matrices, room_for_rows
from saddlesvm.problem.loss import is_smooth, loss_name
from saddlesvm.problem.penalties import L2
from saddlesvm.rows.memory_plan import LEAST_MEMORY
from saddlesvm.runtime.option_names import CLUSTER_SOLVERS
from saddlesvm.solvers.active_set import INSIDE

LEAST_ROOM = 0.03  # share of the rows that the active set must have room for; measured: 3 to 5 %
NEWTON_ROUNDS = 8  # rounds of Newton's method, as a rule; measured: six to nine


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


def choose_method(solver: str, plan: ClusterPlan, n_bytes: int, memory: int, parts: int = 1) -> str:
    """Choose the method that a solver's name means for these data: "newton" or "gather".

    Parameters
    ----------
    solver : {"auto", "newton", "gather"}
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
    if fits and solver == "gather":
        return "gather"
    needed = f"memory='{max(-(-n_bytes // 2**20), LEAST_MEMORY >> 20)}M'"
    if solver == "gather":
        raise ValueError(
            "solver='gather' brings all rows together on a worker, "
            f"{n_bytes / 2**20:,.0f} MiB; memory allows {memory / 2**20:,.0f} MiB: give {needed}, "
            "or solver='auto'"
        )

    # Joint machines, and penalties other than l2, need all rows together.
    together = f"on a cluster where all rows fit on a worker, with solver='auto' and {needed}"
    is_l2 = isinstance(plan.penalty, L2)
    if solver == "auto" and fits and (plan.is_joint or not is_l2):
        return "gather"
    if plan.is_joint:
        raise ValueError(
            "multi_class='crammer_singer' and multi_class='multinomial' solve one problem over all "
            f"classes, and work {together}. Otherwise take multi_class='ovr' or 'ovo'"
        )
    if not is_l2:
        raise ValueError(
            f"penalty='l1' and penalty='elasticnet' work {together}. Otherwise take penalty='l2'"
        )

    # The rows come together unless the matrices of Newton's rounds are fewer bytes.
    suited = has_small_matrices(plan.loss, plan.n_features, plan.problems)
    matrices = NEWTON_ROUNDS * parts * plan.problems * 8.0 * (plan.n_features + 1) ** 2
    if solver == "auto" and fits and not (suited and matrices < n_bytes):
        return "gather"

    # The active set needs room for the rows that are free.
    room = room_for_rows(plan.n, n_bytes, plan.problems, memory)
    has_room = room >= max(LEAST_ROOM * plan.n, INSIDE * (plan.n_features + 1))
    if suited or (not is_smooth(plan.loss) and (has_room or solver == "newton")):
        return "newton"
    instead = "a smooth loss, such as loss='squared_hinge' or 'logistic'"
    if is_smooth(plan.loss):
        instead = "fewer features, whose matrices may travel in every round"
    raise ValueError(
        f"loss={loss_name(plan.loss)!r} with {plan.n:,} rows of {plan.n_features:,} features works "
        f"{together}. Otherwise take {instead}"
    )
