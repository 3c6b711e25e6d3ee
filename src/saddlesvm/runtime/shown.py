"""Text from files and messages made safe to show: marks that steer a terminal or turn its direction are spelled out."""

from __future__ import annotations

import re
import unicodedata

JOINERS = "\u200c\u200d"  # joiners of several scripts and of emoji: they change neither direction nor line
LINE_BREAKS = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029\ud800-\udfff]")
LONGEST = 2_000  # characters of a message


def shown(text: str) -> str:
    """`text` with control, format and direction characters, line breaks and lone surrogates spelled as in Python."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_spelled(mark) if _is_hidden(mark) else mark for mark in text)


def _is_hidden(mark: str) -> bool:
    return unicodedata.category(mark) in ("Cc", "Cf", "Cs", "Zl", "Zp") and mark not in JOINERS


def _spelled(mark: str) -> str:
    return mark.encode("ascii", errors="backslashreplace").decode() if ord(mark) > 127 else repr(mark)[1:-1]


def unbroken(text: str) -> str:
    """`text` with its line breaks and lone surrogates spelled out, so that it stays one line of a file."""
    return LINE_BREAKS.sub(lambda found: _spelled(found[0]), text)


def one_line(message: str) -> str:
    """A message as one line that can be shown, cut in its middle where it is very long."""
    line = shown(" ".join(part.strip() for part in message.splitlines() if part.strip()))
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 400]} ... {line[-400:]}"
