"""Stores as others see them: read-only views, stores without timestamps, and the partitions of a store as one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import rule

from kstreams.errors import StateError
from kstreams.record import ValueAndTimestamp
from kstreams.state import Stores, open_task_state
from kstreams.state.read_only_store import Answer, ReadOnlyView
from kstreams.testing.driver import ValuesOnly
from tests.state.test_key_value_store import KeyValueMachine
from tests.state.test_session_store import RETENTION, SessionMachine
from tests.state.test_window_store import WindowMachine


class AtOnce:
    """Answers in the asking thread: nobody else writes here."""

    number = 0

    def __init__(self, store: Any) -> None:
        self._store = store

    def begin(self, question: Any) -> Any:
        return lambda: Answer(question(self._store), {})


class Seen:
    """Of a machine: every view of its store shows what the store holds."""

    store: Any
    builder: Any

    @rule()
    def views_show_the_store(self) -> None:
        held = list(self.store.all())
        assert list(ReadOnlyView(self.store).all()) == held
        view = self.builder.kind.view
        assert view(self.builder.name, [AtOnce(self.store)] * 2).all() == held * 2
        if "timestamped" in self.builder.name:
            assert list(ValuesOnly(self.store).all()) == [(key, row.value) for key, row in held]


class SeenKeyValueMachine(Seen, KeyValueMachine):
    builder = Stores.timestamped_key_value("timestamped", key=str, value=int)


class SeenWindowMachine(Seen, WindowMachine):
    builder = Stores.timestamped_window("timestamped", RETENTION, 10, key=str, value=int)


class SeenSessionMachine(Seen, SessionMachine):
    builder = Stores.session("visits", RETENTION, key=str, value=int)


FEW = settings(max_examples=8, stateful_step_count=30)
TestKeyValue, TestWindow, TestSession = (
    machine.TestCase for machine in (SeenKeyValueMachine, SeenWindowMachine, SeenSessionMachine)
)
TestKeyValue.settings = TestWindow.settings = TestSession.settings = FEW


def rows() -> Any:
    store = open_task_state([Stores.timestamped_key_value("rows", key=str, value=int)]).stores["rows"]
    for number, key in enumerate("abc"):
        store.put(key, ValueAndTimestamp(number, 10 * number))
    return store


@pytest.mark.parametrize("write", ["put", "delete", "put_if_absent", "put_all", "put_many"])
def test_a_view_refuses_to_write(write: str) -> None:
    with pytest.raises(StateError, match=f"'rows' is read-only here: only the processor that fills it may {write}"):
        getattr(ReadOnlyView(rows()), write)


@pytest.mark.parametrize("write", ["put", "remove"])
def test_a_view_of_sessions_refuses_to_write(write: str) -> None:
    sessions = open_task_state([Stores.session("visits", RETENTION, key=str, value=int)]).stores["visits"]
    with pytest.raises(StateError, match=f"'visits' is read-only here: only the processor that fills it may {write}"):
        getattr(ReadOnlyView(sessions), write)


def test_a_store_without_timestamps_answers_all_its_kind_does() -> None:
    values = ValuesOnly(rows())
    assert (values.get("b"), values.get("x")) == (1, None)
    assert list(values.range("b")) == [("b", 1), ("c", 2)]
    assert list(values.reverse_range("a", "b")) == [("b", 1), ("a", 0)]
    assert list(values.prefix_scan("c")) == [("c", 2)]
    assert values.approximate_num_entries() == 3
    with pytest.raises(AttributeError, match="without timestamps has no method 'put'"):
        values.put("a", 1)
