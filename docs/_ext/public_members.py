"""Leaves the methods out that scikit-learn adds to every estimator: they are documented there."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

ADDED = re.compile(r"set_(fit|partial_fit|predict|score|predict_proba|decision_function)_request$")


def skip(app: Sphinx, what: str, name: str, item: Any, default: bool, options: Any) -> bool | None:
    """Whether to leave a member out; None leaves it to autodoc."""
    return True if ADDED.search(name) else None


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("autodoc-skip-member", skip)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
