"""Regular expressions for numbers, dates and identifiers as people write them into tables."""

from __future__ import annotations

MISSING_WORDS = frozenset({"", "?", "na", "n/a", "nan", "null", "none"})

# Dates: year first, or year last; then a time of the day and an offset, if any.
_CLOCK = r"(?:[T ]+\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?)?(?: ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?"
YEAR_FIRST = rf"\d{{4}}([-/.])\d{{1,2}}\1\d{{1,2}}{_CLOCK}"
YEAR_LAST = rf"\d{{1,2}}([-/.])\d{{1,2}}\1\d{{4}}{_CLOCK}"
OFFSET = r"[+-]\d\d:?\d\d$|(?:Z|UTC|GMT)$"
DURATION = r"-?(?:\d+ days?,? ?)?\d+:\d\d(?::\d\d(?:\.\d+)?)?|-?\d+ days?"

# Numbers with a unit or a currency, a sign or brackets, and marks between the digits.
_MONEY = r"(?:US)?[$€£¥₹]|USD|EUR|GBP|CHF|JPY|CNY|INR|AUD|CAD|SEK|NOK|DKK|PLN"
WRITTEN_NUMBER = (
    rf"^(?P<open>\(?)\s*(?P<minus>[-+−]?)\s*(?P<before>{_MONEY}|)\s*(?P<sign>[-+−]?)\s*"
    r"(?P<digits>[\d.,](?:[\d.,'’ \u00a0\u202f]*[\d.,])?(?:[eE][-+]?\d+)?)\s*"
    r"(?P<after>%|[^\W\d_][^\s\d()]{0,9}|[°€$£¥₹/][^\s\d()]{0,9}|)\s*(?P<close>\)?)$"
)
# The digits of such numbers, with a decimal point or a decimal comma.
_EXPONENT = r"(?:[eE][-+]?\d+)?"
_SPACED = r"[1-9]\d{0,2}(?:['’ \u00a0\u202f]\d{3})+"  # thousands apart
WITH_POINT = rf"(?:\d+|[1-9]\d{{0,2}}(?:,\d{{3}})+|{_SPACED})(?:\.\d*)?{_EXPONENT}|\.\d+{_EXPONENT}"
WITH_COMMA = rf"(?:\d+|[1-9]\d{{0,2}}(?:\.\d{{3}})+|{_SPACED})(?:,\d*)?{_EXPONENT}|,\d+{_EXPONENT}"
THOUSANDS_MARKS = r"['’ \u00a0\u202f]"
BEGINS_WITH_DIGITS = rf"\(?\s*[-+−]?\s*(?:{_MONEY})?\s*[-+−]?[.,]?\d.*"

# Identifiers: the names of their columns, and a UUID or a hash as a value.
ID_NAME = r"(?i)(?:^|[_\s-])(?:id|ids|uuid|guid|index|key)$|[a-z](?:Id|ID)$|^unnamed: \d+$"
ID_VALUE = r"(?i)[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}|[0-9a-f]{16,}"
