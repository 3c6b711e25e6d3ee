"""Mutants of the certificate: every small change of its text is to be noticed by a test.

    python -m tests.attack.mutants [certificate sums ...] [--kept FILE] [--count N --seed S]

A mutant is one of the files in :data:`FILES` with one operator, number, comparison or condition changed (Cosmic Ray
makes them). Its tests run in a process that has the packages loaded and reads the changed text in the place of the
file, without compilation, until one fails: first those that have noticed most mutants for their time. A mutant that no
test notices survives: it is killed by a new test, or excused, by its lines and with a reason, in :data:`EXCUSED`. Needs
``pip install cosmic-ray``.
"""

from __future__ import annotations

import argparse
import ast
import importlib.abc
import importlib.util
import json
import os
import random
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from .excused import EXCUSED

ROOT = Path(__file__).resolve().parents[2]
PROBLEM = ROOT / "src" / "saddlesvm" / "problem"
TESTS = tuple(
    f"tests/problem/test_{name}.py" for name in ("certificate", "exact_certificates", "rounding", "intercepts")
)
FILES: dict[str, tuple[str, ...]] = {
    "certificate": TESTS,
    "sums": TESTS,
    "proven_sums": (*TESTS, "tests/problem/test_short_sums.py"),
    "rounding": (*TESTS, "tests/problem/test_short_sums.py"),
}
# Of the changes that a mutation tool knows those that a slip of the pen makes; `|` is in annotations only.
OPERATORS = (
    r"NumberReplacer|AddNot|RemoveDecorator|ReplaceAndWithOr|ReplaceOrWithAnd|ReplaceTrueWithFalse|ReplaceFalseWithTrue"
    r"|ZeroIterationForLoop|ReplaceUnaryOperator_(USub_UAdd|Delete_USub|Delete_Not)"
    r"|ReplaceBinaryOperator_(Add_Sub|Sub_Add|Mul_Div|Div_Mul)"
    r"|ReplaceComparisonOperator_(Lt_LtE|Lt_GtE|LtE_Lt|LtE_Gt|Gt_GtE|Gt_LtE|GtE_Gt|GtE_Lt|Eq_NotEq|NotEq_Eq|Is_IsNot|IsNot_Is)"
)
SLOW = 20.0  # times of the unchanged text's tests after which a mutant hangs, and so is noticed
# Not what needs compiled code; of one test that takes long without it, a few cases.
SHORT = "not compiled and not vector and (not as_good_as_any or (0.9 and 30.0 and (Huber or SquaredHinge)))"


@dataclass(frozen=True)
class Mutant:
    """A changed text of a file: the lines that the change took and put in their place."""

    file: str
    operator: str
    number: int
    line: int
    before: str
    after: str

    @property
    def excuse(self) -> str:
        """Why no test can notice it; "" where one should."""
        return EXCUSED.get((self.file, self.before, self.after), "")


class Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives a module another text."""

    def __init__(self, name: str, path: Path, text: str) -> None:
        self.name, self.path, self.text = name, path, text

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """The module with the other text; None for any other module."""
        return importlib.util.spec_from_loader(name, self, origin=str(self.path)) if name == self.name else None

    def exec_module(self, module: Any) -> None:
        """Run the other text."""
        module.__file__ = str(self.path)
        exec(compile(self.text, str(self.path), "exec"), module.__dict__)


@dataclass
class Course:
    """A pytest plugin: orders the tests by what they noticed for their time; notes their seconds, and what failed."""

    seconds: dict[str, float] = field(default_factory=dict)
    noticed: Counter[str] = field(default_factory=Counter)
    failed: str = ""

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Those that noticed most for their time first, then the quickest."""
        items.sort(key=lambda item: self.seconds.get(item.nodeid, 0.0))
        items.sort(key=lambda item: -self.noticed[item.nodeid] / (0.01 + self.seconds.get(item.nodeid, 0.0)))

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note the seconds, or the failure."""
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        self.failed = report.nodeid if report.failed else self.failed


def mutants(file: str) -> Iterator[tuple[Mutant, str]]:
    """Each mutant of a file, with its text; those whose text means the same are left out."""
    ways, mutating = import_module("cosmic_ray.plugins"), import_module("cosmic_ray.mutating")
    positions = import_module("cosmic_ray.ast")
    whole = (PROBLEM / f"{file}.py").read_text()
    tree, seen = positions.get_ast(whole), {ast.dump(ast.parse(whole))}
    for name in sorted(ways.operator_names()):
        if not re.fullmatch(f"core/({OPERATORS})", name):
            continue
        operator = ways.get_operator(name)()
        count = sum(len(list(operator.mutation_positions(node))) for node in positions.ast_nodes(tree))
        for number in range(count):
            text = mutating.MutationVisitor.mutate_code(whole, operator, number)
            meaning = ast.dump(ast.parse(text))
            if meaning in seen:
                continue
            seen.add(meaning)
            yield described(file, name.removeprefix("core/"), number, whole, text), text


def described(file: str, operator: str, number: int, whole: str, text: str) -> Mutant:
    """What a mutant changed."""
    old, new = whole.splitlines(), text.splitlines()
    first = next((k for k, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), len(new) - 1)
    last = next(k for k, pair in enumerate(zip(old[::-1], new[::-1], strict=False)) if pair[0] != pair[1])
    before, after = old[first : len(old) - last], new[first : len(new) - last]
    return Mutant(file, operator, number, first + 1, " ".join(map(str.strip, before)), " ".join(map(str.strip, after)))


def in_child(work: Callable[[], int], seconds: float) -> int:
    """What a function returned in a process of its own; -1 where it took too long, or ended the process."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            with open(os.devnull, "w") as silence, redirect_stdout(silence), redirect_stderr(silence):
                code = work()
        finally:
            os._exit(code)
    end = time.monotonic() + seconds
    while (found := os.waitpid(child, os.WNOHANG))[0] == 0:
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return -1
        time.sleep(0.02)
    return os.waitstatus_to_exitcode(found[1])


def tested(file: str, text: str | None, course: Course, told: Path) -> int:
    """pytest's exit code for a text of a file, None for its own; the course of the tests is told in a file."""
    pytest = import_module("pytest")
    if text is not None:
        sys.meta_path.insert(0, Changed(f"saddlesvm.problem.{file}", PROBLEM / f"{file}.py", text))
    words = ["-x", "-q", "-p", "no:cacheprovider", "-k", SHORT, *FILES[file]]
    code = int(pytest.main(words, plugins=[course]))
    told.write_text(json.dumps([course.failed, course.seconds]))
    return code


def campaign(file: str, chosen: Callable[[list[Any]], list[Any]], kept: Path, told: Path) -> Counter[str]:
    """Test the mutants of a file; what became of each is appended to `kept`."""
    began, course = time.monotonic(), Course()
    if in_child(lambda: tested(file, None, course, told), 3600.0):
        raise RuntimeError(f"the tests of {file}.py fail without any change")
    course.seconds, patience = json.loads(told.read_text())[1], SLOW * (time.monotonic() - began)
    outcomes: Counter[str] = Counter()
    for mutant, text in chosen(list(mutants(file))):
        told.unlink(missing_ok=True)
        code = in_child(lambda text=text: tested(file, text, course, told), patience)  # type: ignore[misc]
        outcome = {0: "excused" if mutant.excuse else "survived", -1: "hung"}.get(code, "killed")
        course.noticed.update([json.loads(told.read_text())[0]] if code == 1 and told.exists() else [])
        outcomes[outcome] += 1
        with kept.open("a") as lines:
            lines.write(json.dumps(asdict(mutant) | {"outcome": outcome}) + "\n")
        if outcome == "survived":
            print(f"{file}.py:{mutant.line} survived\n  - {mutant.before}\n  + {mutant.after}", flush=True)
    return outcomes


def main() -> int:
    """Run the campaign; 1 where a mutant survives that is not excused."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack.mutants", description=__doc__)
    parser.add_argument("files", nargs="*", choices=[*FILES, []], help="files of the room problem; all by default")
    parser.add_argument("--kept", type=Path, default=Path("mutants.jsonl"), help="what became of each is appended")
    parser.add_argument("--count", type=int, help="so many of each file, drawn")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    os.environ.update(NUMBA_DISABLE_JIT="1", OMP_NUM_THREADS="1")
    os.chdir(ROOT)
    for name in ("numba", "scipy.sparse", "scipy.optimize", "scipy.special", "sklearn.base", "_pytest.python"):
        import_module(name)
    survived = 0
    for file in given.files or FILES:

        def chosen(found: list[Any]) -> list[Any]:
            return random.Random(given.seed).sample(found, min(given.count or len(found), len(found)))

        with tempfile.TemporaryDirectory() as folder:
            outcomes = campaign(file, chosen, given.kept, Path(folder) / "course")
        survived += outcomes["survived"]
        print(f"{file}.py: {outcomes.total()} mutants, {dict(outcomes)}", flush=True)
    return int(survived > 0)


if __name__ == "__main__":
    sys.exit(main())
