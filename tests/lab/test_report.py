"""Figures and the report, also in a browser, where one is installed."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from support.browsing import browser

pytest.importorskip("pandas")
pytest.importorskip("matplotlib")

from saddlesvm import LinearSVC
from saddlesvm.data import load_bundled
from saddlesvm.lab import charts, figures
from saddlesvm.lab.charts import Chart, Picture, Series
from saddlesvm.lab.comparison import compare
from saddlesvm.lab.dataset import make_dataset
from saddlesvm.lab.report import Prose, Report, TextTable
from saddlesvm.problem.losses import Hinge


@pytest.fixture(scope="module")
def comparison():
    table = load_bundled("toy")
    X, y = table.X[::8], table.y[::8]
    return compare(X, y, solvers="dcd,sdca", C=[0.1, 1.0], repeats=2, budget=0.2, tol=1e-3, test=(X, y), name="<toy>")


@pytest.fixture(scope="module")
def report(comparison, tmp_path_factory):
    return comparison.report(tmp_path_factory.mktemp("report") / "toy.html")


def test_every_figure_is_drawn_singly(comparison):
    trace = comparison.trace
    for against in ("epochs", "seconds"):
        for quantity in ("suboptimality", "gap", "test_error", "train_error"):
            assert figures.curve_chart(trace, quantity, against).draw().get_lines()
        assert figures.closing_chart(trace, against).draw().get_lines()
    assert figures.curve_chart(trace, "active").draw().get_lines()
    assert figures.curve_chart(trace, "change").draw().get_title()
    for quantity in ("test_error", "train_error"):
        assert figures.curve_chart(trace, quantity, "seconds").draw().get_lines()
    ax = charts.new_axes()
    assert figures.curve_chart(trace, "gap").draw(ax) is ax
    with pytest.raises(ValueError, match="charts show"):
        figures.curve_chart(trace, "gap", "minutes")


def test_the_gap_of_a_fit_is_drawn_at_every_certificate():
    table = load_bundled("toy")
    trace = LinearSVC(loss="hinge", solver="dcd", random_state=0).fit(table.X, table.y).trace_
    (line,) = figures.gap_chart(trace).draw().get_lines()
    np.testing.assert_allclose(line.get_ydata(), trace.column("relative_gap"))


def test_pictures_of_a_classifier():
    table = load_bundled("toy")
    data = make_dataset(table.X[::8], table.y[::8])
    coef = np.array([1.0, 1.0])
    taken = np.where(data.X @ coef > 0, 1.0, -1.0)
    wrong = int((taken != data.y).sum())
    confusion = figures.confusion_grid(data.y, taken, (-1.0, 1.0))
    assert str(wrong) in confusion.caption
    assert len(confusion.draw().texts) == 4
    assert figures.plane_chart(data.X, data.y, lambda places: places @ coef).draw().get_lines()
    assert figures.margins_chart(data.X @ coef, data.y).draw().collections
    problem = data.problem(Hinge(), 1.0, "regularized")
    early, late = figures.shrinking_charts(problem, (1, 4))
    small = [sum((series.size == figures.SMALL).sum() for series in one.series[:2]) for one in (early, late)]
    assert small[0] == 0
    assert small[1] > 0
    assert early.draw().collections
    images = np.random.default_rng(0).random((6, 9))
    ax = figures.misclassified(images, np.arange(6) % 2, np.zeros(6, int), (3, 3), np.arange(6.0), most=2)
    assert len(ax.images) == 2


def test_figures_are_written_in_both_formats(tmp_path):
    x = np.array([1.0, 2.0])
    report = Report("title", [])
    report.section("Curves", Chart("one", "x", "y", (Series("a", x, x),)), Chart("two", "x", "y", (Series("a", x, x),)))
    paths = report.save_figures(tmp_path)
    assert sorted(path.name for path in paths) == [
        "curves-one.png", "curves-one.svg", "curves-two.png", "curves-two.svg"
    ]  # fmt: skip
    assert all(path.stat().st_size > 1000 for path in paths)


def test_a_chart_has_a_legend_and_logarithmic_axes():
    x = np.array([1.0, 2.0])
    lines = (Series("a", x, x, x - 0.5, x + 0.5), Series("b", x, np.array([np.nan, 3.0]), style=1, follows="a"))
    ax = Chart("t", "x", "y", lines, y_log=True, levels={1.0: "one"}).draw()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a"]
    assert ax.get_yscale() == "log"


def test_the_report_is_whole_and_asks_for_nothing(report):
    text = report.read_text()
    assert "&lt;toy&gt;" in text
    assert "<toy>" not in text
    assert "<script" not in text
    assert not re.search(r'(src|href)="(?!#|data:)', text)
    for word in ("What was found", "came within 1e-3 of the optimum first", "Machine and versions", "numpy", "Command"):
        assert word in text
    assert text.count('class="chart"') == text.count("<svg") > 10


def test_figures_take_the_ink_of_the_page_and_share_no_identifier(report):
    """So that they can be read on light and on dark paper, and none refers to another."""
    text = report.read_text()
    identifiers = re.findall(r' id="([^"]*)"', text)
    assert len(identifiers) == len(set(identifiers))
    for drawn in re.findall(r"<svg.*?</svg>", text, flags=re.S):
        ElementTree.fromstring(drawn)
        own = set(re.findall(r' id="([^"]*)"', drawn))
        assert set(re.findall(r'(?:url\(|href=")#([^)"]*)', drawn)) <= own
        inked = len(re.findall(r"<text[^>]*currentColor", drawn)) + len(re.findall(r"<g[^>]*currentColor", drawn))
        assert inked > 3
        if "data:image" not in drawn:  # squares have words of their own, black and white
            assert inked == drawn.count("<text")


def test_report_items_are_escaped(tmp_path):
    report = Report("a & b", ["x < y"], command="run '<it>'")
    names = np.array(["</script>", "b"])
    grid = figures.confusion_grid(names[[0, 1, 1]], names[[0, 0, 1]], names, "g")
    report.section("One & two", Prose("<b>"), TextTable(["<c>"], [["<d>"], ["1.5"], ["-3.1 to 1e-05"]], "<e>"), grid)
    report.section("Three", Picture("p", "c", lambda: charts.new_axes()))
    text = report.html()
    for raw in ("<b>", "<c>", "<d>", "<e>", "<it>"):
        assert raw not in re.sub(r"<figcaption>.*?</figcaption>", "", text, flags=re.S)
    assert "&lt;/script&gt;" in text and "</script>" not in text
    assert '<td class="number">1.5</td>' in text
    assert '<td class="number">-3.1 to 1e-05</td>' in text
    assert [path.name for path in report.save_figures(tmp_path, ("png",))] == ["one-two-g.png", "three-p.png"]


def test_the_report_is_seen_in_a_browser(report):
    webdriver = pytest.importorskip("selenium.webdriver")
    with browser(webdriver) as driver:
        driver.get(report.as_uri())
        heights = (
            "return Array.from(document.querySelectorAll('.chart svg'), one => one.offsetHeight || one.clientHeight)"
        )
        assert min(driver.execute_script(heights)) > 100
        assert driver.get_log("browser") == []


def test_exported_figures_carry_their_caption_and_their_data(tmp_path):
    report = Report("A report", [], data=[("data", "some flowers")])
    chart = Chart("A line", "x", "y", (Series("one", np.arange(1.0, 4.0), np.arange(3.0)),), caption="It rises.")
    report.section("Lines", chart)
    (path,) = report.save_figures(tmp_path, ("svg",))
    assert path.read_text().count("some flowers") >= 1 and "It rises." in path.read_text()


@pytest.mark.parametrize(
    ("last", "labels"),
    [
        (8.0, {"1", "2", "5"}),
        (300.0, {"1", "10", "100"}),
        (20_000.0, {"1", "10", "100", "1,000", "10,000"}),
    ],
)
def test_a_logarithmic_axis_of_epochs_has_plain_numbers_only(last, labels):
    x = np.geomspace(1.0, last, 9)
    ax = Chart("t", "epochs", "y", (Series("a", x, x),), x_log=True).draw()
    ax.figure.canvas.draw()
    low, high = ax.get_xlim()
    texts = [*ax.xaxis.get_majorticklabels(), *ax.xaxis.get_minorticklabels()]
    shown = {text.get_text() for text in texts if low <= text.get_position()[0] <= high}
    assert shown - {""} == labels


def test_a_logarithmic_axis_of_small_numbers_has_powers_of_ten():
    y = np.geomspace(1e-9, 1.0, 9)
    ax = Chart("t", "x", "gap", (Series("a", y, y),), y_log=True).draw()
    ax.figure.canvas.draw()
    shown = {text.get_text() for text in ax.yaxis.get_majorticklabels()}
    assert shown and all("10^{" in text for text in shown)
