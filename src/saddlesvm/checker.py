"""Check a proof that a linear model is near its optimum: ``python checker.py proof.json DATA``, with Python alone.

A model (w, b) pays ``P = q/2 |w|^2 + l |w|_1 + C sum_i s_i phi_i(x_i.w + b)``; where its intercept is the weight of a
constant feature B, also ``q/2 (b/B)^2``, or ``l |b/B|`` if q = 0. Every a in the domain of the conjugates bounds the P
of all models from below (weak duality; if the intercept is free of charge, every such a with ``sum_i a_i = 0``):

    D = -C sum_i s_i phi_i*(-a_i / s_i) - sum_j max(0, |v_j| - l)^2 / 2q,   v = C sum_i a_i x_i

The proof holds w, b and what a needs: ``a_i = -s_i phi_i'(z_i)`` but for listed rows, all times a scale. Multinomial
regression has K vectors w, and columns of a. Numbers are fractions, without rounding; exp and log are bounded above.
"""

# fmt: off
import csv
import hashlib
import json
import math
import sys
from array import array
from fractions import Fraction
from itertools import chain, combinations
from operator import add, sub
from pathlib import Path
from typing import Any

BITS, ONE, ZERO = 128, 1 << 128, Fraction(0)  # numbers in "units" have BITS behind the point

def need(condition: object, why: str) -> None:
    if not condition:
        raise ValueError(why)

def numbers(texts: Any, count: int, what: str) -> list[Fraction]:
    """The numbers that a list of texts such as "0x1.8p+1" stands for."""
    need(isinstance(texts, list) and len(texts) == count, f"{what} must be a list of {count} hexadecimal numbers")
    return [Fraction(float.fromhex(text)) for text in texts]

def scaled(values: list[Any]) -> tuple[list[int], int]:
    """Whole numbers m_i and k with ``values_i = m_i / 2^k``, of floats."""
    bits = max((x.as_integer_ratio()[1].bit_length() - 1 for x in values), default=0)
    return [(above << bits) // below for above, below in (x.as_integer_ratio() for x in values)], bits

def units(x: Any) -> int:
    """x in units of 2^-BITS, rounded up."""
    return -((-x.numerator << BITS) // x.denominator)

def exp_up(t: int) -> int:
    """At least ``e^t``, and little more; t, at most 80, and the result in units."""
    t = max(t, -80 * ONE)
    halvings = max(0, abs(t).bit_length() - BITS + 5)
    r = -(-t >> halvings)  # rounded up, at most 1/32
    total, term = ONE + 64, ONE
    for k in range(1, 24):  # a term is off by less than 2 units, and all that are left out by less than 1
        term = term * r // (k << BITS)
        total += term
    for _ in range(halvings):
        total = (total * total >> BITS) + 1
    return total

def log_up(x: Fraction) -> Fraction:
    """At least ``log x``, as ``log x <= y + x e^-y - 1`` for every y, and so for that of a float; 0 where x is tiny."""
    y = int(math.ldexp(math.log((up := units(x)) / ONE), 60)) << BITS - 60 if x > 2**-90 else 0
    return Fraction(y + (up * exp_up(-y) >> BITS) + 1 - ONE, ONE) if x > 2**-90 else ZERO

def softmax(z: list[Fraction]) -> tuple[Fraction, list[Fraction]]:
    """At least ``log sum_k e^z_k``, and about the share of each term."""
    top = max(z)
    total = sum(powers := [exp_up(units(one - top)) for one in z])
    return top + log_up(Fraction(total, ONE)), [Fraction(one, total) for one in powers]

# name: phi(t), -phi'(t), phi*(-b) or None where that is infinite; t = y z of labels, t = z - y of targets; c an option
LABELS: dict[str, Any] = {
    "hinge": (lambda t, c: max(0, 1 - t), lambda t, c: int(t < 1), lambda b, c: -b if 0 <= b <= 1 else None),
    "squared_hinge": (lambda t, c: max(0, 1 - t) ** 2, lambda t, c: 2 * max(0, 1 - t),
                      lambda b, c: b * b / 4 - b if b >= 0 else None),
    "smooth_hinge": (lambda t, c: 1 - t - c / 2 if t <= 1 - c else max(0, 1 - t) ** 2 / (2 * c),
        lambda t, c: min(max((1 - t) / c, 0), 1), lambda b, c: c * b * b / 2 - b if 0 <= b <= 1 else None),
    "logistic": (lambda t, c: softmax([ZERO, -t])[0], lambda t, c: softmax([ZERO, -t])[1][1],
                 lambda b, c: b * log_up(b) + (1 - b) * log_up(1 - b) if 0 <= b <= 1 else None)}
TARGETS: dict[str, Any] = {
    "epsilon_insensitive": (lambda t, c: max(abs(t) - c, 0), lambda t, c: (t < -c) - (t > c),
                            lambda b, c: c * abs(b) if -1 <= b <= 1 else None),
    "squared_epsilon_insensitive": (lambda t, c: max(abs(t) - c, 0) ** 2,
        lambda t, c: 2 * (max(-t - c, 0) - max(t - c, 0)), lambda b, c: c * abs(b) + b * b / 4),
    "huber": (lambda t, c: t * t / 2 if abs(t) <= c else c * (abs(t) - c / 2), lambda t, c: min(max(-t, -c), c),
              lambda b, c: b * b / 2 if -c <= b <= c else None),
    "pinball": (lambda t, c: max(-c * t, (1 - c) * t), lambda t, c: c * (t < 0) - (1 - c) * (t > 0),
                lambda b, c: ZERO if c - 1 <= b <= c else None)}

def respond(loss: str, c: Fraction, z: list[Fraction], y: Any) -> tuple[Any, list[Any]]:
    """phi, and -phi' by each score."""
    if loss == "multinomial":
        total, p = softmax(z)
        return total - z[y], [(k == y) - one for k, one in enumerate(p)]
    (value, slope, _), t, sign = (LABELS[loss], z[0] * y, y) if loss in LABELS else (TARGETS[loss], z[0] - y, 1)
    return value(t, c), [slope(t, c) * sign]

def conjugate(loss: str, c: Fraction, a: list[Fraction], y: Any) -> Any:
    """``phi*(-a)``, None where it is infinite."""
    if loss == "multinomial":
        p = [(k == y) - one for k, one in enumerate(a)]
        return sum(one * log_up(one) for one in p) if min(p) >= 0 == sum(a) else None
    found = LABELS[loss][2](a[0] * y, c) if loss in LABELS else TARGETS[loss][2](a[0], c)
    return found if loss in LABELS or found is None else found - a[0] * y

WORDS = {
    "form": ("C", "lambda"), "intercept": ("regularized", "free", "none"),
    "split": ("targets", "ovr", "ovo", "multinomial"), "loss": ("multinomial", *LABELS, *TARGETS)}
OPTIONS = {"smooth_hinge": "width", "epsilon_insensitive": "epsilon", "huber": "delta",
           "squared_epsilon_insensitive": "epsilon", "pinball": "tau"}

def check_words(problem: Any) -> None:
    """Raise ValueError unless every word of a problem is known, and the words fit together."""
    for name, words in WORDS.items():
        need(problem[name] in words, f"the {name} {problem[name]!r} is none of {', '.join(words)}")
    classes, text, width = problem["classes"], problem["text"], problem["features"]
    need(type(text) is bool, "text must be true or false")
    need(type(width) is int and width >= 0, "the number of features must be a whole number")
    joint = problem["split"] == "multinomial"
    need(joint == (problem["loss"] == "multinomial"), "multinomial is a loss and a split in one")
    if problem["split"] == "targets":
        need(classes == [] and not text, "targets have no classes")
        return
    if text:
        need(all(type(one) is str for one in classes), "classes in text must be texts")
        known = classes
    else:
        # A whole number from 2^53 on may be read as its neighbour: such classes are stated as text.
        known = numbers(classes, len(classes), "classes")
        need(all(abs(one) < 2**53 for one in known), "classes beyond 2^53 must be texts")
    need(len(set(known)) == len(known) >= 2, "there must be two classes or more, all different")

def bounds(problem: Any, part: Any, rows: list[Any], bits: int, y: list[Any]) -> tuple[Fraction, Fraction]:
    """P, or a little more, and D, or a little less; y is None for rows that take no part."""
    loss = problem["loss"]
    K = len(problem["classes"]) if loss == "multinomial" else 1
    need(len(part["w"]) == K, f"a problem of this loss has weights for {K} scores")
    signs = all(label in (None, 1, -1) for label in y)
    need(loss not in LABELS or signs, f"the loss {loss} is for labels 1 and -1 only")
    members = [i for i, label in enumerate(y) if label is not None]
    texts = [*map(problem.get, ("option", "strength", "feature", "square", "l1")), part["scale"]]
    c, strength, B, q, l1, scale = numbers(texts, 6, "constants")
    need(loss != "pinball" or c <= 1, "tau is at most 1")
    need(min(q, l1, c, scale, 1 - scale) >= 0 < min(strength, B, q + l1), "a constant is out of bounds")
    C, unit = (1 / (strength * len(members)), strength) if problem["form"] == "lambda" else (strength, 1)
    s = numbers(part["weights"], len(rows), "weights") if part["weights"] else [Fraction(1)] * len(rows)
    b, at = numbers(part["b"], K, "intercepts"), numbers(part["at"], K, "offsets")
    charged, free = problem["intercept"] == "regularized", problem["intercept"] == "free"
    need(min(s) >= 0 and (charged or free or not any(b)), "a weight of a row or an intercept is out of bounds")
    P, D, paid, gained, Z, A, members = ZERO, ZERO, 0, 0, [], [], [i for i in members if s[i]]
    for texts, b_k in zip(part["w"], b, strict=True):
        w, u = numbers(texts, problem["features"], "weights"), b_k / B if charged else ZERO
        P += q * (sum(x * x for x in w) + u * u) / 2 + l1 * (sum(map(abs, w)) + (0 if q else abs(u)))
        m, w_bits = scaled(w)
        Z.append([Fraction(sum(x * m[j] for j, x in rows[i]), 1 << bits + w_bits) for i in members])
    for i, *z in zip(members, *Z, strict=True):
        paid += units(s[i] * respond(loss, c, list(map(add, z, b)), y[i])[0])
        a = [s[i] * one for one in respond(loss, c, list(map(add, z, at)), y[i])[1]]
        a = numbers(part["multipliers"][str(i)], K, "multipliers") if str(i) in part["multipliers"] else a
        A.append([int(one * scale * ONE) for one in a])
        A[-1][y[i] if loss == "multinomial" else 0] -= sum(A[-1]) if loss == "multinomial" else 0
    excess = [sum(column) if free else 0 for column in zip(*A, strict=True)]
    for i, a in zip(members, A, strict=True):  # the first row that can takes up what sums of a free intercept lack
        moved = list(map(sub, a, excess)) if any(excess) else a
        if any(excess) and conjugate(loss, c, [one / s[i] / ONE for one in moved], y[i]) is not None:
            a[:], excess = moved, [0] * K
        found = conjugate(loss, c, [one / s[i] / ONE for one in a], y[i])
        need(found is not None, f"the multiplier of row {i} is outside its bounds")
        gained -= units(s[i] * found)
    need(not any(excess), "no row can make the multipliers of a free intercept sum to zero")
    for column in zip(*A, strict=True):
        v, u = [0] * problem["features"], abs(C * B * Fraction(sum(column), ONE)) if charged else ZERO
        for i, a in zip(members, column, strict=True):
            for j, x in rows[i] if a else ():
                v[j] += a * x
        beyond = [max(ZERO, C * Fraction(abs(one), 1 << BITS + bits) - l1) for one in v if one]
        beyond.append(u if q else max(ZERO, u - l1))
        need(q or not any(beyond), "the multipliers pull more than the l1 norm allows")
        D -= sum(one * one for one in beyond) / (2 * q) if q else 0
    return unit * (P + C * Fraction(paid, ONE)), unit * (D + C * Fraction(gained, ONE))

def read(path: str, how: Any) -> tuple[list[dict[int, float]], list[str]]:
    """Rows {feature: value} and labels of LIBSVM text, or of a table with commas, semicolons or tabs."""
    lines = [line for line in Path(path).read_text("utf-8-sig").splitlines(True) if line.strip()]
    if ":" in " ".join(lines[0].split()[1:2]):
        table = [cells for line in lines if (cells := line.split("#")[0].split())]
        pairs = [[pair.split(":") for pair in cells[1:] if pair[:4] != "qid:"] for cells in table]
        base = not how.get("zero_based", any(int(row[0][0]) == 0 for row in pairs if row))
        return [{int(j) - base: float(x) for j, x in row} for row in pairs], [cells[0] for cells in table]
    table = list(csv.reader(lines, delimiter="\t" if ".tsv" in path else max(";\t,", key=lines[0].count)))
    kept = [j for j in range(len(table[0])) if j not in how.get("drop", [])]
    label = kept.pop(kept.index(how["label"]) if "label" in how else -1)
    table = table[how.get("header", not any(table[0][j].strip()[-1:].isdigit() for j in kept)):]
    return [dict(enumerate(float(cells[j]) for j in kept)) for cells in table], [one[label].strip() for one in table]

def fingerprint(rows: list[dict[int, float]], labels: list[Any]) -> str:
    """The SHA-256 of data: of the hashes of counts, features and values of what is not zero in rows, and of labels."""
    named: Any = array("d", labels) if isinstance(labels[0], float) else array("B", "\n".join(labels).encode())
    values = array("d", chain(*(row.values() for row in rows)))
    parts = array("q", map(len, rows)), array("Q", chain(*rows)), values, named
    return hashlib.sha256(b"".join(hashlib.sha256(part.tobytes()).digest() for part in parts)).hexdigest()

def proven(problem: Any, parts: Any, rows: list[dict[int, float]], labels: list[Any]) -> Any:
    """P, or a little more, and D, or a little less, of all problems together."""
    check_words(problem)
    (whole, bits), K = scaled([x for row in rows for x in row.values()]), len(problem["classes"])
    each, known = iter(whole), problem["classes"] if problem["text"] else numbers(problem["classes"], K, "classes")
    place, table = {one: k for k, one in enumerate(known)}, [[(j, next(each)) for j in row] for row in rows]
    codes: list[Any] = [place[one] if known else Fraction(one) for one in labels]
    ways: Any = {"multinomial": [codes], "targets": [codes],
            "ovr": ([2 * (one == k) - 1 for one in codes] for k in range(K == 2, K)),
            "ovo": ([{a: -1, b: 1}.get(one) for one in codes] for a, b in combinations(range(K), 2))}[problem["split"]]
    found = [bounds(problem, part, table, bits, y) for part, y in zip(parts, ways, strict=True)]
    P, D = [sum(one) for one in zip(*found, strict=True)]
    need(P >= D, "the bound is above the objective: no problem is like that")
    return P, D

def check(proof: Any, rows: list[dict[int, float]], labels: list[Any]) -> str:
    """The sentence that the proof proves of these data; ValueError, or another error, where it proves nothing."""
    data, problem, parts, claim = sealed = [proof[name] for name in ("data", "problem", "parts", "claim")]
    seal = hashlib.sha256(json.dumps(sealed, sort_keys=True).encode()).hexdigest()
    need(seal == proof["seal"], "the proof was changed after it was made")
    rows = [{j: x for j, x in row.items() if x} for row in rows]
    labels = labels if problem["text"] else [float(one) for one in labels]
    need(fingerprint(rows, labels) == data, "the data are not those that the proof was made for")
    (P, D), (high, low, gap) = proven(problem, parts, rows, labels), numbers(claim, 3, "claims")
    need(high >= P, f"the objective is {float(P)!r}, more than the {float(high)!r} claimed")
    need(low <= D, f"the least objective is only proven to be at least {float(D)!r}, not {float(low)!r}")
    need(high - low <= gap, "the gap claimed is less than the difference of the bounds claimed")
    return f"proven: the objective is at most {float(high)!r}, and the least possible one at least {float(low)!r}"

def describe(proof: Any, count: int) -> dict[str, str]:
    """What a checked proof of so many rows is about: its problem in words."""
    problem = proof["problem"]
    named = ("option", "strength", "feature", "square", "l1")
    option, strength, feature, square, l1 = [repr(float.fromhex(problem[name])) for name in named]
    loss, intercept, classes = problem["loss"], problem["intercept"], problem["classes"]
    known = classes if problem["text"] else [repr(float.fromhex(one)) for one in classes]
    return {
        "gap": repr(float.fromhex(proof["claim"][2])),
        "loss": f"{loss}, {OPTIONS[loss]} = {option}" if loss in OPTIONS else loss,
        problem["form"]: strength,
        "penalty": f"{square} |w|^2 / 2 + {l1} |w|_1",
        "intercept": intercept if intercept != "regularized" else f"weight of a constant feature {feature}",
        "rows": str(count),
        "features": str(problem["features"]),
        "classes": f"{', '.join(known)} ({problem['split']})" if known else "targets",
        "row weights": describe_weights([part["weights"] for part in proof["parts"]], count)}

def describe_weights(lists: list[Any], count: int) -> str:
    """The weights of the rows, one list or none for each problem, in words."""
    if not any(lists):
        return "none: each row counts once"
    s = [list(map(float.fromhex, one)) if one else [1.0] * count for one in lists]
    least, most = min(map(min, s)), max(map(max, s))
    zeros = sum(not any(of_row) for of_row in zip(*s, strict=True))
    return f"from {least!r} to {most!r}; {zeros} of {count} rows weigh 0"

if __name__ == "__main__":
    try:
        given = json.loads(Path(sys.argv[1]).read_text("utf-8"))
        table = read(sys.argv[2], given["read"])
        told = [check(given, *table)]
        told += [f"{name}: {what}" for name, what in describe(given, len(table[0])).items()]
        print("\n".join(told))
    except Exception as error:  # whatever is wrong with it, it proves nothing
        sys.exit(f"refused: {type(error).__name__}: {error}".splitlines()[0])
