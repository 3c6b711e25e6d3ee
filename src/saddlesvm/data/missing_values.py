"""Missing values: refused, left out with their rows, or filled in."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from saddlesvm.data.blocks import Block, Source
from saddlesvm.data.data_table import Cells, Table
from saddlesvm.data.errors import DataError
from saddlesvm.data.store import Store
from saddlesvm.data.store_format import NOTE as NOTE
from saddlesvm.runtime.option_names import MISSING_VALUES


@dataclasses.dataclass
class Filling:
    """The treatment of missing values, and how many there were.

    Attributes
    ----------
    how : {"error", "drop", "mean", "median"}
    values : list of float
        The value that replaces missing values of each feature; empty if none are replaced.
    count : int
        Rows that were left out, or values that were filled in, so far.
    """

    how: str = "error"
    values: list[float] = dataclasses.field(default_factory=list)
    count: int = 0

    @classmethod
    def learn_from_sources(
        cls, how: str, sources: Sequence[Source], n_bytes: int, advance: Callable[[float], Any]
    ) -> Filling:
        """Learn from sources; means take a pass over them, in blocks of about `n_bytes`.

        Raises
        ------
        DataError
            A feature has no value in any row.
        """
        if how != "mean" or sources[0].sparse:
            return cls(how)
        sums = np.zeros(sources[0].width or 0)
        counts = np.zeros(sources[0].width or 0, dtype=np.int64)
        for block in read_through(sources, n_bytes, advance):
            missing = np.isnan(block.X)
            sums += np.where(missing, 0.0, block.X).sum(axis=0, dtype=np.float64)
            counts += len(missing) - missing.sum(axis=0)
        check_values(sources[0].name, sources[0].feature_names, counts > 0)
        return cls(how, (sums / counts).tolist())

    @classmethod
    def learn_from_table(cls, how: str, table: Table) -> Filling:
        """Learn from the rows of a table, or take over what was done when its stores were made.

        Raises
        ------
        DataError
            A feature has no value in any row.
        """
        if table.format == "store":
            return cls.from_stores(table.stores)
        if how in ("error", "drop") or sp.issparse(table.X):
            return cls(how)
        check_values(table.source, table.feature_names, (~np.isnan(table.X)).any(axis=0))
        centre = np.nanmean if how == "mean" else np.nanmedian
        return cls(how, [float(centre(column.astype(np.float64))) for column in table.X.T])

    @classmethod
    def from_stores(cls, stores: Sequence[Store]) -> Filling:
        """Return the treatment when these stores were made; none if it was not the same for all."""
        treatments = []
        for store in stores:
            noted = store.header.get(NOTE)
            notes = {}
            if noted:
                notes[NOTE] = {"how": noted["how"], "values": noted["values"]}
            treatments.append(cls.from_notes(notes))
        if any(treatment != treatments[0] for treatment in treatments):
            return cls()
        return treatments[0]

    @classmethod
    def from_notes(cls, notes: Mapping[str, Any]) -> Filling:
        """Return the treatment by a saved model, from its notes.

        Raises
        ------
        DataError
            The notes do not hold a treatment that this version knows.
        """
        noted = notes.get(NOTE, {"how": "error", "values": []})
        is_known = (
            isinstance(noted, dict)
            and noted.keys() == {"how", "values"}
            and noted["how"] in MISSING_VALUES
        )
        if not is_known or not all(map(_is_finite_number, noted["values"])):
            raise DataError(f"the model's note on {NOTE} cannot be read: {str(noted)[:80]}")
        return cls(**noted)

    @property
    def reading_option(self) -> str:
        """The option `missing` of `read` for this treatment."""
        return "error" if self.how == "error" else "keep"

    @property
    def notes(self) -> dict[str, Any]:
        """The notes for a model file."""
        if self.how == "error":
            return {}
        return {NOTE: {"how": self.how, "values": self.values}}

    def store_note(self, scale: float) -> dict[str, Any] | None:
        """Return the note for a store's header, whose values are `scale` times the values read."""
        if self.how == "error":
            return None
        values = [scale * value for value in self.values]
        return {"how": self.how, "values": values, "count": self.count}

    @property
    def facts(self) -> dict[str, Any]:
        """How many missing values there were, and their treatment, in words."""
        if self.how == "drop":
            return {"rows left out for missing values": self.count}
        if self.values:
            return {f"missing values filled in with the {self.how}": self.count}
        return {}

    def fill_rows(self, X: Any) -> tuple[Any, np.ndarray | None]:
        """Return X without missing values, and the numbers of the rows left; None if all are."""
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

    def fill_block(self, block: Block) -> Block | None:
        """Return the block without missing values; None if no row of it is left."""
        X, kept = self.fill_rows(block.X)
        if kept is None:
            return block._replace(X=X)
        if not kept.size:
            return None
        y = block.y
        if isinstance(y, Cells):
            y = y.select(kept)
        elif y is not None:
            y = y[kept]
        weights = None if block.weights is None else block.weights[kept]
        return block._replace(X=X, y=y, weights=weights)

    def fill_table(self, table: Table, every_row: bool = False) -> Table:
        """Return the table without missing values.

        Raises
        ------
        DataError
            No row is left, or a row would be left out although every row is needed.
        """
        # The missing values of a store were treated when it was made.
        if table.format == "store":
            return table
        X, kept = self.fill_rows(table.X)
        if kept is None:
            return table if X is table.X else dataclasses.replace(table, X=X, known_nonzero=None)
        if every_row:
            # The first number that is not among the rows left.
            row = int(np.argmin(np.append(kept, -1) == np.arange(kept.size + 1)))
            raise DataError(
                f"{table.source}: row {row + 1} has missing values, and the model was trained "
                "without such rows; train it with --missing mean or median to predict them"
            )
        if not kept.size:
            raise DataError(f"{table.source}: every row has missing values: no row is left")
        y = None if table.y is None else table.y[kept]
        weights = None if table.sample_weight is None else table.sample_weight[kept]
        return dataclasses.replace(table, X=X, y=y, sample_weight=weights, known_nonzero=None)


def _is_finite_number(value: Any) -> bool:
    """Return True for a finite number."""
    return isinstance(value, (int, float)) and bool(np.isfinite(value))


def check_values(source: str, names: Sequence[str] | None, has_values: np.ndarray) -> None:
    """Raise a `DataError` for the first feature without any value."""
    if not has_values.all():
        column = int(np.argmin(has_values))
        name = column + 1 if names is None else repr(names[column])
        raise DataError(f"{source}: feature {name} has no value in any row; leave the column out")


def read_through(
    sources: Sequence[Source], n_bytes: int, advance: Callable[[float], Any]
) -> Iterator[Block]:
    """Yield the blocks of all sources, and report the share of their bytes that was read."""
    total = sum(source.n_bytes for source in sources) or 1
    done = 0
    for source in sources:
        for block in source.blocks(n_bytes):
            yield block
            advance((done + block.share * source.n_bytes) / total)
        done += source.n_bytes
