"""A report: the findings in words, then tables and figures, in one HTML file that works without a
network.
"""

from __future__ import annotations

import datetime
import html
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from saddlesvm.data.errors import write_page
from saddlesvm.lab.charts import MARGINS, Chart, Grid, draw_svg, save
from saddlesvm.lab.machine import machine_rows
from saddlesvm.runtime.shown import shown

COMPACT = (",", ":")  # of JSON, as JavaScript writes it
ONE = r"[-+±<>≤]?\s?\d[\d.,]*(e[-+]?\d+)?"
NUMBER = re.compile(rf"{ONE}( to {ONE})?\s?(%|s|ms|µs)?")


@dataclass(frozen=True)
class Prose:
    """A paragraph of plain text."""

    text: str


@dataclass(frozen=True)
class Table:
    """A table of words and numbers, already formatted.

    Attributes
    ----------
    columns : sequence of str
    rows : sequence of sequences of str
    caption : str
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, str]], caption: str = "") -> Table:
        """A table of rows, one at least, each of which names its cells, in the same order."""
        return cls(list(rows[0]), [list(row.values()) for row in rows], caption)


@dataclass(frozen=True)
class Picture:
    """A figure that is drawn by matplotlib alone, such as images.

    Attributes
    ----------
    title, caption : str
    draw : callable
        Draws on axes of its own and returns them.
    """

    title: str
    caption: str
    draw: Callable[[], Any]


@dataclass(frozen=True)
class Switch:
    """Charts of which one is shown at a time.

    Attributes
    ----------
    title, caption : str
    names : tuple of str
        What is switched, such as "quantity" and "against".
    charts : dict of tuple of str to Chart
        The chart for each choice of values, one a name; the first is shown at first.
    """

    title: str
    caption: str
    names: tuple[str, ...]
    charts: dict[tuple[str, ...], Chart]


Item = Prose | Table | Chart | Grid | Picture | Switch


@dataclass
class Section:
    """A heading with the items below it, and the name of their data if the report is about several
    sets.
    """

    title: str
    items: list[Item] = field(default_factory=list)
    data: str = ""


@dataclass
class Report:
    """The findings of a comparison or an experiment.

    Attributes
    ----------
    title : str
    verdict : list of str
        The findings in sentences, shown at the top.
    sections : list of Section
    data : list of (str, str)
        Facts of the data.
    command : str
        The command that repeats the report.
    seconds, processor_seconds : float
        What the work took, on the clock and of all cores; zero where nobody measured.
    timed : set of str
        The findings that depend on the clock.
    """

    title: str
    verdict: list[str]
    sections: list[Section] = field(default_factory=list)
    data: list[tuple[str, str]] = field(default_factory=list)
    command: str = ""
    seconds: float = 0.0
    processor_seconds: float = 0.0
    timed: set[str] = field(default_factory=set)

    @property
    def took(self) -> list[tuple[str, str]]:
        """The time of the work, as pairs of words."""
        if not self.seconds:
            return []
        return [
            ("seconds on the clock", f"{self.seconds:.0f}"),
            ("processor seconds", f"{self.processor_seconds:.0f}"),
        ]

    def section(self, title: str, *items: Item, data: str = "") -> Section:
        """Append a section and return it."""
        made = Section(title, list(items), data)
        self.sections.append(made)
        return made

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the HTML file, all at once; its path.

        Raises
        ------
        DataError
            The file cannot be written.
        """
        return write_page(path, self.html())

    def html(self) -> str:
        """The page, with its styles, its script and its figures inside."""
        page = Page()
        body = "\n".join(page.section(section) for section in self.sections)
        parts = {
            "title": words(self.title),
            "style": page_part("report.css"),
            "verdict": "\n".join(f"<li>{words(sentence)}</li>" for sentence in self.verdict),
            "contents": "\n".join(page.contents),
            "body": body,
            "data": facts(self.data),
            "machine": facts(machine_rows() + self.took),
            "command": words(self.command),
            "made": datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
            "script": page_part("report.js"),
        }
        return Template(page_part("report.html")).substitute(parts)

    def data_words(self, section: Section) -> str:
        """The data of a section's figures in words: its own, or those of a report about one set."""
        names = [value for name, value in self.data if name in ("data", "population")]
        if section.data:
            names = [section.data]
        return f"Data: {names[0]}." if len(names) == 1 else ""

    def save_figures(
        self, folder: str | os.PathLike[str], formats: Sequence[str] = ("png", "svg")
    ) -> list[Path]:
        """Write every figure as files named after its section and title, captions and data named
        below; their paths.
        """
        Path(folder).mkdir(parents=True, exist_ok=True)
        paths = []
        for section in self.sections:
            for item in each_drawn(section.items):
                if isinstance(item, (Chart, Grid, Picture)):
                    stem = slug(f"{section.title} {item.title}")
                    ax = item.draw()
                    caption = " ".join(filter(None, (item.caption, self.data_words(section))))
                    for ending in formats:
                        path = Path(folder) / f"{stem}.{ending}"
                        save(ax, os.fspath(path), caption=caption if ending == formats[0] else "")
                        paths.append(path)
        return paths


def each_drawn(items: Sequence[Item]) -> Iterator[Item]:
    """The items, those of a switch one after the other."""
    for item in items:
        yield from item.charts.values() if isinstance(item, Switch) else (item,)


class Page:
    """The HTML of the sections, and their table of contents."""

    def __init__(self) -> None:
        self.figures = 0
        self.contents: list[str] = []

    def section(self, section: Section) -> str:
        """A section's HTML."""
        name = slug(section.title)
        title = words(section.title)
        self.contents.append(f'<li><a href="#{name}">{title}</a></li>')
        inside = "\n".join(self.item(item) for item in section.items)
        return f'<section id="{name}"><h2>{title}</h2>\n{inside}\n</section>'

    def item(self, item: Item) -> str:
        """The HTML of a paragraph, table or figure."""
        if isinstance(item, Prose):
            return f"<p>{words(item.text)}</p>"
        if isinstance(item, Table):
            return table(item)
        caption = f"<figcaption><b>{words(item.title)}</b> {words(item.caption)}</figcaption>"
        if isinstance(item, Switch):
            choices = "\n".join(
                self.drawing(chart, chart.title, keys, hidden=number > 0)
                for number, (keys, chart) in enumerate(item.charts.items())
            )
            return (
                f'<figure class="choices">{caption}{switches(item, self.figures)}{choices}</figure>'
            )
        return f"<figure>{caption}{self.drawing(item, f'{item.title}. {item.caption}')}</figure>"

    def drawing(
        self,
        item: Chart | Grid | Picture,
        label: str,
        keys: Sequence[str] = (),
        hidden: bool = False,
    ) -> str:
        """A figure as SVG; `keys` are the choices of a switch that show it."""
        # The number makes the identifiers inside the SVG unique on the page.
        self.figures += 1
        chosen = f' data-keys="{words(json.dumps(list(keys), separators=COMPACT))}"' if keys else ""
        short = isinstance(item, Chart) and not (item.shade or item.y_ticks)
        drawn = draw_svg(item.draw, f"figure {self.figures}", MARGINS if short else None)
        state = " hidden" if hidden else ""
        return (
            '<div class="chart" role="img" '
            f'aria-label="{words(label)}"{chosen}{state}>{drawn}</div>'
        )


def switches(item: Switch, number: int) -> str:
    """Buttons to choose a chart with, a row for each name."""
    rows = []
    for place, name in enumerate(item.names):
        values = dict.fromkeys(keys[place] for keys in item.charts)
        group = f"switch-{number}-{place}"
        buttons = "".join(
            f'<label><input type="radio" name="{group}" '
            f'value="{words(value)}"{" checked" if first == 0 else ""}>'
            f"<span>{words(value)}</span></label>"
            for first, value in enumerate(values)
        )
        rows.append(f"<fieldset><legend>{words(name)}</legend>{buttons}</fieldset>")
    return f'<div class="switch">{"".join(rows)}</div>'


def table(item: Table) -> str:
    """A table's HTML; cells that are a number, or from one to another, with a unit or without, are
    set to the right.

    Pairs of words without headings are a description list.
    """
    if not any(item.columns):
        return f"<dl>{facts([(name, value) for name, value in item.rows])}</dl>"
    head = "".join(f'<th scope="col">{words(name)}</th>' for name in item.columns)
    rows = "\n".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in item.rows)
    caption = f"<figcaption>{words(item.caption)}</figcaption>" if item.caption else ""
    body = f"<table><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table>"
    return f'<figure class="table">{caption}<div class="wide">{body}</div></figure>'


def _cell(text: str) -> str:
    kind = ' class="number"' if NUMBER.fullmatch(text) else ""
    return f"<td{kind}>{words(text)}</td>"


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """Pairs of words as a description list."""
    return "\n".join(f"<dt>{words(name)}</dt><dd>{words(value)}</dd>" for name, value in pairs)


def embedded(value: Any) -> str:
    """JSON in ASCII without angle brackets, so that its text cannot begin or end an element, a
    comment or a script.
    """
    text = json.dumps(value, separators=COMPACT)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def words(text: str) -> str:
    """Text as HTML, with the characters that cannot be seen spelled out."""
    return html.escape(shown(text))


def slug(text: str) -> str:
    """Text as a name for files and anchors."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def page_part(name: str) -> str:
    """A template, style or script of the pages."""
    return (files("saddlesvm.lab") / "page" / name).read_text(encoding="utf-8")
