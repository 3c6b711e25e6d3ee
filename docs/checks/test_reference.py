"""Every public object is in the reference, and has an example that runs."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pages import DOCS

import saddlesvm
import saddlesvm.lab

ENTRY = re.compile(r"^   (\w[\w.]*)$", re.M)
LISTED = ENTRY.findall((DOCS / "reference" / "index.md").read_text(encoding="utf-8"))
# Pages of functions, whose functions have their own docstrings.
MODULES = ("lab.bounds", "lab.figures")


def found(name: str) -> Any:
    """The object that an entry names."""
    module, _, last = f"saddlesvm.{name}".rpartition(".")
    try:
        return getattr(importlib.import_module(module), last)
    except AttributeError:
        return importlib.import_module(f"{module}.{last}")


def test_every_public_name_is_listed() -> None:
    public = {*saddlesvm.__all__}
    public |= {"dask.ClusterLostError"} | {
        f"lab.{name}" for name in saddlesvm.lab.__all__
    }
    missing = public - set(LISTED)
    assert not missing, sorted(missing)
    assert len(LISTED) == len(set(LISTED))


@pytest.mark.parametrize("name", [name for name in LISTED if name not in MODULES])
def test_every_entry_has_an_example_that_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    item = found(name)
    examples = doctest.DocTestParser().get_doctest(
        item.__doc__ or "", {}, name, None, None
    )
    assert examples.examples, f"saddlesvm.{name} has no example"
    said: list[str] = []
    failed, _ = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(
        examples, out=said.append
    )
    assert not failed, "".join(said)


FITTED = (
    "LinearSVC",
    "LinearSVR",
    "LinearSVCCV",
    "SVC",
    "NuSVC",
    "SVR",
    "NuSVR",
    "OneClassSVM",
)


@pytest.mark.parametrize("name", FITTED)
def test_every_fitted_attribute_is_documented(name: str) -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 3))
    y = np.where(X[:, 0] + 0.3 * random.normal(size=60) > 0, 1, -1)
    model = found(name)().fit(X, y)
    attributes = [
        one for one in vars(model) if one.endswith("_") and not one.startswith("_")
    ]
    missing = [
        one
        for one in attributes
        if not re.search(rf"\b{one}(?!\w)", type(model).__doc__ or "")
    ]
    assert not missing, f"the docstring of {name} lacks {missing}"
