"""The fit of LinearSVC and LinearSVR: from rows and labels as a user gives them to a certified model."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from saddlesvm.data import inputs
from saddlesvm.estimators.accountable import Accountable, check_canonical, gathered, make_canonical
from saddlesvm.estimators.automatic_C import Choice, fit_automatically, made_automatic
from saddlesvm.estimators.base import COMMON, all_or_nothing, in_use
from saddlesvm.estimators.certified_path import CertifiedPath
from saddlesvm.estimators.linear_model import LinearModel, Training
from saddlesvm.estimators.on_cluster import TakesClusters, fit_on_cluster, is_distributed
from saddlesvm.estimators.path_search import HasPath
from saddlesvm.estimators.proven import Data
from saddlesvm.estimators.scikit_learn import FitTasks
from saddlesvm.multiclass.starts import given_start
from saddlesvm.problem.losses import Loss
from saddlesvm.rows.passes import Passes
from saddlesvm.runtime.allowed import NUMBER, Allowed, among

DUAL = among("'auto', True or False (it has no effect)", "auto", True, False)


class LinearEstimator(HasPath, Accountable, TakesClusters, LinearModel):
    """The base class of LinearSVC and LinearSVR."""

    _allowed: ClassVar[dict[str, Allowed]] = COMMON | {"dual": DUAL}
    dual_coef_: Any
    C_: float
    choice_: Choice
    path_: CertifiedPath

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        coef_init: Any = None,
        intercept_init: Any = None,
        dual_coef_init: Any = None,
    ) -> Self:
        """Train to the relative gap `tol`.

        Parameters
        ----------
        X : array-like, sparse matrix, list of dicts, Store, or Dask array or DataFrame, of shape (n, d); or files
            The workers of a cluster read a list of files or stores. Without a cluster, the rows of a list of stores
            follow one another.
        y : array-like or Dask array of shape (n,) or (n, k), or sparse indicator matrix of shape (n, k)
            Labels, at least two different ones; of a regression the targets. By default those of the store. Each column
            of an indicator matrix of 0 and 1 is one label, and each column of targets one target: k problems over the
            same rows, with a certificate each. For a list of files, the name of the column, or None.
        sample_weight : array-like of shape (n,), optional
            Non-negative row weights, of each class some positive. A weight of 2 equals the row twice. Without `y`, the
            default is the weights of the store. For a list of files, the name of a column, or a list of one array per
            file.
        groups : array-like of shape (n,), optional
            For ``C="auto"`` with rows that belong together (several images of one patient): the choice of C leaves out
            whole groups, each alone or in ten folds.
        coef_init : array-like of the shape of ``coef_``, optional
            Initial weights. Dual solvers begin at the sub-gradients of their margins. Pegasos begins at the weights as
            published: its first iteration computes margins with them, and multiplies them by zero, unless its steps
            begin later (see :class:`~saddlesvm.Pegasos`).
        intercept_init : array-like of the shape of ``intercept_``, optional
            Initial intercepts; zero by default.
        dual_coef_init : array-like or sparse array of the shape of ``dual_coef_``, optional
            Initial dual variables in the C form, within their bounds, instead of weights. Dual solvers begin exactly
            there.

        Raises
        ------
        ValueError
            Invalid data or options. The message names what was found and what is allowed.
        ClusterLostError
            The scheduler is lost, or there is no worker; ``error.model`` is the best model so far.

        Warns
        -----
        NotCertifiedWarning
            A limit was reached before the requested gap was proven.
        """
        starts = {"coef_init": coef_init, "intercept_init": intercept_init, "dual_coef_init": dual_coef_init}
        if not isinstance(X, np.ndarray) and is_distributed(X):
            check_canonical(self)
            fit_on_cluster(self, X, y, sample_weight, {"groups": groups} | starts)
            if self.canonical is not None:
                make_canonical(self, gathered(X, y, sample_weight))
            return self
        start = None if coef_init is intercept_init is dual_coef_init is None else given_start(*starts.values())
        if not isinstance(self.C, NUMBER) and (how := made_automatic(self.C)) is not None:
            if start is not None:
                raise ValueError("coef_init and dual_coef_init are for a given C, not for C='auto'")
            check_canonical(self)
            return fit_automatically(self, how, X, y, sample_weight, groups)
        if groups is not None:
            raise ValueError("groups are for C='auto', whose choice leaves whole groups out; C is given here")
        self.check_options()
        X, y, sample_weight = inputs.parts_of(X, y, sample_weight, self.memory)
        X = inputs.check_design(self, X, reset=True)
        posed = self._learnt(y, sample_weight, X.shape[0])
        tasks = FitTasks(self, X, y, sample_weight, len(posed.problems)) if in_use(self) else None
        self._solve(X, posed, tasks, start)
        self._data = None if self.reads_blocks or isinstance(X, Passes) else Data(X, y, sample_weight)
        self._complete(X, y, sample_weight)
        if tasks is not None:
            tasks.end()
        if self.canonical is not None:
            make_canonical(self, self._data)
        return self

    def _learnt(self, y: Any, sample_weight: Any, n: int) -> Training:
        """The sub-problems of labels, or of targets; the model learns which classes there are."""
        return self.training_problems(y, sample_weight, n)

    def _complete(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Set the attributes of a model beside those of its fits."""

    def check_options(self) -> Loss:
        """The loss; every option that does not depend on the data is checked."""
        self._check_common()
        self._penalty()
        if self.canonical is not None:
            check_canonical(self)
        made: Loss = self._made_loss()
        return made
