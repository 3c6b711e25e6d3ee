"""The built site (its folder is $SITE): links inside it lead somewhere, pictures have a text, headings nest."""

from __future__ import annotations

import os
import sys
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest
from bs4 import BeautifulSoup
from pages import DOCS
from test_reference import LISTED, found

sys.path.insert(0, str(DOCS / "_ext"))
from public_members import is_public

SITE = Path(os.environ.get("SITE", ""))
PAGES = (
    sorted(set(SITE.rglob("*.html")) - set(SITE.glob("_static/**/*")))
    if os.environ.get("SITE")
    else []
)
THUMBNAIL = "sphx-glr-thumbcontainer"  # beside a link that says the same

# What a newcomer asks, and the page that answers: at most two clicks from the front page.
QUESTIONS = {
    "How do I install it?": "start/install.html",
    "How do I get from a CSV file to a model?": "start/first-model.html",
    "What is scikit-learn's parameter called here?": "reference/moving.html",
    "Is a model that hit the time limit any good?": "start/questions.html#time-limit",
    "Which loss do I take?": "start/questions.html#which-loss",
    "Which C?": "guides/choose-c.html",
    "My classes are imbalanced": "start/questions.html#imbalance",
    "How do I get probabilities?": "guides/probabilities.html",
    "I have text": "start/questions.html#text",
    "I have embeddings in Parquet": "start/questions.html#embeddings",
    "My data take 40 GB": "start/questions.html#too-large",
    "How fast is it beside scikit-learn?": "start/questions.html#speed",
    "What does a certified 1e-3 mean?": "start/questions.html#what-a-gap-means",
    "How do I serve a model without saddlesvm?": "start/questions.html#deploy",
    "How do I contribute a loss?": "start/questions.html#contribute-a-loss",
    "How is the certificate to be understood?": "how/certificate.html",
}
# What they type into the search, and a page that must be among the first results.
SEARCHES = {
    "float16": "start/questions.html",
    "deploy": "start/questions.html",
    "GPU": "how/speed.html",
    "speed": "how/speed.html",
    "embeddings": "start/questions.html",
    "probabilities": "guides/probabilities.html",
}
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
        assert (
            not place or target.suffix != ".html" or unquote(place) in anchors(target)
        ), f"no {link['href']}"


@pytest.mark.parametrize("page", PAGES, ids=where)
def test_pages_can_be_read_aloud(page: Path) -> None:
    html = soup(page).html
    assert html is not None
    assert html["lang"]
    article = soup(page).find("article")
    if article is None:
        return
    pictures = [
        picture
        for picture in article.find_all("img")
        if picture.find_parent(class_=THUMBNAIL) is None
    ]
    assert all(picture.get("alt", "").strip() for picture in pictures), (
        "a picture without a text"
    )
    levels = [
        int(heading.name[1])
        for heading in article.find_all(["h1", "h2", "h3", "h4", "h5", "h6"])
    ]
    assert levels.count(1) <= 1
    assert all(below - above <= 1 for above, below in pairwise(levels)), (
        f"headings jump: {levels}"
    )


def test_every_page_has_its_twin_and_is_listed() -> None:
    listed = (SITE / "llms.txt").read_text(encoding="utf-8")
    for page in PAGES:
        if soup(page).find("a", class_="markdown-twin"):
            assert page.with_name(page.name.removesuffix(".html") + ".md").is_file()
    for door in ("start", "guides", "reference", "how", "gallery"):
        assert f"({door}/index.md)" in listed


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_newcomers_question_is_answered_within_two_clicks(question: str) -> None:
    address, _, place = QUESTIONS[question].partition("#")
    answer, front = SITE / address, SITE / "index.html"
    first = linked(front)
    assert answer in first or any(
        answer in linked(page) for page in first if page.is_file()
    )
    assert not place or place in anchors(answer)


@pytest.mark.parametrize(
    "name", [name for name in LISTED if isinstance(found(name), type)]
)
def test_the_page_of_a_class_shows_its_public_members(name: str) -> None:
    kind = found(name)
    home = [
        base
        for base in kind.__mro__
        if base.__module__.startswith(("saddlesvm", "sklearn"))
    ]
    members = {key: item for base in reversed(home) for key, item in vars(base).items()}
    shown = (property, cached_property)
    expected = {key for key, item in members.items() if is_public(kind, key) and (callable(getattr(kind, key, None))
                or isinstance(item, shown))}  # fmt: skip
    full = f"saddlesvm.{name}"
    there = {
        one.removeprefix(f"{full}.")
        for one in anchors(SITE / "reference" / "api" / f"{full}.html")
    }
    assert expected <= there, sorted(expected - there)


def linked(page: Path) -> set[Path]:
    """The pages of the site that a page links to."""
    addresses = (
        link["href"].partition("#")[0] for link in soup(page).find_all("a", href=True)
    )
    return {
        (page.parent / unquote(one)).resolve()
        for one in addresses
        if one.endswith(".html") and "://" not in one
    }
