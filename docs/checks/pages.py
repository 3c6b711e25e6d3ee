"""The pages that are written by hand, and the blocks of code on them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MADE_BY_A_SCRIPT = (
    "experiments",
)  # folders of pages whose commands need downloaded data
BLOCK = re.compile(
    r"<!-- not run: (?P<reason>[^\n]+?) -->|"
    r"^(?P<fence>`{3,})(?P<language>python|pycon|console)[^\n]*\n(?P<code>.*?)^(?P=fence)$",
    re.M | re.S,
)


@dataclass(frozen=True)
class Block:
    """A block of code: "python", "pycon" or "console", where it begins, and why it is not run, if it is not."""

    language: str
    code: str
    line: int
    excuse: str = ""


def pages() -> list[Path]:
    """Every page written by hand that is part of the manual or stands at the root of the project."""
    found = [
        path
        for path in DOCS.rglob("*.md")
        if path.relative_to(DOCS).parts[0] not in (*MADE_BY_A_SCRIPT, "gallery")
    ]
    return [ROOT / "README.md", *sorted(found)]


def blocks(page: Path) -> list[Block]:
    """The blocks of a page in order."""
    text, found, excuse = page.read_text(encoding="utf-8"), [], ""
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 2
        if match["reason"]:
            excuse = match["reason"]
        else:
            found.append(Block(match["language"], match["code"], line, excuse))
            excuse = ""
    return found
