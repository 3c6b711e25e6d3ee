"""Links that lead out of the project are well formed; `sphinx -b linkcheck` follows them (CONTRIBUTING.md)."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pages import ROOT

LINK = re.compile(r"https?://[^\s<>\"'`)\]}]+")
DOI = re.compile(r"/10\.\d{4,9}/\S+")
NAMESPACES = ("http://www.w3.org/2000/svg",)  # names, not addresses
WRITTEN = (
    ".md",
    ".py",
    ".rst",
    ".toml",
    ".cff",
    ".yaml",
    ".yml",
    ".js",
    ".html",
    ".css",
)
FOLDERS = ("docs", "src", "conda", ".github")
MADE = (
    "docs/gallery",
    "docs/reference/api",
    "docs/checks",
)  # by a build, and this file's own patterns


def places() -> list[Path]:
    """The files that people read, or that come with the package, apart from what a build made."""
    files = [path for path in ROOT.iterdir() if path.is_file()]
    files += [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    made = {ROOT / folder for folder in MADE}
    return [
        path
        for path in files
        if path.suffix in WRITTEN
        and path.is_file()
        and not made.intersection(path.parents)
    ]


def links() -> dict[str, Path]:
    """Every address that leads out of the project, and a file where it stands."""
    found = {}
    for path in places():
        for link in LINK.findall(path.read_text(encoding="utf-8")):
            found[link.rstrip(".,;:")] = path
    return {
        link: path for link, path in sorted(found.items()) if link not in NAMESPACES
    }


@pytest.mark.parametrize("link", links())
def test_an_address_is_one(link: str) -> None:
    parts = urlsplit(link)
    assert parts.scheme == "https", "read over https"
    assert re.fullmatch(r"([a-z0-9-]+\.)+[a-z]{2,}", parts.hostname or ""), (
        "a host that everybody reaches"
    )
    assert parts.username is None
    assert parts.port is None
    assert parts.hostname != "doi.org" or DOI.fullmatch(parts.path), (
        "a DOI begins with 10. and a number"
    )
