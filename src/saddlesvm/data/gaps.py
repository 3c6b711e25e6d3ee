"""Missing values of files that become a store: their rows are left out, or the column's mean fills them in."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from saddlesvm.data.blocks import Block, Source
from saddlesvm.data.errors import DataError
from saddlesvm.data.label_column import Cells
from saddlesvm.data.store_format import NOTE

__all__ = ["MISSING", "NOTE", "Gaps"]

MISSING = ("error", "drop", "mean")


@dataclasses.dataclass
class Gaps:
    """The treatment of missing values, and their number.

    Attributes
    ----------
    how : {"error", "drop", "mean"}
    values : list of float
        What each feature is filled in with; empty where nothing is.
    count : int
        Rows left out, or values filled in, so far.
    """

    how: str
    values: list[float] = dataclasses.field(default_factory=list)
    count: int = 0

    @classmethod
    def learnt(cls, how: str, sources: Sequence[Source], n_bytes: int, advance: Callable[[float], Any]) -> Gaps:
        """The treatment learnt from the sources; means take a pass over them, in blocks of about `n_bytes`.

        Raises
        ------
        DataError
            A feature without any value.
        """
        if how != "mean" or sources[0].sparse:
            return cls(how)
        sums, counts = np.zeros(sources[0].width or 0), np.zeros(sources[0].width or 0, dtype=np.int64)
        for block in read_through(sources, n_bytes, advance):
            missing = np.isnan(block.X)
            sums += np.where(missing, 0.0, block.X).sum(axis=0, dtype=np.float64)
            counts += len(missing) - missing.sum(axis=0)
        if not counts.all():
            column, names = int(np.argmin(counts)), sources[0].feature_names
            name = column + 1 if names is None else repr(names[column])
            raise DataError(f"{sources[0].name}: feature {name} has no value in any row; leave the column out")
        return cls(how, (sums / counts).tolist())

    def closed(self, block: Block) -> Block | None:
        """The block without missing values; None where no row of it is left."""
        if self.how == "error" or sp.issparse(block.X):
            return block
        missing = np.isnan(block.X)
        if not missing.any():
            return block
        if self.values:
            self.count += int(missing.sum())
            return block._replace(X=np.where(missing, np.array(self.values, dtype=block.X.dtype), block.X))
        kept = np.flatnonzero(~missing.any(axis=1))
        self.count += len(missing) - kept.size
        if not kept.size:
            return None
        y = block.y.of_rows(kept) if isinstance(block.y, Cells) else None if block.y is None else block.y[kept]
        weights = None if block.weights is None else block.weights[kept]
        return block._replace(X=block.X[kept], y=y, weights=weights)

    def note(self, scale: float) -> dict[str, Any] | None:
        """The note for the store's header, in the units of its values, which are `scale` times those read."""
        if self.how == "error":
            return None
        return {"how": self.how, "values": [scale * value for value in self.values], "count": self.count}


def read_through(sources: Sequence[Source], n_bytes: int, advance: Callable[[float], Any]) -> Iterator[Block]:
    """The blocks of all sources in turn; `advance` is called with the share of their bytes that was read."""
    total, done = sum(source.n_bytes for source in sources) or 1, 0
    for source in sources:
        for block in source.blocks(n_bytes):
            yield block
            advance((done + block.share * source.n_bytes) / total)
        done += source.n_bytes
