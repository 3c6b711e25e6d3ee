"""Missing values of the data that ``train`` reads: refused, left out with their rows, or filled in by column."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.cli.arguments import MISSING
from saddlesvm.data import DataError, Store, Table
from saddlesvm.data.gaps import NOTE


@dataclasses.dataclass(frozen=True)
class Filling:
    """What happens to missing values, the same for all data of a model.

    Attributes
    ----------
    how : {"error", "drop", "mean", "median"}
    values : list of float
        What each feature is filled in with; empty where nothing is.
    """

    how: str = "error"
    values: list[float] = dataclasses.field(default_factory=list)

    @classmethod
    def learnt(cls, how: str, table: Table) -> Filling:
        """The filling that the rows of a table teach.

        Raises
        ------
        DataError
            A feature without any value.
        """
        if table.format == "store":
            return cls.of_store(Store(table.source))
        if how in ("error", "drop") or sparse.issparse(table.X):
            return cls(how)
        known = ~np.isnan(table.X)
        if not known.any(axis=0).all():
            column = int(np.argmin(known.any(axis=0)))
            name = repr(table.feature_names[column]) if table.feature_names else column + 1
            raise DataError(f"{table.source}: feature {name} has no value in any row; leave the column out")
        centre = np.nanmean if how == "mean" else np.nanmedian
        return cls(how, [float(centre(column.astype(np.float64))) for column in table.X.T])

    @classmethod
    def of_store(cls, store: Store) -> Filling:
        """What the conversion to a store did with missing values, of which it has none any more."""
        noted = store.header.get(NOTE)
        plain = {name: noted[name] for name in ("how", "values")} if isinstance(noted, dict) else None
        return cls() if plain is None else cls.of_model({NOTE: plain})

    @classmethod
    def of_model(cls, notes: Mapping[str, Any]) -> Filling:
        """That of a saved model, from its notes.

        Raises
        ------
        DataError
            The notes do not hold one that this version knows.
        """
        noted = notes.get(NOTE, {"how": "error", "values": []})
        fine = isinstance(noted, dict) and noted.keys() == {"how", "values"} and noted["how"] in MISSING
        if not fine or not all(isinstance(one, (int, float)) and np.isfinite(one) for one in noted["values"]):
            raise DataError(f"the model's note on {NOTE} cannot be read: {str(noted)[:80]}")
        return cls(**noted)

    @property
    def keeps(self) -> str:
        """What `read` is to do with missing values."""
        return "error" if self.how == "error" else "keep"

    @property
    def notes(self) -> dict[str, Any]:
        """What a model file keeps."""
        return {} if self.how == "error" else {NOTE: dataclasses.asdict(self)}

    def found_in(self, table: Table) -> dict[str, Any]:
        """What is missing in a table, and what happens to it, in words."""
        if self.how == "error" or table.format == "store" or sparse.issparse(table.X):
            return {}
        gaps = np.isnan(table.X)
        if self.how == "drop":
            return {"rows left out for missing values": int(gaps.any(axis=1).sum())}
        return {f"missing values filled in with the {self.how}": int(gaps.sum())}

    def applied(self, table: Table, every_row: bool = False) -> Table:
        """The table without missing values.

        Raises
        ------
        DataError
            No row is left, or one would be left out although every row is needed.
        """
        if self.how == "error" or table.format == "store" or sparse.issparse(table.X):
            return table
        gaps = np.isnan(table.X)
        if not gaps.any():
            return table
        if self.values:
            X = np.where(gaps, np.array(self.values, dtype=table.X.dtype), table.X)
            return dataclasses.replace(table, X=X, known_nonzero=None)
        whole = ~gaps.any(axis=1)
        if every_row:
            row = int(np.argmin(whole))
            raise DataError(
                f"{table.source}: row {row + 1} has missing values, and the model was trained without such rows; train "
                "it with --missing mean or median to predict them"
            )
        if not whole.any():
            raise DataError(f"{table.source}: every row has missing values: none is left")
        y, weights = table.y, table.sample_weight
        return dataclasses.replace(
            table,
            X=np.ascontiguousarray(table.X[whole]),
            y=None if y is None else y[whole],
            sample_weight=None if weights is None else weights[whole],
            known_nonzero=None,
        )
