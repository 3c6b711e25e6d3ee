"""Proof files: a model, what its bound needs, and the claims that ``checker.py`` checks."""

from __future__ import annotations

import hashlib
import json
import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import softmax

from saddlesvm import checker
from saddlesvm.data.door import check_design, checked_data
from saddlesvm.data.label_checks import has_columns
from saddlesvm.estimators.fitted import Fitted, duals_for, pair_problems
from saddlesvm.multiclass.splits import SPLITS
from saddlesvm.multiclass.sub_problems import SubProblem
from saddlesvm.problem.bounds import UNIT
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.loss import Loss, bounds, loss_name
from saddlesvm.problem.multinomial import MultinomialProblem
from saddlesvm.problem.penalties import holds_square
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.responses import best_scale
from saddlesvm.problem.sums import dual_of_margins, dual_weights, margins
from saddlesvm.rows.scores import dense_weights
from saddlesvm.runtime.data_types import LabelsLike

FORMAT = 1  # of proof files
SAME = (
    1e-10  # a multiplier so near to the slope of its loss, relative to the largest, is not listed
)
# Largest share of its bound that a listed multiplier has: bounds in fractions differ by less.
INSIDE = 1.0 - 2.0**-50
# Shares by which pulls stay inside an l1 norm, tried one after the other.
SLACKS = (2.0**-40, 2.0**-30, 2.0**-20)
# Distance of a margin from a corner, relative to 1 or itself, up to which a multiplier is listed.
CORNER = 1e-9
LOOSER = 1.5  # a gap without listed multipliers may be so many times that with them
# Least share of all rows' weights that a row has in each class, to take up a rest of their sums.
SPREAD = 2.0**-44
WHOLE = 2.0**53  # floats tell all whole numbers below it apart
CENTRING = 100  # steps of Newton's method for the offsets of multinomial regression's dual point
AS_TUBE = {
    "absolute": "epsilon_insensitive",
    "squared": "squared_epsilon_insensitive",
}  # of width zero
OPTIONS = ("width", "epsilon", "delta", "tau")

Proof = dict[str, Any]
Multipliers = dict[str, list[str]]
Rows = list[dict[int, float]]


def write_proof(
    fitted: Fitted,
    X: Any,
    y: Any = None,
    sample_weight: ArrayLike | None = None,
    read: dict[str, Any] | None = None,
) -> Proof:
    """Return a proof that a model is near its optimum; :meth:`LinearSVC.proof` says what of."""
    template = fitted.template
    design, y, sample_weight = checked_data(X, y, sample_weight)
    _refuse(fitted, y)
    width = design.shape[1]
    if width != template.n_features_in_:
        raise ValueError(f"X has {width} features; the model has {template.n_features_in_}")
    training = fitted.pose(y, sample_weight, design.shape[0])
    stated = _stated_problem(fitted, training.loss, width)
    weights = fitted.coef, fitted.intercept
    pairs = list(pair_problems(template, design, training, weights))
    duals = duals_for(fitted, design.shape[0])
    table = rows_for_checker(design.X)
    labels = labels_for_checker(y, stated["text"])
    for slack in SLACKS:
        parts = [
            _part(sub, problem, w, training.weights, duals, slack) for sub, problem, w in pairs
        ]
        # The claim is what the checker itself will compute from these parts.
        try:
            claim = _claim(*checker.bound(stated, parts, table, labels))
            break
        except ValueError:  # rounding brought a pull beyond what an l1 norm allows
            if slack == SLACKS[-1]:
                raise
    proof = {
        "data": checker.fingerprint(table, labels),
        "problem": stated,
        "parts": parts,
        "claim": claim,
    }
    # The seal covers all that the claim rests on.
    seal = json.dumps(
        [proof[name] for name in ("data", "problem", "parts", "claim")], sort_keys=True
    )
    return {
        "proof": FORMAT,
        "read": read or {},
        **proof,
        "seal": hashlib.sha256(seal.encode()).hexdigest(),
    }


def verify_proof(proof: Any, X: Any, y: Any) -> str:
    """Return a sentence that says what a proof proves about these data.

    Raises
    ------
    ValueError
        It proves nothing; the message says why.
    """
    try:
        return checker.check(
            proof,
            rows_for_checker(check_design(X).X),
            labels_for_checker(y, bool(proof["problem"]["text"])),
        )
    except Exception as error:  # whatever is wrong with it, it proves nothing
        raise ValueError(
            f"{type(error).__name__}: {error}".removeprefix("ValueError: ").splitlines()[0]
        ) from None


def rows_for_checker(X: Any) -> Rows:
    """Return the rows of a matrix as the checker takes them: {feature: value}, without zeros."""
    if not sparse.issparse(X):
        return [{j: x for j, x in enumerate(row.tolist()) if x} for row in X]
    ends = X.indptr.tolist()
    indices = X.indices.tolist()
    values = X.data.astype(np.float64).tolist()
    cuts = pairwise(ends)
    return [{j: x for j, x in zip(indices[a:b], values[a:b], strict=True) if x} for a, b in cuts]


def needs_text(classes: np.ndarray) -> bool:
    """Return True if classes are text, or numbers so large that floats may confuse them."""
    return classes.dtype.kind in "OUS" or bool((np.abs(classes.astype(np.float64)) >= WHOLE).any())


def labels_for_checker(y: LabelsLike, text: bool) -> list[str] | list[float]:
    """Return labels or targets as the checker takes them: text, or floats."""
    found = np.asarray(y).ravel()
    if text:
        return [str(label) for label in found.tolist()]
    return found.astype(np.float64).tolist()


def hex_floats(values: np.ndarray) -> list[str]:
    """Return floats as text without rounding."""
    return [float.hex(value) for value in values.tolist()]


def _refuse(fitted: Fitted, y: Any) -> None:
    """Raise ValueError for a model that has no proof files."""
    split = fitted.multi_class
    if split not in (*SPLITS, "multinomial"):
        raise ValueError(
            f"there are no proof files for multi_class={split!r}: fit with 'ovr', 'ovo' or "
            "'multinomial', or certify "
            "this model with saddlesvm.certify or `saddlesvm certify`"
        )
    if fitted.several_labels or has_columns(y):
        raise ValueError(
            "there are no proof files for several columns of labels: fit and prove one column at "
            "a time"
        )


def _stated_problem(fitted: Fitted, loss: Loss, width: int) -> dict[str, Any]:
    """Return the problem in the words of the checker."""
    model = fitted.template
    classes = None
    split = "targets"
    if fitted.labels is not None:
        classes = fitted.labels.classes
        split = fitted.multi_class
    name = AS_TUBE.get(loss_name(loss), loss_name(loss))
    if split == "multinomial":
        name = "multinomial"
    if name not in ("multinomial", *checker.LABELS, *checker.TARGETS):
        raise ValueError(f"there are no proofs for the loss {name!r}: the checker does not know it")
    option = next((getattr(loss, known) for known in OPTIONS if hasattr(loss, known)), 0.0)
    # The penalty is ratio |w|_1 + (1 - ratio) |w|^2 / 2.
    ratio = {"l2": 0.0, "l1": 1.0}.get(model.penalty, model.l1_ratio)
    strength = model._strength()
    kind = model._intercept_kind()
    text = classes is not None and needs_text(classes)
    listed: list[str] = []
    if classes is not None and text:
        listed = [str(label) for label in classes.tolist()]
    elif classes is not None:
        listed = hex_floats(classes.astype(np.float64))
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
        "classes": listed,
    }


def _part(
    sub: SubProblem,
    problem: Problem,
    w: np.ndarray,
    weights: np.ndarray | None,
    duals: np.ndarray | sparse.csr_array | None,
    slack: float,
) -> dict[str, Any]:
    """Return the model of a problem, and what the bound needs.

    Parameters
    ----------
    sub, problem, w
        A problem of the model, and its weights.
    weights : ndarray of shape (n,) or None
        Of the rows in all problems.
    duals : CSR array, ndarray or None
        The model's dual variables, of all problems.
    slack : float
        The share that pulls stay inside an l1 norm.
    """
    weights = sub.row_weights(weights)
    W = np.atleast_2d(w)
    at = None
    multipliers: Multipliers
    if isinstance(problem, MultinomialProblem):
        at, multipliers = _centre_offsets(problem, W)
        scale = 1.0
    else:
        # `dual_coef_` holds C times the multipliers.
        given = None
        if duals is not None:
            given = dense_weights(duals[[sub.index]])[0] / problem.C
        multipliers, scale = _multipliers(problem, w, given, slack)
    b = W[:, -1] * (problem.scale or 1.0)
    return {
        "w": [hex_floats(vector) for vector in W[:, :-1]],
        "b": hex_floats(b),
        "at": hex_floats(b if at is None else at),
        "scale": scale.hex(),
        "multipliers": multipliers,
        "weights": None if weights is None else hex_floats(weights),
    }


def _multipliers(
    problem: Problem, w: np.ndarray, given: np.ndarray | None, slack: float
) -> tuple[Multipliers, float]:
    """Return multipliers that are not slopes of the loss, by row, and the factor of all of them.

    The dual point of the slopes is taken if it proves about as much as the model's.
    """
    # The bound of the slopes alone, and of the model's dual point.
    slopes, unsure = _slopes(problem, w)
    alone = evaluate(problem, Point(w), given_offset=True)
    best = alone
    if given is not None:
        found = evaluate(problem, Point(w, given), given_offset=True)
        if found.certificate.dual > alone.certificate.dual:
            best = found
    # A free intercept requires that the slopes sum to zero.
    excess = 0.0
    if problem.intercept.constrained:
        excess = abs(slopes.sum())
    is_balanced = excess <= SAME * np.abs(slopes).sum()
    if is_balanced and alone.certificate.gap <= LOOSER * best.certificate.gap:
        scale = best_scale(problem, slopes, dual_weights(problem, slopes))
        if not holds_square(problem.penalty):
            scale *= 1.0 - slack
        return _list_multipliers(problem, slopes, unsure), scale
    if not holds_square(problem.penalty):
        return _list_multipliers(
            problem, best.alpha, np.ones(problem.y.size, dtype=bool)
        ), 1.0 - slack
    differ = np.abs(best.alpha - slopes) > SAME * np.abs(best.alpha[problem.members]).max(
        initial=0.0
    )
    return _list_multipliers(problem, best.alpha, unsure | differ), 1.0


def _slopes(problem: Problem, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ``-s_i phi_i'`` at the margins, and whether rounding may change it much."""
    # Slopes at the margins, and on both sides of each at the distance of a corner.
    plain, offset = problem.intercept.split(w)
    z = margins(problem, plain)
    found = [np.zeros(problem.y.size) for _ in range(3)]
    for moved, alpha in zip((0.0, -CORNER, CORNER), found, strict=True):
        shifted = z + moved * (1.0 + np.abs(z + offset))
        dual_of_margins(problem.pointwise, problem.members, shifted, offset, alpha)
    # A smooth loss has no corner that a margin could cross.
    unsure = np.zeros(problem.y.size, dtype=bool)
    if not problem.is_smooth:
        unsure = found[1] != found[2]
    return found[0], unsure


def _list_multipliers(problem: Problem, alpha: np.ndarray, chosen: np.ndarray) -> Multipliers:
    """Return some multipliers by row, inside their bounds."""
    listed = {}
    for i in problem.members[chosen[problem.members]].tolist():
        low, high = bounds(
            problem.loss, problem.y[i], problem.weights[i] if problem.weights.size else 1.0
        )
        # A little inside the bounds, where rounding cannot put them outside.
        listed[str(i)] = [min(max(float(alpha[i]), low * INSIDE), high * INSIDE).hex()]
    return listed


def _centre_offsets(
    problem: MultinomialProblem, W: np.ndarray
) -> tuple[np.ndarray | None, Multipliers]:
    """Return offsets with the sums that a free intercept needs, and a row's multipliers.

    The row takes up what rounding leaves of these sums if no row can by itself. The offsets are
    None if no sums are required.
    """
    if not problem.intercept.constrained:
        return None, {}
    z = np.column_stack([problem.passes.margins(w) for w in W])
    s = problem.gather(problem.row_weights)
    K = z.shape[1]
    codes = problem.y[problem.members].astype(int)
    wanted = np.bincount(codes, s, K)
    offsets = np.zeros(K)
    p = softmax(z, axis=1)
    i = int(np.argmax(s * p.min(axis=1)))
    spread = 0.0
    if s[i] * p[i].min() < SPREAD * s.sum():
        spread = SPREAD * s.sum() / s[i]
    # Newton's method on the dual of the sums; the row i has a share of each class.
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
    multipliers: Multipliers = {}
    if spread > 0.0:
        multipliers[str(problem.members[i])] = hex_floats(own)
    return W[:, -1] * problem.scale + offsets, multipliers


def _claim(primal: Fraction, dual: Fraction) -> list[str]:
    """Return the objective and the bound, rounded up and down, and their gap, rounded up."""
    high = above(primal)
    low = -above(-dual)
    return [high.hex(), low.hex(), above(Fraction(high) - Fraction(low)).hex()]


def above(exact: Fraction) -> float:
    """Return the least float that is not below a number."""
    near = float(exact)
    if Fraction(near) < exact:
        near = math.nextafter(near, math.inf)
    return near
