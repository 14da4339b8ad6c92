"""Objects of a checkpoint: whole or not there, published once, on a path, a `file:` URI and an object store alike."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from kstreams.errors import ConfigError, StateError
from kstreams.runtime.spark.settings import SparkSettings
from kstreams.runtime.spark.storage.checkpoint_storage import CheckpointStorage
from kstreams.runtime.spark.storage.opening import open_storage
from tests.spark.hdfs_cluster import hdfs_cluster
from tests.spark.s3_server import S3Server, s3_server

WRITERS = 6


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    pytest.importorskip("moto", reason="needs the dev extra")
    with s3_server() as server:
        yield server


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("hdfs_native", reason="needs the dev extra")
    with hdfs_cluster(tmp_path_factory.mktemp("hdfs")) as address:
        yield address


Place = tuple[str, Mapping[str, str]]
SLOW_HDFS = pytest.param("hdfs", marks=[pytest.mark.spark, pytest.mark.slow])


@pytest.fixture(params=["path", "file", "s3", "s3a", SLOW_HDFS])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A location, and the settings with which it is reached."""
    if request.param == "path":
        return str(tmp_path / "a folder"), {}
    if request.param == "file":
        return f"file://{tmp_path}/checkpoint", {}
    if request.param == "hdfs":
        return f"{request.getfixturevalue('hdfs')}/{tmp_path.name}", {}
    server: S3Server = request.getfixturevalue("s3")
    return server.location(tmp_path.name, request.param), server.conf


@pytest.fixture
def storage(place: Place) -> CheckpointStorage:
    return open_storage(*place)


def test_what_is_written_is_read_by_another(storage: CheckpointStorage, place: Place) -> None:
    storage.write("state/0_0/a", b"one")
    storage.write("state/0_0/a", b"two")
    assert open_storage(*place).read("state/0_0/a") == b"two"


def test_what_is_not_there_is_said(storage: CheckpointStorage) -> None:
    with pytest.raises(FileNotFoundError):
        storage.read("id")
    assert storage.names("state") == []


def test_a_folder_lists_its_own_objects(storage: CheckpointStorage) -> None:
    for name in ("id", "state/0_0/a", "state/0_0/b", "state/0_01/c"):
        storage.write(name, b"x")
    assert sorted(storage.names("state/0_0")) == ["a", "b"]
    assert storage.names("") == ["id"]
    assert storage.names("state") == []


def test_what_is_published_stays(storage: CheckpointStorage) -> None:
    assert storage.publish("id", b"first") == b"first"
    assert storage.publish("id", b"second") == b"first"
    assert storage.read("id") == b"first"


def test_a_large_object_is_whole(storage: CheckpointStorage) -> None:
    content = os.urandom(7_000_000)  # more than one part of an upload
    storage.write("state/0_0/snapshot", content)
    assert storage.read("state/0_0/snapshot") == content


def test_deleted_objects_are_gone_and_those_that_were_not_there_are_no_error(storage: CheckpointStorage) -> None:
    storage.write("steps/1", b"x")
    storage.write("steps/2", b"x")
    storage.delete(["steps/1", "steps/9"])
    assert storage.names("steps") == ["2"]


def test_clearing_forgets_everything_under_the_location(place: Place) -> None:
    location, conf = place
    mine, other = open_storage(f"{location}/app", conf), open_storage(f"{location}/app2", conf)
    for each in (mine, other):
        each.write("id", b"x")
        each.write("state/0_0/a", b"x")
    mine.clear()
    assert mine.names("") == mine.names("state/0_0") == []
    assert other.names("state/0_0") == ["a"]
    mine.clear()


def together(work: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_of_threads_that_publish_one_wins_and_all_know(storage: CheckpointStorage) -> None:
    for name in (f"plans/{number}" for number in range(10)):
        found: list[bytes] = []
        ready = threading.Barrier(WRITERS)

        def publish(
            number: int, name: str = name, found: list[bytes] = found, ready: threading.Barrier = ready
        ) -> None:
            ready.wait()
            found.append(storage.publish(name, b"%d" % number * 1000))

        together(publish)
        assert len(found) == WRITERS
        assert set(found) == {storage.read(name)}


def _publish(place: Place, number: int, ready: object, found: object) -> None:
    storage = open_storage(*place)
    ready.wait()  # type: ignore[attr-defined]
    found.put([storage.publish(f"plans/{name}", b"%d" % number * 1000) for name in range(20)])  # type: ignore[attr-defined]


def test_of_processes_that_publish_one_wins_and_all_know(place: Place) -> None:
    context = multiprocessing.get_context("spawn")
    ready, queue = context.Barrier(3), context.Queue()
    processes = [context.Process(target=_publish, args=(place, number, ready, queue)) for number in range(3)]
    for process in processes:
        process.start()
    found = [queue.get(timeout=60) for _ in processes]
    for process in processes:
        process.join()
    assert found[0] == found[1] == found[2]
    assert found[0] == [open_storage(*place).read(f"plans/{name}") for name in range(20)]


def test_nobody_sees_half_of_an_object(storage: CheckpointStorage) -> None:
    contents = [bytes([number]) * 400_000 for number in range(WRITERS)]
    storage.write("state/0_0/a", contents[0])
    seen: list[bytes] = []

    def write_and_read(number: int) -> None:
        for _ in range(5):
            storage.write("state/0_0/a", contents[number])
            seen.append(storage.read("state/0_0/a"))

    together(write_and_read)
    assert len(seen) == 5 * WRITERS
    assert set(seen) <= set(contents)
    assert storage.names("state/0_0") == ["a"]


def test_files_are_private(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path / "checkpoint"), {})
    storage.write("state/0_0/a", b"x")
    storage.publish("id", b"x")
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "checkpoint").rglob("*") if path.is_file()}
    folders = {path.stat().st_mode & 0o777 for path in (tmp_path / "checkpoint", tmp_path / "checkpoint" / "state")}
    assert (modes, folders) == ({0o600}, {0o700})


def test_a_link_in_place_of_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"x")
    (tmp_path / "id").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StateError, match="symbolic link"):
        open_storage(str(tmp_path), {}).publish("id", b"y")


def test_a_bucket_that_is_not_there_is_an_error_that_says_where_to_look(s3: S3Server) -> None:
    storage = open_storage("s3://another/checkpoint", s3.conf)
    with pytest.raises(StateError, match=r"s3://another/checkpoint/id cannot be written: .*Credentials and endpoint"):
        storage.publish("id", b"x")


@pytest.mark.parametrize(
    ("location", "cure"),
    [
        ("dbfs:/checkpoints", "storage behind it"),
        ("wasbs://c@a.blob.core.windows.net/x", "abfss://<container>@"),
        ("ftp://host/x", "a URI that begins with file:, hdfs:, s3:"),
    ],
)
def test_a_scheme_that_cannot_be_served_is_refused_with_a_cure(location: str, cure: str) -> None:
    with pytest.raises(ConfigError, match="cannot lie at") as caught:
        open_storage(location, {})
    assert cure in str(caught.value)


def test_a_uri_in_the_settings_stays_one() -> None:
    uris = {"spark.kstreams.checkpoint": "s3://bucket/cp", "spark.kstreams.delta": "abfss://c@account/delta/"}
    settings = SparkSettings.of(uris)
    assert settings.checkpoint_of("app") == "s3://bucket/cp/app"
    assert settings.delta is not None
    assert settings.delta.folder == "abfss://c@account/delta"


def test_another_machine_in_a_file_uri_is_refused() -> None:
    with pytest.raises(ConfigError, match="names the machine 'tmp': write file:///tmp/x"):
        SparkSettings.of({"spark.kstreams.checkpoint": "file://tmp/x"})
