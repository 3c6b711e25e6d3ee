"""The labels of a store that is being written: numbers, or text as codes of its classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from saddlesvm.data.data_table import Cells, are_whole, is_number
from saddlesvm.data.errors import DataError

CLASSES_LISTED = 10_000  # distinct numbers that are listed as classes, at most; a guess
TEXTS_KEPT = 100_000  # distinct texts that are held in memory, at most; a guess


class LabelColumn:
    """Collects labels block by block in memory, as a fit holds them, too.

    Cells of a text file are kept as text until the end: only then is it known if all of them are
    numbers.

    Parameters
    ----------
    name : str
        The name of the store in messages.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.texts: dict[str, int] = {}  # the code of each text
        self.only_cells = True
        self.codes: list[np.ndarray] = []
        self.numbers: list[np.ndarray] = []

    def append(self, y: Any) -> None:
        """Add labels: an array of numbers or text, or the cells of a text file.

        Raises
        ------
        DataError
            Labels that are not finite, text among numbers, or too many different texts.
        """
        if not isinstance(y, Cells):
            y = np.asarray(y)
            holds_texts = y.dtype == object and all(isinstance(label, str) for label in y)
            if y.dtype.kind in "biuf":
                self._append_numbers(y)
                return
            if y.dtype.kind not in "US" and not holds_texts:
                raise DataError(
                    f"{self.name}: the labels are of type {y.dtype}; they must be numbers or text"
                )
            self.only_cells = False
            y = Cells(y.astype(str).tolist(), np.arange(y.size))
        if self.numbers:
            self._append_spelled_numbers(y)
            return
        # Each new text gets the next code.
        known = [self.texts.setdefault(text, len(self.texts)) for text in y.texts]
        self.codes.append(np.array(known, dtype=np.int32)[y.codes])
        # So many texts are no classes: they must be targets, spelled as text.
        if len(self.texts) > TEXTS_KEPT:
            self._turn_into_numbers()

    def _append_spelled_numbers(self, y: Cells) -> None:
        """Add cells after numbers: they must be numbers, too."""
        for text in y.texts:
            if not (self.only_cells and is_number(text)):
                raise DataError(
                    f"{self.name}: has text for a label ({text!r}) after numbers; do not mix them"
                )
        self._append_numbers(y.values())

    def _append_numbers(self, y: np.ndarray) -> None:
        """Add finite numbers as int64 or float64."""
        if not y.size:
            return
        if self.texts:
            self._turn_into_numbers()
        bad = y[~np.isfinite(y)]
        if bad.size:
            raise DataError(f"{self.name}: has the label {bad[0]}; labels must be finite")
        self.numbers.append(y.astype(np.float64 if y.dtype.kind == "f" else np.int64))

    def _turn_into_numbers(self) -> None:
        """Replace the codes of spelled numbers by the numbers."""
        for text in self.texts:
            if self.only_cells and is_number(text):
                continue
            if len(self.texts) > TEXTS_KEPT:
                raise DataError(
                    f"{self.name}: the label column has more than {TEXTS_KEPT:,} different texts, "
                    f"such as {text!r}: name the column of the labels with label (--label)"
                )
            raise DataError(
                f"{self.name}: has the label {text!r} among numbers; allowed are numbers, or text"
            )
        numbers = np.array([float(text) for text in self.texts])
        self.texts = {}
        for codes in self.codes:
            self._append_numbers(numbers[codes])
        self.codes = []

    def finish(self) -> tuple[np.ndarray, dict[str, Any]]:
        """Return the array of ``labels.npy``, and what the header says of the labels."""
        if self.texts and self.only_cells and all(map(is_number, self.texts)):
            self._turn_into_numbers()
        if self.texts:
            # Number the classes in ascending order.
            names = sorted(self.texts)
            position = np.empty(len(names), dtype=np.int32)
            position[[self.texts[name] for name in names]] = np.arange(len(names))
            codes = position[np.concatenate(self.codes)]
            counts = np.bincount(codes, minlength=len(names))
            return codes, {"kind": "text", "classes": names, "counts": counts.tolist()}

        labels = np.concatenate(self.numbers)
        if labels.dtype == np.float64 and are_whole(labels):
            labels = labels.astype(np.int64)
        classes, counts = np.unique(labels, return_counts=True)
        is_listed = classes.size <= CLASSES_LISTED
        return labels, {
            "kind": "numbers",
            "smallest": classes[0].item(),
            "largest": classes[-1].item(),
            "classes": classes.tolist() if is_listed else None,
            "counts": counts.tolist() if is_listed else None,
        }
