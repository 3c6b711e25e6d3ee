"""Proof files: the checker is Python alone, bounds from the right side, and reads data as this package does."""

from __future__ import annotations

import ast
import bz2
import json
import subprocess
import sys
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_iris

from saddlesvm import SVC, LinearSVC, LinearSVR, checker, cli, save
from saddlesvm.data import load_bundled, read
from saddlesvm.estimators.proof_files import labels_for_checker, rows_for_checker, verify_proof

FILE = Path(checker.__file__)
ULP = Fraction(1, 2**100)


def test_the_checker_needs_the_standard_library_alone() -> None:
    text = FILE.read_text()
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.Import, ast.ImportFrom))]
    taken = {node.module if isinstance(node, ast.ImportFrom) else node.names[0].name for node in imports}
    assert taken <= sys.stdlib_module_names


@pytest.mark.parametrize("power", [-90, -12, -3, 0, 5, 60])
def test_exponentials_and_logarithms_are_bounded_from_above_closely(power: int) -> None:
    random = np.random.default_rng(power + 100)
    with localcontext(prec=80):
        for t in random.uniform(-1.0, 1.0, 20) * 2.0 ** min(power, 6):
            units = int(Fraction(float(t)) * checker.ONE)
            exact = Fraction((Decimal(units) / checker.ONE).exp())
            above = Fraction(checker.exp_up(units), checker.ONE) - exact
            assert 0 <= above <= ULP * max(exact, 1)
        for x in random.uniform(0.5, 1.0, 20) * 2.0 ** min(power, 0):
            if x > 2.0**-90:
                exact = Fraction((Decimal(float(x))).ln())
                assert 0 <= checker.log_up(Fraction(float(x))) - exact <= ULP


def test_a_copy_of_the_file_checks_text_data_alone(tmp_path: Path) -> None:
    notes = load_bundled("banknote")
    names = np.array(["true", "forged"])[notes.y.astype(int)]
    lines = ["a;b;id;kind;c;d"]
    table = zip(notes.X.tolist(), names, strict=True)
    lines += [f"{a!r};{b!r};{k};{label};{c!r};{d!r}" for k, ((a, b, c, d), label) in enumerate(table)]
    (tmp_path / "notes.csv").write_text("\n".join(lines))
    model = LinearSVC(loss="logistic").fit(notes.X, names)
    proof = model.proof(notes.X, names, read={"label": 3, "drop": [2], "header": True})
    (tmp_path / "proof.json").write_text(json.dumps(proof))
    (tmp_path / "check.py").write_text(FILE.read_text())
    run = [sys.executable, "-I", "-S", "check.py", "proof.json", "notes.csv"]
    found = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert found.stdout.startswith("proven: the objective is at most")
    (tmp_path / "notes.csv").write_text("\n".join(lines[:-1]))
    found = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True)
    assert found.returncode == 1
    assert found.stderr.splitlines() == ["refused: ValueError: the data are not those that the proof was made for"]


@pytest.mark.parametrize("zero_based", [False, True])
def test_the_checker_reads_the_floats_that_the_package_reads(tmp_path: Path, zero_based: bool) -> None:
    random = np.random.default_rng(3)
    X = random.normal(size=(60, 6)) * 10.0 ** random.integers(-300, 300, (60, 6))
    X[random.random(X.shape) < 0.5] = 0.0
    X[0, 0] = 5e-324
    dump_svmlight_file(X, np.arange(60) % 3, str(tmp_path / "a.svm"), zero_based=zero_based)
    np.savetxt(tmp_path / "a.csv", np.column_stack([X, X[:, 0]]), delimiter=",", fmt="%.17g")
    for name in ("a.svm", "a.csv"):
        table = read(tmp_path / name, zero_based=zero_based if name == "a.svm" else "auto")
        rows, labels = checker.read(str(tmp_path / name), {"zero_based": zero_based})
        assert [{j: x for j, x in row.items() if x} for row in rows] == rows_for_checker(table.X)
        assert [float(one) for one in labels] == labels_for_checker(table.y, False)


def test_smooth_losses_need_no_multipliers_and_kinked_ones_those_on_the_margin() -> None:
    notes = load_bundled("banknote")
    for loss, most in (("logistic", 0), ("squared_hinge", 0), ("hinge", 20)):
        model = LinearSVC(loss=loss, tol=1e-8).fit(notes.X, notes.y)
        proof = model.proof(notes.X, notes.y)
        assert len(proof["parts"][0]["multipliers"]) <= most
        assert float.fromhex(proof["claim"][2]) <= 1e-6 * float.fromhex(proof["claim"][0])


def test_a_weight_made_worse_is_refused_whatever_the_seal() -> None:
    iris = load_iris()
    model = LinearSVC(loss="logistic", multi_class="multinomial", intercept="free", tol=1e-8).fit(
        iris.data, iris.target
    )
    proof = json.loads(json.dumps(model.proof(iris.data, iris.target)))
    assert "proven" in verify_proof(proof, iris.data, iris.target)
    proof["parts"][0]["w"][0][0] = (0.5).hex()
    with pytest.raises(ValueError, match="changed after it was made"):
        verify_proof(proof, iris.data, iris.target)
    sealed = [proof[name] for name in ("data", "problem", "parts", "claim")]
    proof["seal"] = checker.hashlib.sha256(json.dumps(sealed, sort_keys=True).encode()).hexdigest()
    with pytest.raises(ValueError, match="sum to zero"):
        verify_proof(proof, iris.data, iris.target)


def test_what_has_no_proof_says_so() -> None:
    iris = load_iris()
    joint = LinearSVC(multi_class="crammer_singer").fit(iris.data, iris.target)
    with pytest.raises(ValueError, match=r"crammer_singer.*: fit with .*or certify this model"):
        joint.proof(iris.data, iris.target)
    columns = LinearSVR().fit(iris.data, iris.data[:, :2])
    with pytest.raises(ValueError, match="one column"):
        columns.proof(iris.data, iris.data[:, :2])
    with pytest.raises(ValueError, match="features"):
        LinearSVR().fit(iris.data, iris.target).proof(iris.data[:, :2], iris.target)


def test_the_command_line_proves_and_verifies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    notes = load_bundled("banknote")
    model = LinearSVC(loss="hinge").fit(notes.X, notes.y)
    save(model, tmp_path / "a.model")
    data = str(tmp_path / "a.svm.bz2")
    dump_svmlight_file(notes.X, notes.y, str(tmp_path / "a.svm"), zero_based=False)
    Path(data).write_bytes(bz2.compress((tmp_path / "a.svm").read_bytes()))
    proof = str(tmp_path / "proof.json")
    assert cli.main(["prove", str(tmp_path / "a.model"), data, "-o", proof]) == 0
    assert cli.main(["verify", proof, data]) == 0
    assert "proven: the objective" in capsys.readouterr().out
    broken = Path(proof).read_text().replace('"loss": "hinge"', '"loss": "squared_hinge"')
    Path(proof).write_text(broken)
    assert cli.main(["verify", proof, data]) == 3
    assert "changed after it was made" in capsys.readouterr().out
    Path(proof).write_text("[1, 2]")
    assert cli.main(["verify", proof, data]) == 2
    save(SVC().fit(notes.X, notes.y), tmp_path / "b.model")
    assert cli.main(["prove", str(tmp_path / "b.model"), data, "-o", proof]) == 2
