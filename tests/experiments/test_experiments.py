"""The published experiments: they run, they refuse, they can be interrupted."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pandas")
pytest.importorskip("matplotlib")

import experiments
import saddlesvm
from experiments import HOMES, datasets
from experiments.__main__ import main
from experiments.experiment import Options, run_experiments
from experiments.pegasos_bound import PegasosBound
from saddlesvm import lab
from saddlesvm.data import DataError
from saddlesvm.lab import Chart, TextTable


def make_files(folder: Path) -> Path:
    """A data folder in the published layout, with made-up values."""
    random = np.random.default_rng(0)
    names = np.array(["eosinophil", "lymphocyte", "monocyte", "neutrophil"])
    n = 4000
    label = random.permutation(np.arange(n) % 4)
    images = random.integers(0, 256, (n, 8, 8), dtype=np.uint8)
    images[label == 1, 2:4, 2:4] //= 3
    np.savez(
        folder / "blood-cells.npz", images=images, label=label.astype(np.uint8), label_names=names,
        split=(np.arange(n) // 4 % 5 == 0).astype(np.uint8), source=(np.arange(n) // 16).astype(np.int16),
    )  # fmt: skip
    for name in ("mnist", "fashion-mnist"):
        (folder / name).mkdir()
        for part, rows in (("train", 8000), ("t10k", 300)):
            pixels = random.integers(0, 40, (rows, 28, 28), dtype=np.uint8)
            y = random.permutation(np.arange(rows) % 10).astype(np.uint8)
            for digit in range(10):
                pixels[y == digit, 2 * digit : 2 * digit + 6, 4:20] += 150
            write_idx(folder / name / f"{part}-images-idx3-ubyte.gz", pixels)
            write_idx(folder / name / f"{part}-labels-idx1-ubyte.gz", y)
    return folder


def write_idx(path: Path, values: np.ndarray) -> None:
    import gzip

    head = bytes([0, 0, 8, values.ndim]) + b"".join(size.to_bytes(4, "big") for size in values.shape)
    path.write_bytes(gzip.compress(head + values.tobytes(), 1))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_files(tmp_path_factory.mktemp("data"))


@pytest.mark.parametrize("name", HOMES)
def test_experiments_run_quickly(name, folder, tmp_path):
    found = run_experiments([name], Options(folder, quick=True), reports=tmp_path)[name]
    assert found.verdict[0].startswith("Quick run")
    assert len(found.verdict) > 1
    assert (tmp_path / f"{name}.html").stat().st_size > 10_000
    kinds = {type(item) for section in found.sections for item in section.items}
    assert {TextTable, Chart} <= kinds


def test_experiments_use_the_public_names_and_the_lab_only():
    """Names of saddlesvm, its data and losses, and what the lab exports; no module below them."""
    public = {
        "saddlesvm": {*saddlesvm.__all__},
        "saddlesvm.data": {*saddlesvm.data.__all__},
        "saddlesvm.losses": {*saddlesvm.losses.__all__},
        "saddlesvm.lab": {*vars(lab)},
        "saddlesvm.lab.figures": {*lab.figures.__all__},
    }
    for path in sorted(Path(experiments.__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("saddlesvm"):
                taken = {alias.name for alias in node.names}
                assert taken <= public.get(node.module, set()), f"{path.name}: {node.module}: {taken}"


def test_unknown_experiments_and_missing_data_are_refused(tmp_path, monkeypatch, capsys):
    with pytest.raises(SystemExit):
        main(["pegasus"])
    assert "there is no experiment 'pegasus': use one of blood-cells, " in capsys.readouterr().err
    assert main(["blood-cells", "--data", str(tmp_path), "--quick"]) == 2
    said = capsys.readouterr().err
    assert "blood-cells.npz" in said and said.count("\n") == 1
    with pytest.raises(DataError, match="train-images"):
        datasets.images("mnist", "train", tmp_path)

    def offline(*arguments, **options):
        raise OSError("no network")

    monkeypatch.setenv("SADDLESVM_CACHE", str(tmp_path))
    monkeypatch.setattr("sklearn.datasets.fetch_openml", offline)
    with pytest.raises(DataError, match="OpenML cannot be reached"):
        datasets.images("mnist", "train", None)


@pytest.mark.usefixtures("keyboard")
def test_an_interrupted_experiment_reports_what_is_done(tmp_path, monkeypatch):
    import signal

    monkeypatch.setattr(PegasosBound, "measure_size", lambda self, n: signal.raise_signal(signal.SIGINT))
    assert main(["pegasos-bound", "--quick", "--quiet", "--reports", str(tmp_path)]) == 130
    assert "Interrupted before" in (tmp_path / "pegasos-bound.html").read_text()
