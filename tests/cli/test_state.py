"""`kstreams state export` and `import`: what they say, and what they leave."""

from __future__ import annotations

import pytest

COUNT = """
import kstreams as ks

topology = ks.StreamsBuilder()
counts = topology.stream("words", key=str, value=str).group_by_key().count("counts")
counts.to_stream().to("counts")
config = {"application.id": "words"}
"""


@pytest.fixture
def counting(kstreams):
    """A folder with an application that has counted three words."""
    (kstreams.folder / "app.py").write_text(COUNT)
    kstreams.ok("topics", "create", "words", "--partitions", "2")
    kstreams.ok("produce", "words", "-s", "=", stdin="a=one\nb=two\na=three\n")
    kstreams.ok("run", "app.py", "--once")
    return kstreams


def last_counts(kstreams) -> dict[str, int]:
    rows = kstreams.ok("consume", "counts", "--from-beginning", "--until-end", "--json").json_lines()
    return {row["key"]: row["value"] for row in rows}


def test_export_and_import_say_what_they_moved(counting):
    told = "2 rows of 2 tasks of words; read so far: words 3\n"
    assert counting.ok("state", "export", "app.py", "--to", "moved").out == f"exported {told}"
    counting.ok("produce", "words", "-s", "=", stdin="a=four\n")
    counting.ok("run", "app.py", "--once")
    assert counting.ok("state", "import", "app.py", "--from", "moved", "--replace").out == f"imported {told}"
    counting.ok("produce", "words", "-s", "=", stdin="b=five\n")
    counting.ok("run", "app.py", "--once")
    assert last_counts(counting) == {"a": 3, "b": 2}


def test_what_is_refused_is_told_in_a_sentence(counting):
    counting.ok("state", "export", "app.py", "--to", "moved")
    for arguments, said in (
        (("export", "app.py", "--to", "moved"), "moved is there already: delete it"),
        (("import", "app.py", "--from", "moved"), "has state already: import with --replace"),
        (("import", "app.py", "--from", "nowhere"), "nowhere holds no state: write it with `kstreams state export"),
    ):
        outcome = counting("state", *arguments)
        assert (outcome.status, outcome.out) == (1, "")
        assert said in outcome.err
