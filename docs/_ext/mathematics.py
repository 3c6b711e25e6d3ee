"""Typeset mathematics that needs no network: the site carries MathJax, copied from the package sphinx-mathjax-offline.

Write ``$a$`` and ``$$ b $$`` on pages, ``:math:`a``` and ``.. math::`` in docstrings.
"""

from __future__ import annotations

from importlib.metadata import files
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util.fileutil import copy_asset_file

PACKAGE = "sphinx-mathjax-offline"
SCRIPT = "tex-chtml.js"
FONTS = "output/chtml/fonts/woff-v2/"


def needed() -> dict[str, Path]:
    """The files of MathJax that pages load, by their place below MathJax's folder."""
    found = {}
    for file in files(PACKAGE) or ():
        place = file.as_posix().partition("/static/mathjax/")[2]
        if place == SCRIPT or place.startswith(FONTS):
            found[place] = Path(str(file.locate()))
    if SCRIPT not in found:
        raise RuntimeError(
            f"{PACKAGE} holds no {SCRIPT}: pip install '.[docs]' brings the version that does"
        )
    return found


def copy(app: Sphinx, failure: Exception | None) -> None:
    """Put MathJax into the site."""
    if failure is not None or app.builder.format != "html":
        return
    for place, file in needed().items():
        target = Path(app.outdir, "_static", "mathjax", place)
        target.parent.mkdir(parents=True, exist_ok=True)
        copy_asset_file(file, target)


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.setup_extension("sphinx.ext.mathjax")
    app.config.mathjax_path = f"mathjax/{SCRIPT}"
    app.config.mathjax3_config = {
        "options": {"enableMenu": False}
    }  # the menu would load files that are not here
    app.connect("build-finished", copy)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
