"""``{project-file} NAME``: a Markdown file of the project's root as a page; links to pages go on working."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

HERE = re.compile(r"^```\{project-file\} (\S+)\n```$", re.M)
LINK = re.compile(r"\[([^\]]+)\]\((?!\w+://|#)([^)\s]+)\)")


def replace(app: Sphinx, page: str, source: list[str]) -> None:
    """Put the file in the place of the directive."""
    folder = posixpath.dirname(page)

    def text_of(match: re.Match[str]) -> str:
        path = Path(app.srcdir, "..", match[1]).resolve()
        app.env.note_dependency(str(path))
        return LINK.sub(link_from, path.read_text(encoding="utf-8"))

    def link_from(match: re.Match[str]) -> str:
        """A link to a page of the manual, from this page; the text alone where it leads to another file."""
        target = match[2].partition("#")[0]
        if target.startswith("docs/") and target.endswith(".md"):
            return f"[{match[1]}]({posixpath.relpath(match[2].removeprefix('docs/'), folder)})"
        return match[1]

    source[0] = HERE.sub(text_of, source[0])


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("source-read", replace)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
