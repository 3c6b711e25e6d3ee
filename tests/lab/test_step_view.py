"""The step view: what is recorded is what the solvers do, and the page plays it."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

from saddlesvm.data import load_bundled
from saddlesvm.lab import watch
from saddlesvm.problem.losses import Hinge
from support.browsing import browser

ROWS, EPOCHS = 25, 4.0


@pytest.fixture(scope="module")
def toy():
    table = load_bundled("toy")
    return table.X, table.y


def recorded(toy, solver, **options):
    return watch(*toy, solver=solver, against=None, rows=ROWS, epochs=EPOCHS, **options).scene


@pytest.mark.parametrize("sampling", ["permutation", "replacement", "subset"])
@pytest.mark.parametrize("batch", [1, 3])
def test_pegasos_is_shown_with_the_rows_it_draws(toy, sampling, batch):
    """From one frame to the next its step is taken on the rows that the frame names."""
    scene = recorded(toy, f"pegasos:sampling={sampling},batch_size={batch}", intercept=False)
    X, y, w = np.array(scene["X"]), np.array(scene["y"]), np.zeros(2)
    for t, frame in enumerate(scene["runs"][0]["frames"][1:], start=1):
        violated = [i for i in frame["rows"] if y[i] * (X[i] @ w) < 1.0]
        assert len(frame["rows"]) == batch
        w = (1.0 - 1.0 / t) * w + sum((y[i] * X[i] for i in violated), np.zeros(2)) / (scene["lam"] * t * batch)
        np.testing.assert_allclose(frame["w"][:2], w, atol=2e-3 * np.abs(w).max() + 1e-3)  # the page's digits
        w = np.array(frame["w"][:2])


@pytest.mark.parametrize("solver", ["sdca", "sdca:sampling=replacement", "dcd", "dcd:shrinking=false"])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_dual_visit_moves_its_row_and_its_plane_touches(toy, solver, intercept):
    scene = recorded(toy, solver, intercept=intercept)
    loss, aside, b = Hinge(), set(), np.zeros(ROWS)
    frames = scene["runs"][0]["frames"]
    for before, frame in itertools.pairwise(frames):
        (row,) = frame["rows"]
        assert set(frame["b"][::2]) <= {row}
        assert frame["touched"] == before["touched"] + 1
        assert frame["dual"] >= before["dual"] - 1e-6
        aside = set(frame.get("aside", aside))
        if row not in aside:
            margin, slope, height = frame["plane"][3:]
            assert height - slope * margin == pytest.approx(loss.value(margin, 1.0), abs=1e-3)
        b[frame["b"][::2]] = frame["b"][1::2]
        assert frame["plane"][1] == pytest.approx(b[row] if not frame["b"] else frame["plane"][1])
    assert frames[-1]["primal"] - scene["lowest"] <= frames[-1]["primal"] - frames[-1]["dual"] + 1e-6
    if solver == "dcd":
        assert any("aside" in frame for frame in frames)


def test_newton_is_shown_a_step_at_a_time(toy):
    frames = recorded(toy, "newton")["runs"][0]["frames"]
    assert len(frames) > 3
    assert all(frame["rows"] == [] for frame in frames)
    assert frames[-1]["primal"] - frames[-1]["dual"] < frames[0]["primal"] - frames[0]["dual"]


def test_many_features_are_projected_and_seconds_follow_rows():
    table = load_bundled("banknote")
    seen = watch(
        table.X, table.y, solver="sdca", against="pegasos:projection=true", rows=ROWS, epochs=2.0, name="notes"
    )
    assert "two principal components" in seen.scene["words"]
    assert seen.scene["ball"] == pytest.approx(0.05**-0.5)
    for run in seen.scene["runs"]:
        rates = [frame["seconds"] / frame["touched"] for frame in run["frames"][1:]]
        np.testing.assert_allclose(rates, rates[-1], rtol=2e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solver": "auto"}, "cannot show auto"),
        ({"rows": 1}, "rows must be at least 2"),
        ({"loss": "squared"}, "use LinearSVR"),
        ({"C": 1.0, "lam": 1.0}, "give either C or lam"),
        ({"solver": "kernel-pegasos"}, "cannot show kernel-pegasos"),
    ],
)
def test_what_cannot_be_shown_is_refused(toy, options, message):
    with pytest.raises(ValueError, match=message):
        watch(*toy, **options)
    with pytest.raises(ValueError, match="two features"):
        watch(toy[0][:, :1], toy[1])


def test_the_page_plays_in_a_browser(toy, tmp_path):
    """Step, slider, keys and play move both runs on one clock; nothing overflows a phone; nothing is complained of."""
    webdriver = pytest.importorskip("selenium.webdriver")
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    seen = watch(*toy, solver="pegasos", against="dcd", rows=20, epochs=3.0, name="toy")
    path = seen.report(tmp_path / "watch.html")
    with browser(webdriver) as driver:
        driver.get(path.as_uri())

        def step():
            return int(driver.execute_script("return document.body.dataset.step"))

        def press(*keys):
            webdriver.ActionChains(driver).send_keys(*keys).perform()

        def telling():
            return driver.find_element("id", "told1").text

        assert step() == 0 and "At the start" in telling()
        driver.find_element("id", "forward").click()
        drawn = seen.scene["runs"][1]["frames"][1]["rows"][0] + 1
        assert step() == 1 and f"Row {drawn}" in telling()
        driver.execute_script("document.activeElement.blur()")
        press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_LEFT)
        assert step() == 2
        webdriver.ActionChains(driver).key_down(Keys.SHIFT).send_keys(Keys.ARROW_RIGHT).key_up(Keys.SHIFT).perform()
        assert step() == 12
        slide = "const s = document.getElementById('slider'); s.value = 33; s.dispatchEvent(new Event('input'));"
        driver.execute_script(slide)
        assert step() == 33
        press(" ")
        WebDriverWait(driver, 10).until(lambda _: step() > 34)
        press(" ")
        assert driver.find_element("id", "play").text == "Play"
        press(Keys.END)
        last = int(driver.execute_script("return document.getElementById('slider').max"))
        assert step() == last
        choose = (
            "const c = document.getElementById('clock'); c.value = 'seconds'; c.dispatchEvent(new Event('change'));"
        )
        driver.execute_script(choose)
        assert driver.find_element("id", "now").text.endswith(" s")
        press(Keys.HOME)
        assert step() == 0
        phone = {"width": 375, "height": 800, "deviceScaleFactor": 1, "mobile": True}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
        assert driver.execute_script("return document.documentElement.scrollWidth") <= 375
        assert driver.get_log("browser") == []


def test_the_page_holds_its_data_as_json(toy):
    seen = watch(*toy, solver="sdca", against=None, rows=10, epochs=1.0, name="</script>")
    page = seen.html()
    scene = page.split('id="scene">')[1].split("</script>")[0]
    assert json.loads(scene)["X"] == seen.scene["X"]
    assert "&lt;/script&gt;" in page


@pytest.mark.parametrize("epochs", [0.0, -1.0, 1e9, float("inf"), float("nan")])
def test_a_page_has_a_limit_of_passes(toy, epochs):
    with pytest.raises(ValueError, match="above 0, and at most 100"):
        watch(*toy, solver="dcd", epochs=epochs)
