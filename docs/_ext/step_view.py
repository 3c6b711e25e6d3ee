"""``{step-view} SOLVER [AGAINST]``: a step view in a frame, made when the manual is built.

The data are the bundled toy set.
"""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from saddlesvm.data import load_bundled
from saddlesvm.lab import watch

FRAME = """<iframe class="step-view" src="{address}" title="{title}" loading="lazy"></iframe>"""


class StepView(SphinxDirective):
    """A frame with the page that plays one or two solvers, and a link to it."""

    required_arguments = 1
    optional_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {
        "loss": directives.unchanged,
        "lam": float,
        "epochs": float,
        "rows": int,
    }

    def run(self) -> list[nodes.Node]:
        first, second = self.arguments[0], (*self.arguments, None, None)[1]
        options = dict(self.options)
        toy = load_bundled("toy")
        made = watch(toy.X, toy.y, solver=first, against=second, name="toy", **options)
        names = [one.partition(":")[0] for one in (first, second) if one]
        options = [f"{key}-{value}" for key, value in sorted(self.options.items())]
        name = "-".join([*names, *options]) + ".html"
        made.report(self._folder() / name)
        here = "../" * self.env.docname.count("/")
        address = f"{here}_static/steps/{name}"
        title = f"Step view: {' and '.join(names)}"
        frame = FRAME.format(address=address, title=html.escape(title))
        link = nodes.paragraph(
            "", "", nodes.reference("", "The steps in a window of their own", refuri=address), nodes.Text(".")
        )  # fmt: skip
        return [nodes.raw("", frame, format="html"), link]

    def _folder(self) -> Path:
        folder = Path(self.env.app.outdir, "_static", "steps")
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_directive("step-view", StepView)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
