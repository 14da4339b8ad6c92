"""An application whose checkpoint lies at a URI: on the local disk, in an object store, in HDFS."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from kstreams.config import Config
from kstreams.errors import StateError, TopologyError
from kstreams.runtime.spark import engine
from kstreams.runtime.spark.storage.opening import open_storage
from tests.spark.conftest import LITTLE_CPU
from tests.spark.hdfs_cluster import hdfs_cluster
from tests.spark.running import Application, Row
from tests.spark.s3_server import s3_server
from tests.spark.word_count import COUNTS, LINES, WORD_TYPES, word_count

pytestmark = pytest.mark.spark


@pytest.fixture
def words(spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Application:
    monkeypatch.chdir(tmp_path)
    settings = {"spark.kstreams.max.records": 1, "spark.kstreams.snapshot.every": 2}
    settings["spark.kstreams.checkpoint"] = f"file://{tmp_path}/check point"
    return Application(spark, tmp_path, word_count(), WORD_TYPES, **settings).create("lines").write(LINES)


def test_a_checkpoint_at_a_file_uri_lies_where_it_says(words: Application, tmp_path: Path) -> None:
    delta = {"spark.kstreams.delta": f"file://{tmp_path}/delta"}
    words.run(until_end=False, **delta)
    words.write([Row("lines", "e", "the end", 9)]).run(**delta)
    assert words.table("counts") == COUNTS | {"the": 4, "end": 1}
    assert {path.name for path in tmp_path.iterdir()} == {"log", "check point", "delta"}
    inside = {path.name for path in (tmp_path / "check point" / "app").iterdir()}
    assert inside == {"beginnings.json", "id", "manifests", "plans", "state", "topology.json"}
    assert words.spark.read.format("delta").load(f"file://{tmp_path}/delta/counts").count() == len(words.rows("counts"))


def test_a_reset_clears_the_checkpoint_at_a_uri(words: Application, tmp_path: Path) -> None:
    words.run()
    engine.reset(words.topology, Config.of(words.settings))
    assert not (tmp_path / "check point" / "app").exists()
    words.run()
    assert words.table("counts") == COUNTS


def test_another_topology_is_refused_where_the_last_one_left_state(words: Application) -> None:
    words.run()
    words.topology = word_count("other").build()
    with pytest.raises(TopologyError, match="store 'counts' is renamed to 'other'"):
        words.run()


def test_a_manifest_that_is_gone_is_refused(words: Application, tmp_path: Path) -> None:
    words.run(until_end=False)
    storage = open_storage(f"{tmp_path}/check point/app", {})
    newest = max(storage.names("manifests"))
    storage.delete([f"manifests/{newest}"])
    words.write([Row("lines", "e", "the end", 9)])
    with pytest.raises(StateError, match=f"{newest} is missing, the manifest of the state of step"):
        words.run()


def test_a_state_file_of_another_task_is_refused(words: Application, tmp_path: Path) -> None:
    words.run(until_end=False)
    moved = tmp_path / "moved"  # so that workers have nothing of it in memory
    shutil.copytree(tmp_path / "check point", moved)
    mine, other = (max((moved / "app" / "state" / task).glob("*.changes")) for task in ("1_0", "1_1"))
    mine.write_bytes(other.read_bytes())
    words.write([Row("lines", "e", "the end", 9)])
    with pytest.raises(StateError, match=f"{mine} is state of the task 1_1, not of 1_0"):
        words.run(**{"spark.kstreams.checkpoint": str(moved)})


APP = """
import kstreams as ks

topology = ks.StreamsBuilder()
words = topology.stream("lines", key=str, value=str).flat_map_values(str.split, value=str)
words.group_by(lambda key, word: word, key=str).count("counts").to_stream().to("counts")
config = {"application.id": "app"}
"""


def run(app: Application, *arguments: str, source: str = APP) -> None:
    """Run the application in a process of its own: its Spark has other jars."""
    file = app.folder / "app.py"
    file.write_text(source)
    settings = {**app.settings, **LITTLE_CPU}
    options = [option for key, value in settings.items() for option in ("-c", f"{key}={value}")]
    command = [sys.executable, "-m", "kstreams", "run", str(file), "--engine", "spark", *arguments, *options]
    done = subprocess.run(command, cwd=app.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_checkpoint_in_s3_holds_state_and_the_progress_of_spark(tmp_path: Path) -> None:
    pytest.importorskip("moto", reason="needs the dev extra")
    with s3_server() as server:
        places = {
            "spark.kstreams.checkpoint": server.location("cp"),
            "spark.kstreams.delta": server.location("delta"),
            "spark.kstreams.max.records": 1,
            "spark.kstreams.snapshot.every": 2,
        }
        app = (
            Application(None, tmp_path, word_count(), WORD_TYPES, **places, **server.conf).create("lines").write(LINES)
        )
        run(app, "--once")
        app.write([Row("lines", "e", "the end", 9)])
        run(app, "--until-end")
        assert app.table("counts") == COUNTS | {"the": 4, "end": 1}
        storage = open_storage(server.location("cp/app"), server.conf)
        assert {"id", "topology.json", "beginnings.json"} <= set(storage.names(""))
        assert storage.names("manifests")
        assert any(name.endswith(".snapshot") for name in storage.names("state/1_0"))
        assert open_storage(server.location("delta/counts/_delta_log"), server.conf).names("")
        assert {path.name for path in tmp_path.iterdir()} == {"log", "app.py"}
        engine.reset(app.topology, Config.of(app.settings))
        assert storage.names("") == storage.names("manifests") == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_checkpoint_in_hdfs_holds_state_and_the_progress_of_spark(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pytest.importorskip("hdfs_native", reason="needs the dev extra")
    with hdfs_cluster(tmp_path_factory.mktemp("hdfs")) as address:
        places = {"spark.kstreams.checkpoint": f"{address}/cp", "spark.kstreams.max.records": 1}
        app = Application(None, tmp_path, word_count(), WORD_TYPES, **places).create("lines").write(LINES)
        run(app, "--once")
        app.write([Row("lines", "e", "the end", 9)])
        run(app, "--until-end")
        assert app.table("counts") == COUNTS | {"the": 4, "end": 1}
        storage = open_storage(f"{address}/cp/app", {})
        assert storage.names("manifests")
        assert storage.names("state/1_0")
        engine.reset(app.topology, Config.of(app.settings))
        assert storage.names("") == storage.names("manifests") == []


QUERY = """
import kstreams as ks

topology = ks.StreamsBuilder()
lines = topology.stream("lines", key=str, value=str)
windows = lines.group_by(ks.value.str.upper(), key=str).windowed_by(ks.TimeWindows(size=10, grace=0))
windows.emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE).count().to_stream().to("counts")
config = {"application.id": "app", "spark.kstreams.path": "relational"}
"""
TEXTS = [Row("lines", "k", "ab"[at % 2], at, at % 2) for at in range(1, 40)]


def final_counts(app: Application) -> dict[tuple[str, int], int]:
    """The final count of each text and window, each of which must be there once."""
    rows = [(key[:-8].decode(), int.from_bytes(key[-8:]), count) for key, count, _ in app.rows("counts")]
    assert len({row[:2] for row in rows}) == len(rows)
    return {(text, start): count for text, start, count in rows}


def expected_counts(rows: list[Row]) -> dict[tuple[str, int], int]:
    return Counter((row.value.upper(), row.timestamp // 10 * 10) for row in rows)


def runs_in_two_starts(app: Application) -> None:
    """Run a query of Spark with state, which goes on from its checkpoint in another process."""
    app.types = {"lines": (str, str), "counts": (bytes, int)}
    app.create("lines").write(TEXTS[:20])
    run(app, "--once", source=QUERY)
    app.write(TEXTS[20:])
    run(app, "--until-end", source=QUERY)
    assert final_counts(app) == expected_counts(TEXTS)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_state_of_a_query_of_spark_lies_in_s3(tmp_path: Path) -> None:
    pytest.importorskip("moto", reason="needs the dev extra")
    with s3_server() as server:
        places = {"spark.kstreams.checkpoint": server.location("cp"), "spark.kstreams.max.records": 8}
        app = Application(None, tmp_path, word_count(), WORD_TYPES, **places, **server.conf)
        runs_in_two_starts(app)
        storage = open_storage(server.location("cp/app"), server.conf)
        assert len(storage.names("query-1/commits")) > 2
        assert storage.names("query-1/state/0/0")
        assert {path.name for path in tmp_path.iterdir()} == {"log", "app.py"}


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_state_of_a_query_of_spark_lies_in_hdfs(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    pytest.importorskip("hdfs_native", reason="needs the dev extra")
    with hdfs_cluster(tmp_path_factory.mktemp("hdfs")) as address:
        places = {"spark.kstreams.checkpoint": f"{address}/cp", "spark.kstreams.max.records": 8}
        app = Application(None, tmp_path, word_count(), WORD_TYPES, **places)
        runs_in_two_starts(app)
        storage = open_storage(f"{address}/cp/app", {})
        assert len(storage.names("query-1/commits")) > 2
        assert storage.names("query-1/state/0/0")
        engine.reset(Application(None, tmp_path, word_count(), WORD_TYPES).topology, Config.of(app.settings))
        assert storage.names("") == []
