"""Checks that a fit can resume from a checkpoint, before its arrays reach compiled code, which checks no index.

A checkpoint's state must have the fields, the types and most of the shapes of a state that has just begun. The name of
a field decides which numbers or indices are allowed; it means the same in the states of all solvers.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from saddlesvm.problem.certificate import Certificate, Evaluation, Point, dual_weights, evaluate
from saddlesvm.problem.crammer_singer import joint_weights
from saddlesvm.problem.multinomial import MultinomialProblem
from saddlesvm.problem.on_disk import StreamedProblem
from saddlesvm.rows.class_rows import by_class
from saddlesvm.rows.layouts import dtype_of
from saddlesvm.runtime.durable import stored_fields
from saddlesvm.solvers.base import DualState
from saddlesvm.solvers.crammer_singer import JointState

__all__ = ["check_header", "check_points", "check_state", "is_borne_out", "weigh", "weighed", "weighs"]

POINTS = ("best", "bound", "improved")
PRECISIONS = {np.dtype(np.float32), np.dtype(np.float64)}
NUMBERS = ("solving", "certifying", "looked_at", "passes", "ratio")
DRIFT = {4: 1e-2, 8: 1e-8}  # relative error allowed in weights that follow the dual point, by bytes per value of w
ACCURACY = {4: 1e-4, 8: 1e-9}  # relative error allowed in a stored objective, by bytes per value of the rows
SAME = 1e-12  # relative difference of two objectives that count as the same
LARGEST, UNKNOWN = 1e300, (math.inf, -math.inf)  # largest size of a state's other numbers; values for "not known yet"
MOST = 2**62  # largest value of a counter
# Arrays whose length depends on the progress of a run; a state that has just begun has other lengths.
GROWING = {
    "seen", "edges", "order", "following", "judged", "model", "bound_w", "best_w", "best_alpha", "blocks",
    "walk_back", "walk_base", "walk_matrix", "proof", "dual_bound", "narrow_back", "kept", "kept_norms", "course_seen",
    "moves", "turns", "pull", "walk_inner_step", "walk_inner_residual", "walk_inner_direction", "walk_inner_diagonal",
}  # fmt: skip
LATER = {
    "course_",
    "kept",
    "kept_norms",
    "proof",
    "walk_base",
    "walk_matrix",
    "walk_inner_",
    "walk_estimate",
}  # arrays that older runs did not store: they go on with those of a run that has just begun
FINITE = (
    "w", "alpha", "offset", "best_w", "best_alpha", "judged", "model", "bound_w", "seen",
    "walk_at", "walk_back", "walk_model", "walk_pull", "walk_sums", "walk_sizes", "walk_signed",
    "walk_base", "walk_matrix", "proof", "dual_bound", "narrow_at", "narrow_back", "narrow_model", "narrow_pull",
    "narrow_sizes",
    "course_seen", "near", "kept_norms", "base", "gradient", "direction", "moves", "turns", "told", "pull",
    "walk_inner_step", "walk_inner_residual", "walk_inner_direction", "walk_inner_diagonal",
)  # fmt: skip


class Wrong(ValueError):
    """The contents of a checkpoint are not those that a run has written."""


def is_later(name: str) -> bool:
    """Whether older runs did not store a field of this name."""
    return any(name.startswith(one) if one.endswith("_") else name == one for one in LATER)


def demand(fine: Any, what: str) -> None:
    """Raise :class:`Wrong` unless something is fine."""
    if not fine:
        raise Wrong(what)


def is_number(given: Any, least: float = -math.inf) -> bool:
    """Whether `given` is a number (NaN is none) of at least `least`."""
    return type(given) in (int, float) and given >= least


def check_header(header: Any, names: list[str]) -> None:
    """Raise ValueError unless a header has its parts, and the file no other arrays than it should.

    Parameters
    ----------
    header : object
        As it was read.
    names : list of str
        Of the arrays, ``state.FIELD`` or ``POINT.coef`` and ``POINT.alpha``.
    """
    kinds = {"same": dict, "mark": dict, "state": dict, "numbers": dict, "points": dict, "trace": list}
    for key, kind in kinds.items():
        demand(isinstance(header.get(key, {} if key == "same" else None), kind), f"its {key} is missing")
    demand({*header["points"]} <= {*POINTS}, "it holds unknown points")
    allowed = {f"{name}.{part}" for name in header["points"] for part in ("coef", "alpha")}
    same = header.get("same", {})
    for name in (*names, *same):
        demand(name.startswith("state.") or name in allowed, f"it holds an array {name[:40]!r}")
    demand(
        all(isinstance(one, str) and one in names for one in same.values()), "an array that stands for two is missing"
    )
    demand(allowed <= {*names, *same}, "the arrays of a point are missing")
    numbers, trace = header["numbers"], header["trace"]
    demand(all(is_number(numbers.get(name), 0.0) for name in NUMBERS), "its numbers are missing")
    phases, history = numbers.get("phases"), numbers.get("history")
    demand(isinstance(phases, dict) and all(is_number(one, 0.0) for one in phases.values()), "its phases are missing")
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
        if isinstance(problem, MultinomialProblem):  # whose dual point the weights determine
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


def weighs(problem: Any) -> bool:
    """Whether the points of a checkpoint are weighed when it is read."""
    return not isinstance(problem, StreamedProblem)


def weighed(problem: Any, model: Evaluation, alpha: np.ndarray) -> Evaluation:
    """A model and a dual point with the certificate that the data give them, whatever was claimed."""
    intercept = np.asarray(model.intercept) / problem.scale if problem.scale else 0.0 * np.asarray(model.intercept)
    w = np.concatenate([model.coef, intercept[..., None]], axis=-1)
    with np.errstate(all="ignore"):
        return evaluate(problem, Point(w, alpha), given_offset=True)


def is_borne_out(claim: Certificate, found: Certificate) -> bool:
    """Whether a claim says no more than its points do, rounding apart."""
    size = SAME * max(abs(found.primal), abs(found.dual))
    lowest, highest = found.primal - 2.0 * found.primal_rounding - size, found.dual + 2.0 * found.dual_rounding + size
    return bool(claim.primal >= lowest and claim.dual <= highest)


def weigh(problem: Any, points: Mapping[str, Evaluation]) -> None:
    """Raise ValueError where the data contradict a point's certificate: a stored proof is always checked.

    Rows in files are not read for the check when a run begins again, but when it ends (:func:`weighed`).
    """
    if not weighs(problem):
        return
    accuracy = ACCURACY[dtype_of(problem.X).itemsize]
    for name, point in points.items():
        found = weighed(problem, point, point.alpha).certificate
        claim, size = point.certificate, accuracy * max(abs(found.primal), abs(found.dual))
        true = abs(claim.primal - found.primal) <= size and claim.dual <= found.dual + size
        demand(true, f"its {name} point does not have the objectives that it claims")


def weigh_tracked(problem: Any, fresh: Any, arrays: Mapping[str, np.ndarray]) -> None:
    """Raise ValueError where the weights of a dual solver are not those of its dual point.

    A certificate relies on these weights, to save a pass over the rows. (With a free intercept it does not.)
    """
    if not isinstance(fresh, (DualState, JointState)) or getattr(fresh, "offset", np.empty(0)).size:
        return
    w, alpha = arrays["w"], arrays["alpha"]
    if isinstance(fresh, JointState):
        w, true = by_class(problem.X, w), joint_weights(problem, alpha)
    else:
        true = dual_weights(problem, alpha)
    each = np.square(alpha).reshape(alpha.shape[0], -1).sum(axis=1) @ problem.norms  # what the rounding is of
    size = float(np.linalg.norm(true)) + problem.C * math.sqrt(float(each))
    apart = float(np.linalg.norm(w.astype(np.float64) - true))
    demand(apart <= DRIFT[w.dtype.itemsize] * size, "its weights are not those of its dual point")


def check_state(
    problem: Any, fresh: Any, arrays: Mapping[str, np.ndarray], plain: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """The arrays to resume with; ValueError unless the fields could be the state of a run on `problem`.

    Parameters
    ----------
    problem : Problem
    fresh : State
        Of a run that has just begun.
    arrays, plain : mapping
        The fields that were stored.
    """
    durable = stored_fields(fresh)
    arrays = {name: one for name, one in durable.items() if is_later(name) and isinstance(one, np.ndarray)} | {**arrays}
    fields = durable.keys() | {column.name for column in dataclasses.fields(fresh)}
    odd = next((name for name in (*arrays, *plain) if name not in fields), None)
    demand(odd is None, f"it holds {odd!r}, which this solver's runs do not have")
    for name, was in durable.items():
        if isinstance(was, np.ndarray):
            demand(name in arrays, f"its {name} is missing")
            check_array(name, arrays[name], was)
        else:
            demand(name in plain or isinstance(was, bool) or is_later(name), f"its {name} is missing")
            check_plain(name, plain.get(name, was), was)
    state = State(problem, fresh, {**arrays}, {**plain})
    state.check()
    weigh_tracked(problem, fresh, arrays)
    return state.arrays


def check_array(name: str, found: np.ndarray, fresh: np.ndarray) -> None:
    """Raise ValueError for another type or shape than the field of a run that has just begun."""
    alike = found.dtype == fresh.dtype or {found.dtype, fresh.dtype} <= PRECISIONS
    empty = name in GROWING and not fresh.size and found.dtype in (*PRECISIONS, np.dtype(np.int32))
    demand(alike or empty, f"its {name} is of type {found.dtype}, where {fresh.dtype} is needed")
    shaped = found.shape == fresh.shape or (name in GROWING and found.ndim == fresh.ndim)
    demand(shaped, f"its {name} has shape {found.shape}, where {fresh.shape} is needed")
    if name in FINITE:
        demand(np.isfinite(found).all(), f"its {name} is not finite")


def check_plain(name: str, found: Any, fresh: Any) -> None:
    """Raise ValueError for another kind of number than the field of a run that has just begun."""
    if isinstance(fresh, (bool, str)):
        demand(type(found) is type(fresh), f"its {name} is {str(found)[:40]!r}")
    elif isinstance(fresh, (int, np.integer)):
        demand(type(found) is int and 0 <= found < MOST, f"its {name} is {str(found)[:40]!r}")
    else:
        real = (type(found) in (int, float) and abs(found) < LARGEST) or found in UNKNOWN
        demand(real and not isinstance(found, bool), f"its {name} is {str(found)[:40]!r}")


@dataclasses.dataclass
class State:
    """The fields of a state to resume, and the rules for its positions and indices."""

    problem: Any
    fresh: Any
    arrays: dict[str, np.ndarray]
    plain: dict[str, Any]

    def check(self) -> None:
        """Raise ValueError for a place or an index out of range."""
        self.counters()
        if "walk_back" in self.arrays:
            width = self.fresh.w.size
            demand(self.arrays["walk_back"].size in (0, width), "its walk_back has another width")
            kept = self.arrays["walk_base"].size, self.arrays["walk_matrix"].shape
            demand(kept in ((0, (0, 0)), (width, (width, width))), "its walk_matrix has another width")
            inner = {one.size for name, one in self.arrays.items() if name.startswith("walk_inner_")}
            demand(inner in ({0}, {width}), "its conjugate gradients have another width")
        if "proof" in self.arrays:
            demand(self.arrays["proof"].shape in ((0,), (7,)), "its proof has another size")
            demand(self.arrays["dual_bound"].shape in ((0,), (2,)), "its dual_bound has another size")
        if "moves" in self.arrays:
            pairs, width = self.arrays["moves"].shape, self.fresh.w.size
            demand(pairs == self.arrays["turns"].shape and pairs[1] == width, "its moves have another width")
            sizes = {self.arrays[name].size for name in ("model", "pull")}
            demand(sizes in ({0}, {width}), "its model has another width")
        if "narrow_back" in self.arrays:
            demand(self.arrays["narrow_back"].size in (0, self.fresh.w.size), "its narrow_back has another width")
        if "phase" in self.plain:
            demand(self.arrays["seen"].shape[1:] == (2,), "its estimates are not pairs")
            phases = ("coordinate descent", "blocks", "Newton", "dense Newton", "interior point", "columns")
            demand(self.plain["phase"] in phases, f"its phase is {self.plain['phase'][:40]!r}")
        if "course_phase" in self.plain:
            demand(self.arrays["course_seen"].shape[1:] == (2,), "its gaps are not pairs")
            phase = self.plain["course_phase"]
            demand(phase in ("crammer_singer", "Newton"), f"its course_phase is {phase[:40]!r}")
        if "edges" in self.arrays:
            self.blocks()
            return
        self.rows()
        if "bounds" in self.arrays:
            self.parts()
        elif "sequence" in self.arrays:
            demand(self.arrays["blocks"].shape == self.fresh.blocks.shape, "its room for runs of rows has another size")
            self.sequence(self.arrays["sequence"], self.arrays["meters"], self.plain["position"], "position")
        elif "position" in self.plain:
            least = self.plain["active"] if "counts" in self.arrays else self.members.size
            demand(self.plain["position"] <= max(least - 1, 0), "its position is behind the last row")
        if "counts" in self.arrays:
            self.classes()
        if "window_start" in self.plain:
            self.windows()
        if "best_w" in self.arrays:
            best = self.arrays["best_w"].size, self.arrays["best_alpha"].size
            demand(best == (self.fresh.w.size, self.problem.y.size), "its best point has another size")

    @property
    def members(self) -> np.ndarray:
        """The rows of the problem."""
        return np.asarray(self.problem.members)

    def counters(self) -> None:
        """Counts of rows and passes."""
        demand(self.plain["active"] <= max(self.members.size, self.fresh.active), "more rows are active than there are")
        finite = ("epochs", "rows_touched", "next_prediction", "base_epochs", "rests_until", "patience", "q")
        for name in (*finite, "course_next_look", "course_q", "course_patience", "course_rests_until"):
            if name in self.plain:
                demand(0.0 <= self.plain[name] < math.inf, f"its {name} is {self.plain[name]!r}")

    def are_rows(self, found: np.ndarray, name: str) -> None:
        """Numbers of rows of the problem, some perhaps more than once."""
        inside = np.zeros(self.problem.y.size, dtype=bool)
        inside[self.members] = True
        in_range = not found.size or 0 <= int(found.min()) <= int(found.max()) < inside.size
        demand(in_range and inside[found].all(), f"its {name} holds numbers of rows that there are not")

    def rows(self) -> None:
        """The orders of the rows: a permutation, or, where rows are set aside, ascending among the active ones."""
        for name in ("order", "parts"):
            if name in self.arrays:
                found = self.arrays[name]
                demand(found.shape == self.members.shape, f"its {name} is of other rows")
                self.are_rows(found, name)
                compacted = name == "order" and "aside" in self.arrays
                if not compacted:
                    every = np.bincount(found, minlength=self.problem.y.size)[self.members]
                    demand((every == 1).all(), f"its {name} is no permutation of the rows")
        if "aside" in self.arrays:
            demand((self.arrays["aside"] <= 1).all(), "its aside holds other numbers than 0 and 1")

    def sequence(self, found: np.ndarray, meters: np.ndarray, position: int, name: str) -> None:
        """The rows of a pass under way, and the place in it."""
        length, most = float(meters["length"][0]), found.size
        demand(0.0 <= length <= most and length == int(length), f"its pass has {length:g} of {most} rows")
        demand(0 <= position <= int(length), f"its {name} is behind the end of the pass")
        self.are_rows(found[: int(length)], "sequence")

    def parts(self) -> None:
        """The parts of several threads, each with a pass of its own."""
        bounds, positions, actives = (self.arrays[name] for name in ("bounds", "positions", "actives"))
        ascending = bounds[0] == 0 and bounds[-1] == self.members.size and (np.diff(bounds) > 0).all()
        demand(ascending, "its parts are not of all rows")
        if "often" in self.arrays:
            demand(np.array_equal(self.arrays["often"], self.fresh.often), "its frequent features are others")
        meters, sequence = self.arrays["part_meters"], self.arrays["sequence"]
        demand(sequence.shape == self.members.shape, "its sequence is of other rows")
        if self.fresh.blocks.size:  # of parts that are dealt out at random, each as large as it turns out
            most = int(np.diff(bounds).max()) + 2
            self.arrays["blocks"] = np.empty((len(positions), most), dtype=self.fresh.blocks.dtype)
        sizes = [self.members.size] if self.plain["alone"] else np.diff(bounds).tolist()
        for k, size in enumerate(sizes):
            start = 0 if self.plain["alone"] else int(bounds[k])
            demand(0 <= actives[k] <= size, "more rows of a part are active than there are")
            self.sequence(sequence[start : start + size], meters[k : k + 1], int(positions[k]), "positions")

    def classes(self) -> None:
        """The classes of each row in an order of its own."""
        classes, counts = self.arrays["classes"], self.arrays["counts"]
        K = classes.shape[1]
        demand(((counts >= 0) & (counts <= K)).all(), "its counts of classes are out of range")
        demand((np.sort(classes, axis=1) == np.arange(K)).all(), "its classes of a row are no permutation")

    def windows(self) -> None:
        """When the windows of an average began."""
        last = self.plain["iteration" if "iteration" in self.plain else "clock"]
        inner = (self.plain["earlier_start"], self.plain["window_start"], last)
        demand(list(inner) == sorted(inner) and self.plain.get("forgotten", 0) <= last, "its windows overlap")

    def blocks(self) -> None:
        """The order of the chunks of rows that are read from files."""
        edges, order, following = (self.arrays[name] for name in ("edges", "order", "following"))
        fine = edges.dtype.kind == "i" and edges.size >= 2 and edges[0] == 0 and (np.diff(edges) > 0).all()
        demand(fine and edges[-1] == self.problem.y.size, "its chunks are of other rows")
        for name, found in (("order", order), ("following", following)):
            whole = found.dtype.kind == "i" and np.array_equal(np.sort(found), np.arange(edges.size - 1))
            demand(whole or (name == "following" and not found.size), f"its {name} is no permutation of the chunks")
        demand(self.plain["position"] < edges.size - 1, "its position is behind the last chunk")
        kept, norms = self.arrays["kept"], self.arrays["kept_norms"]
        demand(norms.size in (0, kept.size), "its kept_norms are of other rows")
        if kept.size:
            demand(kept.dtype.kind == "i", "its kept holds no numbers of rows")
            self.are_rows(kept, "kept")
        for name in ("judged", "model", "bound_w"):
            size = self.arrays[name].size
            demand(size == self.fresh.w.size or (size == 0 and name != "judged"), f"its {name} has another width")
