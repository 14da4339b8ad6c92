"""The first application counts the words of the text in the repository."""

from __future__ import annotations

import re
from collections import Counter

from tests.examples.conftest import EXAMPLES, Terminal


def test_words_are_counted(terminal: Terminal) -> None:
    text = EXAMPLES / "gettysburg.txt"
    terminal.run("kstreams", "topics", "create", "lines")
    terminal.run("bash", "-c", f"kstreams produce lines < {text}")
    terminal.run("kstreams", "run", str(EXAMPLES / "wordcount.py"), "--until-end")

    counts = {row["key"]: row["value"] for row in terminal.rows("word-counts", "--value-type", "int")}
    assert counts == Counter(re.findall(r"\w+", text.read_text().lower()))


def test_it_has_fifteen_lines_at_most() -> None:
    assert len((EXAMPLES / "wordcount.py").read_text().splitlines()) <= 15
