"""Applications in files: how they are found, run, explained and reset."""

from __future__ import annotations

from pathlib import Path

import pytest

from kstreams import app as application
from kstreams.errors import ConfigError, StateError, TopologyError
from tests.native.world import World, counted, lines

BODY = """
import kstreams as ks

config = {"num.stream.threads": 2}

def build():
    builder = ks.StreamsBuilder()
    words = builder.stream("lines", key=str, value=str).flat_map_values(lambda line: line.split(), value=str)
    counts = words.group_by(lambda _, word: word, key=str).count(materialized="counts")
    counts.to_stream().to("counts", key=str, value=int)
    return builder

topology = build
flow = build()
finished = build().build()
number = 7
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "word count.py"
    path.write_text(BODY)
    return path


def places(world: World) -> dict[str, object]:
    return {key: world.settings[key] for key in ("log.dir", "state.dir")}


@pytest.mark.parametrize("name", ["", ":topology", ":flow", ":finished"])
def test_a_builder_a_topology_or_a_function_that_returns_one(file: Path, name: str) -> None:
    app = application.load_app(f"{file}{name}")
    assert "counts-repartition" in app.topology.describe()
    assert app.path == file
    assert app.config["num.stream.threads"] == 2


def test_the_application_is_called_after_its_file_or_folder(file: Path, tmp_path: Path) -> None:
    assert application.load_app(file).config.application_id == "word-count"
    (tmp_path / "flights").mkdir()
    (tmp_path / "flights" / "app.py").write_text(BODY)
    assert application.load_app(tmp_path / "flights" / "app.py").config.application_id == "flights"
    assert application.load_app(file, {"application.id": "mine"}).config.application_id == "mine"


def test_overrides_win(file: Path) -> None:
    assert application.load_app(file, {"num.stream.threads": 5}).config["num.stream.threads"] == 5


def test_what_is_not_there_is_said(file: Path, tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match="there is no file"):
        application.load_app(tmp_path / "none.py")
    with pytest.raises(TopologyError, match=r"holds no 'flaw'; did you mean .*:flow"):
        application.load_app(f"{file}:flaw")
    with pytest.raises(TopologyError, match=r"'number' in .* is a int: a StreamsBuilder"):
        application.load_app(f"{file}:number")
    with pytest.raises(ConfigError, match=r"num\.stream\.threads"):
        application.load_app(file, {"num.stream.thread": 1})
    with pytest.raises(ConfigError, match="there are: native, spark"):
        application.run(application.load_app(file), engine="flink")


def test_run_tells_how_it_went(file: Path, world: World) -> None:
    world.create("lines", 2)
    world.write("lines", lines(100))
    told: list[object] = []
    application.run(application.load_app(file, places(world)), until_end=True, on_progress=told.append)
    last = told[-1]
    assert last.records_in == 100  # type: ignore[attr-defined]
    assert last.lag == 0  # type: ignore[attr-defined]
    assert last.commits >= 2  # type: ignore[attr-defined]
    assert world.table("counts", value=int) == counted(100)


def test_reset_forgets_all_but_inputs_and_outputs(file: Path, world: World) -> None:
    world.create("lines", 2)
    world.write("lines", lines(100))
    app = application.load_app(file, places(world))
    application.run(app, until_end=True)
    application.reset(app)
    assert world.topics() == ["counts", "lines"]
    application.run(app, until_end=True)
    assert world.table("counts", value=int) == counted(100)
    application.reset(app)
    application.reset(app)  # nothing left to forget is no error


def test_reset_is_refused_while_the_application_runs(file: Path, world: World) -> None:
    world.create("lines")
    app = application.load_app(file, places(world))
    with world.streams(app.topology, application_id="word-count") as streams:
        streams.start()
        with pytest.raises(StateError, match="is in use by process"):
            application.reset(app)


def test_explain_says_for_every_operator_which_path_it_takes_and_why(tmp_path: Path) -> None:
    (tmp_path / "e.py").write_text(
        "import kstreams as ks\n"
        "topology = ks.StreamsBuilder()\n"
        "stream = topology.stream('in', key=str, value=int)\n"
        "stream.filter(ks.value > 3).to('out')\n"
        "other = topology.stream('in2', key=str, value=int)\n"
        "other.filter(lambda k, v: v > 3).to('out2')\n"
    )
    rows = {row.operator: row for row in application.explain(application.load_app(tmp_path / "e.py"))}
    assert [rows[name].path for name in sorted(rows)].count("columns") == 3
    assert rows["KSTREAM-FILTER-0000000001"].path == "columns"
    assert rows["KSTREAM-FILTER-0000000004"].path == "records"
    assert "not made of expressions" in rows["KSTREAM-FILTER-0000000004"].why
    assert "e.py:6" in str(rows["KSTREAM-FILTER-0000000004"].declared_at)
