"""Mistakes in an application file, and at the command line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.mistakes.checking import assert_sentence

BEGIN = "import kstreams as ks\ntopology = ks.StreamsBuilder()\nwords = topology.stream('words', key=str, value=str)\n"
GOOD = BEGIN + "words.map_values(str.upper, value=str).to('shouts')\n"

FILES = [
    ("import sys\nsys.exit(1)", "app.py:2 ends the process by sys.exit() while app.py is loaded: leave it out"),
    (GOOD + "raise SystemExit", "app.py:5 ends the process"),
    (GOOD + "config = ['x']", "'config' in app.py is a list, not a mapping: write config = {"),
    (GOOD + "config = 'app.toml'", "'config' in app.py is a str, not a mapping"),
    (GOOD + "config = {'num.stream.thread': 2}", "num.stream.threads"),
    (GOOD + "config = {'num.stream.threads': 'two'}", "num.stream.threads cannot be 'two'"),
    (
        "import kstreams as ks\nflow = ks.StreamsBuilder()",
        "app.py holds no 'topology'; name another one as app.py:name",
    ),
    ("import kstreams as ks\ntopologie = ks.StreamsBuilder()", "did you mean app.py:topologie?"),
    ("topology = 5", "a StreamsBuilder, a Topology, or a function that returns one is needed"),
    ("import kstreams as ks\ntopology = ks.StreamBuilder()", "did you mean StreamsBuilder?"),
    ("def topology():\n    return 1 / 0", "app.py:2 cannot be called: ZeroDivisionError"),
    ("def topology(builder):\n    return builder", "cannot be called: TypeError: topology() missing 1 required"),
    ("topology = (", "app.py cannot be loaded: SyntaxError"),
    ("import nowhere", "app.py:1 cannot be loaded: ModuleNotFoundError: No module named 'nowhere'"),
    (BEGIN + "words.mapValues(str.upper)", "app.py:4 cannot be loaded: AttributeError: KStream has no mapValues"),
    (BEGIN + "words.filter(lambda v: v)", "filter() at app.py:4 (KSTREAM-FILTER-0000000001) calls its predicate"),
    (BEGIN + "words.map_values(lambda v: v).to('o')", "write value=<type> at to()"),
    (BEGIN + "words.join(topology.table('t', key=int, value=str), print)", "app.py:4 joins keys of str"),
]
COMMANDS = [
    (("topology", "nowhere.py"), 1, "there is no file nowhere.py: name the Python file that holds the topology"),
    (("topology", "ap.py"), 1, "there is no file ap.py: did you mean app.py?"),
    (("topology", "ap"), 1, "where else Python looks (PYTHONPATH): did you mean app?"),
    (("topology", "folder"), 1, "folder is a folder: name the Python file in it, such as folder/app.py"),
    (("topology", "app.py:flow"), 1, "app.py holds no 'flow'"),
    (("run", "app.py", "--once", "--engine", "flink"), 2, "'flink' is not one of 'native', "),
    (("run", "app.py", "--once", "--until-end"), 2, "--until-end"),
    (("run", "app.py", "--once", "-c", "num.stream.threads"), 2, "KEY=VALUE"),
    (("run", "app.py", "--once", "-c", "num.stream.thread=2"), 1, "num.stream.threads"),
    (("run", "app.py", "--once"), 1, "There is no topic 'words', which stream() at app.py:3"),
    (("rnu", "app.py"), 2, "run"),
    (("run",), 2, "Missing argument"),
    (("topics", "create", "a b"), 1, "use 1 to 249 letters, digits"),
    (("topics", "create", "a", "--partitions", "0"), 2, "partitions"),
    (("topics", "delete", "nowhere"), 1, "create a topic first, or name its folder with --log-dir"),
]


@pytest.mark.parametrize(("text", "said"), FILES, ids=lambda value: value[-60:])
def test_a_mistake_in_an_application_is_a_sentence_and_status_1(kstreams, text: str, said: str) -> None:
    (kstreams.folder / "app.py").write_text(text)
    outcome = kstreams("topology", "app.py")
    assert outcome.status == 1
    assert said in _line(outcome.err)
    assert_sentence(outcome.err)


@pytest.mark.parametrize(("arguments", "status", "said"), COMMANDS, ids=str)
def test_a_mistake_at_the_command_line(kstreams, arguments: tuple[str, ...], status: int, said: str) -> None:
    (kstreams.folder / "app.py").write_text(GOOD)
    (kstreams.folder / "folder").mkdir()
    outcome = kstreams(*arguments)
    assert outcome.status == status, outcome.err
    assert said in _line(outcome.err)
    assert_sentence(outcome.err)


def _line(text: str) -> str:
    """What was printed, as one line."""
    return " ".join(text.split())


@pytest.mark.skipif(os.geteuid() != 0, reason="another user's permissions are needed, which root can take")
@pytest.mark.parametrize("closed", ["app.py", "."])
def test_a_file_that_may_not_be_read_is_told_with_the_cure(kstreams, closed: str) -> None:
    folder: Path = kstreams.folder / "application"
    folder.mkdir(mode=0o755)
    (folder / "app.py").write_text(GOOD)
    for parent in folder.parents[:-2]:
        parent.chmod(parent.stat().st_mode | 0o055)
    (folder / closed).chmod(0)
    os.seteuid(65534)
    try:
        outcome = kstreams("topology", "application/app.py")
    finally:
        os.seteuid(0)
    assert outcome.status == 1
    assert "application/app.py may not be read: give yourself the permission, with chmod u+r" in _line(outcome.err)
