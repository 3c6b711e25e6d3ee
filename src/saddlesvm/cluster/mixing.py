"""Partitions whose rows are all alike, such as those of data sorted by label, are mixed before the rounds begin.

In a round every partition improves its own dual variables against the shared weights. A partition with one class only
proposes what helps that class, the next one takes it back, and hundreds of rounds achieve little. A census of labels or
targets, a few numbers a partition, tells whether that is so. Each partition is then dealt out at random to some
others, evenly spread over the order of the partitions; rows move once, and between workers only. Newton's rounds add up
the same sums whatever the partitions are, and need none of this.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.cluster.part import Part
from saddlesvm.rows import layouts as rows
from saddlesvm.rows.layouts import Rows
from saddlesvm.rows.small_types import widen

ALIKE = 0.2  # share of the rows, or of the targets' variance, that sits in the wrong partition where these are alike
DEALT = 16  # partitions at most to which one partition deals out its rows


def census(part: Part) -> np.ndarray:
    """Number of rows, and rows of each class; for targets their sum and the sum of their squares."""
    y = part.y
    if part.split.classes:
        sums = np.bincount(y.astype(np.intp), minlength=part.split.classes).astype(np.float64)
    else:
        sums = np.array([y.sum(), y @ y])
    return np.append(float(part.size), sums)


def alike(found: np.ndarray, classes: int) -> bool:
    """Whether partitions differ much more from the whole than partitions of mixed rows do.

    Parameters
    ----------
    found : ndarray of shape (partitions, numbers)
        The census of each partition.
    classes : int
        Number of classes; 0 for targets.
    """
    sizes, sums = found[:, :1], found[:, 1:]
    n = float(sizes.sum())
    if n == 0.0 or (sizes > 0.0).sum() < 2:
        return False
    if classes:
        return 0.5 * float(np.abs(sums - sizes * sums.sum(axis=0) / n).sum()) > ALIKE * n
    mean = sums[:, 0].sum() / n
    spread = sums[:, 1].sum() - n * mean**2
    filled = sizes[:, 0] > 0.0
    between = float((sums[filled, 0] ** 2 / sizes[filled, 0]).sum()) - n * mean**2
    return spread > 0.0 and between > ALIKE * spread


def dealt(part: Part, hands: int, seed: int) -> list[Part]:
    """The rows of a partition in `hands` random parts of nearly the same size."""
    order = np.random.default_rng(seed).permutation(part.size)
    return [_taken(part, np.sort(chosen)) for chosen in np.array_split(order, hands)]


def joined(*pieces: Part) -> Part:
    """One partition of all these rows."""
    filled = [piece for piece in pieces if piece.size] or list(pieces[:1])
    weights = np.empty(0)
    if any(piece.weights.size for piece in filled):
        weights = np.concatenate([piece.row_weights for piece in filled])
    X = _stacked([piece.X for piece in filled])
    y, norms = (np.concatenate([getattr(piece, name) for piece in filled]) for name in ("y", "norms"))
    fold = np.concatenate([piece.fold for piece in filled])
    return filled[0]._replace(X=X, y=y, weights=weights, norms=norms, fold=fold)


def mixed(parts: Sequence[Any], seed: int, submit: Callable[..., Any]) -> list[Any]:
    """As many partitions, each with a random share of the rows of several; tasks made by `submit`.

    Partition j takes the i-th hand of partition ``j + i stride``, so that each hand is taken once and comes from far
    away in the order of the partitions.
    """
    count = len(parts)
    hands = min(count, DEALT)
    stride = -(-count // hands)
    if np.gcd(stride, count) > 1 and stride * hands != count:
        stride = next(step for step in range(stride, count + 1) if np.gcd(step, count) == 1)
    tables = [submit(dealt, part, hands, seed + k) for k, part in enumerate(parts)]
    taken = [[((j + i * stride) % count, i) for i in range(hands)] for j in range(count)]
    return [submit(joined, *(submit(operator.itemgetter(i), tables[k]) for k, i in row)) for row in taken]


def _taken(part: Part, chosen: np.ndarray) -> Part:
    """Some rows of a partition, as copies."""
    weights = part.weights[chosen] if part.weights.size else part.weights
    fold = part.fold[chosen] if part.fold.size else part.fold
    return part._replace(X=part.X.taken(chosen), y=part.y[chosen], weights=weights, norms=part.norms[chosen], fold=fold)


def _stacked(given: Sequence[Rows]) -> Rows:
    """The rows of several matrices of one kind, one below the other."""
    if all(not one.sparse for one in given):
        return rows.as_rows(np.concatenate([one.values for one in given if not one.sparse]), given[0].bias)
    blocks = [one.matrix if one.sparse else sparse.csr_array(widen(one.values)) for one in given]
    return rows.as_rows(sparse.csr_array(sparse.vstack(blocks, format="csr")), given[0].bias)
