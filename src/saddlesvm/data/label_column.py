"""The labels of a store that is being written: numbers, or text as codes of its classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from saddlesvm.data.data_table import Cells, are_whole, is_number
from saddlesvm.data.errors import DataError
from saddlesvm.data.growing import GrowingArray

CLASSES_LISTED = 10_000  # distinct numbers that are listed as classes, at most; a guess
TEXTS_KEPT = 100_000  # distinct texts that are held in memory, at most; a guess


class LabelColumn:
    """Writes ``labels.npy`` block by block; the type of the numbers is known at the end.

    Cells of a text file are kept as text until the end: only then is it known if all of them are
    numbers.

    Parameters
    ----------
    folder : Path
        The folder of the file.
    name : str
        The name of the store in messages.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = name
        self.file: GrowingArray | None = None
        self.codes: dict[str, int] = {}
        # Rows of each class, or of each code; None if there are too many different numbers.
        self.counts: dict[Any, int] | None = {}
        self.only_cells = True
        self.is_whole = True
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
            self._append_text(y, is_spelled=True)
            return
        y = np.asarray(y)
        holds_texts = y.dtype == object and all(isinstance(label, str) for label in y)
        if y.dtype.kind in "US" or holds_texts:
            self.only_cells = False
            self._append_text(Cells(y.astype(str).tolist(), np.arange(y.size)), is_spelled=False)
        elif y.dtype.kind in "biuf":
            self._append_numbers(y)
        else:
            raise DataError(
                f"{self.name}: the labels are of type {y.dtype}; they must be numbers or text"
            )

    def _append_text(self, y: Cells, is_spelled: bool) -> None:
        """Add texts, or numbers that a text file spells, as codes."""
        # Numbers came before: these must be numbers, too.
        if self.file is not None and not self.codes:
            for text in y.texts:
                if not (is_spelled and is_number(text)):
                    raise DataError(
                        f"{self.name}: has text for a label ({text!r}) after numbers; "
                        "do not mix them"
                    )
            self._append_numbers(y.values())
            return
        if not y.codes.size:
            return
        known = [self.codes.setdefault(text, len(self.codes)) for text in y.texts]
        codes = np.array(known, dtype=np.int32)[y.codes]
        self._write(codes, np.int32)
        self._count(codes)
        if len(self.codes) > TEXTS_KEPT:
            self._turn_into_numbers()

    def _append_numbers(self, y: np.ndarray) -> None:
        """Add numbers; at the first numbers, the file becomes float64."""
        if not y.size:
            return
        if self.codes:
            self._turn_into_numbers()
        y = y.astype(np.float64 if y.dtype.kind == "f" else np.int64)
        self._measure(y)
        if self.file is not None and self.file.dtype == np.int64 and y.dtype == np.float64:
            self.file = self.file.rewrite(np.float64, lambda piece: piece)
        self._write(y, y.dtype)
        self._count(y)

    def _measure(self, numbers: np.ndarray) -> None:
        """Check that numbers are finite, and note their range and if all are whole."""
        bad = numbers[~np.isfinite(numbers)]
        if bad.size:
            raise DataError(f"{self.name}: has the label {bad[0]}; labels must be finite")
        if numbers.dtype == np.float64:
            self.is_whole = self.is_whole and are_whole(numbers)
        self.smallest = min(self.smallest, numbers.min())
        self.largest = max(self.largest, numbers.max())

    def _write(self, values: np.ndarray, dtype: Any) -> None:
        """Append values to the file, which is made for the first of them."""
        if self.file is None:
            self.file = GrowingArray(self.folder, "labels", dtype)
        self.file.append(values)

    def _count(self, labels: np.ndarray) -> None:
        """Count how often each label occurs, until there are too many different numbers."""
        if self.counts is None:
            return
        values, counts = np.unique(labels, return_counts=True)
        for value, count in zip(values.tolist(), counts.tolist(), strict=True):
            self.counts[value] = self.counts.get(value, 0) + count
        if not self.codes and len(self.counts) > CLASSES_LISTED:
            self.counts = None

    def _turn_into_numbers(self) -> None:
        """Replace the codes of spelled numbers by the numbers."""
        for text in self.codes:
            if self.only_cells and is_number(text):
                continue
            if len(self.codes) > TEXTS_KEPT:
                raise DataError(
                    f"{self.name}: the label column has more than {TEXTS_KEPT:,} different texts, "
                    f"such as {text!r}: name the column of the labels with label (--label)"
                )
            raise DataError(
                f"{self.name}: has the label {text!r} among numbers; allowed are numbers, or text"
            )
        assert self.file is not None
        assert self.counts is not None
        numbers = np.array([float(text) for text in self.codes])
        self._measure(numbers)

        # Several spellings, as 1 and 1.0, are one number.
        counts_of_codes = self.counts
        self.codes = {}
        self.counts = {}
        for code, count in counts_of_codes.items():
            number = float(numbers[code])
            self.counts[number] = self.counts.get(number, 0) + count
        if len(self.counts) > CLASSES_LISTED:
            self.counts = None
        self.file = self.file.rewrite(np.float64, lambda codes: numbers[codes])

    def finish(self) -> dict[str, Any]:
        """Write ``labels.npy``, and return what the header says of the labels."""
        if self.codes and self.only_cells and all(map(is_number, self.codes)):
            self._turn_into_numbers()
        assert self.file is not None
        if self.codes:
            return self._finish_text(self.file)
        if self.is_whole and self.file.dtype == np.float64:
            self.file = self.file.rewrite(np.int64, lambda piece: piece)
        self.file.finish((self.file.n_items,))

        # JSON needs Python's numbers, of the type of the file.
        to_number = self.file.dtype.type
        classes = None
        counts = None
        if self.counts is not None:
            classes = [to_number(value).item() for value in sorted(self.counts)]
            counts = [self.counts[value] for value in sorted(self.counts)]
        return {
            "kind": "numbers",
            "smallest": to_number(self.smallest).item(),
            "largest": to_number(self.largest).item(),
            "classes": classes,
            "counts": counts,
        }

    def _finish_text(self, file: GrowingArray) -> dict[str, Any]:
        """Number the classes in ascending order, and write the codes."""
        assert self.counts is not None
        classes = sorted(self.codes)
        position = np.empty(len(classes), dtype=np.int32)
        position[[self.codes[text] for text in classes]] = np.arange(len(classes), dtype=np.int32)
        self.file = file.rewrite(np.int32, lambda codes: position[codes])
        self.file.finish((self.file.n_items,))
        return {
            "kind": "text",
            "classes": classes,
            "counts": [self.counts[self.codes[text]] for text in classes],
        }

    def close(self) -> None:
        """Close the file as it is."""
        if self.file is not None:
            self.file.close()
