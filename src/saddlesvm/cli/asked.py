"""The estimator that the options of a command ask for."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np

from saddlesvm.estimators import register
from saddlesvm.problem.losses import make_loss, traits_of

SHARED_OPTIONS = (
    "C", "lam", "loss", "solver", "tol", "gap", "max_iter", "max_time", "keep", "intercept_scaling", "n_jobs"
)  # fmt: skip
LOSS_OPTIONS = ("epsilon", "width")  # options of losses that are options of the command too


def class_weights(text: str | None, y: np.ndarray) -> Any:
    """``"balanced"``, or ``LABEL=FACTOR,LABEL=FACTOR`` as a dict over the labels of y."""
    if text is None or text == "balanced":
        return text
    known = {str(label): label for label in np.unique(y)}
    factors = {}
    for part in text.split(","):
        label, equals, factor = part.rpartition("=")
        if not equals or label not in known:
            raise ValueError(f"--class-weight {part!r}: LABEL=FACTOR is allowed, with a label of {', '.join(known)}")
        try:
            factors[known[label]] = float(factor)
        except ValueError:
            raise ValueError(f"--class-weight {part!r}: {factor!r} is not a number") from None
    return factors


def task_of(options: argparse.Namespace) -> Any:
    """``"regression"`` for a regression loss or estimator, else None: the labels then may be any."""
    entry = register.named(options.estimator or "")
    task_of_loss = None if options.loss is None else traits_of(make_loss(options.loss)).task
    regression = task_of_loss == "regression" if entry is None else entry.task == "regression"
    return "regression" if regression else None


def estimator_kind(options: argparse.Namespace) -> register.Entry:
    """The estimator that the options ask for.

    Raises
    ------
    ValueError
        The estimator does not have an option that was given.
    """
    entry = register.named(options.estimator or "") or asked_for(options)
    if options.top_k is not None and options.multi_class != "top_k" and "multi_class" in entry.parameters:
        raise ValueError("--top-k is for the top-k machine: give --multi-class top_k too")
    loss: Any = options.loss or getattr(entry.kind(), "loss", None)
    offered = {name: None for one in register.known() for name in one.options}
    absent = [name for name in SHARED_OPTIONS if name not in entry.parameters]
    absent += [name for name in offered if name not in entry.options and name not in LOSS_OPTIONS]
    of_the_loss = () if loss is None else traits_of(make_loss(loss)).options
    absent += sorted(name for name in LOSS_OPTIONS if name not in of_the_loss or name not in entry.options)
    for name in absent:
        if getattr(options, name, None) is not None:
            what = f"the loss {loss}"
            if options.estimator:
                what = f"--estimator {options.estimator}"
            elif entry.asked_by and name not in LOSS_OPTIONS:
                what = f"--{entry.asked_by} {getattr(options, entry.asked_by)}"
            others = [one.name for one in register.known() if name in one.options and name not in LOSS_OPTIONS]
            advice = f"; it is an option of {', '.join(others)} (--estimator)" if others else ""
            raise ValueError(f"--{name.replace('_', '-')} does not work with {what}{advice}")
    return entry


def asked_for(options: argparse.Namespace) -> register.Entry:
    """The kind of estimator that an option names, or else the one for the task of the loss."""
    kinds = register.known()
    asked = [one for one in kinds if one.asked_by and getattr(options, one.asked_by) is not None]
    named = {one.asked_by for one in asked}
    among = [one for one in asked if named <= {*one.options}] or asked or [one for one in kinds if not one.asked_by]
    return next((one for one in among if one.task == (task_of(options) or "classification")), among[0])


def make_estimator(options: argparse.Namespace, y: np.ndarray) -> Any:
    """The estimator that the options describe; missing options keep the estimator's own defaults."""
    entry = estimator_kind(options)
    given: dict[str, Any] = {name: getattr(options, name, None) for name in (*SHARED_OPTIONS, *entry.options)}
    given["random_state"] = options.seed
    given["verbose"] = int(sys.stderr.isatty() and not options.json)
    for name in ("C", "gamma"):
        if isinstance(given.get(name), tuple):
            given[name] = None  # cross-validation sets it
    if options.intercept is not None:
        given["fit_intercept"] = options.intercept != "none"
        given["intercept"] = None if options.intercept == "none" else options.intercept
    if "class_weight" in given:
        given["class_weight"] = class_weights(options.class_weight, y)
    return entry.kind(**{name: one for name, one in given.items() if one is not None and name in entry.parameters})
