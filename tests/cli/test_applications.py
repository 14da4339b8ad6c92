"""`kstreams run`, `topology`, `explain`, `init`: from an application's file to its results."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kstreams.cli.main import main

SHOUT = """
import kstreams as ks

topology = ks.StreamsBuilder()
words = topology.stream("words", key=str, value=str)
words.map_values(lambda word: word.upper(), value=str).to("shouts")
"""
COMMAND = str(Path(sys.executable).with_name("kstreams"))


@pytest.fixture
def shout(kstreams):
    """A folder with an application, and three words to shout."""
    (kstreams.folder / "shout.py").write_text(SHOUT)
    kstreams.ok("topics", "create", "words", "--partitions", "2")
    kstreams.ok("produce", "words", "-s", "=", stdin="a=one\nb=two\na=three\n")
    return kstreams


def shouts(kstreams) -> list[str]:
    rows = kstreams.ok("consume", "shouts", "--from-beginning", "--until-end", "--json").json_lines()
    return sorted(row["value"] for row in rows)


def test_run_until_the_end_writes_the_results_and_says_how_many(shout):
    outcome = shout.ok("run", "shout.py", "--until-end")
    assert "done: 3 records in, 3 out" in outcome.err
    assert outcome.out == ""
    assert shouts(shout) == ["ONE", "THREE", "TWO"]


def test_a_run_ends_with_what_was_dropped_by_operator_and_reason(shout):
    text = SHOUT.replace("word.upper()", "word.upper() if word != 'two' else 1 / 0")
    (shout.folder / "shout.py").write_text(text)
    outcome = shout.ok("run", "shout.py", "--until-end", "-c", "processing.exception.handler=continue")
    assert "done: 3 records in, 2 out, 1 dropped" in outcome.err
    assert "  1 dropped by KSTREAM-MAPVALUES-0000000001: failed with ZeroDivisionError\n" in outcome.err


def test_a_second_run_goes_on_and_reset_starts_again(shout):
    shout.ok("run", "shout.py", "--once")
    shout.ok("produce", "words", "-s", "=", stdin="c=four\n")
    shout.ok("run", "shout.py", "--once")
    assert shouts(shout) == ["FOUR", "ONE", "THREE", "TWO"]
    shout.ok("run", "shout.py", "--once", "--reset")
    assert len(shouts(shout)) == 8


def test_options_win_over_the_application(shout):
    shout.ok("run", "shout.py", "--once", "--threads", "2", "--state-dir", "elsewhere", "-c", "application.id=other")
    assert (shout.folder / "elsewhere" / "other").is_dir()


def test_topology_as_text_mermaid_and_json(shout):
    text = shout.ok("topology", "shout.py").out
    assert text.startswith("Topologies:\n   Sub-topology: 0\n")
    assert "Source: KSTREAM-SOURCE-0000000000 (topics: [words])" in text

    chart = shout.ok("topology", "shout.py", "--format", "mermaid").out
    assert chart.startswith("flowchart TD\n")
    assert '[["words"]] --> ' in chart

    (data,) = shout.ok("topology", "shout.py", "--json").json_lines()
    source, mapping, sink = data["sub_topologies"][0]["nodes"]
    assert (source["kind"], source["topics"], source["next"]) == ("source", ["words"], [mapping["name"]])
    assert mapping["declared_at"].endswith("shout.py:6")
    assert (sink["kind"], sink["topics"]) == ("sink", ["shouts"])


def test_explain_says_for_every_operator_which_path_and_why(shout):
    rows = shout.ok("explain", "shout.py", "--json").json_lines()
    paths = {row["operator"]: (row["path"], row["why"]) for row in rows}
    path, why = paths["KSTREAM-MAPVALUES-0000000001"]
    assert path == "records"
    assert why


@pytest.mark.parametrize("engine", ["native", "spark"])
def test_explain_fits_into_80_columns_and_names_every_operator_in_full(shout, monkeypatch, engine):
    monkeypatch.setenv("COLUMNS", "80")
    if engine == "spark":
        pytest.importorskip("pyspark")
    shown = shout.ok("explain", "shout.py", "--engine", engine).out
    assert max(map(len, shown.splitlines())) <= 80
    for row in shout.ok("explain", "shout.py", "--engine", engine, "--json").json_lines():
        assert row["operator"] in shown
        assert row["why"].removeprefix(row["operator"]).strip() in " ".join(shown.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "nowhere.py"), "there is no file nowhere.py"),
        (("run", "shout.py:flow"), "holds no 'flow'"),
        (("run", "shout.py", "--once", "-c", "num.stream.thread=2"), "num.stream.threads"),
        (("run", "shout.py", "--once", "-c", "num.stream.threads=none"), "num.stream.threads"),
        (("explain", "broken.py"), "broken.py"),
        (("run", "missing.py", "--once"), "wrods"),
        (("run", "raising.py", "--once"), "raising.py:"),
    ],
)
def test_what_cannot_run_is_a_sentence_and_status_1(shout, arguments, said):
    (shout.folder / "broken.py").write_text("import kstreams as ks\n\ntopology = ks.StreamBuilder()\n")
    (shout.folder / "missing.py").write_text(SHOUT.replace('"words"', '"wrods"'))
    (shout.folder / "raising.py").write_text(SHOUT.replace("word.upper()", "word.uper()"))
    outcome = shout(*arguments)
    assert outcome.status == 1
    assert said in outcome.err
    assert "Traceback" not in outcome.err
    assert "please report" not in outcome.err


def test_an_error_of_a_function_names_operator_line_and_record(shout):
    (shout.folder / "raising.py").write_text(SHOUT.replace("word.upper()", "word.uper()"))
    said = shout("run", "raising.py", "--once").err
    assert "KSTREAM-MAPVALUES-0000000001" in said
    assert "raising.py:6" in said
    assert "words-" in said
    assert "@0" in said
    assert "AttributeError" in said


def test_a_value_that_does_not_decode_names_its_record(kstreams):
    (kstreams.folder / "measures.py").write_text(SHOUT.replace("value=str)\nwords", "value=int)\nwords"))
    kstreams.ok("topics", "create", "words")
    kstreams.ok("produce", "words", stdin="no number\n")
    outcome = kstreams("run", "measures.py", "--once")
    assert outcome.status == 1
    assert "words-0@0" in outcome.err


def test_until_end_and_once_exclude_each_other(shout):
    assert shout("run", "shout.py", "--until-end", "--once").status == 2


@pytest.mark.parametrize(("stop", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_signal_stops_a_run_cleanly(shout, stop, status):
    with subprocess.Popen([COMMAND, "run", "shout.py"], stderr=subprocess.PIPE, text=True) as running:
        while "shouts\t2\t3\t" not in shout.ok("topics", "list").out:
            assert running.poll() is None, running.stderr.read()
        running.send_signal(stop)
        assert running.wait(60) == status
    assert shouts(shout) == ["ONE", "THREE", "TWO"]


def test_init_writes_a_project_that_runs_and_whose_test_passes(kstreams):
    kstreams.ok("init", "counting")
    folder = kstreams.folder / "counting"
    read = [COMMAND, "consume", "word-counts", "--from-beginning", "--until-end", "--value-type", "int", "--json"]
    in_project(folder, COMMAND, "run", "app.py", "--until-end")
    rows = [json.loads(line) for line in in_project(folder, *read).splitlines()]
    assert {row["key"]: row["value"] for row in rows}["the"] == 3
    assert "1 passed" in in_project(folder, sys.executable, "-m", "pytest", "-q")


def in_project(folder: Path, *command: str) -> str:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def test_init_leaves_what_is_there(kstreams):
    (kstreams.folder / "mine").mkdir()
    (kstreams.folder / "mine" / "app.py").write_text("")
    outcome = kstreams("init", "mine")
    assert outcome.status == 1
    assert "not empty" in outcome.err


def test_doctor_finds_this_machine_fit(kstreams):
    rows = kstreams.ok("doctor", "--json").json_lines()
    found = {row["check"]: row["status"] for row in rows}
    assert found["python"] == found["rocksdb"] == found["disk"] == "ok"
    assert not (kstreams.folder / ".kstreams").exists()


def test_debug_raises(shout):
    with pytest.raises(Exception, match=r"nowhere\.py"):
        main(["run", "nowhere.py", "--debug"])
