"""The options and the subcommands of the command line, declared: what each means, reads and writes, with examples.

Every option means the same as the parameter in Python. An option of an estimator that is not declared here has the type
of its default, and the text of its docstring. Light to import.
"""

from __future__ import annotations

from typing import Any, NamedTuple, get_args

from saddlesvm.cli import arguments as kinds
from saddlesvm.data.errors import BUNDLED
from saddlesvm.estimators.register import GAP, GRID
from saddlesvm.lab.experiments import HOMES
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
OPTIONS: dict[str, Option] = {
    "data": option(
        "file (CSV, JSON lines, Parquet, LIBSVM, .npy, ...), folder of texts, store, "
        f"{', '.join(BUNDLED)}, or - for stdin"
    ),
    # how data are read
    "label": option("label column of a table; the last one by default", metavar="NAME"),
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
    "scale": option("multiply every value by this (255 levels: 0.00392157)", type=float, default=1.0),
    "index_base": option(
        "the first feature's number in LIBSVM text: auto (default), 0 or 1",
        type=kinds.index_base, default="auto", metavar="{auto,0,1}",
    ),
    "cache": option("keep what was read in DATA.store for the next run", **YES),
    "missing": option(
        "missing values: an error (default), drop their rows, or fill in the column's mean or median",
        choices=names.MISSING_VALUES, default="error",
    ),
    "standardize": option(
        "bring each feature to mean 0 and variance 1 (sparse ones to variance 1); saved with the model", **YES
    ),
    "test": option("data to test the model on", metavar="DATA"),
    "validation": option("hold this share of the rows out for a test: 0.2", type=kinds.share, metavar="SHARE"),
    "groups": option("a text file with the name of each row's group, one a line", metavar="PATH"),
    # the problem
    "loss": option(
        f"{', '.join(USUAL_FIRST)}; for targets: {OF_TARGETS} (pinball:tau=0.9); or MODULE:CLASS",
        type=kinds.loss_argument,
    ),
    "C": option("weight of the losses: 1, several (0.1,1,10), or auto", type=kinds.strength),
    "lam": option("lambda = 1 / (C n) instead of C", type=float),
    "cv": option(
        "folds of the cross-validation of several values of C, those of auto, or of gamma; 5 by default",
        type=kinds.fold_count, metavar="FOLDS",
    ),
    "Cs": option(
        "number of values of C with --penalty l1 or elasticnet; {default} by default",
        type=kinds.count_of_Cs, default=GRID, metavar="N",
    ),
    "every_C": option("prove every C between the ends, with --penalty l1 or elasticnet too", **YES),
    "proven_gap": option("relative gap to prove for every C; {default} by default", type=float, default=GAP),
    "leave_one_out": option("estimate the error from the training rows alone", **YES),
    "penalty": option("l2 (default); l1 or elasticnet set weights to zero"),
    "l1_ratio": option("share of the l1 norm in the elastic net; {default} by default"),
    "class_weight": option("balanced, or LABEL=FACTOR,LABEL=FACTOR", metavar="WEIGHTS"),
    "multi_class": option("ovr (default), ovo, crammer_singer, multinomial or top_k", metavar="WAY"),
    "top_k": option("classes that may rank before the right one, with --multi-class top_k; {default} by default"),
    "intercept": option(
        "penalised like the weights (default), exactly unpenalised (free), or none", choices=names.INTERCEPTS
    ),
    "intercept_scaling": option("value of the constant feature of a penalised intercept; 1 by default", type=float),
    "epsilon": option(
        "half-width of the tube in which errors cost nothing; 0 for linear models, 0.1 with a kernel"
    ),
    "width": option("width of the smooth hinge; 1 by default"),
    "estimator": option(
        "the kind of model, instead of the one for the loss: LinearSVC, LinearSVR, KernelSVC, SVC, NuSVC, "
        "SVR, NuSVR, OneClassSVM, or MODULE:CLASS of your own",
        type=kinds.estimator_text,
    ),
    # kernels
    "kernel": option("kernel of --estimator SVC, SVR, ...; rbf by default", metavar="NAME", choices=names.KERNEL_NAMES),
    "gamma": option("of the kernel: scale (default), auto, a number, or several (0.1,1)", type=kinds.numbers_or_name),
    "degree": option("of the polynomial kernel; {default} by default"),
    "coef0": option("constant of the polynomial and sigmoid kernels; {default} by default"),
    "nu": option("of the nu machines: the share of rows that may be margin errors; {default} by default"),
    "cache_size": option("megabytes for rows of the kernel matrix; {default} by default"),
    "approximation": option(
        "landmark rows that stand for the kernel matrix: a number, or auto",
        type=kinds.whole_or_name, metavar="LANDMARKS",
    ),
    "exact_tol": option(
        "with --approximation: relative gap to prove for the exact problem afterwards", type=float
    ),
    "shrinking": option("yes or no: set rows aside that stay outside the margin"),
    "probability": option(
        "yes, no, sigmoid, isotonic or temperature: fit probabilities to scores of rows left out",
        type=kinds.probability, metavar="yes|no|METHOD",
    ),
    "break_ties": option("yes or no: break ties of votes by the scores"),
    "decision_function_shape": option("ovr or ovo: a column of scores a class, or a pair", metavar="SHAPE"),
    # solving
    "solver": option(
        "auto (default), dcd, sdca, pegasos, newton, columns or blocks, with options "
        "(pegasos:batch_size=64,output=average), or MODULE:CLASS of your own",
        type=kinds.solver_text,
    ),
    "tol": option("relative duality gap to prove; 1e-4 by default", type=float, metavar="GAP"),
    "gap": option(
        "duality gap that ends the fit, too, in the units of the objective; 0 by default", type=float
    ),
    "until_proven": option(
        "data to test on; training continues until each of its labels is proven to be the exact optimum's",
        metavar="DATA",
    ),
    "max_iter": option("epochs at most; no limit by default", type=int, metavar="EPOCHS"),
    "max_time": option("seconds at most; no limit by default", type=float, metavar="SECONDS"),
    "keep": option("the best certified model (default), or the solver's last point", choices=names.KEPT),
    "canonical": option(
        "round the exact optimum's weights to so many bits, proven: the same for any solver and machine",
        type=int, metavar="BITS",
    ),
    "seed": option("of the random choices; {default} by default", type=int, default=0),
    "checkpoint": option("save the state of the fit here, and resume from it", metavar="PATH"),
    "n_jobs": option("threads; -1 for all cores", type=int, metavar="N"),
    "memory": option("train block by block within this memory: 512M, 1.5G", metavar="BYTES"),
    "dask": option("train on N processes here, or on a Dask cluster", metavar="local:N|ADDRESS"),
    # what is written
    "model": option("write the model here", metavar="PATH"),
    "report": option("write an HTML report with charts here", metavar="PATH"),
    "liblinear": option("write the model here as a LIBLINEAR text model", metavar="PATH"),
    "libsvm": option("write the model here as a LIBSVM text model", metavar="PATH"),
    "json": option("print the facts as JSON", **YES),
    "output": option("write to this file instead of standard output", metavar="PATH"),
    # comparisons
    "positive": option("the class compared with the rest, if there are several", metavar="LABEL"),
    "figures": option("write every figure here, as PNG and SVG", metavar="DIR"),
    "quiet": option("no progress bar", **YES),
}  # fmt: skip

GROUPS: dict[str, tuple[str, ...]] = {
    "data": (
        "data", "test", "validation", "groups", "label", "columns", "drop_columns", "header", "scale",
        "standardize", "index_base", "missing", "cache",
    ),
    "model": (
        "loss", "C", "lam", "cv", "Cs", "every_C", "proven_gap", "leave_one_out", "penalty", "l1_ratio", "class_weight",
        "multi_class", "top_k", "intercept", "intercept_scaling", "epsilon", "width", "estimator",
    ),
    "kernels": (
        "kernel", "gamma", "degree", "coef0", "nu", "cache_size", "approximation", "exact_tol", "shrinking",
        "probability", "break_ties", "decision_function_shape",
    ),
    "solving": (
        "tol", "gap", "until_proven", "max_time", "max_iter", "solver", "keep", "seed", "canonical", "checkpoint",
        "n_jobs", "memory", "dask",
    ),
    "output": ("model", "report", "liblinear", "libsvm", "json", "help", "help_all"),
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
READING = f"{OF_FILES} columns cache"
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
        writes=("model", "liblinear", "libsvm", "checkpoint", "report"),
    ),
    "path": Command(
        "answers:traced",
        f"DATA... C|lam Cs every_C proven_gap validation leave_one_out report model {FIT} {READING}",
        fits=True,
        reads=("data", "validation"),
        writes=("report", "model"),
    ),
    "audit": Command("answers:audited", f"DATA... C|lam groups report {FIT} {READING}", fits=True, writes=("report",)),
    "predict": Command(
        "saved:predict",
        f"MODEL DATA... estimator scores|probabilities proven loss output {OF_FILES} cache",
        OWN,
        reads=("data", "proven"),
        models=("model",),
    ),
    "certify": Command(
        "saved:certify", f"MODEL DATA... estimator loss C|lam refine tol json {OF_FILES} cache", OWN, models=("model",)
    ),
    "prove": Command("answers:prove", f"MODEL DATA... output json {READING}", models=("model",), writes=("output",)),
    "verify": Command("answers:verify", f"PROOF DATA... json {READING}", models=("proof",)),
    "forget": Command(
        "answers:forget", f"MODEL DATA... rows output json {READING}", models=("model",), writes=("output",)
    ),
    "info": Command(
        "saved:info",
        f"SOURCE estimator loss verify json {READING}",
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
    "reproduce": Command(
        "compare:reproduce",
        "NAME data report figures quick quiet",
        {"NAME": option(f"{', '.join(HOMES)}; all if left out", nargs="?", choices=tuple(HOMES))},
        reads=(),
    ),
    "watch": Command(
        "compare:watch",
        "DATA solver against C|lam loss intercept gamma rows epochs seed positive label scale report",
        {
            "DATA": option(f"data file, or a bundled set: {', '.join(BUNDLED)}"),
            "loss": option(f"{', '.join(kinds.CLASSIFICATION_LOSSES)} (default hinge)", type=str, default="hinge"),
        },
    ),
    "warmup": Command(
        "running:warm_up",
        "loss layout dtype intercept multi_class penalty kernel n_jobs",
        {
            "loss": option(f"one or more, by commas; {', '.join(names.USUAL_LOSSES)} by default", type=str),
            "layout": option(
                f"of {', '.join(names.LAYOUTS)}; {' and '.join(names.USUAL_LAYOUTS)} by default",
                default=",".join(names.USUAL_LAYOUTS),
            ),
            "dtype": option(f"of {', '.join(names.DTYPES)}; {{default}} by default", default="float64"),
            "multi_class": {"choices": get_args(names.MultiClass), "metavar": None},
            "penalty": {"choices": get_args(names.PenaltyName)},
            "kernel": {"choices": COMPUTED, "metavar": None},
        },
        reads=(),
    ),
}
