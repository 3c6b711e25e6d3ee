"""Solvers of other packages (peers), with which a comparison compares.

A peer returns a final model only, so its curve is a ladder of fits from scratch with more and more
epochs. All peers get the same data: a regularised intercept is a constant column that is appended
before the clock starts. Their objective is computed again in float64 from their coefficients, and a
dual point that follows from these bounds the gap (as in :func:`saddlesvm.certify`).
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import SGDClassifier
from sklearn.svm import LinearSVC, LinearSVR

from saddlesvm.lab.dataset import Dataset
from saddlesvm.lab.runs import name_run
from saddlesvm.problem.certificate import Evaluation, Point, evaluate
from saddlesvm.problem.losses import loss_name
from saddlesvm.problem.problem import Problem

TIGHT = 1e-9  # tolerance of a peer, so small that its epochs end the fit
# Losses of scikit-learn's classifiers, and of its regression.
HINGES = ("hinge", "squared_hinge")
TUBES = ("epsilon_insensitive", "squared_epsilon_insensitive")


@dataclass(frozen=True)
class Peer:
    """A solver of another package.

    Attributes
    ----------
    name : str
        The name on the command line and in tables.
    title : str
        The name in notes.
    losses : tuple of str
    make : callable
        Takes a problem, the epochs and a seed, and returns the estimator to fit.
    """

    name: str
    title: str
    losses: tuple[str, ...]
    make: Callable[[Problem, int, int], Any]


def make_linear_svm(problem: Problem, epochs: int, seed: int) -> Any:
    """Return scikit-learn's LinearSVC or LinearSVR: LIBLINEAR's dual coordinate descent."""
    loss = loss_name(problem.loss)
    options: dict[str, Any] = {
        "C": problem.C,
        "loss": loss,
        "dual": True,
        "fit_intercept": False,
        "tol": TIGHT,
        "max_iter": epochs,
        "random_state": seed,
    }
    if loss in HINGES:
        return LinearSVC(**options)
    return LinearSVR(epsilon=getattr(problem.loss, "epsilon", 0.0), **options)


def make_sgd(problem: Problem, epochs: int, seed: int) -> Any:
    """Return scikit-learn's SGDClassifier with alpha = lambda and its "optimal" step sizes."""
    loss = loss_name(problem.loss)
    return SGDClassifier(
        loss="log_loss" if loss == "logistic" else loss,
        alpha=problem.lam,
        fit_intercept=False,
        max_iter=epochs,
        tol=None,
        random_state=seed,
    )


PEERS: dict[str, Peer] = {
    "sklearn": Peer("sklearn", "scikit-learn LinearSVC", (*HINGES, *TUBES), make_linear_svm),
    "sgd": Peer("sgd", "scikit-learn SGDClassifier", (*HINGES, "logistic"), make_sgd),
}


def parse_peers(names: str | Iterable[str]) -> list[Peer]:
    """Return peers by name; "all" stands for every peer.

    Raises
    ------
    ValueError
        A name is unknown.
    """
    if isinstance(names, str):
        names = names.split(",")
    given = [name.strip() for name in names if name.strip()]
    if given == ["all"]:
        return list(PEERS.values())
    for name in given:
        if name not in PEERS:
            raise ValueError(f"unknown peer {name!r}: use one of {', '.join(PEERS)}, or all")
    return [PEERS[name] for name in dict.fromkeys(given)]


def run_peer(
    dataset: Dataset, problem: Problem, peer: Peer, seconds: float, *, seed: int = 0
) -> list[dict[str, object]]:
    """Fit a peer with more and more epochs, and return every fit as a row of the trace."""
    X = add_constant(dataset.X, problem)
    # The first fit in a process loads code, which the comparison does not time.
    fit_peer(peer.make(problem, 1, seed), X, dataset.y)
    spent = 0.0
    rows = []
    for epochs in count_epochs():
        model = peer.make(problem, epochs, seed)
        took = fit_peer(model, X, dataset.y)
        spent += took
        used = int(np.max(model.n_iter_))
        has_converged = used < epochs
        row = describe_weights(dataset, problem, np.ravel(model.coef_))
        row |= {"epoch": float(used), "rows_touched": used * problem.n, "seconds_solving": took}
        row["outcome"] = "rule_met" if has_converged else ""
        rows.append(row | name_run(problem, peer.name, "", seed))
        # The next fit takes about twice as long.
        if has_converged or spent + 2.0 * took > seconds:
            break
    rows[-1]["outcome"] = rows[-1]["outcome"] or "time_limit"
    return rows


def count_epochs() -> Iterator[int]:
    """Yield 1, 2, 5, 10, 20, 50, ... epochs, without end: the clock ends a ladder."""
    for power in itertools.count():
        for factor in (1, 2, 5):
            yield factor * 10**power


def fit_peer(model: Any, X: Any, y: np.ndarray) -> float:
    """Fit a model without its warnings, and return the seconds."""
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    return time.perf_counter() - began


def add_constant(X: Any, problem: Problem) -> Any:
    """Return the rows as peers take them: a regularised intercept becomes a constant column."""
    if not problem.intercept.present:
        return X
    column = np.full((X.shape[0], 1), problem.scale, dtype=X.dtype)
    if sparse.issparse(X):
        return sparse.hstack([X, column], format="csr")
    return np.hstack([X, column])


def describe_weights(dataset: Dataset, problem: Problem, w: np.ndarray) -> dict[str, object]:
    """Return objective, gap and errors of weights that another package found."""
    evaluation = evaluate_weights(problem, w)
    certificate = evaluation.certificate
    train, test = dataset.errors(evaluation.coef, evaluation.intercept)
    return {
        "primal": certificate.primal,
        "dual": certificate.dual,
        "gap": certificate.gap,
        "relative_gap": certificate.relative_gap,
        "seconds_certifying": 0.0,
        "train_error": train,
        "test_error": test,
        "active_rows": problem.n,
    }


def evaluate_weights(problem: Problem, w: np.ndarray) -> Evaluation:
    """Evaluate, in float64, weights that another package found."""
    # The last place is that of the virtual feature.
    full = w if problem.intercept.present else np.append(w, 0.0)
    return evaluate(problem, Point(w=full.astype(np.float64)))
