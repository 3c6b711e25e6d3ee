"""One function a solver: make it ready for a task, which is not timed, and say how it is fitted, which is.

Each is given the data in the precision and form that it works in itself, converted before the clock starts (what the
conversion keeps in memory counts as its memory). Objectives differ: where a peer scales its loss or its penalty
another way, the adapter says so.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from task import TIGHT, Adapter, Task, csr_of

WRITABLE = 10_000_000  # values of Vowpal Wabbit's text


def stored_values(X: Any) -> int:
    """Values that are not zero."""
    return int(X.nnz) if sparse.issparse(X) else int(np.count_nonzero(X))


def coefficients(model: Any) -> np.ndarray:
    """``coef_`` as a plain vector."""
    return np.ravel(np.asarray(model.coef_))


def saddlesvm(task: Task, loss: str, solver: str = "auto") -> Adapter:
    """This project: the ladder lowers the certified gap that it stops at."""
    from saddlesvm import LinearSVC

    def fit(tol: float) -> Any:
        model = LinearSVC(
            loss=loss, C=task.C, solver=solver, tol=tol, fit_intercept=False, max_time=task.limit, n_jobs=task.threads,
            random_state=task.seed,
        )  # fmt: skip
        return model.fit(task.X, task.y)

    def facts(model: Any) -> dict[str, float]:
        return {"epochs": float(np.max(model.n_iter_)), "bound": float(model.certificate_.dual)}

    return Adapter(fit, coefficients, facts)


def linear_svc(task: Task, loss: str, dual: bool) -> Adapter:
    """scikit-learn's LinearSVC: the dual ladder counts epochs, the primal one lowers the tolerance."""
    from sklearn.svm import LinearSVC

    X = task.rows_as(np.float64)

    def fit(rung: float) -> Any:
        stop = {"tol": TIGHT, "max_iter": int(rung)} if dual else {"tol": rung, "max_iter": 10_000}
        model = LinearSVC(C=task.C, loss=loss, dual=dual, fit_intercept=False, random_state=task.seed, **stop)
        return model.fit(X, task.y)

    return Adapter(fit, coefficients, lambda model: {"epochs": float(np.max(model.n_iter_))})


def sgd_classifier(task: Task, loss: str) -> Adapter:
    """scikit-learn's SGDClassifier, averaged over the second half of its steps; alpha is lambda."""
    from sklearn.linear_model import SGDClassifier

    def fit(epochs: float) -> Any:
        model = SGDClassifier(
            loss=loss, alpha=task.lam, fit_intercept=False, max_iter=int(epochs), tol=None,
            average=max(1, int(epochs) * task.n // 2), random_state=task.seed,
        )  # fmt: skip
        return model.fit(task.X, task.y)

    return Adapter(fit, coefficients)


def logistic_regression(task: Task, loss: str, solver: str) -> Adapter:
    """scikit-learn's LogisticRegression."""
    from sklearn.linear_model import LogisticRegression

    if solver == "newton-cholesky" and task.X.shape[1] > 5000:
        raise NotImplementedError("its matrix of features by features is too large here")
    X = task.X.toarray() if solver == "newton-cholesky" and sparse.issparse(task.X) else task.X

    def fit(tol: float) -> Any:
        model = LogisticRegression(
            C=task.C, solver=solver, tol=tol, max_iter=100_000, fit_intercept=False, random_state=task.seed
        )
        return model.fit(X, task.y)

    return Adapter(fit, coefficients)


def liblinear(task: Task, kind: str, multicore: bool = False) -> Adapter:
    """LIBLINEAR's own package: its training alone, the conversion of the data done before."""
    from liblinear.liblinearutil import parameter, problem, train

    data = problem(task.y, csr_of(task.X))
    threads = f"-m {task.threads} " if multicore else ""

    def fit(tol: float) -> Any:
        return train(data, parameter(f"-s {kind} -c {task.C!r} -e {tol!r} {threads}-q"))

    def weights(model: Any) -> np.ndarray:
        sign = 1.0 if model.get_labels()[0] > 0 else -1.0
        return sign * np.array(model.w[: task.X.shape[1]])

    return Adapter(fit, weights)


def cyanure(task: Task, loss: str) -> Adapter:
    """cyanure. Its squared hinge is half of ours, so is its lambda then."""
    from cyanure.estimators import Classifier

    lam = (0.5 if loss == "sqhinge" else 1.0) * task.lam

    def fit(epochs: float) -> Any:
        model = Classifier(
            loss=loss, penalty="l2", lambda_1=lam, fit_intercept=False, tol=TIGHT, max_iter=int(epochs), safe=False,
            duality_gap_interval=max(1, min(10, int(epochs))), random_state=task.seed, verbose=False,
            n_threads=task.threads,
        )  # fmt: skip
        return model.fit(task.X, task.y)

    return Adapter(fit, coefficients)


def snapml(task: Task, loss: str) -> Adapter:
    """Snap ML, in its own single precision; its regularizer is 1 / C."""
    from snapml import LogisticRegression, SupportVectorMachine

    X = task.rows_as(np.float32)
    common = {"regularizer": 1.0 / task.C, "tol": TIGHT, "fit_intercept": False, "n_jobs": task.threads}

    def fit(epochs: float) -> Any:
        options = {**common, "max_iter": int(epochs), "random_state": task.seed}
        if loss == "logistic":
            return LogisticRegression(dual=True, **options).fit(X, task.y)
        return SupportVectorMachine(loss=loss, **options).fit(X, task.y)

    return Adapter(fit, coefficients)


def lightning(task: Task, loss: str) -> Adapter:
    """lightning's LinearSVC, dual coordinate descent."""
    from lightning.classification import LinearSVC

    X = csr_of(task.X) if sparse.issparse(task.X) else task.rows_as(np.float64)

    def fit(epochs: float) -> Any:
        model = LinearSVC(C=task.C, loss=loss, max_iter=int(epochs), tol=TIGHT, random_state=task.seed)
        return model.fit(X, task.y)

    return Adapter(fit, coefficients)


def skglm(task: Task, loss: str) -> Adapter:
    """skglm: its dual LinearSVC for the hinge, L-BFGS for the logistic loss (a mean over rows, so alpha is lambda)."""
    from skglm import LinearSVC
    from skglm.datafits import Logistic
    from skglm.penalties import L2
    from skglm.solvers import LBFGS

    values = task.rows_as(np.float64)
    X = sparse.csc_matrix(values) if sparse.issparse(values) else np.asfortranarray(values)

    def fit(tol: float) -> Any:
        if loss == "hinge":
            return LinearSVC(C=task.C, tol=tol, fit_intercept=False, max_iter=1000).fit(X, task.y).coef_
        return LBFGS(max_iter=10_000, tol=tol * 1e-2).solve(X, task.y, Logistic(), L2(task.lam))[0]

    return Adapter(fit, np.ravel)


def rehline(task: Task, loss: str) -> Adapter:
    """ReHLine's ridge machine, coordinate descent on the dual, in float64."""
    from rehline import plqERM_Ridge

    X = task.rows_as(np.float64)

    def fit(epochs: float) -> Any:
        return plqERM_Ridge(loss={"name": loss}, C=task.C, max_iter=int(epochs), tol=TIGHT).fit(X, task.y)

    return Adapter(fit, coefficients)


def vowpal_wabbit(task: Task, loss: str) -> Adapter:
    """Vowpal Wabbit on its binary cache: plain SGD for the hinge (l2 is lambda), L-BFGS for the logistic loss (1 / C).

    Only with ``--predict_only_model`` are the weights of SGD those of the objective: it applies l2 lazily.
    """
    from vowpalwabbit import Workspace

    if stored_values(task.X) > WRITABLE:
        raise NotImplementedError("its text would take minutes to write")
    text = task.scratch / "rows.vw"
    cache = task.scratch / "rows.cache"
    bits = max(18, int(task.X.shape[1]).bit_length())
    way = f"--bfgs --l2 {1.0 / task.C!r} --termination 1e-12" if loss == "logistic" else f"--sgd --l2 {task.lam!r}"
    options = f"--cache_file {cache} --noconstant --holdout_off --loss_function {loss} -b {bits} --quiet {way}"
    cache.unlink(missing_ok=True)
    write_vw(task, text)
    Workspace(f"-d {text} --passes 2 {options}").finish()

    def fit(passes: float) -> Any:
        return Workspace(f"-d {text} --passes {max(2, int(passes))} {options} --predict_only_model")

    def weights(model: Any) -> np.ndarray:
        found = np.array([model.get_weight(j) for j in range(task.X.shape[1])])
        model.finish()
        return found

    return Adapter(fit, weights)


def write_vw(task: Task, path: Any) -> None:
    """Vowpal Wabbit's text format."""
    X = csr_of(task.X)
    with open(path, "w", encoding="ascii") as file:
        for i in range(task.n):
            part = slice(X.indptr[i], X.indptr[i + 1])
            pairs = (f"{j}:{value:.8g}" for j, value in zip(X.indices[part], X.data[part], strict=True))
            file.write(f"{int(task.y[i])} | {' '.join(pairs)}\n")
