"""Estimators on stores larger than their memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddlesvm import LinearSVC, LinearSVR, Store, certify
from saddlesvm.cli import main
from saddlesvm.estimators.certify import certify_model
from saddlesvm.estimators.fitted import fitted_value
from saddlesvm.estimators.scale_hint import scale_hint
from saddlesvm.fit.checkpoint import Checkpoint
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits, NotCertifiedWarning, Outcome
from saddlesvm.problem.losses import Hinge
from saddlesvm.rows import scores
from saddlesvm.rows.files import BlockReader
from saddlesvm.rows.layouts import as_rows
from saddlesvm.rows.memory_plan import MemoryPlan, make_plan
from saddlesvm.solvers import Blocks
from support import csr, distance_bound, labels, matrix
from support.mapped import D, N, large_store, mapped, mapped_csr, streamed


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return large_store(tmp_path_factory.mktemp("stores"))


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch, large: Store) -> Callable[[], float]:
    """How often all rows of the store were read so far."""
    seen: list[int] = []
    plain = BlockReader._fill

    def fill(reader: BlockReader, buffer: Any, chunk: int, row: int, value: int) -> None:
        seen.append(int(reader.edges[chunk + 1] - reader.edges[chunk]))
        plain(reader, buffer, chunk, row, value)

    monkeypatch.setattr(BlockReader, "_fill", fill)
    return lambda: sum(seen) / large.X.shape[0]


def test_one_reading_serves_all_classes(large: Store, readings: Callable[[], float]) -> None:
    one = LinearSVC(memory="16M", C=1e-3, tol=1e-3, random_state=0).fit(large)
    # A sample for the first point, and a pass for the norms, come besides the sweeps.
    assert 0.0 < readings() <= one.n_iter_ + 2.0
    other = LinearSVC(C=1e-3, tol=1e-4, random_state=0).fit(np.array(large.X), large.y, large.sample_weight)
    assert one.outcome_ is Outcome.CERTIFIED
    assert all(certificate.relative_gap <= 1e-3 for certificate in one.certificates_)
    for k in range(3):
        gaps = [model.certificates_[k].gap for model in (one, other)]
        assert np.linalg.norm(one.coef_[k] - other.coef_[k]) <= distance_bound(*gaps)


@pytest.mark.parametrize(("loss", "C"), [("squared_hinge", 1.0), ("hinge", 1e-3)])
def test_one_reading_serves_all_pairs(loss: str, C: float, large: Store, readings: Callable[[], float]) -> None:
    options: dict[str, Any] = {"loss": loss, "C": C, "tol": 1e-4, "multi_class": "ovo", "random_state": 0}
    pairs = LinearSVC(memory="16M", **options).fit(large)
    assert pairs.outcome_ is Outcome.CERTIFIED
    proofs = 0 if loss == "squared_hinge" else len(pairs.certificates_)  # blocks prove by a pass each
    assert readings() <= pairs.n_iter_ + proofs + 1.0  # the next block is read ahead
    inside = LinearSVC(**options).fit(np.array(large.X), large.y, large.sample_weight)
    for k in range(3):
        gaps = [model.certificates_[k].gap for model in (pairs, inside)]
        assert np.linalg.norm(pairs.coef_[k] - inside.coef_[k]) <= distance_bound(*gaps)
    first, second = large.y == 0, large.y == 1
    chosen = first | second
    proof = certify(
        np.array(large.X)[chosen], second[chosen], pairs.coef_[0], pairs.intercept_[0], loss=loss, C=C,
        dual=pairs.dual_coef_.toarray()[:1, chosen], sample_weight=large.sample_weight[chosen],
        penalized_intercept=True,
    )  # fmt: skip
    assert proof.relative_gap <= 1.01e-4


def test_crammer_and_singers_machine_from_a_store_is_refused(large: Store) -> None:
    with pytest.raises(ValueError, match=r"needs all rows in memory.*use multi_class='ovr' or 'multinomial'"):
        LinearSVC(multi_class="crammer_singer", memory="16M").fit(large)


def test_multinomial_regression_from_a_store(large: Store, tmp_path: Path) -> None:
    options: dict[str, Any] = {"multi_class": "multinomial", "C": 1e-3, "tol": 1e-4, "random_state": 0}
    model = LinearSVC(memory="16M", warm_start=True, checkpoint=tmp_path / "run", **options).fit(large)
    assert fitted_value(model).reads_blocks
    assert model.outcome_ is Outcome.CERTIFIED
    inside = LinearSVC(**options).fit(np.array(large.X), large.y, large.sample_weight)
    distance = np.linalg.norm(np.c_[model.coef_ - inside.coef_, model.intercept_ - inside.intercept_])
    assert distance <= distance_bound(model.certificate_.gap, inside.certificate_.gap)
    (proof,) = certify_model(model, large.X, large.y, sample_weight=large.sample_weight)
    assert proof.relative_gap <= 1.01e-4
    (tmp_path / "run").unlink()
    assert model.fit(large).n_iter_ <= 2.0  # from where it ended
    two = LinearSVC(memory="16M", **options).fit(large.X, large.y > 0)
    assert two.coef_.shape == (1, large.X.shape[1])
    assert two.outcome_ is Outcome.CERTIFIED


def test_an_elastic_net_from_a_store(large: Store) -> None:
    options: dict[str, Any] = {"penalty": "elasticnet", "l1_ratio": 0.9, "C": 1e-3, "tol": 1e-4, "random_state": 0}
    model = LinearSVC(memory="16M", **options).fit(large)
    assert model.outcome_ is Outcome.CERTIFIED
    assert {*model.phases_} == {"blocks"}
    inside = LinearSVC(**options).fit(np.array(large.X), large.y, large.sample_weight)
    for k in range(3):
        gaps = [one.certificates_[k].gap / 0.1 for one in (model, inside)]  # a tenth of the penalty is half a square
        assert np.linalg.norm(model.coef_[k] - inside.coef_[k]) <= distance_bound(*gaps)


def test_regression_and_a_free_intercept_from_a_store(large: Store) -> None:
    model = LinearSVR(memory="16M", C=1e-3, tol=1e-3, epsilon=0.1, intercept="free", random_state=0).fit(large)
    assert model.outcome_ is Outcome.CERTIFIED
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


@pytest.mark.parametrize("intercept", ["regularized", "free"])
def test_any_C_is_certified_in_a_few_sweeps(intercept: str, large: Store) -> None:
    options: dict[str, Any] = {"C": 100.0, "tol": 1e-6, "random_state": 0, "loss": "logistic", "intercept": intercept}
    model = LinearSVC(memory="16M", **options).fit(large)
    assert model.outcome_ is Outcome.CERTIFIED
    assert {*model.phases_} == {"newton"}
    assert model.n_iter_ <= 12
    reference = LinearSVC(**options).fit(np.array(large.X), large.y, large.sample_weight)
    for k in range(3):
        gaps = [one.certificates_[k].gap for one in (model, reference)]
        assert np.linalg.norm(model.coef_[k] - reference.coef_[k]) <= distance_bound(*gaps)


def test_newtons_method_by_name(large: Store) -> None:
    model = LinearSVC(solver="newton", memory="16M", C=10.0, tol=1e-6).fit(large.X, large.y > 0)
    assert model.outcome_ is Outcome.CERTIFIED
    assert {*model.phases_} == {"newton"}
    with pytest.raises(ValueError, match=r"for smooth losses\)"):
        LinearSVC(solver="newton", memory="16M", loss="hinge").fit(large.X, large.y > 0)


def test_variables_in_a_file_change_nothing(tmp_path: Path) -> None:
    X = matrix(N, D)
    file, y = mapped(X, tmp_path), labels(X, Hinge())
    plan = make_plan(as_rows(file), 2**30, 1)
    in_file = MemoryPlan(plan.memory, plan.edges, plan.per_block, True, str(tmp_path))
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
        ({"solver": "pegasos"}, "solver='pegasos'"),
        ({"penalty": "l1"}, "a square in the penalty"),
        ({"penalty": "elasticnet", "solver": "newton"}, "not 'newton'"),
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


@pytest.mark.parametrize("sparse_rows", [False, True], ids=["dense", "csr"])
def test_the_scales_of_mapped_rows_are_found_by_a_part_of_them_at_a_time(
    sparse_rows: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scores, "MAPPED_VALUES", 20_000)
    X = matrix(20_000, 40, density=0.5)
    X[:, 9] *= 1e4
    given = csr(X) if sparse_rows else X
    store = Store.create(tmp_path / "rows.store", given)
    expected = scale_hint(given)
    assert "largest: column 9" in expected[0]
    scale_hint(store.X)  # what is loaded once is no part of the peak
    tracemalloc.start()
    found = scale_hint(store.X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == expected
    assert peak < X.nbytes / 4


@pytest.mark.parametrize("C", [1e4, 1e8])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_separable_rows_in_files_are_certified_at_any_C(loss: str, C: float, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    X, y = random.normal(size=(800, 1200)).astype(np.float32), random.integers(0, 2, 800)
    model = LinearSVC(memory="16M", loss=loss, C=C, tol=1e-5, random_state=0).fit(mapped(X, tmp_path), y)
    assert model.outcome_ is Outcome.CERTIFIED
