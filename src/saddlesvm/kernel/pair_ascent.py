"""Dual coordinate ascent on the kernel matrix of a working set: one coordinate at a time, or a
pair.

It minimises ``(1/2) beta' K beta - y' beta + tube sum_i |beta_i|`` over a box. The
callers pass the gradient `g` of the part without absolute values; `beta` and `g` are changed in
place.

Single steps take the coordinate with the largest gain. A pair belongs to a single group of rows and
keeps the sum of its coefficients: sequential minimal optimisation (Platt 1999) with the
second-order choice of Fan, Chen and Lin (2005), "Working set selection using second order
information", WSS 2:

    i = argmax {-g_t : beta_t < high_t}
    j = argmax {(g_t - g_i)^2 / a_it : beta_t > low_t, g_t > g_i},    a_it = K_ii + K_tt - 2 K_it
    beta_i += s,  beta_j -= s,  s = (g_j - g_i) / a_ij  cut to the box

With several groups, the pair of the group with the larger gain moves. With a tube, a step also ends
at which a coordinate reaches zero, because the slope jumps there.

A step of a pair is two passes over the rows. The first adds the last step to the gradient and finds
its extremes, the second finds j. Both search for an extreme whole number: a double whose bits are
turned so that they ascend with it, or the bits of a gain in float32 with the row's number behind
them. The compiler vectorises such a search, but not the search for the place of an extreme.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saddlesvm.kernel.row_table import KernelTable, holds, place_of, whole_table
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

TAU = 1e-12  # least curvature along a coordinate or a pair, as in LIBSVM
# Columns of kernel rows summed at once, so that their part of f stays in the cache (16 kB, guessed)
COLUMNS = 2048
NEVER = 1e300  # stands for a slope that no step follows
LAST: Any = np.int64(2**63 - 1)  # the largest whole number; no double comes after it
NO_PAIR = np.int64(-1)  # answers of best_pair that are no row
NO_ROW = np.int64(-2)
LOW_HALF = np.int64(0xFFFFFFFF)  # the 32 bits with the number of a row

single_bits = instruction("single_bits", lambda x: np.float32(x).view(np.int32))


class QuadraticProgram(NamedTuple):
    """The quadratic program over a working set of m rows, which stand group by group.

    Attributes
    ----------
    table : KernelTable
        Kernel values of m points, or of fewer if rows are signed views of the same points.
    low, high : ndarray of shape (m,)
    tube : float
    starts : ndarray of shape (parts + 1,)
        First row of each part, and m.
    columns : ndarray of shape (parts,)
        Point of the first row of each part; the points of the other rows follow.
    signs : ndarray of shape (parts,)
        -1.0 and 1.0: the kernel value of two rows is that of their points times both signs.
    groups : ndarray of shape (groups + 1,)
        First part of each group, and the number of parts.
    segments : int ndarray of shape (parts,)
        The segment of the table's rows that has the values with the points of each part.
    """

    table: KernelTable
    low: np.ndarray
    high: np.ndarray
    tube: float
    starts: np.ndarray
    columns: np.ndarray
    signs: np.ndarray
    groups: np.ndarray
    segments: np.ndarray


def program_over(
    K: np.ndarray,
    bounds: tuple[np.ndarray, np.ndarray],
    tube: float,
    starts: np.ndarray,
) -> QuadraticProgram:
    """Return the program over the rows of a kernel matrix, a part for each group."""
    columns = starts[:-1]
    signs = np.ones(columns.size)
    groups = np.arange(starts.size)
    segments = np.zeros(columns.size, dtype=np.int64)
    return QuadraticProgram(whole_table(K), *bounds, tube, starts, columns, signs, groups, segments)


@allocating_kernel
def submatrix(table: np.ndarray, slots: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return ``table[slots][:, columns]`` without a copy of whole rows."""
    out = np.empty((slots.size, columns.size), table.dtype)
    for i in range(slots.size):
        row = table[slots[i]]
        for j in range(columns.size):
            out[i, j] = row[columns[j]]
    return out


@kernel
def add_kernel_rows(
    table: np.ndarray, slots: np.ndarray, delta: np.ndarray, f: np.ndarray
) -> None:  # fmt: skip
    """Add ``sum_k delta[k] table[slots[k]]`` to f, in float64."""
    # A stretch of f stays in the cache while all kernel rows are added to it. Four rows at a time
    # take half the time of one: f is read and written once for all four.
    last_four = slots.size - slots.size % 4
    for start in range(0, f.size, COLUMNS):
        end = min(f.size, start + COLUMNS)
        for k in range(0, last_four, 4):
            row_0 = table[slots[k]]
            row_1 = table[slots[k + 1]]
            row_2 = table[slots[k + 2]]
            row_3 = table[slots[k + 3]]
            d_0 = delta[k]
            d_1 = delta[k + 1]
            d_2 = delta[k + 2]
            d_3 = delta[k + 3]
            for j in range(start, end):
                f[j] += d_0 * row_0[j] + d_1 * row_1[j] + d_2 * row_2[j] + d_3 * row_3[j]
        for k in range(last_four, slots.size):
            row = table[slots[k]]
            for j in range(start, end):
                f[j] += delta[k] * row[j]


@inlined
def slope_up(g: float, b: float, tube: float) -> float:
    """Return the slope of the program along a coordinate that rises from b."""
    return g + (tube if b >= 0.0 else -tube)


@inlined
def slope_down(g: float, b: float, tube: float) -> float:
    """Return the slope along a coordinate that falls from b, counted upwards."""
    return g + (tube if b > 0.0 else -tube)


@kernel
def ascend_singly(
    program: QuadraticProgram, g: np.ndarray, beta: np.ndarray, accuracy: float, most: int
) -> int:  # fmt: skip
    """Take single steps, largest gain first; return their number.

    They end at a violation of at most `accuracy`, after `most` steps, or if a kernel row must be
    computed elsewhere.

    ``s_t = clip(soft(beta_t - g_t / q_t, tube / q_t)) - beta_t`` with ``q_t = K_tt`` gains
    ``-s_t g_t - q_t s_t^2 / 2``, and what the absolute value falls by.
    """
    table = program.table
    low = program.low
    high = program.high
    tube = program.tube
    diagonal = table.diagonal
    for step in range(most):
        # Choose the coordinate with the largest gain, and measure the largest violation.
        i = -1
        best = 0.0
        worst = 0.0
        s = 0.0
        for t in range(g.size):
            up = slope_up(g[t], beta[t], tube)
            down = slope_down(g[t], beta[t], tube)
            if (up < 0.0 and beta[t] < high[t]) or (down > 0.0 and beta[t] > low[t]):
                # The minimum along the coordinate: a soft threshold, cut to the box.
                q = max(diagonal[t], TAU)
                aim = soft_threshold(beta[t] - g[t] / q, tube / q)
                move = min(max(aim, low[t]), high[t]) - beta[t]
                gain = -move * (g[t] + 0.5 * q * move) - tube * (abs(beta[t] + move) - abs(beta[t]))
                worst = max(worst, -up if up < 0.0 else down)
                if gain > best:
                    i = t
                    best = gain
                    s = move
        if i < 0 or worst <= accuracy:
            return step
        if not holds(table, i, 0):
            return step
        # Take the step, and add its kernel row to the gradient.
        beta[i] = min(max(beta[i] + s, low[i]), high[i])
        place = place_of(table, i, 0, 0)
        row = table.values[place : place + g.size]
        for t in range(g.size):
            g[t] += s * row[t]
    return most


def ascend_pairs(
    program: QuadraticProgram, g: np.ndarray, beta: np.ndarray, accuracy: float, most: int
) -> int:
    """Take pair steps as :func:`pair_steps`, with room of its own; return their number."""
    room = np.empty((3, g.size))
    extremes = np.empty((program.groups.size, 2))
    return int(pair_steps(program, g, beta, room, extremes, accuracy, most))


@inlined
def ordered_bits(x: float) -> np.int64:
    """Return the bits of a double as a whole number that ascends with x."""
    # Negative doubles descend as whole numbers: turn all their bits but the sign.
    bits = bits_of(x)
    return bits ^ ((bits >> 63) & LAST)


@inlined
def double_of_ordered(number: np.int64) -> float:
    """Return the double that :func:`ordered_bits` turned into this number."""
    return double_of(number ^ ((number >> 63) & LAST))


@inlined
def slopes_of_tube(b: float, low: float, high: float, tube: float) -> tuple[float, float]:
    """Return what the tube adds to the slopes up and down from b, if b can move so."""
    up = NEVER
    if b < high:
        up = tube if b >= 0.0 else -tube
    down = -NEVER
    if b > low:
        down = tube if b > 0.0 else -tube
    return up, down


@inlined_search
def find_slope(value: float, slopes: np.ndarray, ups: np.ndarray) -> np.int64:
    """Return the first place at which both add up to a value, or the last place."""
    place: Any = np.int64(slopes.size - 1)
    for t in range(slopes.size):
        place = min(place, np.int64(t) if slopes[t] + ups[t] == value else LAST)
    return place


@inlined_search
def move_slopes(
    slopes: np.ndarray,
    ups: np.ndarray,
    downs: np.ndarray,
    row_i: np.ndarray,
    row_j: np.ndarray,
    move: float,
) -> tuple[np.int64, np.int64]:  # fmt: skip
    """Add ``move (row_i - row_j)`` to the slopes; return the extreme slopes.

    Both are ordered bits, the second with its sign turned.
    """
    least = LAST
    steepest = LAST
    for t in range(slopes.size):
        slope = slopes[t] + move * (row_i[t] - row_j[t])
        slopes[t] = slope
        least = min(least, ordered_bits(slope + ups[t]))
        steepest = min(steepest, ordered_bits(-(slope + downs[t])))
    return least, steepest


@inlined_search
def largest_gain(
    slopes: np.ndarray,
    downs: np.ndarray,
    bends: np.ndarray,
    row_i: np.ndarray,
    bend: float,
    lowest: float,
    unit: float,
    first: int,
) -> np.int64:  # fmt: skip
    """Return the largest gain of a pair with i given, in bits, and behind it the row j.

    Parameters
    ----------
    bend, lowest : float
        Curvature and slope along the coordinate of i.
    unit : float
        Largest difference of two slopes: gains in its units stay within the range of float32.
    first : int
        Added to the place of j.
    """
    scale = 1.0 / unit
    stiffness = 1.0 / max(bend, TAU)
    found: Any = np.int64(0)
    for t in range(slopes.size):
        # (g_t - g_i)^2 / a_it, both in units that suit float32; a row that cannot fall has slope 0.
        slope = np.float32(max((slopes[t] + downs[t] - lowest) * scale, 0.0))
        curvature = np.float32(max(bend + bends[t] - 2.0 * row_i[t], TAU) * stiffness)
        found = max(
            found, (np.int64(single_bits(slope * slope / curvature)) << 32) | np.int64(t + first)
        )
    return found


@inlined
def part_of(row: int | np.int64, starts: np.ndarray) -> int:
    """Return the part that holds a row."""
    part = 0
    while starts[part + 1] <= row:
        part += 1
    return part


@inlined
def point_of(row: int | np.int64, starts: np.ndarray, columns: np.ndarray) -> int:
    """Return the point of a row."""
    part = part_of(row, starts)
    return columns[part] + row - starts[part]


@inlined
def holds_parts(program: QuadraticProgram, point: int) -> bool:
    """Return True if a point's kernel values with all parts are held, computed if need be."""
    held = True
    for segment in program.segments:
        held = held and holds(program.table, point, segment)
    return held


@inlined_search
def find_extremes(
    program: QuadraticProgram,
    g: np.ndarray,
    room: np.ndarray,
    extremes: np.ndarray,
    point_i: int,
    point_j: int,
    move: float,
) -> float:  # fmt: skip
    """Add ``move (K_i - K_j)`` to the gradient; find each group's extremes and violation."""
    table = program.table
    up = room[1]
    down = room[2]
    starts = program.starts
    columns = program.columns
    signs = program.signs
    groups = program.groups
    worst = 0.0
    for group in range(groups.size - 1):
        least = LAST
        steepest = LAST
        for part in range(groups[group], groups[group + 1]):
            # The rows of a part are consecutive points: a stretch of each kernel row.
            first = starts[part]
            end = starts[part + 1]
            column = columns[part]
            segment = program.segments[part]
            place_i = place_of(table, point_i, segment, column)
            place_j = place_of(table, point_j, segment, column)
            row_i = table.values[place_i : place_i + end - first]
            row_j = table.values[place_j : place_j + end - first]
            signed_move = move * signs[part]
            least_here, steepest_here = move_slopes(
                g[first:end], up[first:end], down[first:end], row_i, row_j, signed_move
            )
            least = min(least, least_here)
            steepest = min(steepest, steepest_here)
        extremes[group, 0] = double_of_ordered(least)
        extremes[group, 1] = -double_of_ordered(steepest)
        # The violation: how far the steepest slope downwards exceeds the least slope upwards.
        worst = max(worst, extremes[group, 1] - extremes[group, 0])
    return worst


@inlined_search
def best_pair(
    program: QuadraticProgram, g: np.ndarray, room: np.ndarray, extremes: np.ndarray
) -> tuple[int | np.int64, int | np.int64, float, float]:
    """Return the rows of the pair to move, its step without a box, and its group's sign.

    i is `NO_PAIR` if there is none, and `NO_ROW` if a kernel row must be computed elsewhere.
    """
    table = program.table
    starts = program.starts
    columns = program.columns
    signs = program.signs
    groups = program.groups
    curvature = room[0]
    up = room[1]
    down = room[2]
    i = NO_PAIR
    j = NO_PAIR
    gain = 0.0
    step = 0.0
    sign = 1.0
    for group in range(groups.size - 1):
        lowest = extremes[group, 0]
        unit = extremes[group, 1] - extremes[group, 0]
        if unit <= 0.0:
            continue
        # p is i of the module's formula in this group: the row with the least slope upwards.
        begin = starts[groups[group]]
        end = starts[groups[group + 1]]
        p = begin + find_slope(lowest, g[begin:end], up[begin:end])
        point = point_of(p, starts, columns)
        if not holds_parts(program, point):
            return NO_ROW, NO_ROW, 0.0, 1.0
        # q is j: the row with the largest gain beside p.
        found = np.int64(0)
        for part in range(groups[group], groups[group + 1]):
            first = starts[part]
            last = starts[part + 1]
            column = columns[part]
            place = place_of(table, point, program.segments[part], column)
            row_i = table.values[place : place + last - first]
            slopes = g[first:last]
            downs = down[first:last]
            found = max(
                found,
                largest_gain(
                    slopes, downs, curvature[first:last], row_i, curvature[p], lowest, unit, first
                ),
            )
        q = np.int64(found & LOW_HALF)
        # The gain in float64 decides between the groups.
        part = part_of(q, starts)
        other = point_of(q, starts, columns)
        both = table.values[place_of(table, point, program.segments[part], other)]
        bend = max(curvature[p] + curvature[q] - 2.0 * both, TAU)
        slope = g[q] + down[q] - lowest
        if found >> 32 > 0 and slope * slope / bend > gain:
            i = p
            j = q
            gain = slope * slope / bend
            step = slope / bend
            sign = signs[groups[group]]
    return i, j, step, sign


@searching_kernel
def pair_steps(
    program: QuadraticProgram,
    g: np.ndarray,
    beta: np.ndarray,
    room: np.ndarray,
    extremes: np.ndarray,
    accuracy: float,
    most: int,
) -> int:  # fmt: skip
    """Take pair steps; return their number.

    They end at a violation of at most `accuracy`, after `most` steps, or if a kernel row must be
    computed elsewhere.

    Parameters
    ----------
    room : ndarray of shape (3, m) or larger
        Overwritten: the curvature along each coordinate, and :func:`slopes_of_tube`.
    extremes : ndarray of shape (groups, 2) or larger
        Overwritten: the least slope upwards and the largest downwards, in each group.
    """
    table = program.table
    low = program.low
    high = program.high
    tube = program.tube
    starts = program.starts
    columns = program.columns
    curvature = room[0]
    up = room[1]
    down = room[2]
    # The curvature K_tt of each coordinate, and what a tube adds to its slopes.
    for part in range(columns.size):
        for t in range(starts[part], starts[part + 1]):
            point = columns[part] + t - starts[part]
            curvature[t] = table.diagonal[point]
            up[t], down[t] = slopes_of_tube(beta[t], low[t], high[t], tube)
    # The first pass moves nothing: it finds the extremes of the gradient as it is.
    step = 0
    move = 0.0
    point_i = 0
    point_j = 0
    while True:
        worst = find_extremes(program, g, room, extremes, point_i, point_j, move)
        if worst <= accuracy or step == most:
            return step
        i, j, s, sign = best_pair(program, g, room, extremes)
        if i < 0 or not holds_parts(program, point_of(j, starts, columns)):
            return step
        # Cut the step to the box of both, and to zero if there is a tube.
        top = 0.0 if tube > 0.0 and beta[i] < 0.0 < high[i] else high[i]
        floor = 0.0 if tube > 0.0 and beta[j] > 0.0 > low[j] else low[j]
        room_i = top - beta[i]
        room_j = beta[j] - floor
        s = min(s, room_i, room_j)
        # A coordinate that reaches its end is set to it exactly.
        beta[i] = top if s == room_i else beta[i] + s
        beta[j] = floor if s == room_j else beta[j] - s
        up[i], down[i] = slopes_of_tube(beta[i], low[i], high[i], tube)
        up[j], down[j] = slopes_of_tube(beta[j], low[j], high[j], tube)
        # The next pass adds the kernel rows to the gradient.
        point_i = point_of(i, starts, columns)
        point_j = point_of(j, starts, columns)
        move = s * sign
        step += 1
