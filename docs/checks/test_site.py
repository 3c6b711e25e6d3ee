"""The built site (its folder is $SITE): links inside it lead somewhere, pictures have a text, headings nest."""

from __future__ import annotations

import os
from functools import cache
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest
from bs4 import BeautifulSoup

SITE = Path(os.environ.get("SITE", ""))
PAGES = sorted(set(SITE.rglob("*.html")) - set(SITE.glob("_static/**/*"))) if os.environ.get("SITE") else []
THUMBNAIL = "sphx-glr-thumbcontainer"  # beside a link that says the same
pytestmark = pytest.mark.skipif(not PAGES, reason="$SITE names no built site")


@cache
def soup(page: Path) -> BeautifulSoup:
    return BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")


@cache
def anchors(page: Path) -> frozenset[str]:
    return frozenset(tag["id"] for tag in soup(page).find_all(id=True))


def where(page: Path) -> str:
    return str(page.relative_to(SITE))


@pytest.mark.parametrize("page", PAGES, ids=where)
def test_links_inside_the_site_lead_somewhere(page: Path) -> None:
    for link in soup(page).find_all("a", href=True):
        address, _, place = link["href"].partition("#")
        if "://" in address or address.startswith("mailto:"):
            continue
        target = (page.parent / unquote(address)).resolve() if address else page
        assert target.is_file(), f"{link['href']} leads nowhere"
        assert not place or target.suffix != ".html" or unquote(place) in anchors(target), f"no {link['href']}"


@pytest.mark.parametrize("page", PAGES, ids=where)
def test_pages_can_be_read_aloud(page: Path) -> None:
    html = soup(page).html
    assert html is not None
    assert html["lang"]
    article = soup(page).find("article")
    if article is None:
        return
    pictures = [picture for picture in article.find_all("img") if picture.find_parent(class_=THUMBNAIL) is None]
    assert all(picture.get("alt", "").strip() for picture in pictures), "a picture without a text"
    levels = [int(heading.name[1]) for heading in article.find_all(["h1", "h2", "h3", "h4", "h5", "h6"])]
    assert levels.count(1) <= 1
    assert all(below - above <= 1 for above, below in pairwise(levels)), f"headings jump: {levels}"


def test_every_page_has_its_twin_and_is_listed() -> None:
    listed = (SITE / "llms.txt").read_text(encoding="utf-8")
    for page in PAGES:
        if soup(page).find("a", class_="markdown-twin"):
            assert page.with_name(page.name.removesuffix(".html") + ".md").is_file()
    for door in ("start", "guides", "reference", "how", "gallery"):
        assert f"({door}/index.md)" in listed
