"""A log whose writer was killed, and what a user may see of its catalogue."""

import shutil
from pathlib import Path

from kstreams.kernel.batch import TopicPartition
from kstreams.log import open_log
from kstreams.log.embedded.log import EmbeddedLog
from kstreams.log.embedded.schemas import LocalRegistry
from kstreams.schemas import RegisteredSchema
from tests.log.contract.reading import values_of
from tests.log.embedded.files import run

SOURCE = TopicPartition("words", 0)
WRITER = """
import os, sys
from kstreams.kernel.batch import TopicPartition
from kstreams.log import open_log
from kstreams.log.api import OffsetAndMetadata
from kstreams.log.embedded.schemas import LocalRegistry
from kstreams.schemas import Schema
log = open_log(sys.argv[1])
registry = LocalRegistry(log)
source = TopicPartition("words", 0)
producer = log.producer({"transactional.id": "app"})
for i in range(int(sys.argv[2]), int(sys.argv[3])):
    producer.begin_transaction()
    producer.send("words", b"k", b"%d" % i)
    producer.commit_transaction({source: OffsetAndMetadata(i + 1, f"to {i}")}, "g")
    if len(sys.argv) > 4:
        registry.register(f"words{i}-value", Schema('"string"' if i % 2 else '"int"'))
os._exit(0)  # as a process that is killed: nothing is closed
"""
State = tuple[object, ...]


def write_killed_log(folder: Path, *more: str) -> Path:
    """A log whose writer was killed: its last two transactions are in the write-ahead log alone.

    With `"schemas"`, and a schema with each of the transactions.
    """
    with open_log(folder) as log:
        log.admin().create_topic("words")
        log.admin().create_topic("gone")
        log.admin().delete_topic("gone")
    run(WRITER, folder, 0, 3, *more)
    open_log(folder).close()
    run(WRITER, folder, 3, 5, *more)
    return folder


def copy(folder: Path, to: Path) -> Path:
    shutil.rmtree(to, ignore_errors=True)
    return Path(shutil.copytree(folder, to))


def state(folder: Path) -> State:
    """All that a user may see of the catalogue."""
    with open_log(folder) as log, log.admin() as admin:
        topics = {name: (topic.partitions, dict(topic.config)) for name, topic in admin.topics().items()}
        assert isinstance(log, EmbeddedLog)
        return topics, admin.groups(), admin.committed("g", [SOURCE]), values_of(log, "words"), schemas(log)


def schemas(log: EmbeddedLog) -> list[RegisteredSchema]:
    """Every version of every subject in the catalogue."""
    registry = LocalRegistry(log)
    return [
        registry.version(subject, version) for subject in registry.subjects() for version in registry.versions(subject)
    ]
