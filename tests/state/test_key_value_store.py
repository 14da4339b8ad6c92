"""Key-value stores against a dict, over every layer below."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from kstreams.record import ValueAndTimestamp, ValueTimestampHeaders
from kstreams.state import Stores
from tests.state.store_machine import StoreMachine, cases_of, headers_for

NAMES = st.sampled_from(["", "a", "ab", "b", "a\x00", "ÿ", "\U0001f600", "a\U0001f600", *map(str, range(12))])
NUMBERS = st.integers(-3, 3)


class KeyValueMachine(StoreMachine):
    """Keys are drawn as text and turned into what the store's serde takes."""

    def new_model(self) -> dict[str, Any]:
        return {}

    def key(self, name: str) -> Any:
        return [name] if self.builder.name == "lists" else name

    def value(self, number: int) -> Any:
        kinds = {
            "timestamped": ValueAndTimestamp(number, 100 + number),
            "lists": {"n": [number]},
            "headers": ValueTimestampHeaders(number, 100 + number, headers_for(number)),
            "lists-headers": ValueTimestampHeaders([number], 100 + number, headers_for(number)),
        }
        return kinds.get(self.builder.name, number)

    def data(self, name: str) -> bytes:
        return self.builder.key.serialize(self.key(name))  # type: ignore[union-attr]

    def ordered(self, low: str | None = None, high: str | None = None) -> list[Any]:
        names = sorted(self.model, key=self.data)
        return [
            (self.key(name), self.model[name])
            for name in names
            if (low is None or self.data(low) <= self.data(name))
            and (high is None or self.data(name) <= self.data(high))
        ]

    def contents(self, store: Any) -> Any:
        return list(store.all())

    def expected(self) -> Any:
        return self.ordered()

    @rule(name=NAMES, number=NUMBERS)
    def put(self, name: str, number: int) -> None:
        self.store.put(self.key(name), self.value(number))
        self.model[name] = self.value(number)

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        assert self.store.delete(self.key(name)) == self.model.pop(name, None)

    @rule(name=NAMES, number=NUMBERS)
    def put_if_absent(self, name: str, number: int) -> None:
        assert self.store.put_if_absent(self.key(name), self.value(number)) == self.model.get(name)
        self.model.setdefault(name, self.value(number))

    @rule(name=NAMES)
    def get(self, name: str) -> None:
        assert self.store.get(self.key(name)) == self.model.get(name)

    @rule(names=st.lists(NAMES))
    def get_many(self, names: list[str]) -> None:
        found = [self.model.get(name) for name in names]
        assert self.store.get_many(list(map(self.key, names))) == found
        rows = ValueAndTimestamp, ValueTimestampHeaders
        values = [each[0] if isinstance(each, rows) else each for each in found]
        assert self.store.get_values(list(map(self.key, names))) == values

    @rule(rows=st.lists(st.tuples(NAMES, st.none() | NUMBERS)))
    def put_many(self, rows: list[tuple[str, int | None]]) -> None:
        values = [None if number is None else self.value(number) for _, number in rows]
        self.store.put_many([self.key(name) for name, _ in rows], values)
        for (name, _), value in zip(rows, values, strict=True):
            self.model.pop(name, None)
            if value is not None:
                self.model[name] = value

    @rule(low=st.none() | NAMES, high=st.none() | NAMES)
    def range(self, low: str | None, high: str | None) -> None:
        ends = [None if name is None else self.key(name) for name in (low, high)]
        assert list(self.store.range(*ends)) == self.ordered(low, high)
        assert list(self.store.reverse_range(*ends)) == self.ordered(low, high)[::-1]
        assert list(self.store.reverse_all()) == self.ordered()[::-1]

    @rule(prefix=st.sampled_from([b"", b"a", b"[", b'["1', b"\xc3"]))
    def prefix_scan(self, prefix: bytes) -> None:
        from kstreams.serdes import BytesSerde

        found = [row for row in self.ordered() if self.builder.key.serialize(row[0]).startswith(prefix)]  # type: ignore[union-attr]
        assert list(self.store.prefix_scan(prefix, BytesSerde())) == found

    @rule()
    def counts(self) -> None:
        if not self.durable:
            assert self.store.approximate_num_entries() == len(self.model)

    @rule()
    def deletes_while_it_scans(self) -> None:
        for key, _ in self.store.all():
            self.store.delete(key)
        self.model.clear()
        self.same()


globals().update(
    cases_of(
        KeyValueMachine,
        {
            "Plain": Stores.key_value("plain", key=str, value=int),
            "Timestamped": Stores.timestamped_key_value("timestamped", key=str, value=int),
            "WithHeaders": Stores.timestamped_key_value_with_headers("headers", key=str, value=int),
            "MutableValuesWithHeaders": Stores.timestamped_key_value_with_headers(
                "lists-headers", key=str, value=list[int]
            ),
            "UnhashableKeysAndMutableValues": Stores.key_value("lists", key=list[str], value=dict[str, list[int]]),
        },
    )
)
