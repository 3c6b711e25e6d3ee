"""The losses' table is the specification; these laws are its proof."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import assume, example, given, strategies as st

from saddlesvm.problem.arithmetic import logit
from saddlesvm.problem.loss import (
    ARGUMENTS,
    LOSS_ALIASES,
    Loss,
    bounds,
    conjugate,
    curvature,
    dual_step,
    has_array_methods,
    has_bounded_slopes,
    is_cornerless,
    is_smooth,
    loss_name,
    methods_of,
    register as register_loss,
    slopes,
    subgradient,
    traits_of,
    value,
)
from saddlesvm.problem.losses import (
    LOSSES,
    Absolute,
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Pinball,
    SmoothHinge,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
    make_loss,
)
from saddlesvm.problem.problem import is_classification
from saddlesvm.runtime.compiled import kernel
from support import OWN_LOSSES, PACKAGED, named

ALL_LOSSES = [*PACKAGED, *OWN_LOSSES]
MORE = [SmoothHinge(2.0), EpsilonInsensitive(0.0), SquaredEpsilonInsensitive(0.0), Huber(2.5), Pinball(0.9)]
LOSSES_HERE = [*ALL_LOSSES, *MORE]
INEXACT = 1e-3  # of what a step gains: what the last of the logistic Halley steps may leave

every_loss = pytest.mark.parametrize("loss", LOSSES_HERE, ids=repr)
real = st.floats(-4.0, 4.0)
share = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0.001, 0.999))
weights = st.sampled_from([1.0, 0.3, 1.9, 7.0])
curvatures = st.sampled_from([0.0, 0.01, 1.0, 30.0, 1000.0])


def domain(loss: Loss, y: float, s: float) -> tuple[float, float]:
    """The interval of the dual variable a (cut at 6 s where it has no end)."""
    low, high = loss.bounds(y, s)
    return max(low, -6.0 * s), min(high, 6.0 * s)


def target(loss: Loss, t: float) -> float:
    """A label or a target from any number."""
    return math.copysign(1.0, t) if is_classification(loss) else t


def inside(loss: Loss, y: float, s: float, part: float) -> float:
    """The dual variable at `part` of its domain."""
    low, high = domain(loss, y, s)
    return high if part == 1.0 else low + part * (high - low)


def numerical_conjugate(loss: Loss, u: float, y: float) -> float:
    """``sup_z u z - phi(z)`` over [-100, 100] by ternary search, which a concave function allows."""
    low, high = -100.0, 100.0
    for _ in range(150):
        a, b = low + (high - low) / 3.0, high - (high - low) / 3.0
        if u * a - loss.value(a, y) < u * b - loss.value(b, y):
            low = a
        else:
            high = b
    return max(u * z - loss.value(z, y) for z in (0.5 * (low + high), -100.0, 100.0))


@every_loss
@given(t=real, s=weights, part=share)
def test_conjugate_equals_a_numerical_one(loss: Loss, t: float, s: float, part: float) -> None:
    y = target(loss, t)
    a = inside(loss, y, s, part)
    assert loss.conjugate(a, y, s) == pytest.approx(s * numerical_conjugate(loss, -a / s, y), rel=1e-9, abs=1e-9)


@every_loss
@given(t=real, s=weights, beyond=st.floats(0.01, 2.0), above=st.booleans())
def test_conjugate_is_infinite_exactly_where_the_supremum_is(
    loss: Loss, t: float, s: float, beyond: float, above: bool
) -> None:
    y = target(loss, t)
    low, high = domain(loss, y, s)
    a = high + beyond * s if above else low - beyond * s
    far = max(-a / s * z - loss.value(z, y) for z in (-1e6, 1e6))
    assert math.isinf(loss.conjugate(a, y, s)) == (far > 1e3)


@every_loss
@given(t=real, s=weights, part=share, z=real)
def test_fenchel_and_young(loss: Loss, t: float, s: float, part: float, z: float) -> None:
    y = target(loss, t)
    a = inside(loss, y, s, part)
    assert s * loss.value(z, y) + loss.conjugate(a, y, s) + a * z >= -1e-12 * s
    tight = -s * loss.subgradient(z, y)
    assert s * loss.value(z, y) + loss.conjugate(tight, y, s) + tight * z == pytest.approx(0.0, abs=1e-12 * s)


@every_loss
@given(t=real, z=real, other=real)
def test_subgradient_inequality(loss: Loss, t: float, z: float, other: float) -> None:
    y = target(loss, t)
    assert loss.value(other, y) >= loss.value(z, y) + loss.subgradient(z, y) * (other - z) - 1e-12


def test_a_kinked_loss_takes_no_step_at_its_target() -> None:
    for a in (-0.5, 0.0, 0.25):
        assert Absolute().dual_step(a, 0.5, 0.5, 0.0, 2.0) == 0.0


def test_without_a_tube_the_insensitive_losses_are_the_plain_ones() -> None:
    for z in (-2.0, 0.5, 3.0):
        assert EpsilonInsensitive().value(z, 0.5) == Absolute().value(z, 0.5)
        assert SquaredEpsilonInsensitive().value(z, 0.5) == Squared().value(z, 0.5)


@every_loss
@example(t=0.0, s=1.0, part=0.3, z=0.0, q=0.0)
@given(t=real, s=weights, part=share, z=real, q=curvatures)
def test_dual_step_beats_a_fine_grid(loss: Loss, t: float, s: float, part: float, z: float, q: float) -> None:
    y = target(loss, t)
    z = z if q else 0.0  # a row of norm zero has margin zero
    a = inside(loss, y, s, part)
    low, high = domain(loss, y, s)
    if not has_bounded_slopes(loss):
        low, high = (low and 10.0 * low), (high and 10.0 * high)

    def negated(to: float) -> float:
        d = to - a
        return loss.conjugate(to, y, s) + d * z + 0.5 * q * d * d

    reached = a + loss.dual_step(a, z, y, q, s)
    rounded = float(np.clip(reached, *domain(loss, y, s))) if has_bounded_slopes(loss) else reached
    assert rounded == pytest.approx(reached, abs=1e-14 * s)
    grid = np.concatenate([np.linspace(low, high, 301), np.clip(rounded + np.linspace(-1e-3, 1e-3, 41), low, high)])
    best = min(negated(float(to)) for to in grid)
    missed = INEXACT * (negated(a) - best) if traits_of(loss).exponentials else 0.0
    assert negated(rounded) <= best + missed + 1e-10 * (1.0 + abs(best))


@every_loss
@given(t=real, s=weights, part=share, z=real)
def test_slopes_equal_finite_differences(loss: Loss, t: float, s: float, part: float, z: float) -> None:
    y = target(loss, t)
    along = y if is_classification(loss) else 1.0
    a = inside(loss, y, s, part)
    h = 1e-6 * s
    assume(not traits_of(loss).exponentials or 0.01 <= part <= 0.99)
    assume(min(abs(a - end) for end in (*domain(loss, y, s), 0.0)) > h or part in (0.0, 0.5, 1.0))

    def negated_dual(b: float) -> float:
        return loss.conjugate(along * b, y, s) + along * b * z

    b = along * a
    here = negated_dual(b)
    left, right = loss.slopes(a, z, y, s)
    assert left <= right
    assert left == pytest.approx((here - negated_dual(b - h)) / h, rel=1e-4, abs=1e-4)
    assert right == pytest.approx((negated_dual(b + h) - here) / h, rel=1e-4, abs=1e-4)


def test_logistic_slopes_are_infinite_at_the_bounds() -> None:
    assert Logistic().slopes(0.0, 0.5, 1.0, 1.0) == (-math.inf, -math.inf)
    assert Logistic().slopes(-2.0, 0.5, -1.0, 2.0) == (math.inf, math.inf)


def test_the_logit_of_one_divides_by_nothing_in_plain_python() -> None:
    assert getattr(logit, "py_func", logit)(1.0) > 700.0


@every_loss
@given(t=real, z=real)
def test_curvature_equals_finite_differences_off_the_corners(loss: Loss, t: float, z: float) -> None:
    y = target(loss, t)
    h = 1e-5
    corners = {1.0 - y * z, abs(z - y), *(r - w for r, w in ((1.0 - y * z, getattr(loss, "width", 0.0)),))}
    corners |= {abs(z - y) - getattr(loss, name, 0.0) for name in ("epsilon", "delta")}
    assume(min(map(abs, corners)) > 2 * h)
    rise = (loss.subgradient(z + h, y) - loss.subgradient(z - h, y)) / (2.0 * h)
    assert loss.curvature(z, y) == pytest.approx(rise, abs=1e-6)


@every_loss
def test_is_smooth_says_whether_the_derivative_jumps(loss: Loss) -> None:
    z = np.linspace(-5.0, 5.0, 20_001)
    slope = np.array([loss.subgradient(float(at), 1.0) for at in z])
    assert is_smooth(loss) == bool(np.abs(np.diff(slope)).max() < 0.1)


@every_loss
def test_shape_says_whether_the_curvature_jumps(loss: Loss) -> None:
    z = np.linspace(-5.0, 5.0, 20_001)
    bend = np.array([loss.curvature(float(at), 1.0) for at in z])
    jumps = bool(np.abs(np.diff(bend)).max() > 0.1)
    assert is_cornerless(loss) == (is_smooth(loss) and not jumps)
    assert is_smooth(loss) == bool(bend.max() > 0.0), "a loss with kinks has no curvature between them"


@every_loss
def test_the_largest_curvature_is_the_largest(loss: Loss) -> None:
    z = np.linspace(-5.0, 5.0, 20_001)
    bend = max(loss.curvature(float(at), y) for y in (-1.0, 1.0) for at in z)
    assert loss.largest_curvature() == (pytest.approx(bend, rel=1e-9) if is_smooth(loss) else math.inf)


@every_loss
@given(t=real, s=weights, z=real, shift=real)
def test_the_contract_of_the_task(loss: Loss, t: float, s: float, z: float, shift: float) -> None:
    y = target(loss, t)
    same = (-z, -y) if is_classification(loss) else (z + shift, y + shift)
    assert loss.value(*same) == pytest.approx(loss.value(z, y), rel=1e-9, abs=1e-12)
    assert loss.conjugate(0.0, y, s) == 0.0, "the smallest value of a loss is zero"
    assert loss.bounds(y, s) == pytest.approx([s * end for end in loss.bounds(y, 1.0)])


@every_loss
@given(t=real, s=weights, part=share, factor=st.floats(0.1, 0.9))
def test_a_parabolic_conjugate_is_one(loss: Loss, t: float, s: float, part: float, factor: float) -> None:
    if not traits_of(loss).parabolic:
        return
    y = target(loss, t)
    a = inside(loss, y, s, part)
    half, whole = loss.conjugate(0.5 * a, y, s), loss.conjugate(a, y, s)
    linear, quadratic = 4.0 * half - whole, 2.0 * whole - 4.0 * half
    expected = linear * factor + quadratic * factor * factor
    assert loss.conjugate(factor * a, y, s) == pytest.approx(expected, rel=1e-9, abs=1e-9 * s)


@every_loss
@given(t=real, s=weights, part=share)
def test_a_tube_says_that_the_conjugate_is_piecewise_linear(loss: Loss, t: float, s: float, part: float) -> None:
    if hasattr(loss, "tube"):
        y = target(loss, t)
        a = inside(loss, y, s, part)
        expected = loss.tube() * abs(a) - a * y
        assert loss.conjugate(a, y, s) == pytest.approx(expected, rel=1e-9, abs=1e-12 * s)


@pytest.mark.parametrize("p", [1e-300, 1e-17, 1e-9, 1e-4, 0.3, 0.6])
def test_the_entropy_of_a_small_multiplier_is_exact(p: float) -> None:
    exact = np.longdouble(p) * np.log(np.longdouble(p)) + (1.0 - np.longdouble(p)) * np.log1p(-np.longdouble(p))
    assert Logistic().conjugate(2.0 * p, 1.0, 2.0) == pytest.approx(2.0 * float(exact), rel=1e-15, abs=0.0)


def test_logistic_holds_far_out() -> None:
    loss = Logistic()
    assert loss.value(1e4, 1.0) == 0.0
    assert loss.value(-1e4, 1.0) == 1e4
    for m in (-1e4, -700.0, 0.0, 700.0, 1e4):
        b = loss.dual_step(0.0, m, 1.0, 1e-3, 2.0)
        assert 0.0 <= b <= 2.0
        assert math.isfinite(loss.conjugate(b, 1.0, 2.0))


@kernel
def compiled_operations(loss, a, z, y, q, s):  # type: ignore[no-untyped-def]
    primal = value(loss, z, y), subgradient(loss, z, y), curvature(loss, z, y)
    dual = conjugate(loss, a, y, s), dual_step(loss, a, z, y, q, s), *slopes(loss, a, z, y, s)
    return *primal, *dual, *bounds(loss, y, s)


@pytest.mark.parametrize("loss", ALL_LOSSES, ids=named)
@given(t=real, s=weights, part=share, z=real, q=curvatures)
def test_compiled_equals_python(loss: Loss, t: float, s: float, part: float, z: float, q: float) -> None:
    y = target(loss, t)
    a = inside(loss, y, s, part)
    primal = value(loss, z, y), subgradient(loss, z, y), curvature(loss, z, y)
    dual = conjugate(loss, a, y, s), dual_step(loss, a, z, y, q, s), *slopes(loss, a, z, y, s)
    plain = *primal, *dual, *bounds(loss, y, s)
    assert compiled_operations(loss, a, z, y, q, s) == pytest.approx(plain, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_make_loss_knows_every_name(name: str) -> None:
    made = make_loss(name, width=0.25, epsilon=0.125, delta=0.125, tau=0.25, k=0.25)
    assert type(made) is LOSSES[name]
    assert loss_name(made) == name
    assert make_loss(made) is made
    assert set(made) <= {0.25, 0.125}


def test_a_class_that_could_be_a_loss_is_to_be_declared() -> None:
    class Own(NamedTuple):
        def dual_step(self, a: float, z: float, y: float, q: float, s: float) -> float:
            return 0.0

    with pytest.raises(ValueError, match=r"declare the class Own with @saddlesvm\.register_loss"):
        make_loss(Own())
    with pytest.raises(ValueError) as caught:
        make_loss((1.0,))  # type: ignore[arg-type]
    assert "register_loss" not in str(caught.value)


def test_aliases_stand_for_names() -> None:
    assert {make_loss(alias) for alias in LOSS_ALIASES} == {Hinge(), SquaredHinge(), Logistic(), Squared(), Absolute()}


@pytest.mark.parametrize(
    ("loss", "options", "words"),
    [
        ("hinges", {}, ["hinges", "squared_hinge", "epsilon_insensitive"]),
        (3, {}, ["3", "hinge"]),
        ("pinball:tau=1", {}, ["tau", "between 0 and 1", "got 1"]),
        ("pinball:tau=half", {}, ["tau", "half"]),
        ("pinball:delta=1", {}, ["pinball", "delta", "tau"]),
        ("huber:delta", {}, ["huber", "delta"]),
        ((), {}, ["hinge"]),
        ("absolute", {"task": "classification"}, ["absolute", "regression", "LinearSVR", "hinge"]),
        (Squared(), {"task": "classification"}, ["squared", "regression", "LinearSVR"]),
        ("hinge", {"task": "regression"}, ["hinge", "classification", "LinearSVC", "absolute"]),
        ("smooth_hinge", {"width": 0.0}, ["width", "positive", "0.0"]),
        ("smooth_hinge", {"width": math.inf}, ["width", "inf"]),
        (SmoothHinge(math.nan), {}, ["width", "nan"]),
        ("epsilon_insensitive", {"epsilon": -0.1}, ["epsilon", "-0.1"]),
        (SquaredEpsilonInsensitive(math.inf), {}, ["epsilon", "inf"]),
    ],
)
def test_make_loss_says_what_is_wrong(loss: object, options: dict[str, object], words: list[str]) -> None:
    with pytest.raises(ValueError) as error:
        make_loss(loss, **options)  # type: ignore[arg-type]
    assert all(word in str(error.value) for word in words), str(error.value)


@every_loss
@given(t=st.lists(real, min_size=1, max_size=6), s=weights, q=curvatures, part=share)
def test_methods_compute_on_arrays_what_they_compute_on_numbers(
    loss: Loss, t: list[float], s: float, q: float, part: float
) -> None:
    y = np.array([target(loss, one) for one in t])
    z = np.array(t[::-1])
    a = np.array([inside(loss, one, s, part) for one in y])
    weight = np.full(len(t), s)
    given = {"z": z, "y": y, "a": a, "s": weight}
    methods = methods_of(loss)
    for name, arguments in ARGUMENTS.items():
        method = getattr(methods, name, None)
        if method is None or (name == "dual_step" and q == 0.0):
            continue
        names = arguments.split(", ")
        with np.errstate(all="ignore"):
            result = method(loss, *(given.get(one, q) for one in names))
        found = [np.broadcast_to(one, len(t)) for one in (result if isinstance(result, tuple) else (result,))]
        each = [
            np.atleast_1d(getattr(loss, name)(*(float(given[one][k]) if one in given else q for one in names)))
            for k in range(len(t))
        ]
        np.testing.assert_allclose(found, np.transpose(each), rtol=1e-12, atol=1e-12)


def test_a_loss_with_conditionals_on_numbers_works_and_says_so_once() -> None:
    @register_loss("stepwise", task="regression", shape="kinked", parabolic=True, exponentials=False)
    class Stepwise(NamedTuple):
        conjugate, dual_step, slopes = Absolute.conjugate, Absolute.dual_step, Absolute.slopes
        curvature, bounds, largest_curvature = Absolute.curvature, Absolute.bounds, Absolute.largest_curvature

        def value(self, z: float, y: float) -> float:
            return z - y if z > y else y - z

        def subgradient(self, z: float, y: float) -> float:
            if z == y:
                return 0.0
            return math.copysign(1.0, z - y)

    loss: Loss = Stepwise()  # type: ignore[assignment]
    z = np.array([0.5, 2.0, -1.0])
    y = np.array([1.0, 1.0, -1.0])
    try:
        assert not has_array_methods(loss) and has_array_methods(Absolute())
        with pytest.warns(UserWarning, match=r"'stepwise' computes value, subgradient one number after the other"):
            methods = methods_of(loss)
        assert methods.value(loss, z, y).tolist() == Absolute().value(z, y).tolist()  # type: ignore[arg-type, attr-defined]
        assert methods.subgradient(loss, z, y).tolist() == [-1.0, 1.0, 0.0]
        assert methods_of(loss) is methods  # no second warning, which would be an error here
    finally:
        LOSSES.pop("stepwise")
