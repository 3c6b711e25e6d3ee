"""The options and the subcommands of the command line, declared: what each means, reads and writes, with examples.

Every option means the same as the parameter in Python. The docstrings of the commands declare their own options, and
that of ``saddlesvm train`` most of those that others share. An option of an estimator that nobody declares has the type
of its default, and the text of its docstring. Light to import.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from saddlesvm.cli import arguments as kinds
from saddlesvm.data.errors import BUNDLED
from saddlesvm.estimators.register import GAP, GRID
from saddlesvm.runtime import option_names as names

Option = dict[str, Any]  # what `ArgumentParser.add_argument` takes
YES: Option = {"action": "store_true"}
OF_TARGETS = ", ".join(kinds.REGRESSION_LOSSES)
USUAL_FIRST = (
    f"{names.USUAL_LOSSES[0]} (default)",
    *(one for one in kinds.CLASSIFICATION_LOSSES if one != names.USUAL_LOSSES[0]),
)


def option(text: str, **how: Any) -> Option:
    """An option with its help text, in which ``{default}`` stands for its default, here or in the estimator."""
    return {"help": with_default(text, how["default"]) if "default" in how else text} | how


def with_default(text: str, default: Any) -> str:
    """A help text that tells the default."""
    return text.replace("{default}", f"{default:g}" if isinstance(default, (int, float)) else str(default))


COMPUTED = [name for name in names.KERNEL_NAMES if name != "precomputed"]
FLAGS = {"lam": ("--lambda",), "proven_gap": ("--gap",), "peers": ("--with",), "output": ("-o", "--output")}
OPTIONS: dict[str, Option] = kinds.known_command("train:train").options | {
    "data": option(
        "file (CSV, JSON lines, Parquet, LIBSVM, .npy, ...), folder of texts, store, "
        f"{', '.join(BUNDLED)}, or - for stdin"
    ),
    "drop_columns": option(
        "columns of a table to leave out, such as names and identifiers",
        type=kinds.columns, default=(), metavar="NAME,NAME",
    ),
    "columns": option(
        "kinds of columns: zip=category,note=text,id=drop",
        type=kinds.column_kinds, default=(), metavar="NAME=KIND",
    ),
    "header": option(
        "whether a table has a line of names; {default} by default",
        type=kinds.header, default="auto", metavar="{auto,yes,no}",
    ),
    "index_base": option(
        "the first feature's number in LIBSVM text: auto (default), 0 or 1",
        type=kinds.index_base, default="auto", metavar="{auto,0,1}",
    ),
    "missing": option(
        "missing values: an error, drop their rows, or fill in the column's mean or median; by default an error, and "
        "the mean in tables with words",
        choices=names.MISSING_VALUES,
    ),
    "loss": option(
        f"{', '.join(USUAL_FIRST)}; for targets: {OF_TARGETS} (pinball:tau=0.9); or MODULE:CLASS",
        type=kinds.loss_argument,
    ),
    "Cs": option(
        "number of values of C with --penalty l1 or elasticnet; {default} by default",
        type=kinds.count_of_Cs, default=GRID, metavar="N",
    ),
    "proven_gap": option("relative gap to prove for every C; {default} by default", type=float, default=GAP),
    "intercept": option(
        "penalised like the weights (default), exactly unpenalised (free), or none", choices=names.INTERCEPTS
    ),
    "kernel": option("kernel of --estimator SVC, SVR, ...; rbf by default", metavar="NAME", choices=names.KERNEL_NAMES),
    "keep": option("the best certified model (default), or the solver's last point", choices=names.KEPT),
}  # fmt: skip

GROUPS: dict[str, tuple[str, ...]] = {
    "data": (
        "data", "test", "validation", "label", "columns", "drop_columns", "header", "scale",
        "standardize", "index_base", "missing",
    ),
    "model": (
        "loss", "C", "lam", "cv", "Cs", "every_C", "proven_gap", "leave_one_out", "penalty", "l1_ratio", "class_weight",
        "multi_class", "top_k", "intercept", "intercept_scaling", "epsilon", "estimator",
    ),
    "kernels": (
        "kernel", "gamma", "degree", "coef0", "nu", "cache_size", "shrinking",
        "probability", "break_ties", "decision_function_shape",
    ),
    "solving": (
        "tol", "gap", "until_proven", "max_time", "max_iter", "solver", "keep", "seed", "checkpoint",
        "n_jobs", "memory", "dask",
    ),
    "output": ("model", "report", "liblinear", "json", "help", "help_all"),
}  # fmt: skip

COMMON = frozenset((
    "data", "test", "validation", "label", "columns", "loss", "C", "penalty", "class_weight", "tol", "max_time",
    "checkpoint", "n_jobs", "memory", "model", "report", "json", "help", "help_all", "leave_one_out", "proven_gap",
))  # fmt: skip


class Command(NamedTuple):
    """A subcommand; the docstring of its function says what it does, has examples, and declares its own options.

    Parameters
    ----------
    run : str
        The function that runs it, ``"module:function"`` of this room.
    options : str
        Their names, with blanks; those with ``|`` between them exclude each other. Names in capitals are positional;
        dots mean that there may be several stores.
    changes : dict of str to dict
        What the docstring does not say of its own options.
    fits : bool
        Whether it has the options of the registered estimators, and so ``--help-all``.
    reads, models, writes : tuple of str
        The options that name data to read, models to read, and files to write.
    """

    run: str
    options: str
    changes: dict[str, Option] = {}  # noqa: RUF012
    fits: bool = False
    reads: tuple[str, ...] = ("data",)
    models: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


OF_FILES = "label drop_columns header scale index_base"
READING = f"{OF_FILES} columns"
FIT = "loss estimator solver tol max_iter max_time intercept intercept_scaling n_jobs seed json"
OWN = {  # of a saved model that may be of classes of the user's own
    "estimator": option(f"for a model of your own estimator: {kinds.OWN_ESTIMATOR}"),
    "loss": option(f"for a model with your own loss: {kinds.OWN_LOSS}"),
}
COMMANDS = {
    "train": Command(
        "train:train",
        f"DATA... test validation cv C|lam {FIT} gap keep until_proven dask model report {READING} missing standardize",
        fits=True,
        reads=("data", "test", "until_proven"),
        writes=("model", "liblinear", "checkpoint", "report"),
    ),
    "path": Command(
        "answers:traced",
        f"DATA... C|lam Cs every_C proven_gap validation leave_one_out report model {FIT} {READING} missing",
        fits=True,
        reads=("data", "validation"),
        writes=("report", "model"),
    ),
    "predict": Command(
        "saved:predict",
        f"MODEL DATA... estimator scores|probabilities proven loss output {OF_FILES}",
        OWN,
        reads=("data", "proven"),
        models=("model",),
    ),
    "certify": Command(
        "saved:certify", f"MODEL DATA... estimator loss C|lam refine tol json {OF_FILES}", OWN, models=("model",)
    ),
    "prove": Command("answers:prove", f"MODEL DATA... output json {READING}", models=("model",), writes=("output",)),
    "verify": Command("answers:verify", f"PROOF DATA... json {READING}", models=("proof",)),
    "info": Command(
        "saved:info",
        f"SOURCE estimator loss json {READING}",
        OWN | {"SOURCE": OPTIONS["data"] | {"metavar": "MODEL|DATA"}},
        reads=("source",),
    ),
    "convert": Command(
        "saved:convert",
        f"DATA STORE dtype n_features memory overwrite missing json {OF_FILES} columns",
        {
            "DATA": option(f"{OPTIONS['data']['help']}; the rows of several follow each other", nargs="+"),
            "missing": {"choices": names.MISSING_VALUES[:-1]},
        },
    ),
    "compare": Command(
        "compare:compare",
        "DATA solvers peers C|lam loss repeats test max_time tol intercept kernel gamma degree coef0 positive "
        "certify_every label scale image trace figures report quiet",
        {
            "loss": option(f"with commas: {', '.join(kinds.LOSSES)}, MODULE:CLASS", type=str),
            "kernel": {"choices": COMPUTED, "metavar": None},
        },
        reads=("data", "test"),
    ),
    "watch": Command(
        "compare:watch",
        "DATA solver against C|lam loss intercept gamma rows epochs seed positive label scale report",
        {
            "DATA": option(f"data file, or a bundled set: {', '.join(BUNDLED)}"),
            "loss": option(f"{', '.join(kinds.CLASSIFICATION_LOSSES)} (default hinge)", type=str, default="hinge"),
        },
    ),
}
