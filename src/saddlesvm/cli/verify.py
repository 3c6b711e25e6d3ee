"""``saddlesvm verify``: check a proof in fractions, with nothing of a fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from saddlesvm.cli import NOT_CERTIFIED, OK
from saddlesvm.cli.command import declare
from saddlesvm.cli.options import JSON, Reading, data_argument, reading_options
from saddlesvm.cli.values import MODEL
from saddlesvm.data.errors import DataError


@declare(examples=("saddlesvm verify proof.json data.csv", "saddlesvm verify proof.json data.parquet --json"))
@click.argument("proof_path", type=MODEL, metavar="PROOF")
@data_argument()
@reading_options()
@JSON
def command(*, proof_path: str, data: str | list[str], reading: Reading, as_json: bool) -> int:
    """Check a proof in fractions, with nothing of a fit."""
    from saddlesvm.checker import describe
    from saddlesvm.cli.show import as_identifier, show
    from saddlesvm.estimators.preparation import labels_of, read_numbers
    from saddlesvm.estimators.proofs import verified

    proof = load_proof(proof_path)
    try:
        how = proof["read"]
        task = None if proof["problem"]["classes"] else "regression"
        width = int(proof["problem"]["features"])
        if isinstance(how.get("label"), int) and reading.label is None:
            reading.label = str(how["label"])
            reading.drop_columns = tuple(str(int(one)) for one in how["drop"])
        if "zero_based" in how and reading.index_base == "auto":
            reading.index_base = bool(how["zero_based"])
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise DataError(
            f"{proof_path}: is no proof that 'saddlesvm prove' wrote: {type(error).__name__}: {error}"
        ) from None
    table = read_numbers(data, n_features=width, task=task, **vars(reading))
    try:
        found = verified(proof, table.X, labels_of(table))
    except ValueError as error:
        show({"verified": {"refused": str(error)}}, as_json)
        return NOT_CERTIFIED
    problem = {as_identifier(name): value for name, value in describe(proof, table.n_rows).items()}
    show({"verified": {"result": found}, "problem": problem}, as_json)
    return OK


def load_proof(path: str) -> Any:
    """The contents of a proof.

    Raises
    ------
    DataError
        The file cannot be read, or is no JSON.
    """
    what = "a proof is the JSON file that 'saddlesvm prove' writes"
    try:
        return json.loads(Path(path).read_bytes())
    except UnicodeDecodeError:
        raise DataError(f"{path}: is no proof: it is not text; {what}") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: is no proof: it is not JSON ({error}); {what}") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None
