"""Suggestions for a method that a handle does not have: its name here, the handle that has it, or the nearest name."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from kstreams.kernel.advice import AdvisedCalls, name_advice, public_names, snake_case

_CALLS: dict[str, tuple[tuple[str, str], ...]] = {
    "StreamsBuilder": (("stream(...)", "KStream"), ("table(...)", "KTable")),
    "KStream": (("group_by_key()", "KGroupedStream"), ("to_table()", "KTable"), ("split()", "BranchedKStream")),
    "KTable": (("to_stream()", "KStream"), ("group_by(...)", "KGroupedTable")),
    "KGroupedStream": (
        ("windowed_by(...)", "TimeWindowedKStream"),
        ("windowed_by(SessionWindows(...))", "SessionWindowedKStream"),
        ("count()", "KTable"),
        ("cogroup(...)", "CogroupedKStream"),
    ),
    "KGroupedTable": (("count()", "KTable"),),
    "TimeWindowedKStream": (("count()", "KTable"),),
    "SessionWindowedKStream": (("count()", "KTable"),),
    "CogroupedKStream": (
        ("windowed_by(...)", "TimeWindowedCogroupedKStream"),
        ("windowed_by(SessionWindows(...))", "SessionWindowedCogroupedKStream"),
        ("aggregate(...)", "KTable"),
    ),
    "TimeWindowedCogroupedKStream": (("aggregate(...)", "KTable"),),
    "SessionWindowedCogroupedKStream": (("aggregate(...)", "KTable"),),
    "BranchedKStream": (("default_branch()[name]", "KStream"),),
}
"""By handle: the calls that return other handles."""

_HANDLES: dict[str, type] = {}
"""Every handle by name: each is a subclass of `SuggestsNames`."""

_OTHER_WORDS = {
    "run": "KafkaStreams(builder, config).start(), or the command kstreams run app.py",
    "start": "KafkaStreams(builder, config).start(), or the command kstreams run app.py",
    "get": "KafkaStreams.store(name).get(key), which asks a running application",
    "through": "repartition() or to() a topic and read it again",
    "transform": "process()",
    "flat_transform": "process()",
    "flat_transform_values": "process_values()",
    "transform_values": "process_values()",
    "suppress": "suppress() on the KTable of an aggregation",
    "select": "map_values()",
    "where": "filter()",
    "union": "merge()",
    "write": "to()",
    "sink": "to()",
    "window": "group_by_key().windowed_by()",
    "groupby": "group_by()",
    "sum": "aggregate(total=ks.value.sum())",
    "min": "aggregate(least=ks.value.min())",
    "max": "aggregate(most=ks.value.max())",
    "mean": "aggregate(mean=ks.value.mean())",
    "avg": "aggregate(mean=ks.value.mean())",
    "agg": "aggregate()",
    "each": "foreach()",
    "for_each": "foreach()",
    "key_by": "select_key()",
    "with_serdes": "key= and value= where a type enters or changes",
}
"""By names of other libraries and of older versions: what to write."""


def missing_attribute(handle: object, name: str) -> AttributeError:
    """Return the error for a name that a handle does not have; it suggests another name, or calls that lead to it.

    Examples
    --------
    >>> import kstreams as ks
    >>> ks.StreamsBuilder().table("users", key=str, value=str).to("out")
    Traceback (most recent call last):
        ...
    AttributeError: KTable has no to: a KStream has it, call to_stream() first
    """
    kind = type(handle)
    return AttributeError(f"{kind.__name__} has no {name}: {_suggestion(kind, name)}", name=name)


def _suggestion(kind: type, name: str) -> str:
    plain = snake_case(name)
    own = public_names(kind)
    calls_to = None if plain in own or plain in _OTHER_WORDS else _calls_to(kind.__name__, plain)
    if calls_to is None:
        return name_advice(name, own, _OTHER_WORDS)
    calls, owner = calls_to
    return f"a {owner} has {'it' if plain == name else plain}, call {calls} first"


def _calls_to(start: str, name: str) -> tuple[str, str] | None:
    """Return one or two calls that lead to a handle with a name, and the handle."""
    pending = deque([("", start)])
    visited = {start}
    while pending:
        calls, at = pending.popleft()
        for call, owner in _CALLS.get(at, ()):
            chain = f"{calls}.{call}".removeprefix(".")
            if name in public_names(_HANDLES[owner]):
                return chain, owner
            if owner not in visited and not calls:
                visited.add(owner)
                pending.append((chain, owner))
    return None


class SuggestsNames(AdvisedCalls):
    """An AttributeError of this class suggests what to write instead."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        _HANDLES[cls.__name__] = cls

    if not TYPE_CHECKING:  # a type checker would take every name to be there

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
            raise missing_attribute(self, name)
