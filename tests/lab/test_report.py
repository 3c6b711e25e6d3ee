"""Figures and the report, also in a browser, where one is installed."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from support.browsing import browser

pytest.importorskip("pandas")
pytest.importorskip("matplotlib")
pytest.importorskip("plotly")

from saddlesvm.data import load_bundled
from saddlesvm.lab import charts, figures
from saddlesvm.lab.charts import Chart, Grid, Series, specification
from saddlesvm.lab.comparison import compare
from saddlesvm.lab.dataset import make_dataset
from saddlesvm.lab.report import Picture, Prose, Report, Table
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
    for against in ("epochs", "rows", "seconds"):
        for quantity in ("suboptimality", "gap", "test_error", "accuracy"):
            assert figures.curve_chart(trace, quantity, against).draw().get_lines()
        assert figures.closing_chart(trace, against).draw().get_lines()
    assert figures.curve_chart(trace, "active").draw().get_lines()
    assert figures.curve_chart(trace, "change").draw().get_title()
    for quantity in ("test_error", "train_error", "seconds"):
        assert figures.strength_chart(trace, quantity).draw().get_lines()
    ax = charts.new_axes()
    assert figures.curve_chart(trace, "gap").draw(ax) is ax
    with pytest.raises(ValueError, match="charts show"):
        figures.curve_chart(trace, "gap", "minutes")
    with pytest.raises(ValueError, match="quantity must be one of"):
        figures.strength_chart(trace, "gap")


def test_pictures_of_a_classifier():
    table = load_bundled("toy")
    data = make_dataset(table.X[::8], table.y[::8])
    coef = np.array([1.0, 1.0])
    taken = np.where(data.X @ coef > 0, 1.0, -1.0)
    wrong = int((taken != data.y).sum())
    confusion = figures.confusion_grid(data.y, taken, (-1.0, 1.0))
    assert str(wrong) in confusion.caption
    assert confusion.draw().texts
    assert figures.plane_chart(data.X, data.y, figures.affine(coef, 0.0)).draw().get_lines()
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


def test_a_short_logarithmic_axis_has_round_numbers_at_its_ticks():
    """Over more than two powers of ten, plotly's own ticks are right."""
    x = np.array([1.0, 3.0, 8.0])
    layouts = [
        specification(Chart("", "x", "y", (Series("", x * scale, x),), x_log=True))["layout"] for scale in (1, x)
    ]
    shown = [one for one in layouts[0]["xaxis"]["ticktext"] if 0.5 < float(one) < 20]
    assert shown == ["0.6", "0.8", "1", "2", "3", "4", "5", "6", "8", "10"]
    wide = specification(Chart("", "x", "y", (Series("", 100.0**x, x),), x_log=True))["layout"]["xaxis"]
    middle = layouts[1]["xaxis"]["tickvals"]
    assert "tickvals" not in wide and [one for one in middle if 1.0 <= one <= 100.0] == [1, 2, 5, 10, 20, 50, 100]


def test_figures_are_written_in_both_formats(tmp_path):
    x = np.array([1.0, 2.0])
    report = Report("title", [])
    report.section("Curves", Chart("one", "x", "y", (Series("a", x, x),)), Chart("two", "x", "y", (Series("a", x, x),)))
    paths = report.save_figures(tmp_path)
    assert sorted(path.name for path in paths) == [
        "curves-one.png", "curves-one.svg", "curves-two.png", "curves-two.svg"
    ]  # fmt: skip
    assert all(path.stat().st_size > 1000 for path in paths)


def test_a_chart_is_the_same_for_both_drawings():
    x = np.array([1.0, 2.0])
    lines = (Series("a", x, x, x - 0.5, x + 0.5), Series("b", x, np.array([np.nan, 3.0]), style=1, follows="a"))
    chart = Chart("t", "x", "y", lines, y_log=True, levels={1.0: "one"})
    drawn = specification(chart)
    names = [one["name"] for one in drawn["data"] if one.get("showlegend")]
    assert names == ["a"]
    assert drawn["data"][2]["y"] == [None, 3.0]
    assert drawn["layout"]["yaxis"]["type"] == "log"
    json.dumps(drawn, allow_nan=False)
    ax = chart.draw()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a"]
    assert ax.get_yscale() == "log"


def test_the_report_is_whole_and_asks_for_nothing(report):
    text = report.read_text()
    assert "&lt;toy&gt;" in text
    assert "<toy>" not in text
    page = re.sub(r"<script>.*?</script>", "", text, flags=re.S)
    assert not re.search(r'(src|href)="(?!#|data:)', page)
    for word in ("What was found", "came within 1e-3 of the optimum first", "Machine and versions", "numpy", "Command"):
        assert word in page
    specs = json.loads(re.search(r'<script type="application/json" id="charts">(.*?)</script>', text, re.S)[1])
    assert len(specs) == page.count('id="chart-')
    assert len(specs) > 10


def test_report_items_are_escaped(tmp_path):
    report = Report("a & b", ["x < y"], command="run '<it>'")
    grid = Grid("g", "p", "t", np.array([[1, 0], [2, 3]]), ("</script>", "b"), ("a", "b"))
    report.section("One & two", Prose("<b>"), Table(["<c>"], [["<d>"], ["1.5"], ["-3.1 to 1e-05"]], "<e>"), grid)
    report.section("Three", Picture("p", "c", lambda: charts.new_axes()))
    text = report.html()
    for raw in ("<b>", "<c>", "<d>", "<e>", "<it>"):
        assert raw not in re.sub(r"<figcaption>.*?</figcaption>|<script>.*?</script>", "", text, flags=re.S)
    assert r"\u0026lt;/script\u0026gt;" in text
    assert '<td class="number">1.5</td>' in text
    assert '<td class="number">-3.1 to 1e-05</td>' in text
    assert [path.name for path in report.save_figures(tmp_path, ("png",))] == ["one-two-g.png", "three-p.png"]


def test_the_report_works_in_a_browser(report):
    webdriver = pytest.importorskip("selenium.webdriver")
    with browser(webdriver) as driver:
        driver.get(report.as_uri())
        driver.set_script_timeout(20)
        unpacked = "const done = arguments[0]; (function look() { window.Plotly ? done() : setTimeout(look, 20); })()"
        driver.execute_async_script(unpacked)
        driver.execute_async_script("setTimeout(arguments[0], 0)")  # what is to follow the unpacking
        driver.execute_script("window.dispatchEvent(new Event('beforeprint'));")
        expected = driver.execute_script("return document.querySelectorAll('.chart').length")
        shown = driver.execute_script("return document.querySelectorAll('.chart .main-svg').length")
        assert expected > 10
        assert shown >= expected
        lines = "return document.querySelectorAll('#chart-0 .scatterlayer .trace').length"
        entry = "#chart-0 .legendtoggle"
        before = driver.execute_script(lines)
        state = "return document.getElementById('chart-0').data.map(one => one.visible === 'legendonly')"
        assert not any(driver.execute_script(state))
        press = (
            "for (const kind of ['mousedown', 'mouseup'])"
            f"document.querySelector('{entry}').dispatchEvent(new MouseEvent(kind, {{bubbles: true}}))"
        )
        driver.execute_script(press)
        driver.execute_async_script("setTimeout(arguments[0], 900)")
        assert any(driver.execute_script(state))
        assert driver.execute_script(lines) < before
        titles = (
            "const on = document.getElementById('chart-0').layout; return [on.xaxis.title.text, on.yaxis.title.text]"
        )
        first = driver.execute_script(titles)
        for value in ("seconds of solving", "Duality gap"):
            button = f"""document.querySelector('input[name^="switch-0"][value="{value}"]').click()"""
            driver.execute_script(button)
        second = driver.execute_script(titles)
        assert first[0] == "epochs" and second[0] == "seconds of solving"
        assert first[1].startswith("relative suboptimality") and second[1].startswith("relative gap")
        assert driver.get_log("browser") == []


def test_exported_figures_carry_their_caption_and_their_data(tmp_path):
    report = Report("A report", [], data=[("data", "some flowers")])
    chart = Chart("A line", "x", "y", (Series("one", np.arange(1.0, 4.0), np.arange(3.0)),), caption="It rises.")
    report.section("Lines", chart)
    (path,) = report.save_figures(tmp_path, ("svg",))
    assert path.read_text().count("some flowers") >= 1 and "It rises." in path.read_text()
