"""Missing values: refused, left out with their rows, or filled in by column; the same for all data of a model."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from saddlesvm.data.blocks import Block, Source
from saddlesvm.data.errors import DataError
from saddlesvm.data.store import Store
from saddlesvm.data.store_format import NOTE
from saddlesvm.data.table import Cells, Table
from saddlesvm.runtime.option_names import MISSING_VALUES


@dataclasses.dataclass
class Filling:
    """The treatment of missing values, and how many it has met.

    Attributes
    ----------
    how : {"error", "drop", "mean", "median"}
    values : list of float
        What each feature is filled in with; empty where nothing is.
    count : int
        Rows left out, or values filled in, so far.
    """

    how: str = "error"
    values: list[float] = dataclasses.field(default_factory=list)
    count: int = 0

    @classmethod
    def of_sources(cls, how: str, sources: Sequence[Source], n_bytes: int, advance: Callable[[float], Any]) -> Filling:
        """The treatment learnt from sources; means take a pass over them, in blocks of about `n_bytes`.

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
        check_values(sources[0].name, sources[0].feature_names, counts > 0)
        return cls(how, (sums / counts).tolist())

    @classmethod
    def of_table(cls, how: str, table: Table) -> Filling:
        """The treatment learnt from the rows of a table; that of its stores, which have no missing values any more.

        Raises
        ------
        DataError
            A feature without any value.
        """
        if table.format == "store":
            return cls.of_stores(table.stores)
        if how in ("error", "drop") or sp.issparse(table.X):
            return cls(how)
        check_values(table.source, table.feature_names, (~np.isnan(table.X)).any(axis=0))
        centre = np.nanmean if how == "mean" else np.nanmedian
        return cls(how, [float(centre(column.astype(np.float64))) for column in table.X.T])

    @classmethod
    def of_stores(cls, stores: Sequence[Store]) -> Filling:
        """The treatment of missing values when these stores were made; none where it was not the same for all."""
        noted = [store.header.get(NOTE) for store in stores]
        found = [cls.of_notes({NOTE: {name: one[name] for name in ("how", "values")}} if one else {}) for one in noted]
        return found[0] if all(one == found[0] for one in found) else cls()

    @classmethod
    def of_notes(cls, notes: Mapping[str, Any]) -> Filling:
        """The treatment by a saved model, from its notes.

        Raises
        ------
        DataError
            The notes do not hold one that this version knows.
        """
        noted = notes.get(NOTE, {"how": "error", "values": []})
        fine = isinstance(noted, dict) and noted.keys() == {"how", "values"} and noted["how"] in MISSING_VALUES
        if not fine or not all(isinstance(one, (int, float)) and np.isfinite(one) for one in noted["values"]):
            raise DataError(f"the model's note on {NOTE} cannot be read: {str(noted)[:80]}")
        return cls(**noted)

    @property
    def keeps(self) -> str:
        """What `read` is to do with missing values."""
        return "error" if self.how == "error" else "keep"

    @property
    def notes(self) -> dict[str, Any]:
        """The notes for a model file."""
        return {} if self.how == "error" else {NOTE: {"how": self.how, "values": self.values}}

    def noted(self, scale: float) -> dict[str, Any] | None:
        """The note for a store's header, in the units of its values, which are `scale` times those read."""
        if self.how == "error":
            return None
        return {"how": self.how, "values": [scale * value for value in self.values], "count": self.count}

    @property
    def facts(self) -> dict[str, Any]:
        """The missing values that were met, and their treatment, in words."""
        if self.how == "drop":
            return {"rows left out for missing values": self.count}
        return {f"missing values filled in with the {self.how}": self.count} if self.values else {}

    def without_missing(self, X: Any) -> tuple[Any, np.ndarray | None]:
        """X without missing values, and which of its rows are left; None for all."""
        if self.how == "error" or sp.issparse(X):
            return X, None
        missing = np.isnan(X)
        if not missing.any():
            return X, None
        if self.values:
            self.count += int(missing.sum())
            return np.where(missing, np.array(self.values, dtype=X.dtype), X), None
        kept = np.flatnonzero(~missing.any(axis=1))
        self.count += len(missing) - kept.size
        return np.ascontiguousarray(X[kept]), kept

    def of_block(self, block: Block) -> Block | None:
        """The block without missing values; None where no row of it is left."""
        X, kept = self.without_missing(block.X)
        if kept is None:
            return block._replace(X=X)
        if not kept.size:
            return None
        y = block.y.of_rows(kept) if isinstance(block.y, Cells) else None if block.y is None else block.y[kept]
        return block._replace(X=X, y=y, weights=None if block.weights is None else block.weights[kept])

    def applied(self, table: Table, every_row: bool = False) -> Table:
        """The table without missing values.

        Raises
        ------
        DataError
            No row is left, or one would be left out although every row is needed.
        """
        X, kept = (table.X, None) if table.format == "store" else self.without_missing(table.X)
        if kept is None:
            return table if X is table.X else dataclasses.replace(table, X=X, known_nonzero=None)
        if every_row:
            row = int(np.argmin(np.append(kept, -1) == np.arange(kept.size + 1)))
            raise DataError(
                f"{table.source}: row {row + 1} has missing values, and the model was trained without such rows; train "
                "it with --missing mean or median to predict them"
            )
        if not kept.size:
            raise DataError(f"{table.source}: every row has missing values: none is left")
        y, weights = (None if one is None else one[kept] for one in (table.y, table.sample_weight))
        return dataclasses.replace(table, X=X, y=y, sample_weight=weights, known_nonzero=None)


def check_values(source: str, names: Sequence[str] | None, has_values: np.ndarray) -> None:
    """Raise a `DataError` for the first feature without any value."""
    if not has_values.all():
        column = int(np.argmin(has_values))
        name = column + 1 if names is None else repr(names[column])
        raise DataError(f"{source}: feature {name} has no value in any row; leave the column out")


def read_through(sources: Sequence[Source], n_bytes: int, advance: Callable[[float], Any]) -> Iterator[Block]:
    """The blocks of all sources in turn; `advance` is called with the share of their bytes that was read."""
    total, done = sum(source.n_bytes for source in sources) or 1, 0
    for source in sources:
        for block in source.blocks(n_bytes):
            yield block
            advance((done + block.share * source.n_bytes) / total)
        done += source.n_bytes
