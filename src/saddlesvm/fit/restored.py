"""Checks that a fit can resume from a checkpoint, before its arrays reach compiled code, which checks no index.

This code knows no solver. The solver makes a state with the parts of the stored one; the state's fields declare what
they allow (:mod:`saddlesvm.runtime.durable`), and the state checks how its fields depend on each other.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from scipy import sparse

from saddlesvm.fit.outcome import Outcome
from saddlesvm.problem.certificate import Certificate, Evaluation, Point, evaluate
from saddlesvm.problem.crammer_singer import JointProblem
from saddlesvm.problem.multinomial import MultinomialProblem
from saddlesvm.problem.sums import dual_weights
from saddlesvm.runtime.durable import Leaf, demand, leaves, restored

__all__ = ["certified_anew", "check_header", "check_points", "is_confirmed", "restored_state", "verify"]

POINTS = ("best", "bound", "improved", "last")
PRECISIONS = {np.dtype(np.float32), np.dtype(np.float64)}
NUMBERS = ("solving", "certifying", "certified_at", "passes", "ratio")
DRIFT = {4: 1e-2, 8: 1e-8}  # relative error allowed in weights that follow the dual point, by bytes per value of w
ACCURACY = {4: 1e-4, 8: 1e-9}  # relative error allowed in a stored objective, by bytes per value of the rows
SAME = 1e-12  # relative difference of two objectives that count as the same
LARGEST, UNKNOWN = 1e300, (math.inf, -math.inf)  # largest size of the package's other numbers; "not known yet"
MOST = 2**62  # largest value of a counter
HEADER = {
    "same": dict, "mark": dict, "state": dict, "numbers": dict, "points": dict, "trace": list, "end": list,
    "limits": dict,
}  # fmt: skip


def is_number(given: Any, least: float = -math.inf) -> bool:
    """Whether `given` is a number that a float holds (NaN is none) of at least `least`."""
    return type(given) in (int, float) and given >= least and (type(given) is float or abs(given) < MOST)


def check_header(header: Any, names: list[str]) -> None:
    """Raise ValueError unless a header has its parts, and the file no other arrays than it should.

    Parameters
    ----------
    header : object
        As it was read.
    names : list of str
        Of the arrays, ``state.FIELD`` or ``POINT.coef`` and ``POINT.alpha``.
    """
    for key, kind in HEADER.items():
        demand(isinstance(header.get(key), kind), f"its {key} is missing")
    demand({*header["points"]} <= {*POINTS}, "it holds unknown points")
    allowed = {f"{name}.{part}" for name in header["points"] for part in ("coef", "alpha")}
    same = header["same"]
    for name in (*names, *same):
        demand(name.startswith("state.") or name in allowed, f"it holds an array {name[:40]!r}")
    demand(
        all(isinstance(one, str) and one in names for one in same.values()), "an array that stands for two is missing"
    )
    demand(allowed <= {*names, *same}, "the arrays of a point are missing")
    end = header["end"]
    fine = not end or (len(end) == 2 and end[0] in {str(one) for one in Outcome} and isinstance(end[1], str))
    demand(fine, "its end is no outcome")
    numbers, trace = header["numbers"], header["trace"]
    fine = all(is_number(numbers.get(name), 0.0) for name in NUMBERS) and math.isfinite(numbers["passes"])
    demand(fine and 0.0 < numbers["ratio"] < math.inf, "its numbers are missing")
    phases, history = numbers.get("phases"), numbers.get("history")
    demand(isinstance(phases, dict) and all(is_number(one, 0.0) for one in phases.values()), "its phases are missing")
    demand(isinstance(numbers.get("phase"), str), "its phase is missing")
    demand(isinstance(numbers.get("pending"), bool), "it does not say whether a certificate is pending")
    rows = isinstance(history, list) and all(isinstance(row, list) and len(row) == 4 for row in history)
    demand(rows and all(is_number(one) for row in history for one in row), "its history is missing")
    plain = (bool, int, float, str, list, type(None))
    fine = all(isinstance(row, dict) and all(isinstance(one, plain) for one in row.values()) for row in trace)
    demand(fine, "its trace is not a list of records")


def check_points(problem: Any, points: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Raise ValueError unless models and dual points have the size of the problem, and finite numbers."""
    needed = {column.name for column in dataclasses.fields(Certificate) if column.default is dataclasses.MISSING}
    known = {column.name for column in dataclasses.fields(Certificate)}
    for name, said in points.items():
        coef, alpha = arrays[f"{name}.coef"], arrays[f"{name}.alpha"]
        demand(coef.ndim in (1, 2) and coef.shape[-1] == problem.n_features, f"its {name} model has another width")
        if said.get("listed"):
            check_listed(problem, name, alpha)
        elif isinstance(problem, MultinomialProblem):  # whose dual point the weights determine
            demand(coef.ndim == 2 and coef.shape[0] == problem.n_classes, f"its {name} model has other classes")
            demand(alpha.shape == (0, 0), f"its {name} point has dual variables")
        else:
            demand(alpha.ndim == coef.ndim and alpha.shape[0] == problem.y.size, f"its {name} point has other rows")
            demand(coef.ndim == 1 or coef.shape[0] == alpha.shape[1], f"its {name} point has other classes")
        for array in (coef, alpha):
            demand(array.dtype in PRECISIONS, f"its {name} point is of type {array.dtype}")
            demand(np.isfinite(array).all(), f"its {name} point is not finite")
        given = said["intercept"]
        intercepts = given if isinstance(given, list) else [given]
        demand(len(intercepts) == (coef.shape[0] if coef.ndim == 2 else 1), f"its {name} intercept is of another model")
        demand(all(is_number(one) and math.isfinite(one) for one in intercepts), f"its {name} intercept is not finite")
        certificate = said["certificate"]
        demand(needed <= {*certificate} <= known, f"its {name} certificate is not of this package")
        numbers = [one for key, one in certificate.items() if key != "form"]
        demand(all(is_number(one) for one in numbers), f"its {name} certificate does not hold numbers")
        demand(certificate.get("form", "C") == ("lambda" if problem.uses_lambda else "C"), "it is of the other form")


def plain_duals(alpha: Any) -> np.ndarray:
    """Dual variables as an array: those of a CSR array other than zero as (row, class, variable)."""
    if not sparse.issparse(alpha):
        return np.asarray(alpha)
    held = sparse.coo_array(alpha)
    return np.column_stack([*held.coords, held.data]).astype(np.float64)


def held_duals(problem: Any, stored: np.ndarray) -> sparse.csr_array:
    """The CSR array that :func:`plain_duals` made an array of."""
    rows, classes, values = stored.T
    shape = problem.y.size, problem.n_classes
    return sparse.csr_array((values, (rows.astype(np.int64), classes.astype(np.int64))), shape=shape)


def check_listed(problem: Any, name: str, stored: np.ndarray) -> None:
    """Raise ValueError unless these are variables of rows and classes of the problem."""
    demand(isinstance(problem, JointProblem), f"its {name} point has dual variables of classes")
    demand(stored.ndim == 2 and stored.shape[1] == 3, f"its {name} point has other rows")
    places = stored[:, :2]
    with np.errstate(invalid="ignore"):
        fine = (places >= 0) & (places < (problem.y.size, problem.n_classes)) & (places == np.floor(places))
    demand(fine.all(), f"its {name} point has other classes")


def certified_anew(problem: Any, model: Evaluation, alpha: np.ndarray) -> Evaluation:
    """A model and a dual point with the certificate that the data give them, whatever was claimed."""
    intercept = np.asarray(model.intercept) / problem.scale if problem.scale else 0.0 * np.asarray(model.intercept)
    w = np.concatenate([model.coef, intercept[..., None]], axis=-1)
    with np.errstate(all="ignore"):
        return evaluate(problem, Point(w, alpha), given_offset=True)


def is_confirmed(claim: Certificate, found: Certificate) -> bool:
    """Whether a claim says no more than its points do, rounding apart."""
    size = SAME * max(abs(found.primal), abs(found.dual))
    lowest, highest = found.primal - 2.0 * found.primal_rounding - size, found.dual + 2.0 * found.dual_rounding + size
    return bool(claim.primal >= lowest and claim.dual <= highest)


def verify(problem: Any, points: Mapping[str, Evaluation]) -> None:
    """Raise ValueError where the data contradict a point's certificate: a stored proof is always checked.

    Rows in files are not read for the check when a run begins again, but when it ends (:func:`certified_anew`).
    """
    if problem.stored_points != "checked":
        return
    accuracy = ACCURACY[problem.dtype.itemsize]
    for name, point in points.items():
        found = certified_anew(problem, point, point.alpha).certificate
        claim, size = point.certificate, accuracy * max(abs(found.primal), abs(found.dual))
        true = abs(claim.primal - found.primal) <= size and claim.dual <= found.dual + size
        demand(true, f"its {name} point does not have the objectives that it claims")


def check_tracked(problem: Any, point: Point) -> None:
    """Raise ValueError where the weights of a dual solver are not those of its dual point.

    A certificate relies on these weights, to save a pass over the rows. (With a free intercept it does not.)
    """
    if problem.stored_points != "checked" or problem.intercept.constrained or not point.tracks:
        return
    w, alpha = point.w, cast("Any", point.alpha)
    assert w is not None and alpha is not None
    true = dual_weights(problem, alpha)
    squares = alpha.multiply(alpha) if sparse.issparse(alpha) else np.square(alpha).reshape(alpha.shape[0], -1)
    each = squares.sum(axis=1) @ problem.norms  # what the rounding is of
    size = float(np.linalg.norm(true)) + problem.C * math.sqrt(float(each))
    apart = float(np.linalg.norm(w.astype(np.float64) - true))
    demand(apart <= DRIFT[w.dtype.itemsize] * size, "its weights are not those of its dual point")


def restored_state(problem: Any, solver: Any, fresh: Any, stored: Mapping[str, Any]) -> Any:
    """The state to resume with; ValueError unless the values could be the state of a run on `problem`.

    Parameters
    ----------
    problem : Problem
    solver : Solver
    fresh : State
        Of a run that has just begun.
    stored : mapping
        Arrays, numbers and texts, by name.
    """
    state = solver.like(problem, fresh, stored)
    known = {leaf.name: leaf for leaf in leaves(state)}
    odd = next((name for name in stored if name not in known), None)
    demand(odd is None, f"it holds {str(odd)[:40]!r}, which this solver's runs do not have")
    for name, leaf in known.items():
        demand(name in stored, f"its {name} is missing")
        check_value(problem, leaf, stored[name])
    state = restored(state, stored)
    state.check_restored(problem)
    state = solver.resumed(problem, state)
    check_tracked(problem, solver.solution(problem, state))
    return state


def check_value(problem: Any, leaf: Leaf, found: Any) -> None:
    """Raise ValueError for a value that the field of a run like this one cannot have."""
    name, was = leaf.name, leaf.value
    if leaf.own:
        kind = (np.ndarray if isinstance(was, np.ndarray) else object) if was is not None else object
        demand(isinstance(found, kind), f"its {name} is {str(found)[:40]!r}")
    elif isinstance(was, np.ndarray):
        demand(isinstance(found, np.ndarray), f"its {name} is {str(found)[:40]!r}")
        check_array(problem, leaf, found)
    elif was is None or isinstance(was, (bool, str)):
        demand(type(found) is type(was), f"its {name} is {str(found)[:40]!r}")
    elif isinstance(was, (int, np.integer)):
        demand(type(found) is int and 0 <= found < MOST, f"its {name} is {str(found)[:40]!r}")
    else:
        demand((is_number(found) and abs(found) < LARGEST) or found in UNKNOWN, f"its {name} is {str(found)[:40]!r}")


def check_array(problem: Any, leaf: Leaf, found: np.ndarray) -> None:
    """Raise ValueError for another type, shape or content than the field allows."""
    name, was, grows = leaf.name, leaf.value, leaf.said.get("grows", 0)
    alike = found.dtype == was.dtype or {found.dtype, was.dtype} <= PRECISIONS
    demand(alike, f"its {name} is of type {found.dtype}, where {was.dtype} is needed")
    shaped = found.ndim == was.ndim and found.shape[grows:] == was.shape[grows:]
    demand(shaped, f"its {name} has shape {found.shape}, where {was.shape} is needed")
    if found.dtype.kind == "f" and leaf.said.get("finite", True):
        demand(np.isfinite(found).all(), f"its {name} is not finite")
    if leaf.said.get("rows", False):
        check_rows(problem, found, name)


def check_rows(problem: Any, found: np.ndarray, name: str) -> None:
    """Raise ValueError unless an array holds numbers of rows of the problem, some perhaps more than once."""
    inside = np.zeros(problem.y.size, dtype=bool)
    inside[problem.members] = True
    in_range = not found.size or 0 <= int(found.min()) <= int(found.max()) < inside.size
    demand(in_range and inside[found].all(), f"its {name} holds numbers of rows that there are not")
