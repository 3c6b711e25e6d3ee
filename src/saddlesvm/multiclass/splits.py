"""The ways to turn many classes into problems, and the problems' scores into one score per class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from saddlesvm.multiclass.sub_problems import Pairs, SubProblem, one_vs_rest, share_of
from saddlesvm.problem.certificate import Point
from saddlesvm.problem.crammer_singer import JointProblem, make_joint_problem
from saddlesvm.problem.intercepts import intercept_kind
from saddlesvm.problem.joint_losses import BEST_RIVAL, JointLoss, Softmax, TopKHinge
from saddlesvm.problem.losses import Hinge, Logistic, Loss, loss_name, traits_of
from saddlesvm.problem.multinomial import MultinomialProblem
from saddlesvm.problem.problem import Problem
from saddlesvm.rows.layouts import Rows
from saddlesvm.rows.memory_plan import Burden
from saddlesvm.rows.passes import Passes
from saddlesvm.solvers.automatic.on_files import solver_on_files
from saddlesvm.solvers.base import SolverBase, one_of
from saddlesvm.solvers.blocks import Blocks
from saddlesvm.solvers.crammer_singer import CrammerSinger
from saddlesvm.solvers.joint_blocks import JointBlocks
from saddlesvm.solvers.multinomial import Multinomial
from saddlesvm.solvers.multinomial_on_files import MultinomialOnFiles
from saddlesvm.solvers.register import make_solver

SHAPES = ("ovr", "ovo")
MATRICES_SHARE = 0.1  # of the memory, that matrices of a joint machine's Newton method over files may take
SAMPLE_SHARE = 0.4  # of the memory, for the sample of multinomial regression's Newton method
WEIGHTS_HELD = 24  # arrays of all classes' weights that it holds at a time
ALONE = "squared_hinge"  # the estimators' default loss, which stands for a joint machine's own where it was left alone


@dataclass(frozen=True)
class JointSubProblem(SubProblem):
    """The single problem of a joint machine; ``y`` holds class numbers.

    Attributes
    ----------
    n_classes : int
    joint : JointLoss
    """

    n_classes: int = 2
    joint: JointLoss = BEST_RIVAL

    @property
    def n_vectors(self) -> int:
        """One a class; for two classes the one of :func:`use_two_class_form`."""
        return self.n_classes if self.n_classes > 2 else 1

    def problem(self, X: Rows | Passes, loss: Loss, **options: Any) -> Problem:
        kind = MultinomialProblem if isinstance(self.joint, Softmax) else JointProblem
        given = {"members": self.members, **options}
        return make_joint_problem(X, self.y, self.n_classes, loss, self.joint, kind=kind, **given)

    def start(self, problem: Problem, duals: Any, former_C: float, w: np.ndarray) -> Point:
        """The duals of an earlier fit, shape (n_classes, n_all); for two classes their difference, shape (1, n_all)."""
        assert isinstance(problem, JointProblem)
        return Point(alpha=problem.taken_over(duals, former_C))

    def start_at(self, W: np.ndarray) -> Point | None:
        """The weights themselves, for the machine whose solver begins at weights."""
        return Point(each_class(W)) if isinstance(self.joint, Softmax) else None


def each_class(vectors: np.ndarray) -> np.ndarray:
    """One vector a class, shape (K, m); of the one of :func:`use_two_class_form` both classes'."""
    return vectors if len(vectors) > 1 else np.vstack([-0.5 * vectors, 0.5 * vectors])


SPLITS = ("ovr", "ovo")


@dataclass(frozen=True)
class Joint:
    """A way to train all classes in one problem.

    Attributes
    ----------
    loss : Loss
        What its loss is called where there are two classes.
    kind : callable
        Makes the joint loss; its argument is the estimators' option `top_k`.
    solver : type
    on_files : callable
        Makes the solver over rows in files, of the one in memory and the bytes that its matrices may take.
    any_intercept : bool
        Whether the intercept may be free.
    """

    loss: Loss
    kind: Callable[[int], JointLoss]
    solver: type
    on_files: Callable[[Any, float], SolverBase]
    any_intercept: bool = False


def blocks_of(solver: CrammerSinger, memory: float) -> JointBlocks:
    """The solver of the joint hinges over rows in files."""
    return JointBlocks(memory=memory)


def sweeps_of(solver: Multinomial, memory: float) -> MultinomialOnFiles:
    """The solver of multinomial regression over rows in files, which has no matrices."""
    return MultinomialOnFiles()


JOINT = {
    "crammer_singer": Joint(Hinge(), lambda top_k: BEST_RIVAL, CrammerSinger, blocks_of),
    "multinomial": Joint(Logistic(), lambda top_k: Softmax(), Multinomial, sweeps_of, any_intercept=True),
    "top_k": Joint(Hinge(), TopKHinge, CrammerSinger, blocks_of),
}
WAYS = (*SPLITS, *JOINT)


def has_factors(multi_class: str, n_classes: int) -> bool:
    """Whether a class has a sub-problem of its own, in which alone the factor of its rows' weights counts."""
    return multi_class == "ovr" and n_classes > 2


def sub_problems_of(
    multi_class: str, codes: np.ndarray, classes: np.ndarray, top_k: int = 1, factors: np.ndarray | None = None
) -> Sequence[SubProblem]:
    """The maker of the sub-problems of a way to train many classes, one at a time; `factors` are those of
    :func:`~saddlesvm.multiclass.sub_problems.one_vs_rest`."""
    if multi_class in SPLITS:
        return Pairs(codes, classes) if multi_class == "ovo" else one_vs_rest(codes, classes, factors)
    joint = JOINT[multi_class].kind(top_k)
    return [JointSubProblem(0, "", codes.astype(np.float64), None, classes.size, joint)]


def loss_for(multi_class: str, loss: Loss) -> Loss:
    """The loss of the sub-problems. A joint machine has one loss of its own: also where the default was left.

    Raises
    ------
    ValueError
        A joint machine is asked for with a loss that it does not have.
    """
    if multi_class in SPLITS:
        return loss
    own, given = JOINT[multi_class].loss, loss_name(loss)
    if given not in (loss_name(own), ALONE) and not (isinstance(own, Hinge) and traits_of(loss).joint):
        name = loss_name(own)
        raise ValueError(f"multi_class={multi_class!r} is the {name} loss's: use loss={name!r}, not {given!r}")
    return own


def check_split(multi_class: str, shape: str, intercept: str) -> None:
    """Raise ValueError for a way to split, or a shape of the scores, that is unknown or does not work with the rest."""
    one_of("multi_class", multi_class, WAYS)
    one_of("decision_function_shape", shape, SHAPES)
    if multi_class in JOINT and intercept_kind(intercept).constrained and not JOINT[multi_class].any_intercept:
        raise ValueError(f"multi_class={multi_class!r} has no free intercept: use intercept='regularized'")


def solver_for(multi_class: str, solver: Any) -> Any:
    """The solver object for the sub-problems.

    Raises
    ------
    ValueError
        A solver for two classes is asked to solve a joint problem, or the other way round.
    """
    if multi_class in SPLITS:
        made = make_solver(solver)
        if isinstance(made, (CrammerSinger, Multinomial)):
            ways = " or ".join(repr(way) for way, joint in JOINT.items() if isinstance(made, joint.solver))
            raise ValueError(f"the solver {made.name!r} supports multi_class={ways} only")
        return made
    own = JOINT[multi_class].solver
    if isinstance(solver, own):
        return solver
    if solver not in ("auto", own.name):  # type: ignore[attr-defined]
        raise ValueError(f"multi_class={multi_class!r} has a solver of its own: use solver='auto'; got {solver!r}")
    return own()


def on_files(
    multi_class: str, solver: Any, X: Any, problems: Sequence[SubProblem], memory: float, own_weights: bool = False
) -> tuple[SolverBase, Burden]:
    """The solver over rows in files that is meant by one over rows in memory, and what it keeps of a row.

    Parameters
    ----------
    multi_class : str
    solver : Solver
    X : ndarray or CSR matrix of shape (n, d)
    problems : sequence of callables
        What makes the sub-problems.
    memory : float
        Bytes that training may take.
    own_weights : bool, default=False
        Whether classes have factors in sub-problems of their own, so that each has row weights of its own.
    """
    count, share = len(problems), share_of(problems)
    if multi_class in SPLITS:
        made = solver_on_files(solver, memory, count)
        arrays = count if own_weights else 1
        return made, Burden(count, 2 if isinstance(made, Blocks) else 3, share, weights=arrays)
    one, width = problems[0], X.shape[1] + 1
    assert isinstance(one, JointSubProblem)
    matrices = min(MATRICES_SHARE * memory, 8.0 * one.n_classes * width**2)
    made = JOINT[multi_class].on_files(solver, matrices)
    weights = 8 * WEIGHTS_HELD * one.n_classes * width * count
    if isinstance(made, MultinomialOnFiles):
        return made, Burden(count, 0, share, one.n_classes, 2 * weights, SAMPLE_SHARE)
    return made, Burden(count, 2, share, one.n_classes, int(matrices) + weights)


def use_two_class_form(model: Any) -> None:
    """Write a fitted joint model of two classes as one vector, the second class against the first."""
    model.coef_ = model.coef_[1:] - model.coef_[:1]
    model.intercept_ = model.intercept_[1:] - model.intercept_[:1]
    if hasattr(model, "dual_coef_"):
        model.dual_coef_ = (model.dual_coef_[[1]] - model.dual_coef_[[0]]).toarray()
