"""The objectives of the machines with nu, in the judge's arithmetic.

Sources: Schoelkopf and others (2000), "New support vector algorithms", and (2001), "Estimating the support of a
high-dimensional distribution".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from .exact import ZERO, Numbers, exact, numbers
from .judge import Space


@dataclass(frozen=True)
class Case:
    """A problem as numbers; `y` holds signs, targets, or nothing of meaning for the one-class machine."""

    space: Space
    y: Numbers
    weights: Numbers
    C: Decimal
    nu: Decimal

    @property
    def total(self) -> Decimal:
        """``nu sum_i s_i``."""
        return self.nu * sum(self.weights, ZERO)


@exact
def novelty(case: Case, coef: Any, intercept: float) -> Decimal:
    """``1/2 ||w||^2 + sum_i s_i max(0, rho - f_i) - nu rho sum_i s_i``, rho being minus the intercept."""
    c, rho = numbers(coef), -Decimal(float(intercept))
    paid = sum((s * max(ZERO, rho - f) for f, s in zip(case.space.scores(c), case.weights, strict=True)), ZERO)
    return case.space.charge(c) + paid - rho * case.total


@exact
def classification(case: Case, coef: Any, intercept: float) -> Decimal:
    """``1/2 ||w||^2 + sum_i s_i max(0, rho - y_i (f_i + b)) - nu rho sum_i s_i``, at the best rho.

    The model stands divided by rho, which is not published.
    """
    c, b = numbers(coef), Decimal(float(intercept))
    paid = -case.total
    for f, y, s in zip(case.space.scores(c), case.y, case.weights, strict=True):
        paid += s * max(ZERO, 1 - y * (f + b))
    charged = case.space.charge(c)
    return -paid * paid / (4 * charged) if paid < 0 < charged else ZERO


@exact
def regression(case: Case, coef: Any, intercept: float) -> Decimal:
    """``1/2 ||w||^2 + C (nu epsilon sum_i s_i + sum_i s_i max(0, |f_i + b - y_i| - epsilon))``, at the best epsilon."""
    c, b = numbers(coef), Decimal(float(intercept))
    away = [abs(f + b - y) for f, y in zip(case.space.scores(c), case.y, strict=True)]
    beyond, best = ZERO, ZERO  # rows are taken out of the tube from the farthest on, until they are a share of nu
    for distance, s in sorted(zip(away, case.weights, strict=True), reverse=True):
        best = distance
        beyond += s
        if beyond >= case.total:
            break
    else:
        best = ZERO
    paid = sum((s * max(ZERO, one - best) for one, s in zip(away, case.weights, strict=True)), ZERO)
    return case.space.charge(c) + case.C * (best * case.total + paid)


PRIMALS: dict[str, Callable[[Case, Any, float], Decimal]] = {
    "OneClassSVM": novelty,
    "NuSVC": classification,
    "NuSVR": regression,
}
