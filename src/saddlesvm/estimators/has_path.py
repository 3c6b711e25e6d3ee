"""The common part of LinearSVC and LinearSVR for fits along C."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from saddlesvm.estimators.certified_path import CertifiedPath
from saddlesvm.estimators.path import RegularizationPath
from saddlesvm.estimators.path_defaults import GRID
from saddlesvm.estimators.path_search import path_of

__all__ = ["HasPath"]

Ends = tuple[float, float]
Grid = int | Sequence[float] | np.ndarray


class HasPath:
    """A linear estimator that fits along C."""

    @overload
    @classmethod
    def path(
        cls, X: Any, y: Any = None, *, C: Ends, lam: None = None, gap: float | None = None, sample_weight: Any = None,
        **options: Any,
    ) -> CertifiedPath: ...  # fmt: skip

    @overload
    @classmethod
    def path(
        cls, X: Any, y: Any = None, *, lam: Ends, C: None = None, gap: float | None = None, sample_weight: Any = None,
        **options: Any,
    ) -> CertifiedPath: ...  # fmt: skip

    @overload
    @classmethod
    def path(
        cls, X: Any, y: Any = None, *, gap: float, C: None = None, lam: None = None, sample_weight: Any = None,
        **options: Any,
    ) -> CertifiedPath: ...  # fmt: skip

    @overload
    @classmethod
    def path(
        cls, X: Any, y: Any = None, *, Cs: Grid = 13, C: None = None, lam: None = None, gap: None = None,
        sample_weight: Any = None, **options: Any,
    ) -> RegularizationPath: ...  # fmt: skip

    @classmethod
    def path(
        cls,
        X: Any,
        y: Any = None,
        *,
        Cs: Any = GRID,
        C: tuple[float, float] | None = None,
        lam: tuple[float, float] | None = None,
        gap: float | None = None,
        sample_weight: Any = None,
        **options: Any,
    ) -> RegularizationPath | CertifiedPath:
        """Models along C: certified fits on a grid, or a model and a proof for *every* C between two ends.

        Parameters
        ----------
        X : array-like, sparse matrix or Store of shape (n, d)
        y : array-like of shape (n,)
        Cs : int or sequence of float, default=13
            A grid: values of C, or how many between 1e-3 and 1e3. Each fit is started from its neighbour.
        C : tuple of two floats, optional
            The smallest and the largest C of a certified path. Where only `gap` is given, 1e-3 and 1e3; with an l1 norm
            in the penalty, from the C where the first weight appears to a thousand times it.
        lam : tuple of two floats, optional
            The same in lambda; certificates are then in the lambda form.
        gap : float, optional
            The relative gap to prove for every C of a certified path; 1e-2 where only the ends are given.
        sample_weight : array-like of shape (n,), optional
        **options
            Of the estimator. With `n_jobs` fits go side by side: those of a certified path, and of a grid those of two
            classes or a regression, each begun where its neighbour has come to half-way. The models of a grid are the
            same for any number of threads beyond one, and certified as ever. The `checkpoint` of a certified path
            holds all its fits so far, and the same call goes on from it. A grid takes none.

        Returns
        -------
        RegularizationPath or CertifiedPath

        Raises
        ------
        ValueError
            Bad data or options.
        """
        template: Any = cls(**options)
        return path_of(template, X, y, Cs=Cs, C=C, lam=lam, gap=gap, sample_weight=sample_weight)
