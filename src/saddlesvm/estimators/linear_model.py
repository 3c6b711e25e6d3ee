"""The base of the linear estimators: it trains their sub-problems and keeps the results."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from operator import attrgetter
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from saddlesvm.answers.proof import Proof
from saddlesvm.data.door import Design, check_design
from saddlesvm.estimators.base import Estimator, Training, seed_of
from saddlesvm.estimators.fitted import checked_rows, former_fit
from saddlesvm.estimators.proven import KEPT_HERE, Data, checked_data, proof_of_data, training_data
from saddlesvm.estimators.register import LinearOptions
from saddlesvm.estimators.scale_hint import scale_hint
from saddlesvm.estimators.scikit_learn import FitTasks, installed, set_callbacks
from saddlesvm.fit.outcome import FitResult, Outcome
from saddlesvm.fit.run import Fit
from saddlesvm.multiclass import splits, sub_problems as multiclass
from saddlesvm.multiclass.linear_fit import FitRows, LinearFits, open_rows, rows_of
from saddlesvm.multiclass.splits import GivenStart
from saddlesvm.problem.intercepts import INTERCEPTS, InterceptName, intercept_kind
from saddlesvm.problem.loss import is_cornerless, is_smooth
from saddlesvm.problem.penalties import L1, L2, ScaledPenalty, elastic_net, holds_square, is_penalty
from saddlesvm.problem.problem import resolve_C
from saddlesvm.rows.device import brought
from saddlesvm.rows.files import is_mapped
from saddlesvm.rows.memory_plan import available_memory, demand_room_for_weights, does_not_fit, memory_bytes
from saddlesvm.rows.scores import dense_weights
from saddlesvm.solvers.automatic.auto import Auto
from saddlesvm.solvers.second_order.newton import Newton
from saddlesvm.solvers.sweeps import OverFiles

Top = dict[Any, list[tuple[Any, ...]]]


def strongest(model: Any, n: int, names: Any = None, bounds: bool = False) -> Top:
    """The `n` features that speak most for each class; see :meth:`saddlesvm.LinearSVC.top_features`."""
    W = dense_weights(model.coef_)
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise ValueError(f"n must be a whole number of at least 1; got {n!r}")
    if names is None:
        names = getattr(model, "feature_names_in_", range(W.shape[1]))
    named = [one.item() if isinstance(one, np.generic) else one for one in names]
    if len(named) != W.shape[1]:
        raise ValueError(f"names has {len(named)} entries; the model has {W.shape[1]} features")

    columns = np.stack([W, *map(np.atleast_2d, model.coef_bounds())] if bounds else [W], axis=2)

    def largest(key: np.ndarray, values: np.ndarray) -> list[tuple[Any, ...]]:
        order = np.argsort(-key, kind="stable")[:n]
        return [(named[j], *values[j].tolist()) for j in order.tolist() if key[j] > 0.0]

    if not hasattr(model, "classes_"):
        return {k: largest(np.abs(w), values) for k, (w, values) in enumerate(zip(W, columns, strict=True))}
    classes = model.classes_.tolist()
    if len(W) == 1:
        return {classes[0]: largest(-W[0], columns[0]), classes[1]: largest(W[0], columns[0])}
    if model.multi_class == "ovo":
        found: Top = {}
        for w, values, (a, b) in zip(W, columns, combinations(classes, 2), strict=True):
            found[a, b], found[b, a] = largest(-w, values), largest(w, values)
        return found
    return {label: largest(w, values) for label, w, values in zip(classes, W, columns, strict=True)}


DUAL_BYTES = 12  # of a dual variable in a CSR array
MOST_DUALS = 2**28  # bytes that the dual variables of a smooth loss may take in a fitted model of several problems


def outweighs(posed: Training, n: int) -> bool:
    """Whether a model of n rows goes without dual variables: none is zero, and the weights determine them."""
    count = len(posed.problems)
    if count == 1 or not is_cornerless(posed.loss):
        return False
    return DUAL_BYTES * n * count * multiclass.share_of(posed.problems) > MOST_DUALS


class LinearModel(Estimator, LinearOptions):
    """The base class of the linear estimators: options, the fit of one problem, and its results."""

    _pose: Callable[[Any, Any, int], Training]
    _takes_places: ClassVar[bool] = True  # rows may be in a place of their own
    # what a model has whose estimator offers no such option
    multi_class: str = "ovr"
    class_weight: Any = None
    probability: Any = False
    multilabel_: Any = False
    coef_: Any
    intercept_: Any
    _data: Data | None
    _proof: Proof
    _proven_with: dict[str, Any]
    _phases: list[dict[str, float]]
    _reads_blocks: bool = False  # whether the last fit read its rows block by block
    _watch: Callable[[Fit], None] | None = None  # told of every step of each sub-problem's fit

    @property
    def n_features_selected_(self) -> int:
        """Features with a weight other than zero in any of the sub-problems."""
        check_is_fitted(self)
        return int(dense_weights(self.coef_).any(axis=0).sum())

    def sparsify(self) -> Self:
        """Make a CSR matrix of ``coef_``, which saves memory where most weights are 0; a fit makes an array again."""
        check_is_fitted(self)
        self.coef_ = sparse.csr_array(dense_weights(self.coef_))
        return self

    def densify(self) -> Self:
        """Make an array of ``coef_`` again, after :meth:`sparsify`."""
        check_is_fitted(self)
        if sparse.issparse(self.coef_):
            dense = self.coef_.toarray()
            one_target = not hasattr(self, "classes_") and len(dense) == 1
            self.coef_ = dense[0] if one_target else dense
        return self

    @available_if(lambda estimator: installed())
    def set_callbacks(self, *callbacks: Any) -> Self:
        """Set scikit-learn's callbacks, in place of those set before; needs scikit-learn 1.9.

        Parameters
        ----------
        *callbacks : objects with the methods of ``sklearn.callback.FitCallback``

        Raises
        ------
        TypeError
            One of the objects is no callback.
        """
        set_callbacks(self, callbacks)
        return self

    def top_features(self, n: int = 10, names: Any = None, bounds: bool = False) -> Top:
        """The features with the largest weights, largest first.

        Parameters
        ----------
        n : int, default=10
            Features at most for each class.
        names : sequence of shape (d,), optional
            Of the features, such as a vectorizer's ``get_feature_names_out()``; by default ``feature_names_in_``, or
            numbers.
        bounds : bool, default=False
            Add bounds on the exact optimum's weight, see :meth:`coef_bounds`: (name, weight, lower, upper).

        Returns
        -------
        dict
            A list of (name, weight) for each class or label: the features with the strongest evidence for it. With
            ``multi_class="ovo"``, the key (a, b) has the evidence for a against b. For a regression, the key is the
            number of the target, and weights of both signs are listed. With two classes, and with pairs, evidence for
            the earlier class has negative weights.

        Raises
        ------
        ValueError
            `n` is no positive number, or the names are not those of the features.
        """
        check_is_fitted(self)
        return strongest(self, n, names, bounds)

    def prove(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Prove bounds on the exact optimum of the training problem, from the training data.

        A model that was fitted in this process does this when bounds are first asked for. A loaded or unpickled model,
        or a model fitted to rows in files, has no training data: pass them here. The model keeps the proof (a matrix of
        at most d x d numbers for each sub-problem), not the data.

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
        self._proof = proof_of_data(self, checked_data(self, X, y, sample_weight))
        self._proven_with = self.get_params(deep=False)
        return self

    def decision_bounds(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Bounds on the scores of the exact optimum, rounding counted.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)

        Returns
        -------
        lower, upper : ndarray of the shape of ``decision_function(X)``, or of ``predict(X)`` of a regression
            The score of the exact solution of the training problem lies between them. They are infinite where nothing
            is proven. With ``multi_class="ovo"`` there is one column for each pair.

        Raises
        ------
        ValueError
            Invalid rows, or a model without its training data: see :meth:`prove`.

        Notes
        -----
        The first call takes steps towards the exact optimum. If the gradient does not bound its distance well enough,
        the call also factors a matrix of at most 2,000 features. Later calls compute the scores of the rows, and with a
        factor one triangular solve for each row. Parameters that were changed since the fit count: the bounds are for
        the problem that a new fit would solve.

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
        low, high = self._known().score_bounds(checked_rows(self, X))
        return (low[:, 0], high[:, 0]) if low.shape[1] == 1 else (low, high)

    def coef_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Bounds on the weights of the exact optimum, rounding counted.

        Returns
        -------
        lower, upper : ndarray of the shape of ``coef_``
            A weight is certainly positive where ``lower > 0``, negative where ``upper < 0``, and zero where both are.

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
        bounds = self._known().weight_bounds()
        shape = np.shape(dense_weights(self.coef_) if hasattr(self.coef_, "toarray") else self.coef_)
        return bounds[0][:, :-1].reshape(shape), bounds[1][:, :-1].reshape(shape)

    def _forget_data(self) -> None:
        """Forget the data of an earlier fit, and what was proven of it."""
        for name in KEPT_HERE:
            self.__dict__.pop(name, None)
        self.__dict__.pop("_data_mark", None)

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name not in KEPT_HERE}

    def _known(self) -> Proof:
        """The proof, made where there is none yet."""
        check_is_fitted(self)
        asked = self.get_params(deep=False)  # other parameters pose another problem
        if vars(self).get("_proof") is None or self._proven_with != asked:
            self._proof = proof_of_data(self, training_data(self))
            self._proven_with = asked
        return self._proof

    def _intercept_kind(self) -> InterceptName:
        if not self.fit_intercept:
            return "none"
        if self.intercept not in INTERCEPTS:
            raise ValueError(f"intercept must be 'regularized', 'free' or 'none'; got {self.intercept!r}")
        return intercept_kind(self.intercept).name

    def _penalty(self) -> ScaledPenalty:
        """The penalty of the weights.

        Raises
        ------
        ValueError
            There is no such penalty.
        """
        asked: Any = self.penalty
        if isinstance(asked, str):
            if asked in ("l1", "l2"):
                return ScaledPenalty(L1() if asked == "l1" else L2(), 1.0)
            if asked == "elasticnet":
                return elastic_net(self.l1_ratio)
        elif is_penalty(asked):
            return ScaledPenalty(asked, 1.0)
        raise ValueError(f"penalty must be 'l2', 'l1', 'elasticnet' with l1_ratio, or a penalty object; got {asked!r}")

    def _posed(self) -> dict[str, Any]:
        """C or lambda, and the penalty, as problems take them; see :func:`~saddlesvm.problem.penalties.elastic_net`."""
        penalty, share = self._penalty()
        strength: dict[str, Any] = self._strength()
        if penalty.identity() and share == 1.0:
            return strength
        scaled = {"C": strength["C"] / share} if "C" in strength else {"lam": strength["lam"] * share}
        return {**scaled, "penalty": penalty, "share": share}

    def _solve(
        self, design: Design, posed: Training, tasks: FitTasks | None = None, start: GivenStart | None = None
    ) -> list[FitResult]:
        """Fit every sub-problem, from `start` where one is given, and keep coefficients, certificates and traces."""
        fits, n = self._fits(design, posed, start=start), design.shape[0]
        fits.watch, fits.keeps_duals = self._watch, not outweighs(posed, n)
        if self.callbacks or tasks is not None:
            fits.callbacks_of = lambda sub: [*(self.callbacks or ()), *(tasks.callback(sub) if tasks else ())]
        results = self._shown(fits)
        self._fitted_C = resolve_C(fits.options.get("C"), fits.options.get("lam"), n)[0]
        self._keep(results)
        worst = multiclass.worst_outcome(results)
        if worst.outcome is not Outcome.CERTIFIED:
            unsolved = worst.outcome is not Outcome.INTERRUPTED and max(self.tol, self.gap) > 0.0
            # Rows in files are not read once more for a hint.
            hints = scale_hint(design.X) if unsolved and not is_mapped(design.X) else []
            worst.warn(stacklevel=5, hints=hints)
        return results

    def _fits(
        self, design: Design, posed: Training, ready: FitRows | None = None, start: GivenStart | None = None
    ) -> LinearFits:
        """The fits of the sub-problems, over rows in memory (where they are `ready`, over those) or block by block."""
        (problems, loss, weights), n_jobs = posed, self.n_jobs
        solver, kind = self._made_solver(), self._intercept_kind()
        plain = self._penalty().penalty.identity()
        limits = self._limits(solver)
        if len(problems) > 1 or not design.rows.is_small:
            demand_room_for_weights(design.shape[1] + 1, len(problems))
        given: FitRows
        self.__dict__.pop("_reads_blocks", None)
        if self._goes_by_blocks(design, solver):
            memory = None if self.memory is None else memory_bytes(self.memory)
            self._reads_blocks, n_jobs = True, None
            split = self.multi_class
            own_weights = self.class_weight is not None and splits.has_factors(split, len(problems))
            solver, burden = splits.on_files(
                split, solver, design.X, problems, memory or available_memory() // 2, own_weights
            )
            given = open_rows(
                design, burden, memory, intercept=kind, scale=float(self.intercept_scaling), checkpoint=self.checkpoint,
                most_rows=getattr(solver, "rows", 0),
            )  # fmt: skip
        else:
            jobs = multiclass.workers(len(problems), n_jobs)
            given = ready or rows_of(design, kind, float(self.intercept_scaling), jobs, n_jobs)
        former = start or vars(self).pop("_begin_at", None) or (former_fit(self) if self.warm_start else None)
        asked = self.max_iter is not None or self.checkpoint is not None or self.tol == 0.0
        alone = asked or self.warm_start or former is not None or self.keep == "last" or self.gap > 0.0
        first_steps = self.solver in ("auto", "dcd") and hasattr(self, "classes_") and self.multi_class == "ovr"
        return LinearFits(
            problems=problems,
            solver=solver,
            limits=limits,
            seed=seed_of(self.random_state),
            n_jobs=n_jobs,
            rows=given,
            loss=loss,
            options={"weights": weights, "intercept": kind, **self._posed()},
            former=former,
            checkpoint=self.checkpoint,
            seeded=isinstance(self.random_state, (int, np.integer)),
            may_share=not asked,
            may_start_together=not alone and first_steps and plain,
        )

    def _goes_by_blocks(self, design: Design, solver: Any = None) -> bool:
        """Whether the rows are read block by block, because they do not fit into memory.

        Raises
        ------
        ValueError
            The rows do not fit, but the solver or the way to split classes cannot read blocks.
        """
        if design.placed:
            return False
        solver = solver or self._made_solver()
        memory = None if self.memory is None else memory_bytes(self.memory)
        asked = isinstance(solver, OverFiles)
        fits = memory is None and design.rows.is_small
        if not asked and (fits or not does_not_fit(design.X, memory)):
            return False
        missing = self._missing_for_blocks(solver)
        if missing and (asked or memory is not None):
            raise ValueError(f"training block by block (memory=, or solver='blocks') {missing}")
        return not missing

    def _missing_for_blocks(self, solver: Any) -> str:
        """What the options would have to be for rows to be read block by block; empty where they are."""
        split, penalty = self.multi_class, self._penalty().penalty
        if split in splits.JOINT:
            return ""
        newton = isinstance(solver, Newton)
        anywhere = isinstance(solver, (Auto, OverFiles)) or solver.over_passes
        if not anywhere and not (newton and is_smooth(self._check_options())):
            return f"needs solver='auto', 'blocks' or 'newton' (it is for smooth losses); got solver={self.solver!r}"
        if newton and not penalty.identity():
            return f"takes penalty={self.penalty!r} with solver='auto' or 'blocks', not 'newton'"
        if not holds_square(penalty):
            return (
                "needs a square in the penalty: penalty='l2', or 'elasticnet' with an l1_ratio below 1; got the l1 norm"
            )
        return ""

    def _keep(self, results: list[FitResult]) -> None:
        for name in KEPT_HERE:
            self.__dict__.pop(name, None)
        kept = map(attrgetter("coef", "intercept", "alpha", "phases"), results)
        coefs, intercepts, duals, of_each = zip(*kept, strict=True)
        self.coef_, self.intercept_, self._phases = np.vstack(coefs), np.hstack(intercepts), list(of_each)
        if duals[0].size:
            alone = len(duals) == 1 and not sparse.issparse(duals[0])
            self.dual_coef_ = duals[0] if alone else multiclass.stacked_duals(duals)
        else:
            self.__dict__.pop("dual_coef_", None)
        self.phases_: dict[str, float] = {}
        for phases in self._phases:
            for phase, spent in phases.items():
                self.phases_[phase] = self.phases_.get(phase, 0.0) + spent
        self._set_outcome(results)

    def _scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        coef = self.coef_ if sparse.issparse(self.coef_) else brought(self.coef_)
        return check_design(X, self, repeats=True).scores(coef, brought(self.intercept_))
