"""Dual coordinate descent by several threads at once: each has rows and a view of w of its own, and they meet often.

A pass is cut into rounds. In a round every thread visits the next rows of its part against its view of w; then each
tells the others how w moved, and they go on from the same w by the rule of :mod:`saddlesvm.solvers.aggregation`. The
shorter the rounds, the closer to what one thread would do; so the features that most rows share (of sparse data) are
brought together after every round, and the others after some. All threads work out the common decisions alike, each
for itself: what is shared is written by one, and read by the others after they have met.

Source: Ioannou, Mendler-Duenner and Parnell (2019), "SySCD: a system-aware parallel coordinate descent algorithm", for
views of threads that are brought together in rounds; Ma and others (2015) for the scaling.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saddlesvm.certificate import conjugate_sum
from saddlesvm.compiled import inlined, kernel
from saddlesvm.problem import Pointwise, Terms
from saddlesvm.randomness import copy_items
from saddlesvm.solvers.aggregation import SIGMA, be_careful, follow, note, safe_share
from saddlesvm.solvers.barrier import meet
from saddlesvm.solvers.base import ESTIMATE, SCALE, move_offset
from saddlesvm.solvers.dcd import LENGTH, Deck, Rules, call_back, descend

ROUND_VALUES = 40_000.0  # values that a thread visits between two meetings, at most: some 30 us
ROUNDS, MOST_ROUNDS = 256, 512  # of a pass, at least and at most: with fewer, the last powers of ten take many passes
FEWEST_VALUES = 1_000.0  # but no round has fewer values
WIDE_VALUES = 32.0  # values that a thread visits for each place of w, before all are brought together
CHUNK = 512  # places of w that are brought together at a time: they stay in the nearest cache
# What each thread says of its part: rows of the pass; whether all are active; sum of conjugates; squared norm of
# its share of w, of how that moved in the pass, and its product with where it was; residual and scale of its estimate.
ROWS, ALL_BACK, CONJUGATES, SQUARE, MOVED, ALONG, RESIDUALS, SCALES, SAID = range(9)
# Numbers of the run: rounds done of the present pass; the sum of conjugates when it began (NaN where it is not known);
# the estimate of the relative gap.
ROUND, BEFORE, GAP, NUMBERS = range(4)


class Team(NamedTuple):
    """What the threads share, all of the precision of w but for the numbers."""

    moves: np.ndarray  # (threads, d + 1 and some): what each tells the others
    often: np.ndarray  # features that are brought together after every round; empty for all
    said: np.ndarray  # (threads, SAID and some)
    gate: np.ndarray
    kept_w: np.ndarray  # the point that the pass began with
    kept_alpha: np.ndarray
    values_per_row: float
    few: int  # active rows up to which one thread is to go on alone
    rounding: float  # relative error of the dual objective that w in its precision gives


class Own(NamedTuple):
    """What thread k has for itself, in cache lines that no other thread writes to."""

    k: int
    w: np.ndarray  # (d + 1,): the w that it works on
    base: np.ndarray  # (d + 1,): w when the threads last met
    meters: np.ndarray
    scaling: np.ndarray
    numbers: np.ndarray
    random: np.ndarray
    offset: np.ndarray


@inlined
def share(size: int, k: int, parts: int) -> int:
    """Where the k-th of `parts` even shares of `size` begins."""
    return size * k // parts


@inlined
def rounds_of(values: float) -> int:
    """Rounds of a pass in which each thread visits so many values."""
    return int(max(1.0, min(max(values / ROUND_VALUES, float(ROUNDS)), values / FEWEST_VALUES, float(MOST_ROUNDS))))


@inlined
def total(team: Team, what: int) -> float:
    """Sum over the threads of what they said."""
    answer = 0.0
    for k in range(team.said.shape[0]):
        answer += team.said[k, what]
    return answer


@inlined
def tell(view: np.ndarray, base: np.ndarray, inverse: Any, move: np.ndarray) -> None:
    """``move = (view - base) / sigma``."""
    for j in range(base.size):
        move[j] = (view[j] - base[j]) * inverse


@inlined
def add_move(move: np.ndarray, view: np.ndarray) -> float:
    """``view += move``; its squared norm."""
    squares = view.dtype.type(0.0)
    for j in range(view.size):
        view[j] += move[j]
        squares += move[j] * move[j]
    return np.float64(squares)


@inlined
def settle(view: np.ndarray, base: np.ndarray) -> float:
    """``base = view``; the squared norm of its change."""
    squares = view.dtype.type(0.0)
    for j in range(view.size):
        change = view[j] - base[j]
        squares += change * change
        base[j] = view[j]
    return np.float64(squares)


@inlined
def take_all(team: Team, own: Own) -> Any:
    """Add the moves of all threads to the own w: the squared norm of their sum, and the sum of theirs."""
    square_of_sum = sum_of_squares = 0.0
    size = own.base.size
    for start in range(0, size, CHUNK):
        stop = min(start + CHUNK, size)
        view, base = own.w[start:stop], own.base[start:stop]
        copy_items(base, base.size, view)
        for other in range(team.moves.shape[0]):
            sum_of_squares += add_move(team.moves[other, start:stop], view)
        square_of_sum += settle(view, base)
    return square_of_sum, sum_of_squares


@inlined
def tell_often(team: Team, own: Own, inverse: Any) -> None:
    """The own move of the frequent features."""
    move = team.moves[own.k]
    for p in range(team.often.size):
        j = team.often[p]
        move[p] = (own.w[j] - own.base[j]) * inverse


@inlined
def take_often(team: Team, own: Own) -> Any:
    """Add the moves of all threads to the frequent features of the own w; the two sums of the rule."""
    moves = team.moves
    square_of_sum = sum_of_squares = 0.0
    for p in range(team.often.size):
        change = moves[0, p]
        sum_of_squares += np.float64(change * change)
        for other in range(1, moves.shape[0]):
            change += moves[other, p]
            sum_of_squares += np.float64(moves[other, p] * moves[other, p])
        square_of_sum += np.float64(change * change)
        j = team.often[p]
        own.base[j] += change
        own.w[j] = own.base[j]
    return square_of_sum, sum_of_squares


@inlined
def bring_together(team: Team, own: Own, everything: bool) -> None:
    """Go on from the same w in all threads, and let sigma follow."""
    threads = team.moves.shape[0]
    inverse = own.w.dtype.type(1.0 / own.scaling[SIGMA])
    if everything or team.often.size == 0:
        tell(own.w, own.base, inverse, team.moves[own.k])
        meet(team.gate, threads)
        sums = take_all(team, own)
    else:
        tell_often(team, own, inverse)
        meet(team.gate, threads)
        sums = take_often(team, own)
    meet(team.gate, threads)
    note(own.scaling, sums[0], sums[1])
    if everything:
        follow(own.scaling, threads)


@inlined
def keep(team: Team, own: Own, deck: Deck, alpha: np.ndarray) -> None:
    """Remember this thread's share of the point that a pass begins with."""
    size, threads = own.base.size, team.moves.shape[0]
    for j in range(share(size, own.k, threads), share(size, own.k + 1, threads)):
        team.kept_w[j] = own.base[j]
    for i in deck.members:
        team.kept_alpha[i] = alpha[i]


@inlined
def go_back(team: Team, own: Own, deck: Deck, alpha: np.ndarray, part: float) -> None:
    """Take only the share `part` of what the pass changed."""
    for j in range(own.base.size):
        own.base[j] = team.kept_w[j] + part * (own.base[j] - team.kept_w[j])
        own.w[j] = own.base[j]
    for i in deck.members:
        alpha[i] = team.kept_alpha[i] + part * (alpha[i] - team.kept_alpha[i])


@inlined
def say(terms: Terms, deck: Deck, alpha: np.ndarray, active: int, team: Team, own: Own) -> None:
    """This thread's sums at the end of a pass."""
    size, threads, said = own.base.size, team.moves.shape[0], team.said[own.k]
    square = moved = along = 0.0
    for j in range(share(size, own.k, threads), share(size, own.k + 1, threads)):
        w, kept = np.float64(own.base[j]), np.float64(team.kept_w[j])
        square += w * w
        moved += (w - kept) * (w - kept)
        along += kept * (w - kept)
    said[SQUARE], said[MOVED], said[ALONG] = square, moved, along
    said[CONJUGATES] = conjugate_sum(Pointwise(terms.loss, terms.y, terms.weights), deck.members, alpha, 1.0)
    said[RESIDUALS], said[SCALES] = own.meters[ESTIMATE] * own.meters[SCALE], own.meters[SCALE]
    said[ALL_BACK] = 1.0 if active == deck.members.size else 0.0


@inlined
def keep_from_falling(terms: Terms, deck: Deck, alpha: np.ndarray, team: Team, own: Own) -> None:
    """Go back some of the way where the pass lowered the dual objective (sigma was too small), and be careful."""
    before, conjugates = own.numbers[BEFORE], total(team, CONJUGATES)
    own.numbers[BEFORE] = conjugates
    rise = terms.C * (before - conjugates) - total(team, ALONG)
    rounding = team.rounding * (terms.C * abs(conjugates) + total(team, SQUARE))
    if rise - 0.5 * total(team, MOVED) < -rounding:
        go_back(team, own, deck, alpha, safe_share(rise, total(team, MOVED)))
        own.numbers[BEFORE] = np.nan
        be_careful(own.scaling, team.moves.shape[0])


@inlined
def end_together(terms: Terms, deck: Deck, rules: Rules, alpha: np.ndarray, active: int, team: Team, own: Own) -> int:
    """Judge a pass of all parts: note the estimate; all rows come back together. How many of this part are active."""
    threads = team.moves.shape[0]
    say(terms, deck, alpha, active, team, own)
    meet(team.gate, threads)
    scale, back = total(team, SCALES), total(team, ALL_BACK)
    own.numbers[GAP] = total(team, RESIDUALS) / scale if scale > 0.0 else np.inf
    keep_from_falling(terms, deck, alpha, team, own)
    move_offset(own.base, own.offset)
    own.w[own.w.size - 1] = own.base[own.base.size - 1]
    if 0.0 < back < threads:
        active = call_back(deck, rules, own.meters, active)
    meet(team.gate, threads)
    return active


@kernel
def descend_together(
    terms: Terms,
    deck: Deck,
    rules: Rules,
    alpha: np.ndarray,
    position: int,
    active: int,
    visits: int,
    target: float,
    team: Team,
    own: Own,
    nothing: np.ndarray,
) -> Any:
    """What one thread does until all together have done `visits` of theirs, or a pass ends with an estimate of at most
    `target`, or few active rows are left: its place in the pass, its active rows and its visits."""
    threads, done, left, numbers = team.moves.shape[0], 0, float(visits), own.numbers
    wide = 1 + int(WIDE_VALUES * own.base.size / ROUND_VALUES)
    while left > 0.0:
        length = active if numbers[ROUND] == 0.0 else int(own.meters[LENGTH])
        team.said[own.k, ROWS] = length
        meet(team.gate, threads)
        rows = total(team, ROWS)
        if numbers[ROUND] == 0.0 and rows <= team.few:
            break
        rounds = rounds_of(rows / threads * team.values_per_row)
        if numbers[ROUND] == 0.0:
            keep(team, own, deck, alpha)
        while left > 0.0 and numbers[ROUND] < rounds:
            r = int(numbers[ROUND])
            left -= rows / rounds
            closing = r + 1 == rounds or left <= 0.0
            some = share(length, r + 1, rounds) - share(length, r, rounds)
            scaled = Terms(terms.X, terms.loss, terms.y, terms.weights, terms.norms, own.scaling[SIGMA] * terms.C)
            position, active, visited = descend(
                scaled, deck, rules, own.random, alpha, own.w, nothing, nothing,
                position, active, some, -1.0, own.meters,
            )  # fmt: skip
            done += visited
            numbers[ROUND] = r + 1
            bring_together(team, own, closing or r % wide == 0)
        if numbers[ROUND] == rounds:
            numbers[ROUND] = 0.0
            active = end_together(terms, deck, rules, alpha, active, team, own)
            if numbers[GAP] <= target:
                break
    return position, active, done
