"""Descriptions of stores that contradict themselves are refused with what to do."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from kstreams.errors import StateError
from kstreams.kernel.durations import to_ms
from kstreams.serdes import IntSerde
from kstreams.state import StoreBuilder, Stores, open_task_state, store_kinds


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Stores.window("w", retention=5, size=10), "make the retention at least as long"),
        (lambda: Stores.session("s", retention=0), "retention is 0 ms, it must be at least 1 ms"),
        (lambda: Stores.versioned("v", history_retention=-1), "history_retention is -1 ms"),
        (lambda: Stores.lru_map("l", 0), "max_entries must be at least 1"),
        (lambda: Stores.key_value("k", store="disk"), 'choose store="rocksdb" or store="memory"'),
        (lambda: Stores.key_value(""), "needs a name"),
        (lambda: Stores.versioned("v", history_retention=1, caching=True), "leave caching=True out"),
    ],
)
def test_contradictions(make: Callable[[], StoreBuilder], message: str) -> None:
    with pytest.raises(StateError, match=message):
        make()


def test_a_store_without_types_does_not_open() -> None:
    with pytest.raises(StateError, match="'k' does not know the type of its keys: declare it with key="):
        open_task_state([Stores.key_value("k")])


def test_types_and_serdes_and_durations_are_taken() -> None:
    serde = IntSerde()
    builder = Stores.window("w", timedelta(hours=2), timedelta(hours=1), key=str, value=serde, caching=True)
    assert (builder.kind, builder.retention_ms, builder.window_size_ms) == (store_kinds.WINDOW, 7_200_000, 3_600_000)
    assert builder.value is serde
    assert builder.caching
    assert builder.logging


def test_logging_takes_settings_of_the_changelog() -> None:
    assert Stores.key_value("k").logging
    assert not Stores.key_value("k", logging=False).logging
    builder = Stores.key_value("k", logging={"segment.bytes": "10"})
    assert builder.logging
    assert builder.changelog_config == {"segment.bytes": "10"}


@pytest.mark.parametrize("wrong", [1.5, "1h", True, None])
def test_durations_are_timedeltas_or_whole_milliseconds(wrong: Any) -> None:
    with pytest.raises(TypeError, match="is not a duration"):
        to_ms(wrong)


def test_a_store_that_is_not_there_is_told_with_those_that_are() -> None:
    state = open_task_state([Stores.key_value("k", key=str, value=int)])
    with pytest.raises(StateError, match=r"no store 'x' in this task; it has \['k'\]"):
        state.changelog_offset("x")
