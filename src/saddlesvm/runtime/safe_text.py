"""Make text from files and messages safe to show.

Marks that steer a terminal, or turn the direction of its text, are escaped as in Python.
"""

from __future__ import annotations

import re
import unicodedata

# Joiners of several scripts and of emoji, which change neither direction nor line.
JOINERS = "\u200c\u200d"
HIDDEN_CATEGORIES = ("Cc", "Cf", "Cs", "Zl", "Zp")  # control, format, surrogates, separators
LINE_BREAKS = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029\ud800-\udfff]")
LONGEST = 2_000  # characters of a message; a guess
LONGEST_END = 400  # characters of the end of a message that is cut


def escape_hidden(text: str) -> str:
    """Return a text whose control, format and direction marks are escaped as in Python.

    So are line breaks and lone surrogates.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape(mark) if _is_hidden(mark) else mark for mark in text)


def _is_hidden(mark: str) -> bool:
    """Return True for a mark that is not shown as itself."""
    return unicodedata.category(mark) in HIDDEN_CATEGORIES and mark not in JOINERS


def _escape(mark: str) -> str:
    """Return a mark as Python escapes it."""
    if ord(mark) > 127:
        return mark.encode("ascii", errors="backslashreplace").decode()
    return repr(mark)[1:-1]


def escape_line_breaks(text: str) -> str:
    """Return a text whose line breaks are escaped, so that it stays a line of a file."""
    return LINE_BREAKS.sub(lambda match: _escape(match[0]), text)


def one_line(message: str) -> str:
    """Return a message as a line that can be shown, cut in its middle if it is very long."""
    lines = (line.strip() for line in message.splitlines())
    text = escape_hidden(" ".join(filter(None, lines)))
    if len(text) <= LONGEST:
        return text
    return f"{text[: LONGEST - LONGEST_END]} ... {text[-LONGEST_END:]}"
