"""The parser of the command line, a thin layer: every option means the same as the parameter in Python.

Nothing heavy is loaded here, so that help and errors come at once: a subcommand's own options are added when it is
asked for, its function is imported when it runs, and the files that it names are looked for before.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from saddlesvm import __version__
from saddlesvm.cli import arguments as kinds
from saddlesvm.cli import compare as lab
from saddlesvm.cli import warmup, watch
from saddlesvm.cli.console import give_up_output, print_error, ready_output, why_not_written
from saddlesvm.cli.faces import Face
from saddlesvm.cli.help_texts import TEXTS
from saddlesvm.cli.helping import HelpAll, help_of
from saddlesvm.cli.own import (
    OWN_ESTIMATOR,
    OWN_LOSS,
    estimator_text,
    known_faces,
    loss_argument,
    made_known,
    solver_text,
)
from saddlesvm.cli.places import check_outputs, check_sources
from saddlesvm.data.errors import DataError
from saddlesvm.data.sources import BUNDLED
from saddlesvm.estimators.path_defaults import GAP
from saddlesvm.runtime.lazy import Later
from saddlesvm.runtime.words import INTERCEPTS, KEPT, KERNEL_NAMES

USAGE_ERROR, INTERRUPTED = 2, 130
WEIGHTS = "--class-weight"
DATA_HELP = (
    f"file (CSV, JSON lines, Parquet, LIBSVM, .npy, ...), folder of texts, store, {', '.join(BUNDLED)}, or - for stdin"
)


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line on standard error, exit code 2.

    Parameters
    ----------
    fill : callable, optional
        Adds the parser's options; called when the parser is first used, or by :func:`make_parser`.
    """

    def __init__(self, *given: Any, fill: Callable[[Parser], Any] | None = None, **named: Any) -> None:
        super().__init__(*given, **named)
        self.filling = fill

    def fill(self) -> None:
        """Add the options, once."""
        filling, self.filling = self.filling, None
        if filling is not None:
            filling(self)

    def format_help(self) -> str:
        """The common options of a command in groups, and two examples."""
        return help_of(self)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse, with all options in place, and with labels that begin with a minus after --class-weight."""
        self.fill()
        words = list(sys.argv[1:] if args is None else args)
        while WEIGHTS in words[:-1]:
            at = words.index(WEIGHTS)
            words[at : at + 2] = [f"{WEIGHTS}={words[at + 1]}"]
        return super().parse_known_args(words, namespace)

    def parse_args(self, *given: Any, **named: Any) -> Any:
        """As argparse, but further names after the data are told what to do with several files."""
        options, left = self.parse_known_args(*given, **named)
        if left and hasattr(options, "data") and not any(word.startswith("-") for word in left):
            self.error(
                f"one source of data goes here, and {left[0]!r} came after {options.data!r}: bring several files "
                "into one store with 'saddlesvm convert', or put a pattern of stores in quotes and give --dask"
            )
        if left:
            self.error(f"unrecognized arguments: {' '.join(left)}")
        return options

    def error(self, message: str) -> NoReturn:
        print_error(f"{self.prog}: error: {message}")
        raise SystemExit(USAGE_ERROR)


# How the command line reads those options of estimators whose default value does not tell the type.
OF_ESTIMATORS: dict[str, dict[str, Any]] = {
    "class_weight": {"metavar": "WEIGHTS"},
    "checkpoint": {"metavar": "PATH"},
    "memory": {"metavar": "BYTES"},
    "liblinear": {"metavar": "PATH"},
    "libsvm": {"metavar": "PATH"},
    "kernel": {"metavar": "NAME", "choices": KERNEL_NAMES},
    "multi_class": {"metavar": "WAY"},
    "decision_function_shape": {"metavar": "SHAPE"},
    "gamma": {"type": kinds.numbers_or_name},
    "probability": {"type": kinds.probability, "metavar": "yes|no|METHOD"},
    "approximation": {"type": kinds.whole_or_name, "metavar": "LANDMARKS"},
    "exact_tol": {"type": float},
    "canonical": {"type": int, "metavar": "BITS"},
}


def texts_of(faces: list[Face]) -> dict[str, str]:
    """The help text of each parameter; of those that are unknown here, that of the first estimator that has one."""
    found = dict(TEXTS)
    for face in faces:
        for name, text in face.texts.items():
            found.setdefault(name, text)
    return found


def add_reading(parser: argparse.ArgumentParser, *, cache: bool = True, columns: bool = True) -> None:
    """Options that say how a data file is read."""
    parser.add_argument("--label", metavar="NAME", help=TEXTS["label"])
    parser.add_argument(
        "--drop-columns", dest="drop_columns", type=kinds.columns, default=(), metavar="NAME,NAME",
        help=TEXTS["drop_columns"],
    )  # fmt: skip
    if columns:
        parser.add_argument(
            "--columns", type=kinds.column_kinds, default=(), metavar="NAME=KIND", help=TEXTS["columns"]
        )
    parser.add_argument("--header", choices=("auto", "yes", "no"), default="auto", help=TEXTS["header"])
    parser.add_argument("--scale", type=float, default=1.0, help=TEXTS["scale"])
    parser.add_argument(
        "--index-base", dest="index_base", choices=("auto", "0", "1"), default="auto",
        help=TEXTS["index_base"],
    )  # fmt: skip
    if cache:
        parser.add_argument("--cache", action="store_true", help=TEXTS["cache"])


def add_own_loss(parser: argparse.ArgumentParser) -> None:
    """The option that makes a user's own loss known, which a saved model names."""
    parser.add_argument("--loss", type=loss_argument, help=f"where the model has a loss of yours: {OWN_LOSS}")


def fill_train(parser: Parser) -> None:
    """``saddlesvm train``."""
    faces = known_faces()
    texts = texts_of(faces)
    parser.add_argument("data", metavar="DATA", help=DATA_HELP)
    parser.add_argument("--test", metavar="DATA", help=texts["test"])
    parser.add_argument("--validation", type=kinds.share, metavar="SHARE", help=texts["validation"])
    parser.add_argument("--cv", type=kinds.fold_count, metavar="FOLDS", help=texts["cv"])
    strength = parser.add_mutually_exclusive_group()
    strength.add_argument("--C", type=kinds.strength, help=texts["C"])
    strength.add_argument("--lambda", dest="lam", type=float, help=texts["lam"])
    add_shared(parser, texts)
    parser.add_argument("--gap", type=float, help=texts["gap"])
    parser.add_argument("--keep", choices=KEPT, help=texts["keep"])
    parser.add_argument("--until-proven", dest="until_proven", metavar="DATA", help=texts["until_proven"])
    parser.add_argument("--dask", metavar="local:N|ADDRESS", help=texts["dask"])
    parser.add_argument("--model", metavar="PATH", help=texts["model"])
    parser.add_argument("--report", metavar="PATH", help=texts["report"])
    parser.add_argument("--json", action="store_true", help=texts["json"])
    add_options_of_estimators(parser, faces, texts)
    add_reading(parser)
    parser.add_argument("--missing", choices=kinds.MISSING, default="error", help=texts["missing"])
    parser.add_argument("--standardize", action="store_true", help=texts["standardize"])
    parser.add_argument("--help-all", dest="help_all", action=HelpAll, help="show every option and exit")
    parser.set_defaults(
        run=Later("saddlesvm.cli.commands:train"),
        reads=("data", "test", "until_proven"),
        writes=("model", "liblinear", "libsvm", "checkpoint", "report"),
    )


def fill_path(parser: Parser) -> None:
    """``saddlesvm path``."""
    faces = known_faces()
    texts = texts_of(faces)
    parser.add_argument("data", metavar="DATA", help=DATA_HELP)
    strength = parser.add_mutually_exclusive_group()
    strength.add_argument("--C", type=kinds.two_ends, metavar="LOW,HIGH", help="the ends; 1e-3,1e3 by default")
    strength.add_argument("--lambda", dest="lam", type=kinds.two_ends, metavar="LOW,HIGH", help="the same in lambda")
    parser.add_argument("--Cs", type=kinds.count_of_Cs, default=kinds.COUNT, metavar="N", help=texts["Cs"])
    parser.add_argument("--every-C", dest="every_C", action="store_true", help=texts["every_C"])
    parser.add_argument("--gap", dest="proven_gap", type=float, default=GAP, help=texts["proven_gap"])
    parser.add_argument("--validation", metavar="DATA", help="rows to measure the error along the path on")
    parser.add_argument("--leave-one-out", dest="leave_one_out", action="store_true", help=texts["leave_one_out"])
    parser.add_argument("--report", metavar="PATH", help=texts["report"])
    parser.add_argument("--model", metavar="PATH", help="write the model of the chosen C here")
    add_shared(parser, texts)
    parser.add_argument("--json", action="store_true", help=texts["json"])
    add_options_of_estimators(parser, faces, texts)
    add_reading(parser)
    parser.add_argument("--help-all", dest="help_all", action=HelpAll, help="show every option and exit")
    parser.set_defaults(
        run=Later("saddlesvm.cli.path:run"),
        keep=None,
        gap=None,
        reads=("data", "validation"),
        writes=("report", "model"),
    )


def fill_audit(parser: Parser) -> None:
    """``saddlesvm audit``."""
    faces = known_faces()
    texts = texts_of(faces)
    parser.add_argument("data", metavar="DATA", help=DATA_HELP)
    strength = parser.add_mutually_exclusive_group()
    strength.add_argument("--C", type=kinds.strength, help=texts["C"])
    strength.add_argument("--lambda", dest="lam", type=float, help=texts["lam"])
    parser.add_argument("--groups", metavar="PATH", help="a text file with the name of each row's group, one a line")
    parser.add_argument("--report", metavar="PATH", help="write an HTML page with tables, pictures and the rows")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    add_shared(parser, texts)
    add_options_of_estimators(parser, faces, texts)
    add_reading(parser)
    parser.add_argument("--help-all", dest="help_all", action=HelpAll, help="show every option and exit")
    parser.set_defaults(run=Later("saddlesvm.cli.audit:run"), keep=None, gap=None, reads=("data",), writes=("report",))


def add_shared(parser: argparse.ArgumentParser, texts: dict[str, str]) -> None:
    """The options of a fit that all estimators have."""
    parser.add_argument("--loss", type=loss_argument, help=texts["loss"])
    parser.add_argument("--estimator", type=estimator_text, help=texts["estimator"])
    parser.add_argument("--solver", type=solver_text, help=texts["solver"])
    parser.add_argument("--tol", type=float, metavar="GAP", help=texts["tol"])
    parser.add_argument("--max-iter", dest="max_iter", type=int, metavar="EPOCHS", help=texts["max_iter"])
    parser.add_argument("--max-time", dest="max_time", type=float, metavar="SECONDS", help=texts["max_time"])
    parser.add_argument("--intercept", choices=INTERCEPTS, help=texts["intercept"])
    parser.add_argument("--intercept-scaling", dest="intercept_scaling", type=float, help=texts["intercept_scaling"])
    parser.add_argument("--n-jobs", dest="n_jobs", type=int, metavar="N", help=texts["n_jobs"])
    parser.add_argument("--seed", type=int, default=0, help=texts["seed"])


def add_options_of_estimators(parser: argparse.ArgumentParser, faces: list[Face], texts: dict[str, str]) -> None:
    """Add the options of registered estimators beyond those that all of them have."""
    seen: set[str] = set()
    for face in faces:
        for name in face.options:
            if name in seen:
                continue
            seen.add(name)
            told: Any = {"help": texts.get(name)} | (OF_ESTIMATORS.get(name) or {"type": type_of(face.defaults[name])})
            parser.add_argument(f"--{name.replace('_', '-')}", dest=name, **told)


def type_of(default: Any) -> Any:
    """The type of an option: that of its default, a number where the default is a whole number, else text."""
    if isinstance(default, bool):
        return kinds.truth
    if isinstance(default, int):
        return kinds.whole_or_number
    return float if isinstance(default, float) else str


def add_own_estimator(parser: argparse.ArgumentParser) -> None:
    """The option that makes a user's own estimator known, whose kind a saved model names."""
    parser.add_argument(
        "--estimator", type=estimator_text, help=f"where the model is of an estimator of yours: {OWN_ESTIMATOR}"
    )


def fill_predict(parser: Parser) -> None:
    """``saddlesvm predict``."""
    parser.add_argument("model", metavar="MODEL", help="a saved model")
    parser.add_argument("data", metavar="DATA", help=DATA_HELP)
    add_own_estimator(parser)
    beside = parser.add_mutually_exclusive_group()
    beside.add_argument("--scores", action="store_true", help="the decision values behind each prediction")
    beside.add_argument(
        "--probabilities", action="store_true",
        help="the probability of each class beside the prediction, after a line with the classes, as LIBSVM's -b 1",
    )  # fmt: skip
    parser.add_argument(
        "--proven", metavar="TRAINING", help="the data that the model was trained on: adds 'proven' to each prediction "
        "that is that of the exact optimum, and 'open' to others",
    )  # fmt: skip
    add_own_loss(parser)
    parser.add_argument("--output", metavar="PATH", help="write to this file instead of standard output")
    add_reading(parser, columns=False)
    parser.set_defaults(run=Later("saddlesvm.cli.predict:predict"), reads=("data", "proven"), models=("model",))


def fill_certify(parser: Parser) -> None:
    """``saddlesvm certify``."""
    parser.add_argument("model", metavar="MODEL", help="a saved model, or a LIBLINEAR text model")
    parser.add_argument("data", metavar="DATA", help=DATA_HELP)
    add_own_estimator(parser)
    add_own_loss(parser)
    strength = parser.add_mutually_exclusive_group()
    strength.add_argument("--C", type=float, help="instead of the model's own")
    strength.add_argument("--lambda", dest="lam", type=float, help="instead of the model's own")
    parser.add_argument("--refine", type=int, default=0, help="epochs of dual ascent that tighten the bound")
    parser.add_argument("--tol", type=float, help="exit with 3 unless the relative gap is at most this")
    parser.add_argument("--json", action="store_true", help="print the facts as JSON")
    add_reading(parser, columns=False)
    parser.set_defaults(run=Later("saddlesvm.cli.commands:certify"), reads=("data",), models=("model",))


def fill_prove(parser: Parser) -> None:
    """``saddlesvm prove``."""
    parser.add_argument("model", metavar="MODEL", help="a saved linear model")
    parser.add_argument("data", metavar="DATA", help="the data that it was trained on")
    parser.add_argument("-o", "--output", metavar="PATH", required=True, help="write the proof, JSON, to this file")
    parser.add_argument("--json", action="store_true", help="print the facts as JSON")
    add_reading(parser)
    parser.set_defaults(run=Later("saddlesvm.cli.proofs:prove"), reads=("data",), models=("model",), writes=("output",))


def fill_verify(parser: Parser) -> None:
    """``saddlesvm verify``."""
    parser.add_argument("proof", metavar="PROOF", help="a proof that 'saddlesvm prove' made")
    parser.add_argument("data", metavar="DATA", help="the data that it is about")
    parser.add_argument("--json", action="store_true", help="print the facts as JSON")
    add_reading(parser)
    parser.set_defaults(run=Later("saddlesvm.cli.proofs:verify"), reads=("data",), models=("proof",))


def fill_forget(parser: Parser) -> None:
    """``saddlesvm forget``."""
    parser.add_argument("model", metavar="MODEL", help="a saved linear model")
    parser.add_argument("data", metavar="DATA", help="the data that it was trained on")
    parser.add_argument("--rows", type=kinds.row_numbers, required=True, metavar="3,7-9", help="rows, from 0 on")
    parser.add_argument("-o", "--output", metavar="PATH", required=True, help="write the model to this file")
    parser.add_argument("--json", action="store_true", help="print the facts as JSON")
    add_reading(parser)
    parser.set_defaults(
        run=Later("saddlesvm.cli.proofs:forget"), reads=("data",), models=("model",), writes=("output",)
    )


def fill_info(parser: Parser) -> None:
    """``saddlesvm info``."""
    parser.add_argument("source", metavar="MODEL|DATA", help=DATA_HELP)
    add_own_estimator(parser)
    add_own_loss(parser)
    parser.add_argument("--verify", action="store_true", help="read all of a store, and compare its checksums")
    parser.add_argument("--json", action="store_true", help="print the facts as JSON")
    add_reading(parser)
    parser.set_defaults(run=Later("saddlesvm.cli.commands:info"), reads=("source",))


def fill_convert(parser: Parser) -> None:
    """``saddlesvm convert``."""
    parser.add_argument("data", metavar="DATA", nargs="+", help=f"{DATA_HELP}; the rows of several follow each other")
    parser.add_argument("store", metavar="STORE", help="the folder to make")
    parser.add_argument("--dtype", choices=("float32", "float64"), help="of the values (that of the data by default)")
    parser.add_argument("--n-features", dest="n_features", type=int, help="of sparse data, when more than occur")
    parser.add_argument("--memory", default="256M", help="that the rows may take on their way; 256M by default")
    parser.add_argument("--overwrite", action="store_true", help="replace a store of that name")
    parser.add_argument(
        "--missing", choices=("error", "drop", "mean"), default="error",
        help="what happens to missing values: an error, or their rows are left out, or they are filled in with the "
        "mean of their column, which takes a second pass; models trained on the store do the same when they predict",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the facts as JSON")
    add_reading(parser, cache=False)
    parser.set_defaults(run=Later("saddlesvm.cli.convert:convert"), reads=("data",))


COMMANDS: dict[str, tuple[str, Callable[[Parser], Any]]] = {
    "train": ("train a model, and prove how far it is from the optimum", fill_train),
    "path": ("fit every C between two ends with a proof, and choose one", fill_path),
    "audit": ("list rows that are probably mislabelled, and what rows and groups do to a model", fill_audit),
    "predict": ("print the predictions of a model, one line a row", fill_predict),
    "certify": ("prove how far a model is from the optimum on some data", fill_certify),
    "prove": ("write a proof of a linear model, for others to check", fill_prove),
    "verify": ("check a proof in fractions, with nothing of a fit", fill_verify),
    "forget": ("make a linear model one of its data without some rows", fill_forget),
    "info": ("describe a model or a data set", fill_info),
    "convert": ("write data files of any size into one store, for fast and repeated training", fill_convert),
}


def make_parser(whole: bool = True) -> Parser:
    """The command line.

    Parameters
    ----------
    whole : bool, default=True
        Give every subcommand its options at once, rather than when it is used.
    """
    parser = Parser(prog="saddlesvm", description="Support vector machines trained fast to a certified optimum.")
    parser.add_argument("--version", action="version", version=f"saddlesvm {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    for name, (text, fill) in COMMANDS.items():
        made = commands.add_parser(name, help=text, fill=fill)
        if whole:
            made.fill()
    for add in (lab.add_arguments, watch.add_arguments, warmup.add_arguments):
        add(commands)
    for one in commands._choices_actions:
        commands.choices[one.dest].description = f"{str(one.help).capitalize()}."
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns
    -------
    int
        0; 2 for bad usage or input; 3 when it stopped before the certificate asked for was reached; 130 after Ctrl-C
        where there was nothing to keep.
    """
    try:
        made_known(sys.argv[1:] if arguments is None else arguments)
        parser = make_parser(whole=False)
    except (argparse.ArgumentTypeError, argparse.ArgumentError) as error:
        print_error(f"saddlesvm: error: {error}")
        return USAGE_ERROR
    options = parser.parse_args(arguments)
    try:
        ready_output()
        check_sources(options)
        check_outputs(options)
        code = int(Later("saddlesvm.cli.running:run")(options))
        sys.stdout.flush()
        return code
    except (DataError, ValueError) as error:
        print_error(f"saddlesvm: error: {error}")
        return USAGE_ERROR
    except MemoryError as error:
        print_error(f"saddlesvm: error: not enough memory: {error}")
        return USAGE_ERROR
    except OSError as error:
        print_error(f"saddlesvm: error: {why_not_written(error)}")
        give_up_output()
        return USAGE_ERROR
