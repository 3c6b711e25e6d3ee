"""scikit-learn's own tests of its support vector machines, with this package's classes in place of its own.

python -m benchmarks.claims.their_tests [--classes LinearSVC,LinearSVR] [--files test_svm,test_sparse] [--tests WORDS]

The tests are those of the scikit-learn that is installed. A test counts where it makes or fits a class that
was put in place; the others say nothing about them.
"""

from __future__ import annotations

import argparse
import functools
import os
import tempfile
from collections import Counter
from typing import Any

import pytest
from sklearn import svm
from sklearn.svm import _classes

import saddlesvm.svm as ours

CLASSES = ("LinearSVC", "LinearSVR", "SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM")
FILES = ("test_svm", "test_sparse", "test_bounds")
SHOWN = 150  # characters of an error


class Report:
    """A pytest plugin that keeps, for each test, how it ended and which of the classes it used.

    Attributes
    ----------
    ended : dict
        (how it ended, the line of the error, the classes) by the name of the test.
    """

    def __init__(self) -> None:
        self.used: set[str] = set()
        self.ended: dict[str, tuple[str, str, tuple[str, ...]]] = {}

    def watched(self, name: str) -> type:
        """The package's class of that name, which from now on tells that it is used."""
        kind = getattr(ours, name)
        for method in ("__init__", "fit"):
            setattr(kind, method, self.telling(name, getattr(kind, method)))
        return kind

    def telling(self, name: str, method: Any) -> Any:
        """A method that does what `method` does, and says so."""

        @functools.wraps(method)
        def told(*args: Any, **named: Any) -> Any:
            self.used.add(name)
            return method(*args, **named)

        return told

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """A test begins."""
        self.used.clear()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test has ended."""
        if report.when != "call" and report.outcome == "passed":
            return
        crash = getattr(report.longrepr, "reprcrash", None)
        line = "" if crash is None else " ".join(crash.message.split())[:SHOWN]
        name = f"{os.path.basename(report.location[0])}::{report.location[2]}"
        self.ended[name] = (report.outcome, line, tuple(sorted(self.used)))


def put_in_place(names: list[str], report: Report) -> None:
    """Let scikit-learn's names mean this package's classes."""
    for name in names:
        kind = report.watched(name)
        for module in (svm, _classes):
            setattr(module, name, kind)


def main() -> None:
    """Run them, and print those that fail and how many pass."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--classes", default=",".join(CLASSES), help="those to put in place; all by default")
    parser.add_argument("--files", default=",".join(FILES), help="of sklearn.svm.tests; all three by default")
    parser.add_argument("--tests", default="", metavar="WORDS", help="what pytest's -k takes")
    parser.add_argument("--full", action="store_true", help="show pytest's own output, too")
    asked = parser.parse_args()
    report = Report()
    put_in_place(asked.classes.split(","), report)
    with tempfile.TemporaryDirectory() as folder:
        settings = os.path.join(folder, "pytest.ini")  # not this project's own, whose warnings are errors
        with open(settings, "w") as file:
            file.write("[pytest]\n")
        modules = [f"sklearn.svm.tests.{name}" for name in asked.files.split(",")]
        shown = [] if asked.full else ["-q", "--no-header", "--no-summary", "--show-capture=no"]
        told = ["-p", "no:cacheprovider", "-c", settings, "-k", asked.tests, *shown, "--pyargs", *modules]
        pytest.main(told, [report])
    tell({name: one for name, one in report.ended.items() if one[2]})


def tell(ended: dict[str, tuple[str, str, tuple[str, ...]]]) -> None:
    """Print each test function that failed, for how many of its parameters, and the first error; and the counts."""
    functions: dict[str, list[tuple[str, str, tuple[str, ...]]]] = {}
    for name, one in ended.items():
        functions.setdefault(name.partition("[")[0], []).append(one)
    for name, runs in functions.items():
        failed = [one for one in runs if one[0] == "failed"]
        if failed:
            used = sorted({name for _, _, names in failed for name in names})
            print(f"{name} ({', '.join(used)}): {len(failed)} of {len(runs)} failed\n    {failed[0][1]}")
    counts = Counter(how for how, _, _ in ended.values())
    print(", ".join(f"{number} {how}" for how, number in counts.items()), f"of {len(ended)} that use these classes")


if __name__ == "__main__":
    main()
