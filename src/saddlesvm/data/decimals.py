"""Decimal numbers in text, exactly rounded to float64, in compiled code and with integers only.

The method is that of D. Lemire, "Number parsing at a gigabyte per second" (Software: Practice and Experience 51, 2021;
the Eisel-Lemire algorithm): the first 19 digits times a 128-bit power of five decide the nearest double but for rare
ties, subnormals and overflows, which are left to Python's `float`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from saddlesvm.runtime.compiled import inlined, instruction

__all__ = ["is_space", "parse_decimal", "powers_of_five"]

U = np.uint64
SMALLEST_POWER, LARGEST_POWER = -342, 308
EXACT_BELOW, EXACT_ABOVE = 27, 55  # range of powers of ten (-27 to 55) for which the product is always long enough
DIGITS = 19  # decimal digits that always fit into 64 bits
MINUS, PLUS, POINT, ZERO, SMALL_E, LARGE_E = (np.uint8(ord(mark)) for mark in "-+.0eE")


@lru_cache(maxsize=1)
def powers_of_five() -> np.ndarray[Any, Any]:
    """The leading 128 bits of ``5 ** q`` for all q that matter, as two 64-bit words, the higher one first."""
    table = np.empty((LARGEST_POWER - SMALLEST_POWER + 1, 2), dtype=np.uint64)
    for q in range(SMALLEST_POWER, LARGEST_POWER + 1):
        power = 5 ** abs(q)
        size = power.bit_length()
        if q >= 0:
            leading = power << 128 - size if size <= 128 else power >> size - 128
        elif -q <= EXACT_BELOW:
            leading = (1 << size + 127) // power + 1
        else:
            leading = (1 << 2 * size + 128) // power + 1
            leading >>= leading.bit_length() - 128
        table[q - SMALLEST_POWER] = leading >> 64, leading & (1 << 64) - 1
    table.flags.writeable = False
    return table


# Python, where nothing is compiled, has whole numbers of any size.
high_product = instruction("high_product", lambda a, b: U(int(a) * int(b) >> 64))
leading_zeros = instruction("leading_zeros", lambda a: 64 - int(a).bit_length())


@inlined
def _nearest_double(w: Any, q: Any, powers: Any) -> Any:
    """The bits of the double nearest to ``w * 10 ** q`` for a uint64 w > 0; 0 where this method cannot decide."""
    if q < SMALLEST_POWER or q > LARGEST_POWER:
        return U(0)
    zeros: Any = leading_zeros(w)
    w <<= zeros
    high_power, low_power = powers[q - SMALLEST_POWER, 0], powers[q - SMALLEST_POWER, 1]
    low, high = w * high_power, high_product(w, high_power)
    if high & U(0x1FF) == U(0x1FF):
        more = high_product(w, low_power)
        low += more
        if more > low:
            high += U(1)
        if low == U(0xFFFFFFFFFFFFFFFF) and not -EXACT_BELOW <= q <= EXACT_ABOVE:
            return U(0)
    upper = high >> U(63)
    shift = upper + U(9)
    mantissa = high >> shift
    exponent = ((217706 * q) >> 16) + 1086 + np.int64(upper) - np.int64(zeros)
    if exponent <= 0 or exponent >= 2046:
        return U(0)
    if low <= U(1) and -4 <= q <= 23 and mantissa & U(3) == U(1) and mantissa << shift == high:
        mantissa &= ~U(1)
    mantissa = (mantissa + (mantissa & U(1))) >> U(1)
    if mantissa >= U(1) << U(53):
        mantissa = U(1) << U(52)
        exponent += 1
    return (mantissa & ((U(1) << U(52)) - U(1))) | (U(exponent) << U(52))


@inlined
def is_space(mark: Any) -> Any:
    """Whether a byte separates words: a blank, tab, line feed, vertical tab, form feed or carriage return."""
    return mark == 32 or (9 <= mark <= 13)


@inlined
def parse_decimal(text: Any, p: Any, stop: Any, powers: Any) -> Any:
    """Read a decimal number at place `p` of `text` (uint8), which ends at `stop`.

    Returns
    -------
    bits : uint64
        Of the nearest float64.
    p : int
        The place behind the number; -1 if there is no number, or none that can be read here.
    """
    negative = p < stop and text[p] == MINUS
    if p < stop and (text[p] == MINUS or text[p] == PLUS):
        p += 1
    w, digits, q, seen, lost = U(0), 0, 0, 0, False
    point = False
    while p < stop:
        mark = text[p]
        if mark == POINT and not point:
            point = True
        else:
            digit = U(mark) - U(ZERO)
            if digit > U(9):
                break
            seen += 1
            if digits < DIGITS:
                w = w * U(10) + digit
                digits += w != U(0)
                q -= point
            else:
                lost |= digit != U(0)
                q += not point
        p += 1
    if seen == 0:
        return U(0), np.int64(-1)
    if p < stop and (text[p] == SMALL_E or text[p] == LARGE_E):
        exponent, p = _parse_exponent(text, p + 1, stop)
        q += exponent
        if p < 0:
            return U(0), np.int64(-1)
    sign = U(negative) << U(63)
    if w == U(0):
        return sign, np.int64(p)
    bits = _nearest_double(w, q, powers)
    if bits == U(0) or (lost and _nearest_double(w + U(1), q, powers) != bits):
        return U(0), np.int64(-1)
    return sign | bits, np.int64(p)


@inlined
def _parse_exponent(text: Any, p: Any, stop: Any) -> Any:
    """The whole number behind an "e", and the place behind it; -1 if there is none."""
    negative = p < stop and text[p] == MINUS
    if p < stop and (text[p] == MINUS or text[p] == PLUS):
        p += 1
    exponent, first = 0, p
    while p < stop and U(text[p]) - U(ZERO) <= U(9):
        exponent = min(10 * exponent + int(text[p] - ZERO), 100_000)
        p += 1
    return (-exponent if negative else exponent), np.int64(p if p > first else -1)
