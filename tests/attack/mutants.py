"""Mutants of the certificate and the rows: every small change of their text is to be noticed by a test.

    python -m tests.attack.mutants [certificate sums ...] [--kept FILE] [--count N --seed S | --survivors]

A mutant is one of the files in :data:`FILES` with one operator, number, comparison or condition changed (Cosmic Ray
makes them). Its tests run in a process that has the packages loaded and reads the changed text in the place of the
file, without compilation, until one fails: first those that have noticed most mutants for their time. Of a change in
the body of a function, only tests that execute the changed statement run (which do is measured once for a file), and of
each a few cases. Tests that take long without compilation are left out. A mutant that no test notices survives: it is
killed by a new test, or excused, by its lines and with a reason, in :data:`EXCUSED`. Needs ``pip install cosmic-ray``.
"""

from __future__ import annotations

import argparse
import ast
import gc
import importlib.abc
import importlib.util
import json
import math
import os
import random
import re
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from copy import copy
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from .excused import EXCUSED
from .executed import body_of, executed, statement_at
from .some import by_test, evenly
from .tally import Tally

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "saddlesvm"
RECORDS = Path(__file__).with_name("held.jsonl")
TESTS = tuple(
    f"tests/problem/test_{name}.py"
    for name in ("certified_points", "exact_certificates", "certificate", "rounding", "intercepts")
)
SHORT_SUMS = (*TESTS, "tests/problem/test_short_sums.py")
KERNELS = ("tests/solvers/test_kernel_solvers.py", "tests/solvers/test_kernel_finish.py")
JOINT = tuple(
    f"tests/{name}.py"
    for name in (
        "problem/test_joint_losses",
        "problem/test_penalties",
        "multiclass/test_crammer_singer",
        "multiclass/test_multinomial",
        "multiclass/test_top_k",
    )
)
OF_JOINT_CERTIFICATES = (
    "tests/multiclass/test_crammer_singer.py::test_weak_duality_of_the_joint_problem",
    "tests/problem/test_joint_losses.py",
)
LOSSES = ("tests/problem/test_losses.py", "tests/problem/test_small_twins.py")
OF_ROOMS = {"problem": ("tests/problem",), "rows": ("tests/rows", "tests/problem/test_small_twins.py")}
REFUSED = "test_rows_of_a_type_that_is_not_registered_are_refused_in_words"
CLOSER: dict[str, tuple[str, ...]] = {  # tests that are nearer to a file than those of its room
    **dict.fromkeys(("certificate", "responses"), (*TESTS, *OF_JOINT_CERTIFICATES)),
    "sums": (*TESTS, LOSSES[1]),
    "proven_sums": SHORT_SUMS,
    "rounding": SHORT_SUMS,
    "short_sums": SHORT_SUMS[-1:],
    "problem": (TESTS[2], TESTS[4], "tests/problem/test_parts_of_problems.py"),
    "terms": (TESTS[2], TESTS[4], *LOSSES),
    "intercepts": (TESTS[4], "tests/problem/test_small_twins.py"),
    "first_weight": ("tests/problem/test_first_weight.py",),
    **dict.fromkeys(("penalties", "regularizer"), ("tests/problem/test_penalties.py", TESTS[0])),
    **dict.fromkeys(("arithmetic", "margin_losses", "residual_losses"), LOSSES),
    **dict.fromkeys(("loss", "losses"), (*LOSSES, "tests/estimators/test_own_loss.py")),
    **dict.fromkeys(("kernel", "kernel_certificate", "kernel_sums"), KERNELS),
    **dict.fromkeys(("crammer_singer", "joint_losses", "multinomial", "multinomial_kernels"), JOINT),
    "nu": ("tests/estimators/test_svm.py", "tests/laws/test_one_class_claims.py", KERNELS[0]),
    "path_bounds": ("tests/estimators/test_certified_path.py", "tests/estimators/test_path_bounds.py"),
    "rescaling": (*TESTS, "tests/fit/test_improved.py", "tests/fit/test_heavy_starts.py"),
    "rows/matrix": (*OF_ROOMS["rows"], f"tests/laws/test_own_rows.py::{REFUSED}"),
    "fingerprint": ("tests/fit/test_checkpoint.py",),
}
FILES: dict[str, tuple[str, ...]] = {
    name: CLOSER.get(name, tests)
    for room, tests in OF_ROOMS.items()
    for path in sorted((SOURCE / room).glob("[!_]*.py"))
    for name in [path.stem if room == "problem" else f"{room}/{path.stem}"]
}


def path_of(file: str) -> Path:
    """The path of a file in :data:`FILES`; those that name no room are in problem/."""
    return SOURCE / (f"{file}.py" if "/" in file else f"problem/{file}.py")


def module_of(file: str) -> str:
    """The name of its module."""
    return ".".join(path_of(file).relative_to(SOURCE.parent).with_suffix("").parts)


# Of the changes that a mutation tool knows those that a slip of the pen makes; `|` is in annotations only.
OPERATORS = (
    r"NumberReplacer|AddNot|RemoveDecorator|ReplaceAndWithOr|ReplaceOrWithAnd|ReplaceTrueWithFalse|ReplaceFalseWithTrue"
    r"|ZeroIterationForLoop|ReplaceUnaryOperator_(USub_UAdd|Delete_USub|Delete_Not)"
    r"|ReplaceBinaryOperator_(Add_Sub|Sub_Add|Mul_Div|Div_Mul)"
    r"|ReplaceComparisonOperator_(Lt_LtE|Lt_GtE|LtE_Lt|LtE_Gt|Gt_GtE|Gt_LtE|GtE_Gt|GtE_Lt|Eq_NotEq|NotEq_Eq|Is_IsNot|IsNot_Is)"
)
KEPT = 250  # letters of a change by which records know it
LONGEST = 7.5  # seconds of the processor for a test without any change, traced; tests that take longer are left out
CASES = 9  # of a test, at most, unless every case is asked for, or all together take less than
LONG = 1.5  # seconds
FEW = 2  # tests that may fail without any change, such as one that measures memory
SLOW = 3.0  # times of the unchanged text's tests, in seconds of the processor, after which a mutant hangs
ERROR = 99  # exit code of a process that fails in the campaign itself
# Not what needs compiled code, nor what takes long without it; of losses that differ little, one.
SHORT = " and ".join(
    f"not {name}"
    for name in (
        "compiled",
        "vector",
        "as_good_as_any",
        "constant_targets",
        "Smooth",
        "Expectile",
        "Pinball",
        "Absolute",
    )
)


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


class TooLong(BaseException):
    """A test has taken too long."""


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


class Tests:
    """A pytest plugin: hands the collected tests to a function, in the place of running them; stops long ones."""

    most = LONGEST  # seconds of the processor for a test
    late = False  # whether the last test was stopped

    def __init__(self, work: Callable[[list[Any]], None]) -> None:
        self.work = work

    def pytest_runtestloop(self, session: Any) -> bool:
        """Hand the tests over."""
        self.work(session.items)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: Any) -> Iterator[None]:
        """Let an alarm go off while the test runs."""
        signal.signal(signal.SIGPROF, stop)
        signal.setitimer(signal.ITIMER_PROF, Tests.most)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)


def stop(number: int, frame: Any) -> None:
    """What the alarm calls."""
    Tests.late = True
    raise TooLong


def mutants(file: str) -> Iterator[tuple[Mutant, str]]:
    """Each mutant of a file, with its text; those whose text means the same are left out."""
    ways, positions = import_module("cosmic_ray.plugins"), import_module("cosmic_ray.ast")
    whole = path_of(file).read_text()
    tree, seen = positions.get_ast(whole), {ast.dump(ast.parse(whole))}
    nodes = list(positions.ast_nodes(tree))
    for name in sorted(ways.operator_names()):
        if not re.fullmatch(f"core/({OPERATORS})", name):
            continue
        operator = ways.get_operator(name)()
        places = [(node, k) for node in nodes for k, _ in enumerate(operator.mutation_positions(node))]
        for number, (node, index) in enumerate(places):
            with changed(node, operator, index):
                text = tree.get_code()
            meaning = ast.dump(ast.parse(text))
            if meaning in seen:
                continue
            seen.add(meaning)
            yield described(file, name.removeprefix("core/"), number, whole, text), text


@contextmanager
def changed(node: Any, operator: Any, index: int) -> Iterator[None]:
    """A node of a tree as an operator leaves it; as it was, at the end."""
    before = [
        (one, name, copy(getattr(one, name)))
        for one in with_descendants(node)
        for name in ("children", "value")
        if hasattr(one, name)
    ]
    beside = node.parent.children if node.parent else []
    place = next((k for k, one in enumerate(beside) if one is node), None)
    other = operator.mutate(node, index)
    if place is not None:
        beside[place : place + 1] = [] if other is None else [other]
    try:
        yield
    finally:
        if place is not None:
            beside[place : place + (other is not None)] = [node]
        for one, name, value in before:
            setattr(one, name, value)


def with_descendants(node: Any) -> Iterator[Any]:
    """A node of a tree, and all below it."""
    yield node
    for child in getattr(node, "children", ()):
        yield from with_descendants(child)


def described(file: str, operator: str, number: int, whole: str, text: str) -> Mutant:
    """What a mutant changed."""
    old, new = whole.splitlines(), text.splitlines()
    first = next((k for k, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), len(new) - 1)
    last = next(k for k, pair in enumerate(zip(old[::-1], new[::-1], strict=False)) if pair[0] != pair[1])
    before, after = old[first : len(old) - last], new[first : len(new) - last]
    return Mutant(file, operator, number, first + 1, " ".join(map(str.strip, before)), " ".join(map(str.strip, after)))


def in_child(work: Callable[[], int], seconds: float = math.inf, silent: bool = True) -> int:
    """What a function returned in a process of its own; a negative number where that took too long, or crashed."""
    child = os.fork()
    if child == 0:
        code = ERROR
        try:
            if math.isfinite(seconds):
                resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time() + seconds),) * 2)
            with open(os.devnull, "w") as silence, ExitStack() as stack:
                if silent:
                    stack.enter_context(redirect_stdout(silence))
                    stack.enter_context(redirect_stderr(silence))
                code = work()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def first_failure(tests: list[Any], seconds: dict[str, float]) -> str:
    """The name of the first test that fails or is stopped, "" where none does; the seconds of each are noted, as
    infinite where it was stopped.
    """
    protocol = import_module("_pytest.runner").runtestprotocol
    for test in tests:
        Tests.late = False
        reports = protocol(test, log=False, nextitem=None)
        seconds[test.nodeid] = math.inf if Tests.late else sum(report.duration for report in reports)
        if any(report.failed for report in reports):
            return str(test.nodeid)
    return ""


def with_tests(file: str, work: Callable[[list[Any]], None], few: bool) -> int:
    """Collect the tests of a file, and hand them to a function, or `few` cases of each; pytest's exit code."""
    which = SHORT if FILES[file][: len(LOSSES)] != LOSSES else "not compiled and not vector"
    words = ["-x", "-q", "-p", "no:cacheprovider", "-k", which, *FILES[file]]

    def chosen(tests: list[Any]) -> None:
        work([test for cases in by_test(tests) for test in evenly(cases)] if few else tests)

    return int(pytest.main(words, plugins=[Tests(chosen)]))


def bodies(text: str) -> list[range]:
    """The lines of the bodies of functions: what is changed there is changed in a module that is loaded already."""
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    return [range(node.body[0].lineno, (node.end_lineno or 0) + 1) for node in functions]


def codes(code: CodeType) -> Iterator[CodeType]:
    """A compiled text with all that is compiled within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def loaded(file: str) -> list[FunctionType]:
    """The functions of a loaded module, those of its classes included."""
    path = str(path_of(file))
    return [one for one in gc.get_objects() if isinstance(one, FunctionType) and one.__code__.co_filename == path]


def change_loaded(functions: list[FunctionType], file: str, text: str) -> None:
    """Give functions the bodies that they have in another text of their file."""
    compiled = compile(text, str(path_of(file)), "exec")
    new = {(one.co_qualname, one.co_firstlineno): one for one in codes(compiled)}
    for one in functions:
        one.__code__ = new[one.__code__.co_qualname, one.__code__.co_firstlineno]


@dataclass
class Campaign:
    """The mutants of a file and their tests; what became of each is appended to `kept`.

    Bodies of functions are changed in a process that has collected the tests; for other changes, such as decorators
    and constants, which other modules may have imported, a process loads everything anew.
    """

    file: str
    found: list[tuple[Mutant, str]]
    kept: Path
    course: Path  # a file for the members below
    few: bool = False  # cases of a test are collected
    every: bool = False  # case of a test runs that is collected
    seconds: dict[str, float] = field(default_factory=dict)  # of each test
    noticed: Counter[str] = field(default_factory=Counter)  # how many mutants each test has noticed
    lines: dict[str, list[int]] = field(default_factory=dict)  # of the file, that each test executes

    def run(self) -> None:
        """Test the mutants."""
        within = bodies(path_of(self.file).read_text())
        inside = [
            pair
            for pair in self.found
            if any(pair[0].line in lines for lines in within) and pair[0].operator != "RemoveDecorator"
        ]  # a function without its decorator begins at another line, by which loaded ones are found
        if in_child(lambda: self.with_tests(lambda tests: self.change_bodies(tests, inside)), silent=False):
            raise RuntimeError(f"the campaign of {self.file}.py failed, or its tests without any change")
        self.recall()
        whole = path_of(self.file).read_text()
        for mutant, text in self.found:
            if (mutant, text) not in inside:
                self.note(mutant, in_child(partial(self.anew, text, body_of(whole, mutant.line)), self.patience))

    def with_tests(self, work: Callable[[list[Any]], None]) -> int:
        """Collect the tests, and hand them to a function; pytest's exit code."""
        return with_tests(self.file, work, self.few)

    @property
    def patience(self) -> float:
        return SLOW * sum(filter(math.isfinite, self.seconds.values()))

    def change_bodies(self, tests: list[Any], chosen: list[tuple[Mutant, str]]) -> None:
        """Test mutants of bodies, in processes that have the tests already; first the unchanged text."""
        self.recall()
        self.measure([test for test in tests if test.nodeid not in self.seconds])
        functions, whole = loaded(self.file), path_of(self.file).read_text()
        gc.freeze()  # so that the processes that follow share what is loaded

        def with_text(text: str, tests: list[Any]) -> int:
            change_loaded(functions, self.file, text)
            return self.code_of(tests)

        for mutant, text in chosen:
            reached = self.reaching(tests, statement_at(whole, mutant.line))
            self.note(mutant, in_child(partial(with_text, text, reached), self.patience) if reached else 0)

    def reaching(self, tests: list[Any], lines: range) -> list[Any]:
        """The tests that execute one of these lines."""
        return [test for test in tests if not {*lines}.isdisjoint(self.lines.get(test.nodeid, ()))]

    def anew(self, text: str, body: range | None) -> int:
        """Load another text of the file, and test it, by the tests that execute a line of a body where one is given; 1
        where a test notices it.
        """
        if module_of(self.file) in sys.modules:
            raise RuntimeError(f"{self.file}.py is loaded already, so another text of it cannot be")
        sys.meta_path.insert(0, Changed(module_of(self.file), path_of(self.file), text))
        codes: list[int] = []
        code = self.with_tests(
            lambda tests: codes.append(self.code_of(tests if body is None else self.reaching(tests, body)))
        )
        return codes[0] if codes else code

    def measure(self, tests: list[Any]) -> None:
        """Note the seconds and the lines of each test, in a process of its own, so that nothing is cached that another
        test has computed; those that fail without any change are left out.
        """
        failed = []
        for test in tests:
            if in_child(partial(self.measure_one, test)):
                failed.append(test.nodeid)
            self.recall()
        print(*(f"left out, because it fails without any change: {name}" for name in failed), sep="\n", flush=True)
        if len(failed) > FEW:
            raise RuntimeError(f"the tests of {self.file}.py fail without any change")

    def measure_one(self, test: Any) -> int:
        """Note the seconds and the lines of a test; 1 where it fails."""
        with executed(path_of(self.file)) as lines:
            failed = first_failure([test], self.seconds) != "" and not Tests.late
        if failed:
            self.seconds[test.nodeid] = math.inf
        self.lines[test.nodeid] = sorted(lines)
        self.keep_course()
        return int(failed)

    def code_of(self, tests: list[Any]) -> int:
        """1 where a test fails; those go first that noticed most for their time, then the quickest."""
        tests = [test for test in tests if math.isfinite(self.seconds.get(test.nodeid, 0.0))]
        tests = [test for cases in by_test(tests) for test in (cases if self.all_of(cases) else evenly(cases, CASES))]
        tests.sort(key=lambda test: self.seconds.get(test.nodeid, 0.0))
        tests.sort(key=lambda test: -self.noticed[test.nodeid] / (0.01 + self.seconds.get(test.nodeid, 0.0)))
        Tests.most = SLOW * LONGEST  # one that fails may take long to say so: Hypothesis looks for a simpler case
        if failed := first_failure(tests, {}):
            self.noticed[failed] += 1
        self.keep_course()
        return int(failed != "")

    def all_of(self, cases: list[Any]) -> bool:
        """Whether all these cases of a test run: where they are quick, or all are asked for."""
        return self.every or sum(self.seconds.get(case.nodeid, 0.0) for case in cases) < LONG

    def keep_course(self) -> None:
        """Note what is known of the tests."""
        self.course.write_text(json.dumps([self.seconds, self.noticed, self.lines]))

    def recall(self) -> None:
        """Read what a process has noted of the tests."""
        if self.course.exists():
            self.seconds, noticed, self.lines = json.loads(self.course.read_text())
            self.noticed = Counter(noticed)

    def note(self, mutant: Mutant, code: int) -> None:
        """Keep what became of a mutant."""
        if code == ERROR:
            raise RuntimeError(f"the campaign failed at line {mutant.line}: {mutant.after}")
        self.recall()
        outcome = {0: "excused" if mutant.excuse else "survived", -signal.SIGXCPU: "hung"}.get(code, "killed")
        with self.kept.open("a") as lines:
            lines.write(json.dumps(asdict(mutant) | {"outcome": outcome}) + "\n")
        if outcome == "survived":
            print(f"{self.file}.py:{mutant.line} survived\n  - {mutant.before}\n  + {mutant.after}", flush=True)


def outcomes_kept(kept: Path) -> dict[Mutant, str]:
    """What became of each mutant last; a test that notices one is taken to do so still."""
    lines = map(json.loads, kept.read_text().splitlines() if kept.exists() else [])
    return {Mutant(**{key: line[key] for key in Mutant.__annotations__}): line["outcome"] for line in lines}


def main() -> int:
    """Run the campaign; 1 where a mutant survives that is not excused."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack.mutants", description=__doc__)
    parser.add_argument(
        "files",
        nargs="*",
        choices=[*FILES, []],
        help="files, those of the room problem by their names alone; all by default",
    )
    parser.add_argument(
        "--kept",
        type=Path,
        default=Path("mutants.jsonl"),
        help="of each, what became of it; only those that survived are run again",
    )
    parser.add_argument("--count", type=int, help="so many of each file, drawn")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--few", action="store_true", help="three cases of each test at most, from the beginning")
    parser.add_argument(
        "--survivors", action="store_true", help="those that survived in any recorded run, with every case of the tests"
    )
    parser.add_argument("--record", action="store_true", help="keep what the campaign came to, for docs/what-held.md")
    parser.add_argument("--only-record", action="store_true", help="record what --kept has so far, and end")
    parser.add_argument("--tests", action="append", help="these in the place of those of the files; may be repeated")
    given = parser.parse_args()
    if given.tests:
        FILES.update(dict.fromkeys(given.files, tuple(given.tests)))
    os.environ.update(NUMBA_DISABLE_JIT="1", OMP_NUM_THREADS="1")  # before Numba is loaded, which reads them once
    os.chdir(ROOT)
    for name in ("numba", "scipy.sparse", "scipy.optimize", "scipy.special", "sklearn.base", "_pytest.python"):
        import_module(name)
    tallies = []
    for file in given.files or FILES:
        found = list(mutants(file))
        print(*stale_excuses(file, [mutant for mutant, _ in found]), sep="\n", flush=True)
        if given.survivors:
            found = survivors(found, RECORDS)
            if not found:
                continue
        found = random.Random(given.seed).sample(found, min(given.count or len(found), len(found)))
        if not given.only_record:
            before = outcomes_kept(given.kept)
            left = [pair for pair in found if unsettled(pair[0], before)]
            left.sort(key=lambda pair: pair[0] in before)  # those not run yet first
            course = given.kept.with_suffix(f".{Path(file).name}.course").resolve()
            course.unlink(missing_ok=True) if not before else None
            Campaign(file, left, given.kept.resolve(), course, given.few, given.survivors).run()
        tallies.append(came_to(file, [mutant for mutant, _ in found], outcomes_kept(given.kept)))
        print(tallies[-1], *tallies[-1].failures, sep="\n  ", flush=True)
    if given.record or given.only_record:
        page = import_module(f"{__package__}.page")  # it loads the package, of which mutants need a fresh one
        for tally in tallies:
            page.keep(page.record_of(tally, given.seed, 0, 0.0) | {"again": given.survivors}, RECORDS)
    return int(any(tally.failures for tally in tallies))


def survivors(found: list[tuple[Mutant, str]], records: Path) -> list[tuple[Mutant, str]]:
    """The mutants that survived in a recorded run, wherever their lines are now."""
    lost = {
        (failure.partition(".py:")[0], failure.partition(": ")[2][:KEPT])
        for record in map(json.loads, records.read_text("utf-8").splitlines())
        if record["campaign"] == "mutants"
        for failure in record["failures"]
    }
    return [pair for pair in found if (pair[0].file, change_of(pair[0])[:KEPT]) in lost]


def stale_excuses(file: str, found: list[Mutant]) -> list[str]:
    """A line for each excuse of a file that excuses none of its mutants."""
    changes = {(mutant.before, mutant.after) for mutant in found}
    own = [pair for one, *pair in EXCUSED if one == file]
    return [
        f"{file}: no mutant has this excuse: {before} => {after}"
        for before, after in own
        if (before, after) not in changes
    ]


def change_of(mutant: Mutant) -> str:
    """The lines that a mutant took and put, as records have them."""
    return f"{mutant.before} => {mutant.after}"


def unsettled(mutant: Mutant, before: dict[Mutant, str]) -> bool:
    """Whether a mutant was not run yet, or survived without an excuse."""
    return mutant not in before or (before[mutant] == "survived" and not mutant.excuse)


def came_to(file: str, found: list[Mutant], outcomes: dict[Mutant, str]) -> Tally:
    """What became of the mutants of a file."""
    tally = Tally("mutants")
    for mutant in found:
        outcome = outcomes.get(mutant, "not run")
        outcome = "excused" if outcome == "survived" and mutant.excuse else outcome
        tally.cases += outcome != "not run"
        tally.outcomes[f"of {file}.py {outcome}"] += 1
        if outcome == "survived":
            tally.failures.append(f"{file}.py:{mutant.line}: {change_of(mutant)}")
    return tally


if __name__ == "__main__":
    sys.exit(main())
