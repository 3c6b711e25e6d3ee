"""The base of the linear estimators: their options, and a face of scikit-learn over a fit.

The estimator holds what its fit left behind (:class:`~saddlesvm.estimators.fitted.Fitted`), shows
it in public attributes, and forwards to functions of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from saddlesvm.data.door import check_design
from saddlesvm.estimators import exact_optimum
from saddlesvm.estimators.automatic_C import AUTOMATIC, fit_automatically, parse_automatic
from saddlesvm.estimators.base import (
    COMMON,
    Estimator,
    Labels,
    Training,
    option_of,
    restore_on_error,
)
from saddlesvm.estimators.C_range import GAP
from saddlesvm.estimators.certified_path import CertifiedPath
from saddlesvm.estimators.fitted import Fitted, fetch_weights, fitted_value, former_fit
from saddlesvm.estimators.on_cluster import fit_on_cluster, is_distributed
from saddlesvm.estimators.path_search import certified_path
from saddlesvm.estimators.proof_files import write_proof
from saddlesvm.estimators.solve import fit_rows
from saddlesvm.fit.checkpoint import Checkpoint
from saddlesvm.multiclass.splits import check_start
from saddlesvm.problem.intercepts import InterceptName
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.penalties import L1, L2, Penalty, ScaledPenalty, elastic_net
from saddlesvm.rows.array_libraries import copy_to_device, is_on_device
from saddlesvm.rows.scores import dense_weights
from saddlesvm.runtime import allowed
from saddlesvm.runtime.allowed import NUMBER, SCALING, Allowed, either, names
from saddlesvm.runtime.data_types import LabelsLike, RowsLike
from saddlesvm.runtime.option_names import INTERCEPTS, PENALTY_NAMES

if TYPE_CHECKING:
    from saddlesvm.runtime.option_names import (
        ClusterSolver,
        DualOption,
        Intercept,
        Keep,
        PenaltyName,
        SolverName,
    )
    from saddlesvm.solvers.base import SolverBase

PENALTIES: dict[str, Penalty] = {"l1": L1(), "l2": L2()}

# The values that the parameters of every linear estimator allow, beside the common ones.
LINEAR_OPTIONS = {
    "penalty": names(*PENALTY_NAMES),
    "l1_ratio": allowed.L1_RATIO,
    "C": either(allowed.STRENGTH, AUTOMATIC, allowed.NOTHING),
    "lam": allowed.LAMBDA,
    "random_state": allowed.SEED,
    "dual": allowed.DUAL,
    "fit_intercept": allowed.TRUTH,
    "intercept": names(*INTERCEPTS),
    "intercept_scaling": SCALING,
    "memory": allowed.MEMORY,
    "warm_start": allowed.TRUTH,
    "checkpoint": either(
        allowed.instances("the name of a file, a Checkpoint", str, os.PathLike, Checkpoint),
        allowed.NOTHING,
    ),
}

Ends = tuple[float, float]  # the smallest and the largest C, or lambda, of a path
# For each class, or target: (name, weight), or (name, weight, lower, upper), strongest first.
Top = dict[Any, list[tuple[Any, ...]]]


def find_strongest(model: Estimator, n: int, names: Any = None, bounds: bool = False) -> Top:
    """Return the `n` strongest features; see :meth:`saddlesvm.LinearSVC.top_features`."""
    W = dense_weights(model.coef_)
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise ValueError(f"n must be a whole number of at least 1; got {n!r}")
    if names is None:
        names = getattr(model, "feature_names_in_", range(W.shape[1]))
    # Names as Python's own text and numbers.
    plain_names = [name.item() if isinstance(name, np.generic) else name for name in names]
    count = len(plain_names)
    if count != W.shape[1]:
        raise ValueError(f"names has {count} entries; the model has {W.shape[1]} features")

    # Beside each weight its bounds: shape (vectors, d, 1 or 3).
    shown = [W]
    if bounds:
        shown.extend(map(np.atleast_2d, model.coef_bounds()))
    columns = np.stack(shown, axis=2)

    def largest(key: np.ndarray, values: np.ndarray) -> list[tuple[object, ...]]:
        """Return (name, *values) of the n features with the largest positive keys."""
        order = np.argsort(-key, kind="stable")[:n]
        return [(plain_names[j], *values[j].tolist()) for j in order.tolist() if key[j] > 0.0]

    # Targets of a regression: weights of both signs. Two classes: negative weights speak for the
    # earlier one. Pairs likewise; or each class against the rest.
    vectors = list(zip(W, columns, strict=True))
    if not hasattr(model, "classes_"):
        return {k: largest(np.abs(w), values) for k, (w, values) in enumerate(vectors)}
    classes = model.classes_.tolist()
    if len(W) == 1:
        return {classes[0]: largest(-W[0], columns[0]), classes[1]: largest(W[0], columns[0])}
    if option_of(model, "multi_class") == "ovo":
        found: Top = {}
        for (w, values), (a, b) in zip(vectors, combinations(classes, 2), strict=True):
            found[a, b] = largest(-w, values)
            found[b, a] = largest(w, values)
        return found
    by_class = zip(classes, vectors, strict=True)
    return {label: largest(w, values) for label, (w, values) in by_class}


@dataclass(kw_only=True, eq=False, repr=False)
class LinearModel(Estimator):
    """The base class of the linear estimators; LinearSVC describes the options."""

    penalty: PenaltyName = "l2"
    l1_ratio: float = 0.15
    dual: DualOption = "auto"
    tol: float = 1e-4
    lam: float | None = None
    fit_intercept: bool = True
    intercept: Intercept = "regularized"
    intercept_scaling: float = 1.0
    solver: SolverName | ClusterSolver | SolverBase = "auto"
    max_iter: int | None = None
    max_time: float | None = None
    keep: Keep = "best"
    gap: float = 0.0
    warm_start: bool = False
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0
    callbacks: Sequence[Any] | None = None
    checkpoint: Any = None
    memory: int | str | None = None

    _allowed: ClassVar[dict[str, Allowed]] = COMMON | LINEAR_OPTIONS
    # Whether rows may be in a place of their own, and on a cluster, which poses problems itself.
    _takes_places: ClassVar[bool] = True
    _takes_clusters: ClassVar[bool] = False

    @restore_on_error
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        coef_init: ArrayLike | None = None,
        intercept_init: ArrayLike | None = None,
    ) -> Self:
        """Train to the relative gap `tol`.

        Parameters
        ----------
        X : array-like, sparse matrix, Store, Dask array or DataFrame
            Shape (n, d). On a cluster, X may be a list of delayed blocks or futures, too; y is then
            such a list.
        y : array-like or Dask array of shape (n,) or (n, k), or sparse indicator matrix (n, k)
            Labels, with at least two different values; of a regression the targets. By default the
            labels of the store. Each column of an indicator matrix of 0 and 1 is a label, and each
            column of targets a target: k problems over the same rows, with a certificate each.
        sample_weight : array-like of shape (n,), optional
            Non-negative row weights. A class whose rows all weigh 0 is kept, and hardly ever
            predicted; a free intercept and joint machines need a positive weight in each class. A
            weight of 2 equals the row twice. Without `y`, the default is the weights of the store.
        coef_init : array-like of the shape of ``coef_``, optional
            Initial weights. Dual solvers begin at the sub-gradients of their margins. Pegasos
            begins at the weights as published: its first iteration computes margins with them, and
            multiplies them by zero, unless its steps begin later (see :class:`~saddlesvm.Pegasos`).
        intercept_init : array-like of the shape of ``intercept_``, optional
            Initial intercepts; zero by default.

        Raises
        ------
        ValueError
            Invalid data or options. The message names what was found and what is allowed.
        ClusterLostError
            The scheduler is lost, or there is no worker; ``error.model`` is the best model so far.

        Warns
        -----
        NotCertifiedWarning
            A limit was reached before the requested gap was proven.
        """
        starts = {"coef_init": coef_init, "intercept_init": intercept_init}
        # Rows on a cluster.
        if not isinstance(X, np.ndarray) and is_distributed(X):
            return self._hold(fit_on_cluster(self._options(), X, y, sample_weight, starts))

        # C="auto" chooses C itself, and takes no starting point.
        start: Any = None
        if any(given is not None for given in starts.values()):
            start = check_start(*starts.values())
        automatic = None if isinstance(self.C, NUMBER) else parse_automatic(self.C)
        if automatic is not None:
            if start is not None:
                raise ValueError("coef_init is for a given C, not for C='auto'")
            options = self._options()
            return self._hold(fit_automatically(options, automatic, X, y, sample_weight))

        # An ordinary fit, from the last one with warm_start; weights stay on the rows' device.
        if start is None and self.warm_start and self._fitted is not None:
            start = former_fit(fitted_value(self))
        fitted = fit_rows(self._options(), X, y, sample_weight, start=start)
        if not isinstance(X, np.ndarray) and is_on_device(X):
            return self._hold_on_device(fitted, X)
        return self._hold(fitted)

    @property
    def n_features_selected_(self) -> int:
        """The number of features with a weight other than zero in any of the sub-problems."""
        check_is_fitted(self)
        return int(dense_weights(self.coef_).any(axis=0).sum())

    def top_features(
        self, n: int = 10, names: Iterable[object] | None = None, bounds: bool = False
    ) -> Top:
        """The features with the largest weights, largest first.

        Parameters
        ----------
        n : int, default=10
            Features at most for each class.
        names : sequence of shape (d,), optional
            Of the features, such as a vectorizer's ``get_feature_names_out()``; by default
            ``feature_names_in_``, or numbers.
        bounds : bool, default=False
            Add bounds on the exact optimum's weight, see :meth:`coef_bounds`: (name, weight, lower,
            upper).

        Returns
        -------
        dict
            A list of (name, weight) for each class or label: the features with the strongest
            evidence for it. With ``multi_class="ovo"``, the key (a, b) has the evidence for a
            against b. For a regression, the key is the number of the target, and weights of both
            signs are listed. With two classes, and with pairs, evidence for the earlier class has
            negative weights.

        Raises
        ------
        ValueError
            `n` is no positive number, or the names do not fit the features.
        """
        check_is_fitted(self)
        return find_strongest(self, n, names, bounds)

    def prove(
        self, X: RowsLike, y: LabelsLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Prove bounds on the exact optimum of the training problem, from the training data.

        A model that was fitted in this process does this when bounds are first asked for. A loaded
        or unpickled model, or a model fitted to rows in files, has no training data: pass them
        here. The model keeps the proof (a matrix of at most d x d numbers for each sub-problem),
        not the data.

        Parameters
        ----------
        X, y, sample_weight
            The data that the model was fitted to.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            The data do not match the model.
        """
        fitted = fitted_value(self)
        self._fitted = exact_optimum.prove_fit(
            fitted, exact_optimum.checked_data(fitted, X, y, sample_weight)
        )
        return self

    def decision_bounds(self, X: RowsLike) -> tuple[np.ndarray, np.ndarray]:
        """Bounds on the scores of the exact optimum, rounding counted.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)

        Returns
        -------
        lower, upper : ndarray of the shape of ``decision_function(X)``
            The score of the exact solution of the training problem lies between them; for a
            regression, they have the shape of ``predict(X)``. They are infinite if nothing is
            proven. With ``multi_class="ovo"`` there is a column for each pair.

        Raises
        ------
        ValueError
            Invalid rows, or a model without its training data: see :meth:`prove`.

        Notes
        -----
        The first call takes steps towards the exact optimum. If the gradient does not bound its
        distance well enough, the call also inverts a matrix of at most 2,500 features. Later calls
        compute the scores of the rows, and with a matrix a product for each row. The
        bounds are for the problem of the fit: parameters that are changed afterwards count from the
        next fit on.

        Examples
        --------
        >>> from saddlesvm import LinearSVC
        >>> from saddlesvm.data import load_bundled
        >>> notes = load_bundled("banknote")
        >>> model = LinearSVC(random_state=0).fit(notes.X, notes.y)
        >>> lower, upper = model.decision_bounds(notes.X)
        >>> bool((upper - lower).max() < 1e-3)
        True
        """
        return exact_optimum.decision_bounds(self._prove(), X)

    def coef_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Bounds on the weights of the exact optimum, rounding counted.

        Returns
        -------
        lower, upper : ndarray of the shape of ``coef_``
            A weight is certainly positive if ``lower > 0``, negative if ``upper < 0``, and
            zero if both are.

        Raises
        ------
        ValueError
            A model without its training data: see :meth:`prove`.

        Examples
        --------
        >>> from saddlesvm import LinearSVC
        >>> from saddlesvm.data import load_bundled
        >>> notes = load_bundled("banknote")
        >>> model = LinearSVC(random_state=0).fit(notes.X, notes.y)
        >>> lower, upper = model.coef_bounds()
        >>> (upper < 0).tolist()
        [[True, True, True, True]]
        """
        return exact_optimum.coef_bounds(self._prove())

    def proof(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        read: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return a proof that the model is near its optimum, to write as JSON.

        Anybody can check it without this package.
        It contains the problem, the weights, the multipliers that the weights do not determine, a
        hash of the data, and two claims: an upper bound on the objective of the model, and a lower
        bound on the objective of every model. :mod:`saddlesvm.checker` computes the claims in
        fractions. Its file needs only Python: ``python checker.py proof.json DATA``.

        Parameters
        ----------
        X : array-like, sparse matrix or Store of shape (n, d)
            The training rows.
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
        read : dict, optional
            How the checker reads the data file, instead of guessing: `label` (number of the column,
            from 0), `drop` (numbers of other columns), `header` (True if there is a header),
            `zero_based` (whether indices count from 0).

        Returns
        -------
        dict

        Raises
        ------
        ValueError
            The data do not fit the model, or there are no proofs for its loss or ``multi_class``.
            Proofs exist for every loss of the package, with "ovr", "ovo" and "multinomial".

        Examples
        --------
        >>> from saddlesvm import LinearSVC
        >>> from saddlesvm.data import load_bundled
        >>> notes = load_bundled("banknote")
        >>> model = LinearSVC(loss="hinge", random_state=0).fit(notes.X, notes.y)
        >>> proof = model.proof(notes.X, notes.y)
        >>> high, low, gap = map(float.fromhex, proof["claim"])
        >>> gap <= model.certificate_.gap
        True
        """
        return write_proof(fitted_value(self), X, y, sample_weight, read)

    def path(
        self,
        X: Any,
        y: Any = None,
        *,
        C: Ends | None = None,
        lam: Ends | None = None,
        gap: float = GAP,
        sample_weight: ArrayLike | None = None,
    ) -> CertifiedPath:
        """Return a model and a proof for *every* C between two ends, from a handful of fits.

        Parameters
        ----------
        X : array-like, sparse matrix or Store of shape (n, d)
        y : array-like of shape (n,)
        C : tuple of two floats, optional
            The smallest and the largest C; by default 1e-3 and 1e3, and with an l1 norm in the
            penalty the C at which the first weight appears, and a thousand times this C.
        lam : tuple of two floats, optional
            The same in lambda; certificates are then in the lambda form.
        gap : float, default=1e-2
            The relative gap to prove for every C.
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        CertifiedPath

        Raises
        ------
        ValueError
            Invalid data or options, or ends both in C and in lambda.

        Notes
        -----
        The options of this estimator count, but for C and `tol`; it is not fitted. With `n_jobs`,
        fits run in parallel. A path takes no checkpoint.
        """
        # Lasso.path of scikit-learn is called on the class.
        if not isinstance(self, LinearModel):
            raise TypeError("path is a method of an estimator: LinearSVC().path(X, y)")
        return certified_path(self._options(), X, y, C, lam, gap, sample_weight)

    def _check_options(self) -> Loss:
        """Check every option that does not depend on the data, and return the loss."""
        super()._check_options()
        made: Loss = self._make_loss()
        return made

    def _make_loss(self) -> Any:
        """Return the loss of the options; an estimator may override `_check_options`."""
        raise NotImplementedError(f"{type(self).__name__} has no _make_loss")

    def _pose(
        self, y: LabelsLike, sample_weight: ArrayLike | None, n: int, labels: Labels | None = None
    ) -> Training:
        """Return the sub-problems of n rows with these labels; a fitted model knows `labels`."""
        raise NotImplementedError(f"{type(self).__name__} has no _pose")

    def _intercept_kind(self) -> InterceptName:
        return self.intercept if self.fit_intercept else "none"

    def _penalty(self) -> ScaledPenalty:
        """Return the penalty of the weights."""
        if self.penalty == "elasticnet":
            return elastic_net(self.l1_ratio)
        return ScaledPenalty(PENALTIES[self.penalty], 1.0)

    def _problem_options(self) -> dict[str, Any]:
        """Return C or lambda, and the penalty, as problems take them.

        Solvers work on the objective divided by `share`, so that C / share is their C: see
        :func:`~saddlesvm.problem.penalties.elastic_net`.
        """
        penalty, share = self._penalty()
        strength: dict[str, Any] = self._strength()
        if isinstance(penalty, L2) and share == 1.0:
            return strength
        options: dict[str, Any] = {"penalty": penalty, "share": share}
        if "C" in strength:
            options["C"] = strength["C"] / share
        else:
            options["lam"] = strength["lam"] * share
        return options

    def _hold_on_device(self, fitted: Fitted, device: object) -> Self:
        """Hold a fit, and send its weights to the device of an array."""
        self._hold(fitted)
        self.coef_: np.ndarray = copy_to_device(self.coef_, device)
        self.intercept_: np.ndarray = copy_to_device(self.intercept_, device)
        return self

    def _prove(self) -> Fitted:
        """Return the fit with its proof, which is made once."""
        self._fitted = exact_optimum.prove_fit(fitted_value(self))
        return self._fitted

    def _scores(self, X: RowsLike) -> np.ndarray:
        """Return the score of each row in each sub-problem, shape (n, k)."""
        check_is_fitted(self)
        design = check_design(X, self, repeats=True)
        return design.scores(fetch_weights(self.coef_), fetch_weights(self.intercept_))
