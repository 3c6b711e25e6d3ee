"""Check a proof that a linear model is near its optimum: ``python checker.py proof.json DATA``.

The file needs Python alone. A model (w, b) has the objective

    P = q/2 |w|^2 + l |w|_1 + C sum_i s_i phi_i(x_i.w + b);

if its intercept is the weight of a constant feature B, also ``q/2 (b/B)^2``, or ``l |b/B|`` if
q = 0. Every a in the domain of the conjugates bounds the P of all models from below (weak duality;
if the intercept is free of charge, every such a with ``sum_i a_i = 0``):

    D = -C sum_i s_i phi_i*(-a_i / s_i) - sum_j max(0, |v_j| - l)^2 / 2q,   v = C sum_i a_i x_i.

The proof holds w, b and what a needs: ``a_i = -s_i phi_i'(z_i)`` except for listed rows, all times
a scale. Multinomial regression has K vectors w, and columns of a. Numbers are fractions, without
rounding; exp and log are bounded from above.
"""

import csv
import hashlib
import json
import math
import sys
from array import array
from fractions import Fraction
from itertools import chain, combinations
from pathlib import Path
from typing import Any, NamedTuple

BITS = 128  # bits behind the point of a number "in units", a whole number of 2^-BITS
ONE = 1 << BITS
ZERO = Fraction(0)
TERMS = 24  # of the series of exp below 1/32: what is left out is less than a unit
MOST_NEGATIVE = -80  # exponent below which exp is bounded by that of this one
TINY = Fraction(1, 2**90)  # log is bounded by 0 from here down
LOG_BITS = 60  # bits of the first guess of a logarithm


def need(condition: object, why: str) -> None:
    """Raise ValueError, which says why, if a condition is not met."""
    if not condition:
        raise ValueError(why)


def numbers(texts: Any, count: int, what: str) -> list[Fraction]:
    """Return the numbers of a list of texts such as "0x1.8p+1"."""
    is_list = isinstance(texts, list) and len(texts) == count
    need(is_list, f"{what} must be a list of {count} hexadecimal numbers")
    return [Fraction(float.fromhex(text)) for text in texts]


def scale_to_integers(values: list[Fraction] | list[float]) -> tuple[list[int], int]:
    """Return whole numbers m_i and k with ``values_i = m_i / 2^k``, of floats."""
    ratios = [value.as_integer_ratio() for value in values]
    # The denominators of floats are powers of two.
    bits = max((below.bit_length() - 1 for _, below in ratios), default=0)
    return [(above << bits) // below for above, below in ratios], bits


def units_up(x: Fraction | int) -> int:
    """Return x in units, rounded up."""
    return -((-x.numerator << BITS) // x.denominator)


def exp_up(t: int) -> int:
    """Return at least ``e^t``, and little more; t, at most 80, and the result are in units."""
    t = max(t, MOST_NEGATIVE * ONE)
    # r = t / 2^halvings, rounded up, is at most 1/32.
    halvings = max(0, abs(t).bit_length() - BITS + 5)
    r = -(-t >> halvings)
    # The series. A term is off by less than 2 units, and all later terms are less than 1 together.
    total = ONE + 64
    term = ONE
    for k in range(1, TERMS):
        term = term * r // (k << BITS)
        total += term
    # e^t is e^r, squared as often as t was halved.
    for _ in range(halvings):
        total = (total * total >> BITS) + 1
    return total


def log_up(x: Fraction) -> Fraction:
    """Return at least ``log x``; 0 if x is tiny."""
    if x <= TINY:
        return ZERO
    # log x <= y + x e^-y - 1 for every y, and so for the logarithm of a float near x.
    x_up = units_up(x)
    y = int(math.ldexp(math.log(x_up / ONE), LOG_BITS)) << BITS - LOG_BITS
    return Fraction(y + (x_up * exp_up(-y) >> BITS) + 1 - ONE, ONE)


def softmax(z: list[Fraction]) -> tuple[Fraction, list[Fraction]]:
    """Return at least ``log sum_k e^z_k``, and about the share of each term."""
    top = max(z)
    powers = [exp_up(units_up(z_k - top)) for z_k in z]
    total = sum(powers)
    return top + log_up(Fraction(total, ONE)), [Fraction(power, total) for power in powers]


class LossFunctions(NamedTuple):
    """A loss phi as functions of t and of its option c.

    ``t = y z`` for labels y, and ``t = z - y`` for targets. The conjugate is ``phi*(-b)``, or None
    if that is infinite.
    """

    value: Any  # phi(t)
    slope: Any  # -phi'(t)
    conjugate: Any


def smooth_hinge(t: Any, c: Fraction) -> Fraction:
    """Return the smooth hinge of width c: linear below 1 - c, a parabola above, 0 from 1 on."""
    if t <= 1 - c:
        return 1 - t - c / 2
    return max(0, 1 - t) ** 2 / (2 * c)


def huber(t: Fraction, c: Fraction) -> Fraction:
    """Return Huber's loss: a parabola between -c and c, linear beyond."""
    if abs(t) <= c:
        return t * t / 2
    return c * (abs(t) - c / 2)


def negative_entropy(b: Fraction) -> Fraction:
    """Return at least ``b log b + (1 - b) log(1 - b)``."""
    return b * log_up(b) + (1 - b) * log_up(1 - b)


LABELS: dict[str, LossFunctions] = {
    "hinge": LossFunctions(
        value=lambda t, c: max(0, 1 - t),
        slope=lambda t, c: int(t < 1),
        conjugate=lambda b, c: -b if 0 <= b <= 1 else None,
    ),
    "squared_hinge": LossFunctions(
        value=lambda t, c: max(0, 1 - t) ** 2,
        slope=lambda t, c: 2 * max(0, 1 - t),
        conjugate=lambda b, c: b * b / 4 - b if b >= 0 else None,
    ),
    "smooth_hinge": LossFunctions(
        value=smooth_hinge,
        slope=lambda t, c: min(max((1 - t) / c, 0), 1),
        conjugate=lambda b, c: c * b * b / 2 - b if 0 <= b <= 1 else None,
    ),
    "logistic": LossFunctions(
        value=lambda t, c: softmax([ZERO, -t])[0],
        slope=lambda t, c: softmax([ZERO, -t])[1][1],
        conjugate=lambda b, c: negative_entropy(b) if 0 <= b <= 1 else None,
    ),
}
TARGETS: dict[str, LossFunctions] = {
    "epsilon_insensitive": LossFunctions(
        value=lambda t, c: max(abs(t) - c, 0),
        slope=lambda t, c: (t < -c) - (t > c),
        conjugate=lambda b, c: c * abs(b) if -1 <= b <= 1 else None,
    ),
    "squared_epsilon_insensitive": LossFunctions(
        value=lambda t, c: max(abs(t) - c, 0) ** 2,
        slope=lambda t, c: 2 * (max(-t - c, 0) - max(t - c, 0)),
        conjugate=lambda b, c: c * abs(b) + b * b / 4,
    ),
    "huber": LossFunctions(
        value=huber,
        slope=lambda t, c: min(max(-t, -c), c),
        conjugate=lambda b, c: b * b / 2 if -c <= b <= c else None,
    ),
    "pinball": LossFunctions(
        value=lambda t, c: max(-c * t, (1 - c) * t),
        slope=lambda t, c: c * (t < 0) - (1 - c) * (t > 0),
        conjugate=lambda b, c: ZERO if c - 1 <= b <= c else None,
    ),
}
# The words of a problem, and the option of each loss that has one.
WORDS = {
    "form": ("C", "lambda"),
    "intercept": ("regularized", "free", "none"),
    "split": ("targets", "ovr", "ovo", "multinomial"),
    "loss": ("multinomial", *LABELS, *TARGETS),
}
OPTIONS = {
    "smooth_hinge": "width",
    "epsilon_insensitive": "epsilon",
    "huber": "delta",
    "squared_epsilon_insensitive": "epsilon",
    "pinball": "tau",
}


def respond(loss: str, c: Fraction, z: list[Fraction], y: Any) -> tuple[Fraction, list[Fraction]]:
    """Return phi of a row with the scores z, and -phi' by each score."""
    if loss == "multinomial":
        total, shares = softmax(z)
        return total - z[y], [(k == y) - share for k, share in enumerate(shares)]
    if loss in LABELS:
        t = z[0] * y
        return LABELS[loss].value(t, c), [LABELS[loss].slope(t, c) * y]
    t = z[0] - y
    return TARGETS[loss].value(t, c), [TARGETS[loss].slope(t, c)]


def conjugate(loss: str, c: Fraction, a: list[Fraction], y: Fraction | int) -> Any:
    """Return ``phi*(-a)`` of a row, None if it is infinite."""
    if loss == "multinomial":
        p = [(k == y) - a_k for k, a_k in enumerate(a)]
        if min(p) < 0 or sum(a) != 0:
            return None
        return sum(p_k * log_up(p_k) for p_k in p)
    if loss in LABELS:
        return LABELS[loss].conjugate(a[0] * y, c)
    of_residual = TARGETS[loss].conjugate(a[0], c)
    if of_residual is None:
        return None
    return of_residual - a[0] * y


def check_words(problem: Any) -> None:
    """Raise ValueError if a word of a problem is unknown, or words do not fit together."""
    for name, words in WORDS.items():
        need(problem[name] in words, f"the {name} {problem[name]!r} is none of {', '.join(words)}")
    classes = problem["classes"]
    text = problem["text"]
    width = problem["features"]
    need(type(text) is bool, "text must be true or false")
    need(type(width) is int and width >= 0, "the number of features must be a whole number")
    is_joint = problem["split"] == "multinomial"
    is_multinomial = problem["loss"] == "multinomial"
    need(is_joint == is_multinomial, "multinomial is a loss and a split in one")
    if problem["split"] == "targets":
        need(classes == [] and not text, "targets have no classes")
        return
    if text:
        need(all(type(name) is str for name in classes), "classes in text must be texts")
        known = classes
    else:
        # A whole number from 2^53 on may be read as its neighbour: such classes are stated as text.
        known = numbers(classes, len(classes), "classes")
        is_small = all(abs(number) < 2**53 for number in known)
        need(is_small, "classes beyond 2^53 must be texts")
    is_valid = len(set(known)) == len(known) >= 2
    need(is_valid, "there must be two classes or more, all different")


def read_constants(problem: Any, part: Any) -> list[Fraction]:
    """Return the loss's option, the strength, the constant feature, q, l and the scale of a."""
    texts = [problem.get(name) for name in ("option", "strength", "feature", "square", "l1")]
    constants = numbers([*texts, part["scale"]], 6, "constants")
    c, strength, B, q, l1, scale = constants
    need(problem["loss"] != "pinball" or c <= 1, "tau is at most 1")
    is_allowed = min(q, l1, c, scale, 1 - scale) >= 0 and min(strength, B, q + l1) > 0
    need(is_allowed, "a constant is out of bounds")
    return constants


def bound_problem(
    problem: Any, part: Any, rows: list[list[tuple[int, int]]], bits: int, y: list[Any]
) -> tuple[Fraction, Fraction]:
    """Return P, or a little more, and D, or a little less; y is None for rows of other problems."""
    loss = problem["loss"]
    is_joint = loss == "multinomial"
    K = len(problem["classes"]) if is_joint else 1
    need(len(part["w"]) == K, f"a problem of this loss has weights for {K} scores")
    has_signs = all(label in (None, 1, -1) for label in y)
    need(loss not in LABELS or has_signs, f"the loss {loss} is for labels 1 and -1 only")

    c, strength, B, q, l1, scale = read_constants(problem, part)
    members = [i for i, label in enumerate(y) if label is not None]
    C = strength
    unit: Any = 1
    if problem["form"] == "lambda":
        C = 1 / (strength * len(members))
        unit = strength
    s = [Fraction(1)] * len(rows)
    if part["weights"]:
        s = numbers(part["weights"], len(rows), "weights")
    b = numbers(part["b"], K, "intercepts")
    at = numbers(part["at"], K, "offsets")
    is_charged = problem["intercept"] == "regularized"
    is_free = problem["intercept"] == "free"
    is_allowed = min(s) >= 0 and (is_charged or is_free or not any(b))
    need(is_allowed, "a weight of a row or an intercept is out of bounds")
    members = [i for i in members if s[i]]

    # The penalty of the model, and the scores of its rows without intercept.
    P = ZERO
    Z = []
    for texts, b_k in zip(part["w"], b, strict=True):
        w = numbers(texts, problem["features"], "weights")
        u = b_k / B if is_charged else ZERO
        P += penalty(w, u, q, l1)
        whole, w_bits = scale_to_integers(w)
        products = [sum(x * whole[j] for j, x in rows[i]) for i in members]
        Z.append([Fraction(product, 1 << bits + w_bits) for product in products])

    # The losses of the model, and the multipliers a, all in units.
    paid = 0
    A = []
    for i, *z in zip(members, *Z, strict=True):
        value, _ = respond(loss, c, [z_k + b_k for z_k, b_k in zip(z, b, strict=True)], y[i])
        paid += units_up(s[i] * value)
        _, slopes = respond(loss, c, [z_k + at_k for z_k, at_k in zip(z, at, strict=True)], y[i])
        a = [s[i] * slope for slope in slopes]
        if str(i) in part["multipliers"]:
            a = numbers(part["multipliers"][str(i)], K, "multipliers")
        A.append([int(a_k * scale * ONE) for a_k in a])
        if is_joint:
            # The conjugate is finite only if they sum to zero, without rounding.
            A[-1][y[i]] -= sum(A[-1])
    gained = gain(loss, c, A, [s[i] for i in members], members, y, is_free)

    # The penalty of the dual sums v, and of that of the constant feature.
    D = ZERO
    for column in zip(*A, strict=True):
        u = abs(C * B * Fraction(sum(column), ONE)) if is_charged else ZERO
        v = pull(rows, members, column, problem["features"])
        D -= dual_penalty([C * Fraction(abs(v_j), 1 << BITS + bits) for v_j in v if v_j], u, q, l1)
    return unit * (P + C * Fraction(paid, ONE)), unit * (D + C * Fraction(gained, ONE))


def penalty(w: list[Fraction], u: Fraction, q: Fraction, l1: Fraction) -> Fraction:
    """Return the penalty of the weights w and of the weight u of the constant feature."""
    squares = sum(x * x for x in w) + u * u
    # Without squares, the l1 norm charges the constant feature, too.
    charged = sum(map(abs, w)) + (0 if q else abs(u))
    return q * squares / 2 + l1 * charged


def dual_penalty(v: list[Fraction], u: Fraction, q: Fraction, l1: Fraction) -> Fraction | int:
    """Return the conjugate of the penalty at the sums v, and u of the constant feature."""
    beyond = [max(ZERO, v_j - l1) for v_j in v]
    beyond.append(u if q else max(ZERO, u - l1))
    need(q or not any(beyond), "the multipliers pull more than the l1 norm allows")
    if not q:
        return 0
    return sum(x * x for x in beyond) / (2 * q)


def pull(
    rows: list[list[tuple[int, int]]], members: list[int], column: tuple[int, ...], width: int
) -> list[int]:
    """Return the sum of the rows times their multipliers."""
    v = [0] * width
    for i, a_i in zip(members, column, strict=True):
        if a_i:
            for j, x in rows[i]:
                v[j] += a_i * x
    return v


def gain(
    loss: str,
    c: Fraction,
    A: list[list[int]],
    s: list[Fraction],
    members: list[int],
    y: list[Any],
    is_free: bool,
) -> int:
    """Return at most the dual's sum over the rows, in units; A is balanced for a free intercept."""
    # With a free intercept, the multipliers must sum to zero. The first row that can takes up what
    # their sums lack.
    excess = [sum(column) if is_free else 0 for column in zip(*A, strict=True)]
    gained = 0
    for i, s_i, a in zip(members, s, A, strict=True):
        if any(excess):
            moved = [a_k - excess_k for a_k, excess_k in zip(a, excess, strict=True)]
            if conjugate(loss, c, [a_k / s_i / ONE for a_k in moved], y[i]) is not None:
                a[:] = moved
                excess = [0] * len(excess)
        value = conjugate(loss, c, [a_k / s_i / ONE for a_k in a], y[i])
        need(value is not None, f"the multiplier of row {i} is outside its bounds")
        gained -= units_up(s_i * value)
    need(not any(excess), "no row can make the multipliers of a free intercept sum to zero")
    return gained


def read(path: str, how: Any) -> tuple[list[dict[int, float]], list[str]]:
    """Read rows {feature: value} and labels of LIBSVM text, or of a table."""
    lines = [line for line in Path(path).read_text("utf-8-sig").splitlines(True) if line.strip()]
    if ":" in " ".join(lines[0].split()[1:2]):
        return read_libsvm(lines, how)
    # A table with commas, semicolons or tabs.
    separator = "\t" if ".tsv" in path else max(";\t,", key=lines[0].count)
    table = list(csv.reader(lines, delimiter=separator))
    columns = [j for j in range(len(table[0])) if j not in how.get("drop", [])]
    label = columns.pop(columns.index(how["label"]) if "label" in how else -1)
    # A first line is a header if no cell ends in a digit.
    looks_like_names = not any(table[0][j].strip()[-1:].isdigit() for j in columns)
    if how.get("header", looks_like_names):
        table = table[1:]
    rows = [dict(enumerate(float(cells[j]) for j in columns)) for cells in table]
    return rows, [cells[label].strip() for cells in table]


def read_libsvm(lines: list[str], how: Any) -> tuple[list[dict[int, float]], list[str]]:
    """Read rows and labels of LIBSVM text: ``LABEL INDEX:VALUE ...``, perhaps ``# a comment``."""
    table = [line.split("#")[0].split() for line in lines]
    table = [cells for cells in table if cells]
    pairs = []
    for cells in table:
        pairs.append([pair.split(":") for pair in cells[1:]])
    counts_from_zero = any(int(row[0][0]) == 0 for row in pairs if row)
    base = not how.get("zero_based", counts_from_zero)
    rows = [{int(j) - base: float(x) for j, x in row} for row in pairs]
    return rows, [cells[0] for cells in table]


def fingerprint(rows: list[dict[int, float]], labels: list[Any]) -> str:
    """Return the SHA-256 of data.

    It is the hash of four hashes: of the counts, the features and the values of what is not zero in
    the rows, and of the labels.
    """
    if isinstance(labels[0], float):
        named: Any = array("d", labels)
    else:
        named = array("B", "\n".join(labels).encode())
    counts = array("q", map(len, rows))
    features = array("Q", chain(*rows))
    values = array("d", chain(*(row.values() for row in rows)))
    hashes = [hashlib.sha256(part.tobytes()).digest() for part in (counts, features, values, named)]
    return hashlib.sha256(b"".join(hashes)).hexdigest()


def bound(
    problem: Any, parts: Any, rows: list[dict[int, float]], labels: list[str] | list[float]
) -> tuple[Fraction, Fraction]:
    """Return P, or a little more, and D, or a little less, of all problems together."""
    check_words(problem)
    # All values as whole numbers with one denominator, 2^bits.
    whole, bits = scale_to_integers([x for row in rows for x in row.values()])
    rest = iter(whole)
    table = [[(j, next(rest)) for j in row] for row in rows]
    pairs = zip(parts, labels_of_problems(problem, labels), strict=True)
    found = [bound_problem(problem, part, table, bits, y) for part, y in pairs]
    P, D = (sum(numbers) for numbers in zip(*found, strict=True))
    need(P >= D, "the bound is above the objective: no problem is like that")
    return P, D


def labels_of_problems(problem: Any, labels: list[str] | list[float]) -> list[list[Any]]:
    """Return the labels of each problem; None if a row is not in a problem."""
    if problem["split"] == "targets":
        return [[Fraction(label) for label in labels]]
    known = problem["classes"]
    K = len(known)
    if not problem["text"]:
        known = numbers(known, K, "classes")
    place = {label: k for k, label in enumerate(known)}
    codes = [place[label] for label in labels]
    if problem["split"] == "multinomial":
        return [codes]
    if problem["split"] == "ovr":
        # Of two classes, the second against the first.
        return [[2 * (code == k) - 1 for code in codes] for k in range(K == 2, K)]
    signs = [{first: -1, second: 1} for first, second in combinations(range(K), 2)]
    return [[sign.get(code) for code in codes] for sign in signs]


def check(proof: Any, rows: list[dict[int, float]], labels: list[str] | list[float]) -> str:
    """Return the sentence that the proof proves of these data.

    Raises
    ------
    ValueError
        The proof proves nothing. A damaged proof may raise other errors.
    """
    sealed = [proof[name] for name in ("data", "problem", "parts", "claim")]
    data, problem, parts, claim = sealed
    seal = hashlib.sha256(json.dumps(sealed, sort_keys=True).encode()).hexdigest()
    need(seal == proof["seal"], "the proof was changed after it was made")
    rows = [{j: x for j, x in row.items() if x} for row in rows]
    if not problem["text"]:
        labels = [float(label) for label in labels]
    is_same = fingerprint(rows, labels) == data
    need(is_same, "the data are not those that the proof was made for")
    P, D = bound(problem, parts, rows, labels)
    high, low, gap = numbers(claim, 3, "claims")
    need(high >= P, f"the objective is {float(P)!r}, more than the {float(high)!r} claimed")
    need(
        low <= D,
        f"the least objective is only proven to be at least {float(D)!r}, not {float(low)!r}",
    )
    need(high - low <= gap, "the gap claimed is less than the difference of the bounds claimed")
    return (
        f"proven: the objective is at most {float(high)!r}, and the least possible one at least "
        f"{float(low)!r}"
    )


def describe(proof: Any, count: int) -> dict[str, str]:
    """Return the problem of a checked proof in words; `count` is the number of rows."""
    problem = proof["problem"]
    constants = ("option", "strength", "feature", "square", "l1")
    texts = [repr(float.fromhex(problem[name])) for name in constants]
    option, strength, feature, square, l1 = texts
    loss = problem["loss"]
    if loss in OPTIONS:
        loss = f"{loss}, {OPTIONS[loss]} = {option}"
    intercept = problem["intercept"]
    if intercept == "regularized":
        intercept = f"weight of a constant feature {feature}"
    classes = problem["classes"]
    if not problem["text"]:
        classes = [repr(float.fromhex(text)) for text in classes]
    return {
        "gap": repr(float.fromhex(proof["claim"][2])),
        "loss": loss,
        problem["form"]: strength,
        "penalty": f"{square} |w|^2 / 2 + {l1} |w|_1",
        "intercept": intercept,
        "rows": str(count),
        "features": str(problem["features"]),
        "classes": f"{', '.join(classes)} ({problem['split']})" if classes else "targets",
        "row weights": describe_weights([part["weights"] for part in proof["parts"]], count),
    }


def describe_weights(lists: list[list[str]], count: int) -> str:
    """Return the weights of the rows in words; each problem has a list of them, or none."""
    if not any(lists):
        return "none: each row counts once"
    s = [list(map(float.fromhex, texts)) if texts else [1.0] * count for texts in lists]
    least = min(map(min, s))
    most = max(map(max, s))
    zeros = sum(not any(weights) for weights in zip(*s, strict=True))
    return f"from {least!r} to {most!r}; {zeros} of {count} rows weigh 0"


def main() -> None:
    """Check the proof of the first argument on the data of the second, and print what it proves."""
    try:
        proof = json.loads(Path(sys.argv[1]).read_text("utf-8"))
        rows, labels = read(sys.argv[2], proof["read"])
        lines = [check(proof, rows, labels)]
        lines += [f"{name}: {value}" for name, value in describe(proof, len(rows)).items()]
        print("\n".join(lines))
    except Exception as error:  # whatever is wrong with a proof, it proves nothing
        sys.exit(f"refused: {type(error).__name__}: {error}".splitlines()[0])


if __name__ == "__main__":
    main()
