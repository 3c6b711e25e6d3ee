"""The ways to train many classes: their sub-problems, the loss and the solver of each way, in
memory and over files.

It also has the starting points of the fits of sub-problems: a former fit, or weights that the user
gives.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from saddlesvm.multiclass.sub_problems import Pairs, SubProblem, one_vs_rest, share_of
from saddlesvm.problem.certificate import Point
from saddlesvm.problem.crammer_singer import JointProblem, make_joint_problem
from saddlesvm.problem.intercepts import intercept_kind
from saddlesvm.problem.losses import Hinge, Logistic, Loss, loss_name, traits_of
from saddlesvm.problem.multinomial import MultinomialProblem
from saddlesvm.problem.penalties import Penalty
from saddlesvm.problem.problem import Problem
from saddlesvm.rows.layouts import Rows
from saddlesvm.rows.memory_plan import Burden
from saddlesvm.rows.passes import Passes
from saddlesvm.solvers.auto import FINISH, Auto
from saddlesvm.solvers.auto_on_files import solver_on_files
from saddlesvm.solvers.base import SolverBase
from saddlesvm.solvers.blocks import Blocks
from saddlesvm.solvers.crammer_singer import CrammerSinger
from saddlesvm.solvers.multinomial import Multinomial
from saddlesvm.solvers.multinomial_on_files import MultinomialOnFiles
from saddlesvm.solvers.register import make_solver

SPLITS = ("ovr", "ovo")
SAMPLE_SHARE = 0.4  # of the memory, for the sample of multinomial regression's Newton method
WEIGHTS_HELD = 24  # arrays of all classes' weights that it holds at a time
ALONE = "squared_hinge"  # the estimators' default loss, which stands for a joint machine's own


@dataclass(frozen=True)
class JointSubProblem(SubProblem):
    """The single problem of a joint machine; ``y`` holds class numbers.

    Attributes
    ----------
    n_classes : int
    kind : type of JointProblem
    """

    n_classes: int = 2
    kind: type[JointProblem] = JointProblem

    @property
    def n_vectors(self) -> int:
        """A vector for each class; a single vector for two (:func:`write_as_two_classes`)."""
        return self.n_classes if self.n_classes > 2 else 1

    def problem(self, X: Rows | Passes, loss: Loss, **options: Any) -> Problem:
        given = {"members": self.members, **options}
        return make_joint_problem(X, self.y, self.n_classes, loss, kind=self.kind, **given)

    def start(self, problem: Problem, duals: Any, former_C: float, w: np.ndarray) -> Point:
        """Begin at the duals of an earlier fit, a row a class; of two classes their difference."""
        assert isinstance(problem, JointProblem)
        return Point(alpha=problem.taken_over(duals, former_C))

    @property
    def begins_at_weights(self) -> bool:  # type: ignore[override]
        """Whether its solver does: that of the softmax, which has no dual variables."""
        return self.kind is MultinomialProblem

    def start_at(self, problem: Problem, W: np.ndarray) -> Point | None:
        """Return the weights themselves if the solver begins at weights, else None."""
        return Point(each_class(W)) if self.begins_at_weights else None


def each_class(vectors: np.ndarray) -> np.ndarray:
    """Return a vector for each class, shape (K, m), also from the single vector of two classes."""
    return vectors if len(vectors) > 1 else np.vstack([-0.5 * vectors, 0.5 * vectors])


@dataclass(frozen=True)
class Joint:
    """A way to train all classes in a single problem.

    Attributes
    ----------
    loss : Loss
        The name of the loss if there are two classes.
    kind : type of JointProblem
    solver : type
    on_files : type, optional
        The solver over rows in files.
    """

    loss: Loss
    kind: type[JointProblem]
    solver: type
    on_files: type | None = None


JOINT = {
    "crammer_singer": Joint(Hinge(), JointProblem, CrammerSinger),
    "multinomial": Joint(Logistic(), MultinomialProblem, Multinomial, MultinomialOnFiles),
}


def has_factors(multi_class: str, n_classes: int) -> bool:
    """Return True if each class has a sub-problem of its own, with a factor of its own."""
    return multi_class == "ovr" and n_classes > 2


def sub_problems_of(
    multi_class: str, codes: np.ndarray, classes: np.ndarray, factors: np.ndarray | None = None
) -> Sequence[SubProblem]:
    """Return the sub-problems of a way to train many classes, each made when it is asked for.

    `factors` are as for :func:`~saddlesvm.multiclass.sub_problems.one_vs_rest`.
    """
    if multi_class == "ovo":
        return Pairs(codes, classes)
    if multi_class == "ovr":
        return one_vs_rest(codes, classes, factors)
    # A joint machine is a single problem over class numbers.
    kind = JOINT[multi_class].kind
    return [JointSubProblem(0, "", codes.astype(np.float64), None, classes.size, kind)]


def loss_for(multi_class: str, loss: Loss) -> Loss:
    """Return the loss of the sub-problems; a joint machine has a loss of its own by default.

    Raises
    ------
    ValueError
        A joint machine is asked for with a loss that it does not have.
    """
    if multi_class in SPLITS:
        return loss
    own = JOINT[multi_class].loss
    name = loss_name(own)
    given = loss_name(loss)
    # A joint hinge is the loss of Crammer and Singer, too.
    is_own = given in (name, ALONE) or (isinstance(own, Hinge) and traits_of(loss).joint)
    if not is_own:
        raise ValueError(
            f"multi_class={multi_class!r} is the {name} loss's: use loss={name!r}, not {given!r}"
        )
    return own


def check_split(multi_class: str, intercept: str) -> None:
    """Raise ValueError for a way to split that does not work with the intercept."""
    if (
        multi_class in JOINT
        and intercept_kind(intercept).constrained
        and not JOINT[multi_class].kind.any_intercept
    ):
        raise ValueError(
            f"multi_class={multi_class!r} has no free intercept: use intercept='regularized'"
        )


def solver_for(multi_class: str, solver: Any) -> Any:
    """Return the solver object for the sub-problems.

    Raises
    ------
    ValueError
        A solver for two classes is asked to solve a joint problem, or the other way round.
    """
    if multi_class in SPLITS:
        # Binary problems: any solver but those of the joint machines.
        made = make_solver(solver)
        if isinstance(made, (CrammerSinger, Multinomial)):
            ways = " or ".join(
                repr(way) for way, joint in JOINT.items() if isinstance(made, joint.solver)
            )
            raise ValueError(f"the solver {made.name!r} supports multi_class={ways} only")
        return made
    # A joint machine has one solver: given as an object, or by its name, or by "auto".
    own = JOINT[multi_class].solver
    if isinstance(solver, own):
        return solver
    if solver not in ("auto", own.name):  # type: ignore[attr-defined]
        raise ValueError(
            f"multi_class={multi_class!r} has a solver of its own: use solver='auto'; "
            f"got {solver!r}"
        )
    return own()


def choose_on_files(
    multi_class: str,
    solver: Any,
    X: Rows,
    problems: Sequence[SubProblem],
    memory: float,
    loss: Loss,
    penalty: Penalty,
    own_weights: bool = False,
) -> tuple[SolverBase, Burden]:
    """Return the solver over files in place of a solver in memory, and the memory that it needs.

    Parameters
    ----------
    multi_class : str
    solver : Solver
    X : Rows
    problems : sequence of callables
        The sub-problems.
    memory : float
        Bytes that training may take.
    loss : Loss
    penalty : Penalty
    own_weights : bool, default=False
        True if classes have factors, so that each sub-problem has row weights of its own.
    """
    count = len(problems)
    share = share_of(problems)
    if multi_class in SPLITS:
        made = solver_on_files(solver, loss, penalty, X, memory, count)
        arrays = count if own_weights else 1
        if not isinstance(made, Blocks):
            return made, Burden(count, 3, share, weights=arrays)
        return made, Burden(count, 2, share, weights=arrays)
    kind = JOINT[multi_class].on_files
    if kind is None:
        raise ValueError(
            f"multi_class={multi_class!r} needs all rows in memory, and these would be read block "
            "by block, as memory= or their size asks for: use multi_class='ovr' or 'multinomial', "
            "leave memory out, or give fewer rows"
        )
    # Bytes of the weights of all classes in float64, as often as the solver holds them.
    one = problems[0]
    width = X.n_features + 1
    assert isinstance(one, JointSubProblem)
    weights = 8 * WEIGHTS_HELD * one.n_classes * width * count
    return kind(), Burden(count, 0, share, one.n_classes, 2 * weights, SAMPLE_SHARE)


def write_as_two_classes(
    coef: np.ndarray, intercept: np.ndarray, duals: np.ndarray
) -> tuple[np.ndarray, np.ndarray, object]:
    """Return a joint model of two classes as a vector, the second class against the first."""
    if duals is not None:
        duals = (duals[[1]] - duals[[0]]).toarray()
    return coef[1:] - coef[:1], intercept[1:] - intercept[:1], duals


class FormerFit(NamedTuple):
    """A fit, or a point that it has reached, from which another fit begins.

    Attributes
    ----------
    duals : ndarray or CSR array of shape (vectors, n), or None
        Dual variables in the C form, if the model has them.
    coef : ndarray of shape (vectors, d)
    intercept : ndarray of shape (vectors,)
    C : float
    uses_lambda : bool
        Whether lambda was given; a sub-problem over a share of the rows then has a C of its own.
    phases : list of dict
        For each sub-problem, seconds by solver or phase.
    """

    duals: Any
    coef: np.ndarray
    intercept: np.ndarray
    C: float
    uses_lambda: bool
    phases: list[dict[str, float]]

    def start(
        self, sub: SubProblem, problem: Problem, count: int, weights_only: bool = False
    ) -> Point | None:
        """Return the start of a sub-problem of `count`; None if the former fit has another shape.

        `weights_only` asks for a start that is weights alone.
        """
        vectors = count * sub.n_vectors
        if self.coef.shape != (vectors, problem.n_features):
            return None
        # The score is x w + scale w_(d+1): the weight of the virtual feature is b / scale.
        w = np.append(self.coef[sub.index], self.intercept[sub.index] / (problem.scale or 1.0))
        if weights_only:
            return Point(w)
        if sub.begins_at_weights:
            W = np.column_stack([self.coef, self.intercept / (problem.scale or 1.0)])
            return sub.start_at(problem, W)
        if self.duals is None or self.duals.shape != (vectors, problem.y.size):
            return None
        duals = self.duals
        if count > 1:
            duals = duals[[sub.index]]
        # With lambda, C = 1 / (lambda n) is larger for a pair of classes, which has fewer rows.
        share = 1.0
        if self.uses_lambda:
            share = problem.y.size / problem.n
        return sub.start(problem, duals, self.C * share, w)

    def solver(self, solver: Any, index: int) -> Any:
        """Return the solver; auto begins with its finish if the former fit ended with it."""
        if not isinstance(solver, Auto) or index >= len(self.phases):
            return solver
        if FINISH not in self.phases[index]:
            return solver
        return dataclasses.replace(solver, begin=FINISH)


@dataclass(frozen=True)
class GivenWeights:
    """Given weights from which every sub-problem begins.

    Attributes
    ----------
    coef : ndarray of shape (vectors, d)
    intercept : ndarray of shape (vectors,)
    """

    coef: np.ndarray
    intercept: np.ndarray

    def start(
        self, sub: SubProblem, problem: Problem, count: int, weights_only: bool = False
    ) -> Point:
        """Return the starting point of a sub-problem among `count`, maybe weights alone.

        Raises
        ------
        ValueError
            The weights have another shape than the model will have, or its solver begins at dual
            points only.
        """
        vectors = count * sub.n_vectors
        if self.coef.shape != (vectors, problem.n_features) or self.intercept.shape != (vectors,):
            raise ValueError(
                "coef_init and intercept_init must have the shapes of coef_ and intercept_, "
                f"{vectors} x {problem.n_features} and {vectors}; "
                f"got {' x '.join(map(str, self.coef.shape))} and "
                f"{' x '.join(map(str, self.intercept.shape))}"
            )
        if self.intercept.any() and not problem.scale:
            raise ValueError(
                "intercept_init is given, but the model has no intercept: leave it out"
            )
        # The score is x w + scale w_(d+1): the weight of the virtual feature is b / scale.
        W = np.column_stack([self.coef, self.intercept / (problem.scale or 1.0)])
        # A single problem starts at all vectors (one for each class if joint); of several, each at
        # its own.
        own = W
        if count > 1:
            own = W[[sub.index]]
        at: Point | None
        if weights_only:
            at = Point(own[0])
        else:
            at = sub.start_at(problem, own)
        if at is None:
            raise ValueError(
                "coef_init needs multi_class 'ovr', 'ovo' or 'multinomial': others start from "
                "dual points"
            )
        return at

    def solver(self, solver: Any, index: int) -> Any:
        """Return the solver as it is."""
        return solver


def check_start(coef: object, intercept: object) -> GivenWeights | None:
    """Return the start at given weights, checked; None without any.

    Raises
    ------
    ValueError
        Numbers are not finite, or intercepts are given without weights.
    """
    if coef is None and intercept is None:
        return None
    if coef is None:
        raise ValueError("intercept_init is given without coef_init: give both")
    # Weights, as `coef_` of a fit; intercepts are zero if they are not given.
    W = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    b = np.zeros(len(W))
    if intercept is not None:
        b = np.ravel(np.asarray(intercept, dtype=np.float64))
    if not (np.isfinite(W).all() and np.isfinite(b).all()):
        raise ValueError("coef_init and intercept_init must be finite numbers")
    return GivenWeights(W, b)
