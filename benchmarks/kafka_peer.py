"""One work of a comparison of stream processors over a Kafka broker: a program that its environment describes.

`WORK` is W1 to W5, `BOOTSTRAP` the broker, `IN`, `TABLE` and `OUT` are topics, `RECORDS` is the size of the input,
`STATE` is an empty folder, `ID` the application's id. It prints `first`, `half` and `last` with the time when that
record was processed, and ends at SIGTERM. Arguments are settings, `name=value`.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from datetime import timedelta

import msgspec

import kstreams as ks
from kstreams.kernel.clock import SystemClock
from kstreams.os.garbage_collection import infrequent_garbage_collection

TOTAL = int(os.environ["RECORDS"])
WORDS = 8  # of a sentence
ROWS = 10_000  # of the table: they are records too


class Event(msgspec.Struct):
    """A record of the input; what no work reads is left out."""

    user: str
    amount: float


class Row(msgspec.Struct):
    """A row of the table."""

    city: str


def topology(work: str, source: str, table: str, sink: str) -> ks.StreamsBuilder:
    """The work, said as a user would who wants it fast: by expressions, where there is one."""
    builder = ks.StreamsBuilder()
    if work == "W5":
        lines = builder.stream(source, key=str, value=str)
        words = lines.flat_map_values(str.split, value=str).group_by(lambda _, word: word, key=str)
        words.count().to_stream().map_values(str, value=str).to(sink)
        return builder
    events = builder.stream(source, key=str, value=Event)
    if work == "W1":
        kept = events.filter(ks.col("amount") > 50)
        kept.map_values(ks.struct(user=ks.col("user"), amount=ks.col("amount"))).to(sink)
    elif work == "W4":
        rows = builder.table(table, key=str, value=Row)
        joined = ks.struct(user=ks.col("user"), amount=ks.col("amount"), city=ks.right.col("city"))
        events.join(rows, joined).to(sink)
    else:
        windows = ks.TimeWindows(size=timedelta(minutes=1), grace=timedelta(seconds=10))
        counts = events.group_by_key().windowed_by(windows).count().to_stream()
        shown = ks.struct(start=ks.window_start, end=ks.window_end, value=ks.value)
        counts.map((ks.key, shown)).to(sink)
    return builder


def counted_words(streams: ks.KafkaStreams) -> int:
    """How many words are processed behind the repartition topic, in whose offsets marks of transactions count too."""
    tasks = [task for thread in streams.metadata_for_local_threads() for task in thread.tasks]
    offsets = [(at, offset) for task in tasks for at, offset in task.next_offsets.items()]
    words = sum(offset for at, offset in offsets if at.topic.endswith("-repartition"))
    return words if streams.progress().lag == 0 else min(words, TOTAL * WORDS - 1)


def main() -> None:
    """Run the work until SIGTERM."""
    work, stopping, clock = os.environ["WORK"], threading.Event(), SystemClock()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    settings = dict(argument.split("=", 1) for argument in sys.argv[1:])
    config = {
        "application.id": os.environ["ID"],
        "bootstrap.servers": os.environ["BOOTSTRAP"],
        "state.dir": os.environ["STATE"],
        **settings,
    }
    streams = ks.KafkaStreams(topology(work, os.environ["IN"], os.environ["TABLE"], os.environ["OUT"]), config)
    with infrequent_garbage_collection(), streams:
        streams.start()
        before, total = ROWS if work == "W4" else 0, TOTAL * WORDS if work == "W5" else TOTAL
        marks = {before + 1: "first", before + total // 2: "half", before + total: "last"}
        while not stopping.wait(0.02):
            seen = counted_words(streams) if work == "W5" else streams.progress().records_in
            for mark in [mark for mark in marks if mark <= seen]:
                print(marks.pop(mark), clock.wall_ms() / 1000, flush=True)


if __name__ == "__main__":
    main()
