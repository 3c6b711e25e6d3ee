"""The base class of the kernel machines: their options, and a face of scikit-learn over a fit.

The estimator holds what its fit left behind
(:class:`~saddlesvm.kernel.kernel_fitted.KernelFitted`), shows it in public attributes, and forwards
to functions of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from numpy.typing import ArrayLike
from scipy import sparse

from saddlesvm.estimators.base import COMMON, Estimator, Training, restore_on_error
from saddlesvm.fit.outcome import Outcome
from saddlesvm.kernel.fit_kernel import fit_kernel
from saddlesvm.kernel.kernel_fits import make_kernel_solver
from saddlesvm.kernel.kernel_fitted import held_machine, weigh_features
from saddlesvm.kernel.nu_machines import PLAIN, Machine
from saddlesvm.problem.loss import Loss
from saddlesvm.runtime.allowed import (
    COUNT,
    FINITE,
    NO_LIMIT,
    NOT_NEGATIVE,
    POSITIVE,
    TRUTH,
    Allowed,
    either,
    names,
)
from saddlesvm.runtime.option_names import KERNEL_NAMES

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from saddlesvm.runtime.option_names import Keep, KernelName, KernelSolver
    from saddlesvm.solvers.base import SolverBase

# The values that the parameters of every kernel machine allow, beside the common ones.
OF_KERNELS = {
    "kernel": either(names(*KERNEL_NAMES), Allowed("a function of two matrices", callable)),
    "gamma": either(names("scale", "auto"), NOT_NEGATIVE),
    "degree": COUNT,
    "coef0": FINITE,
    "cache_size": POSITIVE,
    "max_iter": NO_LIMIT,
    "shrinking": TRUTH,
}


@dataclass(kw_only=True, eq=False, repr=False)
class KernelMachine(Estimator):
    """The base class of SVC, NuSVC, SVR, NuSVR and OneClassSVM; SVC describes the options."""

    kernel: KernelName | Callable[..., Any] = "rbf"
    degree: int = 3
    gamma: Literal["scale", "auto"] | float = "scale"
    coef0: float = 0.0
    tol: float = 1e-3
    cache_size: float = 200
    verbose: int = False
    max_time: float | None = None
    keep: Keep = "best"
    gap: float = 0.0
    solver: KernelSolver | SolverBase = "auto"
    n_jobs: int | None = None
    callbacks: Sequence[Any] | None = None
    shrinking: bool = True
    max_iter: float | None = -1

    _allowed: ClassVar[dict[str, Allowed]] = COMMON | OF_KERNELS

    @restore_on_error
    def fit(
        self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Train to the relative gap `tol`.

        Parameters
        ----------
        X : array-like, sparse matrix or list of dicts, shape (n, d)
            Of shape (n, n) for a precomputed kernel.
        y : array-like of shape (n,)
            Labels, with at least two different values; finite targets of a regression. OneClassSVM
            ignores it.
        sample_weight : array-like of shape (n,), optional
            Non-negative row weights, some of each class positive; a weight of 2 equals the row
            twice.

        Raises
        ------
        ValueError
            Invalid data or options. The message names what was found and what is allowed. Also with
            NuSVC if nu is larger than the smaller class of a pair allows.

        Warns
        -----
        NotCertifiedWarning
            A limit was reached before the requested gap was proven; with NuSVC also if nu leaves no
            margin between two classes: the optimum is then w = 0, and the model is a dual point
            that pair steps cannot improve. Raise nu.
        """
        return self._hold(fit_kernel(self._options(), X, y, sample_weight))

    @property
    def coef_(self) -> Any:
        """The weights of the features, shape (problems, d), read-only; for the linear kernel only.

        Sparse for sparse rows.
        """
        if self.kernel != "linear":
            raise AttributeError(
                f"coef_ exists for kernel='linear' only; this model has kernel={self.kernel!r}"
            )
        if self._fitted is None:
            raise AttributeError("coef_ exists after a fit only: call 'fit' first")
        # They are computed from the support vectors: a change would be lost.
        weights = weigh_features(held_machine(self))
        values = weights.data if sparse.issparse(weights) else weights
        values.flags.writeable = False
        return weights

    @property
    def shape_fit_(self) -> tuple[int, int]:
        """The shape of the rows of the fit."""
        return self.n_samples_fit_, self.n_features_in_

    @property
    def fit_status_(self) -> int:
        """0 if the requested gap was proven, else 1."""
        return 0 if self.outcome_ is Outcome.CERTIFIED else 1

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags

    def _check_options(self) -> Loss:
        """Check every option that does not depend on the data, and return the loss."""
        super()._check_options()
        return self._make_loss()

    def _make_loss(self) -> Loss:
        """Return the loss of the options."""
        raise NotImplementedError(f"{type(self).__name__} has no _make_loss")

    def _make_solver(self) -> Any:
        solver = make_kernel_solver(self.solver)
        if self.solver == "auto" and not self.shrinking:
            return type(solver)(shrinking=False)
        return solver

    def _machine(self) -> Machine:
        """Return how the problem is posed over the rows."""
        return PLAIN

    def _intercept_kind(self) -> str:
        """Return the name of the model's intercept."""
        return getattr(self, "intercept", "free")

    def _pose(self, y: Any, sample_weight: ArrayLike | None, n: int, loss: Loss) -> Training:
        """Return the sub-problems of n rows with these labels or targets."""
        raise NotImplementedError(f"{type(self).__name__} has no _pose")
