"""The estimator that the options of a command ask for."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import numpy as np

from saddlesvm.cli.command import suggest
from saddlesvm.estimators import HOMES, register
from saddlesvm.problem.losses import LOSSES, make_loss, traits_of

NOT_PARAMETERS = ("estimator", "settings", "seed")  # options that no estimator has as such
TRANSLATED = ("intercept", "class_weight")  # options whose text becomes other values
YES_OR_NO = {"yes": True, "true": True, "no": False, "false": False}


def choose_entry(asked: dict[str, Any]) -> register.Entry:
    """Return the kind of estimator: that of ``--estimator``, or of the loss and the kernel.

    Raises
    ------
    ValueError
        There is no such estimator, or it lacks an option that was given.
    """
    if "estimator" in asked:
        name = asked["estimator"]
    else:
        # The loss implies the task, a kernel the kind of machine.
        is_regression = task_of_loss(asked.get("loss", "hinge")) == "regression"
        name = "SVR" if is_regression else "SVC"
        if "kernel" not in asked:
            name = f"Linear{name}"
    entry = find_entry_named(name)
    if "C" in asked and "lam" in asked:
        raise ValueError("give either C or lam (lambda), not both: C = 1 / (lambda n)")
    for name, _ in asked.get("settings", ()):
        if name in asked:
            raise ValueError(f"--set {name} gives a parameter that has an option: give one of them")
    for name in asked:
        if name not in NOT_PARAMETERS and name not in entry.parameters:
            others = [other.name for other in register.list_entries() if name in other.parameters]
            advice = f"; {', '.join(others)} (--estimator) have it" if others else ""
            flag = "--lambda" if name == "lam" else f"--{name.replace('_', '-')}"
            raise ValueError(f"{flag} does not work with {entry.name}{advice}")
    return entry


def find_entry_named(name: str) -> register.Entry:
    """Return the registered kind of a name."""
    # The estimators of this package register themselves while their modules are imported.
    for home in set(HOMES.values()):
        importlib.import_module(home)
    entry = register.find_entry(name)
    if entry is None:
        names = [known.name for known in register.list_entries()]
        raise ValueError(
            f"there is no estimator {name!r}{suggest(name, names)}; there are {', '.join(names)}, "
            "and what a module of yours registers (--import MODULE)"
        )
    return entry


def task_of_loss(name: str) -> str:
    """Return the task that a loss is for: classification or regression."""
    try:
        return str(traits_of(make_loss(name)).task)
    except ValueError as error:
        # A known loss has wrong options; an unknown name may be a slip of the keyboard.
        known = name.partition(":")[0]
        if known in LOSSES:
            raise
        raise ValueError(f"{error}{suggest(known, LOSSES)}") from None


def make_estimator(
    asked: dict[str, Any], entry: register.Entry, y: np.ndarray, quiet: bool = False
) -> Any:
    """Make the estimator; parameters that are not asked for keep the estimator's own defaults.

    Parameters
    ----------
    asked : dict
        Options of the command that were given.
    entry : Entry
    y : ndarray
        The labels, which class weights name.
    quiet : bool, default=False
        Do not draw the progress of the fit.
    """
    parameters = {}
    for name, value in asked.items():
        if name not in NOT_PARAMETERS + TRANSLATED:
            parameters[name] = value
    if "intercept" in asked:
        parameters["fit_intercept"] = asked["intercept"] != "none"
        if parameters["fit_intercept"]:
            parameters["intercept"] = asked["intercept"]
    if "class_weight" in asked:
        parameters["class_weight"] = read_class_weights(asked["class_weight"], y)
    if "random_state" in entry.parameters:
        parameters["random_state"] = asked["seed"]
    if "verbose" in entry.parameters:
        parameters["verbose"] = int(sys.stderr.isatty() and not quiet)
    parameters |= read_settings(asked.get("settings", ()), entry)
    return entry.kind(**parameters)


def read_class_weights(text: str, y: np.ndarray) -> object:
    """Read ``"balanced"``, or ``LABEL=FACTOR,LABEL=FACTOR`` as a dict over the labels of y."""
    if text == "balanced":
        return text
    # Labels on the command line are text: compare them as text.
    known = {str(label): label for label in np.unique(y)}
    factors = {}
    for part in text.split(","):
        label, equals, factor = part.rpartition("=")
        if not equals or label not in known:
            raise ValueError(
                f"--class-weight {part!r}: LABEL=FACTOR is needed, with one of the labels "
                f"{', '.join(known)}"
            )
        try:
            factors[known[label]] = float(factor)
        except ValueError:
            raise ValueError(
                f"--class-weight {part!r}: the factor {factor!r} is not a number"
            ) from None
    return factors


def read_settings(settings: Any, entry: register.Entry) -> dict[str, object]:
    """Read the parameters of ``--set NAME=VALUE``, each with the type of its default."""
    defaults = entry.kind().get_params(deep=False)
    found = {}
    for name, text in settings:
        if name not in defaults:
            raise ValueError(
                f"--set {name}={text}: {entry.name} has no parameter {name!r}"
                f"{suggest(name, defaults)}; it has {', '.join(defaults)}"
            )
        found[name] = read_setting_like(defaults[name], name, text)
    return found


def read_setting_like(default: object, name: str, text: str) -> object:
    """Read a value of the type of a default; if that is text, a number if the text is a number."""
    # A bool is an int to Python, so it comes first.
    if isinstance(default, bool):
        if text.lower() not in YES_OR_NO:
            raise ValueError(f"--set {name}={text}: yes or no is allowed")
        return YES_OR_NO[text.lower()]
    if text == "None":
        return None
    for read_number in (int, float):
        try:
            return read_number(text)
        except ValueError:
            continue
    if isinstance(default, (int, float)):
        raise ValueError(f"--set {name}={text}: a number is needed")
    return text
