"""The labels of a store that is being written: numbers, or text as codes of its classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from saddlesvm.data.data_table import are_whole, join_labels, refuse_beyond_int64
from saddlesvm.data.errors import DataError

CLASSES_LISTED = 10_000  # distinct numbers that are listed as classes, at most; a guess
TEXTS_KEPT = 100_000  # distinct texts that are held in memory, at most; a guess


class LabelColumn:
    """Collects labels block by block in memory, as a fit holds them, too.

    Parameters
    ----------
    name : str
        The name of the store in messages.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.texts: dict[str, int] = {}  # the code of each text
        self.codes: list[np.ndarray] = []
        self.numbers: list[np.ndarray] = []

    def append(self, y: Any) -> None:
        """Add an array of labels, numbers or text.

        Raises
        ------
        DataError
            Labels that are not finite, text among numbers, or too many different texts.
        """
        y = np.asarray(y)
        holds_texts = y.dtype == object and all(isinstance(label, str) for label in y)
        is_text = y.dtype.kind in "US" or holds_texts
        if not y.size:
            return
        if not is_text and y.dtype.kind not in "biuf":
            raise DataError(
                f"{self.name}: the labels are of type {y.dtype}; they must be numbers or text"
            )
        if (is_text and self.numbers) or (not is_text and self.texts):
            text = y[0] if is_text else next(iter(self.texts))
            raise DataError(
                f"{self.name}: has text and numbers for labels ({str(text)!r} and others); "
                "write them all as text, or all as numbers"
            )
        if is_text:
            self._append_texts(y.astype(str))
            return
        bad = y[~np.isfinite(y)]
        if bad.size:
            raise DataError(f"{self.name}: has the label {bad[0]}; labels must be finite")
        refuse_beyond_int64(y, self.name)
        self.numbers.append(y.astype(np.float64 if y.dtype.kind == "f" else np.int64))

    def _append_texts(self, y: np.ndarray) -> None:
        """Add texts; each new text gets the next code."""
        distinct, positions = np.unique(y, return_inverse=True)
        codes = [self.texts.setdefault(text, len(self.texts)) for text in distinct.tolist()]
        self.codes.append(np.array(codes, dtype=np.int32)[positions])
        if len(self.texts) > TEXTS_KEPT:
            raise DataError(
                f"{self.name}: the label column has more than {TEXTS_KEPT:,} different texts, "
                f"such as {str(distinct[0])!r}: name the column of the labels with label "
                "(--label)"
            )

    def finish(self) -> tuple[np.ndarray, dict[str, Any]]:
        """Return the array of ``labels.npy``, and what the header says of the labels."""
        if self.texts:
            # Number the classes in ascending order.
            names = sorted(self.texts)
            position = np.empty(len(names), dtype=np.int32)
            position[[self.texts[name] for name in names]] = np.arange(len(names))
            codes = position[np.concatenate(self.codes)]
            counts = np.bincount(codes, minlength=len(names))
            return codes, {"kind": "text", "classes": names, "counts": counts.tolist()}

        labels = join_labels(self.numbers)
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
