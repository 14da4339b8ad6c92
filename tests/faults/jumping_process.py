"""A process of the application of `visits_app.py` whose wall clock jumps by what a file says, in milliseconds."""

from __future__ import annotations

import json
import signal
import sys
import threading
from pathlib import Path

from kstreams.kernel.clock import SystemClock
from kstreams.runtime.native.streams import KafkaStreams
from tests.faults.visits_app import topology


class ShiftedClock(SystemClock):
    """The machine's clock, whose wall time is off by what a file says at the moment.

    Parameters
    ----------
    file : Path
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def wall_ms(self) -> int:
        return super().wall_ms() + int(self._file.read_text())


def main(settings: str, shift_file: str) -> int:
    streams = KafkaStreams(topology, json.loads(settings), clock=ShiftedClock(Path(shift_file)))
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    streams.start()
    while not stopped.wait(0.1):
        if streams.error is not None:
            raise streams.error
    streams.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
