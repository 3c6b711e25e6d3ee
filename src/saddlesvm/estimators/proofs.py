"""Proofs to hand over: a model, what its bound needs, and the claims, for :mod:`saddlesvm.checker` to check.

The rows that a model has after it forgot some, or learned more: the data as they are, and the numbers of the rows.

Rows are forgotten without a copy of the others. A model in memory keeps its problems over all rows of the fit, whose
members become fewer, and what passes over them have found (:mod:`saddlesvm.answers.steps`). The remaining rows are
put together where something asks for them, and after many of them are gone.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted

from saddlesvm import checker
from saddlesvm.answers.steps import KeptPoint, can_come_nearer
from saddlesvm.data import inputs
from saddlesvm.data.door import has_columns
from saddlesvm.estimators.automatic_C import made_automatic
from saddlesvm.estimators.proven import Data, problems_of, weights_of
from saddlesvm.multiclass.linear_fit import End, MemoryRows
from saddlesvm.multiclass.splits import SPLITS, each_class
from saddlesvm.multiclass.sub_problems import SubProblem
from saddlesvm.problem.certificate import Evaluation, Point, evaluate
from saddlesvm.problem.intercepts import intercept_kind
from saddlesvm.problem.loss import Loss, bounds, is_smooth, loss_name
from saddlesvm.problem.multinomial import MultinomialProblem
from saddlesvm.problem.penalties import holds_square
from saddlesvm.problem.problem import Problem, is_classification
from saddlesvm.problem.responses import best_scale
from saddlesvm.problem.rounding import UNIT
from saddlesvm.problem.sums import dual_of_margins, dual_weights, margins
from saddlesvm.rows import layouts as rows
from saddlesvm.rows.layouts import as_rows
from saddlesvm.rows.passes import InMemory
from saddlesvm.rows.scores import dense_weights
from saddlesvm.solvers.automatic.auto import FINISH, Auto

FORMAT = 1  # of proof files
SAME = 1e-10  # a multiplier so near to the slope of its loss, relative to the largest, is not listed
INSIDE = 1.0 - 2.0**-50  # share of its bound that a listed multiplier has at most: bounds in fractions differ by less
SLACKS = (2.0**-40, 2.0**-30, 2.0**-20)  # shares that pulls stay inside an l1 norm, one after the other
CORNER = 1e-9  # distance of a margin from a corner, relative to 1 or itself, within which its multiplier is listed
LOOSER = 1.5  # a gap without listed multipliers may be so many times that with them
SPREAD = 2.0**-44  # share of all rows' weights that a row has of each class, at least, to take up a rest of their sums
CENTRING = 100  # steps of Newton's method for the offsets of multinomial regression's dual point
AS_TUBE = {"absolute": "epsilon_insensitive", "squared": "squared_epsilon_insensitive"}  # of width zero
OPTIONS = ("width", "epsilon", "delta", "tau")

Proof = dict[str, Any]
Multipliers = dict[str, list[str]]
Rows = list[dict[int, float]]


class Posed(NamedTuple):
    """The parts of a proof: the rows with their virtual feature, the problems, and the weights of the model.

    Attributes
    ----------
    X : Dense or CSR
    training : Training
        Of :mod:`saddlesvm.estimators.linear_model`.
    options : dict
        Of the problems.
    W : ndarray of shape (n_problems, d + 1)
    duals : CSR array, ndarray or None
    """

    X: Any
    training: Any
    options: dict[str, Any]
    W: np.ndarray
    duals: Any


def prove(model: Any, X: Any, y: Any = None, sample_weight: Any = None, read: dict[str, Any] | None = None) -> Proof:
    """A proof that a fitted linear model is near its optimum; :meth:`LinearSVC.proof` says what of."""
    check_is_fitted(model)
    X, y, sample_weight = inputs.parts_of(X, y, sample_weight)
    _refuse(model, y)
    design = inputs.as_design(X)
    if design.shape[1] != model.n_features_in_:
        raise ValueError(f"X has {design.shape[1]} features; the model has {model.n_features_in_}")
    training = model.training_problems(y, sample_weight, design.shape[0])
    stated = _stated_problem(model, training.loss, design.shape[1])
    posed = _posed(model, design, training)
    table, labels = rows_of(design), labels_of(y, stated["text"])
    for slack in SLACKS:
        parts = [_part(sub, posed, slack) for sub in training.problems]
        try:
            claim = _claim(*checker.proven(stated, parts, table, labels))
            break
        except ValueError:  # rounding brought a pull beyond what an l1 norm allows
            if slack == SLACKS[-1]:
                raise
    proof = {"data": checker.fingerprint(table, labels), "problem": stated, "parts": parts, "claim": claim}
    seal = json.dumps([proof[name] for name in ("data", "problem", "parts", "claim")], sort_keys=True)
    return {"proof": FORMAT, "read": read or {}, **proof, "seal": hashlib.sha256(seal.encode()).hexdigest()}


def verified(proof: Any, X: Any, y: Any) -> str:
    """A sentence that says what a proof proves about these data.

    Raises
    ------
    ValueError
        It proves nothing; the message says why.
    """
    try:
        return checker.check(proof, rows_of(inputs.as_design(X)), labels_of(y, bool(proof["problem"]["text"])))
    except Exception as error:  # whatever is wrong with it, it proves nothing
        raise ValueError(f"{type(error).__name__}: {error}".removeprefix("ValueError: ").splitlines()[0]) from None


def rows_of(X: Any) -> Rows:
    """The rows of a matrix as the checker takes them: {feature: value} of what is not zero."""
    if not sparse.issparse(X):
        return [{j: x for j, x in enumerate(row.tolist()) if x} for row in X]
    ends, indices, values = X.indptr.tolist(), X.indices.tolist(), X.data.astype(np.float64).tolist()
    cuts = pairwise(ends)
    return [{j: x for j, x in zip(indices[a:b], values[a:b], strict=True) if x} for a, b in cuts]


def labels_of(y: Any, text: bool) -> list[Any]:
    """Labels or targets as the checker takes them: text, or floats."""
    found = np.asarray(y).ravel()
    return [str(one) for one in found.tolist()] if text else found.astype(np.float64).tolist()


def _refuse(model: Any, y: Any) -> None:
    split = getattr(model, "multi_class", "ovr")
    if split not in (*SPLITS, "multinomial"):
        raise ValueError(
            f"there are no proof files for multi_class={split!r}: fit with 'ovr', 'ovo' or 'multinomial', or certify "
            "this model with saddlesvm.certify or `saddlesvm certify`"
        )
    if getattr(model, "multilabel_", False) or has_columns(y):
        raise ValueError("there are no proof files for several columns of labels: fit and prove one column at a time")


def _stated_problem(model: Any, loss: Loss, width: int) -> dict[str, Any]:
    """The problem in the words of the checker."""
    split, classes = getattr(model, "multi_class", "targets"), getattr(model, "classes_", None)
    name = AS_TUBE.get(loss_name(loss), loss_name(loss))
    name = "multinomial" if split == "multinomial" else name
    if name not in ("multinomial", *checker.LABELS, *checker.TARGETS):
        raise ValueError(f"there are no proofs for the loss {name!r}: the checker does not know it")
    option = next((getattr(loss, one) for one in OPTIONS if hasattr(loss, one)), 0.0)
    ratio = {"l2": 0.0, "l1": 1.0}.get(model.penalty, model.l1_ratio)
    strength = model._strength()
    kind = model._intercept_kind()
    text = classes is not None and classes.dtype.kind in "OUS"
    return {
        "loss": name,
        "option": float(option).hex(),
        "form": "C" if "C" in strength else "lambda",
        "strength": float(strength.get("C") or strength["lam"]).hex(),
        "square": (1.0 - ratio).hex(),
        "l1": float(ratio).hex(),
        "intercept": kind,
        "feature": float(model.intercept_scaling).hex(),
        "features": width,
        "split": split,
        "text": text,
        "classes": [] if classes is None else classes.tolist() if text else [float(one).hex() for one in classes],
    }


def _posed(model: Any, design: Any, training: Any) -> Posed:
    kind = model._intercept_kind()
    scale = float(model.intercept_scaling) if intercept_kind(kind).present else 0.0
    plain = rows.as_rows(design, scale)
    options = {"weights": training.weights, "intercept": kind, "norms": inputs.finite_norms(plain), **model._posed()}
    W = np.column_stack([dense_weights(model.coef_), np.atleast_1d(model.intercept_) / (scale or 1.0)])
    duals = getattr(model, "dual_coef_", None)
    return Posed(
        plain, training, options, W, duals if duals is not None and duals.shape[1] == design.shape[0] else None
    )


def _part(sub: SubProblem, posed: Posed, slack: float) -> dict[str, Any]:
    """The model of one problem, and what the bound needs; `slack` is the share that pulls stay inside an l1 norm."""
    problem = sub.problem(posed.X, posed.training.loss, **posed.options)
    weights = sub.row_weights(posed.training.weights)
    multipliers: Multipliers = {}
    if isinstance(problem, MultinomialProblem):
        W = each_class(posed.W)
        (at, multipliers), scale = _centred(problem, W), 1.0
    else:
        W, at = posed.W[[sub.index]], None
        multipliers, scale = _multipliers(problem, W[0], _given(sub, problem, posed), slack)
    b = W[:, -1] * (problem.scale or 1.0)
    return {
        "w": [list(map(float.hex, one)) for one in W[:, :-1].tolist()],
        "b": list(map(float.hex, b.tolist())),
        "at": list(map(float.hex, (b if at is None else at).tolist())),
        "scale": scale.hex(),
        "multipliers": multipliers,
        "weights": None if weights is None else list(map(float.hex, weights.tolist())),
    }


def _given(sub: SubProblem, problem: Problem, posed: Posed) -> np.ndarray | None:
    """The dual variables of the model, shape (n_all,)."""
    if posed.duals is None:
        return None
    duals = posed.duals[[sub.index]]
    return np.ravel(duals.toarray() if sparse.issparse(duals) else duals) / problem.C


def _multipliers(problem: Problem, w: np.ndarray, given: np.ndarray | None, slack: float) -> tuple[Multipliers, float]:
    """The multipliers that the checker cannot take from the slopes of the loss, by row, and what all are multiplied by.

    The dual point of the slopes is taken where it proves about as much as that of the model.
    """
    slopes, unsure = _slopes(problem, w)
    alone = evaluate(problem, Point(w), given_offset=True)
    found = alone if given is None else evaluate(problem, Point(w, given), given_offset=True)
    best = found if found.certificate.dual > alone.certificate.dual else alone
    excess = abs(slopes.sum()) if problem.intercept.constrained else 0.0
    if alone.certificate.gap <= LOOSER * best.certificate.gap and excess <= SAME * np.abs(slopes).sum():
        scale = best_scale(problem, slopes, dual_weights(problem, slopes))
        return _listed(problem, slopes, unsure), scale if holds_square(problem.penalty) else scale * (1.0 - slack)
    if not holds_square(problem.penalty):
        return _listed(problem, best.alpha, np.ones(problem.y.size, dtype=bool)), 1.0 - slack
    differ = np.abs(best.alpha - slopes) > SAME * np.abs(best.alpha[problem.members]).max(initial=0.0)
    return _listed(problem, best.alpha, unsure | differ), 1.0


def _slopes(problem: Problem, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``-s_i phi_i'`` at the margins, shape (n_all,), and whether rounding of a margin may change it much."""
    plain, offset = problem.intercept.split(w)
    z = margins(problem, plain)
    found = [np.zeros(problem.y.size) for _ in range(3)]
    for moved, alpha in zip((0.0, -CORNER, CORNER), found, strict=True):
        shifted = z + moved * (1.0 + np.abs(z + offset))
        dual_of_margins(problem.pointwise, problem.members, shifted, offset, alpha)
    unsure = found[1] != found[2] if not is_smooth(problem.loss) else np.zeros(problem.y.size, dtype=bool)
    return found[0], unsure


def _listed(problem: Problem, alpha: np.ndarray, chosen: np.ndarray) -> Multipliers:
    """Some multipliers by row, inside their bounds."""
    listed = {}
    for i in problem.members[chosen[problem.members]].tolist():
        low, high = bounds(problem.loss, problem.y[i], problem.weights[i] if problem.weights.size else 1.0)
        listed[str(i)] = [min(max(float(alpha[i]), low * INSIDE), high * INSIDE).hex()]
    return listed


def _centred(problem: MultinomialProblem, W: np.ndarray) -> tuple[np.ndarray | None, Multipliers]:
    """The offsets whose probabilities have the sums that a free intercept asks for, and the multipliers of a row that
    can take up what rounding leaves of these sums, where no row can by itself; None where no sums are asked for."""
    if not problem.intercept.constrained:
        return None, {}
    z = np.column_stack([problem.passes.margins(w) for w in W])
    s, K = problem.gathered(problem.row_weights), z.shape[1]
    codes = problem.y[problem.members].astype(int)
    wanted = np.bincount(codes, s, K)
    offsets, p = np.zeros(K), softmax(z, axis=1)
    i = int(np.argmax(s * p.min(axis=1)))
    spread = SPREAD * s.sum() / s[i] if s[i] * p[i].min() < SPREAD * s.sum() else 0.0
    for _ in range(CENTRING):
        p = softmax(z + offsets, axis=1)
        p[i] = (1.0 - K * spread) * p[i] + spread
        slope = s @ p - wanted
        if np.abs(slope).max() <= UNIT * s.sum():
            break
        step = np.linalg.pinv(np.diag(s @ p) - (p * s[:, None]).T @ p, hermitian=True) @ slope
        step -= step.mean()  # along which nothing changes
        offsets -= step / max(1.0, np.abs(step).max())
    own = s[i] * ((codes[i] == np.arange(K)) - p[i])
    multipliers = {str(problem.members[i]): list(map(float.hex, own.tolist()))} if spread > 0.0 else {}
    return W[:, -1] * problem.scale + offsets, multipliers


def _claim(primal: Fraction, dual: Fraction) -> list[str]:
    """The objective, rounded up, the bound, rounded down, and their difference, rounded up."""
    high, low = above(primal), -above(-dual)
    return [high.hex(), low.hex(), above(Fraction(high) - Fraction(low)).hex()]


def above(exact: Fraction) -> float:
    """The least float that is not below a number."""
    near = float(exact)
    return near if Fraction(near) >= exact else math.nextafter(near, math.inf)


FEWEST = 0.7  # share of the rows of a fit below which a fit to the remaining ones, put together, follows


@dataclass
class Remaining:
    """Rows of a fit that a model still has, and its points over them; no points where only a fit leads on.

    Attributes
    ----------
    data : Data
        All rows of the fit.
    rows : ndarray of shape (m,)
        The numbers of the remaining ones, ascending.
    points : list of KeptPoint
        One for each sub-problem.
    """

    data: Data
    rows: np.ndarray
    points: list[KeptPoint]

    def part(self) -> Data:
        """The remaining rows: a copy, where some are gone."""
        return self.data if self.rows.size == self.data.X.shape[0] else part(self.data, self.rows)


def part(data: Data, rows: np.ndarray) -> Data:
    """Some of the rows, in memory."""
    weights = None if data.sample_weight is None else np.asarray(data.sample_weight)[rows]
    return Data(data.X[rows], np.asarray(data.y)[rows], weights)


def joined(first: Data, second: Data) -> Data:
    """The rows of both, one below the other; a weight that is not given is 1 where the others are."""
    either = sparse.issparse(first.X) or sparse.issparse(second.X)
    X = sparse.vstack([first.X, second.X], format="csr") if either else np.concatenate([first.X, second.X])
    y = np.concatenate([np.asarray(first.y), np.asarray(second.y)])
    if first.sample_weight is None and second.sample_weight is None:
        return Data(X, y, None)
    own = [np.ones(one.X.shape[0]) if one.sample_weight is None else one.sample_weight for one in (first, second)]
    return Data(X, y, np.concatenate(own))


def remaining_of(model: Any, data: Data, ended: bool) -> Remaining | None:
    """All rows of a fitted model, ready to be forgotten; None for models and problems that need a fit for that. `ended`
    says that the data are those of the last fit in this process, which has left its problems behind.

    These are models whose options ask for the course of a fit, or for more than weights; and problems whose constants
    depend on the number of rows, or whose dual variables have a given sum.
    """
    asked = (model.max_iter, model.max_time, model.checkpoint, model.callbacks or None, model.lam)
    plain = all(one is None for one in asked) and model.keep == "best" and model.gap == 0.0
    plain = plain and not getattr(model, "probability", False) and made_automatic(model.C) is None
    plain = plain and getattr(model, "class_weight", None) is None and getattr(model, "multi_class", "ovr") in SPLITS
    if not (plain and isinstance(model._made_solver(), Auto)):
        return None
    ends: list[End] = model.ends_of_fits() if ended else []
    problems = [one.problem for one in ends] or problems_of(model, data)
    if problems is None or len(problems) != len(model.certificates_) or not all(map(_holds, problems)):
        return None
    own = _have_duals(model)
    if not own and not can_come_nearer(problems[0]):
        return None
    facts = zip(problems, weights_of(model, problems), model.certificates_, strict=True)
    factors = [one.equations for one in ends] or [None] * len(problems)
    points = [
        KeptPoint(problem, w, model.duals_of(k) / problem.C if own else None, certificate, equations=factors[k])
        for k, (problem, w, certificate) in enumerate(facts)
    ]
    return Remaining(data, np.arange(data.X.shape[0]), points)


def _holds(problem: Problem) -> bool:
    """Whether a point of the problem can be kept."""
    alone = type(problem) is Problem and not problem.intercept.constrained and not problem.fixed.size
    return alone and problem.penalty.identity() and isinstance(problem.passes, InMemory)


def _have_duals(model: Any) -> bool:
    """Whether the dual variables of a model are a solver's own, and not those of its weights."""
    return hasattr(model, "dual_coef_") and not (
        is_smooth(model.check_options()) and FINISH in vars(model).get("phases_", {})
    )


class Change(NamedTuple):
    """Fewer rows, and a model of each sub-problem, whose dual variables are those of these rows."""

    left: Remaining
    models: list[Evaluation]

    def holds(self, tol: float) -> bool:
        """Whether all relative gaps are at most `tol`."""
        return all(one.certificate.relative_gap <= tol for one in self.models)

    def start(self) -> dict[str, Any]:
        """Where a fit goes on from, as its arguments: the dual variables, or the weights where these alone count."""
        if self.left.points[0].alpha is None:
            intercepts = np.array([one.intercept for one in self.models])
            return {"coef_init": np.array([one.coef for one in self.models]), "intercept_init": intercepts}
        pairs = zip(self.models, self.left.points, strict=True)
        duals = [sparse.csr_array(point.problem.C * one.alpha[None]) for one, point in pairs]
        return {"dual_coef_init": sparse.vstack(duals, format="csr")}


def without(left: Remaining, gone: np.ndarray, tol: float) -> Change | None:
    """The rows without those that a mask of shape (m,) selects, and models of them; None where there are no points, or
    few rows would be left, or a class without any."""
    if not left.points or left.rows.size - gone.sum() < FEWEST * left.data.X.shape[0]:
        return None
    everywhere = np.zeros(left.data.X.shape[0], dtype=bool)
    everywhere[left.rows[gone]] = True
    for problem in (point.problem for point in left.points):
        y = problem.y[problem.members[~everywhere[problem.members]]]
        if not y.size or (is_classification(problem.loss) and not y.min() < 0.0 < y.max()):
            return None
    points, found = zip(*(point.without(everywhere, tol) for point in left.points), strict=True)
    rows = left.rows[~gone]
    return Change(Remaining(left.data, rows, [*points]), [replace(one, alpha=one.alpha[rows]) for one in found])


def with_more(model: Any, left: Remaining, more: Data) -> Change | None:
    """The rows with further ones behind them, and models of all; None where there are no points, or for labels of
    another class."""
    classes = getattr(model, "classes_", None)
    if not left.points or has_columns(more.y) or not (classes is None or np.isin(more.y, classes).all()):
        return None
    data, n = joined(left.data, more), left.data.X.shape[0]
    posed = model.training_problems(data.y, data.sample_weight, data.X.shape[0])
    first, new = left.points[0].problem, model.rows_for_parts(more.X, 1)
    ready = MemoryRows(as_rows(data.X, first.scale), np.concatenate([first.norms, new.norms]), first.threads)
    points, found = [], []
    for sub, point in zip(posed.problems, left.points, strict=True):
        problem = model.part_problem(sub, posed, ready)
        added = problem.members[np.searchsorted(problem.members, n) :]
        point, one = point.within(problem.among(np.concatenate([point.problem.members, added])), added.size, model.tol)
        points.append(point)
        found.append(one)
    rows = np.concatenate([left.rows, np.arange(n, data.X.shape[0])])
    return Change(Remaining(data, rows, points), [replace(one, alpha=one.alpha[rows]) for one in found])
