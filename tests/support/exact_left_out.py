"""Models without one row, solved in fractions, to judge proven leave-one-out bounds by.

Losses of pieces (parabolas and lines) are solved piece by piece: the rows' pieces are guessed from a
tight fit in floats, the equations of the optimum are solved in fractions, and the solution counts
only if it proves the guess: every row is on its piece, every multiplier inside its bounds. The
logistic loss is solved by Newton's method with 60 digits.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from saddlesvm import LinearSVC, LinearSVR, NotCertifiedWarning, leave_one_out

SQUARED = ("squared", "squared_hinge", "huber")
CLASSIFIERS = ("squared_hinge", "hinge", "logistic")
DIGITS = 60
Vector = list[Any]


def solve(matrix: list[Vector], right: Vector) -> Vector:
    """The solution of linear equations, by elimination with the largest pivot."""
    rows = [[*row, b] for row, b in zip(matrix, right, strict=True)]
    size = len(rows)
    for k in range(size):
        best = max(range(k, size), key=lambda i: abs(rows[i][k]))
        rows[k], rows[best] = rows[best], rows[k]
        if rows[k][k] == 0:
            raise ZeroDivisionError("the equations have no single solution")
        for i in range(k + 1, size):
            factor = rows[i][k] / rows[k][k]
            if factor:
                rows[i] = [u - factor * v for u, v in zip(rows[i], rows[k], strict=True)]
    found: Vector = [None] * size
    for k in reversed(range(size)):
        known = sum(rows[k][j] * found[j] for j in range(k + 1, size))
        found[k] = (rows[k][size] - known) / rows[k][k]
    return found


def dot(a: Vector, b: Vector) -> Any:
    return sum(p * q for p, q in zip(a, b, strict=True))


def pieces_of(loss: str, t: Any) -> tuple[Any, Any]:
    """The curvature and the derivative at zero of the parabola at t (margin, or residual)."""
    if loss == "squared":
        return 2, 0
    if loss == "squared_hinge":
        return (2, -2) if t < 1 else (0, 0)
    if abs(t) <= 1:  # huber
        return 1, 0
    return 0, (1 if t > 0 else -1)


def solve_parabolas(loss: str, X: list[Vector], y: Vector, C: Any, ridge: Vector, w: Vector) -> Vector | None:
    """The exact weights of a loss of parabolas, by Newton's method from w; None if it does not end."""
    size = len(ridge)
    for _ in range(50):
        matrix = [[ridge[a] if a == b else Fraction(0) for b in range(size)] for a in range(size)]
        right = [Fraction(0)] * size
        for row, label in zip(X, y, strict=True):
            # The residual or margin is sign z - shift.
            sign, shift = (label, 0) if loss == "squared_hinge" else (1, label)
            bend, slope = pieces_of(loss, sign * dot(row, w) - shift)
            for a in range(size):
                right[a] -= C * sign * (slope - bend * shift) * row[a]
                for b in range(size):
                    matrix[a][b] += C * bend * row[a] * row[b]
        try:
            found = solve(matrix, right)
        except ZeroDivisionError:
            return None
        if found == w:
            return w
        w = found
    return None


def solve_hinge(X: list[Vector], y: Vector, C: Any, ridge: Vector, w: Vector) -> Vector | None:
    """The exact weights of the hinge, from the rows on the margin of nearly exact weights."""
    signed = [[label * x for x in row] for row, label in zip(X, y, strict=True)]
    margins = [float(dot(row, w)) for row in signed]
    on = [k for k, z in enumerate(margins) if abs(z - 1.0) < 1e-6]
    beyond = [k for k, z in enumerate(margins) if z < 1.0 - 1e-6]
    size, count = len(ridge), len(on)
    # The equations: ridge w - sum_on a x = C sum_beyond x, and x w = 1 of the rows on the margin.
    matrix = [
        [ridge[a] if a == b else Fraction(0) for b in range(size)] + [-signed[k][a] for k in on] for a in range(size)
    ]
    matrix += [[*signed[k], *[Fraction(0)] * count] for k in on]
    right = [C * sum((signed[k][a] for k in beyond), Fraction(0)) for a in range(size)]
    try:
        found = solve(matrix, [*right, *[Fraction(1)] * count])
    except ZeroDivisionError:
        return None
    exact, multipliers = found[:size], found[size:]
    inside = all(0 <= a <= C for a in multipliers)
    sides = all(dot(signed[k], exact) <= 1 for k in beyond)
    others = set(range(len(signed))) - {*on, *beyond}
    return exact if inside and sides and all(dot(signed[k], exact) >= 1 for k in others) else None


def solve_logistic(X: list[Vector], y: Vector, C: Any, ridge: Vector, w: Vector) -> Vector | None:
    """The weights of the logistic loss to some 50 digits, by Newton's method from nearly exact ones."""
    with localcontext(prec=DIGITS):
        size = len(ridge)
        rows = [[decimal(x) for x in row] for row in X]
        ridge, w, C = [decimal(x) for x in ridge], [decimal(x) for x in w], decimal(C)
        for _ in range(40):
            gradient = [r * x for r, x in zip(ridge, w, strict=True)]
            matrix = [[ridge[a] if a == b else Decimal(0) for b in range(size)] for a in range(size)]
            for row, label in zip(rows, y, strict=True):
                share = 1 / (1 + (int(label) * dot(row, w)).exp())
                for a in range(size):
                    gradient[a] -= C * int(label) * share * row[a]
                    for b in range(size):
                        matrix[a][b] += C * share * (1 - share) * row[a] * row[b]
            step = solve(matrix, gradient)
            w = [x - s for x, s in zip(w, step, strict=True)]
            if max(map(abs, step)) < Decimal(10) ** -45 * (1 + max(map(abs, w))):
                return [Fraction(x) for x in w]
    return None


def decimal(x: Any) -> Decimal:
    exact = Fraction(x)
    return Decimal(exact.numerator) / Decimal(exact.denominator)


def draw(random: np.random.Generator) -> tuple[Any, np.ndarray, np.ndarray]:
    """A model that is not fitted, rows and labels: few rows, at times ill-conditioned, any C."""
    n, d = int(random.choice([6, 8, 12])), int(random.choice([2, 3, 4]))
    X = np.round(random.standard_normal((n, d)) * 4) / 4
    kind = random.integers(4)
    if kind == 0:
        X[0, 0] = 64.0
    elif kind == 1:
        X[:, 0] *= 1024.0
    elif kind == 2:
        X[:, -1] = X[:, 0] + X[:, -1] / 256.0
    C = float(2.0 ** random.integers(-6, 23))
    intercept = str(random.choice(["none", "regularized", "free"]))
    score = X @ random.standard_normal(d) / max(1.0, np.abs(X).max() / 8)
    loss = str(random.choice(["squared", "squared", "squared_hinge", "huber", "hinge", "logistic"]))
    options = {"loss": loss, "C": C, "tol": 10.0 ** -random.integers(3, 9), "random_state": 0}
    options |= {"intercept": intercept, "max_time": 5.0}
    if loss in CLASSIFIERS:
        y = np.where(score + random.standard_normal(n) > np.median(score), 1, -1)
        y[:4] = [1, 1, -1, -1]
        return LinearSVC(**options), X, y
    y = np.round(5.0 * score + 3.0 * random.standard_normal(n), 1)
    return LinearSVR(**options), X, y


def exact_margins(model: Any, X: np.ndarray, y: np.ndarray) -> Iterator[Fraction | None]:
    """The margin of each row under the exact model without it; None if it is not known."""
    params = model.get_params()
    loss, intercept, C = params["loss"], params["intercept"], Fraction(params["C"])
    column = [] if intercept == "none" else [Fraction(1)]
    rows = [[Fraction(x) for x in row] + column for row in X.tolist()]
    labels = [Fraction(one) for one in y.tolist()]
    ridge = [Fraction(1)] * X.shape[1] + [Fraction(int(intercept == "regularized"))] * len(column)
    solver = {"hinge": solve_hinge, "logistic": solve_logistic}.get(loss)
    for i in range(len(rows)):
        left, known = rows[:i] + rows[i + 1 :], labels[:i] + labels[i + 1 :]
        w = [Fraction(0)] * len(ridge)
        if loss != "squared":
            near = model.__class__(**params | {"tol": 1e-14, "max_time": 5.0})
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NotCertifiedWarning)
                near.fit(np.delete(X, i, 0), np.delete(y, i))
            ends = np.ravel(near.intercept_).tolist()[: len(column)]
            w = [Fraction(x) for x in (*np.ravel(near.coef_).tolist(), *ends)]
        try:
            if solver is None:
                exact = solve_parabolas(loss, left, known, C, ridge, w)
            else:
                exact = solver(left, known, C, ridge, w)
        except ArithmeticError:
            exact = None
        yield None if exact is None else dot(rows[i], exact)


def judge(seed: int) -> Counter[str]:
    """Count the rows of a drawn model: judged, finite, and false; errors of the mean too."""
    random = np.random.default_rng([51, seed])
    model, X, y = draw(random)
    found: Counter[str] = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertifiedWarning)
        model.fit(X, y)
    bounds = leave_one_out(model, X, y)
    finite = np.isfinite(bounds.low) & np.isfinite(bounds.high)
    found["rows"] += len(y)
    found["finite"] += int(finite.sum())
    values = []
    for i, exact in enumerate(exact_margins(model, X, y)):
        if exact is None:
            continue
        values.append(exact)
        found["judged"] += 1
        low = Fraction(bounds.low[i]) if finite[i] else exact
        high = Fraction(bounds.high[i]) if finite[i] else exact
        if not low <= exact <= high:
            found["false"] += 1
            label = f"{model.get_params()['loss']}, {model.get_params()['intercept']}"
            print(f"model {seed} ({label}), row {i}: {float(exact)!r} is not in ", end="")
            print(f"[{float(low)!r}, {float(high)!r}]")
    if len(values) == len(y) and hasattr(model, "classes_"):
        wrong = sum((one > 0) != (label > 0) for one, label in zip(values, y, strict=True))
        found["false errors"] += not bounds.error_low <= wrong / len(y) <= bounds.error_high
    elif len(values) == len(y):
        squares = sum((z - Fraction(one)) ** 2 for z, one in zip(values, y.tolist(), strict=True))
        mean = squares / len(y)
        if np.isfinite(bounds.error_high):
            inside = Fraction(bounds.error_low) <= mean <= Fraction(bounds.error_high)
            found["false errors"] += not inside
    return found


if __name__ == "__main__":
    total: Counter[str] = Counter()
    for seed in range(int(sys.argv[1])):
        total += judge(seed)
    print(dict(total))
