"""Forged proofs from nothing, and a judge in exact arithmetic that shares no code with the checker.

A forger states any problem, in known words and others, with any weights and multipliers, and claims
the tightest bounds that the checker itself computes. The judge reads the problem as a person would.
An accepted proof is false if its weights cost more than claimed, if any weights cost less than the
least objective claimed, or if the words of the problem do not say what is minimised.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import minimize

from saddlesvm import checker

Forged = tuple[dict[str, Any], list[dict[int, float]], list[str]]

OF_LABELS = ("hinge", "squared_hinge", "smooth_hinge", "logistic")
OF_TARGETS = ("epsilon_insensitive", "squared_epsilon_insensitive", "huber", "pinball")
LABELS = (
    ("1", "-1"),
    ("1", "-1"),
    ("0", "1"),
    ("0", "1"),
    ("2",),
    ("-3", "1"),
    ("0.5", "-0.5"),
    ("0", "1", "2"),
    ("9007199254740992", "9007199254740993"),
    ("9007199254740992", "9007199254740993", "1"),
)
DIGITS = 60  # of logarithms
DRAWS = 8  # the weights and multipliers of the least gap are taken


def hexed(x: float) -> str:
    return float(x).hex()


def forge(random: np.random.Generator) -> Forged:
    """A sealed proof, and the rows and labels that it is about."""
    n, d = int(random.integers(2, 7)), int(random.integers(1, 4))
    X = random.integers(-8, 9, (n, d)) / 4
    rows = [{j: x for j, x in enumerate(row) if x} for row in X.tolist()]
    labels = [str(one) for one in random.choice(LABELS[random.integers(len(LABELS))], n)]
    text = bool(random.random() < 0.3)
    problem = _draw_problem(random, labels, text, d)
    seen: list[Any] = list(labels) if problem["text"] else [float(one) for one in labels]
    claim, least = [hexed(1.0), hexed(0.0), hexed(1.0)], np.inf
    count = _count_parts(random, problem)
    parts: list[dict[str, Any]] = []
    for _ in range(DRAWS):
        drawn = [_draw_part(random, problem, n, d) for _ in range(count)]
        if least == np.inf:
            parts = drawn
        try:
            primal, dual = checker.bound(problem, drawn, rows, seen)
        except Exception:  # the checker must say so again when it reads the proof
            continue
        if float(primal - dual) < least:
            least, parts = float(primal - dual), drawn
            high = np.nextafter(float(primal), np.inf)
            low = np.nextafter(float(dual), -np.inf)
            claim = [hexed(high), hexed(low), hexed(np.nextafter(high - low, np.inf))]
    sealed = [checker.fingerprint(rows, seen), problem, parts, claim]
    proof: dict[str, Any] = dict(zip(("data", "problem", "parts", "claim"), sealed, strict=True))
    proof["seal"] = hashlib.sha256(json.dumps(sealed, sort_keys=True).encode()).hexdigest()
    return proof | {"proof": 1, "read": {}}, rows, labels


def _draw_problem(random: np.random.Generator, labels: list[str], text: bool, d: int) -> dict[str, Any]:
    splits = ["targets", "ovr", "ovo", "multinomial", "pairs"]
    split = str(random.choice(splits, p=[0.4, 0.25, 0.15, 0.15, 0.05]))
    losses = ("multinomial",) if split == "multinomial" else OF_LABELS
    losses = (*OF_LABELS, *OF_TARGETS) if split == "targets" else losses
    if random.random() < 0.15:
        losses = (*OF_LABELS, *OF_TARGETS, "multinomial", "zero_one")
    known = sorted(set(labels)) if text else sorted({float(one) for one in labels})
    if random.random() < 0.1:
        known = [*known, known[0]]
    if random.random() < 0.1:
        known = [*known, "7" if text else 7.0]
    classes: list[Any] = [one if text else hexed(one) for one in known]
    if (split == "targets") != (random.random() < 0.05):
        classes, text = [], text and random.random() < 0.1
    square, l1 = [(1.0, 0.0), (1.0, 0.0), (0.5, 0.5), (0.0, 1.0)][random.integers(4)]
    return {
        "loss": str(random.choice(losses)),
        "option": hexed(random.choice([0.0, 0.25, 0.5, 1.0, 2.0], p=[0.2, 0.2, 0.3, 0.2, 0.1])),
        "form": str(random.choice(["C", "lambda", "c"], p=[0.7, 0.25, 0.05])),
        "strength": hexed(random.choice([0.01, 0.25, 1.0, 4.0])),
        "square": hexed(square),
        "l1": hexed(l1),
        "intercept": str(random.choice(["none", "regularized", "free", "some"], p=[0.4, 0.3, 0.25, 0.05])),
        "feature": hexed(random.choice([0.5, 1.0, 3.0])),
        "features": d,
        "split": split,
        "text": text,
        "classes": classes,
    }


def _count_parts(random: np.random.Generator, problem: dict[str, Any]) -> int:
    K = len(problem["classes"])
    count = {"ovr": 1 if K == 2 else K, "ovo": K * (K - 1) // 2}.get(problem["split"], 1)
    return count if random.random() < 0.95 else count + 1


def _draw_part(random: np.random.Generator, problem: dict[str, Any], n: int, d: int) -> dict[str, Any]:
    K = len(problem["classes"]) if problem["loss"] == "multinomial" else 1
    if random.random() < 0.05:
        K += 1
    intercept = problem["intercept"] != "none" or random.random() < 0.05
    weights = None
    if random.random() < 0.3:
        weights = [hexed(x) for x in random.choice([0.0, 0.5, 1.0, 2.0], n)]
    multipliers: dict[str, list[str]] = {}
    for i in range(n):
        if random.random() < 0.5:
            drawn = random.choice([-1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0, 2.0], K)
            multipliers[str(i)] = [hexed(x) for x in drawn]
    return {
        "w": [[hexed(x) for x in random.integers(-8, 9, d) / 8] for _ in range(K)],
        "b": [hexed(random.integers(-4, 5) / 4 if intercept else 0.0) for _ in range(K)],
        "at": [hexed(random.integers(-4, 5) / 4) for _ in range(K)],
        "scale": hexed(random.choice([1.0, 0.5, 0.0], p=[0.7, 0.2, 0.1])),
        "multipliers": multipliers if random.random() < 0.7 else {},
        "weights": weights,
    }


def refute(forged: Forged) -> str:
    """Why the claim of an accepted proof is false or says nothing; empty if it is neither."""
    proof, rows, labels = forged
    problem, parts = proof["problem"], proof["parts"]
    try:
        codes = _codes(problem, labels)
    except ValueError as error:
        return str(error)
    for name, words in (
        ("form", ("C", "lambda")),
        ("intercept", ("none", "free", "regularized")),
        ("loss", (*OF_LABELS, *OF_TARGETS, "multinomial")),
    ):
        if problem[name] not in words:
            return f"the {name} {problem[name]!r} means nothing"
    if len(codes) != len(parts):
        return "there are more problems than the split has, or fewer"
    stated, best = Fraction(0), Fraction(0)
    for y, part in zip(codes, parts, strict=True):
        objective = _objective(problem, part, rows, y)
        K, given = _stated_model(part)
        scores = len(problem["classes"]) if problem["loss"] == "multinomial" else 1
        if scores != K:
            return "the weights are of more scores than the loss has"
        stated += objective(given)
        best += min(objective(point) for point in _candidates(objective, given, problem))
    high, low, gap = (Fraction(float.fromhex(one)) for one in proof["claim"])
    if stated > high:
        return f"the weights cost {float(stated)!r}, more than the {float(high)!r} claimed"
    if best < low:
        return f"some weights cost {float(best)!r}, less than the {float(low)!r} claimed"
    return "" if high - low <= gap else "the gap is less than the difference of the claims"


def _codes(problem: dict[str, Any], labels: list[str]) -> list[list[Any]]:
    """The labels of each problem: -1 and 1, targets, places in the classes, or None."""
    classes, split = problem["classes"], problem["split"]
    if split == "targets":
        if classes:
            raise ValueError("targets have classes")
        return [[Fraction(float(one)) for one in labels]]
    exact = classes if problem["text"] else [Fraction(float.fromhex(one)) for one in classes]
    found = [one if problem["text"] else Fraction(one) for one in labels]
    if len(set(exact)) != len(exact):
        raise ValueError("two classes are the same")
    if not set(found) <= set(exact):
        raise ValueError("a label is none of the classes")
    places = [exact.index(one) for one in found]
    K = len(exact)
    if split == "multinomial":
        return [places]
    if split == "ovr":
        chosen = [1] if K == 2 else range(K)
        return [[1 if one == k else -1 for one in places] for k in chosen]
    if split == "ovo":
        pairs = combinations(range(K), 2)
        return [[{a: -1, b: 1}.get(one) for one in places] for a, b in pairs]
    raise ValueError(f"the split {split!r} means nothing")


def _stated_model(part: dict[str, Any]) -> tuple[int, list[Fraction]]:
    """The number of scores, and all weights and intercepts in one list."""
    w = [[Fraction(float.fromhex(x)) for x in one] for one in part["w"]]
    b = [Fraction(float.fromhex(x)) for x in part["b"]]
    flat = [x for one, offset in zip(w, b, strict=True) for x in (*one, offset)]
    return len(w), flat


def _objective(
    problem: dict[str, Any], part: dict[str, Any], rows: list[dict[int, float]], y: list[Any]
) -> Callable[[list[Fraction]], Fraction]:
    """The objective of any weights, exact, or exact to 50 digits if it has logarithms."""
    names = ("strength", "option", "square", "l1", "feature")
    strength, option, square, l1, feature = (Fraction(float.fromhex(problem[x])) for x in names)
    d, intercept, loss = problem["features"], problem["intercept"], problem["loss"]
    n = sum(one is not None for one in y)
    C = strength if problem["form"] == "C" else 1 / (strength * n)
    scale = Fraction(1) if problem["form"] == "C" else strength
    s = [Fraction(float.fromhex(x)) for x in part["weights"]] if part["weights"] else [1] * len(y)

    def objective(point: list[Fraction]) -> Fraction:
        models = [point[k : k + d + 1] for k in range(0, len(point), d + 1)]
        total = Fraction(0)
        for *w, b in models:
            total += square / 2 * sum(x * x for x in w) + l1 * sum(map(abs, w))
            u = b / feature if intercept == "regularized" else Fraction(0)
            total += square / 2 * u * u if square else l1 * abs(u)
        for row, label, weight in zip(rows, y, s, strict=True):
            if label is not None and weight:
                z = [sum((w[j] * Fraction(x) for j, x in row.items()), w[-1]) for w in models]
                total += C * weight * _loss(loss, option, z, label)
        return scale * total

    return objective


def _loss(name: str, c: Fraction, z: list[Fraction], y: Any) -> Fraction:
    """The loss of a row, from its definition."""
    t = z[0] * y if name in OF_LABELS else z[0] - y
    if name == "multinomial":
        return _log_sum_exp([one - z[y] for one in z])
    if name == "logistic":
        return _log_sum_exp([Fraction(0), -t])
    lack = max(Fraction(0), 1 - t)
    beyond = max(Fraction(0), abs(t) - c)
    if name == "smooth_hinge":
        return lack - c / 2 if lack >= c else lack * lack / (2 * c)
    if name == "huber":
        return c * (abs(t) - c / 2) if abs(t) > c else t * t / 2
    return {
        "hinge": lack,
        "squared_hinge": lack**2,
        "epsilon_insensitive": beyond,
        "squared_epsilon_insensitive": beyond**2,
        "pinball": c * max(-t, Fraction(0)) + (1 - c) * max(t, Fraction(0)),
    }[name]


def _log_sum_exp(z: list[Fraction]) -> Fraction:
    with localcontext(prec=DIGITS):
        powers = [(Decimal(one.numerator) / Decimal(one.denominator)).exp() for one in z]
        return Fraction(sum(powers, Decimal(0)).ln())


def _candidates(
    objective: Callable[[list[Fraction]], Fraction], given: list[Fraction], problem: dict[str, Any]
) -> list[list[Fraction]]:
    """Weights that may cost less: none, those given, and what a search without derivatives finds."""
    width = problem["features"] + 1
    kept = np.array([1.0] * (width - 1) + [problem["intercept"] != "none"] * 1)
    mask = np.tile(kept, len(given) // width)

    def exact(x: np.ndarray) -> list[Fraction]:
        return [Fraction(float(one)) for one in x * mask]

    start = np.array([float(one) for one in given])
    found = [np.zeros_like(start), start]
    for point in list(found):
        result = minimize(
            lambda x: float(objective(exact(x))),
            point,
            method="Powell",
            options={"maxiter": 20, "maxfev": 400},
        )
        found.append(result.x)
    return [exact(one) for one in found]


def count(number: int) -> Counter[str]:
    """How many of so many forgeries are refused, accepted, and accepted although they are false."""
    found: Counter[str] = Counter()
    for seed in range(number):
        forged = forge(np.random.default_rng([51, seed]))
        proof, rows, labels = forged
        try:
            checker.check(json.loads(json.dumps(proof)), rows, labels)
        except Exception:
            found["refused"] += 1
            continue
        found["accepted"] += 1
        reason = refute(forged)
        if reason:
            found["false"] += 1
            print(f"forgery {seed}: {reason}")
    return found


if __name__ == "__main__":
    print(dict(count(int(sys.argv[1]))))
