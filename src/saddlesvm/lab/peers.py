"""Solvers of other packages (peers), behind an adapter.

A peer returns a final model only, so its curve is a ladder of fits from scratch with more and more
epochs. All peers get the same data: a regularised intercept is a constant column that is appended
before the clock starts. Their objective is computed again in float64 from their coefficients, and a
dual point that follows from these bounds the gap (as in :func:`saddlesvm.certify`).
"""

from __future__ import annotations

import importlib.util
import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.lab.dataset import Dataset
from saddlesvm.problem.loss import Loss, loss_name
from saddlesvm.problem.problem import Problem

LADDER = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)  # epochs
TIGHT = 1e-9  # tolerance of a peer, so small that its epochs end the fit


@dataclass(frozen=True, eq=False)
class PeerSetting:
    """The problem in the form that a peer takes.

    Attributes
    ----------
    X : ndarray or CSR matrix
        With the constant column of a regularised intercept as the last column.
    y : ndarray
    loss : Loss
    C : float
    n : int
    """

    X: Any
    y: np.ndarray
    loss: Loss
    C: float
    n: int

    @property
    def lam(self) -> float:
        """lambda = 1 / (n C)."""
        return 1.0 / (self.n * self.C)


@dataclass(frozen=True)
class Rung:
    """A fit of a peer.

    Attributes
    ----------
    epochs : float
        NaN if the peer does not report them.
    seconds : float
    w : ndarray
    converged : bool
        Whether the peer reports convergence.
    """

    epochs: float
    seconds: float
    w: np.ndarray
    converged: bool


@dataclass(frozen=True)
class Peer:
    """A solver of another package.

    Attributes
    ----------
    name : str
        The name on the command line and in tables.
    title : str
        The name in reports.
    module : str
        The module that must be importable.
    losses : dict of str to str
        Our name of each loss, and the peer's name.
    fit : callable
        It takes the setting, the peer's name of the loss, epochs and a seed, and returns the
        weights and the epochs used.
    """

    name: str
    title: str
    module: str
    losses: dict[str, str]
    fit: Callable[[PeerSetting, str, int, int], tuple[np.ndarray, float]]

    @property
    def is_installed(self) -> bool:
        """Whether the peer's package can be imported."""
        return importlib.util.find_spec(self.module) is not None

    def climb(
        self, setting: PeerSetting, seed: int, seconds: float, ladder: tuple[int, ...] = LADDER
    ) -> Iterator[Rung]:
        """Fit with more and more epochs, until the peer converges or the time is spent."""
        spent = 0.0
        loss = self.losses[loss_name(setting.loss)]
        for epochs in ladder:
            began = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                w, used = self.fit(setting, loss, epochs, seed)
            took = time.perf_counter() - began
            spent += took
            converged = used < epochs
            yield Rung(float(used), took, np.asarray(w, dtype=np.float64).ravel(), converged)
            # The next fit takes about twice as long.
            if converged or spent + 2.0 * took > seconds:
                return


def fit_linear_svc(
    setting: PeerSetting, loss: str, epochs: int, seed: int
) -> tuple[np.ndarray, float]:
    """Fit scikit-learn's LinearSVC (LIBLINEAR's dual coordinate descent)."""
    from sklearn.svm import LinearSVC

    model = LinearSVC(
        C=setting.C,
        loss=loss,
        dual=True,
        fit_intercept=False,
        tol=TIGHT,
        max_iter=epochs,
        random_state=seed,
    )
    model.fit(setting.X, setting.y)
    return model.coef_, float(model.n_iter_)


def fit_linear_svr(
    setting: PeerSetting, loss: str, epochs: int, seed: int
) -> tuple[np.ndarray, float]:
    """Fit scikit-learn's LinearSVR."""
    from sklearn.svm import LinearSVR

    width = float(getattr(setting.loss, "epsilon", 0.0))
    model = LinearSVR(
        C=setting.C,
        loss=loss,
        epsilon=width,
        fit_intercept=False,
        tol=TIGHT,
        max_iter=epochs,
        random_state=seed,
    )
    model.fit(setting.X, setting.y)
    return model.coef_, float(np.max(model.n_iter_))


def fit_sgd(setting: PeerSetting, loss: str, epochs: int, seed: int) -> tuple[np.ndarray, float]:
    """Fit scikit-learn's SGDClassifier with alpha = lambda and its "optimal" step sizes."""
    from sklearn.linear_model import SGDClassifier

    model = SGDClassifier(
        loss=loss,
        alpha=setting.lam,
        fit_intercept=False,
        max_iter=epochs,
        tol=None,
        average=False,
        random_state=seed,
    )
    model.fit(setting.X, setting.y)
    return model.coef_, float(epochs)


def fit_liblinear(
    setting: PeerSetting, loss: str, epochs: int, seed: int
) -> tuple[np.ndarray, float]:
    """Fit LIBLINEAR's own Python package, with a tolerance instead of epochs."""
    from liblinear.liblinearutil import parameter, problem, train

    matrix = setting.X
    if not sparse.issparse(matrix):
        matrix = np.ascontiguousarray(matrix)
    options = parameter(f"-s {loss} -c {setting.C!r} -e {1.0 / epochs**2!r} -q")
    model = train(problem(setting.y, matrix), options)
    # LIBLINEAR's first label is the positive side.
    sign = 1.0 if model.get_labels()[0] > 0 else -1.0
    return sign * np.array(model.w[: setting.X.shape[1]]), math.nan


# Our names of losses, and the peer's names.
HINGES = {"hinge": "hinge", "squared_hinge": "squared_hinge"}
LIBLINEAR_TYPES = {"hinge": "3", "squared_hinge": "1", "logistic": "7"}
TUBES = {name: name for name in ("epsilon_insensitive", "squared_epsilon_insensitive")}
PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        Peer("sklearn", "scikit-learn LinearSVC", "sklearn", HINGES, fit_linear_svc),
        Peer("sklearn-svr", "scikit-learn LinearSVR", "sklearn", TUBES, fit_linear_svr),
        Peer(
            "sgd",
            "scikit-learn SGDClassifier",
            "sklearn",
            HINGES | {"logistic": "log_loss"},
            fit_sgd,
        ),
        Peer("liblinear", "LIBLINEAR", "liblinear", LIBLINEAR_TYPES, fit_liblinear),
    )
}


def parse_peers(names: str | list[str] | tuple[str, ...]) -> list[Peer]:
    """Return peers by name; "all" stands for every peer that is installed.

    Raises
    ------
    ValueError
        A name is unknown, or a package is not installed.
    """
    if isinstance(names, str):
        names = [part.strip() for part in names.split(",")]
    given = [name for name in dict.fromkeys(names) if name]
    if given == ["all"]:
        return [peer for peer in PEERS.values() if peer.is_installed]
    for name in given:
        if name not in PEERS:
            raise ValueError(f"unknown peer {name!r}: use one of {', '.join(PEERS)}, or all")
        if not PEERS[name].is_installed:
            raise ValueError(
                f"the peer {name!r} needs the package {PEERS[name].module!r}, which is not "
                "installed: install it, or leave the peer out"
            )
    return [PEERS[name] for name in given]


def setting_of(dataset: Dataset, problem: Problem) -> PeerSetting:
    """Return the problem as peers take it; a regularised intercept becomes a constant column.

    Raises
    ------
    ValueError
        The intercept is free, which the peers cannot all express.
    """
    if problem.intercept.constrained:
        raise ValueError("peers are compared with the intercepts 'none' and 'regularized' only")
    X = dataset.X
    if problem.intercept.present:
        column = np.full((X.shape[0], 1), problem.scale, dtype=X.dtype)
        if sparse.issparse(X):
            X = sparse.hstack([X, column], format="csr")
        else:
            X = np.hstack([X, column])
    return PeerSetting(X, dataset.y, problem.loss, problem.C, problem.n)


def full_weights(problem: Problem, w: np.ndarray) -> np.ndarray:
    """Return a peer's weights with a place for the virtual feature, shape (d + 1,)."""
    if problem.intercept.present:
        return w
    return np.append(w, 0.0)
