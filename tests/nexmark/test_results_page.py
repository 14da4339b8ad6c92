"""The page of figures: a benchmark replaces its own section, and leaves all others as they are."""

from __future__ import annotations

from benchmarks.runner import RESULTS, with_section

PAGE = "# Results\n\nRead the ratios.\n\n## a: one\n\n1\n\n## a and b\n\n2\n\n## b: two\n\n3\n"


def test_a_section_is_replaced_in_its_place() -> None:
    assert with_section(PAGE, "## a: once more\n\n4\n") == PAGE.replace("one\n\n1", "once more\n\n4")


def test_a_new_section_comes_last() -> None:
    assert with_section(PAGE, "## c: three\n\n5\n") == f"{PAGE}\n## c: three\n\n5\n"


def test_each_section_of_the_page_is_found_by_its_name() -> None:
    page = RESULTS.read_text()
    names = [line.partition(":")[0] for line in page.splitlines() if line.startswith("## ")]
    assert len(names) == len(set(names))
