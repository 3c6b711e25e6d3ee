"""The benchmark suite: adapters against the certified optimum, workers that hang or crash, resuming, the page."""

from __future__ import annotations

import importlib.util
import sys
import types
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

pd = pytest.importorskip("pandas")
pytest.importorskip("matplotlib")

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"
sys.path += [str(ROOT), str(BENCHMARKS / "peers" / "suite")]

import launch  # noqa: E402
import page  # noqa: E402
import profiles  # noqa: E402
import results  # noqa: E402
import run  # noqa: E402
from adapters import write_vw  # noqa: E402
from command import options_of  # noqa: E402
from peers import PEERS, installed_version  # noqa: E402
from task import Task, float64_objective, loss_values  # noqa: E402
from worker import reason_to_stop  # noqa: E402

from benchmarks.parts import roofline  # noqa: E402
from saddlesvm import LinearSVC  # noqa: E402
from saddlesvm.data import DataError  # noqa: E402
from support import matrix  # noqa: E402

SMALL = ["--quick", "--datasets", "text,dense-noise", "--peers", "sklearn-dual,sklearn-logistic-lbfgs"]


def small_task(loss: str, kind: str, scratch: Path) -> Task:
    """Noisy rows, dense or sparse, of both precisions."""
    X = matrix(120, 6, seed=3, density=0.7)
    y = np.where(X @ np.arange(-3, 3) + np.random.default_rng(0).normal(size=len(X)) > 0, 1.0, -1.0)
    form = sparse.csr_matrix(X) if kind == "sparse" else X.astype(np.float32)
    return Task(form, y, loss, 0.1, 1, 0, 60.0, scratch)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_the_objective_is_that_of_the_certificate(loss, tmp_path):
    task = small_task(loss, "sparse", tmp_path)
    model = LinearSVC(loss=loss, C=task.C, tol=1e-8, fit_intercept=False, random_state=0).fit(task.X, task.y)
    assert float64_objective(task, model.coef_) == pytest.approx(model.certificate_.primal, rel=1e-12)
    assert loss_values(loss, np.array([0.0]))[0] == pytest.approx({"logistic": np.log(2.0)}.get(loss, 1.0))
    with pytest.raises(ValueError, match="2 weights for 6 features"):
        float64_objective(task, np.zeros(2))


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize(("name", "loss"), [(peer.name, loss) for peer in PEERS.values() for loss in peer.losses])
def test_every_peer_that_is_installed_minimises_our_objective(name, loss, kind, tmp_path):
    """No objective is below the certified bound, and the fine end of a ladder is near it."""
    peer = PEERS[name]
    if not installed_version(peer):
        pytest.skip(f"{peer.distribution} is not installed")
    task = small_task(loss, kind, tmp_path)
    bound = LinearSVC(loss=loss, C=task.C, tol=1e-9, fit_intercept=False).fit(task.X, task.y).certificate_.dual
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adapter = peer.adapt(task, peer.losses[loss])
        rough, fine = (float64_objective(task, adapter.weights(adapter.fit(peer.ladder[k]))) for k in (0, -3))
    stochastic = name in ("sklearn-sgd", "vowpalwabbit", "saddlesvm-pegasos")
    assert min(rough, fine) >= bound * (1.0 - 1e-9)
    assert fine <= bound * (1.5 if stochastic else 1.0 + 1e-3)


def test_vowpal_wabbits_text(tmp_path):
    task = Task(sparse.csr_matrix([[0.0, 2.0], [1.5, 0.0]]), np.array([1.0, -1.0]), "hinge", 1.0, 1, 0, 1.0, tmp_path)
    write_vw(task, tmp_path / "rows")
    assert (tmp_path / "rows").read_text() == "1 | 1:2\n-1 | 0:1.5\n"


def test_a_climb_ends_for_a_reason():
    job = {"climbing": True, "limit": 10.0, "target": 1e-6}
    assert reason_to_stop(job, "epochs", 5, [1e-7], 0.1, 0.1) == "reached"
    assert reason_to_stop(job, "epochs", 5, [1.0], 11.0, 11.0) == "time limit"
    assert reason_to_stop(job, "epochs", 500, [1.0, 0.99, 0.99, 0.98], 2.0, 6.0) == "no progress"
    assert reason_to_stop(job, "epochs", 5, [1.0, 2.0, 3.0, 4.0], 2.0, 6.0) == ""
    assert reason_to_stop({**job, "climbing": False}, "epochs", 5, [1e-7], 99.0, 99.0) == ""


def any_job(**changes: object) -> launch.Job:
    """A job for a worker that does not read it."""
    job = launch.Job("x", "hinge", 1.0, "", (1.0,), True, 0.0, 1e-6, 0.2, 5.0, 1, 0, None)
    return replace(job, **changes)


def worker_that(does: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put another program in the place of the worker."""
    program = folder / "worker.py"
    program.write_text(f"import json, sys\nsys.stdin.readline()\n{does}\n")
    monkeypatch.setattr(launch, "WORKER", program)
    monkeypatch.setattr(launch, "GRACE", 0.0)


def test_a_fit_that_takes_too_long_is_killed(tmp_path, monkeypatch):
    worker_that("print(json.dumps({'event': 'begin', 'rung': 7}), flush=True); sys.stdin.read()", tmp_path, monkeypatch)
    *_, last = launch.events(any_job())
    assert (last["event"], last["rung"], last["why"]) == ("killed", 7, "time limit")
    assert last["seconds"] >= 0.2


def test_a_preparation_that_takes_too_long_is_a_failure(tmp_path, monkeypatch):
    worker_that("sys.stdin.read()", tmp_path, monkeypatch)
    (only,) = launch.events(any_job(preparation=0.2))
    assert only["event"] == "failed" and "getting ready" in only["why"]


def test_a_crash_is_told_with_its_last_words(tmp_path, monkeypatch):
    worker_that("sys.exit('no such thing')", tmp_path, monkeypatch)
    (only,) = launch.events(any_job(preparation=60.0))
    assert only == {"event": "failed", "why": "the process ended: no such thing"}


@pytest.fixture(scope="module")
def suite_file(tmp_path_factory):
    """Results of two small cells with scikit-learn as the only peer."""
    path = tmp_path_factory.mktemp("suite") / "results.csv"
    assert run.main([*SMALL, "--out", str(path)]) == 0
    return path


def test_the_suite_runs_and_every_objective_is_above_the_bound(suite_file):
    frame = results.read(suite_file)
    cells = page.complete_cells(frame)
    assert [key[:2] for key in cells] == [("text", "hinge"), ("dense-noise", "logistic")]
    for cell in cells.values():
        fits = cell[cell["outcome"] == results.DONE]
        assert (fits["objective"] >= results.bound_of(cell) * (1.0 - 1e-9)).all()
        assert (fits["seconds"] > 0.0).all() and (fits["extra_bytes"] >= 0.0).all()
        for target in results.TARGETS:
            assert set(results.reach_times(cell, target)) == set(fits["solver"]) - {results.REFERENCE}


def test_resuming_runs_nothing_again(suite_file, monkeypatch):
    def never(*_: object) -> None:
        raise AssertionError("a job was run again")

    before = suite_file.read_bytes()
    monkeypatch.setattr(run.Suite, "do", never)
    assert run.main([*SMALL, "--out", str(suite_file), "--resume"]) == 0
    assert suite_file.read_bytes() == before


def test_no_time_left_completes_no_cell(tmp_path, capsys):
    arguments = [*SMALL, "--out", str(tmp_path / "r.csv"), "--max-total-minutes", "1e-9"]
    assert run.main(arguments) == 0
    assert "0 of 2 cells are complete" in capsys.readouterr().out


def test_the_page_tells_all(suite_file, tmp_path):
    out = tmp_path / "benchmarks.md"
    assert page.main([str(suite_file), "--out", str(out)]) == 0
    text = out.read_text(encoding="utf-8")
    for part in (
        "scikit-learn LinearSVC, dual",
        "## Memory",
        "## Versions",
        "suite/run.py --out FILE --quick",
        "benchmarks.png",
    ):
        assert part in text
    assert str(suite_file) not in text
    assert (tmp_path / "benchmarks.png").read_bytes().startswith(b"\x89PNG")


def test_results_are_read_back_as_they_were_written(suite_file, tmp_path):
    frame = results.read(suite_file)
    for ending in results.ENDINGS:
        results.write(frame, tmp_path / f"copy{ending}")
        pd.testing.assert_frame_equal(results.read(tmp_path / f"copy{ending}"), frame)
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="no column 'data'"):
        results.read(tmp_path / "other.csv")
    with pytest.raises(DataError, match=r"\.parquet or \.csv"):
        results.read(tmp_path / "results.txt")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--peers", "libsvm"], "unknown solver 'libsvm'"),
        (["--losses", "squared"], "unknown name 'squared'"),
        (["--datasets", "fashion"], "no cell is left"),
        (["--python", "snapml"], "give NAME=PATH"),
        (["--repeats", "0"], "must be positive"),
        (["--out", "results.txt"], "results are written as"),
    ],
)
def test_bad_options_are_refused(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        options_of(arguments, "")
    assert message in capsys.readouterr().err


def test_a_file_is_not_overwritten(suite_file, capsys):
    with pytest.raises(SystemExit):
        options_of(["--quick", "--out", str(suite_file)], "")
    assert "--resume" in capsys.readouterr().err


def rows_of(solver: str, seconds: float, objective: float, **more: object) -> dict[str, object]:
    """A fit in a cell whose bound is 100."""
    common = {"data": "d", "loss": "hinge", "C": 1.0, "cores": 1, "bound": 100.0, "rung": seconds, "outcome": "done"}
    return {**common, "solver": solver, "seconds": seconds, "objective": objective, **more}


def test_a_duel_takes_the_quickest_setting_that_came_near_enough():
    cell = results.table(
        [
            rows_of("saddlesvm", 1.0, 100.05),
            rows_of("saddlesvm", 2.0, 100.00005),
            rows_of("snapml", 0.5, 101.5),
            rows_of("snapml", 3.0, 100.05),
            rows_of("skglm", 9.0, 105.0, outcome="killed"),
        ]
    )
    assert page.duel_of(cell, 1e-3) == page.Duel(1.0, 3.0, "snapml", 9.0)
    assert page.duel_of(cell, 1e-3).factor == 3.0
    unanswered = page.duel_of(cell, 1e-6)
    assert (unanswered.peer, unanswered.factor) == ("", 4.5)
    assert page.duel_of(cell, 1e-2).lost is False
    assert page.Duel(1.0, 0.5, "snapml", np.inf).lost
    assert not page.Duel(4e-3, 1e-3, "snapml", np.inf).counts
    assert np.isnan(page.Duel(1.0, np.inf, "", np.inf).factor)


def test_a_rung_that_was_repeated_goes_before_one_that_was_not():
    rows = [rows_of("snapml", 2.0, 100.0, rung=1.0, repeat=k) for k in range(3)] + [rows_of("snapml", 1.0, 100.0)]
    assert results.reach_times(results.table(rows), 1e-3) == {"snapml": (2.0, 1.0)}


def test_profiles_are_shares_of_the_cells():
    times = [{"a": 1.0, "b": 2.0}, {"a": 3.0, "b": 1.0}, {"b": 1.0}]
    assert profiles.ratios(times, "a").tolist() == [1.0, 3.0, np.inf]
    assert [profiles.share_within(profiles.ratios(times, "b"), factor) for factor in (1.0, 2.0)] == [2 / 3, 1.0]


def test_the_roofline_counts_every_byte_and_operation():
    X, y = matrix(400, 16), np.where(np.arange(400) % 3, 1.0, -1.0)
    lines = roofline.measure("dense", X, y, repeats=1)
    assert [line.order for line in lines] == ["in order", "runs of 4", "one by one"]
    for order in roofline.SOLVERS:
        assert sorted(roofline.visits(10, order)) == list(range(10))
    for line in lines:
        assert line.moved == X.nbytes + 400 * 40
        assert 2 * X.size <= line.operations <= 4 * X.size
        assert min(line.plain, line.read, line.fetched, line.epoch, line.arithmetic) > 0.0
    assert roofline.words(lines[0]).count("|") == 12
    S = sparse.csr_matrix(np.where(X > 0, X, 0.0))
    assert roofline.measure("sparse", S, y, 1)[0].moved == S.data.nbytes + S.indices.nbytes + 400 * 40


class FakeBaseSolver:
    """What benchopt's BaseSolver does for a solver, as far as one is driven here."""

    def run_once(self, stop_val: float = 1.0) -> None:
        self.run(stop_val)


@pytest.fixture
def benchopt_solver(monkeypatch):
    """The solver file's class, with benchopt in its place or a stand-in."""
    if importlib.util.find_spec("benchopt") is None:
        fake, stopping = types.ModuleType("benchopt"), types.ModuleType("benchopt.stopping_criterion")
        fake.BaseSolver = FakeBaseSolver
        stopping.SufficientProgressCriterion = lambda **options: options
        monkeypatch.setitem(sys.modules, "benchopt", fake)
        monkeypatch.setitem(sys.modules, "benchopt.stopping_criterion", stopping)
    spec = importlib.util.spec_from_file_location(
        "solver", BENCHMARKS / "peers" / "benchopt" / "solvers" / "saddlesvm.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Solver


@pytest.mark.parametrize("name", ["auto", "dcd"])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_the_benchopt_solver_lowers_its_tolerance(benchopt_solver, name, kind, tmp_path):
    task = small_task("hinge", kind, tmp_path)
    solver = benchopt_solver()
    solver.solver = name
    solver.set_objective(task.X, task.y, task.C)
    solver.warm_up()
    values = []
    for tol in (3e38, 1e-2, 1e-8):
        solver.run(tol)
        values.append(float64_objective(task, solver.get_result()["beta"]))
    bound = solver.model.certificate_.dual
    assert bound * (1.0 - 1e-9) <= values[-1] <= bound * (1.0 + 2e-8)
    assert values[-1] <= values[0] * (1.0 + 1e-9)
