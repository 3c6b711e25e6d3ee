"""Figures, the report (also in a browser, where one is installed), the bounds, the experiments, the command line."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pandas")
pytest.importorskip("matplotlib")
pytest.importorskip("plotly")

from saddlesvm.cli import compare as command
from saddlesvm.data import DataError, load_bundled
from saddlesvm.lab import bounds, charts, figures, pictures, sources
from saddlesvm.lab.charts import Chart, Grid, Series
from saddlesvm.lab.comparison import compare
from saddlesvm.lab.dataset import make_dataset
from saddlesvm.lab.plotly_spec import specification
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
    for draw in (figures.suboptimality, figures.gap, figures.primal_dual, figures.test_error, figures.accuracy):
        for against in ("epochs", "rows", "seconds"):
            assert draw(trace, against).get_lines()
    assert figures.active_rows(trace).get_lines()
    assert figures.change_of_w(trace).get_title()
    for quantity in ("test_error", "train_error", "seconds"):
        assert figures.against_C(trace, quantity).get_lines()
    ax = charts.new_axes()
    assert figures.gap(trace, ax=ax) is ax
    with pytest.raises(ValueError, match="there is"):
        figures.gap(trace, "minutes")
    with pytest.raises(ValueError, match="against C"):
        figures.against_C(trace, "gap")


def test_pictures_of_a_classifier():
    table = load_bundled("toy")
    data = make_dataset(table.X[::8], table.y[::8])
    coef = np.array([1.0, 1.0])
    taken = np.where(data.X @ coef > 0, 1.0, -1.0)
    wrong = int((taken != data.y).sum())
    assert str(wrong) in pictures.confusion_grid(data.y, taken, (-1.0, 1.0)).caption
    assert figures.confusion(data.y, taken, (-1.0, 1.0)).texts
    assert figures.decision(data.X, data.y, coef, 0.0).get_lines()
    assert figures.margins(data.X, data.y, coef, 0.0).patches
    problem = data.problem(Hinge(), 1.0, "regularized")
    early, late = pictures.shrinking_charts(problem, (1, 4))
    small = [sum((series.size == pictures.SMALL).sum() for series in one.series[:2]) for one in (early, late)]
    assert small[0] == 0
    assert small[1] > 0
    assert figures.shrinking(problem, 2.0).collections
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
    report.section("One & two", Prose("<b>"), Table(["<c>"], [["<d>"], ["1.5"]], "<e>"), grid)
    report.section("Three", Picture("p", "c", lambda: charts.new_axes()))
    text = report.html()
    for raw in ("<b>", "<c>", "<d>", "<e>", "<it>"):
        assert raw not in re.sub(r"<figcaption>.*?</figcaption>|<script>.*?</script>", "", text, flags=re.S)
    assert r'"<\/script>"' in text
    assert '<td class="number">1.5</td>' in text
    assert [path.name for path in report.save_figures(tmp_path, ("png",))] == ["one-two-g.png", "three-p.png"]


def test_the_report_works_in_a_browser(report):
    webdriver = pytest.importorskip("selenium.webdriver")
    with browser(webdriver) as driver:
        driver.get(report.as_uri())
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
        driver.set_script_timeout(10)
        driver.execute_async_script("setTimeout(arguments[0], 900)")
        assert any(driver.execute_script(state))
        assert driver.execute_script(lines) < before
        assert driver.get_log("browser") == []


class browser:
    """A headless Chromium without a network; skips the test where it is not installed."""

    def __init__(self, webdriver):
        import shutil

        binary, service = shutil.which("chromium"), shutil.which("chromedriver")
        if binary is None or service is None:
            pytest.skip("chromium and chromium-driver are not installed")
        self.webdriver, self.binary, self.service = webdriver, binary, service

    def __enter__(self):
        options = self.webdriver.ChromeOptions()
        options.binary_location = self.binary
        switches = (
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--window-size=1200,900",
        )
        for switch in (*switches, "--host-resolver-rules=MAP * ~NOTFOUND"):
            options.add_argument(switch)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = self.webdriver.Chrome(options=options, service=self.webdriver.ChromeService(self.service))
        return self.driver

    def __exit__(self, *error):
        self.driver.quit()


def test_bounds_follow_their_formulas():
    R, lam, T, delta = 2.0, 0.01, 1000.0, 0.1
    assert bounds.gradient_constant(R, lam) == 16.0
    assert bounds.gradient_constant(R, lam, projection=True) == pytest.approx(2.1**2)
    assert bounds.rate(lam, T) == pytest.approx(np.log(1000.0) / 10.0)
    average = bounds.average_iterate_bound(R, lam, T, delta)
    assert average == pytest.approx(21 * 16 * np.log(1e4) / 10.0)
    assert bounds.random_iterate_bound(R, lam, T, delta) == pytest.approx(2 * average)
    assert bounds.deterministic_regret_bound(R, lam, T) < average


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.5, 0.1, 10, 0.1), "R >= 1"),
        ((1, 0.3, 10, 0.1), "1/4"),
        ((1, 0.1, 2, 0.1), "T must"),
        ((1, 0.1, 10, 1.0), "delta"),
    ],
)
def test_bounds_name_the_condition_that_is_not_met(arguments, message):
    with pytest.raises(ValueError, match=message):
        bounds.average_regret_bound(*arguments)


def test_bounds_hold_on_data():
    from saddlesvm.fit.limits import Limits
    from saddlesvm.fit.loop import fit
    from saddlesvm.lab.runs import hinge_objective, iterates
    from saddlesvm.solvers import DCD, Pegasos

    table = load_bundled("toy")
    data, lam = make_dataset(table.X[::8], table.y[::8]), 0.1
    problem = data.problem(Hinge(), lam=lam)
    R = float(np.sqrt(problem.norms.max()))
    bound = fit(problem, DCD(), Limits(tol=1e-6)).certificate.dual
    solver = Pegasos(sampling="replacement", output="average")
    for state, point in iterates(problem, solver, [0.2, 1.0, 8.0]):
        above = hinge_objective(data, lam, point.w) - bound
        assert above <= bounds.average_iterate_bound(R, lam, state.iteration, 0.05)


def make_files(folder: Path) -> Path:
    """A data folder in the published layout, with made-up values."""
    random = np.random.default_rng(0)
    names = np.array(["eosinophil", "lymphocyte", "monocyte", "neutrophil"])
    n = 4000
    label = random.permutation(np.arange(n) % 4)
    images = random.integers(0, 256, (n, 8, 8), dtype=np.uint8)
    images[label == 1, 2:4, 2:4] //= 3
    np.savez(
        folder / "blood-cells.npz", images=images, label=label.astype(np.uint8), label_names=names,
        split=(np.arange(n) // 4 % 5 == 0).astype(np.uint8), source=(np.arange(n) // 16).astype(np.int16),
    )  # fmt: skip
    for name in ("mnist", "fashion-mnist"):
        (folder / name).mkdir()
        for part, rows in (("train", 8000), ("t10k", 300)):
            pixels = random.integers(0, 40, (rows, 28, 28), dtype=np.uint8)
            y = random.permutation(np.arange(rows) % 10).astype(np.uint8)
            for digit in range(10):
                pixels[y == digit, 2 * digit : 2 * digit + 6, 4:20] += 150
            write_idx(folder / name / f"{part}-images-idx3-ubyte.gz", pixels)
            write_idx(folder / name / f"{part}-labels-idx1-ubyte.gz", y)
    return folder


def write_idx(path: Path, values: np.ndarray) -> None:
    import gzip

    head = bytes([0, 0, 8, values.ndim]) + b"".join(size.to_bytes(4, "big") for size in values.shape)
    path.write_bytes(gzip.compress(head + values.tobytes(), 1))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_files(tmp_path_factory.mktemp("data"))


@pytest.mark.parametrize("name", ["blood-cells", "vlfeat-sdca", "pegasos-fashion", "dcd-tables", "pegasos-bound"])
def test_experiments_run_quickly(name, folder, tmp_path):
    from saddlesvm.lab import reproduce

    path = tmp_path / "report.html"
    found = reproduce(name, folder, path, quick=True)[name]
    assert found.verdict[0].startswith("Quick run")
    assert len(found.verdict) > 1
    assert path.stat().st_size > 1_000_000
    kinds = {type(item) for section in found.sections for item in section.items}
    assert {Table, Chart} <= kinds


def test_unknown_experiments_and_missing_data_are_refused(tmp_path, monkeypatch):
    from saddlesvm.lab import reproduce

    with pytest.raises(ValueError, match="no experiment"):
        reproduce("pegasus")
    with pytest.raises(DataError, match=r"blood-cells\.npz"):
        reproduce("blood-cells", tmp_path, quick=True)
    with pytest.raises(DataError, match="train-images"):
        sources.images("mnist", "train", tmp_path)

    def offline(*arguments, **options):
        raise OSError("no network")

    monkeypatch.setenv("SADDLESVM_CACHE", str(tmp_path))
    monkeypatch.setattr("sklearn.datasets.fetch_openml", offline)
    with pytest.raises(DataError, match="OpenML cannot be reached"):
        sources.images("mnist", "train", None)


@pytest.mark.usefixtures("keyboard")
def test_an_interrupted_experiment_reports_what_is_done(tmp_path, monkeypatch):
    import signal

    from saddlesvm.lab import reproduce
    from saddlesvm.lab.experiments.pegasos_bound import PegasosBound

    monkeypatch.setattr(PegasosBound, "walk", lambda self, n: signal.raise_signal(signal.SIGINT))
    found = reproduce("pegasos-bound", report=tmp_path / "report.html", quick=True)
    assert found["pegasos-bound"].verdict[0].startswith("Interrupted before")
    assert "Interrupted" in (tmp_path / "report.html").read_text()


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser.add_subparsers(required=True))
    return parser.parse_args(words)


def test_command_compares(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["saddlesvm", "compare", "toy"])
    path, trace = tmp_path / "report.html", tmp_path / "trace.csv"
    words = ("--solvers", "dcd,sdca:start=sgd", "--max-time", "0.2", "--tol", "1e-2", "--with", "sklearn")
    code = command.run(parsed("compare", "toy", *words, "--report", str(path), "--trace", str(trace), "--quiet"))
    assert code == 0
    said = capsys.readouterr().out
    assert "came within 1e-2 of the optimum first" in said
    assert "saddlesvm compare toy" in path.read_text()
    assert trace.exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("compare", "nowhere.csv", "--report", "r.html"), "no such file"),
        (("compare", "toy", "--report", "r.html", "--solvers", "magic"), "unknown solver"),
        (("compare", "toy", "--report", "r.html", "--with", "magic"), "unknown peer"),
        (("compare", "toy", "--report", "r.html", "--image", "a"), "28x28"),
        (("reproduce", "blood-cells", "--data", "nowhere"), "blood-cells.npz"),
    ],
)
def test_command_refuses_in_one_line(words, message, capsys):
    assert command.run(parsed(*words)) == command.USAGE_ERROR
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_command_reproduces(tmp_path, capsys):
    path = tmp_path / "report.html"
    assert command.run(parsed("reproduce", "pegasos-bound", "--quick", "--quiet", "--report", str(path))) == 0
    assert "pegasos-bound:" in capsys.readouterr().out
    assert path.exists()


def test_the_commands_load_nothing_heavy():
    code = (
        "import sys, argparse; from saddlesvm.cli import compare as command;"
        "command.add_arguments(argparse.ArgumentParser().add_subparsers());"
        "print([name for name in ('matplotlib', 'plotly', 'saddlesvm.lab.comparison') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
