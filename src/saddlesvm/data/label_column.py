"""Labels that arrive in pieces: their type and the number of classes are known only after the last row."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from saddlesvm.data.errors import DataError
from saddlesvm.data.store_files import GrowingArray, Scratch

CLASSES_LISTED = 10_000  # most distinct numbers that are listed as classes
TEXTS_KEPT = 100_000  # most distinct texts that are held in memory


class Cells(NamedTuple):
    """Labels as a text file spells them: numbers if all labels of the column are, text otherwise.

    Attributes
    ----------
    texts : list of str
        The different ones.
    codes : int64 ndarray of shape (n,)
        Which of them each row has.
    """

    texts: list[str]
    codes: np.ndarray[Any, Any]

    @property
    def shape(self) -> tuple[int, ...]:
        """As of an array of labels."""
        return self.codes.shape

    def of_rows(self, rows: np.ndarray[Any, Any]) -> Cells:
        """Those of some rows."""
        return Cells(self.texts, self.codes[rows])

    def values(self) -> np.ndarray[Any, Any]:
        """The numbers, if all of them are, or else the texts."""
        numbers = all(map(is_number, self.texts))
        return (np.array([float(one) for one in self.texts]) if numbers else np.array(self.texts, dtype=str))[
            self.codes
        ]


class LabelColumn:
    """Collects the labels of a store, 8 bytes a row in a scratch file, and writes them when their type is known.

    Parameters
    ----------
    folder : Path
        Where the files are.
    name : str
        For the messages.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self.scratch = Scratch(folder / "labels.scratch")
        self.codes: dict[str, int] = {}
        self.runs: list[tuple[str, int]] = []
        self.spelled = True

    def append(self, y: Any) -> None:
        """Add labels: an array of numbers or text, or the cells of a text file.

        Raises
        ------
        DataError
            Labels that are not finite, text among numbers, or too many different texts.
        """
        if isinstance(y, Cells):
            self._append_text(y, spelled=True)
            return
        y = np.asarray(y)
        if y.dtype.kind in "US" or (y.dtype == object and all(isinstance(one, str) for one in y)):
            self.spelled = False
            self._append_text(Cells(y.astype(str).tolist(), np.arange(y.size)), spelled=False)
        elif y.dtype.kind in "biu":
            self._append_numbers("i", y.astype(np.int64))
        elif y.dtype.kind == "f":
            self._refuse_not_finite(y)
            self._append_numbers("f", y.astype(np.float64))
        else:
            raise DataError(f"{self.name}: the labels are of type {y.dtype}; they must be numbers or text")

    def _append_text(self, y: Cells, spelled: bool) -> None:
        if self.runs and self.runs[-1][0] != "t":
            text = next((text for text in y.texts if not (spelled and is_number(text))), None)
            if text is not None:
                raise DataError(f"{self.name}: has text for a label ({text!r}) after numbers; do not mix them")
            self.append(y.values())
            return
        codes = np.array([self.codes.setdefault(text, len(self.codes)) for text in y.texts], dtype=np.int64)
        self._append("t", codes[y.codes])
        if len(self.codes) > TEXTS_KEPT:
            self._take_for_numbers()

    def _append_numbers(self, kind: str, y: np.ndarray[Any, Any]) -> None:
        if self.runs and self.runs[-1][0] == "t":
            self._take_for_numbers()
        self._append(kind, y)

    def _append(self, kind: str, y: np.ndarray[Any, Any]) -> None:
        self.scratch.append(y)
        if self.runs and self.runs[-1][0] == kind:
            self.runs[-1] = (kind, self.runs[-1][1] + y.size)
        elif y.size:
            self.runs.append((kind, y.size))

    def _take_for_numbers(self) -> None:
        """Replace the codes of spelled numbers by the numbers."""
        text = next((text for text in self.codes if not (self.spelled and is_number(text))), None)
        if text is not None and len(self.codes) > TEXTS_KEPT:
            raise DataError(
                f"{self.name}: the label column has more than {TEXTS_KEPT:,} different texts, such as {text!r}: name "
                "the column of the labels with label (--label)"
            )
        if text is not None:
            raise DataError(f"{self.name}: has the label {text!r} among numbers; allowed are numbers, or text")
        numbers = np.array([float(text) for text in self.codes])
        self._refuse_not_finite(numbers)
        old, self.runs, self.codes = self.scratch, [], {}
        self.scratch = Scratch(self.folder / "numbers.scratch")
        for codes in old.pieces(0, old.n_items, np.int64):
            self._append("f", numbers[codes])
        old.remove()

    def _refuse_not_finite(self, y: np.ndarray[Any, Any]) -> None:
        bad = y[~np.isfinite(y)]
        if bad.size:
            raise DataError(f"{self.name}: has the label {bad[0]}; labels must be finite")

    def finish(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Write ``labels.npy``; what the header says of the labels, and of the file."""
        if self.codes and self.spelled and all(map(is_number, self.codes)):
            self._take_for_numbers()
        file = GrowingArray(self.folder / "labels.npy", self._dtype())
        facts = self._write_text(file) if self.codes else self._write_numbers(file)
        self.scratch.remove()
        return facts, file.finish((self.scratch.n_items,))

    def _dtype(self) -> type:
        if self.codes:
            return np.int32
        return np.int64 if all(map(_whole, self._numbers())) else np.float64

    def _numbers(self) -> Any:
        start = 0
        for kind, count in self.runs:
            yield from self.scratch.pieces(start, start + count, np.int64 if kind == "i" else np.float64)
            start += count

    def _write_text(self, file: GrowingArray) -> dict[str, Any]:
        order = sorted(self.codes)
        place = np.empty(len(order), dtype=np.int32)
        place[[self.codes[text] for text in order]] = np.arange(len(order), dtype=np.int32)
        counts = np.zeros(len(order), dtype=np.int64)
        for codes in self.scratch.pieces(0, self.scratch.n_items, np.int64):
            file.append(place[codes])
            counts += np.bincount(place[codes], minlength=len(order))
        return {"kind": "text", "classes": order, "counts": counts.tolist()}

    def _write_numbers(self, file: GrowingArray) -> dict[str, Any]:
        counts: dict[Any, int] = {}
        low, high = np.inf, -np.inf
        for numbers in self._numbers():
            file.append(numbers)
            low, high = min(low, numbers.min()), max(high, numbers.max())
            if len(counts) <= CLASSES_LISTED:
                values, found = np.unique(numbers.astype(file.dtype), return_counts=True)
                for value, count in zip(values.tolist(), found.tolist(), strict=True):
                    counts[value] = counts.get(value, 0) + count
        listed = sorted(counts) if len(counts) <= CLASSES_LISTED else None
        return {
            "kind": "numbers",
            "smallest": file.dtype.type(low).item(),
            "largest": file.dtype.type(high).item(),
            "classes": listed,
            "counts": None if listed is None else [counts[value] for value in listed],
        }

    def discard(self) -> None:
        """Close and remove the scratch file."""
        self.scratch.remove()


def is_number(text: str) -> bool:
    """Whether a cell of a text file is a number, as every reader of this package understands it."""
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and "_" not in text


def _whole(numbers: np.ndarray[Any, Any]) -> bool:
    return numbers.dtype.kind == "i" or bool(np.all((numbers == np.floor(numbers)) & (np.abs(numbers) < 2.0**53)))
