"""Checkpoints of kernel machines: the dual point, from which everything else is computed, and proven, anew."""

from __future__ import annotations

import dataclasses
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.fit.checkpoint import Checkpoint, Saved
from saddlesvm.fit.restored import check_state, demand
from saddlesvm.fit.trace import Trace
from saddlesvm.problem.certificate import Evaluation
from saddlesvm.problem.fingerprint import fingerprint
from saddlesvm.problem.kernel import KernelProblem
from saddlesvm.problem.kernel_certificate import KernelPoint, evaluate_kernel
from saddlesvm.solvers.base import State
from saddlesvm.solvers.kernel.decomposition import measure

BEYOND = 1e-9  # of its upper bound, that a coefficient may lie outside its box by rounding


@dataclass
class Kept(State):
    """The part of a run that its checkpoint holds: the coefficients, and how long it has run."""

    beta: np.ndarray = field(kw_only=True)


class KernelCheckpoint(Checkpoint):
    """Writes and reads the checkpoint of one fit of a kernel machine.

    A resumed run begins at the coefficients that were reached, with all rows at work. So it does not go the way of an
    undisturbed one bit by bit, and proves as much.
    """

    def write(self, mark: dict[str, Any], saved: Saved) -> None:
        """Write the dual point, and what the run has told so far."""
        state = saved.state
        kept = Kept(
            w=np.empty(0), rows_touched=state.rows_touched, epochs=state.epochs, active=state.beta.size,
            beta=state.beta.copy(),
        )  # fmt: skip
        super().write(mark, Saved(kept, saved.numbers, {}, saved.trace))

    def _restored(self, problem: Any, mark: dict[str, Any], state: Any) -> Saved:
        fresh = Kept(w=np.empty(0), active=problem.n, beta=np.zeros(problem.n))
        header, arrays = self._load(mark, fresh)
        kept = {name.removeprefix("state."): one for name, one in arrays.items()}
        beta = check_state(problem, fresh, kept, header["state"])["beta"]
        low, high = problem.box()
        room = BEYOND * np.maximum(np.abs(low), np.abs(high))
        inside = np.isfinite(beta).all() and ((beta >= low - room) & (beta <= high + room)).all()
        demand(inside, "its dual point is outside the bounds of this problem")
        begun = dataclasses.replace(
            state, beta=beta, f=problem.margins(beta), rows_touched=header["state"]["rows_touched"],
            epochs=header["state"]["epochs"],
        )  # fmt: skip
        measure(problem, begun)
        found = evaluate_kernel(problem, KernelPoint(beta))
        points: dict[str, Evaluation] = {"best": found, "bound": found, "last": found}
        return Saved(begun, header["numbers"], points, Trace(header["trace"]))


def kernel_checkpoint(given: Any, index: int, problems: int) -> KernelCheckpoint | None:
    """The checkpoint of a sub-problem: the file that was named, or one of its own beside it where there are several.

    Parameters
    ----------
    given : path-like, Checkpoint or None
    index, problems : int
        Number of the sub-problem, and of all.
    """
    if given is None:
        return None
    plain = given if isinstance(given, Checkpoint) else Checkpoint(given)
    path = plain.path if problems == 1 else f"{plain.path}.{index}"
    return KernelCheckpoint(path, plain.every, plain.every_steps, seeded=False)


@fingerprint.register(KernelProblem)
def _of_kernel(problem: KernelProblem, solver: Any) -> dict[str, Any]:
    """Sums of the bytes of all that a kernel problem is made of."""
    X = problem.X
    arrays = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
    kernel = problem.kernel
    groups = [float(getattr(side.intercept, "total", 0.0)) for side in problem.sides]
    return {
        "problem": problem.describe(),
        "loss": repr(problem.loss),
        "kernel": [kernel.name, kernel.gamma, kernel.degree, kernel.coef0],
        "C": problem.C,
        "sums": groups,
        "labels": _sum_of(problem.y),
        "rows": [_sum_of(one) for one in arrays],
        "weights": _sum_of(problem.weights),
        "solver": repr(solver),
    }


def _sum_of(array: np.ndarray) -> int:
    return zlib.crc32(np.ascontiguousarray(array).data)
