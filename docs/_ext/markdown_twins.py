"""A Markdown twin beside every page (``page.html``, ``page.md``) and ``llms.txt``, a list of them all.

The twin is made of the page as it is shown, so that the reference and the gallery have one too. Both are for programs,
and for people who would rather read text.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup
from markdownify import MarkdownConverter
from sphinx.application import Sphinx

NOT_TEXT = (
    "a.headerlink, .only-dark, button, style, script, .sphx-glr-footer, "
    ".sphx-glr-thumbcontainer img, .sphx-glr-timing"
)
LANGUAGES = {"ipython3": "python", "Python": "python", "default": "", "none": ""}


class PageConverter(MarkdownConverter):
    """Markdown of a page's body; tables of one cell a definition, code with its language."""

    def convert_dt(self, el: Any, text: str, parent_tags: Any) -> str:
        return f"\n\n**{text.strip()}**\n" if text.strip() else ""

    def convert_dd(self, el: Any, text: str, parent_tags: Any) -> str:
        return "\n" + text.strip() + "\n"

    def convert_tex(self, el: Any, text: str, parent_tags: Any) -> str:
        formula = re.sub(
            r"\\(begin|end)\{split\}", "", el.get_text().strip()
        )  # which Sphinx adds
        if formula.startswith(r"\["):
            return f"\n\n$$\n{formula[2:-2].strip()}\n$$\n\n"
        return f"${formula[2:-2]}$"


def language(pre: Any) -> str:
    """The language of a block of code, from the class that Sphinx gives to its frame."""
    for frame in pre.parents:
        for name in frame.get("class", []):
            if name.startswith("highlight-"):
                found = name.removeprefix("highlight-")
                return LANGUAGES.get(found, found)
    return ""


def markdown_of(body: str) -> str:
    """The Markdown of a page's body, its links to other pages turned to their twins."""
    soup = BeautifulSoup(body, "html.parser")
    for gone in soup.select(NOT_TEXT):
        gone.decompose()
    for link in soup.find_all("a", href=True):
        address, hash_, place = link["href"].partition("#")
        if "://" in address or "_static/" in address:  # what has no twin
            continue
        if address.endswith(".html"):
            link["href"] = address.removesuffix(".html") + ".md" + hash_ + place
    for formula in soup.select(".math"):
        formula.name = "tex"
    converter = PageConverter(
        heading_style="ATX", bullets="-", code_language_callback=language
    )
    return re.sub(r"\n{3,}", "\n\n", converter.convert_soup(soup)).strip() + "\n"


def keep(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Write the twin of one page and tell the page where it is."""
    if doctree is None or app.builder.format != "html":
        return
    twin = Path(app.outdir, *f"{pagename}.md".split("/"))
    twin.parent.mkdir(parents=True, exist_ok=True)
    twin.write_text(markdown_of(context["body"]), encoding="utf-8")
    context["markdown_twin"] = posixpath.basename(pagename) + ".md"


def list_all(app: Sphinx, failure: Exception | None) -> None:
    """Write llms.txt: what this is, and every page by the door that it is behind."""
    if failure is not None or app.builder.format != "html":
        return
    env = app.env
    lines = [
        "# saddlesvm",
        "",
        "> Support vector machines for Python, trained fast to a certified optimum: every fit says how far from the "
        "best possible objective it can be at most. Every page below is Markdown; its name with .html is the page.",
        "",
        "- [Front page](index.md)",
    ]
    for door in env.toctree_includes["index"]:
        pages = [
            name
            for name in behind(env, door)
            if Path(app.outdir, f"{name}.md").exists()
        ]
        lines += ["", f"## {env.titles[door].astext()}", ""]
        lines += [f"- [{env.titles[name].astext()}]({name}.md)" for name in pages]
    Path(app.outdir, "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def behind(env: Any, page: str) -> list[str]:
    """A page and those that its tables of contents lead to, in their order, each once."""
    found = {page: None}
    for below in env.toctree_includes.get(page, ()):
        found |= dict.fromkeys(behind(env, below))
    return list(found)


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("html-page-context", keep)
    app.connect("build-finished", list_all)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
