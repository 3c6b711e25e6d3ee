"""Fits of every registered estimator and option, judged from outside: their public attributes, in 120 digits.

A case is a random problem (:mod:`tests.attack.posed`) that is fitted in several ways, to every kind of end. What the
certificates claim is refuted where the model's true objective is above the primal, or further below it than the
rounding it speaks of; where the published dual point does not reach the dual; where the dual is above the objective of
any model that was found for the same problem; and where an outcome says "certified" of a gap larger than asked for.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from saddlesvm import Outcome
from saddlesvm.rows import memory_plan

from .exact import exact
from .posed import FAMILIES, MAKERS, Posed
from .public import Claim, claims_of
from .tally import Tally

LEAST = 1 << 12  # bytes of memory= that are allowed here
NEVER = Decimal("1e-300")
JUDGES_OWN = Decimal("1e-100")  # what the judge's arithmetic may be wrong by, of the larger objective


@patch.object(memory_plan, "LEAST_MEMORY", LEAST)  # else no small store would be read block by block
def fits(folder: Path, seed: int, first: int, count: int, only: str | None = None, way: str | None = None) -> Tally:
    """Judge `count` fits at least, of the problems from number `first` on.

    Parameters
    ----------
    only : str, optional
        The estimator that every problem is posed for; drawn when left out.
    way : str, optional
        The only fits that are made have this option, or this estimator; the others count as well, so that problems
        keep their numbers.
    """
    tally, number, passed = Tally("fits"), first, 0
    while tally.cases + passed < count:
        random = np.random.default_rng([seed, number, 5])
        family = only or FAMILIES[int(random.integers(len(FAMILIES)))]
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            work = folder / f"fits-{seed}-{number}"
            work.mkdir()
            posed = MAKERS[family](random, work)
            if way is not None and way != family:
                kept = [one for one in posed.ways if one.get(way) is not None]
                passed += len(posed.ways) - len(kept)
                posed = dataclasses.replace(posed, ways=kept)
            for outcome, said in judged(posed):
                tally.cases += 1
                tally.outcomes[f"{family} {outcome}"] += 1
                tally.failures += [f"fits {seed}:{number} ({family}) {posed.data.X.shape}: {one}" for one in said]
        for file in sorted(work.rglob("*"), reverse=True):
            file.rmdir() if file.is_dir() else file.unlink()
        work.rmdir()
        number += 1
    return tally


def judged(posed: Posed) -> Iterator[tuple[str, list[str]]]:
    """The outcome of each fit of a problem, and what is wrong with its claims."""
    lowest: dict[Any, Decimal] = {}
    found: list[tuple[str, Any, list[Claim]]] = []
    for way in posed.ways:
        told = f"{posed.options | way}"
        try:
            model = fitted(posed, way)
        except ValueError as error:
            yield "refused", [] if len(str(error)) else [f"{told}: refused without a word"]
            continue
        except Exception as error:  # a case is there to provoke them
            yield "raised", [f"{told}: raised {error!r}"]
            continue
        claims = claims_of(model, posed.data)
        for one in claims:
            lowest[one.problem] = min(lowest.get(one.problem, one.primal), one.primal)
        found.append((told, model, claims))
    for told, model, claims in found:
        said = [wrong for one in claims for wrong in refuted(one, lowest[one.problem])] + broken(model)
        yield str(model.outcome_), [f"{told} ended {model.outcome_}: {one}" for one in said]


def fitted(posed: Posed, way: dict[str, Any]) -> Any:
    """The estimator, fitted in a way; with a warm start or a checkpoint, a second time after a shorter fit."""
    model = posed.kind(**posed.options | way)
    data = (posed.given, posed.data.y)
    options = {} if posed.data.weights is None else {"sample_weight": posed.data.weights}
    if way.get("warm_start") or way.get("checkpoint"):
        model.set_params(max_iter=1)
        if not way.get("checkpoint") and isinstance(posed.options.get("C"), float):
            model.set_params(C=2.0 * posed.options["C"])
        model.fit(*data, **options)
        model.set_params(**{name: value for name, value in (posed.options | way).items() if name in ("C", "max_iter")})
    model.fit(*data, **options)
    return model


@exact
def refuted(claim: Claim, lowest: Decimal) -> list[str]:
    """What is wrong with a certificate, beside the lowest objective of a model of the same problem."""
    told, said = claim.certificate, []
    if math.isnan(told.primal) or math.isnan(told.dual):
        return [f"the certificate is {told}"]
    above, below = Decimal(told.primal), Decimal(told.dual)
    size = max([NEVER, *(abs(one) for one in (above, below, claim.primal) if one.is_finite())])
    own, rounding = size * JUDGES_OWN, 2 * Decimal(told.primal_rounding)

    def share(one: Decimal) -> str:
        return f"{float(one / size):.2g} of its size"

    if claim.primal > above + own:
        said.append(f"the primal {told.primal!r} is below the model's by {share(claim.primal - above)}")
    if claim.whole and above.is_finite() and rounding.is_finite() and above - claim.primal > rounding + own:
        said.append(f"the primal {told.primal!r} is above the model's by {share(above - claim.primal)}")
    if not claim.bounded:
        return said
    if below > lowest + own:
        said.append(f"the dual {told.dual!r} is above a model's objective by {share(below - lowest)}")
    if claim.dual is not None and below > (bound := max(claim.dual, Decimal(0))) + own:  # the dual point zero proves 0
        said.append(f"the dual {told.dual!r} is above that of the dual point by {share(below - bound)}")
    if told.gap < 0.0:
        said.append(f"the gap is {told.gap!r}")
    return said


@exact
def broken(model: Any) -> list[str]:
    """What does not agree among the attributes of a fitted estimator."""
    total, parts, said = model.certificate_, model.certificates_, []
    if model.outcome_ is Outcome.CERTIFIED:
        tol = getattr(model, "exact_tol", None) or model.tol
        worst = max(one.relative_gap for one in parts)
        if not worst <= tol:
            said.append(f"it is certified with a relative gap of {worst!r}, {tol!r} was asked for")
    for name, sign in (("primal", 1), ("dual", -1)):
        whole, each = Decimal(getattr(total, name)), [Decimal(getattr(one, name)) for one in parts]
        if all(one.is_finite() for one in each) and sign * (sum(each) - whole) > abs(whole) * JUDGES_OWN:
            said.append(f"the total of each {name}, {whole}, is on the wrong side of their sum, {sum(each)}")
    return said
