"""Make the measured parts of the pages in docs/experiments again: tables, findings and pictures.

A page is written by hand around blocks that this script fills from the experiment's report:

    <!-- found -->                      the sentences at the top that do not depend on the clock
    <!-- found (by the clock) -->       the sentences that depend on the clock
    <!-- table 2 of Tables -->          the second table of the section "Tables", with its caption
    <!-- machine -->                    processor, cores and versions
    <!-- took -->                       the time of the run
    <!-- end -->                        the end of each block

Blocks that depend on the clock or on the load of the machine are marked, as in
``<!-- table 2 of Tables (by the clock) -->``. ``--keep-clock`` leaves such blocks and the machine
unchanged if they have contents, and ``--check`` compares only the other blocks.

A page refers to pictures as ``NAME/FIGURE.png``, with the names of ``Report.save_figures``; only
these are drawn into the folder NAME beside the page.

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
from saddlesvm.lab import Report, TextTable, machine_rows

PAGES = Path(__file__).parents[1] / "docs" / "experiments"
NAMED = r"found|machine|took|table \d+ of [^>]+?"
BLOCK = re.compile(rf"<!-- ({NAMED})( \(by the clock\))? -->\n(.*?)<!-- end -->", re.DOTALL)
TIMES = re.compile(r"<!-- times -->\n(.*?)<!-- end -->", re.DOTALL)
NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")
# How far another processor's rounding may change a number of a repeated run (guessed).
NEARLY = 0.2  # relative to the number
CLOSE = 0.15  # absolute
POINTS = 1.0  # of a percentage
TIMES_AS_MUCH = 10.0  # factor of a number that is written with an exponent
NOTHING = 1e-8  # smaller numbers with an exponent are rounding themselves
ON_PAGES = ("processor", "cores for this process", "Python", "numpy", "numba", "scikit-learn")


def write_markdown(table: TextTable) -> str:
    """Return a table as Markdown, after its caption."""
    lines = [f"{table.caption}\n"] if table.caption else []
    lines.append(f"| {' | '.join(table.columns)} |")
    lines.append("|---" * len(table.columns) + "|")
    lines += [f"| {' | '.join(row)} |" for row in table.rows]
    return "\n".join(lines)


def write_block(name: str, report: Report, clock: bool = False) -> str:
    """Return the contents of a block; `clock` asks for the findings that depend on the clock."""
    if name == "found":
        sentences = [text for text in report.verdict if (text in report.timed) == clock]
        return "\n".join(f"- {text}" for text in sentences)
    if name == "machine":
        known = dict(machine_rows())
        return "; ".join(f"{word}: {known[word]}" for word in ON_PAGES)
    if name == "took":
        return "; ".join(f"{word}: {value}" for word, value in report.time_rows)
    number, _, title = name.removeprefix("table ").partition(" of ")
    sections = [section for section in report.sections if section.title == title]
    tables = [item for section in sections for item in section.items if isinstance(item, TextTable)]
    if not 0 < int(number) <= len(tables):
        raise SystemExit(f"{report.title}: there is no table {number} in a section {title!r}")
    return write_markdown(tables[int(number) - 1])


def alike(old: str, new: str, percentages: bool = False) -> bool:
    """Return True if two blocks have the same words, and numbers that only rounding changed."""
    if NUMBER.sub("#", old) != NUMBER.sub("#", new):
        return False
    pairs = zip(NUMBER.findall(old), NUMBER.findall(new), strict=True)
    return all(are_near(first, second, percentages) for first, second in pairs)


def are_near(first: str, second: str, percentages: bool) -> bool:
    """Return True if two numbers differ by no more than rounding can change."""
    a = float(first.replace(",", ""))
    b = float(second.replace(",", ""))
    low, high = sorted((abs(a), abs(b)))
    if "e" in first + second:
        return high <= NOTHING or high <= TIMES_AS_MUCH * low
    allowed = POINTS if percentages else max(CLOSE, NEARLY * high)
    return abs(a - b) <= allowed


def stale_blocks(page: Path, report: Report) -> list[str]:
    """Return the names of the tables of a page that differ from the report, without the clock's."""
    stale = []
    for name, text in tables_without_clock(page):
        if not alike(text, write_block(name, report), "%" in text):
            stale.append(name)
    return stale


def tables_without_clock(page: Path) -> list[tuple[str, str]]:
    """Return names and texts of the tables of a page that do not depend on the clock."""
    tables = []
    for name, clock, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if name.startswith("table") and not clock:
            tables.append((name, text.strip()))
    return tables


def stale_rows(page: Path, report: Report) -> list[str]:
    """Return the rows of a report of a part of the data that the page's tables do not have."""
    stale = []
    for name, text in tables_without_clock(page):
        lines = text.splitlines()
        # Caption, blank line, names of the columns and their rule come first.
        rows = write_block(name, report).splitlines()[4:]
        stale += [row for row in rows if not any(alike(old, row, "%" in text) for old in lines)]
    return stale


def fill(page: Path, report: Report, keep_clock: bool = False) -> None:
    """Fill the blocks of a page, draw its pictures, and remove other pictures of its folder."""

    def fill_block(found: re.Match[str]) -> str:
        name, clock, contents = found.groups()
        depends_on_machine = bool(clock) or name == "machine"
        if keep_clock and contents.strip() and depends_on_machine:
            return found[0]
        contents = write_block(name, report, bool(clock))
        return f"<!-- {name}{clock or ''} -->\n{contents}\n<!-- end -->"

    text = BLOCK.sub(fill_block, page.read_text(encoding="utf-8"))
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
    """Return a table of the time of each experiment, from the pages."""
    lines = ["| command | seconds on the clock | processor seconds |", "|---|---|---|"]
    total = 0
    total_on_cores = 0
    for name in HOMES:
        page = (pages / f"{name}.md").read_text()
        found = re.search(r"seconds on the clock: (\d+); processor seconds: (\d+)", page)
        if found:
            lines.append(f"| `python -m experiments {name}` | {found[1]} | {found[2]} |")
            total += int(found[1])
            total_on_cores += int(found[2])
    return "\n".join([*lines, f"| all | {total} | {total_on_cores} |"])


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
        "names", nargs="*", metavar="NAME", help=f"{', '.join(HOMES)}; by default all"
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
        "--reports", type=Path, metavar="DIR", help="write the HTML reports there, too"
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
