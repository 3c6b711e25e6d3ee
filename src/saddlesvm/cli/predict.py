"""``saddlesvm predict``: the predictions of a saved model, one line for each row."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

import click

from saddlesvm.cli import OK
from saddlesvm.cli.command import declare
from saddlesvm.cli.console import printable_label, write_output
from saddlesvm.cli.options import DATA_ARGUMENT, IMPORT, READING_OPTIONS, take_reading
from saddlesvm.cli.values import DATA, LINES, MODEL
from saddlesvm.data.errors import DataError, atomic_write

if TYPE_CHECKING:
    from typing import IO

    import numpy as np

    from saddlesvm.estimators.base import Estimator
    from saddlesvm.runtime.data_types import RowsLike

ROWS_AT_A_TIME = 100_000  # rows: their text takes many times the memory of their numbers (guessed)
LABELS_SHOWN = 5  # labels in a message


@declare(
    "saddlesvm predict data.model new.csv",
    "saddlesvm predict data.model new.csv --scores --output scores.txt",
)
@click.argument("model_path", type=MODEL, metavar="MODEL")
@DATA_ARGUMENT
@click.option("--scores", is_flag=True, help="Print the decision values, too.")
@click.option(
    "--probabilities",
    is_flag=True,
    help="Print the probability of each class, too; the first line names the classes.",
)
@click.option(
    "--proven",
    type=DATA,
    metavar="TRAINING",
    help="Mark predictions that the exact optimum for this training data shares as 'proven', "
    "the others as 'open'.",
)
@click.option("-o", "--output", type=LINES, help="Write to this file instead of standard output.")
@IMPORT
@READING_OPTIONS
def command(
    *,
    model_path: str,
    data: str,
    scores: bool,
    probabilities: bool,
    proven: str | None,
    output: str | None,
    **given: Any,
) -> int:
    """Print the predictions of a model, one line for each row."""
    import numpy as np
    from scipy import sparse

    from saddlesvm.cli.rows import load_model
    from saddlesvm.estimators.linear import LinearSVC
    from saddlesvm.estimators.training_data import labels_of

    if scores and probabilities:
        raise DataError("give --scores or --probabilities, not both")
    model, preparation = load_model(model_path)
    if probabilities and not hasattr(model, "predict_proba"):
        raise DataError(
            f"{model_path}: the model has no probabilities: train it with --loss logistic"
        )
    if proven is not None and not isinstance(model, LinearSVC):
        raise DataError(
            f"{model_path}: is a {type(model).__name__}; --proven is for linear classifiers: "
            "leave it out"
        )
    reading = take_reading(given)
    # A prediction for every row: rows with missing values may not be left out.
    table = preparation.read(data, reading, every_row=True)
    if proven is not None:
        training = preparation.read(proven, reading)
        model.prove(training.X, labels_of(training), training.sample_weight)

    # Predict and write the rows in blocks.
    predicted = []
    with atomic_write(output) if output else contextlib.nullcontext() as file:
        is_terminal = file is None and sys.stdout.isatty()
        if probabilities:
            labels = (printable_label(str(label), is_terminal) for label in model.classes_.tolist())
            write_text(file, f"labels {' '.join(labels)}\n")
        for start in range(0, table.n_rows, ROWS_AT_A_TIME):
            X = table.X[start : start + ROWS_AT_A_TIME]
            found = model.predict(X)
            if sparse.issparse(found):
                found = found.toarray()
            predicted.append(found)
            columns = label_columns(model, found, is_terminal)
            columns += number_columns(model, X, scores, probabilities)
            if proven is not None:
                marks = np.where(model.is_proven(X), "proven", "open")
                columns += list(np.atleast_2d(marks.T))
            lines = (" ".join(cells) + "\n" for cells in zip(*columns, strict=True))
            write_text(file, "".join(lines))

    # Data with labels show how good the predictions are.
    if table.y is not None and predicted[0].ndim == 1:
        print_errors(model, np.concatenate(predicted), table.y)
    return OK


def write_text(file: IO[bytes] | None, text: str) -> None:
    """Write lines to a file, or to standard output."""
    if file is None:
        write_output(text)
    else:
        file.write(text.encode())


def label_columns(
    model: Estimator, predicted: np.ndarray, is_terminal: bool
) -> list[np.ndarray | list[str]]:
    """Return the predictions as text, a column for each output."""
    # Several labels or targets: a column of numbers for each.
    if predicted.ndim > 1:
        return list(predicted.astype(str).T)
    if predicted.dtype.kind != "U":
        return [predicted.astype(str)]
    # Make each label printable once, not once for each row.
    labels = {label: printable_label(label, is_terminal) for label in model.classes_.tolist()}
    return [[labels[label] for label in predicted.tolist()]]


def number_columns(
    model: Estimator, X: RowsLike, scores: bool, probabilities: bool
) -> list[np.ndarray]:
    """Return the scores or probabilities that are asked for, as text, in columns."""
    import numpy as np

    if probabilities:
        numbers = np.asarray(model.predict_proba(X)).T
    elif scores and hasattr(model, "decision_function"):
        numbers = np.atleast_2d(model.decision_function(X).T)
    else:
        return []
    return [np.char.mod("%.9g", column) for column in numbers]


def print_errors(model: Estimator, predicted: np.ndarray, y: np.ndarray) -> None:
    """Print on standard error how well the predictions agree with the labels of the data."""
    import numpy as np

    from saddlesvm.cli.facts import describe_worth
    from saddlesvm.cli.show import write_value
    from saddlesvm.data.data_table import shorten

    # Labels that the model cannot predict would lower the accuracy without an explanation.
    if hasattr(model, "classes_"):
        known = model.classes_.tolist()
        unknown = [label for label in np.unique(y).tolist() if label not in known]
        if unknown:
            print(
                f"the model does not know these labels of the data: "
                f"{shorten(unknown, LABELS_SHOWN)}; its classes are "
                f"{shorten(known, LABELS_SHOWN)}",
                file=sys.stderr,
            )
    for name, value in describe_worth(model, predicted, y, "data").items():
        title = name.removeprefix("data_").replace("_", " ")
        print(f"{title} {write_value(name, value)}", file=sys.stderr)
