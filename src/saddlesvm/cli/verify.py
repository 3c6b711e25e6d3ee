"""``saddlesvm verify``: check a proof in exact fractions, without any result of the fit."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from saddlesvm.cli import NOT_CERTIFIED, OK
from saddlesvm.cli.command import declare
from saddlesvm.cli.options import DATA_ARGUMENT, JSON, READING_OPTIONS, take_reading
from saddlesvm.cli.values import PROOF
from saddlesvm.data.errors import DataError
from saddlesvm.data.reading import Reading

WHAT_A_PROOF_IS = "a proof is the JSON file that 'saddlesvm prove' writes"


@declare(
    "saddlesvm verify proof.json data.csv",
    "saddlesvm verify proof.json data.parquet --json",
)
@click.argument("proof_path", type=PROOF, metavar="PROOF")
@DATA_ARGUMENT
@READING_OPTIONS
@JSON
def command(*, proof_path: str, data: str, as_json: bool, **given: Any) -> int:
    """Check a proof in exact fractions.

    Nothing that the fit computed is trusted.
    """
    from saddlesvm.checker import describe
    from saddlesvm.cli.show import make_identifier, show
    from saddlesvm.estimators.proof_files import verify_proof
    from saddlesvm.estimators.training_data import labels_of, read_training

    # The proof says how its data are read; the options come first.
    proof = load_proof(proof_path)
    try:
        reading = read_as_noted(proof, take_reading(given))
        n_features = int(proof["problem"]["features"])
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise DataError(f"{proof_path}: is not a proof ({reason}); {WHAT_A_PROOF_IS}") from None
    table = read_training(data, reading, n_features=n_features)
    # A refused proof is a result, not an error of the command.
    try:
        result = verify_proof(proof, table.X, labels_of(table))
    except ValueError as error:
        show({"verified": {"refused": str(error)}}, as_json)
        return NOT_CERTIFIED
    problem = {}
    for name, value in describe(proof, table.n_rows).items():
        problem[make_identifier(name)] = value
    show({"verified": {"result": result}, "problem": problem}, as_json)
    return OK


def read_as_noted(proof: Any, reading: Reading) -> Reading:
    """Fill in how the proof's data are read, if the options do not say it."""
    noted = proof["read"]
    # The options go before what the proof notes.
    if isinstance(noted.get("label"), int) and reading.label is None:
        dropped = tuple(str(int(position)) for position in noted["drop"])
        reading = replace(reading, label=str(noted["label"]), drop_columns=dropped)
    if "zero_based" in noted and reading.zero_based == "auto":
        reading = replace(reading, zero_based=bool(noted["zero_based"]))
    return reading


def load_proof(path: str) -> Any:
    """Return the contents of a proof.

    Raises
    ------
    DataError
        The file cannot be read, or is not JSON.
    """
    try:
        return json.loads(Path(path).read_bytes())
    except UnicodeDecodeError:
        raise DataError(f"{path}: is not text; {WHAT_A_PROOF_IS}") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: is not JSON ({error}); {WHAT_A_PROOF_IS}") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None
