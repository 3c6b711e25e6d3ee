"""Pipes, sockets and devices are refused in words, before anything is read from them or written to them."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddlesvm import LinearSVC
from saddlesvm.cli import main
from saddlesvm.data import DataError, Store, convert, read
from saddlesvm.data.model_file import load_model, save_model
from saddlesvm.fit.checkpoint import Checkpoint
from saddlesvm.models.liblinear_models import save_liblinear
from saddlesvm.models.persistence import load, save

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes there")
X, Y = np.array([[0.0], [1.0], [2.0]]), np.array([0, 0, 1])


@pytest.fixture
def special(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A path that is none of a file."""
    path = tmp_path / "special.store"
    if request.param == "pipe":
        os.mkfifo(path)
        yield path
    elif request.param == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))
            yield path
    else:
        path.symlink_to("/dev/zero")
        yield path


def header_of_a_store(path: Path) -> None:
    """Open a store whose header is this path."""
    folder = path.with_name("rows.store")
    folder.mkdir()
    (folder / "store.json").symlink_to(path)
    Store(folder)


USES: dict[str, Callable[[Path], Any]] = {
    "load_model": load_model,
    "load": load,
    "save_model": lambda path: save_model(path, "kind", {}),
    "save": lambda path: save(LinearSVC().fit(X, Y), path),
    "save_liblinear": lambda path: save_liblinear(LinearSVC().fit(X, Y), path),
    "checkpoint": Checkpoint,
    "fit": lambda path: LinearSVC(checkpoint=path).fit(X, Y),
    "read": read,
    "convert": lambda path: convert(path, path.with_name("new.store")),
    "header": header_of_a_store,
}


@pytest.mark.parametrize("special", ["pipe", "socket", "device"], indirect=True)
@pytest.mark.parametrize("use", USES)
def test_what_is_no_file_is_refused(special: Path, use: str) -> None:
    kind = "pipe" if special.is_fifo() else "socket" if special.is_socket() else "device"
    with pytest.raises(DataError, match=f"is a {kind}; "):
        USES[use](special)


@pytest.mark.parametrize("special", ["pipe", "device"], indirect=True)
@pytest.mark.parametrize(
    "words",
    [
        ("train", "banknote", "--model"),
        ("train", "banknote", "--test"),
        ("train",),
        ("info",),
        ("path", "banknote", "--model"),
    ],
)
def test_a_command_refuses_it_in_one_line(
    special: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, str(special)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and f"{special}: is a " in said


@pytest.mark.parametrize("special", ["pipe", "device"], indirect=True)
@pytest.mark.parametrize("command", ["predict", "certify"])
def test_a_command_refuses_it_for_a_model(special: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, str(special), "banknote"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and f"{special}: is a " in said


def test_a_link_to_nothing_is_followed_or_named_with_its_end(tmp_path: Path) -> None:
    model = LinearSVC().fit(X, Y)
    writers: dict[str, Callable[[Path], object]] = {
        "t.store": lambda path: Store.create(path, X),
        "t.model": lambda path: save(model, path),
    }
    for name, write in writers.items():
        end = tmp_path / "end" / name
        link = tmp_path / name
        link.symlink_to(end)
        with pytest.raises(DataError, match=f"{name}: cannot be written.*is a link to .*end/{name}"):
            write(link)
        end.parent.mkdir(exist_ok=True)
        write(link)
        assert link.is_symlink() and end.exists()
        shutil.rmtree(end.parent)
