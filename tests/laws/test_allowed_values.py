"""One declaration of the values that parameters allow: refusals, documents, types and the command line follow it."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any, get_args

import click
import pytest

from saddlesvm.cli import train
from saddlesvm.estimators import HOMES
from saddlesvm.runtime import option_names

KINDS = [getattr(importlib.import_module(home), name) for name, home in HOMES.items()]
MADE_BY_REGISTERS = {"loss", "solver"}  # their names are known to the registers alone
DECLARED = [(kind, name) for kind in KINDS for name in sorted(set(kind._get_param_names()) - MADE_BY_REGISTERS)]


def name_of(case: Any) -> str:
    return getattr(case, "__name__", str(case))


@pytest.mark.parametrize(("kind", "name"), DECLARED, ids=name_of)
def test_a_parameter_is_declared_and_refused_before_data_are_read(kind: type[Any], name: str) -> None:
    allowed = kind._allowed[name]
    model = kind()
    assert allowed.holds(getattr(model, name))
    for bad in (object(), [object()], float("nan")):
        setattr(model, name, bad)
        with pytest.raises(ValueError, match=re.escape(f"{name} must be {allowed.words}; got {bad!r}")):
            model.fit(None, None)


@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_the_documents_list_the_names_that_are_allowed(kind: type[Any]) -> None:
    text = inspect.getdoc(kind) or ""
    for name, words in re.findall(r"^(\w+) : \{(.*?)\}.*$", text, re.M):
        assert sorted(re.findall(r'"(\w+)"', words)) == sorted(kind._allowed[name].names), name


def test_the_types_and_the_commands_list_the_names_that_are_allowed() -> None:
    flags = {flag.name: flag for flag in train.command.params}
    linear, kernel = (next(kind for kind in KINDS if kind.__name__ == name)._allowed for name in ("LinearSVC", "SVC"))
    for allowed, name, literal in (
        (linear["penalty"], "penalty", option_names.PenaltyName),
        (linear["multi_class"], "multi_class", option_names.MultiClass),
        (linear["intercept"], "intercept", option_names.Intercept),
        (kernel["kernel"], "kernel", option_names.KernelName),
    ):
        assert allowed.names == get_args(literal)
        if name == "multi_class":  # --set multi_class=ovo
            continue
        flag = flags[name]
        assert isinstance(flag.type, click.Choice)
        # Values of a kernel are no rows of features.
        assert tuple(flag.type.choices) == tuple(one for one in allowed.names if one != "precomputed")
