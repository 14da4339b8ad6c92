"""A function that holds what exists in one process only is named before anything starts: operator, line, and holder."""

from __future__ import annotations

import functools
import re
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.errors import TopologyError
from kstreams.runtime.spark import engine
from kstreams.runtime.spark.run import start
from kstreams.serdes import Serde

pytestmark = pytest.mark.spark

HERE = Path(__file__)
BESIDE = HERE.with_name("test_shipping.py")
LOCK = threading.Lock()
CONFIG = {"application.id": "app"}


def numbers() -> Iterator[int]:
    yield 1


def refused(build: Callable[[ks.StreamsBuilder], Any], **settings: Any) -> str:
    """What `explain` says, on both paths alike."""
    said = set()
    for path in ("task", "relational"):
        builder = ks.StreamsBuilder()
        build(builder)
        with pytest.raises(TopologyError) as raised:
            engine.explain(builder.build(), Config.of({**CONFIG, "spark.kstreams.path": path, **settings}))
        said.add(str(raised.value))
    [only] = said
    assert only.endswith("(`@functools.cache`).")
    return only


def read(builder: ks.StreamsBuilder) -> ks.KStream[Any, Any]:
    return builder.stream("in", key=str, value=int)


THINGS = {
    "a _thread.lock": threading.Lock,
    "a sqlite3.Connection": lambda: sqlite3.connect(":memory:"),
    f"the open file {HERE}": HERE.open,
    f"the open file {BESIDE}": lambda: BESIDE.open("rb"),
    "a generator": numbers,
    "a _thread._local": threading.local,
    "a socket.socket": socket.socket,
}


@pytest.mark.parametrize("kind", THINGS)
def test_a_function_is_named_with_its_variable_and_the_operator_with_its_line(kind: str) -> None:
    thing = THINGS[kind]()

    def price(value: int) -> int:
        return value if thing else 0

    here = price.__code__.co_firstlineno
    said = refused(lambda builder: read(builder).map_values(price).to("out"))
    assert said.startswith("map_values() at ")
    assert re.search(rf"test_unshippable.py:{here + 4} \(KSTREAM-MAPVALUES-0000000001\) cannot be sent", said)
    assert (
        f"the function price (test_unshippable.py:{here}) has the variable `thing`: {kind}, which exists in this "
        "process only." in said
    )
    if hasattr(thing, "close"):
        thing.close()


def guarded(key: str, value: int) -> bool:
    with LOCK:
        return value > 0


def test_a_lock_of_the_module_is_named() -> None:
    said = refused(lambda builder: read(builder).filter(guarded).to("out"))
    assert said.startswith("filter() at ")
    assert "the function guarded" in said
    assert "has the global `LOCK`: a _thread.lock" in said


def test_a_lock_behind_other_functions_and_objects_is_named_with_the_way_to_it() -> None:
    client = Client()
    by_key = functools.partial(lambda found, key, value: found.get(value), client)
    said = refused(lambda builder: read(builder).select_key(by_key, key=str).to("out"))
    assert (
        "a functools.partial has an argument, with the attribute `pool`, with the entry 'main': a _thread.lock" in said
    )


class Client:
    def __init__(self) -> None:
        self.pool = {"main": threading.Lock()}

    def get(self, value: int) -> str:
        return str(value)


class Guarded(ks.Processor[str, int, str, int]):
    lock = threading.Lock()

    def process(self, record: ks.Record[str, int]) -> None:
        with self.lock:
            self.context.forward(record)


def test_a_class_of_processors_is_named_with_its_attribute() -> None:
    said = refused(lambda builder: read(builder).process(Guarded, key=str, value=int).to("out"))
    assert said.startswith("process() at ")
    assert "the class Guarded has the attribute `lock`: a _thread.lock" in said


class Extractor:
    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:")

    def __call__(self, record: Any, partition_time: int) -> int:
        return 5


def test_an_extractor_is_named_at_its_source() -> None:
    extractor = Extractor()
    said = refused(lambda builder: builder.stream("in", key=str, value=int, timestamp_extractor=extractor).to("out"))
    assert said.startswith("stream() at ")
    assert "Extractor has the attribute `connection`: a sqlite3.Connection" in said
    extractor.connection.close()


def test_a_partitioner_and_a_chooser_of_topics_are_named_at_their_sinks() -> None:
    lock = threading.Lock()
    by_lock = refused(lambda builder: read(builder).to("out", partitioner=lambda topic, key, value, n: lock and 0))
    assert by_lock.startswith("to() at ")
    assert "has the variable `lock`" in by_lock
    said = refused(lambda builder: read(builder).to(lambda key, value, context: f"out-{lock}"))
    assert said.startswith("to() at ")
    assert "has the variable `lock`" in said


class Sealed(Serde[int]):
    def __init__(self) -> None:
        self.lock = threading.Lock()

    def serialize(self, value: int) -> bytes:
        return str(value).encode()

    def deserialize(self, data: bytes) -> int:
        return int(data)


def test_a_serde_with_state_is_named() -> None:
    said = refused(lambda builder: builder.stream("in", key=str, value=Sealed()).to("out"))
    assert "Sealed has the attribute `lock`: a _thread.lock" in said


def test_a_handler_is_named_with_its_setting() -> None:
    lock, key = threading.Lock(), "deserialization.exception.handler"
    said = refused(lambda builder: read(builder).to("out"), **{key: lambda *given: lock and None})
    assert said.startswith(f"The setting {key} cannot be sent")
    assert "has the variable `lock`: a _thread.lock" in said


def test_a_session_of_spark_is_named_as_such(spark: Any) -> None:

    def declared(builder: ks.StreamsBuilder) -> None:
        read(builder).map_values(lambda value: spark.range(value).count(), value=int).to("out")

    said = refused(declared)
    assert "has the variable `spark`: a pyspark.sql.session.SparkSession" in said or "SparkSession" in said


def test_a_function_that_refers_to_itself_and_to_a_lock_is_named() -> None:
    lock = threading.Lock()

    def down(value: int) -> int:
        with lock:
            return value if value < 1 else down(value - 1)

    assert "the function down" in (said := refused(lambda builder: read(builder).map_values(down).to("out")))
    assert "has the variable `lock`: a _thread.lock" in said


def test_a_start_is_refused_before_anything_is_there(tmp_path: Path) -> None:
    lock, builder = threading.Lock(), ks.StreamsBuilder()
    read(builder).map_values(lambda value: value if lock else 0, value=int).to("out")
    places = {"log.dir": str(tmp_path / "log"), "spark.kstreams.checkpoint": str(tmp_path / "checkpoint")}
    with pytest.raises(TopologyError, match="has the variable `lock`"):
        start(builder.build(), config={**CONFIG, **places})
    assert not list(tmp_path.iterdir())


CURED = """
import functools, sqlite3, threading, time
import kstreams as ks

@functools.cache
def connection():
    return sqlite3.connect(":memory:")

class Guarded(ks.FixedKeyProcessor):
    def init(self, context):
        self.context, self.lock = context, threading.Lock()

    def process(self, record):
        with self.lock:
            self.context.forward(record)

def answer(value):
    return connection().execute("select ?", (value,)).fetchone()[0]

topology = ks.StreamsBuilder()
topology.stream("in", key=str, value=int).map_values(answer, value=int).process_values(Guarded, value=int).to("out")
"""


def test_what_the_sentence_advises_works_in_a_process_without_the_users_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cured.py").write_text(CURED)
    monkeypatch.syspath_prepend(str(tmp_path))
    import cured  # type: ignore[import-not-found]

    from kstreams.runtime.spark.cluster.shipping import pack

    engine.explain(cured.topology.build(), Config.of(CONFIG))
    (tmp_path / "packed").write_bytes(pack(cured.answer))
    (tmp_path / "cured.py").unlink()
    script = f"""
from kstreams.runtime.spark.cluster.shipping import unpack
print(unpack(open({str(tmp_path / "packed")!r}, "rb").read())(7))
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ran.stdout.strip() == "7", ran.stderr
