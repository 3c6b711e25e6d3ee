"""Dual coordinate descent by several threads at once: each has rows and a view of w of its own, and they meet often.

A pass is cut into rounds. In a round every thread visits the next rows of its part against its view of w; then each
tells the others how w moved, and they go on from the same w by the rule of
:mod:`saddlesvm.solvers.threaded.aggregation`. The shorter the rounds, the closer to what one thread would do; so the
features that most rows share (of sparse data) are brought together after every round, and the others after some. All
threads make the common decisions alike, each for itself. One thread writes each shared number, and the others read it
after they have met. To bring all of w together, each thread adds up the moves in its own share of the places.

Source: Ioannou, Mendler-Duenner and Parnell (2019), "SySCD: a system-aware parallel coordinate descent algorithm", for
views of threads that are brought together in rounds; Ma and others (2015) for the scaling.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saddlesvm.problem.intercepts import move_offset
from saddlesvm.problem.sums import conjugate_sum
from saddlesvm.problem.terms import Pointwise, Terms
from saddlesvm.runtime.compiled import inlined, kernel, record_of
from saddlesvm.runtime.randomness import copy_items
from saddlesvm.runtime.small import compiled_of
from saddlesvm.solvers.base import Place
from saddlesvm.solvers.dcd import Deck, Goal, Iterate, Rules, call_back, descend
from saddlesvm.solvers.threaded.aggregation import be_careful, follow, note, safe_share
from saddlesvm.solvers.threaded.barrier import meet

conjugates_of = compiled_of(conjugate_sum)
ROUND_VALUES = 40_000.0  # values that a thread visits between two meetings, at most: some 30 us
ROUNDS, MOST_ROUNDS = 256, 512  # rounds per pass, least and most: with fewer, the last powers of ten take many passes
FEWEST_VALUES = 1_000.0  # values per round and thread, at least; this goes before the least number of rounds
WIDE_VALUES = 16.0  # values per place of w that a thread visits before all of w is brought together
CHUNK = 512  # places of w that are brought together at a time: they stay in the nearest cache
# What each thread tells the others. Of its rows: rows of the pass; whether all are active; the sum of conjugates
# and its fall in the pass; residual and scale of the estimate. Of its share of w: the squared norm; the squared norm of
# its move in the pass; its product with the former w; the squared norm of the sum of all threads' moves in a
# round ("together"), and the sum of the squared norms of these moves ("each").
SAID = record_of(
    "rows", "all_back", "conjugates", "fall", "square", "moved", "along", "residuals", "scales", "together", "each"
)
# Numbers of the run: rounds done of the present pass; the estimate of the relative gap.
NUMBERS = record_of("round", "gap")


class Team(NamedTuple):
    """The data that the threads share; arrays made from w have the precision of w."""

    views: np.ndarray  # (threads, d + 1 and some): the w that each works on
    base: np.ndarray  # (d + 1,): w when all of it was last brought together
    often: np.ndarray  # features that are brought together after every round; empty for all
    moves: np.ndarray  # (threads, often.size and some): the moves of these features in each thread
    said: Any  # (threads, 1 and some): what each thread tells the others, see `SAID`
    gate: np.ndarray
    kept_w: np.ndarray  # the point that the pass began with
    kept_alpha: np.ndarray
    values_per_row: float
    few: int  # active rows up to which one thread is to go on alone
    rounding: float  # relative error of the dual objective that w in its precision gives


class Own(NamedTuple):
    """The data of thread k alone, in cache lines that no other thread writes to."""

    k: int
    w: np.ndarray  # (d + 1,): its view of w
    near: np.ndarray  # (often.size,): w of the frequent features when they were last brought together
    change: np.ndarray  # (CHUNK,): scratch array for the moves of some places
    meters: np.ndarray
    scaling: np.ndarray
    numbers: np.ndarray
    offset: np.ndarray
    nothing: np.ndarray  # (0,): for arguments that the descent in a part does not use


@inlined
def share(size: int, k: int, parts: int) -> int:
    """Where the k-th of `parts` even shares of `size` begins."""
    return size * k // parts


@inlined
def places(team: Team, own: Own) -> Any:
    """Where this thread's share of the places of w begins and ends."""
    size, threads = team.base.size, team.views.shape[0]
    return share(size, own.k, threads), share(size, own.k + 1, threads)


@inlined
def rounds_of(values: float) -> int:
    """Number of rounds in a pass in which each thread visits `values` values."""
    return int(max(1.0, min(max(values / ROUND_VALUES, float(ROUNDS)), values / FEWEST_VALUES, float(MOST_ROUNDS))))


@inlined
def total(said: np.ndarray) -> float:
    """Sum of one of the numbers of `SAID` over the threads."""
    answer = 0.0
    for k in range(said.shape[0]):
        answer += said[k, 0]
    return answer


@inlined
def add_move(view: np.ndarray, base: np.ndarray, inverse: Any, change: np.ndarray) -> float:
    """``change += (view - base) / sigma``; return the squared norm of what is added."""
    squares = view.dtype.type(0.0)
    for j in range(base.size):
        move = (view[j] - base[j]) * inverse
        change[j] += move
        squares += move * move
    return np.float64(squares)


@inlined
def settle(base: np.ndarray, change: np.ndarray) -> float:
    """``base += change``, then set `change` to zero; return the squared norm that it had."""
    squares = base.dtype.type(0.0)
    for j in range(base.size):
        squares += change[j] * change[j]
        base[j] += change[j]
        change[j] = 0.0
    return np.float64(squares)


@inlined
def take_share(team: Team, own: Own, inverse: Any) -> None:
    """Add up the moves of all threads in this thread's share of w; tell the others the two sums of the rule."""
    square_of_sum = sum_of_squares = 0.0
    first, end = places(team, own)
    for p in range(team.often.size):
        if first <= team.often[p] < end:
            team.base[team.often[p]] = own.near[p]
    for start in range(first, end, CHUNK):
        stop = min(start + CHUNK, end)
        base = team.base[start:stop]
        for k in range(team.views.shape[0]):
            sum_of_squares += add_move(team.views[k, start:stop], base, inverse, own.change)
        square_of_sum += settle(base, own.change)
    team.said[own.k, 0].together, team.said[own.k, 0].each = square_of_sum, sum_of_squares


@inlined
def take_base(team: Team, own: Own) -> None:
    """Go on from the w that has been brought together."""
    copy_items(team.base, team.base.size, own.w)
    for p in range(team.often.size):
        own.near[p] = own.w[team.often[p]]


@inlined
def tell_often(team: Team, own: Own, inverse: Any) -> None:
    """Tell the other threads this thread's moves of the frequent features."""
    move = team.moves[own.k]
    for p in range(team.often.size):
        move[p] = (own.w[team.often[p]] - own.near[p]) * inverse


@inlined
def take_often(team: Team, own: Own) -> Any:
    """Add the moves of all threads to the frequent features of the own w; return the two sums of the rule."""
    moves = team.moves
    square_of_sum = sum_of_squares = 0.0
    for p in range(team.often.size):
        change = moves[0, p]
        sum_of_squares += np.float64(change * change)
        for other in range(1, moves.shape[0]):
            change += moves[other, p]
            sum_of_squares += np.float64(moves[other, p] * moves[other, p])
        square_of_sum += np.float64(change * change)
        own.near[p] += change
        own.w[team.often[p]] = own.near[p]
    return square_of_sum, sum_of_squares


@inlined
def bring_together(team: Team, own: Own, everything: bool) -> None:
    """Go on from the same w in all threads, and let sigma follow."""
    threads = team.views.shape[0]
    inverse = own.w.dtype.type(1.0 / own.scaling[0].sigma)
    if everything or team.often.size == 0:
        meet(team.gate, threads)
        take_share(team, own, inverse)
        meet(team.gate, threads)
        take_base(team, own)
        sums = total(team.said.together), total(team.said.each)
    else:
        tell_often(team, own, inverse)
        meet(team.gate, threads)
        sums = take_often(team, own)
        meet(team.gate, threads)
    note(own.scaling, sums[0], sums[1])
    if everything:
        follow(own.scaling, threads)


@inlined
def keep(team: Team, own: Own, rows: np.ndarray, alpha: np.ndarray) -> None:
    """Remember this thread's share of the point that a pass over these of its rows begins with."""
    first, end = places(team, own)
    for j in range(first, end):
        team.kept_w[j] = team.base[j]
    for i in rows:
        team.kept_alpha[i] = alpha[i]


@inlined
def go_back(team: Team, own: Own, rows: np.ndarray, alpha: np.ndarray, part: float) -> None:
    """Take only the share `part` of what the pass changed."""
    first, end = places(team, own)
    for j in range(first, end):
        team.base[j] = team.kept_w[j] + part * (team.base[j] - team.kept_w[j])
    for i in rows:
        alpha[i] = team.kept_alpha[i] + part * (alpha[i] - team.kept_alpha[i])


@inlined
def say(terms: Terms, deck: Deck, alpha: np.ndarray, active: int, team: Team, own: Own) -> None:
    """Tell the other threads this thread's sums at the end of a pass; the rows that it set aside have not moved."""
    said, meters, (first, end) = team.said[own.k, 0], own.meters[0], places(team, own)
    square = moved = along = 0.0
    for j in range(first, end):
        w, kept = np.float64(team.base[j]), np.float64(team.kept_w[j])
        square += w * w
        moved += (w - kept) * (w - kept)
        along += kept * (w - kept)
    said.square, said.moved, said.along = square, moved, along
    pointwise, rows = Pointwise(terms.loss, terms.y, terms.weights, False), deck.order[:active]
    said.conjugates = conjugates_of(pointwise, rows, alpha, 1.0)
    said.fall = conjugates_of(pointwise, rows, team.kept_alpha, 1.0) - said.conjugates
    said.residuals, said.scales = meters.estimate * meters.scale, meters.scale
    said.all_back = 1.0 if active == deck.members.size else 0.0


@inlined
def keep_from_falling(C: float, rows: np.ndarray, alpha: np.ndarray, team: Team, own: Own) -> None:
    """Where the pass lowered the dual objective (sigma was too small), undo part of it and raise sigma."""
    said = team.said
    rise = C * total(said.fall) - total(said.along)
    rounding = team.rounding * (C * abs(total(said.conjugates)) + total(said.square))
    if rise - 0.5 * total(said.moved) < -rounding:
        go_back(team, own, rows, alpha, safe_share(rise, total(said.moved)))
        be_careful(own.scaling, team.views.shape[0])


@inlined
def end_together(terms: Terms, deck: Deck, rules: Rules, alpha: np.ndarray, active: int, team: Team, own: Own) -> int:
    """Judge a pass of all parts: note the estimate; all rows come back together. Return this part's active rows."""
    threads = team.views.shape[0]
    say(terms, deck, alpha, active, team, own)
    meet(team.gate, threads)
    scale, back = total(team.said.scales), total(team.said.all_back)
    own.numbers[0].gap = total(team.said.residuals) / scale if scale > 0.0 else np.inf
    keep_from_falling(terms.C, deck.order[:active], alpha, team, own)
    if own.k == threads - 1:  # the last place of w is in its share
        move_offset(team.base, own.offset)
    if 0.0 < back < threads:
        active = call_back(deck, rules, own.meters, active)
    meet(team.gate, threads)
    take_base(team, own)
    return active


@kernel
def descend_together(
    terms: Terms, deck: Deck, rules: Rules, alpha: np.ndarray, place: Place, goal: Goal, team: Team, own: Own
) -> Any:
    """Do one thread's work until all threads together have done the visits of the goal, or a pass ends with an estimate
    of at most its target, or few active rows are left.

    Returns the thread's position in the pass, its active rows and its visits.
    """
    threads, done, left, numbers = team.views.shape[0], 0, float(goal.visits), own.numbers[0]
    position, active = place
    wide = 1 + int(WIDE_VALUES * own.w.size / ROUND_VALUES)
    while left > 0.0:
        length = active if numbers.round == 0.0 else int(own.meters[0].length)
        team.said[own.k, 0].rows = length
        meet(team.gate, threads)
        rows = total(team.said.rows)
        if numbers.round == 0.0 and rows <= team.few:
            break
        rounds = rounds_of(rows / threads * team.values_per_row)
        if numbers.round == 0.0:
            keep(team, own, deck.order[:active], alpha)
        while left > 0.0 and numbers.round < rounds:
            r = int(numbers.round)
            left -= rows / rounds
            closing = r + 1 == rounds or left <= 0.0
            some = share(length, r + 1, rounds) - share(length, r, rounds)
            strength = own.scaling[0].sigma * terms.C
            scaled = Terms(terms.X, terms.loss, terms.y, terms.weights, terms.norms, strength, terms.penalty)
            position, active, visited = descend(
                scaled, deck, rules, Iterate(alpha, own.w, own.nothing, own.nothing),
                Place(position, active), Goal(some, -1.0), own.meters,
            )  # fmt: skip
            done += visited
            numbers.round = r + 1
            bring_together(team, own, closing or r % wide == 0)
        if numbers.round == rounds:
            numbers.round = 0.0
            active = end_together(terms, deck, rules, alpha, active, team, own)
            if numbers.gap <= goal.target:
                break
    return position, active, done
