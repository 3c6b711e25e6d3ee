"""For every test: a kernel cache that is never stale, a hypothesis profile, Python's own Ctrl-C handler."""

from __future__ import annotations

import hashlib
import os
import signal
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def _fresh_cache() -> str:
    """A cache directory named by the whole package's text: Numba itself notices changes in a kernel's own file only."""
    texts = sorted((ROOT / "src" / "saddlesvm").rglob("*.py"))
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in texts)).hexdigest()[:16]
    return str(ROOT / ".cache" / "kernels" / digest)


os.environ.setdefault("NUMBA_CACHE_DIR", _fresh_cache())
if os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1") != "1":
    # Several processes share the cores already. Threads of BLAS that wait for one another without a core of their own
    # took 300 s for a test of 9 s; NumPy, which is loaded below, reads this once.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

from saddlesvm.runtime.small import Most  # noqa: E402

settings.register_profile(
    "laws",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("laws")


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--nightly`` runs the tests that take too long, or compile too much, for every change."""
    parser.addoption("--nightly", action="store_true", help="run the tests that are marked nightly as well")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the tests for the night out, unless they are asked for."""
    if not config.getoption("--nightly"):
        late = [item for item in items if item.get_closest_marker("nightly")]
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]
        config.hook.pytest_deselected(items=late)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Whole files for each process: two that share a file's tests would compile its kernels at the same time, twice."""
    return import_module("xdist.scheduler").LoadFileScheduling(config, log)


COMPILED = ("problem", "rows", "runtime", "solvers")  # rooms whose tests are about compiled code, on little data


@pytest.fixture(autouse=True, scope="module")
def whole_rooms_compiled(request: pytest.FixtureRequest) -> Iterator[None]:
    """No work counts as small in the tests of some rooms, so that they run the kernels."""
    before = Most.values, Most.dense
    if request.path.parent.name in COMPILED and not request.path.name.startswith(("test_small", "test_array")):
        Most.values = Most.dense = -1
    yield
    Most.values, Most.dense = before


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Python's own Ctrl-C handler, also where the tests run in the background; nobody has pressed Ctrl-C so far."""
    monkeypatch.setattr("saddlesvm.runtime.interrupts.InterruptHandler.last_press", float("-inf"))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield signal.default_int_handler
    signal.signal(signal.SIGINT, before)
