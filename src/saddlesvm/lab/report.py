"""A report: findings in words, tables and figures, in an HTML file that needs no network."""

from __future__ import annotations

import datetime
import html
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from string import Template

from saddlesvm.data.errors import write_page
from saddlesvm.lab.charts import MARGINS, Chart, Picture, draw_svg, save
from saddlesvm.lab.machine import machine_rows
from saddlesvm.runtime.safe_text import escape_hidden

COMPACT = (",", ":")  # the separators of JSON, as JavaScript writes it
DIGITS = r"[-+±<>≤]?\s?\d[\d.,]*(e[-+]?\d+)?"
# A number, or from one number to another, with or without a unit.
NUMBER = re.compile(rf"{DIGITS}( to {DIGITS})?\s?(%|s|ms|µs)?")


@dataclass(frozen=True)
class Prose:
    """A paragraph of plain text."""

    text: str


@dataclass(frozen=True)
class TextTable:
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
    def from_records(cls, records: Sequence[Mapping[str, str]], caption: str = "") -> TextTable:
        """Return a table of records with the same names in the same order, at least one record."""
        return cls(list(records[0]), [list(record.values()) for record in records], caption)


Item = Prose | TextTable | Chart | Picture


@dataclass
class Section:
    """A heading with the items below it.

    Attributes
    ----------
    title : str
    items : list
    data : str
        The name of their data, if the report is about several sets.
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
        The time of the work, on the clock and of all cores; zero if it was not measured.
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
    def time_rows(self) -> list[tuple[str, str]]:
        """The time of the work, as pairs of words."""
        if not self.seconds:
            return []
        return [
            ("seconds on the clock", f"{self.seconds:.0f}"),
            ("processor seconds", f"{self.processor_seconds:.0f}"),
        ]

    def section(self, title: str, *items: Item, data: str = "") -> Section:
        """Append a section, and return it."""
        section = Section(title, list(items), data)
        self.sections.append(section)
        return section

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the HTML file, and return its path.

        Raises
        ------
        DataError
            The file cannot be written.
        """
        return write_page(path, self.html())

    def html(self) -> str:
        """Return the page, with its styles and its figures inside."""
        page = PageWriter()
        body = "\n".join(page.write_section(section) for section in self.sections)
        parts = {
            "title": escape(self.title),
            "style": page_part("report.css"),
            "verdict": "\n".join(f"<li>{escape(sentence)}</li>" for sentence in self.verdict),
            "contents": "\n".join(page.contents),
            "body": body,
            "data": write_pairs(self.data),
            "machine": write_pairs(machine_rows() + self.time_rows),
            "command": escape(self.command),
            "made": datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        }
        return Template(page_part("report.html")).substitute(parts)

    def data_words(self, section: Section) -> str:
        """Return a sentence that names the data of a section's figures; empty for several."""
        if section.data:
            return f"Data: {section.data}."
        names = [value for name, value in self.data if name in ("data", "population")]
        return f"Data: {names[0]}." if len(names) == 1 else ""

    def save_figures(
        self, folder: str | os.PathLike[str], formats: Sequence[str] = ("png", "svg")
    ) -> list[Path]:
        """Write every figure as files, and return their paths.

        The files are named after the section and the title. Caption and data stand below the figure
        in the first format.
        """
        Path(folder).mkdir(parents=True, exist_ok=True)
        paths = []
        for section in self.sections:
            for item in section.items:
                if not isinstance(item, (Chart, Picture)):
                    continue
                name = make_slug(f"{section.title} {item.title}")
                caption = " ".join(filter(None, (item.caption, self.data_words(section))))
                ax = item.draw()
                for number, ending in enumerate(formats):
                    path = Path(folder) / f"{name}.{ending}"
                    save(ax, os.fspath(path), caption=caption if number == 0 else "")
                    paths.append(path)
        return paths


class PageWriter:
    """Writes the HTML of sections, and collects their table of contents."""

    def __init__(self) -> None:
        self.figures = 0
        self.contents: list[str] = []

    def write_section(self, section: Section) -> str:
        """Return a section's HTML."""
        name = make_slug(section.title)
        title = escape(section.title)
        self.contents.append(f'<li><a href="#{name}">{title}</a></li>')
        inside = "\n".join(self.write_item(item) for item in section.items)
        return f'<section id="{name}"><h2>{title}</h2>\n{inside}\n</section>'

    def write_item(self, item: Item) -> str:
        """Return the HTML of a paragraph, table or figure."""
        if isinstance(item, Prose):
            return f"<p>{escape(item.text)}</p>"
        if isinstance(item, TextTable):
            return write_table(item)
        caption = f"<figcaption><b>{escape(item.title)}</b> {escape(item.caption)}</figcaption>"
        drawing = self.write_drawing(item, f"{item.title}. {item.caption}")
        return f"<figure>{caption}{drawing}</figure>"

    def write_drawing(self, item: Chart | Picture, label: str) -> str:
        """Return a figure as SVG."""
        # The number makes the identifiers inside the SVG unique on the page.
        self.figures += 1
        # A chart with numbers at its ticks needs no search for room.
        has_numbers_only = isinstance(item, Chart) and not item.shade
        margins = MARGINS if has_numbers_only else None
        drawing = draw_svg(item.draw, f"figure {self.figures}", margins)
        return f'<div class="chart" role="img" aria-label="{escape(label)}">{drawing}</div>'


def write_table(item: TextTable) -> str:
    """Return a table's HTML; pairs of words without headings become a description list."""
    if not any(item.columns):
        return f"<dl>{write_pairs([(name, value) for name, value in item.rows])}</dl>"
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in item.columns)
    rows = "\n".join(f"<tr>{''.join(map(write_cell, row))}</tr>" for row in item.rows)
    caption = f"<figcaption>{escape(item.caption)}</figcaption>" if item.caption else ""
    body = f"<table><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table>"
    return f'<figure class="table">{caption}<div class="wide">{body}</div></figure>'


def write_cell(text: str) -> str:
    """Return a cell's HTML; numbers are set to the right."""
    kind = ' class="number"' if NUMBER.fullmatch(text) else ""
    return f"<td{kind}>{escape(text)}</td>"


def write_pairs(pairs: Sequence[tuple[str, str]]) -> str:
    """Return pairs of words as the lines of a description list."""
    return "\n".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in pairs)


def embed_json(value: object) -> str:
    """Return JSON in ASCII whose text can neither begin nor end an element or a script."""
    text = json.dumps(value, separators=COMPACT)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def escape(text: str) -> str:
    """Return text as HTML, with invisible characters spelled out."""
    return html.escape(escape_hidden(text))


def make_slug(text: str) -> str:
    """Return text as a name for files and anchors."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def page_part(name: str) -> str:
    """Return a template, style or script of the pages."""
    return (files("saddlesvm.lab") / "page" / name).read_text(encoding="utf-8")
