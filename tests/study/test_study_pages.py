"""The study pages: their functions replay the solvers, their exercises run, their excerpts are the source."""

import re
from pathlib import Path

import numpy as np
import pytest

from saddlesvm.lab import study
from saddlesvm.runtime import randomness

PAGES = Path(__file__).parents[2] / "docs" / "study"
LINES = re.compile(r"<!-- lines of [\w.]+ -->\n.*?<!-- end -->", re.DOTALL)
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
FUNCTIONS = {
    "pegasos": ["pegasos"],
    "kernel-pegasos": ["kernel_pegasos"],
    "sdca": ["sdca", "kernel_sdca"],
    "dcd": ["dcd"],
    "second-order": ["second_order"],
    "crammer-singer": ["crammer_singer"],
}


def blocks(name):
    """The Python blocks of a page that a reader would run, in order."""
    text = LINES.sub("", (PAGES / f"{name}.md").read_text(encoding="utf-8"))
    return BLOCK.findall(text)


def test_every_algorithm_has_its_page():
    assert sorted(one for several in FUNCTIONS.values() for one in several) == sorted(study.ALGORITHMS)
    assert {path.stem for path in PAGES.glob("*.md")} == {*FUNCTIONS, "README"}


@pytest.mark.parametrize(("page", "algorithms"), FUNCTIONS.items())
def test_a_page_runs_from_top_to_bottom_and_its_functions_replay_the_solvers(page, algorithms):
    namespace = {}
    for number, block in enumerate(blocks(page), start=1):
        exec(compile(block, f"{page}.md, block {number}", "exec"), namespace)
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


@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1, 123456789])
def test_the_draws_are_the_compiled_ones(seed):
    theirs, ours = randomness.seeded(seed), study.Draws(seed)
    assert [ours.below(n) for n in range(1, 200)] == [randomness.draw(theirs, n) for n in range(1, 200)]
    order, shuffled = np.arange(50), list(range(50))
    randomness.shuffle(theirs, order, 50)
    ours.shuffle(shuffled)
    assert shuffled == order.tolist()
