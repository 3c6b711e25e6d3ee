"""Judge the certificates of fits from outside: public attributes only, in 120 digits.

A certificate is refuted if the model's true objective is above the claimed primal, or further below it
than the rounding that the certificate admits; if the published dual variables do not reach the claimed
dual; if the dual is above the objective of any model of the same problem; and if an outcome says
"certified" with a gap larger than `tol`.
"""

from __future__ import annotations

import math
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from saddlesvm import Outcome
from saddlesvm.rows import memory_plan

from .exact import exact
from .posed import MAKERS, Posed
from .public import Claim, claims_of

LEAST_MEMORY = 1 << 12  # bytes of memory= that are allowed here, so that small stores are read in blocks
NEVER = Decimal("1e-300")
OWN_ERROR = Decimal("1e-100")  # of the judge's arithmetic, relative to the larger objective


@patch.object(memory_plan, "LEAST_MEMORY", LEAST_MEMORY)
def refute_fits(folder: Path, family: str, number: int) -> list[str]:
    """Draw a problem for an estimator, fit it in several ways, and return what is wrong with the claims."""
    random = np.random.default_rng([number, 5])
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        posed = MAKERS[family](random, folder)
        return refute_ways(posed)


def refute_ways(posed: Posed) -> list[str]:
    """Fit a problem in every way, and return what is wrong with the claims of all fits."""
    wrong: list[str] = []
    lowest: dict[Any, Decimal] = {}
    fits: list[tuple[dict[str, Any], Any, list[Claim]]] = []
    for way in posed.ways:
        try:
            model = fit_posed(posed, way)
        except ValueError as error:
            # A refusal is fine if it says something.
            if not str(error):
                wrong.append(f"{posed.options | way}: refused without a word")
            continue
        claims = claims_of(model, posed.data)
        for claim in claims:
            lowest[claim.problem] = min(lowest.get(claim.problem, claim.primal), claim.primal)
        fits.append((way, model, claims))

    # No bound of any fit may be above the lowest objective that any fit of the same problem found.
    for way, model, claims in fits:
        found = [text for claim in claims for text in refute(claim, lowest[claim.problem])]
        found += contradictions(model)
        wrong += [f"{posed.options | way} ended {model.outcome_}: {text}" for text in found]
    return wrong


def fit_posed(posed: Posed, way: dict[str, Any]) -> Any:
    """Fit the estimator; with a warm start or a checkpoint, fit it a second time after a shorter fit."""
    options = posed.options | way
    model = posed.kind(**options)
    weights = {} if posed.data.weights is None else {"sample_weight": posed.data.weights}
    if way.get("warm_start") or way.get("checkpoint"):
        model.set_params(max_iter=1)
        if not way.get("checkpoint") and isinstance(posed.options.get("C"), float):
            model.set_params(C=2.0 * posed.options["C"])
        model.fit(posed.given, posed.data.y, **weights)
        model.set_params(**{name: value for name, value in options.items() if name in ("C", "max_iter")})
    return model.fit(posed.given, posed.data.y, **weights)


@exact
def refute(claim: Claim, lowest: Decimal) -> list[str]:
    """Return what is wrong with a certificate, given the lowest objective of a model of its problem."""
    told = claim.certificate
    wrong = []
    if math.isnan(told.primal) or math.isnan(told.dual):
        return [f"the certificate is {told}"]
    above = Decimal(told.primal)
    below = Decimal(told.dual)
    size = max([NEVER, *(abs(value) for value in (above, below, claim.primal) if value.is_finite())])
    own = size * OWN_ERROR
    rounding = 2 * Decimal(told.primal_rounding)

    def share(value: Decimal) -> str:
        return f"{float(value / size):.2g} of its size"

    # The primal is an upper bound of the model's objective, and close to it.
    if claim.primal > above + own:
        wrong.append(f"the primal {told.primal!r} is below the model's by {share(claim.primal - above)}")
    if claim.whole and above.is_finite() and rounding.is_finite() and above - claim.primal > rounding + own:
        wrong.append(f"the primal {told.primal!r} is above the model's by {share(above - claim.primal)}")
    if not claim.bounded:
        return wrong

    # The dual is a lower bound of every objective, and no higher than the published dual point proves.
    if below > lowest + own:
        wrong.append(f"the dual {told.dual!r} is above a model's objective by {share(below - lowest)}")
    if claim.dual is not None:
        bound = max(claim.dual, Decimal(0))  # the dual point zero proves 0
        if below > bound + own:
            wrong.append(f"the dual {told.dual!r} is above that of the dual point by {share(below - bound)}")
    if told.gap < 0.0:
        wrong.append(f"the gap is {told.gap!r}")
    return wrong


@exact
def contradictions(model: Any) -> list[str]:
    """Return what does not agree among the attributes of a fitted estimator."""
    total = model.certificate_
    parts = model.certificates_
    wrong = []
    if model.outcome_ is Outcome.CERTIFIED:
        tol = model.tol
        worst = max(part.relative_gap for part in parts)
        if not worst <= tol:
            wrong.append(f"it is certified with a relative gap of {worst!r}, {tol!r} was asked for")
    for name, sign in (("primal", 1), ("dual", -1)):
        whole = Decimal(getattr(total, name))
        each = [Decimal(getattr(part, name)) for part in parts]
        if all(value.is_finite() for value in each) and sign * (sum(each) - whole) > abs(whole) * OWN_ERROR:
            wrong.append(f"the total {name} {whole} is on the wrong side of the sum {sum(each)}")
    return wrong
