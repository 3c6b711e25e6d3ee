"""``saddlesvm predict``: the predictions of a saved model, a line a row."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

import click

from saddlesvm.cli import OK
from saddlesvm.cli.command import declare, option
from saddlesvm.cli.console import safe_label, write_output
from saddlesvm.cli.options import IMPORT, Reading, data_argument, reading_options
from saddlesvm.cli.values import DATA, LINES, MODEL
from saddlesvm.data.errors import DataError, atomic_write

if TYPE_CHECKING:
    import numpy as np

PREDICTED_ROWS = 100_000  # rows predicted at a time, because text takes many times the memory of numbers
KNOWN_SHOWN = 5  # labels that a message names


@declare(
    examples=(
        "saddlesvm predict data.model new.csv",
        "saddlesvm predict data.model new.csv --scores --output scores.txt",
    )
)
@click.argument("model_path", type=MODEL, metavar="MODEL")
@data_argument()
@option("--scores", is_flag=True, help="The decision values behind each prediction.")
@option("--probabilities", is_flag=True, help="The probability of each class, after a line with the classes.")
@option(
    "--proven",
    type=DATA,
    metavar="TRAINING",
    help="The training data: marks each prediction that the exact optimum shares as 'proven', others as 'open'.",
)
@option("-o", "--output", type=LINES, help="Write to this file instead of standard output.")
@IMPORT
@reading_options()
def command(
    *,
    model_path: str,
    data: str | list[str],
    scores: bool,
    probabilities: bool,
    proven: str | None,
    output: str | None,
    reading: Reading,
) -> int:
    """Print the predictions of a model, one line a row."""
    import numpy as np
    from scipy import sparse

    from saddlesvm.cli.facts import describe_worth
    from saddlesvm.cli.rows import load_model
    from saddlesvm.cli.show import as_text
    from saddlesvm.estimators.linear_classifier import LinearClassifier
    from saddlesvm.estimators.preparation import labels_of

    model, preparation = load_model(model_path)
    if probabilities and not hasattr(model, "predict_proba"):
        raise DataError(
            f"{model_path}: the model has no probabilities: train it with --probability, or with --loss logistic"
        )
    if proven is not None and not isinstance(model, LinearClassifier):
        raise DataError(f"{model_path}: --proven is for linear classifiers; this is a {type(model).__name__}")
    table = preparation.read(data, every_row=True, **vars(reading))
    if proven is not None:
        taught = preparation.read(proven, **vars(reading))
        model.prove(taught.X, labels_of(taught), taught.sample_weight)

    predicted = []
    with atomic_write(output) if output else contextlib.nullcontext() as file:
        is_terminal = file is None and sys.stdout.isatty()
        if probabilities:
            labels = (safe_label(str(label), is_terminal) for label in model.classes_.tolist())
            write(file, f"labels {' '.join(labels)}\n")
        for start in range(0, table.n_rows, PREDICTED_ROWS):
            X = table.X[start : start + PREDICTED_ROWS]
            found = model.predict(X)
            predicted.append(found.toarray() if sparse.issparse(found) else found)
            columns = label_columns(model, predicted[-1], is_terminal)
            columns += number_columns(model, X, scores, probabilities)
            if proven is not None:
                columns += [*np.atleast_2d(np.where(model.is_proven(X), "proven", "open").T)]
            write(file, "".join(" ".join(line) + "\n" for line in zip(*columns, strict=True)))

    # Data with labels say how right the predictions are, beside them.
    if table.y is not None and predicted[0].ndim == 1:
        report_unknown_labels(model, table.y)
        for name, value in describe_worth(model, np.concatenate(predicted), table.y, "data").items():
            print(f"{name.removeprefix('data_').replace('_', ' ')} {as_text(name, value)}", file=sys.stderr)
    return OK


def write(file: Any, text: str) -> None:
    """Write lines to a file, or to standard output."""
    if file is None:
        write_output(text)
    else:
        file.write(text.encode())


def label_columns(model: Any, predicted: np.ndarray, is_terminal: bool) -> list[Any]:
    """The predictions as text, a column for each output."""
    if predicted.ndim > 1:
        return [*predicted.astype(str).T]
    if predicted.dtype.kind != "U":
        return [predicted.astype(str)]
    labels = {label: safe_label(label, is_terminal) for label in model.classes_.tolist()}
    return [[labels[label] for label in predicted.tolist()]]


def number_columns(model: Any, X: Any, scores: bool, probabilities: bool) -> list[Any]:
    """The scores or probabilities that are asked for, as text, a column for each."""
    import numpy as np

    if probabilities:
        numbers = np.asarray(model.predict_proba(X)).T
    elif scores and hasattr(model, "decision_function"):
        numbers = np.atleast_2d(model.decision_function(X).T)
    else:
        return []
    return [np.char.mod("%.9g", column) for column in numbers]


def report_unknown_labels(model: Any, y: np.ndarray) -> None:
    """Say on standard error which labels of the data the model does not have among its classes."""
    import numpy as np

    from saddlesvm.data.table import shorten

    if not hasattr(model, "classes_"):
        return
    known = model.classes_.tolist()
    unknown = [label for label in np.unique(y).tolist() if label not in known]
    if unknown:
        held = shorten(unknown, KNOWN_SHOWN)
        classes = shorten(known, KNOWN_SHOWN)
        print(f"the model does not know these labels of the data: {held}; its classes are {classes}", file=sys.stderr)
