"""Training block by block: the same optimum as in memory, in bounded memory, at any loss, and after any kill."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from conftest import ALL_LOSSES, csr, distance_bound, labels, matrix, named
from saddlesvm import LinearSVC, LinearSVR, Store, certify
from saddlesvm.cli.parser import main
from saddlesvm.fit.checkpoint import Checkpoint
from saddlesvm.fit.limits import Limits
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import NotCertifiedWarning, Outcome
from saddlesvm.fit.result import FitResult
from saddlesvm.problem.certificate import Point, dual_weights, evaluate
from saddlesvm.problem.losses import Hinge, Loss, SquaredHinge
from saddlesvm.problem.on_disk import StreamedProblem, make_streamed_problem
from saddlesvm.problem.problem import Problem, make_problem
from saddlesvm.rows.files import BlockReader, is_mapped, place_of
from saddlesvm.rows.layouts import as_rows
from saddlesvm.rows.memory_plan import Plan, does_not_fit, make_plan, memory_bytes
from saddlesvm.solvers import DCD, Blocks
from saddlesvm.solvers.base import Budget

INTERCEPTS = ("none", "regularized", "free")
N, D = 400, 7


def mapped(X: np.ndarray, folder: Path, name: str = "X.npy") -> np.ndarray:
    """The array, mapped from a file."""
    np.save(folder / name, X)
    return np.load(folder / name, mmap_mode="r")


def mapped_csr(X: np.ndarray, folder: Path) -> sparse.csr_array:
    """A CSR matrix over mapped arrays."""
    made = csr(X)
    parts = [mapped(part, folder, f"{name}.npy") for name, part in vars_of(made).items()]
    over = sparse.csr_array(X.shape, dtype=X.dtype)
    over.data, over.indices, over.indptr = parts
    return over


def vars_of(made: Any) -> dict[str, np.ndarray]:
    """The arrays of a CSR matrix."""
    return {"data": made.data, "indices": made.indices, "indptr": made.indptr}


def streamed(X: Any, y: np.ndarray, loss: Loss, plan: Plan | None = None, **options: Any) -> StreamedProblem:
    """A problem whose rows are read block by block, 24 chunks a block unless planned otherwise."""
    options = {"C": 0.5} | options
    rows = as_rows(X, 0.0 if options.get("intercept", "none") == "none" else 1.0)
    plan = plan or make_plan(rows, 2**30, 1)
    reader = BlockReader(rows, plan.edges, plan.per_block, np.zeros(y.size))
    return make_streamed_problem(rows, y, loss, reader, plan.row_array((y.size,)), **options)


def close_enough(one: FitResult, other: FitResult) -> bool:
    """Whether two results in the C form are as near to each other as their gaps make them."""
    away = np.linalg.norm(one.coef - other.coef)
    return bool(away <= distance_bound(one.certificate.gap, other.certificate.gap))


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", ALL_LOSSES, ids=named)
def test_every_loss_ends_at_the_optimum_in_memory(loss: Loss, intercept: Any, tmp_path: Path) -> None:
    X = matrix(N, D)
    y = labels(X, loss)
    weights = np.where(np.arange(N) % 5 == 0, 0.0, 1.0 + np.arange(N) % 3)
    problem = streamed(mapped(X, tmp_path), y, loss, intercept=intercept, weights=weights, C=0.05)
    found = fit(problem, Blocks(), Limits(tol=1e-5))
    plain = make_problem(as_rows(X, problem.scale), y, loss, intercept=intercept, weights=weights, C=0.05)
    best = fit(plain, DCD(), Limits(tol=1e-7))
    assert found.outcome is best.outcome is Outcome.CERTIFIED
    assert close_enough(found, best)
    assert found.certificate.dual <= best.certificate.primal
    assert found.certificate.primal >= best.certificate.dual


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_layouts_and_precisions_agree(layout: str, dtype: Any, tmp_path: Path) -> None:
    X = matrix(N, D, density=0.4).astype(dtype)
    y = labels(X, SquaredHinge())
    file = mapped(X, tmp_path) if layout == "dense" else mapped_csr(X, tmp_path)
    found = fit(streamed(file, y, SquaredHinge(), intercept="regularized", C=0.05), Blocks(), Limits(tol=1e-6))
    best = fit(
        make_problem(as_rows(X, 1.0), y, SquaredHinge(), C=0.05, intercept="regularized"), DCD(), Limits(tol=1e-7)
    )
    assert found.outcome is Outcome.CERTIFIED
    assert close_enough(found, best)


def test_what_a_sweep_proves_is_true(tmp_path: Path) -> None:
    """The certificate that cost no reading: its primal is the model's, its bound the dual point's, both in float64."""
    X = matrix(N, D).astype(np.float32)
    y = labels(X, Hinge())
    problem = streamed(mapped(X, tmp_path), y, Hinge(), intercept="regularized", C=0.05)
    solver = Blocks()
    state = solver.init(problem, 0)
    for _ in range(5 * problem.reader.n_blocks):
        state = solver.step(problem, state, Budget(1))
    judged = evaluate(problem, solver.solution(problem, state), exact=False)
    plain = problem.plain()
    model = evaluate(plain, Point(np.append(judged.coef, judged.intercept)), given_offset=True)
    bound = evaluate(plain, Point(alpha=state.alpha))
    assert np.isclose(judged.certificate.primal, model.certificate.primal, rtol=1e-12)
    assert np.isclose(judged.certificate.dual, bound.certificate.dual, rtol=1e-12)
    assert np.allclose(state.w, dual_weights(plain, state.alpha), rtol=1e-12, atol=1e-14)


def test_a_sweep_reads_every_row_once(tmp_path: Path) -> None:
    X = matrix(N, D)
    problem = streamed(mapped(X, tmp_path), labels(X, Hinge()), Hinge())
    result = fit(problem, Blocks(), Limits(tol=1e-3))
    ahead = problem.reader.per_block * np.diff(problem.reader.edges).max() * X.itemsize * D
    problem.reader.close()
    assert result.epochs * X.nbytes <= problem.reader.bytes_read <= result.epochs * X.nbytes + ahead


def test_a_fit_is_repeatable_bit_for_bit(tmp_path: Path) -> None:
    X = matrix(N, D)
    file, y = mapped(X, tmp_path), labels(X, Hinge())
    one, other = (fit(streamed(file, y, Hinge()), Blocks(), Limits(tol=1e-4), seed=3) for _ in range(2))
    assert np.array_equal(one.coef, other.coef)
    assert np.array_equal(one.alpha, other.alpha)


def test_more_passes_over_a_block_read_less(tmp_path: Path) -> None:
    X = matrix(N, D)
    file, y = mapped(X, tmp_path), labels(X, SquaredHinge())
    epochs = [fit(streamed(file, y, SquaredHinge(), C=0.05), Blocks(passes=k), Limits(tol=1e-5)).epochs for k in (1, 4)]
    assert epochs[1] < epochs[0]


def test_a_mapped_array_is_found_in_its_file(tmp_path: Path) -> None:
    X = np.arange(60.0).reshape(12, 5)
    file = mapped(X, tmp_path)
    for view, first in ((file, 0), (np.asarray(file), 0), (file[3:], 15), (np.asarray(file)[2:7], 10)):
        place = place_of(view)
        assert place is not None
        with open(place.path, "rb") as opened:
            opened.seek(place.offset)
            assert np.frombuffer(opened.read(8))[0] == X.ravel()[first]
    private = np.load(tmp_path / "X.npy", mmap_mode="c")
    assert place_of(X) is place_of(file[:, ::2]) is place_of(private) is None
    assert is_mapped(file)
    assert is_mapped(mapped_csr(X, tmp_path))
    assert not is_mapped(X)


def test_blocks_hold_the_rows_and_their_margins(tmp_path: Path) -> None:
    X = matrix(50, D, density=0.5).astype(np.float32)
    w = np.arange(D + 1.0)
    for file in (mapped(X, tmp_path), mapped_csr(X, tmp_path), X):
        edges = np.array([0, 11, 20, 33, 50])
        with BlockReader(as_rows(file, 1.0), edges, 2, np.zeros(50), 2) as reader:
            for chunks, then in (([3, 0], [2, 1]), ([2, 1], [0, 1]), ([1, 2], [])):
                block = reader.fetch(chunks, [w], then, [w])
                rows = np.concatenate([np.arange(edges[k], edges[k + 1]) for k in chunks])
                values = block.X.values if hasattr(block.X, "values") else whole(block.X)
                assert np.array_equal(values, X[rows])
                assert np.allclose(block.margins_of(w), X[rows].astype(float) @ w[:-1] + w[-1], rtol=1e-12, atol=1e-12)
                assert np.allclose(block.gather(reader.norms), (X[rows].astype(float) ** 2).sum(axis=1) + 1.0)


def whole(X: Any) -> np.ndarray:
    """CSR rows as a dense array."""
    return sparse.csr_array((X.data, X.indices, X.indptr), shape=(X.indptr.size - 1, X.n_features)).toarray()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_value_that_is_not_finite_is_named(bad: float, tmp_path: Path) -> None:
    X = matrix(N, D)
    X[123, 2] = bad
    with pytest.raises(ValueError, match="row 123"):
        LinearSVC(solver="blocks").fit(mapped(X, tmp_path), labels(matrix(N, D), Hinge()))


def test_a_file_that_is_cut_off_is_named(tmp_path: Path) -> None:
    X = matrix(N, D)
    problem = streamed(mapped(X, tmp_path), labels(X, Hinge()), Hinge())
    with (tmp_path / "X.npy").open("r+b") as file:
        file.truncate(1000)
    with pytest.raises(OSError, match=r"X\.npy: ends before byte"):
        Blocks().step(problem, Blocks().init(problem, 0), Budget(1))


def test_memory_is_read_in_any_unit() -> None:
    assert memory_bytes("512M") == memory_bytes("0.5G") == memory_bytes("524288 KiB") == memory_bytes(2**29) == 2**29
    for bad in ("much", "12 apples", None, True, np.nan, "1M", 0):
        with pytest.raises(ValueError, match="memory must be"):
            memory_bytes(bad)


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_a_plan_stays_in_its_memory(layout: str, tmp_path: Path) -> None:
    X = matrix(20_000, 50, density=0.5).astype(np.float32)
    rows = as_rows(X if layout == "dense" else csr(X))
    for memory in (2**24, 2**26, 2**34):
        plan = make_plan(rows, memory, 1)
        edges = plan.edges
        assert edges[0] == 0
        assert edges[-1] == len(X)
        assert (np.diff(edges) > 0).all()
        a_row = (X.nbytes if layout == "dense" else 8 * np.count_nonzero(X)) / len(X) + 8
        assert 2 * plan.per_block * np.diff(edges).max() * a_row < 0.6 * memory
        assert -(-(edges.size - 1) // plan.per_block) >= 8


def test_what_fits_is_trained_on_in_place(tmp_path: Path) -> None:
    X = matrix(N, D)
    file, y = mapped(X, tmp_path), labels(X, Hinge())
    assert not does_not_fit(file, None)
    assert not does_not_fit(X, 1)
    assert does_not_fit(file, X.nbytes)
    assert "blocks" not in LinearSVC(memory="1G").fit(file, y).phases_
    assert "blocks" not in LinearSVC(memory="16M").fit(matrix(N, D), y).phases_
    assert "blocks" in LinearSVC(solver="blocks").fit(X, y).phases_


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store that is larger than half of the least memory."""
    X = matrix(40_000, 60).astype(np.float32)
    y = np.digitize(X[:, 0] + np.random.default_rng(0).normal(size=len(X)), [-1.0, 1.0])
    return Store.create(tmp_path_factory.mktemp("stores") / "large.store", X, y, 1.0 + (np.arange(len(X)) % 2))


def test_one_reading_serves_all_classes(large: Store) -> None:
    one = LinearSVC(memory="16M", C=1e-3, tol=1e-3, random_state=0).fit(large)
    other = LinearSVC(C=1e-3, tol=1e-4, random_state=0).fit(np.array(large.X), large.y, large.sample_weight)
    assert set(one.phases_) == {"blocks"}
    assert one.outcome_ is Outcome.CERTIFIED
    assert all(certificate.relative_gap <= 1e-3 for certificate in one.certificates_)
    for k in range(3):
        gaps = [model.certificates_[k].gap for model in (one, other)]
        assert np.linalg.norm(one.coef_[k] - other.coef_[k]) <= distance_bound(*gaps)


def test_regression_and_a_free_intercept_from_a_store(large: Store) -> None:
    model = LinearSVR(memory="16M", C=1e-3, tol=1e-3, epsilon=0.1, intercept="free", random_state=0).fit(large)
    assert model.outcome_ is Outcome.CERTIFIED
    assert set(model.phases_) == {"blocks"}
    proof = certify(
        large.X, large.y, model.coef_, model.intercept_, loss="epsilon_insensitive", epsilon=0.1, C=1e-3,
        dual=model.dual_coef_, sample_weight=large.sample_weight, penalized_intercept=False,
    )  # fmt: skip
    assert proof.relative_gap <= 1.01e-3


def test_classes_at_once_and_one_by_one_agree(large: Store, tmp_path: Path) -> None:
    options: dict[str, Any] = {"memory": "16M", "C": 1e-3, "tol": 1e-3, "random_state": 0}
    together = LinearSVC(**options).fit(large)
    alone = LinearSVC(**options, checkpoint=tmp_path / "run").fit(large)
    assert alone.outcome_ is Outcome.CERTIFIED
    for k in range(3):
        gaps = [model.certificates_[k].gap for model in (together, alone)]
        assert np.linalg.norm(together.coef_[k] - alone.coef_[k]) <= distance_bound(*gaps)


def test_variables_in_a_file_change_nothing(tmp_path: Path) -> None:
    X = matrix(N, D)
    file, y = mapped(X, tmp_path), labels(X, Hinge())
    plan = make_plan(as_rows(file), 2**30, 1)
    in_file = Plan(plan.memory, plan.edges, plan.per_block, True, str(tmp_path))
    one, other = (
        fit(streamed(file, y, Hinge(), plan=each), Blocks(), Limits(tol=1e-4)) for each in (plan, in_file)
    )  # fmt: skip
    assert np.array_equal(one.coef, other.coef)
    assert sorted(name.name for name in tmp_path.iterdir()) == ["X.npy"]
    path = Checkpoint(tmp_path / "run", every_steps=50)
    for _ in range(2):
        resumed = fit(streamed(file, y, Hinge(), plan=in_file), Blocks(), Limits(tol=1e-4), checkpoint=path)
        assert resumed.outcome is Outcome.CERTIFIED


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"multi_class": "ovo"}, "multi_class='ovo'"),
        ({"solver": "pegasos"}, "solver='pegasos'"),
        ({"memory": "a lot"}, "a lot"),
    ],
)
def test_what_cannot_go_block_by_block_is_said(options: dict[str, Any], word: str, large: Store) -> None:
    with pytest.raises(ValueError, match=word):
        LinearSVC(**({"memory": "16M"} | options)).fit(large)


def test_a_limit_on_sweeps_ends_with_a_true_certificate(large: Store) -> None:
    with pytest.warns(NotCertifiedWarning):
        model = LinearSVC(memory="16M", C=1.0, tol=1e-6, max_iter=2, random_state=0).fit(large.X, large.y > 0)
    assert model.n_iter_ == 2
    assert model.outcome_ is Outcome.EPOCH_LIMIT
    proof = certify(large.X, large.y > 0, model.coef_, model.intercept_[0], C=1.0, penalized_intercept=True)
    assert np.isclose(proof.primal, model.certificate_.primal, rtol=1e-9)


def test_a_warm_start_goes_on_from_there(large: Store) -> None:
    model = LinearSVC(memory="16M", C=1e-3, tol=1e-3, random_state=0, warm_start=True)
    first = model.fit(large.X, large.y > 0).n_iter_
    assert model.set_params(tol=5e-4).fit(large.X, large.y > 0).n_iter_ <= first
    assert model.outcome_ is Outcome.CERTIFIED


def test_scores_of_mapped_sparse_rows(tmp_path: Path) -> None:
    X = matrix(N, D, density=0.3).astype(np.float32)
    y = labels(X, Hinge())
    model = LinearSVC(random_state=0).fit(X, y)
    assert np.allclose(model.decision_function(mapped_csr(X, tmp_path)), model.decision_function(X), rtol=1e-10)


def test_the_command_line_trains_from_a_store(large: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(tmp_path / "kept.model")
    given = ["train", str(large.path), "--memory", "16M", "--C", "1e-3", "--tol", "1e-3", "--model", model]
    assert main(given) == 0
    assert "certified" in capsys.readouterr().out
    assert main(["certify", model, str(large.path), "--tol", "1.1e-3"]) == 0
    assert main([*given[:3], "lots"]) == 2
    assert "memory must be" in capsys.readouterr().err


def resumable(X: Any, y: np.ndarray) -> tuple[StreamedProblem, Limits]:
    """A problem of some sweeps."""
    return streamed(X, y, Hinge(), C=0.05, intercept="regularized"), Limits(tol=1e-3)


def test_a_run_stopped_after_any_block_resumes_to_the_same_bits(tmp_path: Path) -> None:
    X = matrix(N, D).astype(np.float32)
    file, y = mapped(X, tmp_path), labels(X, Hinge())
    problem, limits = resumable(file, y)
    undisturbed = fit(problem, Blocks(), limits)
    for stop_at in (1, 5, 8, 13):
        path = tmp_path / f"run{stop_at}"
        with pytest.raises(KeyboardInterrupt):
            fit(
                resumable(file, y)[0],
                Blocks(),
                limits,
                callbacks=[StopAt(stop_at)],
                checkpoint=Checkpoint(path, 1e9, 1),
            )
        resumed = fit(resumable(file, y)[0], Blocks(), limits, checkpoint=Checkpoint(path))
        assert np.array_equal(resumed.coef, undisturbed.coef)
        assert resumed.certificate == undisturbed.certificate


class StopAt:
    """A callback that ends a fit as a kill would, in the middle of the work on a block."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def tick(self, epoch: float, estimate: float, seconds: float) -> None:
        """Count a step down."""
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1

    def __call__(self, record: Any) -> None:
        """Nothing to do at a certificate."""


def test_a_run_resumes_with_other_blocks(tmp_path: Path) -> None:
    X = matrix(N, D)
    file, y = mapped(X, tmp_path), labels(X, Hinge())
    problem, limits = resumable(file, y)
    with pytest.raises(KeyboardInterrupt):
        fit(problem, Blocks(), limits, callbacks=[StopAt(11)], checkpoint=Checkpoint(tmp_path / "run", 1e9, 1))
    other = Plan(2**30, np.array([0, 130, 260, N]), 1, False)
    anew = streamed(file, y, Hinge(), plan=other, C=0.05, intercept="regularized")
    resumed = fit(anew, Blocks(), limits, checkpoint=Checkpoint(tmp_path / "run"))
    assert resumed.outcome is Outcome.CERTIFIED
    assert close_enough(resumed, fit(resumable(file, y)[0], Blocks(), limits))


TRAIN = """
import sys
from saddlesvm import LinearSVC, Store
from saddlesvm.fit.checkpoint import Checkpoint
store, path = sys.argv[1:]
checkpoint = Checkpoint(path, every_steps=1)
model = LinearSVC(loss="hinge", memory="16M", C=1e-3, tol=1e-3, random_state=0, checkpoint=checkpoint)
store = Store(store)
print("ready", flush=True)
model.fit(store.X, store.y > 0)
"""


def test_a_killed_run_leaves_a_whole_checkpoint_or_none(large: Store, tmp_path: Path) -> None:
    path = tmp_path / "run"
    random = np.random.default_rng(0)
    for _ in range(3):
        with subprocess.Popen([sys.executable, "-c", TRAIN, str(large.path), str(path)], stdout=subprocess.PIPE) as run:
            assert run.stdout is not None
            run.stdout.readline()
            try:
                run.wait(float(random.uniform(0.05, 0.6)))
            except subprocess.TimeoutExpired:
                run.send_signal(signal.SIGKILL)
        if path.exists():
            with np.load(path) as stored:
                assert {name: stored[name].shape for name in stored.files}["state.alpha"] == (40_000,)
    options: dict[str, Any] = {"memory": "16M", "C": 1e-3, "tol": 1e-3, "random_state": 0}
    resumed = LinearSVC(loss="hinge", **options, checkpoint=Checkpoint(path)).fit(large.X, large.y > 0)
    undisturbed = LinearSVC(loss="hinge", **options).fit(large.X, large.y > 0)
    assert resumed.outcome_ is Outcome.CERTIFIED
    gaps = [model.certificate_.gap for model in (resumed, undisturbed)]
    assert np.linalg.norm(resumed.coef_ - undisturbed.coef_) <= distance_bound(*gaps)


def test_plain_problems_are_refused() -> None:
    X = matrix(20, 3)
    problem: Problem = make_problem(as_rows(X), labels(X, Hinge()), Hinge(), C=1.0)
    with pytest.raises(ValueError, match="StreamedProblem"):
        fit(problem, Blocks())


@pytest.mark.parametrize("options", [{"passes": -1}, {"rows": 1.5}])
def test_options_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        Blocks(**options)
