"""Limits below which NumPy is as fast as compiled code, without the time to compile.

A kernel may have a twin in NumPy beside it, see :func:`beside`. The sizes of the data alone choose between the two, so
that the same data always take the same path, whatever is compiled already.

A loss is written once, as arithmetic on numbers that Numba compiles. :func:`on_arrays` reads the text of such a
function and writes it anew for arrays: a conditional becomes :func:`numpy.where`, ``min`` and ``max`` become
:func:`numpy.minimum` and :func:`numpy.maximum`, a chain of comparisons a conjunction, and functions that it calls are
turned likewise. Both sides of a conditional are computed, so that the caller silences NumPy's warnings. Some functions
cannot be turned: those with loops, with an ``if`` that does more than return, or without a text.
"""

from __future__ import annotations

import ast
import builtins
import copy
import functools
import inspect
import math
import textwrap
import types
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])


class Most:
    """The largest work that counts as small.

    Attributes
    ----------
    values : int
        Stored values of the rows, and `per_row` for each row besides.
    dense : int
        Values of dense rows, of which the BLAS makes scores and sums as fast as compiled code does.
    step : float
        Operations that make and factor the matrix of Newton's equations, roughly.
    indices : int
        Column indices of a sparse matrix, to be checked.
    """

    values = 2**17
    dense = 10_000_000
    per_row = 10
    step = 2e7
    indices = 2**15


def beside(twin: Callable[..., Any], is_small: Callable[[Any], bool]) -> Callable[[Function], Function]:
    """Let Python code that calls a kernel get its `twin` in NumPy, with the same arguments, for small work.

    Parameters
    ----------
    twin : callable
    is_small : callable
        Called with the kernel's first argument.

    Returns
    -------
    callable
        A decorator. What it returns has the kernel as its attribute ``compiled``, for other kernels to call.
    """

    def declare(compiled: Function) -> Function:
        @functools.wraps(getattr(compiled, "py_func", compiled))
        def chosen(first: Any, *others: Any) -> Any:
            return twin(first, *others) if is_small(first) else compiled(first, *others)

        chosen.compiled, chosen.twin = compiled, twin  # type: ignore[attr-defined]
        return chosen  # type: ignore[return-value]

    return declare


def with_other(is_small: Callable[[Any], bool], **names: Any) -> Callable[[Function], Function]:
    """Let Python code that calls a kernel get the Python function behind it for small work, with other functions in
    place of those that it calls.

    Parameters
    ----------
    is_small : callable
        Called with the kernel's first argument.
    **names
        What names of the kernel's module stand for there.
    """

    def declare(compiled: Function) -> Function:
        text: Any = getattr(compiled, "py_func", compiled)
        own = types.FunctionType(text.__code__, text.__globals__ | names, text.__name__, text.__defaults__)
        return beside(own, is_small)(compiled)

    return declare


def compiled_of(function: Any) -> Any:
    """The kernel behind a function that :func:`beside` has made, whatever the size of its work."""
    return function.compiled


AnyFunction = Callable[..., Any]
WHERE, BOTH, EITHER, NOT = "_where", "_both", "_either", "_not"  # names that no function of numbers has
ARRAY_NAMES: dict[str, Any] = {
    WHERE: np.where,
    BOTH: np.logical_and,
    EITHER: np.logical_or,
    NOT: np.logical_not,
}
BUILT_IN: dict[Any, Any] = {
    min: np.minimum,
    max: np.maximum,
    abs: np.abs,
    math.copysign: np.copysign,
}
DECLARED: dict[Any, AnyFunction] = {}


class NotOnArrays(ValueError):
    """A function of numbers that cannot be turned into one of arrays."""


def declare_on_arrays(function: AnyFunction, twin: AnyFunction) -> None:
    """Say what `function`, a compiled helper, is on arrays where its text cannot be turned."""
    DECLARED[_plain(function)] = twin


def on_arrays(function: AnyFunction) -> AnyFunction:
    """The function of arrays with the arithmetic of a function of numbers.

    Parameters
    ----------
    function : callable
        A Python function, or one that Numba compiles.

    Raises
    ------
    NotOnArrays
        The function has no text, or is more than assignments, conditional returns and a return.
    """
    return _turned(_plain(function))


def _plain(function: Any) -> Any:
    """The Python function that Numba compiles."""
    return getattr(function, "py_func", function)


@functools.cache
def _turned(function: Any) -> AnyFunction:
    if function in DECLARED:
        return DECLARED[function]
    if not inspect.isfunction(function):
        raise NotOnArrays(f"{function!r} is not a Python function")
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        raise NotOnArrays(f"{function!r} has no text") from None
    text = tree.body[0]
    if not isinstance(text, ast.FunctionDef):
        raise NotOnArrays(f"{function!r} is not a function")
    closed = inspect.getclosurevars(function)
    known = dict(vars(builtins)) | dict(function.__globals__) | dict(closed.nonlocals)
    names: dict[str, Any] = dict(ARRAY_NAMES)
    text.body, text.decorator_list, text.returns = _returning(text.body), [], None
    for argument in text.args.args:
        argument.annotation = None
    turned = ast.fix_missing_locations(_Turn(known, names).visit(text))
    place = dict(function.__globals__) | dict(closed.nonlocals) | names
    exec(compile(ast.Module([turned], []), f"<{function.__qualname__} on arrays>", "exec"), place)
    made: AnyFunction = place[text.name]
    return made


def _returning(body: list[ast.stmt]) -> list[ast.stmt]:
    """The assignments of a body and one return: conditional returns become one conditional expression."""
    first, *others = body
    if isinstance(first, ast.Return) and first.value is not None:
        return [first]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):  # the docstring
        return _returning(others)
    if isinstance(first, ast.Assign) and others:
        return [first, *_returning(others)]
    if isinstance(first, ast.If):
        left, right = _returning(first.body), _returning([*first.orelse, *others])
        *before, last = right
        if len(left) == 1 and not before:
            chosen = ast.IfExp(first.test, _value(left[0]), _value(last))
            return [ast.Return(chosen)]
        if len(left) == 1:  # the assignments that follow do no harm where the condition holds
            return [*before, ast.Return(ast.IfExp(first.test, _value(left[0]), _value(last)))]
    raise NotOnArrays(f"a statement {type(first).__name__} cannot be turned into one on arrays")


def _value(statement: ast.stmt) -> ast.expr:
    assert isinstance(statement, ast.Return) and statement.value is not None
    return statement.value


class _Turn(ast.NodeTransformer):
    """Writes expressions on numbers anew, for arrays.

    Parameters
    ----------
    known : dict
        What the names of the function stand for.
    names : dict
        Takes what the names of the new function stand for.
    """

    def __init__(self, known: dict[str, Any], names: dict[str, Any]) -> None:
        self.known, self.names = known, names

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        """Both sides are computed; a pair on both sides becomes a pair of conditionals."""
        pairs = isinstance(node.body, ast.Tuple), isinstance(node.orelse, ast.Tuple)
        if all(pairs):
            sides = zip(node.body.elts, node.orelse.elts, strict=True)  # type: ignore[attr-defined]
            return ast.Tuple(
                [self.visit_IfExp(ast.IfExp(copy.deepcopy(node.test), *side)) for side in sides], ast.Load()
            )
        if any(pairs):
            raise NotOnArrays("one side of a conditional is a pair, the other is not")
        return _call(WHERE, self.visit(node.test), self.visit(node.body), self.visit(node.orelse))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """A chain of comparisons becomes a conjunction."""
        sides = [self.visit(side) for side in (node.left, *node.comparators)]
        parts = [ast.Compare(sides[k], [sign], [sides[k + 1]]) for k, sign in enumerate(node.ops)]
        return functools.reduce(lambda left, right: _call(BOTH, left, right), parts)  # type: ignore[arg-type,return-value]

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """``and`` and ``or``."""
        sides = [self.visit(side) for side in node.values]
        name = BOTH if isinstance(node.op, ast.And) else EITHER
        return functools.reduce(lambda left, right: _call(name, left, right), sides)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        """``not``; signs stay."""
        side = self.visit(node.operand)
        return _call(NOT, side) if isinstance(node.op, ast.Not) else ast.UnaryOp(node.op, side)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """A call of a function that is known becomes one of its turned form; methods of the loss itself stay."""
        arguments = [self.visit(argument) for argument in node.args]
        if node.keywords:
            raise NotOnArrays("calls with keywords cannot be turned")
        function = self._called(node.func)
        name = f"_{id(function)}"
        self.names[name] = BUILT_IN[function] if function in BUILT_IN else _array_function(function)
        if function in (min, max):  # NumPy's take two arguments
            return functools.reduce(lambda left, right: _call(name, left, right), arguments)
        return _call(name, *arguments)

    def _called(self, node: ast.expr) -> Any:
        """The function that an expression such as ``max`` or ``math.copysign`` stands for."""
        if isinstance(node, ast.Name) and node.id in self.known:
            return self.known[node.id]
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in self.known:
            return getattr(self.known[node.value.id], node.attr)
        raise NotOnArrays(f"the call of {ast.unparse(node)} cannot be turned into one on arrays")


def _array_function(function: Any) -> Any:
    """The counterpart of a called function on arrays."""
    name = getattr(function, "__name__", "")
    if getattr(math, name, None) is function:
        if not hasattr(np, name):
            raise NotOnArrays(f"NumPy has no {name}")
        return getattr(np, name)
    return function if isinstance(function, np.ufunc) else on_arrays(function)


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])
