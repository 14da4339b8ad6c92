"""Stores of the user's own making: what they log is what comes back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

import kstreams as ks
from kstreams.errors import StateError
from kstreams.state import Stores, open_task_state
from kstreams.testing import TopologyTestDriver
from tests.state.store_machine import StoreMachine


class Multiset:
    """Counts words; logs the count of a word, and its end."""

    def __init__(self, log: Any) -> None:
        self.log, self.counts, self.closed = log, {}, False

    def add(self, word: str, by: int) -> None:
        count = self.counts.get(word, 0) + by
        self.log(word.encode(), str(count).encode() if count else None, 7)
        self._set(word, count)

    def restore(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        assert timestamp == 7
        self._set(key.decode(), int(value or 0))

    def _set(self, word: str, count: int) -> None:
        self.counts[word] = count
        if not count:
            del self.counts[word]

    def close(self) -> None:
        self.closed = True


class CustomMachine(StoreMachine):
    """The model: counts by word."""

    builder = Stores.custom("words", Multiset)

    def new_model(self) -> dict[str, int]:
        return {}

    def contents(self, store: Any) -> Any:
        return store.counts

    def expected(self) -> Any:
        return {word: count for word, count in self.model.items() if count}

    @rule(word=st.sampled_from("abc"), by=st.integers(-2, 2))
    def add(self, word: str, by: int) -> None:
        self.store.add(word, by)
        self.model[word] = self.model.get(word, 0) + by


TestCustomStore = CustomMachine.TestCase
TestCustomStore.settings = settings(max_examples=20, stateful_step_count=40)


class KeptMachine(CustomMachine):
    """Persisted: made again from its rows."""

    durable = keep_all = True


TestKept = KeptMachine.TestCase
TestKept.settings = settings(max_examples=3, stateful_step_count=40)


def test_a_store_is_closed_with_its_task() -> None:
    state = open_task_state([Stores.custom("words", Multiset)])
    store = state.stores["words"]
    state.close()
    assert store.closed


def test_a_log_takes_bytes() -> None:
    store = open_task_state([Stores.custom("words", Multiset)]).stores["words"]
    with pytest.raises(StateError, match="logs bytes"):
        store.log("a", b"1")


def test_a_processor_uses_its_own_store() -> None:
    class Count(ks.Processor):
        @classmethod
        def stores(cls) -> list[Any]:
            return [Stores.custom("words", Multiset)]

        def init(self, context: Any) -> None:
            self.context, self.words = context, context.get_state_store("words")

        def process(self, record: Any) -> None:
            self.words.add(record.value, 1)
            self.context.forward(record.with_value(self.words.counts[record.value]))

    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).process(Count, key=str, value=int).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_values(["a", "b", "a"])
        assert driver.create_output_topic("out", key=str, value=int).read_values() == [1, 1, 2]
        assert driver.get_state_store("words").counts == {"a": 2, "b": 1}
        changelog = driver.create_output_topic("test-words-changelog", key=str, value=str)
        assert changelog.read_key_values() == [("a", "1"), ("b", "1"), ("a", "2")]
