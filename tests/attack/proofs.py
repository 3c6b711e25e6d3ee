"""Proof files under attack: drawn problems whose proofs must hold and agree, and tampered proofs that must be refused.

A tampered proof whose seal is made anew may be true: a weight that moved by a rounding leaves a gap as claimed. It is
refuted where its bounds and those of the sound proof of the same problem exclude each other.
"""

from __future__ import annotations

import copy
import hashlib
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from saddlesvm import LinearSVC, LinearSVR, NotCertifiedWarning, checker
from saddlesvm.estimators.proof_files import Proof, labels_for_checker, rows_for_checker

from .tally import Tally

SLOWEST = 60.0  # seconds after which a check counts as hung
CLASSIFIERS = ("hinge", "squared_hinge", "smooth_hinge", "logistic")
REGRESSORS = ("squared", "absolute", "epsilon_insensitive", "squared_epsilon_insensitive", "huber", "pinball:tau=0.7")
SEALED = ("data", "problem", "parts", "claim")
Data = tuple[np.ndarray, np.ndarray, np.ndarray | None]


def drawn(random: np.random.Generator) -> tuple[Any, Data]:
    """A model that is not fitted yet, and data: any loss, penalty, intercept, way to split, weights and size."""
    n, d = int(random.integers(6, 40)), int(random.integers(1, 6))
    X = random.normal(size=(n, d)) * 10.0 ** random.integers(-2, 3, size=d)
    X[random.random((n, d)) < random.choice([0.0, 0.5])] = 0.0
    score = X @ random.normal(size=d) + random.normal(size=n)
    weights = random.uniform(0.5, 2.0, n) * (random.random(n) < 0.9) if random.random() < 0.3 else None
    penalty = str(random.choice(["l2", "l2", "l1", "elasticnet"]))
    options: dict[str, Any] = {
        "penalty": penalty,
        "intercept": str(random.choice(["regularized", "free", "none"])),
        "intercept_scaling": float(random.choice([1.0, 3.0])),
        "tol": float(10.0 ** -random.integers(2, 9)),
        "random_state": 0,
        "max_time": 5.0,
    }
    options["lam" if random.random() < 0.3 else "C"] = float(10.0 ** random.uniform(-3, 2))
    if random.random() < 0.5:
        return LinearSVR(loss=str(random.choice(REGRESSORS)), epsilon=0.1, **options), (X, score, weights)
    y = np.digitize(score, np.quantile(score, [0.5] if random.random() < 0.5 else [0.3, 0.7]))
    for k in range(3):
        if weights is not None and (y == k).any():
            weights[np.flatnonzero(y == k)[0]] = 1.0
    split = str(random.choice(["ovr", "ovo", "multinomial"] if penalty == "l2" else ["ovr", "ovo"]))
    loss = "logistic" if split == "multinomial" else str(random.choice(CLASSIFIERS))
    balanced = "balanced" if random.random() < 0.2 and weights is None else None
    labels = np.array(["low", "mean", "high"])[y] if random.random() < 0.3 else y
    return LinearSVC(loss=loss, multi_class=split, class_weight=balanced, **options), (X, labels, weights)


def proven(random: np.random.Generator) -> tuple[Any, Data, Proof]:
    """A fitted model, its data and its proof, which went through JSON."""
    model, (X, y, weights) = drawn(random)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertifiedWarning)
        model.fit(X, y, sample_weight=weights)
    return model, (X, y, weights), json.loads(json.dumps(model.proof(X, y, weights)))


def disagreement(model: Any, data: Data, proof: Proof) -> str:
    """How the certificate of a model and its proof contradict each other; empty where they do not."""
    high, low, gap = map(float.fromhex, proof["claim"])
    own = model.certificate_
    checker.check(proof, rows_for_checker(data[0]), labels_for_checker(data[1], proof["problem"]["text"]))
    if not low <= own.primal or not own.dual <= high:
        return f"the bounds exclude each other: {own} and {high!r}, {low!r}"
    units = abs(own.primal) * 1e-15  # the constants of an elastic net are rounded
    if not own.primal - 2.0 * own.primal_rounding - units <= high <= own.primal + units:
        return f"the objective is {high!r}, the certificate has {own.primal!r} +- {own.primal_rounding!r}"
    if gap > 2.0 * own.gap + 2.0 * own.rounding + abs(high) * 1e-9:
        return f"the gap is {gap!r}, that of the certificate {own.gap!r}"
    return ""


def agreements(folder: Path, seed: int, first: int, count: int) -> Tally:
    """Proofs of drawn problems hold, and agree with the certificates."""
    tally = Tally("proofs")
    for number in range(first, first + count):
        tally.cases += 1
        try:
            model, data, proof = proven(np.random.default_rng([seed, number]))
            found = disagreement(model, data, proof)
        except (ValueError, ArithmeticError) as error:
            found = f"{type(error).__name__}: {error}"
        tally.outcomes["agree" if not found else "disagree"] += 1
        if found:
            tally.failures.append(f"case {seed}:{number}: {found}")
    return tally


def resealed(proof: Proof) -> Proof:
    """The proof with the seal that its content has now."""
    text = json.dumps([proof.get(name) for name in SEALED], sort_keys=True).encode()
    return proof | {"seal": hashlib.sha256(text).hexdigest()}


WILD = ("nan", "inf", "-inf", "0x1p99999", "1e400", "0x1p-1074", "-0x1.fffffffffffffp+1023", "", "0x", "1" * 9999,
        None, True, 7, -1, 1e308, [], {}, [[]], "\x00", "0x1p+0")  # fmt: skip


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to everything in a proof."""
    inner = list(node.items()) if isinstance(node, dict) else list(enumerate(node)) if isinstance(node, list) else []
    return [one for key, value in inner for one in ((*path, key), *places(value, (*path, key)))]


def changed(proof: Proof, path: tuple[Any, ...], change: Callable[[Any], Any]) -> Proof:
    """A copy with another value at a path."""
    made = copy.deepcopy(proof)
    node = made
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = change(node[path[-1]])
    return made


def bent(random: np.random.Generator, text: Any) -> Any:
    """A number in hexadecimal that was moved by a little or a lot; something wild in place of anything else."""
    try:
        value = float.fromhex(text)
    except (TypeError, ValueError, OverflowError):
        return WILD[random.integers(len(WILD))]
    moved = [value * (1 + 2.0**-52), value * 1.001, -value, value + 1.0, value * 1e300, 0.0]
    return float(moved[random.integers(len(moved))]).hex()


def tampered(random: np.random.Generator, proof: Proof) -> tuple[Proof, str]:
    """A proof with one thing changed, and the family of the change."""
    paths = [path for path in places(proof) if path[0] not in ("seal", "proof", "read")]
    inner = [path for path in paths if path[0] == "parts" and len(path) > 2]
    family = str(random.choice(["weights", "claim", "problem", "wild", "gone", "nested", "hash"]))
    if family == "weights":
        return changed(proof, inner[random.integers(len(inner))], lambda one: bent(random, one)), family
    if family in ("claim", "problem"):
        chosen = [path for path in paths if path[0] == family and len(path) > 1]
        return changed(proof, chosen[random.integers(len(chosen))], lambda one: bent(random, one)), family
    path = paths[random.integers(len(paths))]
    if family == "gone":
        made = copy.deepcopy(proof)
        node: Any = made
        for key in path[:-1]:
            node = node[key]
        del node[path[-1]]
        return made, family
    if family == "hash":
        return proof | {"data": proof["data"][::-1]}, family
    deep: Any = []
    for _ in range(int(random.choice([3, 100_000])) if family == "nested" else 0):
        deep = [deep]
    wild = WILD[random.integers(len(WILD))]
    return changed(proof, path, lambda one: deep if family == "nested" else wild), family


def verdict(proof: Proof, data: Data) -> str:
    """The checker's line about a proof; empty where it accepts."""
    try:
        checker.check(proof, rows_for_checker(data[0]), labels_for_checker(data[1], proof["problem"]["text"]))
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return ""


def still_true(proof: Proof, sound: Proof) -> bool:
    """Whether an accepted claim follows from the sound proof: the problem is the same, and so is the least objective.

    The best of both bounds of one problem must not exclude each other; of another problem nothing is known here.
    """
    if [proof["problem"], [part["weights"] for part in proof["parts"]]] != [
        sound["problem"], [part["weights"] for part in sound["parts"]],
    ]:  # fmt: skip
        return True
    high, low, _ = map(float.fromhex, proof["claim"])
    other_high, other_low, _ = map(float.fromhex, sound["claim"])
    return low <= other_high and other_low <= high


def forgeries(folder: Path, seed: int, first: int, count: int) -> Tally:
    """Tampered proofs, and tampered data: all are refused; with a new seal, refused or still true."""
    tally, sound = Tally("forgeries"), None
    for number in range(first, first + count):
        random = np.random.default_rng([seed, number])
        if sound is None or number % 20 == 0:
            sound = proven(random)
        _, data, proof = sound
        tally.cases += 1
        if number % 5 == 0:
            X = data[0].copy()
            place = tuple(random.integers(X.shape))
            X[place] = np.nextafter(X[place], np.inf) if random.random() < 0.5 else X[place] + 1.0
            forged, family, shown = proof, "data", (X, *data[1:])
        else:
            forged, family = tampered(random, proof)
            shown = data
        if forged == proof and family != "data":
            tally.outcomes["unchanged"] += 1
            continue
        began = time.perf_counter()
        told = verdict(forged, shown)
        again = "data" if family == "data" else verdict(with_new_seal(forged), shown)
        tally.outcomes[f"{family} refused" if told else f"{family} accepted"] += 1
        if not told:
            tally.failures.append(f"case {seed}:{number}: {family}: accepted")
        if not again:
            tally.outcomes["true with a new seal"] += 1
            if not still_true(forged, proof):
                tally.failures.append(f"case {seed}:{number}: {family}: a false claim with a new seal is accepted")
        if time.perf_counter() - began > SLOWEST:
            tally.failures.append(f"case {seed}:{number}: {family}: took {time.perf_counter() - began:.0f} seconds")
    return tally


def with_new_seal(proof: Proof) -> Proof:
    """The proof sealed anew, or as it is where no seal can be made."""
    try:
        return resealed(proof)
    except (RecursionError, ValueError, TypeError):
        return proof
