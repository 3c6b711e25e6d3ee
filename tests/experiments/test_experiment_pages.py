"""The pages of the experiments: what does not depend on the clock is what a run gives."""

from __future__ import annotations

import pytest

pytest.importorskip("pandas")
pytest.importorskip("matplotlib")

from experiments import HOMES, pages as maker
from experiments.experiment import Options, make_experiment, run_experiments
from saddlesvm.lab import Report, TextTable


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["vlfeat-sdca"])
def test_a_page_is_what_a_run_gives(name):
    """The others take minutes or need data: ``python -m experiments.pages --check --data DIR``."""
    assert maker.stale_blocks(maker.PAGES / f"{name}.md", run_experiments([name], Options())[name]) == []


@pytest.mark.nightly
def test_the_tables_of_descent_are_what_a_run_on_the_bundled_sets_gives():
    """All their rows but those of the digits, which do not come with the package."""
    tables = make_experiment("dcd-tables", Options(bundled=True))
    for words, work in tables.steps():
        if words not in ("curves", "pictures"):
            work()
    assert len(tables.sets) == 4
    assert maker.stale_rows(maker.PAGES / "dcd-tables.md", tables.report) == []


def test_a_changed_table_is_found_and_what_the_clock_says_is_kept(tmp_path):
    report = Report("A page", ["It took 2 s."])
    report.section("Tables", TextTable(["row", "value"], [["first", "3.10"], ["second", "1,000"]], "Two of them."))
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- found (by the clock) -->\nold\n<!-- end -->\n<!-- table 1 of Tables -->\n<!-- end -->\n"
        "<!-- table 1 of Tables (by the clock) -->\nolder\n<!-- end -->\n<!-- found -->\n<!-- end -->\n"
    )
    assert maker.stale_blocks(page, report) == ["table 1 of Tables"]
    maker.fill(page, report, keep_clock=True)
    text = page.read_text()
    assert "old" in text and text.count("| second | 1,000 |") == 1
    assert maker.stale_blocks(page, report) == []
    page.write_text(text.replace("1,000", "1,050"))
    assert maker.stale_blocks(page, report) == []  # so much may another processor's rounding change
    page.write_text(text.replace("1,000", "1,500"))
    assert maker.stale_blocks(page, report) == ["table 1 of Tables"]
    report.timed.add("It took 2 s.")
    maker.fill(page, report)
    assert page.read_text().count("- It took 2 s.") == 1 and "older" not in page.read_text()


def test_the_index_sums_what_the_experiments_took(tmp_path):
    for name, took in (("blood-cells", (10, 20)), ("vlfeat-sdca", (1, 2))):
        report = Report("A page", [], seconds=took[0], processor_seconds=took[1])
        (tmp_path / f"{name}.md").write_text("<!-- took -->\n<!-- end -->\n")
        maker.fill(tmp_path / f"{name}.md", report)
    for name in set(HOMES) - {"blood-cells", "vlfeat-sdca"}:
        (tmp_path / f"{name}.md").write_text("nothing measured")
    (tmp_path / "index.md").write_text("<!-- times -->\nold\n<!-- end -->\n")
    maker.fill_times(tmp_path)
    text = (tmp_path / "index.md").read_text()
    assert "| `python -m experiments blood-cells` | 10 | 20 |" in text
    assert "| all | 11 | 22 |" in text and "old" not in text
