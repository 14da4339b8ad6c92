"""Types flow from declarations and annotations."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import msgspec
import pytest

import kstreams as ks
from kstreams import expressions as ex
from kstreams.dsl.analysis.facts import flow_types
from kstreams.dsl.return_annotations import return_items, return_pair, return_pairs, return_type
from kstreams.serdes import IntSerde, TimeWindowedSerde


class Flight(msgspec.Struct):
    origin: str
    delay: int | None


def types_after(declare):
    """Key and value type of what `declare` makes of a stream of (str, Flight)."""
    builder = ks.StreamsBuilder()
    handle = declare(builder.stream("in", key=str, value=Flight))
    types = flow_types(builder._graph.graph())[handle._node.name]
    return types.key.kind, types.value.kind


def delay(flight) -> int | None: ...


def by_origin(key, flight) -> tuple[str, Flight]: ...


def parts(flight) -> Iterable[str]: ...


@pytest.mark.parametrize(
    ("declare", "expected"),
    [
        (lambda s: s.filter(lambda k, v: True), (str, Flight)),
        (lambda s: s.map_values(delay), (str, int)),
        (lambda s: s.map_values(delay, value=float), (str, float)),
        (lambda s: s.map_values(lambda v: v), (str, None)),
        (lambda s: s.map_values(ex.col("delay")), (str, int | None)),
        (lambda s: s.map(by_origin), (str, Flight)),
        (lambda s: s.flat_map_values(parts), (str, str)),
        (lambda s: s.select_key(lambda k, v: 1), (None, Flight)),
        (lambda s: s.select_key(lambda k, v: 1, key=int), (int, Flight)),
        (lambda s: s.merge(s.filter(lambda k, v: True)), (str, Flight)),
        (lambda s: s.merge(s.map_values(delay)), (str, None)),
        (lambda s: s.group_by_key().count(), (str, int)),
        (lambda s: s.group_by_key().reduce(lambda a, b: a), (str, Flight)),
        (lambda s: s.group_by_key().aggregate(int, lambda k, v, a: a), (str, int)),
        (lambda s: s.group_by(lambda k, v: 1, key=int).count(), (int, int)),
        (lambda s: s.to_table().map_values(delay), (str, int)),
        (lambda s: s.to_table().group_by(by_origin).count(), (str, int)),
        (lambda s: s.repartition(key=bytes), (bytes, Flight)),
    ],
)
def test_types_after_an_operator(declare, expected):
    key, value = types_after(declare)
    assert (key, value) == expected or (key == expected[0] and str(value) == str(expected[1]))


def test_the_key_of_a_windowed_table_knows_its_window():
    windows = ks.TimeWindows(size=100)
    key, value = types_after(lambda s: s.group_by_key().windowed_by(windows).count())
    assert isinstance(key, TimeWindowedSerde)
    assert (key.size_ms, value) == (100, int)


def test_a_serde_may_stand_for_a_type():
    serde = IntSerde()
    assert types_after(lambda s: s.map_values(delay, value=serde)) == (str, serde)


def test_what_functions_say_about_themselves():
    class Callable:
        def __call__(self, value) -> int: ...

    def unknown(value): ...
    def anything(value) -> Any: ...
    def unresolvable(value) -> NoSuchType: ...  # noqa: F821

    assert return_type(Callable()) is int
    assert return_type(partial(delay)) is int
    assert [return_type(f) for f in (unknown, anything, unresolvable, len)] == [None] * 4
    assert return_pair(by_origin) == (str, Flight)
    assert return_pair(delay) == (None, None)
    assert return_items(parts) is str
    assert return_pairs(parts) == (None, None)
