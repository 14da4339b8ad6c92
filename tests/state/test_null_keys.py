"""A store has no row of a null key: every method that takes a key says so, as in Kafka Streams."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.errors import StateError
from kstreams.record import Window, Windowed
from kstreams.state import StoreBuilder, Stores, open_task_state, queries
from kstreams.testing import TopologyTestDriver

SESSION_OF_NONE = Windowed(None, Window(0, 5))

STORES: dict[str, Callable[..., StoreBuilder]] = {
    "key-value": lambda **settings: Stores.key_value("s", **settings),
    "timestamped": lambda **settings: Stores.timestamped_key_value("s", **settings),
    "lru": lambda store, **settings: Stores.lru_map("s", 5, **settings),  # in memory alone
    "window": lambda **settings: Stores.window("s", retention=100, size=10, **settings),
    "session": lambda **settings: Stores.session("s", retention=100, **settings),
    "versioned": lambda **settings: Stores.versioned("s", history_retention=100, **settings),
}
OF_ROWS: dict[str, tuple[Any, ...]] = {
    "get": (None,),
    "put": (None, "v"),
    "delete": (None,),
    "put_if_absent": (None, "v"),
    "put_all": ([(None, "v")],),
    "prefix_scan": (None,),
}
CALLS: dict[str, dict[str, tuple[Any, ...]]] = {
    "key-value": OF_ROWS,
    "timestamped": OF_ROWS,
    "lru": OF_ROWS,
    "window": {"get": (None, 0), "put": (None, "v", 0), "fetch": (None, 0, 10), "backward_fetch": (None, 0, 10)},
    "session": {
        "put": (SESSION_OF_NONE, "v"),
        "remove": (SESSION_OF_NONE,),
        "fetch_session": (None, 0, 5),
        "fetch": (None,),
        "backward_fetch": (None,),
        "find_sessions": (None, 0, 5),
        "backward_find_sessions": (None, 0, 5),
    },
    "versioned": {"get": (None,), "put": (None, "v", 0), "delete": (None, 0), "history": (None,)},
}


@pytest.mark.parametrize("key", [str, list[str]], ids=["text", "list"])
@pytest.mark.parametrize("store", ["rocksdb", "memory"])
@pytest.mark.parametrize(("kind", "method"), [(kind, method) for kind, calls in CALLS.items() for method in calls])
def test_a_null_key_is_refused(kind: str, method: str, store: str, key: Any, tmp_path: Path) -> None:
    state = open_task_state([STORES[kind](key=key, value=str, store=store)], tmp_path)
    try:
        with pytest.raises(StateError, match=r"store 's' takes no null (key|prefix)"):
            getattr(state.stores["s"], method)(*CALLS[kind][method])
    finally:
        state.close()


def test_bounds_of_none_are_open(tmp_path: Path) -> None:
    with_rows = open_task_state([STORES["key-value"](key=str, value=str)], tmp_path)
    try:
        store = with_rows.stores["s"]
        store.put("k", "v")
        assert list(store.range(None, None)) == [("k", "v")]
    finally:
        with_rows.close()


def test_views_of_stores_refuse_a_null_key() -> None:
    builder = ks.StreamsBuilder()
    grouped = builder.stream("in", key=str, value=str).group_by_key()
    grouped.count("counts")
    grouped.windowed_by(ks.TimeWindows(size=10, grace=0)).count("by-window")
    grouped.windowed_by(ks.SessionWindows(gap=10, grace=0)).count("by-session")
    with TopologyTestDriver(builder.build()) as driver:
        for ask in (
            lambda: driver.get_key_value_store("counts").get(None),
            lambda: driver.get_timestamped_key_value_store("counts").get(None),
            lambda: driver.get_window_store("by-window").fetch(None, 0, 10),
            lambda: driver.get_session_store("by-session").fetch(None),
        ):
            with pytest.raises(StateError, match="null key"):
                ask()


@pytest.mark.parametrize(
    "query",
    [
        queries.KeyQuery,
        queries.TimestampedKeyQuery,
        queries.WindowKeyQuery,
        queries.SessionKeyQuery,
        queries.VersionedKeyQuery,
        queries.MultiVersionedKeyQuery,
    ],
)
def test_queries_refuse_a_null_key(query: Callable[[Any], Any]) -> None:
    with pytest.raises(StateError, match=r"Query needs a key: no store has a row of a null key"):
        query(None)
