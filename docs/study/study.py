"""For readers who write the algorithms themselves: a check against the compiled solvers.

The pages of this folder derive each algorithm and give it in plain NumPy. :func:`check` runs such a
function, or a reader's own, and the compiled solver on small data with the same draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits
from saddlesvm.kernel.kernel_pegasos import KernelPegasos
from saddlesvm.kernel.kernel_problem import KernelProblem
from saddlesvm.kernel.mercer import Kernel
from saddlesvm.lab.dataset import make_dataset
from saddlesvm.lab.recorder import Draws
from saddlesvm.problem.certificate import evaluate
from saddlesvm.problem.crammer_singer import make_joint_problem
from saddlesvm.problem.intercepts import Absent
from saddlesvm.problem.losses import Hinge, make_loss
from saddlesvm.problem.problem import Problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers import DCD, SDCA, Newton, Pegasos
from saddlesvm.solvers.base import Budget
from saddlesvm.solvers.joint_ascent import JointAscent

__all__ = ["ALGORITHMS", "Agreement", "Draws", "check"]

# The size of the cases, and the seed of their draws.
ROWS = 60
FEATURES = 4
CLASSES = 3
SEED = 7
# Largest difference, relative to the largest value, that rounding explains in these short runs.
TOLERANCE = 1e-10


@dataclass(frozen=True)
class Case:
    """A function call with its expected answers.

    Attributes
    ----------
    words : str
        What is special about the case.
    given : tuple
        Positional arguments.
    options : dict
        Keyword arguments.
    names : tuple of str
        Names of the answers.
    expected : tuple
        The answers of the compiled solver.
    draws : bool
        Whether the function takes random draws, as the last positional argument.
    form : str
        The published form of the algorithm, if there are several; a function has to agree with any
        of them.
    """

    words: str
    given: tuple[Any, ...]
    names: tuple[str, ...]
    expected: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)
    draws: bool = True
    form: str = ""

    def arguments(self) -> tuple[object, ...]:
        """Return the positional arguments, with fresh copies of the arrays and fresh draws."""
        given: list[Any] = []
        for value in self.given:
            given.append(value.copy() if isinstance(value, np.ndarray) else value)
        if self.draws:
            given.append(Draws(SEED))
        return tuple(given)


def two_classes(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return two Gaussian classes that overlap, with labels -1 and +1."""
    random = np.random.default_rng(seed)
    y = random.choice([-1.0, 1.0], ROWS)
    return random.standard_normal((ROWS, FEATURES)) + 0.8 * y[:, None], y


def linear_problem(loss: str = "hinge", **strength: Any) -> Problem:
    """Return the problem over these rows; by default without an intercept."""
    return make_dataset(*two_classes(), name="").problem(make_loss(loss), **strength)


def run_certified(problem: Any, solver: Any, epochs: float) -> tuple[Any, Any]:
    """Return state and point of a solver after some epochs; certificates must not change them."""
    state = solver.init(problem, SEED)
    n = problem.members.size
    # A certificate after each half of an epoch.
    while (left := round((epochs - state.epochs) * n)) > 0:
        state = solver.step(problem, state, Budget(min(left, n // 2)))
        state = solver.learn_from_certificate(
            problem, state, evaluate(problem, solver.solution(problem, state))
        )
    return state, solver.solution(problem, state)


def pegasos_cases() -> Iterator[Case]:
    """Yield single rows and batches, with the projection and with an intercept."""
    X, y = two_classes()
    variants: list[tuple[str, dict[str, Any]]] = [
        ("one row an iteration", {}),
        ("five rows an iteration", {"k": 5}),
        ("with the projection", {"project": True}),
        ("with an intercept", {"bias": True, "k": 3}),
    ]
    T = 200
    for words, options in variants:
        k = options.get("k", 1)
        lam = 0.05
        problem = linear_problem(
            lam=lam, intercept="free" if options.get("bias") else "none"
        )
        solver = Pegasos(
            batch_size=k,
            projection=options.get("project", False),
            sampling="replacement",
            output="last",
        )
        # T iterations over k rows each are T k / ROWS epochs.
        _, point = run_certified(problem, solver, T * k / ROWS)
        assert point.w is not None
        expected = (point.w[:-1], point.w[-1] * problem.scale)
        yield Case(words, (X, y, lam, T), ("w", "b"), expected, options)


def kernel_problem(lam: float) -> KernelProblem:
    """Return the problem over these rows with a Gaussian kernel, as a matrix of its values."""
    X, y = two_classes()
    squares = ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)
    return KernelProblem(
        X=np.exp(-0.5 * squares),
        kernel=Kernel("precomputed"),
        y=y,
        weights=np.empty(0),
        loss=Hinge(),
        C=1.0 / (lam * ROWS),
        n_lambda=ROWS,
        intercept=Absent(),
    )


def kernel_pegasos_cases() -> Iterator[Case]:
    """Yield runs with a Gaussian kernel; rows judged as in figure 3 of the paper, and by w_t."""
    # The second form is that of the linear solver on the rows of a factor of the kernel matrix,
    # K = F F': its weights are F' (counts y) / (lambda T).
    lam = 0.05
    problem = kernel_problem(lam)
    K = np.asarray(problem.X)
    y = problem.y
    factor = np.linalg.cholesky(K)
    features = make_dataset(factor, y, name="").problem(Hinge(), lam=lam)
    linear = Pegasos(sampling="replacement", output="last")
    for T in (10, 300):
        state, _ = run_certified(problem, KernelPegasos(), T / ROWS)
        _, point = run_certified(features, linear, T / ROWS)
        assert point.w is not None
        exact = np.rint(y * np.linalg.solve(factor.T, lam * T * point.w[:-1]))
        words = f"{T} iterations"
        given = (K, y, lam, T)
        counts = np.abs(state.alpha)
        yield Case(words, given, ("counts",), (counts,), form="judged as in figure 3")
        yield Case(words, given, ("counts",), (exact,), form="judged by w_t")


def sdca_cases() -> Iterator[Case]:
    """Yield starts from zero, and from an epoch of Modified-SGD."""
    X, y = two_classes()
    lam = 0.05
    problem = linear_problem(lam=lam)
    for start in ("zero", "sgd"):
        # Modified-SGD takes an epoch of its own before SDCA begins.
        began = 1.0 if start == "sgd" else 0.0
        for epochs in (1, 5):
            state, point = run_certified(problem, SDCA(start=start), epochs + began)
            assert point.w is not None
            words = f"start={start!r}, {epochs} epochs"
            given = (X, y, lam, epochs)
            expected = (state.alpha, point.w[:-1])
            yield Case(words, given, ("alpha", "w"), expected, {"start": start})


def dcd_cases() -> Iterator[Case]:
    """Yield both losses, with and without shrinking, to rough and fine tolerances."""
    X, y = two_classes()
    # The runs to eps = 0.2 end while rows are set aside.
    for loss, shrink, C, eps in (
        ("hinge", False, 1.0, 0.1),
        ("hinge", False, 1.0, 1e-6),
        ("hinge", True, 1.0, 0.1),
        ("hinge", True, 1.0, 1e-6),
        ("hinge", True, 10.0, 0.2),
        ("squared_hinge", False, 1.0, 1e-6),
        ("squared_hinge", True, 1.0, 0.1),
        ("squared_hinge", True, 1.0, 1e-6),
        ("squared_hinge", True, 10.0, 0.2),
    ):
        problem = linear_problem(loss, C=C)
        solver = DCD(
            shrinking=shrink, stopping="projected_gradient", threshold=eps, run_length=1
        )
        state = solver.init(problem, SEED)
        while not state.satisfied:
            state = solver.step(problem, state, Budget(ROWS))
            evaluation = evaluate(problem, solver.solution(problem, state))
            state = solver.learn_from_certificate(problem, state, evaluation)
        words = f"{loss}, {'with' if shrink else 'without'} shrinking, C = {C:g}, eps = {eps:g}"
        options = {"shrink": shrink, "loss": loss}
        yield Case(
            words, (X, y, C, eps), ("alpha", "w"), (state.alpha, state.w[:-1]), options
        )


def newton_cases() -> Iterator[Case]:
    """Yield the optimum of the squared hinge and of the hinge, which 20 steps reach."""
    X, y = two_classes()
    C = 1.0
    for loss in ("squared_hinge", "hinge"):
        limits = Limits(tol=1e-14, max_epochs=200.0)
        found = fit(linear_problem(loss, C=C), Newton(warm_up=0), limits)
        given = (X, y, C, 20)
        yield Case(
            f"{loss}, the optimum",
            given,
            ("w",),
            (found.coef,),
            {"loss": loss},
            draws=False,
        )


def crammer_singer_cases() -> Iterator[Case]:
    """Yield three classes, with a single and several passes, without shrinking."""
    random = np.random.default_rng(1)
    y = random.integers(0, CLASSES, ROWS)
    # The rows of a class lie around a multiple of its own unit vector.
    X = random.standard_normal((ROWS, FEATURES)) + 1.5 * np.eye(CLASSES, FEATURES)[y]
    C = 0.5
    problem = make_joint_problem(as_rows(X), y, CLASSES, Hinge(), C=C)
    for passes in (1, 6):
        state, point = run_certified(
            problem, JointAscent(shrinking=False), float(passes)
        )
        assert point.w is not None
        expected = (state.alpha, point.w[:, :-1])
        yield Case(
            f"{passes} passes", (X, y, CLASSES, C, passes), ("alpha", "W"), expected
        )


CASES: dict[str, Callable[[], Iterator[Case]]] = {
    "pegasos": pegasos_cases,
    "kernel_pegasos": kernel_pegasos_cases,
    "sdca": sdca_cases,
    "dcd": dcd_cases,
    "newton": newton_cases,
    "crammer_singer": crammer_singer_cases,
}
ALGORITHMS = tuple(CASES)


@dataclass(frozen=True)
class Agreement:
    """The differences between a function's answers and the solver's.

    Attributes
    ----------
    algorithm : str
    differences : dict of str to float
        For each case and each answer the largest difference, relative to the largest value;
        infinite for a wrong shape.
    form : str
        The published form that the function is nearest to, if the algorithm has several; else
        empty.
    """

    algorithm: str
    differences: dict[str, float]
    form: str = ""

    @property
    def worst(self) -> float:
        """The largest difference."""
        return max(self.differences.values())

    @property
    def agrees(self) -> bool:
        """Whether no difference is larger than rounding explains (1e-10)."""
        return self.worst <= TOLERANCE

    def __str__(self) -> str:
        verdict = "agrees with" if self.agrees else "differs from"
        form = f", {self.form}" if self.form else ""
        lines = [
            f"{self.algorithm}{form}: {verdict} the compiled solver (largest relative "
            f"difference {self.worst:.1e})"
        ]
        width = max(map(len, self.differences))
        for words, difference in self.differences.items():
            mark = "" if difference <= TOLERANCE else "   <-- look here"
            lines.append(f"  {words:{width}}  {difference:.1e}{mark}")
        return "\n".join(lines)


def check(algorithm: str, function: Callable[..., object]) -> Agreement:
    """Compare a function with the compiled solver on small data with the same draws.

    Parameters
    ----------
    algorithm : str
        One of :data:`ALGORITHMS`. The algorithm's page states the arguments and results of
        the function:

        ==================  =========================================================  =============
        pegasos             X, y, lam, T, draws, k=1, project=False, bias=False        w, b
        kernel_pegasos      K, y, lam, T, draws                                        counts
        sdca                X, y, lam, epochs, draws, start="zero"                     alpha, w
        dcd                 X, y, C, eps, draws, shrink=True, loss="hinge"             alpha, w
        newton              X, y, C, steps, loss="hinge"                               w
        crammer_singer      X, y, K, C, passes, draws                                  alpha, W
        ==================  =========================================================  =============

        Kernel Pegasos has two forms, and the function has to agree with either: a row's margin is
        judged with ``1 / (lambda t)``, as in figure 3 of the paper, or by w_t itself, with
        ``1 / (lambda (t - 1))``.
    function : callable

    Returns
    -------
    Agreement
        Print it.

    Raises
    ------
    ValueError
        There is no such algorithm.
    """
    if algorithm not in CASES:
        raise ValueError(
            f"there is no algorithm {algorithm!r}: use one of {', '.join(ALGORITHMS)}"
        )
    forms: dict[str, dict[str, float]] = {}
    for case in CASES[algorithm]():
        differences = forms.setdefault(case.form, {})
        answers = _call(function, case)
        for name, given, expected in zip(
            case.names, answers, case.expected, strict=True
        ):
            differences[f"{case.words}: {name}"] = _difference(given, expected)
    # Of several published forms, the nearest counts.
    agreements = [Agreement(algorithm, found, form) for form, found in forms.items()]
    return min(agreements, key=lambda agreement: agreement.worst)


def _call(function: Callable[..., object], case: Case) -> Sequence[object]:
    """Call the function for a case, and return its answers as a tuple."""
    returned = function(*case.arguments(), **case.options)
    answers = returned if isinstance(returned, tuple) else (returned,)
    if len(answers) != len(case.names):
        raise ValueError(
            f"the function must return {', '.join(case.names)}; it returned {len(answers)} values"
        )
    return answers


def _difference(given: object, expected: object) -> float:
    """Return the largest difference, relative to the largest value; infinite for a wrong shape."""
    given = np.asarray(given, dtype=np.float64)
    expected = np.asarray(expected, dtype=np.float64)
    if given.shape != expected.shape or not np.isfinite(given).all():
        return float(np.inf)
    return float(
        np.abs(given - expected).max() / max(float(np.abs(expected).max()), 1e-300)
    )
