"""Make the measured parts of the pages in docs/experiments again: tables, findings and pictures.

A page is written by hand around blocks that this script fills from the experiment's report:

    <!-- found -->                      the sentences at the top, but those by the clock
    <!-- found (by the clock) -->       those by the clock
    <!-- table 2 of Tables -->          the second table of the section "Tables", with its caption
    <!-- machine -->                    processor, cores and versions
    <!-- took -->                       what the run took
    <!-- end -->                        closes each of them

What depends on the clock or on the load of the machine is marked, as in ``<!-- table 2 of Tables
(by the clock) -->``: ``--keep-clock`` leaves such blocks and the machine as they are where they
hold something, and ``--check`` compares only the others.

A page refers to pictures as ``NAME/FIGURE.png``, by the names that ``Report.save_figures`` gives
them; those, and no others, are drawn into the folder NAME beside the page.

python -m experiments.pages --data DIR [NAME ...]
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path

from experiments import HOMES
from experiments.experiment import Options, run_experiments
from saddlesvm.data import atomic_write
from saddlesvm.lab import Report, Table, machine_rows

PAGES = Path(__file__).parents[1] / "docs" / "experiments"
NAMED = r"found|machine|took|table \d+ of [^>]+?"
BLOCK = re.compile(rf"<!-- ({NAMED})( \(by the clock\))? -->\n(.*?)<!-- end -->", re.DOTALL)
TIMES = re.compile(r"<!-- times -->\n(.*?)<!-- end -->", re.DOTALL)
NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")
# What another processor's rounding may change in a repeated run: relative and absolute; in
# percentages; in numbers that are written with an exponent, where those below are rounding
# themselves.
NEARLY = 0.2
CLOSE = 0.15
POINTS = 1.0
TIMES_AS_MUCH = 10.0
NOTHING = 1e-8
ON_PAGES = ("processor", "cores for this process", "Python", "numpy", "numba", "scikit-learn")


def markdown(table: Table) -> str:
    """A table as Markdown, its caption before it."""
    lines = [f"{table.caption}\n"] if table.caption else []
    lines.append(f"| {' | '.join(table.columns)} |")
    lines.append("|---" * len(table.columns) + "|")
    lines += [f"| {' | '.join(row)} |" for row in table.rows]
    return "\n".join(lines)


def block(name: str, report: Report, clock: bool = False) -> str:
    """What belongs into a block of this name; `clock` asks for the findings by the clock."""
    if name == "found":
        return "\n".join(
            f"- {sentence}" for sentence in report.verdict if (sentence in report.timed) == clock
        )
    if name == "machine":
        known = dict(machine_rows())
        return "; ".join(f"{word}: {known[word]}" for word in ON_PAGES)
    if name == "took":
        return "; ".join(f"{word}: {told}" for word, told in report.time_rows)
    number, _, title = name.removeprefix("table ").partition(" of ")
    sections = [section for section in report.sections if section.title == title]
    tables = [item for section in sections for item in section.items if isinstance(item, Table)]
    if not 0 < int(number) <= len(tables):
        raise SystemExit(f"{report.title}: there is no table {number} in a section {title!r}")
    return markdown(tables[int(number) - 1])


def alike(old: str, new: str, percentages: bool = False) -> bool:
    """Return True if two blocks say the same: the same words, and numbers that only rounding can
    have changed.
    """
    if NUMBER.sub("#", old) != NUMBER.sub("#", new):
        return False
    pairs = zip(NUMBER.findall(old), NUMBER.findall(new), strict=True)
    return all(
        near(one.replace(",", ""), other.replace(",", ""), percentages) for one, other in pairs
    )


def near(one: str, other: str, percentages: bool) -> bool:
    """Return True if two numbers differ by no more than rounding can change."""
    a = float(one)
    b = float(other)
    low, high = sorted((abs(a), abs(b)))
    if "e" in one + other:
        return high <= NOTHING or high <= TIMES_AS_MUCH * low
    return abs(a - b) <= (POINTS if percentages else max(CLOSE, NEARLY * high))


def stale_blocks(page: Path, report: Report) -> list[str]:
    """The names of the tables of a page that are not what the report says; those by the clock are
    not looked at.
    """
    return [
        name for name, text in settled(page) if not alike(text, block(name, report), "%" in text)
    ]


def settled(page: Path) -> list[tuple[str, str]]:
    """Names and texts of the tables of a page that do not depend on the clock."""
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [
        (name, text.strip())
        for name, clock, text in found
        if name.startswith("table") and not clock
    ]


def stale_rows(page: Path, report: Report) -> list[str]:
    """The rows of a report of a part of the data that the page's tables, but those by the clock, do
    not have.
    """
    stale = []
    for name, text in settled(page):
        shown = text.splitlines()
        rows = block(name, report).splitlines()[4:]
        stale += [row for row in rows if not any(alike(old, row, "%" in text) for old in shown)]
    return stale


def fill(page: Path, report: Report, keep_clock: bool = False) -> None:
    """Write the page with its blocks filled and its pictures drawn."""

    def filled(found: re.Match[str]) -> str:
        if keep_clock and found[3].strip() and (found[2] or found[1] == "machine"):
            return found[0]
        inside = block(found[1], report, bool(found[2]))
        return f"<!-- {found[1]}{found[2] or ''} -->\n{inside}\n<!-- end -->"

    text = BLOCK.sub(filled, page.read_text(encoding="utf-8"))
    pictures = re.findall(rf"\({page.stem}/([^)]+\.png)\)", text)
    folder = page.with_suffix("")
    with tempfile.TemporaryDirectory() as drawn:
        report.save_figures(drawn, ("png",))
        for name in pictures:
            if not (Path(drawn) / name).exists():
                known = ", ".join(sorted(path.name for path in Path(drawn).iterdir()))
                raise SystemExit(f"{page.name}: there is no picture {name!r}; there are {known}")
            with atomic_write(folder / name) as file:
                file.write((Path(drawn) / name).read_bytes())
    for path in folder.glob("*.png"):
        if path.name not in pictures:
            path.unlink()
    with atomic_write(page) as file:
        file.write(text.encode())


def times(pages: Path) -> str:
    """A table of what each experiment took, from the pages."""
    lines = ["| command | seconds on the clock | processor seconds |", "|---|---|---|"]
    sums = [0, 0]
    for name in HOMES:
        found = re.search(
            r"seconds on the clock: (\d+); processor seconds: (\d+)",
            (pages / f"{name}.md").read_text(),
        )
        if found:
            lines.append(f"| `python -m experiments {name}` | {found[1]} | {found[2]} |")
            sums = [so_far + int(took) for so_far, took in zip(sums, found.groups(), strict=True)]
    return "\n".join([*lines, f"| all | {sums[0]} | {sums[1]} |"])


def fill_times(pages: Path) -> None:
    """Write the table of times into the index of the pages."""
    index = pages / "index.md"
    text = index.read_text(encoding="utf-8")
    with atomic_write(index) as file:
        file.write(
            TIMES.sub(lambda _: f"<!-- times -->\n{times(pages)}\n<!-- end -->", text).encode()
        )


def main() -> int:
    """Run the experiments and fill their pages, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(HOMES)}; all when left out"
    )
    parser.add_argument("--data", metavar="DIR", help="folder with the data files")
    parser.add_argument(
        "--quick", action="store_true", help="seconds instead of minutes; not for publication"
    )
    parser.add_argument(
        "--keep-clock", action="store_true", help="leave what depends on the clock as it is"
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; name the tables that are out of date"
    )
    parser.add_argument(
        "--pages", type=Path, default=PAGES, metavar="DIR", help="where the pages are"
    )
    parser.add_argument(
        "--reports", type=Path, metavar="DIR", help="write the HTML reports there too"
    )
    options = parser.parse_args()
    stale: list[str] = []
    for name in options.names or HOMES:
        asked = Options(options.data, options.quick, f"python -m experiments {name} --data DIR")
        report = run_experiments([name], asked, reports=options.reports, progress=True)[name]
        if options.check:
            late = stale_blocks(options.pages / f"{name}.md", report)
            stale += late
            print(f"{name}: {'; '.join(late) or 'up to date'}", flush=True)
            continue
        (options.pages / name).mkdir(exist_ok=True)
        fill(options.pages / f"{name}.md", report, options.keep_clock)
        fill_times(options.pages)
        print(f"{name}: done", flush=True)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
