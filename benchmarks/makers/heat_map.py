"""The heat map of the speed page: by data and problem, how many times faster than the quickest peer.

    python -m benchmarks.makers.heat_map [--check]

Drawn from the table of docs/benchmarks.md for a relative distance of 0.001, and its list of data, and from the table of
ReHLine in docs/measurements/speed.md, which was measured later: where its factor is the smaller one, the square names
ReHLine.
Nothing is measured here.
With ``--check`` the figures are compared with the picture, and nothing is written.
"""

from __future__ import annotations

import re
import sys
from typing import Any, NamedTuple

from matplotlib.patches import Rectangle
from numpy import log2

from benchmarks.makers.front_pictures import DOCS, drawn_or_checked, save

HEADING = "### To a relative distance of 0.001\n"
APART = "## ReHLine\n"
DEEPER = 0.16  # opacity for each factor of two
SHORT = {
    "scikit-learn LinearSVC, dual": "LinearSVC",
    "scikit-learn SGDClassifier": "SGDClassifier",
    "scikit-learn LogisticRegression (lbfgs)": "lbfgs",
    "LIBLINEAR, dual": "LIBLINEAR",
    "LIBLINEAR, primal": "LIBLINEAR",
    "lightning LinearSVC": "lightning",
}


class Cell(NamedTuple):
    """A cell of the table: data, loss and C, the factor as a number and in words, and the quickest peer."""

    data: str
    problem: tuple[str, float]
    factor: float
    words: str
    peer: str


def cells() -> list[Cell]:
    """The cells of the published table."""
    text = (DOCS / "benchmarks.md").read_text(encoding="utf-8").partition(HEADING)[2].partition("\nGeometric mean")[0]
    found = []
    for line in re.findall(r"^\|(.+)\|$", text, re.M)[2:]:
        data, loss, C, _, _, peer, factor = (cell.strip() for cell in line.split("|"))
        number = re.search(r"[\d.]+", factor)
        if factor == "-":
            continue  # nobody came so near in time: an empty square
        if number is None:
            raise SystemExit(f"docs/benchmarks.md: no factor in the row of {data}, {loss}, C = {C}")
        above = factor.startswith(">")
        words = f"> {number[0]}" if above else number[0]
        found.append(
            Cell(data, (loss, float(C)), float(number[0]), words, "no peer" if above else SHORT.get(peer, peer))
        )
    return found


def with_rehline(given: list[Cell]) -> list[Cell]:
    """The cells, with ReHLine in the place of a peer that is slower beside saddlesvm."""
    text = (DOCS / "measurements" / "speed.md").read_text(encoding="utf-8").partition(APART)[2].partition("\n## ")[0]
    factors = {}
    for line in re.findall(r"^\|(.+)\|$", text, re.M)[2:]:
        data, loss, C, _, _, factor = (cell.strip() for cell in line.split("|"))
        if factor:
            factors[data, (loss, float(C))] = factor
    found = []
    for cell in given:
        factor = factors.get((cell.data, cell.problem))
        nearer = factor is not None and (float(factor) < cell.factor or cell.peer == "no peer")
        found.append(cell._replace(factor=float(factor), words=factor, peer="ReHLine") if factor and nearer else cell)
    return found


def shapes() -> dict[str, str]:
    """The data sets in the order of the map, dense before sparse, with their shapes."""
    text = (DOCS / "benchmarks.md").read_text(encoding="utf-8").partition("## The data\n")[2]
    found = re.findall(r"^- `([^`]+)`: .*?\b(dense|sparse), .*?([\d,]+ x [\d,]+), (float\d+)", text, re.M)
    size = {name: tuple(int(one.replace(",", "")) for one in shape.split(" x ")) for name, _, shape, _ in found}
    ordered = sorted(found, key=lambda one: (one[1], size[one[0]], one[3]))
    return {name: f"{name}\n{kind} {shape}\n{precision}" for name, kind, shape, precision in ordered}


def draw(ax: Any, given: list[Cell], ink: tuple[str, str, str]) -> None:
    """A square a cell, its colour by the logarithm of the factor; where a peer wins its text is bold."""
    text, peers, ours = ink
    names = shapes()
    rows = list(names)
    columns = sorted({cell.problem for cell in given})
    for cell in given:
        x = columns.index(cell.problem)
        y = rows.index(cell.data)
        color = ours if cell.factor >= 1.0 else peers
        alpha = min((0.08 if cell.factor >= 1.0 else 0.4) + DEEPER * abs(log2(cell.factor)), 0.75)
        ax.add_patch(Rectangle((x - 0.47, y - 0.47), 0.94, 0.94, facecolor=color, alpha=alpha, linewidth=0))
        weight = "bold" if cell.factor < 1.0 else "normal"
        ax.text(x, y - 0.12, cell.words, ha="center", va="center", color=text, fontsize=11, weight=weight)
        ax.text(x, y + 0.24, cell.peer, ha="center", va="center", color=text, fontsize=7.5)
    ax.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(rows) - 0.5, -0.5))
    ax.set_xticks(range(len(columns)), ["\n".join([*loss.split(), f"C = {C:g}"]) for loss, C in columns])
    ax.set_yticks(range(len(rows)), [names[name] for name in rows])
    ax.tick_params(length=0, labelsize=8)


def stale(found: list[Cell]) -> list[str]:
    """The factors and peers that the drawn map lacks, or has too often, and the ends that a page lacks."""
    drawn = (DOCS / "pictures" / "heat-map-light.svg").read_text(encoding="utf-8").replace("&gt;", ">")
    words = [word for cell in found for word in (cell.words, cell.peer)]
    wrong = {word for word in words if drawn.count(f">{word}</text>") != words.count(word)}
    # The pages beside the map say its smallest and its largest factor.
    factors = sorted(found, key=lambda cell: cell.factor)
    ends = f"{factors[0].words} to {factors[-1].words.replace('>', 'above')}"
    pages = [DOCS / "index.md", DOCS / "how" / "speed.md"]
    wrong |= {f"{page}: {ends}" for page in pages if ends not in page.read_text(encoding="utf-8")}
    return sorted(wrong)


def main() -> int:
    """Draw the map, or compare it with the table."""
    found = with_rehline(cells())
    return drawn_or_checked(__doc__, lambda: stale(found), lambda: save("heat-map", (9.4, 6.2), draw, found))


if __name__ == "__main__":
    sys.exit(main())
