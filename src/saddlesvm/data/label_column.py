"""The labels of a store that is being written: numbers, or text as codes of its classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from saddlesvm.data.errors import DataError
from saddlesvm.data.growing import GrowingArray
from saddlesvm.data.table import Cells, is_number

CLASSES_LISTED = 10_000  # most distinct numbers that are listed as classes
TEXTS_KEPT = 100_000  # most distinct texts that are held in memory
EXACT = 2.0**53  # float64 holds every whole number up to this one


class LabelColumn:
    """Writes ``labels.npy`` block by block; the type of the numbers is known at the end.

    Cells of a text file are kept as text until the end: only then it is known whether all of them are numbers.

    Parameters
    ----------
    folder : Path
        Where the file is.
    name : str
        For the messages.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = name
        self.file: GrowingArray | None = None
        self.codes: dict[str, int] = {}
        self.counts: dict[Any, int] | None = {}  # of classes, or of codes; None once there are too many numbers
        self.only_cells = True
        self.whole = True
        self.smallest = np.inf
        self.largest = -np.inf

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
            self.only_cells = False
            self._append_text(Cells(y.astype(str).tolist(), np.arange(y.size)), spelled=False)
        elif y.dtype.kind in "biuf":
            self._append_numbers(y)
        else:
            raise DataError(f"{self.name}: the labels are of type {y.dtype}; they must be numbers or text")

    def _append_text(self, y: Cells, spelled: bool) -> None:
        if self.file is not None and not self.codes:
            text = next((text for text in y.texts if not (spelled and is_number(text))), None)
            if text is not None:
                raise DataError(f"{self.name}: has text for a label ({text!r}) after numbers; do not mix them")
            self._append_numbers(y.values())
            return
        if not y.codes.size:
            return
        codes = np.array([self.codes.setdefault(text, len(self.codes)) for text in y.texts], dtype=np.int32)[y.codes]
        self._write(codes, np.int32)
        self._count(codes)
        if len(self.codes) > TEXTS_KEPT:
            self._take_for_numbers()

    def _append_numbers(self, y: np.ndarray[Any, Any]) -> None:
        if not y.size:
            return
        if self.codes:
            self._take_for_numbers()
        y = y.astype(np.float64 if y.dtype.kind == "f" else np.int64)
        self._measure(y)
        if self.file is not None and self.file.dtype == np.int64 and y.dtype == np.float64:
            self.file = self.file.changed(np.float64, lambda piece: piece)
        self._write(y, y.dtype)
        self._count(y)

    def _measure(self, numbers: np.ndarray[Any, Any]) -> None:
        """Check that numbers are finite, and note the range and whether all are whole."""
        bad = numbers[~np.isfinite(numbers)]
        if bad.size:
            raise DataError(f"{self.name}: has the label {bad[0]}; labels must be finite")
        if numbers.dtype == np.float64:
            self.whole = self.whole and bool(np.all((numbers == np.floor(numbers)) & (np.abs(numbers) < EXACT)))
        self.smallest = min(self.smallest, numbers.min())
        self.largest = max(self.largest, numbers.max())

    def _write(self, values: np.ndarray[Any, Any], dtype: Any) -> None:
        if self.file is None:
            self.file = GrowingArray(self.folder, "labels", dtype)
        self.file.append(values)

    def _count(self, labels: np.ndarray[Any, Any]) -> None:
        """Count how often each label occurs, until there are too many different numbers."""
        if self.counts is None:
            return
        values, found = np.unique(labels, return_counts=True)
        for value, count in zip(values.tolist(), found.tolist(), strict=True):
            self.counts[value] = self.counts.get(value, 0) + count
        if not self.codes and len(self.counts) > CLASSES_LISTED:
            self.counts = None

    def _take_for_numbers(self) -> None:
        """Replace the codes of spelled numbers by the numbers."""
        text = next((text for text in self.codes if not (self.only_cells and is_number(text))), None)
        if text is not None and len(self.codes) > TEXTS_KEPT:
            raise DataError(
                f"{self.name}: the label column has more than {TEXTS_KEPT:,} different texts, such as {text!r}: name "
                "the column of the labels with label (--label)"
            )
        if text is not None:
            raise DataError(f"{self.name}: has the label {text!r} among numbers; allowed are numbers, or text")
        assert self.file is not None and self.counts is not None
        numbers = np.array([float(text) for text in self.codes])
        counted = self.counts
        self.codes = {}
        self.counts = {}
        self._measure(numbers)
        for code, count in counted.items():
            number = float(numbers[code])
            self.counts[number] = self.counts.get(number, 0) + count
        if len(self.counts) > CLASSES_LISTED:
            self.counts = None
        self.file = self.file.changed(np.float64, lambda codes: numbers[codes])

    def finish(self) -> dict[str, Any]:
        """Write ``labels.npy``; what the header says of the labels."""
        if self.codes and self.only_cells and all(map(is_number, self.codes)):
            self._take_for_numbers()
        assert self.file is not None
        if self.codes:
            return self._finish_text(self.file)
        if self.whole and self.file.dtype == np.float64:
            self.file = self.file.changed(np.int64, lambda piece: piece)
        self.file.finish((self.file.n_items,))
        plain = self.file.dtype.type
        classes = None if self.counts is None else sorted(self.counts)
        return {
            "kind": "numbers",
            "smallest": plain(self.smallest).item(),
            "largest": plain(self.largest).item(),
            "classes": None if classes is None else [plain(one).item() for one in classes],
            "counts": None if classes is None or self.counts is None else [self.counts[one] for one in classes],
        }

    def _finish_text(self, file: GrowingArray) -> dict[str, Any]:
        """Number the classes in ascending order, and write the codes."""
        assert self.counts is not None
        classes = sorted(self.codes)
        place = np.empty(len(classes), dtype=np.int32)
        place[[self.codes[text] for text in classes]] = np.arange(len(classes), dtype=np.int32)
        self.file = file.changed(np.int32, lambda codes: place[codes])
        self.file.finish((self.file.n_items,))
        return {"kind": "text", "classes": classes, "counts": [self.counts[self.codes[text]] for text in classes]}

    def close(self) -> None:
        """Close the file as it is."""
        if self.file is not None:
            self.file.close()
