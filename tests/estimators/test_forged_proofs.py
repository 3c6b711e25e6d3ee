"""No forged proof that the checker accepts is false; the checker says what it has checked."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddlesvm import LinearSVC, checker, cli
from saddlesvm.estimators.proof_files import verify_proof
from support.forged_proofs import count, hexed

FORGED = 200  # `python -m support.forged_proofs 2000` judges more


def sealed(problem: dict[str, Any], parts: list[Any], claim: list[str], data: str) -> dict[str, Any]:
    """A proof with a seal that holds."""
    contents = [data, problem, parts, claim]
    proof: dict[str, Any] = dict(zip(("data", "problem", "parts", "claim"), contents, strict=True))
    seal = hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()
    return proof | {"seal": seal, "proof": 1, "read": {}}


def hinge_of(labels: list[str], **words: Any) -> tuple[dict[str, Any], list[dict[int, float]]]:
    """A forged proof of the hinge on rows x = 1, which claims 2.03125 and 2.0, and its rows."""
    problem = {"loss": "hinge", "option": hexed(0), "form": "C", "strength": hexed(1)}
    problem |= {"square": hexed(1), "l1": hexed(0), "intercept": "none", "feature": hexed(1)}
    problem |= {"features": 1, "split": "targets", "text": False, "classes": []}
    part = {"w": [[hexed(0.25)]], "b": [hexed(0)], "at": [hexed(0)], "scale": hexed(1)}
    part |= {"multipliers": {str(i): [hexed(0.5)] for i in range(len(labels))}, "weights": None}
    rows = [{0: 1.0} for _ in labels]
    data = checker.fingerprint(rows, [float(one) for one in labels])
    claim = [hexed(2.03125), hexed(2.0), hexed(0.03125)]
    return sealed(problem | words, [part], claim, data), rows


def test_no_forged_proof_that_is_accepted_is_false() -> None:
    found = count(FORGED)
    assert found["false"] == 0
    assert min(found["accepted"], found["refused"]) >= FORGED // 10


def test_a_loss_of_labels_is_checked_for_labels_1_and_minus_1_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    proof, rows = hinge_of(["2"] * 4)
    with pytest.raises(ValueError, match="labels 1 and -1 only"):
        checker.check(proof, rows, ["2"] * 4)
    with pytest.raises(ValueError, match="labels 1 and -1 only"):
        verify_proof(proof, np.ones((4, 1)), np.full(4, 2.0))
    (tmp_path / "proof.json").write_text(json.dumps(proof))
    (tmp_path / "data.svm").write_text("2 1:1\n" * 4)
    assert cli.main(["verify", str(tmp_path / "proof.json"), str(tmp_path / "data.svm")]) == 3
    assert "labels 1 and -1 only" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        {"form": "c"},
        {"form": ["C"]},
        {"intercept": "some"},
        {"split": "pairs"},
        {"loss": "zero_one"},
        {"loss": "multinomial"},
        {"classes": [hexed(1), hexed(-1)]},
        {"split": "ovr", "classes": [hexed(1), hexed(1)]},
        {"split": "ovr", "classes": [hexed(1)]},
        {"split": "ovr", "classes": [hexed(1), hexed(2.0**53)]},
        {"split": "ovr", "classes": [1, 2]},
        {"text": 0},
        {"features": 1.0},
    ],
)
def test_a_problem_in_unknown_words_is_refused(words: dict[str, Any]) -> None:
    sound, rows = hinge_of(["1"] * 4)
    problem = sound["problem"]
    parts = sound["parts"]
    labels = [1.0] * 4
    primal, dual = checker.bound(problem, parts, rows, labels)
    claim = [hexed(float(primal)), hexed(float(dual)), hexed(float(primal - dual))]
    proof = sealed(problem, parts, claim, sound["data"])
    assert checker.check(proof, rows, ["1"] * 4).startswith("proven")
    with pytest.raises((ValueError, TypeError)):
        checker.check(sealed(problem | words, parts, claim, sound["data"]), rows, ["1"] * 4)


def test_labels_beyond_2_53_do_not_fall_together() -> None:
    random = np.random.default_rng(0)
    X = random.standard_normal((30, 2)).round(3)
    base = np.where(X[:, 0] > 0, 2**53 + 1, 2**53)
    for y in (base, -base, np.where(X[:, 1] > 1, 5, base), base.astype(np.uint64) + 2**62):
        model = LinearSVC(loss="logistic", multi_class="ovo").fit(X, y)
        proof = json.loads(json.dumps(model.proof(X, y)))
        high, low, _ = map(float.fromhex, proof["claim"])
        assert proof["problem"]["classes"] == [str(one) for one in model.classes_.tolist()]
        assert low <= model.certificate_.primal * (1 + 1e-12)
        assert model.certificate_.dual <= high * (1 + 1e-12)
        assert verify_proof(proof, X, y).startswith("proven")
        rows = [dict(enumerate(row)) for row in X.tolist()]
        assert checker.check(proof, rows, [str(one) for one in y.tolist()]).startswith("proven")
        other = y.copy()
        other[0] = base.max() if other[0] == base.min() else base.min()
        with pytest.raises(ValueError, match="not those"):
            verify_proof(proof, X, other)


def test_a_checked_proof_says_what_it_is_about(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    random = np.random.default_rng(1)
    X = random.standard_normal((12, 2))
    y = (X[:, 0] > 0).astype(int)
    weights = np.array([0.0, 0.0, *random.uniform(0.5, 2.0, 10)])
    table = np.column_stack([X, y])
    np.savetxt(tmp_path / "data.csv", table, delimiter=",", fmt="%.17g")
    model = LinearSVC(loss="smooth_hinge", lam=0.25, penalty="elasticnet", l1_ratio=0.25)
    model.fit(X, y, sample_weight=weights)
    file = tmp_path / "proof.json"
    file.write_text(json.dumps(model.proof(X, y, sample_weight=weights)))
    copy = tmp_path / "copy.py"
    copy.write_text(Path(checker.__file__).read_text())
    run = [sys.executable, "-I", "-S", str(copy), str(file), str(tmp_path / "data.csv")]
    said = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    most = float(weights.max())
    told = {
        "lambda": "0.25",
        "loss": "smooth_hinge, width = 1.0",
        "penalty": "0.75 |w|^2 / 2 + 0.25 |w|_1",
        "intercept": "weight of a constant feature 1.0",
        "rows": "12",
        "classes": "0.0, 1.0 (ovr)",
        "row weights": f"from 0.0 to {most!r}; 2 of 12 rows weigh 0",
    }
    for name, what in told.items():
        assert f"{name}: {what}\n" in said
    assert cli.main(["verify", str(file), str(tmp_path / "data.csv"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    problem = {name.replace("_", " "): what for name, what in found["problem"].items()}
    assert {name: problem[name.replace("_", " ")] for name in told} == told


def test_a_problem_without_weight_or_strength_says_so() -> None:
    proof, _ = hinge_of(["1"] * 3)
    proof["parts"][0]["weights"] = [hexed(0)] * 3
    proof["problem"]["strength"] = hexed(1e-300)
    told = checker.describe(proof, 3)
    assert told["row weights"] == "from 0.0 to 0.0; 3 of 3 rows weigh 0"
    assert told["C"] == "1e-300"
