"""The help of the command line: what each option does, in the words of the command line, in groups, with examples."""

from __future__ import annotations

__all__ = ["COMMON", "EXAMPLES", "GROUPS", "TEXTS", "WHOLE_HELP"]

WHOLE_HELP = ("train", "path", "audit")  # commands whose --help shows the common options, and --help-all every one

# Of the commands that fit models; an estimator's option that is missing here has the text of its docstring.
TEXTS = {
    "test": "data to test the model on",
    "validation": "hold this share of the rows out for a test: 0.2",
    "cv": "folds of the cross-validation of several values of C, or of gamma; 5 by default",
    "C": "weight of the losses: 1, several (0.1,1,10), or auto",
    "lam": "lambda = 1 / (C n) instead of C",
    "loss": "hinge, squared_hinge (default), smooth_hinge, logistic; for targets: squared, absolute, "
    "epsilon_insensitive, squared_epsilon_insensitive, huber, pinball:tau=0.9; or MODULE:CLASS of your own",
    "estimator": "the kind of model, instead of the one for the loss: LinearSVC, LinearSVR, KernelSVC, SVC, NuSVC, "
    "SVR, NuSVR, OneClassSVM, or MODULE:CLASS of your own",
    "solver": "auto (default), dcd, sdca, pegasos, newton, columns or blocks, with options "
    "(pegasos:batch_size=64,output=average), or MODULE:CLASS of your own",
    "tol": "relative duality gap to prove; 1e-4 by default",
    "gap": "duality gap that ends the fit, too, in the units of the objective; 0 by default",
    "until_proven": "data to train on for until each label is proven to be that of the exact optimum, and to test on",
    "keep": "the best certified model (default), or the solver's last point",
    "max_iter": "epochs at most; no limit by default",
    "max_time": "seconds at most; no limit by default",
    "intercept": "penalised like the weights (default), exactly unpenalised (free), or none",
    "intercept_scaling": "value of the constant feature of a penalised intercept; 1 by default",
    "n_jobs": "threads; -1 for all cores",
    "seed": "of the random choices; 0 by default",
    "dask": "train on N processes here, or on a Dask cluster",
    "model": "write the model here",
    "report": "write an HTML report with charts here",
    "json": "print the facts as JSON",
    "penalty": "l2 (default); l1 or elasticnet set weights to zero",
    "l1_ratio": "share of the l1 norm in the elastic net; 0.15 by default",
    "width": "width of the smooth hinge; 1 by default",
    "multi_class": "ovr (default), ovo, crammer_singer, multinomial or top_k",
    "canonical": "round the exact optimum's weights to so many bits, proven: the same for any solver and machine",
    "top_k": "classes that may rank before the right one, with --multi-class top_k; 5 by default",
    "class_weight": "balanced, or LABEL=FACTOR,LABEL=FACTOR",
    "checkpoint": "save the state of the fit here, and resume from it",
    "memory": "train block by block within this memory: 512M, 1.5G",
    "liblinear": "write the model here as a LIBLINEAR text model",
    "libsvm": "write the model here as a LIBSVM text model",
    "epsilon": "half-width of the tube in which errors cost nothing; 0 for linear models, 0.1 with a kernel",
    "kernel": "kernel of --estimator SVC, SVR, ...; rbf by default",
    "gamma": "of the kernel: scale (default), auto, a number, or several (0.1,1)",
    "degree": "of the polynomial kernel; 3 by default",
    "coef0": "constant of the polynomial and sigmoid kernels; 0 by default",
    "cache_size": "megabytes for rows of the kernel matrix; 200 by default",
    "approximation": "landmark rows that stand for the kernel matrix: a number, or auto",
    "exact_tol": "with --approximation: relative gap to prove for the exact problem afterwards",
    "nu": "of the nu machines: the share of rows that may be margin errors; 0.5 by default",
    "shrinking": "yes or no: set rows aside that stay outside the margin",
    "probability": "yes, no, sigmoid, isotonic or temperature: fit probabilities to scores of rows left out",
    "break_ties": "yes or no: break ties of votes by the scores",
    "decision_function_shape": "ovr or ovo: a column of scores a class, or a pair",
    "label": "label column of a table; the last one by default",
    "drop_columns": "columns of a table that are no features: names, identifiers, dates",
    "columns": "kinds of columns: zip=category,note=text,id=drop",
    "standardize": "bring each feature to mean 0 and variance 1 (sparse ones to variance 1); saved with the model",
    "header": "whether a table has a line of names; auto by default",
    "scale": "multiply every value by this (255 levels: 0.00392157)",
    "index_base": "the first feature's number in LIBSVM text: auto (default), 0 or 1",
    "cache": "keep what was read in DATA.store for the next run",
    "missing": "missing values: an error (default), drop their rows, or fill in the column's mean or median",
    "every_C": "prove every C between the ends, with --penalty l1 or elasticnet too",
    "proven_gap": "relative gap to prove for every C; 0.01 by default",
    "leave_one_out": "estimate the error from the training rows alone",
    "Cs": "number of values of C with --penalty l1 or elasticnet; 13 by default",
}

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

EXAMPLES = {
    "saddlesvm": ("saddlesvm train heart", "saddlesvm train --help"),
    "train": (
        "saddlesvm train heart --C auto --validation 0.2 --report heart.html",
        "saddlesvm train people.csv --label bought --columns zip=category --model people.model",
    ),
    "path": (
        "saddlesvm path heart --leave-one-out --report heart-path.html",
        "saddlesvm path data.csv --C 0.01,100 --gap 1e-3 --model data.model",
    ),
    "audit": (
        "saddlesvm audit heart --loss logistic --report heart-audit.html",
        "saddlesvm audit data.csv --label outcome --loss logistic --groups patients.txt --json",
    ),
    "predict": (
        "saddlesvm predict data.model new.csv",
        "saddlesvm predict data.model new.csv --scores --output scores.txt",
    ),
    "certify": (
        "saddlesvm certify data.model data.csv",
        "saddlesvm certify liblinear.model data.svm --C 1 --refine 20 --tol 1e-3",
    ),
    "prove": (
        "saddlesvm prove data.model data.csv -o proof.json",
        "saddlesvm prove data.model data.csv --label outcome --drop-columns name -o proof.json",
    ),
    "verify": ("saddlesvm verify proof.json data.csv", "saddlesvm verify proof.json data.parquet --json"),
    "forget": (
        "saddlesvm forget data.model data.csv --rows 17 -o without.model",
        "saddlesvm forget data.model data.csv --rows 3,7-9,120 -o without.model --json",
    ),
    "info": ("saddlesvm info data.csv", "saddlesvm info data.model"),
    "convert": (
        "saddlesvm convert day-1.svm.bz2 day-2.svm.bz2 days.store",
        "saddlesvm convert table.parquet table.store --label outcome --dtype float32",
    ),
    "compare": (
        "saddlesvm compare heart --report heart.html",
        "saddlesvm compare data.svm --solvers dcd,sdca --with sklearn --C 0.1,1 --report data.html",
    ),
    "reproduce": ("saddlesvm reproduce rates --quick", "saddlesvm reproduce --data downloads --report reports"),
    "watch": ("saddlesvm watch toy", "saddlesvm watch banknote --solver sdca --against newton --report banknote.html"),
    "warmup": ("saddlesvm warmup", "saddlesvm warmup --loss hinge,logistic --layout csr --dtype float32"),
}
