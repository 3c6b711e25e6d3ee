"""The nodes of ONNX models, written as arithmetic, and the graphs of the encoders of tables."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from onnx import TensorProto
from scipy import sparse
from skl2onnx import get_model_alias, update_registered_converter
from skl2onnx.algebra import onnx_ops
from skl2onnx.algebra.onnx_operator import OnnxSubEstimator
from skl2onnx.common.data_types import DoubleTensorType, StringTensorType
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

from saddlesvm.estimators.calibration import NEAREST
from saddlesvm.estimators.table import TableEncoder, groups_of

__all__ = ["Graph", "TensorProto", "inputs_of", "onnx_ops", "with_frame"]


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
        """As :func:`saddlesvm.multiclass.sub_problems.vote`."""
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

    def categories(self, column: Any, found: np.ndarray) -> Any:
        """A feature for each category of a column of texts; zeros for others."""
        ones = onnx_ops.OnnxOneHotEncoder(column, cats_strings=found.tolist(), zeros=1, op_version=1)
        return self.in_float64(self.op("Reshape", ones, np.array([-1, len(found)], dtype=np.int64)))

    def submodel(self, model: Any, X: Any) -> Any:
        """The output of another model, by skl2onnx."""
        return OnnxSubEstimator(model, X, op_version=self.version, options={"locale": LOCALE})


LOCALE = "C.UTF-8"  # in which texts become lower case: minimal systems have no other with UTF-8
Inputs = list[tuple[str, Any]]


def inputs_of(model: Any) -> Inputs | None:
    """The inputs of a pipeline that begins with the encoder of a table, a column each; None for other models."""
    encoder = model.steps[0][1] if isinstance(model, Pipeline) else None
    if not isinstance(encoder, TableEncoder):
        return None
    names: list[str] = list(encoder.columns)
    types: dict[str, Any] = {}
    for group in groups_of(encoder.columns):
        width = group.cell_width(encoder.named_transformers_[group.name])
        kind = StringTensorType([None, 1]) if width is None else DoubleTensorType([None, width])
        types.update((names[place], kind) for place in group.places)
    return [(name, types[name]) for name in encoder.used]


def with_frame(model: Any, X: Any) -> bool:
    """Whether the columns of a data frame are inputs of their own: where a ``ColumnTransformer`` distinguishes them."""
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    return hasattr(X, "columns") and any(isinstance(step, ColumnTransformer) for step in steps)


def read_encoder(scope: Any, model: Any, inputs: list[Any], custom_parsers: Any = None) -> Any:
    """Declare an encoder and its output."""
    operator = scope.declare_local_operator(get_model_alias(type(model)), model)
    operator.inputs = inputs
    operator.outputs.append(scope.declare_local_variable("features", DoubleTensorType()))
    return operator.outputs


def shape_encoder(operator: Any) -> None:
    """The shape of the features."""
    width = len(operator.raw_operator.get_feature_names_out())
    operator.outputs[0].type.shape = [operator.inputs[0].get_first_dimension(), width]


def convert_encoder(scope: Any, operator: Any, container: Any) -> None:
    """The graph of an encoder."""
    encoder: TableEncoder = operator.raw_operator
    given = dict(zip(encoder.used, operator.inputs, strict=True))
    graph, names = Graph(container.target_opset, None), list(encoder.columns)
    parts = []
    for group in groups_of(encoder.columns):
        columns = [given[names[place]] for place in group.places]
        parts += group.exported(graph, encoder.named_transformers_[group.name], columns)
    last = onnx_ops.OnnxConcat(
        *parts, axis=1, op_version=container.target_opset, output_names=[operator.outputs[0].full_name]
    )
    last.add_to(scope, container)


update_registered_converter(
    TableEncoder, "SaddlesvmTableEncoder", shape_encoder, convert_encoder, parser=read_encoder, overwrite=True
)
