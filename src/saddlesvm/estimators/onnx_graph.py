"""The nodes of ONNX models, written as arithmetic; what the converters of estimators and of tables share."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.estimators.calibration import NEAREST

try:
    from onnx import TensorProto
    from skl2onnx.algebra import onnx_ops
except ImportError as error:
    raise ImportError("export to ONNX needs skl2onnx: pip install 'saddlesvm[onnx]'") from error

__all__ = ["Graph", "TensorProto", "onnx_ops"]


class Graph:
    """The nodes of one model: float64 values in, float64 values out."""

    def __init__(self, version: int, source: Any) -> None:
        self.version, self.source = version, source

    def op(self, name: str, *inputs: Any, **attributes: Any) -> Any:
        """A node; arrays among its inputs become constants."""
        return getattr(onnx_ops, f"Onnx{name}")(*inputs, op_version=self.version, **attributes)

    def in_float64(self, values: Any) -> Any:
        """The values as float64."""
        return self.op("Cast", values, to=TensorProto.DOUBLE)

    def linear(self, X: Any, coef: Any, intercept: np.ndarray) -> Any:
        """``X @ coef.T + intercept``; coef of shape (k, d), intercept of shape (k,)."""
        dense = coef.toarray() if sparse.issparse(coef) else np.asarray(coef)
        weights = np.ascontiguousarray(np.atleast_2d(dense).T, dtype=np.float64)
        offsets = np.atleast_1d(np.asarray(intercept, dtype=np.float64))
        return self.op("Add", self.op("MatMul", X, weights), offsets)

    def kernel(self, X: Any, kernel: Any, centres: Any) -> Any:
        """Kernel values between rows and centres, shape (n, centres)."""
        centres = centres.toarray() if sparse.issparse(centres) else np.asarray(centres)
        centres = np.ascontiguousarray(centres, dtype=np.float64)
        products = self.op("MatMul", X, np.ascontiguousarray(centres.T))
        if kernel.name == "linear":
            return products
        gamma = np.array([kernel.gamma])
        if kernel.name == "rbf":
            axes = np.array([1], dtype=np.int64)
            own = self.op("ReduceSum", self.op("Mul", X, X), axes, keepdims=1)
            apart = self.op("Sub", self.op("Add", own, (centres * centres).sum(axis=1)[None, :]),
                            self.op("Mul", products, np.array([2.0])))  # fmt: skip
            return self.op("Exp", self.op("Mul", self.op("Max", apart, np.array([0.0])), -gamma))
        inner = self.op("Add", self.op("Mul", products, gamma), np.array([float(kernel.coef0)]))
        return self.op("Tanh", inner) if kernel.name == "sigmoid" else self.op("Pow", inner, np.array([kernel.degree]))

    def vote(self, scores: Any, classes: int) -> Any:
        """As :func:`saddlesvm.multiclass.one_vs_one.vote`."""
        pairs = list(combinations(range(classes), 2))
        first, later = np.zeros((2, len(pairs), classes))
        for k, (i, j) in enumerate(pairs):
            first[k, i] = later[k, j] = 1.0
        won = self.in_float64(self.op("Greater", scores, np.array([0.0])))
        votes = self.op("Add", self.op("MatMul", won, later - first), first.sum(axis=0))
        sums = self.op("MatMul", scores, later - first)
        size = self.op("Mul", self.op("Add", self.op("Abs", sums), np.array([1.0])), np.array([3.0]))
        return self.op("Add", votes, self.op("Div", sums, size))

    def both(self, positive: Any) -> Any:
        """The probabilities of two classes from that of the second, shape (n, 2)."""
        return self.op("Concat", self.op("Sub", np.array([1.0]), positive), positive, axis=1)

    def shares(self, positive: Any) -> Any:
        """Probabilities scaled to sum to 1; equal ones where all are 0."""
        axes, zero = np.array([1], dtype=np.int64), np.array([0.0])
        sums = self.op("ReduceSum", positive, axes, keepdims=1)
        none = self.in_float64(self.op("Equal", sums, zero))
        return self.op("Div", self.op("Add", positive, none),
                       self.op("ReduceSum", self.op("Add", positive, none), axes, keepdims=1))  # fmt: skip

    def curves(self, curves: np.ndarray, scores: Any) -> Any:
        """As :func:`saddlesvm.estimators.calibration.probabilities`."""
        if curves.ndim == 1:
            return self.op("Sigmoid", self.op("Mul", scores, curves))
        if curves.ndim == 2:
            return self.op("Sigmoid", self.op("Add", self.op("Mul", scores, curves[:, 0]), curves[:, 1]))
        columns = []
        for k, (at, values) in enumerate(curves):
            places = [np.array([k], dtype=np.int64), np.array([k + 1], dtype=np.int64), np.array([1], dtype=np.int64)]
            column = self.op("Slice", scores, *places)
            apart = np.diff(at)
            steps = apart > 0.0
            if not steps.any():
                columns.append(self.op("Add", self.op("Mul", column, np.array([0.0])), values[:1]))
                continue
            share = self.op("Div", self.op("Sub", column, at[:-1][steps][None, :]), apart[steps][None, :])
            clipped = self.op("Clip", share, np.array(0.0), np.array(1.0))
            rises = np.diff(values)[steps][:, None]
            columns.append(self.op("Add", self.op("MatMul", clipped, rises), values[:1]))
        return columns[0] if len(columns) == 1 else self.op("Concat", *columns, axis=1)

    def part(self, values: Any, axis: int, start: int, stop: int) -> Any:
        """The values from `start` to before `stop` along an axis."""
        return self.op("Slice", values, *(np.array([one], dtype=np.int64) for one in (start, stop, axis)))

    def coupled(self, later: Any, classes: int) -> Any:
        """As :func:`saddlesvm.estimators.calibration.coupled`; the equations are solved by elimination."""
        pairs = list(combinations(range(classes), 2))
        first, second = np.zeros((2, len(pairs), classes))
        place = np.full((classes, classes), len(pairs))
        for k, (i, j) in enumerate(pairs):
            first[k, i] = second[k, j] = 1.0
            place[i, j] = place[j, i] = k
        r = self.op("Clip", later, np.array(NEAREST), np.array(1.0 - NEAREST))
        other = self.op("Sub", np.array([1.0]), r)
        diagonal = self.op("Add", self.op("MatMul", self.op("Mul", r, r), first),
                           self.op("MatMul", self.op("Mul", other, other), second))  # fmt: skip
        none = self.op("Mul", self.part(r, 1, 0, 1), np.array([0.0]))
        products = self.op("Concat", self.op("Mul", r, other), none, axis=1)
        beside = self.op("Gather", products, place, axis=1)
        Q = self.op("Sub", self.op("Mul", self.op("Unsqueeze", diagonal, np.array([2])), np.eye(classes)), beside)
        Q = self.op("Add", Q, np.ones((1, 1, 1)))
        ones = self.op(
            "Unsqueeze", self.op("Add", self.op("Mul", diagonal, np.array([0.0])), np.array([1.0])), np.array([2])
        )
        system = self.op("Concat", Q, ones, axis=2)
        for k in range(classes):
            row, column = self.part(system, 1, k, k + 1), self.part(system, 2, k, k + 1)
            row = self.op("Div", row, self.part(row, 2, k, k + 1))
            rest = self.op("Sub", column, np.eye(classes)[:, [k]][None])
            system = self.op("Sub", system, self.op("Mul", rest, row))
        found = self.op("Squeeze", self.part(system, 2, classes, classes + 1), np.array([2]))
        return self.shares(self.op("Max", found, np.array([0.0])))
