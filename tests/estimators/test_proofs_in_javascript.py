"""The page that checks proofs in a browser agrees with the checker in Python, on tampered proofs too."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_iris

from attack.proofs import changed, resealed, tampered
from saddlesvm import LinearSVC, LinearSVR, checker
from support.forged_proofs import forge

PAGE = Path(__file__).resolve().parents[2] / "docs" / "_static" / "checker.html"
NODE = shutil.which("node")
TAMPERED = 60
FORGED = 100
SUITE = """
const cases = JSON.parse(require("fs").readFileSync(0, "utf8")), fs = require("fs");
console.log(JSON.stringify(cases.map(([proof, data]) =>
  verdict(Buffer.from(proof), data, fs.readFileSync(data)).sentence)));
"""
WORDS = """
const cases = JSON.parse(require("fs").readFileSync(0, "utf8")), fs = require("fs");
console.log(JSON.stringify(cases.map(([proof, data]) =>
  verdict(Buffer.from(proof), data, fs.readFileSync(data)).problem)));
"""
VALUES = """
const given = JSON.parse(require("fs").readFileSync(0, "utf8"));
const kept = make => text => { try { return written(make(text)); } catch (error) { return "refused"; } };
console.log(JSON.stringify([given.decimal.map(kept(ofDecimal)), given.hex.map(kept(ofHex)),
  given.bytes.map(n => hexOf(sha256(new Uint8Array(n).fill(97)))), given.units.map(t => String(expUp(BigInt(t)))),
  given.logs.map(x => String(units(logUp(ofHex(x)))))]));
"""

pytestmark = pytest.mark.skipif(NODE is None or not PAGE.exists(), reason="there is no node, or no manual")


def answer(script: str, given: Any) -> Any:
    """What JavaScript writes after the code of the page, as JSON."""
    code = re.search(r'<script type="text/plain" id="checker">(.*?)</script>', PAGE.read_text(), re.DOTALL)
    assert code is not None
    run = [str(NODE), "-e", code[1] + script]
    found = subprocess.run(run, input=json.dumps(given), capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


def sentence(proof: str, data: str) -> str:
    """What the checker in Python says."""
    try:
        given = json.loads(proof)
        return checker.check(given, *checker.read(data, given["read"]))
    except Exception as error:
        return f"refused: {type(error).__name__}: {error}".splitlines()[0]


def sound(folder: Path) -> list[tuple[Any, str]]:
    """Proofs over losses, penalties, intercepts, splits and formats of data, and the files of their data."""
    iris = load_iris()
    X, y = iris.data[::2], iris.target[::2]
    two, names = (y == 1).astype(float), np.array(["setosa", "é", "virginica"])[y]
    random = np.random.default_rng(0)
    weights = random.uniform(0.5, 2.0, len(y))
    weights[::9] = 0.0
    cases: list[tuple[Any, Any, Any]] = [
        (LinearSVC(loss="hinge"), two, None),
        (LinearSVC(loss="logistic", intercept="free"), two, weights),
        (LinearSVC(loss="squared_hinge", penalty="l1", intercept="none"), two, None),
        (LinearSVC(loss="smooth_hinge", multi_class="ovo", intercept_scaling=3.0), names, None),
        (LinearSVC(loss="hinge", intercept="free", lam=0.1), names, None),
        (LinearSVC(loss="logistic", multi_class="multinomial", intercept="free"), y, None),
        (LinearSVC(loss="logistic", penalty="elasticnet"), two, None),
        (LinearSVR(loss="epsilon_insensitive", epsilon=0.1), X[:, 3], weights),
        (LinearSVR(loss="huber", lam=0.01), X[:, 3], None),
        (LinearSVR(loss="pinball:tau=0.7"), X[:, 3], None),
        (LinearSVR(loss="squared", intercept="free"), X[:, 3], None),
    ]
    found = []
    for number, (model, labels, of_rows) in enumerate(cases):
        model.set_params(random_state=0, tol=1e-6).fit(X, labels, sample_weight=of_rows)
        path, how = folder / f"{number}.csv", {"label": 0, "drop": [2], "header": True}
        if number % 3 == 1 and labels.dtype.kind == "f":
            path, how = folder / f"{number}.svm", {"zero_based": False}
            dump_svmlight_file(X, labels, str(path), zero_based=False)
        else:
            rows = zip(labels.tolist(), X.tolist(), strict=True)
            lines = [f'"{label}";{a!r};id {k};"{b!r}";{c!r};{d!r}' for k, (label, (a, b, c, d)) in enumerate(rows)]
            path.write_text("\r\n".join(["label;a;id;b;c;d", *lines, ""]), encoding="utf-8")
        proof = model.proof(X, labels, sample_weight=of_rows, read=how)
        found.append((json.loads(json.dumps(proof)), str(path)))
    return found


def test_the_page_judges_forged_proofs_as_the_checker_does(tmp_path: Path) -> None:
    cases = []
    for seed in range(FORGED):
        proof, rows, labels = forge(np.random.default_rng([51, seed]))
        path = tmp_path / f"{seed}.svm"
        cells = zip(labels, rows, strict=True)
        lines = [" ".join([one, *(f"{j + 1}:{row.get(j, 0.0)!r}" for j in range(3))]) for one, row in cells]
        path.write_text("\n".join(lines))
        cases.append((json.dumps(proof | {"read": {"zero_based": False}}), str(path)))
    said = [sentence(*case) for case in cases]
    page = answer(SUITE, cases)
    assert [one.split(":")[0] for one in page] == [one.split(":")[0] for one in said]
    held = [k for k, one in enumerate(said) if one.startswith("proven")]
    assert len(held) >= FORGED // 10
    assert [page[k] for k in held] == [said[k] for k in held]


def test_the_page_describes_a_proof_as_the_checker_does(tmp_path: Path) -> None:
    proofs = sound(tmp_path)
    page = answer(WORDS, [(json.dumps(proof), data) for proof, data in proofs])
    for (proof, data), told in zip(proofs, page, strict=True):
        count = len(checker.read(data, proof["read"])[0])
        assert dict(told) == checker.describe(proof, count)


def test_the_page_accepts_and_refuses_what_the_checker_does(tmp_path: Path) -> None:
    proofs, random = sound(tmp_path), np.random.default_rng(1)
    cases = [(json.dumps(proof), data) for proof, data in proofs]
    for number in range(TAMPERED):
        proof, data = proofs[number % len(proofs)]
        made, family = tampered(random, proof)
        if family == "nested":  # so deep that Python cannot write it
            continue
        cases.append((json.dumps(resealed(made) if number % 4 else made), data))
    for proof, data in proofs:
        above = changed(proof, ("claim", 0), lambda one: (float.fromhex(one) * (1.0 - 1e-5)).hex())
        cases.append((json.dumps(resealed(above)), data))
    for name in [*proofs[0][0]["problem"], *proofs[0][0]["parts"][0]]:  # each is needed
        made = json.loads(json.dumps(proofs[0][0]))
        (made["problem"] if name in made["problem"] else made["parts"][0]).pop(name)
        cases.append((json.dumps(resealed(made)), proofs[0][1]))
    cases += [(json.dumps(proofs[0][0]), proofs[1][1]), ("[1, 2]", proofs[0][1]), ("{", proofs[0][1])]
    said = [sentence(*case) for case in cases]
    page = answer(SUITE, cases)
    assert page[: len(proofs)] == said[: len(proofs)]
    assert all(one.startswith("proven: ") for one in page[: len(proofs)])
    assert [one.split(":")[0] for one in page] == [one.split(":")[0] for one in said]
    assert sum(one.startswith("refused: ") for one in said) > TAMPERED // 2
    pairs = list(zip(page, said, strict=True))
    claims = [pair for pair in pairs if "claimed" in pair[1] or "only proven" in pair[1]]
    assert len(claims) >= len(proofs)
    assert all(one == other for one, other in claims)


def kept(make: Callable[[str], float], text: str) -> str:
    """The float that a text stands for, as Python writes it."""
    try:
        found = make(text)
    except (ValueError, OverflowError):
        return "refused"
    return repr(found)


def test_numbers_hashes_and_bounds_of_exponentials_are_those_of_python() -> None:
    random = np.random.default_rng(2)
    drawn = random.normal(size=200) * 10.0 ** random.integers(-320, 300, 200)
    near = [f"{int(x.as_integer_ratio()[0]) * 2 + 1}e-20" for x in random.normal(size=50)]
    decimal = [
        *map(repr, drawn.tolist()),
        *near,
        *[f"{x:.30e}" for x in drawn],
        "9007199254740993.00000000000000000001",
    ]
    decimal += ["1_0.5", " 7 ", "+1.", ".5", "", "0x10", "1e", "4.9e-324", "2e-324", "1.7976931348623159e3", "-0.5e+3"]
    hexes = [*map(float.hex, drawn.tolist()), "0x1.fffffffffffff8p+0", "1.8", "0x.8p1", "0x1p-1075", "0x1.8p-1075"]
    hexes += ["0x1p1024", "0x1.fffffffffffff7p1023", "0x1.fffffffffffff8p1023", "", "0x", "nan", "1" * 999, "-0x3P-4"]
    units = [str(int(x * checker.ONE)) for x in random.uniform(-70.0, 70.0, 40)]
    logs = [float(x).hex() for x in 10.0 ** random.uniform(-26.0, 20.0, 40)]
    counts = [0, 1, 55, 56, 63, 64, 119, 120, 1000]
    given = {"decimal": decimal, "hex": hexes, "bytes": counts, "units": units, "logs": logs}
    floats, of_hex, hashes, powers, heights = answer(VALUES, given)
    assert floats == [kept(float, one) for one in decimal]
    assert of_hex == [kept(lambda one: float(checker.numbers([one], 1, "it")[0]), one) for one in hexes]
    assert hashes == [hashlib.sha256(b"a" * n).hexdigest() for n in counts]
    assert powers == [str(checker.exp_up(int(t))) for t in units]
    own = [checker.units_up(checker.log_up(checker.Fraction(float.fromhex(x)))) for x in logs]
    differ = [int(a) - b for a, b in zip(heights, own, strict=True)]
    assert max(map(abs, differ)) <= checker.ONE >> 100  # logarithms of two libraries suggest different floats


def test_the_page_asks_nothing_of_a_network() -> None:
    text = PAGE.read_text()
    assert "default-src 'none'" in text
    assert not re.search(r"https?:|\bfetch\(|XMLHttpRequest|\bimport\b|src=", text)
