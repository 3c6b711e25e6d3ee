"""The estimator that the options of a command ask for."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import numpy as np

from saddlesvm.cli.command import nearest
from saddlesvm.estimators import HOMES, register
from saddlesvm.problem.losses import LOSSES, make_loss, traits_of

NOT_PARAMETERS = (
    "estimator",
    "settings",
    "seed",
    "intercept",
    "class_weight",
)  # of `asked`: they take more than a name
YES_OR_NO = {"yes": True, "true": True, "no": False, "false": False}


def flag(name: str) -> str:
    """The spelling of a parameter on the command line."""
    return "--lambda" if name == "lam" else f"--{name.replace('_', '-')}"


def choose_kind(asked: dict[str, Any]) -> register.Entry:
    """The kind of estimator for the options: that of ``--estimator``, or the one for the loss, the kernel and nu.

    Raises
    ------
    ValueError
        There is no such estimator, or it lacks an option that was given.
    """
    entry = named_kind(asked["estimator"]) if "estimator" in asked else implied_kind(asked)
    absent = [name for name in asked if name not in NOT_PARAMETERS and name not in entry.parameters]
    if "class_weight" in asked and "class_weight" not in entry.parameters:
        absent.append("class_weight")
    if "intercept" in asked and "intercept" not in entry.parameters:
        absent.append("intercept")
    if absent:
        others = [one.name for one in register.known() if absent[0] in one.parameters]
        advice = f"; it is an option of {', '.join(others)} (--estimator)" if others else ""
        raise ValueError(f"{flag(absent[0])} does not work with {entry.name}{advice}")
    if "epsilon" in asked:
        loss = asked.get("loss") or entry.kind().get_params().get("loss", "epsilon_insensitive")
        if "epsilon" not in traits_of(make_loss(loss)).options:
            raise ValueError(f"--epsilon does not work with the loss {loss}")
    return entry


def named_kind(name: str) -> register.Entry:
    """The registered kind of a name."""
    for home in set(HOMES.values()):  # the package's own register as they are imported
        importlib.import_module(home)
    entry = register.named(name)
    if entry is None:
        names = [one.name for one in register.known()]
        raise ValueError(
            f"there is no estimator {name!r}{nearest(name, names)}; known are {', '.join(names)}, and those that a "
            "module of yours registers (--import MODULE)"
        )
    return entry


def implied_kind(asked: dict[str, Any]) -> register.Entry:
    """The kind of estimator for the loss, the kernel and nu."""
    is_regression = "loss" in asked and task_of_loss(asked["loss"]) == "regression"
    if "nu" in asked:
        return named_kind("NuSVR" if is_regression else "NuSVC")
    if "kernel" in asked:
        return named_kind("SVR" if is_regression else "SVC")
    return named_kind("LinearSVR" if is_regression else "LinearSVC")


def task_of_loss(name: str) -> str:
    """What a loss is for: classification or regression."""
    known = name.partition(":")[0]
    try:
        return str(traits_of(make_loss(name)).task)
    except ValueError as error:
        if known in LOSSES:
            raise
        raise ValueError(f"{error}{nearest(known, LOSSES)}") from None


def make_estimator(asked: dict[str, Any], entry: register.Entry, y: np.ndarray, quiet: bool = False) -> Any:
    """The estimator of a kind; parameters that are not asked for keep the estimator's own defaults.

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
    given = {name: value for name, value in asked.items() if name not in NOT_PARAMETERS}
    # Several values of C or gamma are for the cross-validation, which sets them one by one.
    given = {name: value for name, value in given.items() if not isinstance(value, tuple)}
    if "intercept" in asked:
        given["fit_intercept"] = asked["intercept"] != "none"
        if given["fit_intercept"]:
            given["intercept"] = asked["intercept"]
    if "class_weight" in asked:
        given["class_weight"] = read_class_weights(asked["class_weight"], y)
    if "random_state" in entry.parameters:
        given["random_state"] = asked["seed"]
    if "verbose" in entry.parameters:
        given["verbose"] = int(sys.stderr.isatty() and not quiet)
    given |= read_settings(asked.get("settings", ()), entry)
    return entry.kind(**given)


def read_class_weights(text: str, y: np.ndarray) -> Any:
    """``"balanced"``, or ``LABEL=FACTOR,LABEL=FACTOR`` as a dict over the labels of y."""
    if text == "balanced":
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


def read_settings(settings: Any, entry: register.Entry) -> dict[str, Any]:
    """The parameters of ``--set NAME=VALUE``, each with the type of the estimator's default."""
    defaults = entry.kind().get_params(deep=False)
    found = {}
    for name, text in settings:
        if name not in defaults:
            raise ValueError(
                f"--set {name}={text}: {entry.name} has no parameter {name!r}{nearest(name, defaults)}; "
                f"it has {', '.join(defaults)}"
            )
        found[name] = read_setting_like(defaults[name], name, text)
    return found


def read_setting_like(default: Any, name: str, text: str) -> Any:
    """A value of the type of a parameter's default; a number if the default says nothing."""
    if isinstance(default, bool):
        if text.lower() not in YES_OR_NO:
            raise ValueError(f"--set {name}={text}: yes or no is allowed")
        return YES_OR_NO[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    if isinstance(default, (int, float)):
        raise ValueError(f"--set {name}={text}: a number is needed")
    return text
