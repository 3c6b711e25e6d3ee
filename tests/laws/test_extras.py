"""Whoever lacks a package is told what works: from the source folder, since nothing is published."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from saddlesvm.runtime.extras import how_to_install

ROOT = Path(__file__).resolve().parents[2]
LACKING = {
    "dask": ("dask", "import saddlesvm.dask"),
    "skl2onnx": ("onnx", "import saddlesvm.onnx"),
    "matplotlib": ("lab", "from saddlesvm.lab.charts import new_axes; new_axes()"),
    "pandas": ("lab", "import saddlesvm.lab"),
    "pyarrow": ("files", "from saddlesvm.data import read; read('a.parquet')"),
}


def test_no_text_names_a_distribution_that_does_not_exist() -> None:
    places = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]
    found = [str(file) for file in places if "saddlesvm[" in file.read_text("utf-8")]
    assert found == []


@pytest.mark.parametrize("package", LACKING)
def test_a_missing_package_is_answered_with_its_extra(package: str, tmp_path: Path) -> None:
    extra, use = LACKING[package]
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    code = f"import sys; sys.modules[{package!r}] = None; import saddlesvm; {use}"
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode != 0
    assert how_to_install(extra) in done.stderr


def test_the_extras_that_messages_name_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {extra for extra, _ in LACKING.values()} <= set(project["optional-dependencies"])
