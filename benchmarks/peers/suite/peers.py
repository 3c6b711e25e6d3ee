"""The solvers of the suite: this project's, and those of other packages, by name.

:mod:`saddlesvm.lab.peers` has adapters for the comparison lab; they time conversion and fit together, and import this
package. Here only the fit is timed, threads are passed on, and a peer may live in another interpreter.
"""

from __future__ import annotations

from functools import partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

import adapters
from task import EPOCHS, TOLERANCES, Peer

ALL = {name: name for name in ("hinge", "squared_hinge", "logistic")}
HINGES = {name: name for name in ("hinge", "squared_hinge")}
OUR_LADDER = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 5e-3, 2e-3, 1e-3, 3e-4, 1e-4, 1e-5, 3e-6, 1e-6)
SKLEARN = ("sklearn", "scikit-learn")
LIBLINEAR = ("liblinear", "liblinear-official")
MULTICORE = ("liblinear", "liblinear-multicore")
DUAL_TYPES = {"hinge": "3", "squared_hinge": "1", "logistic": "7"}
PARALLEL_DUAL_TYPES = {"hinge": "3", "squared_hinge": "1"}
PRIMAL_TYPES = {"squared_hinge": "2", "logistic": "0"}


def own(solver: str) -> Peer:
    """A solver of this project."""
    name = "saddlesvm" if solver == "auto" else f"saddlesvm-{solver}"
    adapt = partial(adapters.saddlesvm, solver=solver)
    return Peer(name, name, "saddlesvm", "saddlesvm", ALL, OUR_LADDER, "tol", adapt, ours=True, compiled=True)


def counting(name: str, title: str, package: tuple[str, str], losses: dict[str, str], adapt, **more) -> Peer:  # type: ignore[no-untyped-def]
    """A peer whose ladder counts epochs."""
    return Peer(name, title, *package, losses, EPOCHS, "epochs", adapt, **more)


def stopping(name: str, title: str, package: tuple[str, str], losses: dict[str, str], adapt, **more) -> Peer:  # type: ignore[no-untyped-def]
    """A peer whose ladder lowers its tolerance."""
    return Peer(name, title, *package, losses, TOLERANCES, "tol", adapt, **more)


def logistic_by(solver: str) -> Peer:
    """scikit-learn's LogisticRegression with one of its solvers."""
    adapt = partial(adapters.logistic_regression, solver=solver)
    title = f"scikit-learn LogisticRegression ({solver})"
    return stopping(f"sklearn-logistic-{solver}", title, SKLEARN, {"logistic": "logistic"}, adapt)


LISTED = (
    *map(own, ("auto", "dcd", "sdca", "pegasos", "newton")),
    counting("sklearn-dual", "scikit-learn LinearSVC, dual", SKLEARN, HINGES, partial(adapters.linear_svc, dual=True)),
    stopping(
        "sklearn-primal", "scikit-learn LinearSVC, primal", SKLEARN, {"squared_hinge": "squared_hinge"},
        partial(adapters.linear_svc, dual=False),
    ),
    counting("sklearn-sgd", "scikit-learn SGDClassifier", SKLEARN,
             {"hinge": "hinge", "logistic": "log_loss"}, adapters.sgd_classifier),
    *map(logistic_by, ("lbfgs", "newton-cholesky", "sag")),
    stopping("liblinear-dual", "LIBLINEAR, dual", LIBLINEAR, DUAL_TYPES, adapters.liblinear),
    stopping("liblinear-primal", "LIBLINEAR, primal", LIBLINEAR, PRIMAL_TYPES, adapters.liblinear),
    stopping(
        "multicore-dual", "LIBLINEAR multi-core, dual", MULTICORE, PARALLEL_DUAL_TYPES,
        partial(adapters.liblinear, multicore=True), parallel_only=True,
    ),
    stopping(
        "multicore-primal", "LIBLINEAR multi-core, primal", MULTICORE, PRIMAL_TYPES,
        partial(adapters.liblinear, multicore=True), parallel_only=True,
    ),
    counting("cyanure", "cyanure", ("cyanure", "cyanure"), {"squared_hinge": "sqhinge", "logistic": "logistic"},
             adapters.cyanure),
    counting("snapml", "Snap ML", ("snapml", "snapml"), ALL, adapters.snapml),
    counting("lightning", "lightning LinearSVC", ("lightning", "sklearn-contrib-lightning"), HINGES,
             adapters.lightning),
    stopping("skglm", "skglm", ("skglm", "skglm"), {"hinge": "hinge", "logistic": "logistic"}, adapters.skglm,
             compiled=True),
    counting("rehline", "ReHLine", ("rehline", "rehline"), {"hinge": "hinge", "squared_hinge": "squared hinge"},
             adapters.rehline),
    counting("vowpalwabbit", "Vowpal Wabbit", ("vowpalwabbit", "vowpalwabbit"),
             {"hinge": "hinge", "logistic": "logistic"}, adapters.vowpal_wabbit),
)  # fmt: skip
PEERS: dict[str, Peer] = {peer.name: peer for peer in LISTED}


def installed_version(peer: Peer) -> str:
    """Version of the package that a peer comes from, in this interpreter; empty where it is not installed."""
    try:
        return version(peer.distribution) if find_spec(peer.module) else ""
    except PackageNotFoundError:
        return ""


if __name__ == "__main__":
    for listed in PEERS.values():
        print(f"{listed.name} {installed_version(listed)}")
