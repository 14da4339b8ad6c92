"""What becomes of the objects that are put into a store, and which keys are the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from kstreams.errors import SerdeError, StateError
from kstreams.record import ValueAndTimestamp
from kstreams.serdes.immutable import is_immutable
from kstreams.state import StoreBuilder, Stores, open_task_state


class Frozen(msgspec.Struct, frozen=True):
    name: str
    inner: tuple[int, ...] = ()


class Mutable(msgspec.Struct):
    total: int = 0


@dataclass(frozen=True)
class HoldsAList:
    items: list[int]


def opened(builder: StoreBuilder) -> Any:
    return open_task_state([builder]).stores[builder.name]


def test_a_mutable_value_changes_neither_after_its_put_nor_after_its_get() -> None:
    store = opened(Stores.key_value("s", key=str, value=Mutable))
    given = Mutable(1)
    store.put("a", given)
    given.total = 2
    assert store.get("a") == Mutable(1)
    store.get("a").total = 3
    assert store.get("a") == Mutable(1)
    assert next(store.all())[1] is not next(store.all())[1]


def test_a_mutable_value_in_a_timestamped_store_neither() -> None:
    store = opened(Stores.timestamped_key_value("s", key=str, value=list[int]))
    given = [1]
    store.put("a", ValueAndTimestamp(given, 5))
    given.append(2)
    assert store.get("a") == ValueAndTimestamp([1], 5)


def test_an_immutable_value_is_kept_as_the_object_it_is() -> None:
    store = opened(Stores.key_value("s", key=str, value=Frozen))
    given = Frozen("a")
    store.put("a", given)
    assert store.get("a") is given


@pytest.mark.parametrize("kind", [int, str | None, tuple[int, ...], Frozen, tuple[Frozen, bytes]])
def test_immutable_types(kind: Any) -> None:
    assert is_immutable(kind)


@pytest.mark.parametrize(
    "kind", [Any, list[int], dict[str, int], Mutable, HoldsAList, tuple[list[int], int], None | list]
)
def test_types_that_may_change(kind: Any) -> None:
    assert not is_immutable(kind)


@pytest.mark.parametrize(
    ("kind", "one", "other"), [(float, 0.0, -0.0), (int | float, 1, 1.0), (tuple[Any], (1,), (True,))]
)
def test_keys_that_are_equal_but_have_other_bytes_are_two_keys(kind: Any, one: Any, other: Any) -> None:
    store = opened(Stores.key_value("s", key=kind, value=str))
    store.put(one, "one")
    store.put(other, "other")
    assert (store.get(one), store.get(other)) == ("one", "other")


def test_unhashable_keys_are_taken() -> None:
    store = opened(Stores.key_value("s", key=dict[str, int], value=int))
    store.put({"a": 1}, 5)
    assert store.get({"a": 1}) == 5
    assert list(store.all()) == [({"a": 1}, 5)]


@pytest.mark.parametrize("key", [str, list[int]])
def test_a_null_key_is_refused_at_once(key: Any) -> None:
    store = opened(Stores.key_value("totals", key=key, value=int))
    for put in (lambda: store.put(None, 1), lambda: store.put_many([None], [1])):
        with pytest.raises(StateError, match="'totals' takes no null key"):
            put()


def test_a_value_that_its_serde_cannot_write_is_told_with_the_store() -> None:
    state = open_task_state([Stores.key_value("totals", key=str, value=int)])
    state.stores["totals"].put("a", "not a number")
    with pytest.raises(SerdeError, match="store 'totals' holds a value"):
        state.changes()


def test_order_is_that_of_unsigned_bytes() -> None:
    store = opened(Stores.key_value("s", key=int, value=int))
    for key in (-1, 0, 1, 2**62):
        store.put(key, key)
    assert [key for key, _ in store.all()] == [0, 1, 2**62, -1]
