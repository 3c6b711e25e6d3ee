"""Dual coordinate descent in parts: each has rows and a view of w of its own, and they meet often.

A pass is cut into rounds. In a round every part visits its next rows against its view of w; then
the parts tell each other how w moved, and go on from the same w by the rule of
:mod:`saddlesvm.solvers.threaded.aggregation`. The shorter the rounds, the closer to what a descent
over all rows would do; so the features that most rows share (of sparse data) are brought together
after every round, and the others after some. All parts make the common decisions alike, each for
itself. A single part writes each shared number, and the others read it after they have met. To
bring all of w together, each part adds up the moves in its own share of the places.

The work between two meetings is a task; threads do the tasks by the rules of
:mod:`saddlesvm.solvers.threaded.shared_phases`. All that a task needs, with the state of its part,
is in the :class:`Team`.

Source: Ioannou, Mendler-Duenner and Parnell (2019), "SySCD: a system-aware parallel coordinate
descent algorithm", for views of threads that are brought together in rounds; Ma and others (2015)
for the scaling.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saddlesvm.problem.intercepts import move_offset
from saddlesvm.problem.loss import conjugate
from saddlesvm.problem.terms import Pointwise, Terms, weight_of
from saddlesvm.runtime.compiled import inlined, kernel, record_of
from saddlesvm.runtime.randomness import copy_items
from saddlesvm.solvers.base import PassPosition
from saddlesvm.solvers.dcd import Deck, Goal, Iterate, Rules, call_back, descend
from saddlesvm.solvers.threaded.aggregation import be_careful, follow, measure_rho, safe_share
from saddlesvm.solvers.threaded.shared_phases import TURN, end_task, give_way, next_task

ROUND_VALUES = 40_000.0  # values that a part visits between two meetings, at most: some 30 us
# rounds per pass, least and most: with fewer, the last powers of ten take many passes
ROUNDS = 256
MOST_ROUNDS = 512
# Values per round and part, at least; this goes before the least number of rounds.
FEWEST_VALUES = 1_000.0
WIDE_VALUES = 16.0  # values per place of w that a part visits before all of w is brought together
CHUNK = 512  # places of w that are brought together at a time: they stay in the nearest cache
# What each part tells the others. Of its rows: rows of the pass; whether all are active; the sum
# of conjugates and its fall in the pass; residual and scale of the estimate. Of its share of w:
# the squared norm; the squared norm of its move in the pass; its product with the former w; the
# squared norm of the sum of all parts' moves in a round ("together"), and the sum of the squared
# norms of these moves ("each").
SAID = record_of(
    "rows",
    "all_back",
    "conjugates",
    "fall",
    "square",
    "moved",
    "along",
    "residuals",
    "scales",
    "together",
    "each",
)
# Numbers of the run: rounds done of the present pass; the estimate of the relative gap.
NUMBERS = record_of("round", "gap")
# Where a part stands: which task comes next; visits that all parts have left and visits done; its
# position in the pass and its active rows; rows of the pass in all parts, and its rounds.
STANDING = record_of("task", "left", "done", "position", "active", "rows", "rounds")
# Tasks, by what comes first in them: count the rows of the pass; begin a pass, or go on with it;
# add up the moves in a share of w; take the w that was brought together; take the moves of the
# frequent features; judge the pass, and take the w that was judged. After the last task comes
# none.
COUNT, GO_ON, ADD_UP, TAKE_ALL, TAKE_OFTEN, JUDGE, TAKE_JUDGED, NONE = range(8)


@kernel
def conjugates_of(terms: Pointwise, members: np.ndarray, alpha: np.ndarray, factor: float) -> float:
    """:func:`~saddlesvm.problem.sums.conjugate_sum`, for the kernel of a part."""
    total = 0.0
    for i in members:
        total += conjugate(terms.loss, factor * alpha[i], terms.y[i], weight_of(terms.weights, i))
    return total


class Team(NamedTuple):
    """The data of all parts.

    Rows of arrays that belong to different parts are in different cache lines: the shapes leave out
    the room between. Arrays made from w have its precision.
    """

    bounds: np.ndarray  # (parts + 1,): where the rows of each part begin in the next three arrays
    members: np.ndarray  # (n,)
    order: np.ndarray  # (n,)
    sequence: np.ndarray  # (n,)
    runs: np.ndarray  # (parts, as many as any needs)
    aside: np.ndarray  # (n_all,)
    randoms: np.ndarray  # (parts, 1)
    views: np.ndarray  # (parts, d + 1): the w that each works on
    # (parts, often.size): w of the frequent features when they were last brought together
    near: np.ndarray
    change: np.ndarray  # (parts, CHUNK): scratch arrays for the moves of some places
    meters: np.ndarray  # (parts, 1)
    scaling: np.ndarray  # (parts, 1)
    numbers: np.ndarray  # (parts, 1)
    standing: np.ndarray  # (parts, 1)
    offsets: np.ndarray  # (parts, 1 or 0): the last one counts, whose share has the last place of w
    base: np.ndarray  # (d + 1,): w when all of it was last brought together
    often: np.ndarray  # features that are brought together after every round; empty for all
    # (2, parts, often.size): the moves of these features, in rounds of even and of odd number
    moves: np.ndarray
    said: Any  # (parts, 1): what each part tells the others, see `SAID`
    kept_w: np.ndarray  # the point that the pass began with
    kept_alpha: np.ndarray
    nothing: np.ndarray  # (0,): for arguments that the descent in a part does not use
    values_per_row: float
    few: int  # active rows up to which one thread is to go on alone
    rounding: float  # relative error of the dual objective that w in its precision gives


class Own(NamedTuple):
    """The data of part k alone."""

    k: int
    deck: Deck
    w: np.ndarray  # (d + 1,): its view of w
    near: np.ndarray
    change: np.ndarray
    meters: np.ndarray
    scaling: np.ndarray
    numbers: np.ndarray
    offset: np.ndarray
    standing: np.ndarray


@inlined
def own_of(team: Team, k: int, offset: int) -> Own:
    """The own data of part k; `offset` is the size of the multiplier of the intercept."""
    first = team.bounds[k]
    end = team.bounds[k + 1]
    members = team.members[first:end]
    order = team.order[first:end]
    sequence = team.sequence[first:end]
    # All are views of the part's places in the team's arrays.
    deck = Deck(members, order, sequence, team.runs[k], team.aside, team.randoms[k, :1])
    w = team.views[k, : team.base.size]
    near = team.near[k, : team.often.size]
    change = team.change[k, :CHUNK]
    meters = team.meters[k, :1]
    scaling = team.scaling[k, :1]
    numbers = team.numbers[k, :1]
    return Own(
        k,
        deck,
        w,
        near,
        change,
        meters,
        scaling,
        numbers,
        team.offsets[k, :offset],
        team.standing[k, :1],
    )


@inlined
def share(size: int, k: int, parts: int) -> int:
    """Return the beginning of the k-th of `parts` even shares of `size`."""
    return size * k // parts


@inlined
def places(team: Team, own: Own) -> tuple[int, int]:
    """Return where the part's share of the places of w begins and ends."""
    size = team.base.size
    parts = team.views.shape[0]
    return share(size, own.k, parts), share(size, own.k + 1, parts)


@inlined
def rounds_of(values: float) -> int:
    """Number of rounds in a pass in which each part visits `values` values."""
    # Enough rounds to keep the views of w fresh, few enough to make the sums of moves cheap.
    return int(
        max(
            1.0,
            min(
                max(values / ROUND_VALUES, float(ROUNDS)),
                values / FEWEST_VALUES,
                float(MOST_ROUNDS),
            ),
        )
    )


@inlined
def total(said: np.ndarray) -> float:
    """Return the sum of a number of `SAID` over the parts."""
    answer = 0.0
    for k in range(said.shape[0]):
        answer += said[k, 0]
    return answer


@inlined
def add_move(
    view: np.ndarray, base: np.ndarray, inverse: float | np.floating, change: np.ndarray
) -> float:
    """``change += (view - base) / sigma``; return the squared norm of what is added."""
    squares = view.dtype.type(0.0)
    for j in range(base.size):
        move = (view[j] - base[j]) * inverse
        change[j] += move
        squares += move * move
    return np.float64(squares)


@inlined
def apply_change(base: np.ndarray, change: np.ndarray) -> float:
    """``base += change``, then set `change` to zero; return the squared norm that it had."""
    squares = base.dtype.type(0.0)
    for j in range(base.size):
        squares += change[j] * change[j]
        base[j] += change[j]
        change[j] = 0.0
    return np.float64(squares)


@inlined
def take_share(team: Team, own: Own) -> None:
    """Add up the moves of all parts in this part's share of w, and note the sums of the rule."""
    square_of_sum = sum_of_squares = 0.0
    inverse = inverse_of(own)
    first, end = places(team, own)
    # Frequent features have moved in all views already: their base is what they are now.
    for p in range(team.often.size):
        if first <= team.often[p] < end:
            team.base[team.often[p]] = own.near[p]
    # w += sum_k v_k, a chunk at a time, which stays in the cache: each view has moved by sigma v_k.
    # The two squared lengths have rho as their quotient.
    for start in range(first, end, CHUNK):
        stop = min(start + CHUNK, end)
        base = team.base[start:stop]
        for k in range(team.views.shape[0]):
            sum_of_squares += add_move(team.views[k, start:stop], base, inverse, own.change)
        square_of_sum += apply_change(base, own.change)
    team.said[own.k, 0].together = square_of_sum
    team.said[own.k, 0].each = sum_of_squares


@inlined
def take_base(team: Team, own: Own) -> None:
    """Go on from the w that has been brought together."""
    copy_items(team.base, team.base.size, own.w)
    for p in range(team.often.size):
        own.near[p] = own.w[team.often[p]]


@inlined
def share_often(team: Team, own: Own) -> None:
    """Tell the other parts this part's moves of the frequent features.

    Two arrays take turns: while some parts still read the moves of this round, others may write the
    moves of the next.
    """
    move = team.moves[int(own.numbers[0].round) % 2, own.k]
    inverse = inverse_of(own)
    for p in range(team.often.size):
        move[p] = (own.w[team.often[p]] - own.near[p]) * inverse


@inlined
def take_often(team: Team, own: Own) -> None:
    """Add the moves of all parts to the frequent features of the own w, and measure rho."""
    moves = team.moves[int(own.numbers[0].round) % 2]
    square_of_sum = sum_of_squares = 0.0
    # All parts add in the same order, so that their views get the same bits.
    for p in range(team.often.size):
        change = moves[0, p]
        sum_of_squares += np.float64(change * change)
        for other in range(1, moves.shape[0]):
            change += moves[other, p]
            sum_of_squares += np.float64(moves[other, p] * moves[other, p])
        square_of_sum += np.float64(change * change)
        own.near[p] += change
        own.w[team.often[p]] = own.near[p]
    measure_rho(own.scaling, square_of_sum, sum_of_squares)


@inlined
def inverse_of(own: Own) -> np.floating:
    """``1 / sigma`` in the precision of w."""
    return own.w.dtype.type(1.0 / own.scaling[0].sigma)


@inlined
def take_all(team: Team, own: Own) -> None:
    """Go on from the w that was brought together; let sigma follow if that is due."""
    take_base(team, own)
    measure_rho(own.scaling, total(team.said.together), total(team.said.each))
    if asks_for_all(own):
        follow(own.scaling, team.views.shape[0])


@inlined
def asks_for_all(own: Own) -> bool:
    """Return True if all of w is brought together after the round that was just done."""
    standing = own.standing[0]
    r = int(own.numbers[0].round) - 1
    # All of w costs as much as its places: the more there are, the more seldom it is due.
    wide = 1 + int(WIDE_VALUES * own.w.size / ROUND_VALUES)
    return r + 1 == standing.rounds or standing.left <= 0.0 or r % wide == 0


@inlined
def keep(team: Team, own: Own, rows: np.ndarray, alpha: np.ndarray) -> None:
    """Remember the part's share of the point that a pass over these of its rows begins with."""
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
def share_sums(terms: Terms, alpha: np.ndarray, team: Team, own: Own) -> None:
    """Tell the other parts the sums of this part at the end of a pass."""
    # Rows that were set aside have not moved: they are left out.
    said = team.said[own.k, 0]
    meters = own.meters[0]
    first, end = places(team, own)
    active = int(own.standing[0].active)
    # ||w||^2, ||w - kept||^2 and kept . (w - kept) of this part's share of the weights.
    square = moved = along = 0.0
    for j in range(first, end):
        w = np.float64(team.base[j])
        kept = np.float64(team.kept_w[j])
        square += w * w
        moved += (w - kept) * (w - kept)
        along += kept * (w - kept)
    said.square = square
    said.moved = moved
    said.along = along
    # The change of the conjugates since the point that was kept.
    pointwise = Pointwise(terms.loss, terms.y, terms.weights, False)
    rows = own.deck.order[:active]
    said.conjugates = conjugates_of(pointwise, rows, alpha, 1.0)
    said.fall = conjugates_of(pointwise, rows, team.kept_alpha, 1.0) - said.conjugates
    said.residuals = meters.estimate * meters.scale
    said.scales = meters.scale
    said.all_back = 1.0 if active == own.deck.members.size else 0.0


@inlined
def keep_from_falling(C: float, rows: np.ndarray, alpha: np.ndarray, team: Team, own: Own) -> None:
    """If the pass lowered the dual objective, undo part of it and raise sigma."""
    said = team.said
    # D - D_kept = C (fall of the conjugates) - kept . (w - kept) - ||w - kept||^2 / 2.
    rise = C * total(said.fall) - total(said.along)
    rounding = team.rounding * (C * abs(total(said.conjugates)) + total(said.square))
    # A fall within the rounding of w is none.
    if rise - 0.5 * total(said.moved) < -rounding:
        go_back(team, own, rows, alpha, safe_share(rise, total(said.moved)))
        be_careful(own.scaling, team.views.shape[0])


@inlined
def judge(terms: Terms, rules: Rules, alpha: np.ndarray, team: Team, own: Own) -> None:
    """Judge a pass of all parts: note the estimate; all rows come back together."""
    parts = team.views.shape[0]
    standing = own.standing[0]
    scale = total(team.said.scales)
    back = total(team.said.all_back)
    active = int(standing.active)
    # The estimate of the relative gap, by the residuals of all parts.
    own.numbers[0].gap = total(team.said.residuals) / scale if scale > 0.0 else np.inf
    keep_from_falling(terms.C, own.deck.order[:active], alpha, team, own)
    if own.k == parts - 1:  # the last place of w is in its share
        move_offset(team.base, own.offset)
    # If some parts look at all their rows again, the others follow.
    if 0.0 < back < parts:
        standing.active = call_back(own.deck, rules, own.meters, active)


@inlined
def visit(terms: Terms, rules: Rules, alpha: np.ndarray, team: Team, own: Own) -> None:
    """Visit the rows of a round, and tell the others the moves of the frequent features."""
    standing = own.standing[0]
    numbers = own.numbers[0]
    r = int(numbers.round)
    rounds = int(standing.rounds)
    length = int(team.said[own.k, 0].rows)
    standing.left -= standing.rows / rounds
    # The r-th of equal shares of the pass, to the row.
    some = share(length, r + 1, rounds) - share(length, r, rounds)
    # Coordinate ascent with sigma C in the place of C, on the part's own view of w.
    strength = own.scaling[0].sigma * terms.C
    scaled = Terms(
        terms.X, terms.loss, terms.y, terms.weights, terms.norms, strength, terms.penalty
    )
    position, active, visited = descend(
        scaled, own.deck, rules, Iterate(alpha, own.w, team.nothing, team.nothing, team.nothing),
        PassPosition(int(standing.position), int(standing.active)), Goal(some, -1.0, 0), own.meters,
    )  # fmt: skip
    standing.position = position
    standing.active = active
    standing.done += visited
    numbers.round = r + 1
    # Frequent features are brought together after every round, all of w only when that is due.
    if team.often.size == 0 or asks_for_all(own):
        standing.task = ADD_UP
    else:
        share_often(team, own)
        standing.task = TAKE_OFTEN


@inlined
def begin(alpha: np.ndarray, team: Team, own: Own) -> bool:
    """Begin a pass or go on with it; return False if few active rows are left."""
    standing = own.standing[0]
    round_ = own.numbers[0].round
    # At the beginning of a pass, few active rows end the work of all threads.
    standing.rows = total(team.said.rows)
    if round_ == 0.0 and standing.rows <= team.few:
        return False
    standing.rounds = rounds_of(standing.rows / team.views.shape[0] * team.values_per_row)
    if round_ == 0.0:
        keep(team, own, own.deck.order[: int(standing.active)], alpha)
    return True


@inlined
def count(team: Team, own: Own) -> None:
    """Tell the others how many rows of this part the pass has."""
    standing = own.standing[0]
    team.said[own.k, 0].rows = (
        standing.active if own.numbers[0].round == 0.0 else own.meters[0].length
    )
    standing.task = GO_ON


@inlined
def do_task(
    terms: Terms, rules: Rules, alpha: np.ndarray, target: float, team: Team, own: Own
) -> None:
    """Do what a part has to do until it meets the others again."""
    standing = own.standing[0]
    numbers = own.numbers[0]
    task = int(standing.task)
    if task == COUNT:
        count(team, own)
        return
    if task == ADD_UP:
        take_share(team, own)
        standing.task = TAKE_ALL
        return
    if task == JUDGE:
        judge(terms, rules, alpha, team, own)
        standing.task = TAKE_JUDGED
        return
    if task == TAKE_JUDGED:
        take_base(team, own)
        standing.task = NONE
        # The pass is judged: the next one begins, unless the gap or the visits end the call.
        if numbers.gap > target and standing.left > 0.0:
            count(team, own)
        return
    if task == TAKE_ALL:
        take_all(team, own)
    elif task == TAKE_OFTEN:
        take_often(team, own)
    elif not begin(alpha, team, own):
        standing.task = NONE
        return
    # After the last round of a pass the objective is judged; otherwise the next round begins.
    if numbers.round == standing.rounds:
        numbers.round = 0.0
        share_sums(terms, alpha, team, own)
        standing.task = JUDGE
    elif standing.left > 0.0:
        visit(terms, rules, alpha, team, own)
    else:
        standing.task = NONE


@kernel
def descend_together(
    terms: Terms,
    rules: Rules,
    alpha: np.ndarray,
    target: float,
    team: Team,
    offset: int,
    gate: np.ndarray,
    k: int,
) -> None:
    """Do tasks, those of part k first, until the visits are done or a pass ends the call.

    A pass ends the call if its estimate is at most `target` or few active rows are left. `offset`
    is the size of the multiplier of the intercept. The team says how far the parts are.
    """
    parts = team.views.shape[0]
    turn = 0
    part = next_task(gate, parts, k)
    while part >= 0:
        # A part may be another thread's: all it needs is in the team.
        own = own_of(team, part, offset)
        do_task(terms, rules, alpha, target, team, own)
        end_task(gate, parts, own.standing[0].task == NONE)
        turn += 1
        # The core is offered to other programs while this thread holds no task.
        if turn >= TURN:
            give_way()
            turn = 0
        part = next_task(gate, parts, k)
