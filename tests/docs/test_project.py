"""What `kstreams init` tells its user to type works, in the environment that the README tells him to make."""

from __future__ import annotations

from tests.docs.pages import Reader


def test_all_that_init_prints_can_be_typed(reader: Reader) -> None:
    printed = reader.shell("kstreams init shop", "init")
    typed = printed.partition("Next:\n")[2]
    assert typed.split()[:2] == ["cd", "shop"]
    assert "1 passed" in reader.shell(typed, "what init prints")


def test_all_that_the_readme_of_the_project_shows_can_be_typed(reader: Reader) -> None:
    reader.shell("kstreams init shop", "init")
    shown = (reader.folder / "shop" / "README.md").read_text().split("```")[1]
    assert "1 passed" in reader.shell(f"cd shop\n{shown}", "README.md of the project")
