"""Every page of the built site in a browser, wide and narrow, light and dark: it fits, and its formulas are set.

A browser without a network opens the pages from $SITE. Code fits its column where a page is wide; on a phone it scrolls
in its own box, as wide formulas and tables do.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_site import PAGES, SEARCHES, SITE, where

from support.browsing import browser

WIDE, NARROW, HEIGHT = 1400, 390, 900
CHECK = """
const [wide, theme] = arguments, faults = [];
const root = document.documentElement, page = root.clientWidth, article = document.querySelector("article");
root.dataset.theme = theme;
const begin = (node) => node.textContent.trim().slice(0, 60);
if (root.scrollWidth > page) faults.push(`the page is ${root.scrollWidth} px wide`);
for (const node of article ? article.querySelectorAll("pre, table, img, svg, iframe, mjx-container") : []) {
  if (!node.checkVisibility() || node.parentElement.closest("mjx-container")) continue;
  const inside = (box) => box.getBoundingClientRect().right <= page + 1;
  let fits = inside(node);  // or it is in a box that fits, and scrolls on its own
  for (let box = node; box !== article && !fits; box = box.parentElement)
    fits = getComputedStyle(box).overflowX !== "visible" && inside(box);
  if (!fits) faults.push(`${node.tagName} beyond the edge: ${begin(node)}`);
  const whole = wide && (node.tagName === "PRE" || node.getAttribute("display") === "true");
  if (whole && node.scrollWidth > node.clientWidth + 1 && node.clientWidth)
    faults.push(`${node.tagName} needs ${node.scrollWidth} px of ${node.clientWidth}: ${begin(node)}`);
}
for (const node of document.querySelectorAll(".math"))
  if (!node.querySelector("mjx-container") || node.querySelector("mjx-merror, [data-mjx-error]"))
    faults.push(`not set: ${begin(node)}`);
for (const node of document.querySelectorAll(`.only-${theme === "dark" ? "light" : "dark"}`))
  if (node.checkVisibility()) faults.push(`shown in ${theme}: ${node.outerHTML.slice(0, 80)}`);
return faults;
"""
SETTLED = """
const done = arguments[arguments.length - 1];
const set = document.querySelector(".math") ? MathJax.startup.promise : Promise.resolve();
set.then(() => document.fonts.ready).then(() => done(true));
"""
REQUESTS = "return performance.getEntriesByType('resource').map((one) => one.name);"


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    with browser(pytest.importorskip("selenium.webdriver")) as one:
        yield one


def resized(driver: Any, width: int) -> None:
    metrics = {
        "width": width,
        "height": HEIGHT,
        "deviceScaleFactor": 1,
        "mobile": False,
    }
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


@pytest.mark.skipif(not PAGES, reason="$SITE names no built site")
@pytest.mark.parametrize("page", PAGES, ids=where)
def test_a_page_fits_its_window(page: Path, driver: Any) -> None:
    resized(driver, WIDE)
    driver.get(page.resolve().as_uri())
    driver.execute_async_script(SETTLED)
    faults = []
    for width in (WIDE, NARROW):
        resized(driver, width)
        for theme in ("light", "dark"):
            faults += [
                f"{width} px, {theme}: {one}"
                for one in driver.execute_script(CHECK, width == WIDE, theme)
            ]
    assert not faults, "\n".join(dict.fromkeys(faults))
    home = SITE.resolve().as_uri()
    elsewhere = [
        one
        for one in driver.execute_script(REQUESTS)
        if not one.startswith((home, "data:", "blob:"))
    ]
    assert not elsewhere, f"requests leave the site: {elsewhere}"
    errors = [
        one["message"]
        for one in driver.get_log("browser")
        if one["level"] == "SEVERE" and "invalid theme mode" not in one["message"]
    ]
    assert not errors, "\n".join(errors)


RESULTS = """
const done = arguments[arguments.length - 1];
const look = () => {
  const links = [...document.querySelectorAll("#search-results li a")];
  const summary = document.querySelector(".search-summary");
  if (summary && /found|did not match/.test(summary.textContent)) done(links.map((one) => one.href));
  else setTimeout(look, 100);
};
look();
"""


@pytest.mark.skipif(not PAGES, reason="$SITE names no built site")
@pytest.mark.parametrize("words", SEARCHES)
def test_the_search_finds_what_newcomers_type(words: str, driver: Any) -> None:
    resized(driver, WIDE)
    driver.get(f"{(SITE / 'search.html').resolve().as_uri()}?q={words}")
    found = [
        one.partition("?")[0].partition("#")[0]
        for one in driver.execute_async_script(RESULTS)
    ]
    assert (SITE / SEARCHES[words]).resolve().as_uri() in found[:10], found[:10]
