"""``saddlesvm prove``: write a proof of how near a model is to the optimum, for others to check."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from saddlesvm.cli import OK
from saddlesvm.cli.command import declare
from saddlesvm.cli.options import DATA_ARGUMENT, JSON, READING_OPTIONS, take_reading
from saddlesvm.cli.values import MODEL, OUTPUT
from saddlesvm.data.errors import DataError, atomic_write
from saddlesvm.data.reading import Reading

if TYPE_CHECKING:
    from saddlesvm.data import Table
    from saddlesvm.estimators.base import Estimator
    from saddlesvm.estimators.preparation import Preparation


@declare(
    "saddlesvm prove data.model data.csv -o proof.json",
    "saddlesvm prove data.model data.csv --label outcome --columns name=drop -o proof.json",
)
@click.argument("model_path", type=MODEL, metavar="MODEL")
@DATA_ARGUMENT
@click.option("-o", "--output", type=OUTPUT, required=True, help="Write the proof here, as JSON.")
@READING_OPTIONS
@JSON
def command(*, model_path: str, data: str, output: str, as_json: bool, **given: Any) -> int:
    """Write a proof of a linear model, for others to check."""
    from saddlesvm.cli.rows import load_model
    from saddlesvm.cli.show import Facts, show
    from saddlesvm.estimators.certify import describe_finding
    from saddlesvm.estimators.training_data import labels_of, read_training
    from saddlesvm.problem.certificate import Certificate

    model, preparation = load_model(model_path)
    check_provable(model, preparation, model_path)
    reading = take_reading(given)
    # LIBSVM text: indices count as in the file of the fit.
    if reading.zero_based == "auto":
        reading = replace(reading, zero_based=model.notes_.get("zero_based", "auto"))
    # The checker reads numbers as they are: missing values are an error here, too.
    table = read_training(data, reading, n_features=model.n_features_in_)
    table = preparation.check_features(table)
    y = labels_of(table)
    how_to_read = options_for_checker(data, reading, table)
    proof = model.proof(table.X, y, table.sample_weight, read=how_to_read)
    text = json.dumps(proof, indent=1)
    with atomic_write(output) as file:
        file.write(text.encode())
    # Hexadecimal text keeps every bit of a number.
    high, low, gap = (float.fromhex(number) for number in proof["claim"])
    facts: Facts = {
        "found": {"result": describe_finding(Certificate(high, low))},
        "proven": {"objective_at_most": high, "least_possible_at_least": low, "gap_at_most": gap},
        "written": {"proof": output, "bytes": len(text)},
    }
    show(facts, as_json)
    return OK


def check_provable(model: Estimator, preparation: Preparation, path: str) -> None:
    """Raise DataError for a model that is not linear in the numbers of the data as they are."""
    from saddlesvm.estimators.linear_model import LinearModel

    needed = "a proof is about a linear model on the numbers of the data as they are"
    if not isinstance(model, LinearModel):
        raise DataError(f"{path}: is a {type(model).__name__}; {needed}")
    if preparation.columns is not None:
        raise DataError(
            f"{path}: encodes a table with words first; {needed}: encode the table, and train on "
            "the encoded numbers"
        )
    if preparation.before is not None:
        raise DataError(
            f"{path}: applies a {type(preparation.before).__name__} to the data first; {needed}: "
            "scale the data, and train on the scaled numbers"
        )


def options_for_checker(data: str, reading: Reading, table: Table) -> dict[str, object]:
    """Return the checker's options to read a text file in the same way; empty for other formats."""
    from saddlesvm.data.delimited import find_layout

    if table.format == "libsvm":
        return {"zero_based": bool(table.zero_based)}
    path = Path(data)
    if table.format != "csv" or not path.is_file():
        return {}
    # The checker takes positions of columns, which the first lines give.
    layout = find_layout(
        path, reading.label, reading.header, table.n_features, reading.drop_columns
    )
    return {"label": layout.label, "drop": sorted(layout.dropped), "header": layout.skip > 0}
