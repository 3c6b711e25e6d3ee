"""The comparison lab: solvers, the tidy trace, interrupting, peers, the verdict."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from scipy import sparse

pd = pytest.importorskip("pandas")
pytest.importorskip("matplotlib")

import saddlesvm.lab.comparison as running  # noqa: E402
from saddlesvm import SDCA, Pegasos, certify  # noqa: E402
from saddlesvm.data import load_bundled  # noqa: E402
from saddlesvm.fit.outcome import Limits  # noqa: E402
from saddlesvm.lab import curves, dataset, traces  # noqa: E402
from saddlesvm.lab.comparison import compare  # noqa: E402
from saddlesvm.lab.dataset import make_dataset  # noqa: E402
from saddlesvm.lab.machine import run_in_threads  # noqa: E402
from saddlesvm.lab.peers import PEERS, evaluate_weights, fit_peer, parse_peers, run_peer  # noqa: E402
from saddlesvm.lab.runs import GROWTH, label_solver, parse_solvers, run_solver  # noqa: E402
from saddlesvm.lab.verdict import reach_times, state_verdict  # noqa: E402
from saddlesvm.problem.losses import Hinge, make_loss  # noqa: E402
from saddlesvm.runtime.allowed import split_names  # noqa: E402


@pytest.fixture(scope="module")
def toy():
    table = load_bundled("toy")
    return table.X[::8], table.y[::8]


@pytest.fixture(scope="module")
def found(toy):
    X, y = toy
    return compare(
        X, y, solvers="dcd,sdca:start=sgd,pegasos", C=[0.1, 1.0], repeats=2, test=(X[:50], y[:50]), budget=0.3,
        tol=1e-4, peers="sklearn", name="toy", intercept="regularized",
    )  # fmt: skip


def test_solvers_are_split_with_their_options():
    assert split_names("pegasos:batch_size=64,output=average, dcd") == ["pegasos:batch_size=64,output=average", "dcd"]
    found = parse_solvers(["sdca:start=sgd,dcd", Pegasos(batch_size=3)])
    assert [label_solver(one) for one in found] == ["sdca (start=sgd)", "dcd", "pegasos (batch_size=3)"]
    assert parse_solvers(SDCA(start="sgd"))[0] == found[0]


@pytest.mark.parametrize(
    ("solvers", "message"),
    [
        ("sdcb", "unknown solver"),
        ("sdca:speed=2", "no option 'speed'"),
        ("dcd,dcd", "named twice"),
        ("", "no solver"),
        ("pegasos:batch_size=0", "batch_size"),
    ],
)
def test_bad_solvers_are_refused(solvers, message):
    with pytest.raises(ValueError, match=message):
        parse_solvers(solvers)


def test_trace_has_every_column_and_cell(found):
    trace = found.trace
    assert list(trace.columns) == list(traces.COLUMNS)
    assert {name: str(kind) for name, kind in trace.dtypes.items() if traces.COLUMNS[name] != "str"} == {
        name: kind for name, kind in traces.COLUMNS.items() if kind != "str"
    }
    assert (trace["outcome"] != "").sum() == 2 * 2 * 4
    assert not found.interrupted


def test_trace_obeys_weak_duality(found):
    trace = found.trace
    rounding = 1e-9 * trace["primal"].abs()
    assert (trace["gap"] >= -rounding).all()
    for _, problem in trace.groupby(["loss", "C"]):
        assert problem["dual"].max() <= problem["primal"].min() + rounding.max()
    np.testing.assert_allclose(trace["gap"], trace["primal"] - trace["dual"], rtol=1e-9, atol=1e-9)
    assert (trace["suboptimality"] <= trace["gap"] + rounding).all()


def test_own_solvers_and_peers_agree_within_their_gaps(found):
    ends = found.trace.groupby(["C", "solver", "options", "repeat"]).last()
    for _, problem in ends.groupby("C"):
        assert problem["dual"].max() <= problem["primal"].min() * (1 + 1e-9)


def test_an_interrupt_keeps_what_is_done(toy, tmp_path, monkeypatch):
    X, y = toy
    real = running.run_solver

    def interrupted_in_the_second(*arguments, stop: threading.Event, **options):
        if arguments[2].name == "sdca":
            stop.set()
        return real(*arguments, stop=stop, **options)

    monkeypatch.setattr(running, "run_solver", interrupted_in_the_second)
    found = compare(X, y, solvers="dcd,sdca,pegasos", budget=0.2, tol=1e-3)
    assert found.interrupted
    assert set(found.trace["solver"]) == {"dcd", "sdca"}
    assert "Interrupted" in found.report(tmp_path / "report.html").read_text()


@pytest.mark.parametrize(("name", "loss"), [(name, loss) for name, peer in PEERS.items() for loss in peer.losses])
def test_peers_are_judged_by_our_objective(name, loss, toy):
    X, y = toy
    data = make_dataset(X, y, task="regression" if "epsilon" in loss else "classification")
    problem = data.problem(make_loss(loss), 1.0, "regularized")
    rows = run_peer(data, problem, PEERS[name], 0.5)
    best = min(row["primal"] for row in rows)
    proof = compare(X, y, solvers="auto", losses=loss, task=data.task, intercept="regularized", tol=1e-6).trace
    assert best >= proof["dual"].max() * (1 - 1e-9)
    assert best <= 1.05 * proof["primal"].min(), "a peer that minimises another objective would be far off"
    assert rows[-1]["outcome"] in ("rule_met", "time_limit")


def test_the_clock_ends_the_fits_of_a_peer_and_no_number_of_epochs(toy, monkeypatch):
    X, y = toy
    problem = make_dataset(X, y).problem(make_loss("hinge"), 1.0, "regularized")

    def a_second(model, X, y):
        fit_peer(model, X, y)
        return 1.0

    monkeypatch.setattr("saddlesvm.lab.peers.fit_peer", a_second)
    rows = run_peer(make_dataset(X, y), problem, PEERS["sgd"], 15.0)
    assert rows[-1]["epoch"] == 20_000.0
    assert rows[-1]["outcome"] == "time_limit"


@pytest.mark.parametrize("budget", [None, 0.0, float("inf")])
def test_a_run_of_a_comparison_has_a_number_of_seconds(toy, budget):
    with pytest.raises(ValueError, match="budget must be a positive finite number"):
        compare(*toy, budget=budget)


def test_the_objective_of_a_peer_is_that_of_certify(toy):
    X, y = toy
    problem = make_dataset(X, y).problem(make_loss("hinge"), 1.0, "regularized")
    found = evaluate_weights(problem, np.ones(3))
    proof = certify(X, y, found.coef, found.intercept, loss=problem.loss, C=1.0, penalized_intercept=True)
    assert found.certificate.primal == pytest.approx(proof.primal, rel=1e-12)


def test_unknown_peers_are_refused():
    with pytest.raises(ValueError, match="unknown peer 'svmlight': use one of sklearn, sgd, or all"):
        parse_peers("svmlight")
    assert parse_peers("all") == list(PEERS.values())


def test_bad_data_are_refused(toy):
    X, y = toy
    with pytest.raises(ValueError, match="positive"):
        make_dataset(X, np.arange(len(y)) % 3)
    with pytest.raises(ValueError, match="one class"):
        make_dataset(X, np.ones(len(y)))
    with pytest.raises(ValueError, match="test data have 1 features"):
        make_dataset(X, y, test=(X[:, :1], y))
    with pytest.raises(ValueError, match="lack"):
        make_dataset(X, y, test=(X, y + 7))
    for given in ({"tol": -1e-3}, {"tol": np.nan}, {"budget": -1.0}, {"certify_every": np.nan}):
        with pytest.raises(ValueError, match=f"{next(iter(given))} must be"):
            compare(X, y, **given)
    with pytest.raises(ValueError, match="C must be"):
        compare(X, y, C=-1.0)
    with pytest.raises(ValueError, match="regression loss"):
        compare(X, y, losses="absolute")


def test_one_class_against_the_rest(toy):
    X, _ = toy
    data = make_dataset(X, np.arange(len(X)) % 3, positive="2")
    assert data.classes == ("not 2", "2")
    assert (data.y == 1.0).sum() == (np.arange(len(X)) % 3 == 2).sum()


def made_up_trace():
    base = {"loss": "hinge", "C": 1.0, "repeat": 0, "dual": 1.0}
    rows = [
        base | {"solver": "quick", "epoch": 1.0, "seconds_solving": 1.0, "primal": 1.005},
        base | {"solver": "quick", "epoch": 2.0, "seconds_solving": 2.0, "primal": 1.0},
        base | {"solver": "slow", "epoch": 1.0, "seconds_solving": 3.0, "primal": 1.005},
    ]
    return traces.tidy_trace(rows)


def test_the_fastest_rung_of_a_ladder_counts():
    reached = {"relative_suboptimality": [0.5, 9e-3, 8e-4], "seconds_solving": [5e-3, 6e-3, 4e-3], "epoch": [1, 2, 5]}
    trace = pd.DataFrame(reached | {"solver": "peer", "options": "", "loss": "hinge", "C": 1.0, "repeat": 0})
    for level in (1e-2, 1e-3):
        assert reach_times(trace, level)[["seconds", "epochs"]].to_numpy().tolist() == [[4e-3, 5.0]]
    assert reach_times(trace, 1e-4)["seconds"].tolist() == [np.inf]


def test_verdict_names_the_first_and_the_factor():
    trace = made_up_trace()
    times = reach_times(trace, 1e-2).set_index("label")["seconds"]
    assert times["quick"] == 1.0
    assert times["slow"] == 3.0
    first, _, last = state_verdict(trace)
    assert "quick came within 1e-2 of the optimum first" in first
    assert "slow 3" in first
    assert "not before the time limit: slow" in last
    assert state_verdict(traces.tidy_trace([])) == ["Nothing was run."]


def test_curves_are_medians_with_their_quartiles():
    x = np.array([1.0, 2.0, 3.0])
    series = curves.summarise_runs("a", [(x, x), (x, 3 * x), (x[:2], 2 * x[:2])], 0)
    np.testing.assert_array_equal(series.x, x)
    np.testing.assert_array_equal(series.y, [2.0, 4.0, 4.0])
    np.testing.assert_array_equal(series.low, [1.5, 3.0, 3.5])
    np.testing.assert_array_equal(series.high, [2.5, 5.0, 6.5])
    late = curves.summarise_runs("a", [(x, 1 / x), (x, 1 / x), (x[1:], 9 + 0 * x[1:])], 0)
    np.testing.assert_array_equal(late.x, x[1:])  # from where all have begun: no line that rises as one joins
    assert (np.diff(late.y) < 0).all()
    assert curves.thin_points(np.arange(1000.0), 10).size == 10


def test_sparse_and_regression_data(toy):
    from scipy import sparse

    X, y = toy
    dense = compare(X, y, solvers="dcd", budget=0.3, tol=1e-6)
    scarce = compare(sparse.csr_matrix(X), y, solvers="dcd", budget=0.3, tol=1e-6, peers="sklearn")
    a, b = dense.trace["primal"].min(), scarce.trace["primal"].min()
    assert abs(a - b) <= 2e-6 * max(a, b)
    regression = compare(X, X[:, 0] - X[:, 1], task="regression", solvers="sdca", budget=0.3, peers="sklearn")
    assert set(regression.trace["solver"]) == {"sdca", "sklearn"}
    assert regression.trace["train_error"].min() < 0.1


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix])
def test_models_judged_together_have_their_own_errors(task, convert, monkeypatch):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(50, 4)), random.choice([-1.0, 1.0], 50)
    data = make_dataset(convert(X), y, test=(convert(X[:20]), y[:20]), task=task)
    coefs, intercepts = random.normal(size=(7, 4)), random.normal(size=7)
    monkeypatch.setattr(dataset, "BLOCK_SCORES", 120)
    together = np.array(data.errors_of(coefs, intercepts)).T
    for coef, intercept, errors in zip(coefs, intercepts, together, strict=True):
        scores = X @ coef + intercept
        wrong = np.abs(scores - y) if task == "regression" else (scores > 0) != (y > 0)
        assert data.errors(coef, intercept) == pytest.approx(tuple(errors))
        assert tuple(errors) == pytest.approx((wrong.mean(), wrong[:20].mean()))


def test_certificates_become_rarer(toy):
    data = make_dataset(*toy)
    rows, _ = run_solver(data, data.problem(Hinge(), 1.0), SDCA(), Limits(tol=0.0, max_epochs=60.0))
    epochs = np.array([row["epoch"] for row in rows])
    assert epochs[:10] == pytest.approx(np.arange(1, 11), abs=0.1)
    steps = np.diff(epochs[:-1])
    assert (steps >= GROWTH * epochs[:-2] - 0.1).all()
    assert len(rows) < 40


def test_independent_work_keeps_its_order():
    assert run_in_threads(lambda piece: piece * piece, range(9)) == [piece * piece for piece in range(9)]


def test_a_comparison_in_lambda_is_the_one_in_C(toy, tmp_path):
    """The same runs; objectives in the lambda form, and lambda in every word."""
    X, y = toy
    lam, options = [0.01, 0.1], {"solvers": "sdca", "budget": 5.0, "tol": 1e-4}
    by_lam = compare(X, y, lam=lam, **options)
    by_C = compare(X, y, C=[1.0 / (one * len(y)) for one in lam], **options)
    ours, theirs = by_lam.trace, by_C.trace
    np.testing.assert_allclose(ours["primal"], theirs["primal"] * theirs["lam"], rtol=1e-12)
    np.testing.assert_allclose(ours["relative_gap"], theirs["relative_gap"], atol=1e-12)
    assert set(ours["form"]) == {"lambda"} and set(theirs["form"]) == {"C"}
    assert all("lambda = 0.0" in line or "lambda = 0.1" in line for line in by_lam.verdict())
    page = by_lam.report(tmp_path / "report.html").read_text().split("<script")[0]
    assert "lambda = 0.01" in page and "C = " not in page
    with pytest.raises(ValueError, match="either C or lam"):
        compare(X, y, C=1.0, lam=1.0)


def test_the_verdict_blames_the_clock_only_where_it_stopped_a_run(toy):
    """Runs that ended certified at the gap asked for are not said to have run out of time."""
    X, y = toy
    at_its_gap = compare(X, y, solvers="dcd,sdca", tol=1e-2, budget=20.0)
    assert set(at_its_gap.trace["outcome"]) - {""} == {"certified"}
    assert not any("time limit" in line for line in at_its_gap.verdict())
    assert "all ended before" in at_its_gap.verdict()[-1]


def test_the_solvers_compared_if_none_is_named_have_one_that_arrives():
    """Columns of very different scales, as those of heart: the ascents need far longer than they have."""
    hearts = load_bundled("heart")
    found = compare(hearts.X, hearts.y, budget=0.2, name="heart")
    assert list(dict.fromkeys(found.trace["solver"])) == ["auto", "dcd", "sdca", "pegasos"]
    assert all("auto came within" in sentence for sentence in found.verdict())
