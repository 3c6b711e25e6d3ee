"""The page for contributors: its files are there, its example runs, its rooms are those of the package."""

from __future__ import annotations

import importlib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from saddlesvm.problem.losses import LOSSES

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text()


def test_every_file_that_is_named_is_there() -> None:
    named = set(re.findall(r"\]\(([^)#:]+)\)", PAGE)) | set(re.findall(r"`((?:tests|src)/[\w/.]+)`", PAGE))
    assert len(named) > 10
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_each_extension_is_one_file_that_a_test_imports() -> None:
    table = re.findall(r"\| (\d) \| \[.*?\]\((.*?)\) \| \[.*?\]\((.*?)\) \|", PAGE)
    assert len(table) == 5
    for files, example, test in table:
        assert files == "1"
        text = (ROOT / example).read_text()
        assert "support" not in re.findall(r"^(?:from|import) (\w+)", text, re.M), f"{example} needs another file"
        assert f"support.{Path(example).stem}" in (ROOT / test).read_text()


def test_the_picture_shows_the_rooms_in_their_order() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(one for one in contracts if one["type"] == "layers")["layers"]
    rooms = [room for layer in layers for room in layer.split(" : ") if room not in ("dask", "onnx")]  # doors, no rooms
    [picture] = re.findall(r"```text\n(.*?)```", PAGE, re.S)
    assert re.findall(rf"(?<=  )({'|'.join(rooms)})(?=  )", picture) == rooms


@pytest.fixture
def no_loss_stays() -> Iterator[None]:
    """The register of losses as it was, afterwards."""
    before = dict(LOSSES)
    yield
    LOSSES.clear()
    LOSSES.update(before)


@pytest.mark.usefixtures("no_loss_stays")
def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    assert blocks
    for k, block in enumerate(blocks):
        (tmp_path / f"contributed_{k}.py").write_text(block)
    monkeypatch.syspath_prepend(str(tmp_path))
    for k in range(len(blocks)):
        importlib.import_module(f"contributed_{k}")
