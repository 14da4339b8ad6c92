"""A query of Nexmark on kstreams: it runs until SIGTERM, and prints `half` when half of the events are processed.

`QUERY`, `FORM`, `BOOTSTRAP`, `ID`, `STATE`, `EVENTS` and `SETTINGS`, which is JSON, say what to run.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path

import kstreams as ks
from benchmarks.nexmark.queries import topology
from kstreams.os.garbage_collection import infrequent_garbage_collection


def main() -> None:
    """Run the query until SIGTERM."""
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    state = Path(os.environ["STATE"])
    config = {
        "application.id": os.environ["ID"],
        "bootstrap.servers": os.environ["BOOTSTRAP"],
        "state.dir": state,
        **json.loads(os.environ["SETTINGS"]),
    }
    half = int(os.environ["EVENTS"]) // 2
    with (
        infrequent_garbage_collection(),
        ks.KafkaStreams(topology(os.environ["QUERY"], os.environ["FORM"], state / "files"), config) as streams,
    ):
        streams.start()
        while not stopping.wait(0.05) and streams.progress().records_in < half:
            pass
        print("half", flush=True)
        stopping.wait()


if __name__ == "__main__":
    main()
