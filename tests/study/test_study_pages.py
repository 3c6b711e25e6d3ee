"""The study pages: their functions replay the solvers, their exercises run, their excerpts are the source."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

import study
from saddlesvm.problem.arithmetic import logit_step
from saddlesvm.runtime import randomness

PAGES = Path(__file__).parents[2] / "docs" / "study"
LINES = re.compile(r"<!-- lines of [\w.]+ -->\n.*?<!-- end -->", re.DOTALL)
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
FUNCTIONS = {
    "pegasos": ["pegasos"],
    "kernel-pegasos": ["kernel_pegasos"],
    "sdca": ["sdca"],
    "dcd": ["dcd"],
    "newton": ["newton"],
    "crammer-singer": ["crammer_singer"],
}


def blocks(name):
    """The Python blocks of a page that a reader would run, in order."""
    text = LINES.sub("", (PAGES / f"{name}.md").read_text(encoding="utf-8"))
    return BLOCK.findall(text)


def test_every_algorithm_has_its_page():
    assert sorted(one for several in FUNCTIONS.values() for one in several) == sorted(study.ALGORITHMS)
    assert {path.stem for path in PAGES.glob("*.md")} == {*FUNCTIONS, "README", "errata"}


def run(page):
    """Run the blocks of a page, in order, in one namespace."""
    namespace = {}
    for number, block in enumerate(blocks(page), start=1):
        exec(compile(block, f"{page}.md, block {number}", "exec"), namespace)
    return namespace


@pytest.mark.parametrize("page", ["README", "errata"])
def test_the_pages_without_an_algorithm_run(page):
    run(page)


def test_every_erratum_has_a_counter_example():
    """A table a document, and a block of code that begins below the number of each of its rows."""
    _, *documents = (PAGES / "errata.md").read_text(encoding="utf-8").split("\n## ")
    assert len(documents) == 6
    for document in documents:
        rows = re.findall(r"^\| (\d+) \|", document, re.MULTILINE)
        proven = re.findall(r"\*\*(\d+)\.\*\*", document)
        assert rows == proven, document.splitlines()[0]
        assert len(BLOCK.findall(document)) >= len(rows) - 1


@pytest.mark.parametrize(("page", "algorithms"), FUNCTIONS.items())
def test_a_page_runs_from_top_to_bottom_and_its_functions_replay_the_solvers(page, algorithms):
    namespace = run(page)
    assert len(re.findall("<summary>Solution</summary>", (PAGES / f"{page}.md").read_text(encoding="utf-8"))) >= 2
    for algorithm in algorithms:
        assert study.check(algorithm, namespace[algorithm]).agrees


def test_a_wrong_function_is_found_out(capsys):
    """The stub that the first page begins with agrees nowhere but in b, and the report points at the places."""
    namespace = {}
    exec(compile(blocks("README")[0], "README.md", "exec"), namespace)
    assert "differs from" in capsys.readouterr().out
    found = study.check("pegasos", namespace["my_pegasos"])
    assert not found.agrees
    assert found.differences["one row an iteration: w"] == pytest.approx(1.0)
    assert "look here" in str(found)
    assert study.check("kernel_pegasos", lambda K, y, lam, T, draws: np.zeros(3)).worst == np.inf
    with pytest.raises(ValueError, match="must return alpha, w"):
        study.check("sdca", lambda X, y, lam, epochs, draws, start: 0.0)
    with pytest.raises(ValueError, match="there is no algorithm 'perceptron'"):
        study.check("perceptron", print)


def dcd_of_the_page():
    namespace = {}
    exec(compile(blocks("dcd")[0], "dcd.md", "exec"), namespace)
    return namespace["dcd"]


def test_the_squared_hinge_with_shrinking_is_checked():
    """The page's function passes; one that forgets the loss, or mixes its constants, does not."""
    dcd = dcd_of_the_page()
    found = study.check("dcd", dcd)
    assert sum("squared_hinge, with shrinking" in words for words in found.differences) == 6
    assert found.agrees
    forgetful = study.check("dcd", lambda *given, shrink, loss: dcd(*given, shrink=shrink))
    wrong = {words for words, difference in forgetful.differences.items() if difference > 1e-10}
    assert wrong == {words for words in found.differences if "squared_hinge" in words}


def test_setting_rows_aside_by_the_projected_slope_is_found_out():
    """It sets none aside: the slip of the errata's third table."""
    source = blocks("dcd")[0]
    slip = source.replace(
        "at_zero and G > M or at_top and G < m", "at_zero and min(G, 0) > M or at_top and max(G, 0) < m"
    )
    assert slip != source
    namespace = {}
    exec(compile(slip, "dcd.md, with the slip", "exec"), namespace)
    found = study.check("dcd", namespace["dcd"])
    assert not found.agrees
    assert all("with shrinking" in words for words, difference in found.differences.items() if difference > 1e-10)


def kernel_pegasos(before):
    def function(K, y, lam, T, draws):
        counts = np.zeros(len(y))
        for t in range(1, T + 1):
            i = draws.below(len(y))
            counts[i] += y[i] * (K[i] @ (counts * y)) / (lam * max(t - before, 1)) < 1
        return counts

    return function


@pytest.mark.parametrize(("before", "form"), [(0, "judged as in figure 3"), (1, "judged by w_t")])
def test_both_forms_of_kernel_pegasos_are_accepted_and_named(before, form):
    found = study.check("kernel_pegasos", kernel_pegasos(before))
    assert found.agrees and found.form == form and form in str(found)
    assert not study.check("kernel_pegasos", kernel_pegasos(20)).agrees


def test_the_step_on_the_logistic_loss_is_as_near_as_its_page_says():
    """Bisection in the logit: b is up to 6e-4 off after one step, not right to the last digit."""
    random, count = np.random.default_rng(0), 20_000
    b, q, m = random.uniform(0.001, 0.999, count), 10.0 ** random.uniform(-2, 4, count), 3.0 * random.normal(size=count)
    low, high = -m - q - 1.0, -m + q + 1.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        above = middle + m + q * (expit(middle) - b) > 0.0
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    stepped = np.array([logit_step(*given, 1.0) for given in zip(b, m, q, strict=True)])
    assert 1e-4 < np.abs(stepped - expit(low)).max() <= 6e-4
    assert "up to 6e-4 off" in (PAGES / "sdca.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1, 123456789])
def test_the_draws_are_the_compiled_ones(seed):
    theirs, ours = randomness.make_random(seed), study.Draws(seed)
    assert [ours.below(n) for n in range(1, 200)] == [randomness.draw(theirs, n) for n in range(1, 200)]
    order, shuffled = np.arange(50), list(range(50))
    randomness.shuffle(theirs, order, 50)
    ours.shuffle(shuffled)
    assert shuffled == order.tolist()
