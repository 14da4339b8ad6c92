"""The judge as a process: questions are lines of JSON on its standard input, answers on its standard output.

Between questions it reads the outputs, and measures the longest time in which nothing came though input waited.
"""

from __future__ import annotations

import json
import select
import sys
from time import monotonic
from typing import Any

from tests.faults.judge.records import Row
from tests.faults.judge.shop import Input, Numbers, Shop

POLL_S = 0.1


class Judge:
    """Writes rows, reads outputs, answers questions.

    Parameters
    ----------
    address : str
        `log:FOLDER` or `kafka:SERVERS`.
    books : Shop or Numbers
    """

    def __init__(self, address: str, books: Shop | Numbers) -> None:
        kind, place = address.split(":", 1)
        if kind == "kafka":
            from tests.faults.judge.kafka_topics import KafkaTopics

            self._topics: Any = KafkaTopics(place)
        else:
            from tests.faults.judge.embedded_topics import EmbeddedTopics

            self._topics = EmbeddedTopics(place)
        self._books = books
        self._rows = books.rows()
        self._written = 0
        self._read = 0
        self._last_output: float | None = None
        self._was_behind = False
        self.longest_gap_s = 0.0

    def poll(self) -> None:
        """Read what is new, and measure the gap since the last output."""
        is_new = False
        for topic in self._books.outputs:
            records = self._topics.poll(topic)
            self._books.read(topic, records)
            self._read += len(records)
            is_new = is_new or bool(records)
        now = monotonic()
        if self._last_output is not None and self._was_behind:
            self.longest_gap_s = max(self.longest_gap_s, now - self._last_output)
        if is_new or (self._last_output is not None and not self._was_behind):
            self._last_output = now
        self._was_behind = self._books.is_behind()

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """Answer one question."""
        return getattr(self, f"_{question.pop('do')}")(**question)

    def _write(self, share: float) -> dict[str, Any]:
        """Write rows up to a share of all."""
        end = int(len(self._rows) * share)
        self._put(self._rows[self._written : end])
        self._written = max(self._written, end)
        return {}

    def _close(self) -> dict[str, Any]:
        self._put(self._books.closing_rows())
        return {}

    def _progress(self) -> dict[str, Any]:
        return {"behind": self._books.is_behind(), "read": self._read}

    def _complete(self) -> dict[str, Any]:
        return {"complete": self._books.is_complete()}

    def _verdict(self) -> dict[str, Any]:
        self.poll()
        return self._books.verdict()._asdict() | {"longest_gap_s": self.longest_gap_s}

    def _put(self, rows: list[Row]) -> None:
        self._topics.write(rows)
        self._books.wrote(rows)


def main(arguments: dict[str, Any]) -> None:
    data = arguments["input"]
    books = Numbers(data["records"]) if arguments["numbers"] else Shop(Input(**data), is_once=arguments["once"])
    judge = Judge(arguments["address"], books)
    while True:
        ready, _, _ = select.select([sys.stdin], [], [], POLL_S)
        if not ready:
            judge.poll()
            continue
        line = sys.stdin.readline()
        if not line:
            return
        sys.stdout.write(json.dumps(judge.answer(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
