"""No name can leave its place in a report: checked with a parser, and by what a browser does with it."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from saddlesvm.lab.charts import Chart, Picture, Series
from saddlesvm.lab.figures import confusion_grid
from saddlesvm.lab.report import Prose, Report, TextTable, embed_json
from support.browsing import browser

NAMES = (
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "--><img src=x onerror=alert(1)>",
    "]]>&lt;script&gt;",
    '" onmouseover="alert(1)',
    "<a href='javascript:alert(1)'>x</a>",
    "${title} $style $$",
    "\u2028\u2029\u202e\x1b[31m\x00",
    "$\\frac{1",
    "\\u003c/script>",
)


class Outline(HTMLParser):
    """The elements of a page, their attributes, and what stands in its scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.scripts: list[str] = []
        self.inside = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(sorted(name for name, _ in attrs))))
        self.inside = tag == "script"
        if self.inside:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.scripts[-1] += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data[:40]!r}")


def report_of(name: str) -> Report:
    """A report in which every text is `name`."""
    report = Report(name, [name], data=[(name, name)], command=name)
    line = Series(name, np.array([1.0, 2.0]), np.array([1.0, 3.0]))
    chart = Chart(name, name, name, (line,), levels={2.0: name}, caption=name)
    classes = np.array([name, "b"])
    grid = confusion_grid(classes, classes, classes, name)
    report.section(name, Prose(name), TextTable([name], [[name]], name), chart, grid, Picture(name, name, chart.draw))
    return report


@pytest.fixture(scope="module")
def plain() -> Outline:
    return Outline(report_of("a name").html())


@pytest.mark.parametrize("name", NAMES)
def test_a_name_adds_no_element_to_a_report(plain: Outline, name: str) -> None:
    page = report_of(name).html()
    found = Outline(page)
    assert found.elements == plain.elements
    assert found.scripts == plain.scripts
    assert not set(name) & set("\x00\x1b\u202e") & set(page)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_embedded_says_the_same(name: str) -> None:
    text = embed_json({"name": [name]})
    assert json.loads(text) == {"name": [name]}
    assert text.isascii() and not set(text) & set("<>&")


def test_names_do_nothing_in_a_browser(tmp_path: Path) -> None:
    webdriver = pytest.importorskip("selenium.webdriver")
    with browser(webdriver) as driver:
        for k, name in enumerate(NAMES[:6]):
            path = report_of(name).write(tmp_path / f"{k}.html")
            driver.get(path.as_uri())
            assert driver.execute_script("return document.querySelectorAll('.chart svg').length") == 3
            links = "return document.querySelectorAll('a[href^=javascript], img, [onmouseover]').length"
            assert driver.execute_script(links) == 0
            assert driver.title.strip() == " ".join(name.split())
            assert name.split("\n")[0][:5] in driver.find_element("css selector", "main").text
            assert [line for line in driver.get_log("browser") if line["level"] == "SEVERE"] == []
