"""Dual coordinate ascent on the kernel matrix of a working set, one coordinate at a time or two of a group.

It minimises ``(1/2) beta' (K + diag(ridge)) beta - y' beta + tube sum_i |beta_i|`` over a box, from a point where the
part without absolute values has gradient `g`, and changes `beta` and `g` in place. Single steps are those with the
largest gain. Pairs move along the sum of their group, which stays: sequential minimal optimisation with the
second-order choice of Fan, Chen and Lin (2005), "Working set selection using second order information", WSS 2:

    i = argmax {-g_t : beta_t < high_t}        j = argmax {(g_t - g_i)^2 / a_it : beta_t > low_t, g_t > g_i}
    a_it = K_ii + K_tt - 2 K_it                beta_i += s,  beta_j -= s,  s = (g_j - g_i) / a_ij  cut to the box

in the group where the gain is largest. A step ends where a coordinate reaches zero, if there is a tube: the slope jumps
there.

A step of a pair is two passes over the rows. The first brings the gradient up to date with the last step and finds its
extremes, the second finds j. Both look for the least or the largest whole number: the bits of a double, turned so that
they are in its order, and the bits of a gain in float32 with the row's number behind them. The compiler takes several
of these at a time, which it does not do for the place of an extreme.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saddlesvm.kernel.row_table import Table, holds, whole_table
from saddlesvm.problem.arithmetic import soft_threshold
from saddlesvm.runtime.compiled import (
    allocating_kernel,
    inlined,
    inlined_search,
    instruction,
    kernel,
    searching_kernel,
)  # fmt: skip
from saddlesvm.runtime.exp_log import bits_of, double_of

TAU = 1e-12  # the least curvature along a coordinate or a pair, as in LIBSVM
COLUMNS = 2048  # columns of the kernel rows that are summed while their part of f is near
NEVER = 1e300  # a slope that no step follows
LAST: Any = np.int64(2**63 - 1)  # the largest whole number: no double comes after it
NO_PAIR, NO_ROW = np.int64(-1), np.int64(-2)
LOW_HALF = np.int64(0xFFFFFFFF)

single_bits = instruction("single_bits", lambda x: np.float32(x).view(np.int32))


@allocating_kernel
def submatrix(table: np.ndarray, slots: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """``table[slots][:, columns]`` without the copy of whole rows."""
    out = np.empty((slots.size, columns.size), table.dtype)
    for i in range(slots.size):
        row = table[slots[i]]
        for j in range(columns.size):
            out[i, j] = row[columns[j]]
    return out


@kernel
def add_kernel_rows(table: np.ndarray, slots: np.ndarray, delta: np.ndarray, f: np.ndarray) -> None:
    """``f += sum_k delta[k] table[slots[k]]``, summed in float64."""
    for start in range(0, f.size, COLUMNS):
        end = min(f.size, start + COLUMNS)
        for k in range(slots.size):
            row, d = table[slots[k]], delta[k]
            for j in range(start, end):
                f[j] += d * row[j]


class Small(NamedTuple):
    """The quadratic program over a working set of m rows, one group after the other, each of one or more parts.

    Attributes
    ----------
    table : Table
        Kernel values; of m points, or fewer where rows are signed views of the same points.
    ridge, low, high : ndarray of shape (m,)
    tube : float
    starts : ndarray of shape (parts + 1,)
        Where the rows of each part begin, and m.
    columns : ndarray of shape (parts,)
        The point of the first row of each part; the others follow.
    signs : ndarray of shape (parts,)
        -1.0 and 1.0: the kernel value of two rows is that of their points times both signs.
    groups : ndarray of shape (groups + 1,)
        The first part of each group, and the number of parts.
    offset : float
        Added to all kernel values; zero where pairs are moved.
    """

    table: Table
    ridge: np.ndarray
    low: np.ndarray
    high: np.ndarray
    tube: float
    starts: np.ndarray
    columns: np.ndarray
    signs: np.ndarray
    groups: np.ndarray
    offset: float = 0.0


def plain(
    K: np.ndarray, ridge: np.ndarray, bounds: tuple[np.ndarray, np.ndarray], tube: float, starts: np.ndarray
) -> Small:
    """The program whose rows are points of their own, with a part for each group."""
    parts = starts[:-1], np.ones(starts.size - 1), np.arange(starts.size)
    return Small(whole_table(K), ridge, *bounds, tube, starts, *parts)


@inlined
def rising(g: float, b: float, tube: float) -> float:
    """The slope of the program along a coordinate that rises from b."""
    return g + (tube if b >= 0.0 else -tube)


@inlined
def falling(g: float, b: float, tube: float) -> float:
    """The slope of the program along a coordinate that falls from b, counted upwards."""
    return g + (tube if b > 0.0 else -tube)


@kernel
def ascend_singly(small: Small, g: np.ndarray, beta: np.ndarray, accuracy: float, most: int) -> int:
    """Single steps, largest gain first, until the violation is at most `accuracy`, or a kernel row is needed that is
    computed elsewhere; the number of steps made.

    ``s_t = clip(soft(beta_t - g_t / q_t, tube / q_t)) - beta_t`` with ``q_t = K_tt + r_t`` gains
    ``-s_t g_t - q_t s_t^2 / 2`` and what the absolute value falls by.
    """
    table, ridge, low, high, tube = small.table, small.ridge, small.low, small.high, small.tube
    own, offset = table.diagonal, small.offset
    for step in range(most):
        i, best, worst, s = -1, 0.0, 0.0, 0.0
        for t in range(g.size):
            up, down = rising(g[t], beta[t], tube), falling(g[t], beta[t], tube)
            if (up < 0.0 and beta[t] < high[t]) or (down > 0.0 and beta[t] > low[t]):
                q = max(own[t] + offset + ridge[t], TAU)
                aim = soft_threshold(beta[t] - g[t] / q, tube / q)
                move = min(max(aim, low[t]), high[t]) - beta[t]
                gain = -move * (g[t] + 0.5 * q * move) - tube * (abs(beta[t] + move) - abs(beta[t]))
                worst = max(worst, -up if up < 0.0 else down)
                if gain > best:
                    i, best, s = t, gain, move
        if i < 0 or worst <= accuracy:
            return step
        if not holds(table, i):
            return step
        beta[i] = min(max(beta[i] + s, low[i]), high[i])
        Ki = table.values[table.slots[i]]
        for t in range(g.size):
            g[t] += s * (Ki[t] + offset)
        g[i] += s * ridge[i]
    return most


def ascend_pairs(small: Small, g: np.ndarray, beta: np.ndarray, accuracy: float, most: int) -> int:
    """Pair steps until the violation is at most `accuracy`, `most` were made, or a kernel row is needed that is
    computed elsewhere; the number of steps made.

    `beta` and the gradient `g` of the part without absolute values are changed in place.
    """
    return int(pair_steps(small, g, beta, np.empty((3, g.size)), np.empty((small.groups.size, 2)), accuracy, most))


@inlined
def in_order(x: float) -> Any:
    """The bits of a double as a whole number that is the larger, the larger x is."""
    bits = bits_of(x)
    return bits ^ ((bits >> 63) & LAST)


@inlined
def of_order(number: Any) -> float:
    """The double that :func:`in_order` has turned into this number."""
    return double_of(number ^ ((number >> 63) & LAST))


@inlined
def ways(b: float, low: float, high: float, tube: float) -> tuple[float, float]:
    """What the tube adds to the slope upwards and downwards from b; beyond every slope where b can not go there."""
    up = (tube if b >= 0.0 else -tube) if b < high else NEVER
    down = (tube if b > 0.0 else -tube) if b > low else -NEVER
    return up, down


@inlined_search
def place_of(value: float, slopes: np.ndarray, ups: np.ndarray) -> Any:
    """The first place where both add up to a value; the last place where they do nowhere, as after an overflow."""
    place: Any = np.int64(slopes.size - 1)
    for t in range(slopes.size):
        place = min(place, np.int64(t) if slopes[t] + ups[t] == value else LAST)
    return place


@inlined_search
def shifted(slopes: np.ndarray, ways_up: np.ndarray, ways_down: np.ndarray, one: np.ndarray, other: np.ndarray,
            move: float) -> Any:  # fmt: skip
    """Move the slopes by ``move (one - other)``; the least upwards and the steepest downwards, as ordered numbers, the
    second with its sign turned."""
    least = steepest = LAST
    for t in range(slopes.size):
        slope = slopes[t] + move * (one[t] - other[t])
        slopes[t] = slope
        least = min(least, in_order(slope + ways_up[t]))
        steepest = min(steepest, in_order(-(slope + ways_down[t])))
    return least, steepest


@inlined_search
def largest_gain(slopes: np.ndarray, ways_down: np.ndarray, bends: np.ndarray, across: np.ndarray, bend: float,
                 lowest: float, unit: float, first: int) -> Any:  # fmt: skip
    """The largest gain of a pair with one row given: its bits in float32, and behind them the number of the other row,
    `first` added to it.

    Parameters
    ----------
    bend, lowest : float
        Curvature and slope along the coordinate of the row that is given.
    unit : float
        The largest difference of two slopes, in units of which gains stay within the range of float32.
    """
    scale, stiffness = 1.0 / unit, 1.0 / max(bend, TAU)
    found: Any = np.int64(0)
    for t in range(slopes.size):
        slope = np.float32(max((slopes[t] + ways_down[t] - lowest) * scale, 0.0))
        own = np.float32(max(bend + bends[t] - 2.0 * across[t], TAU) * stiffness)
        found = max(found, (np.int64(single_bits(slope * slope / own)) << 32) | np.int64(t + first))
    return found


@inlined
def part_of(row: Any, starts: np.ndarray) -> int:
    """The part in which a row is."""
    part = 0
    while starts[part + 1] <= row:
        part += 1
    return part


@inlined
def point_of(row: Any, starts: np.ndarray, columns: np.ndarray) -> Any:
    """The point of a row."""
    part = part_of(row, starts)
    return columns[part] + row - starts[part]


@inlined_search
def find_extremes(small: Small, g: np.ndarray, room: np.ndarray, extremes: np.ndarray, a: Any, b: Any,
                  move: float) -> float:  # fmt: skip
    """Move the gradient by ``move (K_a - K_b)``, of the slots a and b, find the extreme slopes of each group, and
    return the violation."""
    K, starts, columns, signs, groups = small.table.values, small.starts, small.columns, small.signs, small.groups
    worst = 0.0
    for group in range(groups.size - 1):
        least = steepest = LAST
        for part in range(groups[group], groups[group + 1]):
            first, end, column = starts[part], starts[part + 1], columns[part]
            one, other = K[a][column : column + end - first], K[b][column : column + end - first]
            own = move * signs[part]
            near, far = shifted(g[first:end], room[1][first:end], room[2][first:end], one, other, own)
            least, steepest = min(least, near), min(steepest, far)
        extremes[group, 0], extremes[group, 1] = of_order(least), -of_order(steepest)
        worst = max(worst, extremes[group, 1] - extremes[group, 0])
    return worst


@inlined_search
def best_pair(small: Small, g: np.ndarray, room: np.ndarray, extremes: np.ndarray) -> Any:
    """The rows i and j of the pair to move, how far it would move without a box, and the sign of its group; i is
    `NO_PAIR` where there is none, `NO_ROW` where the choice needs the kernel row of j first."""
    table, starts, columns, signs, groups = small.table, small.starts, small.columns, small.signs, small.groups
    own, up, down = room[0], room[1], room[2]
    i, j, gain, step, sign = NO_PAIR, NO_PAIR, 0.0, 0.0, 1.0
    for group in range(groups.size - 1):
        lowest, unit = extremes[group, 0], extremes[group, 1] - extremes[group, 0]
        if unit <= 0.0:
            continue
        begin, end = starts[groups[group]], starts[groups[group + 1]]
        p = begin + place_of(lowest, g[begin:end], up[begin:end])
        slot, found = table.slots[point_of(p, starts, columns)], np.int64(0)
        if slot < 0:
            return NO_ROW, np.int64(p), 0.0, 1.0
        Kp = table.values[slot]
        for part in range(groups[group], groups[group + 1]):
            first, last, column = starts[part], starts[part + 1], columns[part]
            across = Kp[column : column + last - first]
            slopes, ways_down = g[first:last], down[first:last]
            found = max(found, largest_gain(slopes, ways_down, own[first:last], across, own[p], lowest, unit, first))
        q = np.int64(found & LOW_HALF)
        bend = max(own[p] + own[q] - 2.0 * Kp[point_of(q, starts, columns)], TAU)
        slope = g[q] + down[q] - lowest
        if found >> 32 > 0 and slope * slope / bend > gain:
            i, j, gain, step, sign = p, q, slope * slope / bend, slope / bend, signs[groups[group]]
    return i, j, step, sign


@searching_kernel
def pair_steps(small: Small, g: np.ndarray, beta: np.ndarray, room: np.ndarray, extremes: np.ndarray, accuracy: float,
               most: int) -> int:  # fmt: skip
    """See :func:`ascend_pairs`.

    Parameters
    ----------
    room : ndarray of shape (3, m) or larger
        Overwritten: the curvature along each coordinate, and :func:`ways`.
    extremes : ndarray of shape (groups, 2) or larger
        Overwritten: the least slope upwards and the largest downwards, in each group.
    """
    table, ridge, low, high, tube, starts, columns = small[:7]
    own, up, down = room[0], room[1], room[2]
    for part in range(columns.size):
        for t in range(starts[part], starts[part + 1]):
            point = columns[part] + t - starts[part]
            own[t] = table.diagonal[point] + ridge[t]
            up[t], down[t] = ways(beta[t], low[t], high[t], tube)
    step, move, a, b = 0, 0.0, np.int64(0), np.int64(0)
    while True:
        worst = find_extremes(small, g, room, extremes, a, b, move)
        if worst <= accuracy or step == most:
            return step
        i, j, s, sign = best_pair(small, g, room, extremes)
        if i == NO_PAIR or not holds(table, point_of(j, starts, columns)):
            return step
        if i == NO_ROW:
            move = 0.0
            continue
        top = 0.0 if tube > 0.0 and beta[i] < 0.0 < high[i] else high[i]
        floor = 0.0 if tube > 0.0 and beta[j] > 0.0 > low[j] else low[j]
        room_i, room_j = top - beta[i], beta[j] - floor
        s = min(s, room_i, room_j)
        beta[i] = top if s == room_i else beta[i] + s
        beta[j] = floor if s == room_j else beta[j] - s
        up[i], down[i] = ways(beta[i], low[i], high[i], tube)
        up[j], down[j] = ways(beta[j], low[j], high[j], tube)
        g[i] += s * ridge[i]
        g[j] -= s * ridge[j]
        a, b = table.slots[point_of(i, starts, columns)], table.slots[point_of(j, starts, columns)]
        move = s * sign
        step += 1
