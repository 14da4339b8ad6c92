"""Applications of more partitions than there are descriptors; and the error where even that is not enough."""

from __future__ import annotations

from pathlib import Path

import pytest

from kstreams.log import open_log
from tests.log.contract.reading import values_of
from tests.log.embedded.files import run

APPLICATION = """
import resource, sys
from pathlib import Path
import kstreams as ks
limit = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
builder = ks.StreamsBuilder()
stream = builder.stream("in", key=str, value=str)
if sys.argv[3] == "counts":
    stream.group_by_key().count().to_stream().to("out")
else:
    stream.map_values(str.upper, value=str).to("out")
home = Path(sys.argv[1])
settings = {"application.id": "app", "log.dir": home, "state.dir": home / "state", "num.stream.threads": 2}
streams = ks.KafkaStreams(builder.build(), settings)
try:
    streams.start(until_end=True)
    streams.wait(120)
    print(streams.state.name)
except ks.errors.KStreamsError as error:
    print(error)
"""


def application(folder: Path, partitions: int, limit: int, what: str) -> str:
    with open_log(folder) as log:
        for topic in ("in", "out"):
            log.admin().create_topic(topic, partitions)
        with log.producer() as producer:
            for i in range(10 * partitions):
                producer.send("in", b"k%d" % i, b"v", partition=i % partitions)
    return run(APPLICATION, folder, limit, what)


@pytest.mark.parametrize("limit", [256, 1024])
def test_a_hundred_partitions(tmp_path: Path, limit: int) -> None:
    assert application(tmp_path, 100, limit, "shouts") == "NOT_RUNNING\n"
    with open_log(tmp_path) as log:
        assert len(values_of(log, "out", 100)) == 1000


def test_state_in_fewer_partitions(tmp_path: Path) -> None:
    assert application(tmp_path, 20, 256, "counts") == "NOT_RUNNING\n"


def test_where_it_is_not_enough_the_error_names_the_limit(tmp_path: Path) -> None:
    assert "ulimit -n" in application(tmp_path, 50, 128, "counts")
