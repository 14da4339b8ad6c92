"""How fast the state stores are: hot reads and writes, many keys with commits, bulk calls, restore.

Every figure is operations a second of CPU time of this process, the best of a few runs.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa

from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.record import ValueAndTimestamp
from kstreams.state import Stores, TaskState, open_task_state

HOT, UNIFORM, COMMIT = 1_000, 1_000_000, 100_000
TABLE = Stores.timestamped_key_value("table", key=str, value=int)
HOURLY = Stores.timestamped_window("hourly", 7_200_000, 3_600_000, key=str, value=int)


@contextmanager
def opened(builder: object) -> Iterator[TaskState]:
    """The state of one store in a RocksDB of its own."""
    with tempfile.TemporaryDirectory(prefix="kstreams-bench-") as directory:
        state = open_task_state([builder], Path(directory))  # type: ignore[list-item]
        yield state
        state.close()


def rate(count: int, work: Callable[[], object], times: int = 3) -> float:
    """Operations a second of CPU time."""
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return count / best


def hot_get_put() -> float:
    """Read and write one of 1,000 keys, a pair each."""
    keys = [f"key-{i % HOT}" for i in range(UNIFORM)]

    with opened(TABLE) as state:
        store = state.stores["table"]
        store.put_many(keys[:HOT], [ValueAndTimestamp(1, 1)] * HOT)

        def work() -> None:
            get, put = store.get, store.put
            for key in keys:
                put(key, get(key))

        return rate(len(keys), work)


def window_get_put() -> float:
    """The same in a window store, in two windows."""
    rows = [(f"key-{i % HOT}", 3_600_000 * (i // 7 % 2)) for i in range(UNIFORM)]

    with opened(HOURLY) as state:
        store = state.stores["hourly"]

        def work() -> None:
            get, put = store.get, store.put
            for key, start in rows:
                get(key, start)
                put(key, (1, 1), start)

        return rate(len(rows), work)


def uniform_with_commits() -> float:
    """Count a million random keys of a million; changelog and RocksDB are written every 100,000."""
    rng = random.Random(7)
    keys = [f"key-{rng.randrange(UNIFORM)}" for _ in range(UNIFORM)]

    with opened(TABLE) as state:
        store = state.stores["table"]

        def work() -> None:
            get, put = store.get, store.put
            for start in range(0, len(keys), COMMIT):
                for key in keys[start : start + COMMIT]:
                    old = get(key)
                    put(key, ValueAndTimestamp(1 if old is None else old[0] + 1, start))
                state.persist(state.changes(), {"table": start})

        return rate(len(keys), work, times=1)


def bulk(call: str) -> float:
    """get_many or put_many of 100,000 keys."""
    keys = [f"key-{i}" for i in range(COMMIT)]
    values = [ValueAndTimestamp(i, i) for i in range(COMMIT)]

    with opened(TABLE) as state:
        store = state.stores["table"]
        store.put_many(keys, values)
        arguments = (keys,) if call == "get_many" else (keys, values)
        return rate(COMMIT, lambda: getattr(store, call)(*arguments), times=5)


def restore() -> float:
    """Rows of a changelog of a million, in no order, into an empty store, in batches of 10,000."""
    order = np.random.default_rng(7).permutation(UNIFORM)
    keys = pa.array([f"key-{i}".encode() for i in order], pa.binary())
    values = pa.array([int(i).to_bytes(8, "big") for i in order], pa.binary())
    times = pa.array(order)
    best = 0.0
    for _ in range(3):
        with opened(TABLE) as state:
            best = max(best, rate(UNIFORM, lambda state=state: _restore(state, keys, values, times), times=1))  # type: ignore[misc]
    return best


def _restore(state: TaskState, keys: pa.Array, values: pa.Array, times: pa.Array) -> None:
    for start in range(0, len(keys), 10_000):
        offsets = np.arange(start, start + 10_000)
        parts = (column.slice(start, 10_000) for column in (keys, values, times))
        state.restore("table", Batch(TopicPartition("changelog", 0), offsets, *parts))
    state.close()


def first_read() -> float:
    """First reads of a store of a million rows that was closed, each after it is opened again."""
    keys, values = [f"key-{i}" for i in range(UNIFORM)], [ValueAndTimestamp(i, i) for i in range(UNIFORM)]
    best = float("inf")
    with tempfile.TemporaryDirectory(prefix="kstreams-bench-") as directory:
        state = open_task_state([TABLE], Path(directory))
        state.stores["table"].put_many(keys, values)
        state.persist(state.changes(), {"table": UNIFORM})
        state.close()
        for _ in range(3):
            state = open_task_state([TABLE], Path(directory))
            start = time.process_time()
            state.stores["table"].get("key-7")
            best = min(best, time.process_time() - start)
            state.close()
    return 1 / best


def run() -> dict[str, float]:
    """All figures, in operations a second."""
    return {
        "state: get+put, 1,000 keys": hot_get_put(),
        "state: window get+put, 1,000 keys": window_get_put(),
        "state: get+put, 1,000,000 keys, commit each 100,000": uniform_with_commits(),
        "state: get_many": bulk("get_many"),
        "state: put_many": bulk("put_many"),
        "state: restore": restore(),
        "state: first read of 1,000,000 rows": first_read(),
    }


if __name__ == "__main__":
    for name, figure in run().items():
        print(f"{name}: {figure:,.0f}/s")
