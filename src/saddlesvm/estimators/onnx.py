"""ONNX models of fitted estimators, alone or in a pipeline, by skl2onnx; ``pip install 'saddlesvm[onnx]'``.

A model's graph is written as arithmetic on nodes; the encoder of a table has a graph, too.

Importing this module, or :mod:`saddlesvm.onnx`, makes the estimators known to ``skl2onnx.to_onnx``. The graphs compute
in float64, as the estimators do, and give their scores in the type of the input.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
from onnx import TensorProto
from scipy import sparse
from skl2onnx import get_model_alias, to_onnx as skl2onnx_to_onnx, update_registered_converter
from skl2onnx.algebra import onnx_ops
from skl2onnx.algebra.onnx_operator import OnnxSubEstimator
from skl2onnx.common.data_types import (
    DictionaryType,
    DoubleTensorType,
    FloatTensorType,
    Int64TensorType,
    SequenceType,
    StringTensorType,
)
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

from saddlesvm.estimators.calibration import NEAREST
from saddlesvm.estimators.cross_validation import LinearSVCCV
from saddlesvm.estimators.kernel import KernelSVC
from saddlesvm.estimators.linear import LinearSVC, LinearSVR
from saddlesvm.estimators.svc import SVC, NuSVC
from saddlesvm.estimators.svm import SVR, NuSVR, OneClassSVM
from saddlesvm.estimators.table import TableEncoder, groups_of
from saddlesvm.problem.loss import loss_name


def _by(name: str, backwards: bool = False) -> Callable[[Values, Any], Values]:
    """The method of :class:`Values` that is a node of two inputs, of which the other may be an array or a number."""

    def both(own: Values, other: Any) -> Values:
        given = np.array([float(other)]) if isinstance(other, (int, float)) else other
        return own.graph.op(name, *((given, own) if backwards else (own, given)))

    return both


class Values:
    """The values of a node of a graph, with the arithmetic of arrays."""

    def __init__(self, graph: Graph, node: Any) -> None:
        self.graph, self.node = graph, node

    __add__, __sub__, __mul__, __truediv__, __matmul__ = map(_by, ("Add", "Sub", "Mul", "Div", "MatMul"))
    __rsub__ = _by("Sub", backwards=True)

    def __floordiv__(self, other: Any) -> Values:
        return self.graph.op("Floor", self / other)

    def __mod__(self, other: Any) -> Values:
        return self - self // other * other

    def __gt__(self, other: Any) -> Values:
        return _by("Greater")(self, other)

    def as_float64(self) -> Values:
        """The values as float64."""
        return self.graph.op("Cast", self, to=TensorProto.DOUBLE)

    def part(self, axis: int, start: int, stop: int) -> Values:
        """The values from `start` to before `stop` along an axis."""
        return self.graph.op("Slice", self, *(np.array([one], dtype=np.int64) for one in (start, stop, axis)))

    def sums(self) -> Values:
        """The sum of each row, shape (n, 1)."""
        return self.graph.op("ReduceSum", self, np.array([1], dtype=np.int64), keepdims=1)


class Graph:
    """The nodes of one model: float64 values in, float64 values out."""

    def __init__(self, version: int, source: Any) -> None:
        self.version, self.source = version, source

    def op(self, name: str, *inputs: Any, **attributes: Any) -> Values:
        """A node; arrays among its inputs become constants."""
        given = (one.node if isinstance(one, Values) else one for one in inputs)
        return Values(self, getattr(onnx_ops, f"Onnx{name}")(*given, op_version=self.version, **attributes))

    def in_float64(self, values: Any) -> Values:
        """The values as float64."""
        return Values(self, values.node if isinstance(values, Values) else values).as_float64()

    def linear(self, X: Values, coef: Any, intercept: np.ndarray) -> Values:
        """``X @ coef.T + intercept``; coef of shape (k, d), intercept of shape (k,)."""
        dense = coef.toarray() if sparse.issparse(coef) else np.asarray(coef)
        weights = np.ascontiguousarray(np.atleast_2d(dense).T, dtype=np.float64)
        return X @ weights + np.atleast_1d(np.asarray(intercept, dtype=np.float64))

    def kernel(self, X: Values, kernel: Any, centres: Any) -> Values:
        """Kernel values between rows and centres, shape (n, centres)."""
        centres = centres.toarray() if sparse.issparse(centres) else np.asarray(centres)
        centres = np.ascontiguousarray(centres, dtype=np.float64)
        products = X @ np.ascontiguousarray(centres.T)
        if kernel.name == "linear":
            return products
        if kernel.name == "rbf":
            apart = (X * X).sums() + (centres * centres).sum(axis=1)[None, :] - products * 2.0
            return self.op("Exp", self.op("Max", apart, np.array([0.0])) * -kernel.gamma)
        inner = products * kernel.gamma + kernel.coef0
        return self.op("Tanh", inner) if kernel.name == "sigmoid" else self.op("Pow", inner, np.array([kernel.degree]))

    def vote(self, scores: Values, classes: int) -> Values:
        """As :func:`saddlesvm.multiclass.sub_problems.vote`."""
        first, later = sides(classes)
        sums = scores @ (later - first)
        size = (self.op("Abs", sums) + 1.0) * 3.0
        return (scores > 0.0).as_float64() @ (later - first) + first.sum(axis=0) + sums / size

    def both(self, positive: Values) -> Values:
        """The probabilities of two classes from that of the second, shape (n, 2)."""
        return self.op("Concat", 1.0 - positive, positive, axis=1)

    def shares(self, positive: Values) -> Values:
        """Probabilities scaled to sum to 1; equal ones where all are 0."""
        some = positive + self.op("Equal", positive.sums(), np.array([0.0])).as_float64()
        return some / some.sums()

    def curves(self, curves: np.ndarray, scores: Values) -> Values:
        """As :func:`saddlesvm.estimators.calibration.probabilities`."""
        slope, offset = curves.T
        return self.op("Sigmoid", scores * slope + offset)

    def coupled(self, later: Values, classes: int) -> Values:
        """As :func:`saddlesvm.estimators.calibration.coupled`; the equations are solved by elimination."""
        first, second = sides(classes)
        place = np.full((classes, classes), len(first))
        for k, (i, j) in enumerate(combinations(range(classes), 2)):
            place[i, j] = place[j, i] = k
        r = self.op("Clip", later, np.array(NEAREST), np.array(1.0 - NEAREST))
        other, last = 1.0 - r, np.array([2])
        diagonal = (r * r) @ first + (other * other) @ second
        beside = self.op("Gather", self.op("Concat", r * other, r.part(1, 0, 1) * 0.0, axis=1), place, axis=1)
        Q = self.op("Unsqueeze", diagonal, last) * np.eye(classes) - beside + np.ones((1, 1, 1))
        system = self.op("Concat", Q, self.op("Unsqueeze", diagonal * 0.0 + 1.0, last), axis=2)
        for k in range(classes):
            row, column = system.part(1, k, k + 1), system.part(2, k, k + 1)
            row = row / row.part(2, k, k + 1)
            system = system - (column - np.eye(classes)[:, [k]][None]) * row
        found = self.op("Squeeze", system.part(2, classes, classes + 1), last)
        return self.shares(self.op("Max", found, np.array([0.0])))

    def categories(self, column: Any, found: np.ndarray) -> Any:
        """A feature for each category of a column of texts; zeros for others."""
        ones = onnx_ops.OnnxOneHotEncoder(column, cats_strings=found.tolist(), zeros=1, op_version=1)
        return self.op("Reshape", ones, np.array([-1, len(found)], dtype=np.int64)).as_float64()

    def submodel(self, model: Any, X: Any) -> Any:
        """The output of another model, by skl2onnx."""
        return OnnxSubEstimator(model, X, op_version=self.version, options={"locale": LOCALE})


def sides(classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Which class is the earlier one of each pair, and which the later one, as ones, each of shape (pairs, classes)."""
    unit, (first, later) = np.eye(classes), np.array([*combinations(range(classes), 2)]).T
    return unit[first], unit[later]


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
    last = graph.op("Concat", *parts, axis=1, output_names=[operator.outputs[0].full_name])
    last.node.add_to(scope, container)


update_registered_converter(
    TableEncoder, "SaddlesvmTableEncoder", shape_encoder, convert_encoder, parser=read_encoder, overwrite=True
)


__all__ = ["to_onnx"]

CLASSIFIERS = (LinearSVC, LinearSVCCV, KernelSVC, SVC, NuSVC)
REGRESSIONS = (LinearSVR, SVR, NuSVR)
KERNELS = ("linear", "rbf", "poly", "polynomial", "sigmoid")


def to_onnx(model: Any, X: Any, **options: Any) -> Any:
    """The ONNX model of a fitted estimator or pipeline.

    Parameters
    ----------
    model : estimator or Pipeline
        LinearSVC, LinearSVCCV, LinearSVR, KernelSVC, SVC, NuSVC, SVR, NuSVR or OneClassSVM, or a pipeline that ends
        with one. Kernels: linear, rbf, poly and sigmoid.
    X : array-like of shape (n, d)
        One row or more, for the type (float32 or float64) and the number of features of the graph. For a pipeline with
        a ``ColumnTransformer``, a data frame: each column becomes an input. For a pipeline with a
        :func:`saddlesvm.table.encoder`, None: the inputs are numbers, days since 1970 for dates (float64, NaN where
        missing), and texts ("" where missing), each of shape (n, 1).
    **options
        For ``skl2onnx.to_onnx``. ``options={"raw_scores": True}`` asks for scores where there are probabilities,
        ``{"zipmap": True}`` for a dict of probabilities a row.

    Returns
    -------
    onnx.ModelProto
        Its outputs have the names that skl2onnx gives those of scikit-learn's machines. Classifiers give ``label``,
        shape (n,) or (n, k) for several labels, and ``probabilities``, shape (n, classes): where the model has no
        ``predict_proba``, the scores of ``decision_function``, shape (n, 1) for two classes. With a zipmap, which is
        what ``skl2onnx.to_onnx`` does by default where there are probabilities, the names are ``output_label`` and
        ``output_probability``. Regressions give ``variable``, shape (n, targets); OneClassSVM gives ``label`` and
        ``scores``.

    Raises
    ------
    ValueError
        ONNX has no counterpart for the kernel, or for the probabilities of the loss.

    Examples
    --------
    >>> from saddlesvm import LinearSVC
    >>> from saddlesvm.data import load_bundled
    >>> from saddlesvm.onnx import to_onnx
    >>> notes = load_bundled("banknote")
    >>> model = LinearSVC(random_state=0).fit(notes.X, notes.y)
    >>> [output.name for output in to_onnx(model, notes.X[:1]).graph.output]
    ['label', 'probabilities']
    """
    if (types := inputs_of(model)) is not None:
        X, options = None, {"initial_types": types} | options
    elif not with_frame(model, X):
        X = np.asarray(X)
    wanted = dict(options.pop("options", None) or {})
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    if isinstance(last, CLASSIFIERS):
        own = {name: wanted.pop(name, False) for name in ("raw_scores", "zipmap")}
        wanted[id(last)] = own | dict(wanted.get(id(last), {}))
    return skl2onnx_to_onnx(model, X, options=wanted or None, **options)


def scores_of(graph: Graph, model: Any) -> Any:
    """The scores of the sub-problems, in the model's own order, shape (n, problems)."""
    X = graph.in_float64(graph.source)
    if not hasattr(model, "kernel_"):
        return graph.linear(X, model.coef_, model.intercept_)
    if model.kernel_.name not in KERNELS:
        raise ValueError(f"ONNX has no counterpart for the kernel {model.kernel!r}; use one of {', '.join(KERNELS)}")
    duals = model.dual_coef_ if isinstance(model, KernelSVC) else model.problem_duals()
    return graph.linear(graph.kernel(X, model.kernel_, model.support_vectors_), duals, model.intercept_)


def of_classes(graph: Graph, model: Any, scores: Any) -> Any:
    """Scores or votes, a column a class; scores of the second of two classes."""
    if model.classes_.size == 2 or not is_of_pairs(model):
        return scores
    return graph.vote(graph.op("Neg", scores) if isinstance(model, (SVC, NuSVC)) else scores, model.classes_.size)


def is_of_pairs(model: Any) -> bool:
    """Whether the sub-problems are pairs of classes."""
    return isinstance(model, (SVC, NuSVC)) or model.multi_class == "ovo"


def probabilities_of(graph: Graph, model: Any, raw: Any, scores: Any) -> Any:
    """As ``predict_proba``, from the scores of the sub-problems and of the classes."""
    binary, several = model.classes_.size == 2, getattr(model, "multilabel_", False)
    if model.probability and not binary and is_of_pairs(model):
        later = graph.op("Neg", raw) if isinstance(model, (SVC, NuSVC)) else raw
        return graph.coupled(graph.curves(model.calibration_, later), model.classes_.size)
    if getattr(model, "multi_class", "") == "multinomial" and not model.probability:
        return graph.both(graph.op("Sigmoid", scores)) if binary else graph.op("Softmax", scores, axis=1)
    if model.probability:
        positive = graph.curves(model.calibration_, scores)
    elif loss_name(model.check_options()) == "logistic":
        positive = graph.op("Sigmoid", scores)
    else:
        raise ValueError(f"ONNX has no counterpart for the probabilities of the loss {model.loss!r}: take raw_scores")
    if several:
        return positive
    return graph.both(positive) if binary else graph.shares(positive)


def labels_of(graph: Graph, model: Any, raw: Any, scores: Any) -> Any:
    """The labels, from the scores of the sub-problems and of the classes."""
    if getattr(model, "probability", False):
        likely = probabilities_of(graph, model, raw, scores)
        if not getattr(model, "multilabel_", False):
            return graph.op("Gather", label_values(model), graph.op("ArgMax", likely, axis=1, keepdims=0))
        return graph.op("Cast", likely > 0.5, to=TensorProto.INT64)
    positive = graph.op("Cast", scores > 0.0, to=TensorProto.INT64)
    if getattr(model, "multilabel_", False):
        return positive
    if model.classes_.size == 2:
        place = graph.op("Squeeze", positive, np.array([1], dtype=np.int64))
    else:
        first_of_equal = isinstance(model, (SVC, NuSVC)) and not model.break_ties
        place = graph.op("ArgMax", graph.op("Round", scores) if first_of_equal else scores, axis=1, keepdims=0)
    return graph.op("Gather", label_values(model), place)


def label_values(model: Any) -> np.ndarray:
    """The classes as ONNX has them: int64 or text."""
    classes = np.asarray(model.classes_)
    return classes.astype(np.int64) if classes.dtype.kind in "biuf" else classes.astype(str).astype(object)


def fitted_part(model: Any) -> Any:
    """The model that predicts: the best one of a search."""
    return model.best_estimator_ if isinstance(model, LinearSVCCV) else model


def gives_probabilities(scope: Any, model: Any) -> bool:
    """Whether the second output is probabilities."""
    return hasattr(fitted_part(model), "predict_proba") and not scope.get_options(model, {"raw_scores": False}).get(
        "raw_scores", False
    )


def read_classifier(scope: Any, model: Any, inputs: list[Any], custom_parsers: Any = None) -> list[Any]:
    """Declare a classifier and its two outputs."""
    operator = scope.declare_local_operator(get_model_alias(type(model)), model)
    operator.inputs = inputs
    text = not isinstance(model, OneClassSVM) and label_values(fitted_part(model)).dtype.kind == "O"
    second = "scores" if isinstance(model, OneClassSVM) else "probabilities"
    for name, kind in (("label", StringTensorType() if text else Int64TensorType()), (second, real_type(inputs))):
        operator.outputs.append(scope.declare_local_variable(name, kind))
    several = getattr(fitted_part(model), "multilabel_", False)
    zipped = gives_probabilities(scope, model) and scope.get_options(model, {"zipmap": True}).get("zipmap", True)
    return zip_outputs(scope, model, inputs, list(operator.outputs)) if zipped and not several else operator.outputs


def zip_outputs(scope: Any, model: Any, inputs: list[Any], given: list[Any]) -> list[Any]:
    """Declare skl2onnx's own operator that makes a dict of each row's probabilities, and its outputs."""
    operator, values = scope.declare_local_operator("SklearnZipMap"), label_values(fitted_part(model))
    operator.inputs = given
    text = values.dtype.kind == "O"
    if text:
        operator.classlabels_strings = [one.encode("utf-8") for one in values]
    else:
        operator.classlabels_int64s = values.tolist()
    label = StringTensorType([None]) if text else Int64TensorType([None])
    zipped = SequenceType(DictionaryType(label, real_type(inputs)))
    for name, kind in (("output_label", label), ("output_probability", zipped)):
        operator.outputs.append(scope.declare_local_variable(name, kind))
    operator.init_status(is_evaluated=True)
    return list(operator.outputs)


def real_type(inputs: list[Any]) -> Any:
    """The type of scores: float64 for float64 rows, else float32."""
    return DoubleTensorType() if isinstance(inputs[0].type, DoubleTensorType) else FloatTensorType()


def shape_outputs(operator: Any) -> None:
    """The shapes of the outputs: any number of rows, and of columns."""
    rows = operator.inputs[0].get_first_dimension()
    several = getattr(operator.raw_operator, "multilabel_", False)
    for output in operator.outputs:
        output.type.shape = [rows] if output.raw_name == "label" and not several else [rows, None]


def shape_target(operator: Any) -> None:
    """The shape and type of a regression's output."""
    operator.outputs[0].type = real_type(operator.inputs)
    operator.outputs[0].type.shape = [operator.inputs[0].get_first_dimension(), None]


def write_outputs(scope: Any, operator: Any, container: Any, values: list[Any]) -> None:
    """Add the nodes that give the outputs, real ones in the type of the input."""
    real = TensorProto.DOUBLE if isinstance(operator.inputs[0].type, DoubleTensorType) else TensorProto.FLOAT
    for value, output in zip(values, operator.outputs, strict=True):
        kind = {} if output.raw_name == "label" else {"to": real}
        last = value.graph.op("Cast" if kind else "Identity", value, output_names=[output.full_name], **kind)
        last.node.add_to(scope, container)


def convert_classifier(scope: Any, operator: Any, container: Any) -> None:
    """The graph of a classifier."""
    model = fitted_part(operator.raw_operator)
    graph = Graph(container.target_opset, operator.inputs[0])
    raw = scores_of(graph, model)
    scores = of_classes(graph, model, raw)
    label = labels_of(graph, model, raw, scores)
    if gives_probabilities(scope, operator.raw_operator):
        second = probabilities_of(graph, model, raw, scores)
    else:
        second = raw if is_of_pairs(model) and model.decision_function_shape == "ovo" else scores
    write_outputs(scope, operator, container, [label, second])


def convert_regression(scope: Any, operator: Any, container: Any) -> None:
    """The graph of a regression."""
    graph = Graph(container.target_opset, operator.inputs[0])
    write_outputs(scope, operator, container, [scores_of(graph, operator.raw_operator)])


def convert_novelty(scope: Any, operator: Any, container: Any) -> None:
    """The graph of a one-class machine: 1 inside, -1 outside."""
    graph = Graph(container.target_opset, operator.inputs[0])
    scores = scores_of(graph, operator.raw_operator)
    inside = graph.op("Cast", graph.op("GreaterOrEqual", scores, np.array([0.0])), to=TensorProto.INT64)
    flat = graph.op("Squeeze", inside, np.array([1], dtype=np.int64))
    two, one = np.array([2], dtype=np.int64), np.array([1], dtype=np.int64)
    write_outputs(scope, operator, container, [flat * two - one, scores])


def register(kinds: tuple[type, ...], shape: Callable[..., None], convert: Callable[..., None], **more: Any) -> None:
    """Make kinds of estimators known to skl2onnx."""
    for kind in kinds:
        update_registered_converter(kind, f"Saddlesvm{kind.__name__}", shape, convert, **more)


OPTIONS = {"raw_scores": [False, True], "zipmap": [False, True]}
register(CLASSIFIERS, shape_outputs, convert_classifier, parser=read_classifier, options=OPTIONS)
register((OneClassSVM,), shape_outputs, convert_novelty, parser=read_classifier, options=OPTIONS)
register(REGRESSIONS, shape_target, convert_regression)
