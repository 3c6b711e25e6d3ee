"""Would gap-safe screening pay? The share of rows that it could leave out for good, against what shrinking sets aside.

Strong convexity gives ``||w - w*||^2 <= 2 gap`` in the C form, so a row with ``|y z - 1| > sqrt(2 gap) ||x||`` is on
the same side of its margin at the optimum: its dual variable is known (0 or C for the hinge, 0 for the squared hinge
where ``y z > 1``), and it need not be visited again (Ndiaye, Fercoq, Gramfort and Salmon 2017). Shrinking leaves it out
as well, without proof, and checks at the end. For each gap that a fit passes on its way:

    python benchmarks/screening.py --data DIR
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from common import embedding_like, text_like
from saddlesvm.data import read
from saddlesvm.problem.certificate import evaluate, margins
from saddlesvm.problem.losses import Hinge, Loss, SquaredHinge, loss_name
from saddlesvm.problem.problem import make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers import DCD
from saddlesvm.solvers.base import Budget

GAPS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
MOST_EPOCHS = 300


def shares(name: str, X: object, y: np.ndarray, loss: Loss, C: float) -> None:
    """Print, for each gap, the share of rows that screening and shrinking leave out."""
    problem = make_problem(as_rows(X), y, loss, C=C)
    solver = DCD()
    state = solver.init(problem, 0)
    wanted, fewest = list(GAPS), problem.members.size
    while wanted and state.epochs < MOST_EPOCHS:
        state = solver.step(problem, state, Budget(int(state.active)))
        fewest = min(fewest, state.active)
        evaluation = evaluate(problem, solver.solution(problem, state))
        certificate = evaluation.certificate
        if certificate.relative_gap > wanted[0]:
            continue
        while wanted and certificate.relative_gap <= wanted[0]:
            wanted.pop(0)
        w = np.append(evaluation.coef, 0.0)
        slack = y * margins(problem, w) - 1.0
        reach = np.sqrt(2.0 * max(certificate.gap, 0.0) * problem.norms)
        proven = (slack > reach) | ((slack < -reach) if isinstance(loss, Hinge) else False)
        print(
            f"{name:28s} {loss_name(loss):14s} {C:6g} {state.epochs:7.1f} {certificate.relative_gap:9.1e} "
            f"{100.0 * proven.mean():9.1f} % {100.0 * (1.0 - fewest / problem.members.size):9.1f} %",
            flush=True,
        )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with a9a.bz2 and rcv1-binary.bz2")
    options = parser.parse_args()
    sets = {name: read(options.data / f"{name}.bz2") for name in ("a9a", "rcv1-binary")}
    problems = {name: (table.X, np.where(table.y > 0, 1.0, -1.0)) for name, table in sets.items()}
    problems["sparse 100,000 x 47,000"] = text_like(100_000, 47_000, 75)
    problems["dense 100,000 x 512"] = embedding_like(100_000, 512, np.float32)
    print(f"{'data':28s} {'loss':14s} {'C':>6s} {'epochs':>7s} {'gap':>9s} {'proven':>11s} {'set aside':>11s}")
    for name, (X, y) in problems.items():
        for loss in (Hinge(), SquaredHinge()):
            for C in (0.01, 1.0):
                shares(name, X, y, loss, C)


if __name__ == "__main__":
    main()
