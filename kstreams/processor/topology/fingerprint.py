"""The fingerprint of a topology: its stores and internal topics, stored beside the state as JSON.

`changes` compares two fingerprints: it says whether the state of the old topology fits the new one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from kstreams.errors import StateError
from kstreams.kernel.decoders import decode_json
from kstreams.processor.topology.nodes import SubTopology
from kstreams.processor.topology.topology import Topology
from kstreams.serdes import Serde
from kstreams.serdes.type_names import type_name
from kstreams.state.api import StoreBuilder

VERSION = 1


class StoreFingerprint(msgspec.Struct, frozen=True, kw_only=True):
    """A store: its serdes, where it is persisted, and the topics that fill it.

    Parameters
    ----------
    key, value : str
        The `repr` of the serdes.
    reads : tuple of str
        The topics that its sub-topology reads.
    origins : tuple of str
        The user's topics whose records reach the store, also through internal topics.
    restored_from : str or None
        Its changelog or source topic; None if it is persisted only on the local disk.
    types : (str, str) or None
        The names of the serdes, by which the store can be read without the application; None if it cannot.
    """

    name: str
    kind: str
    key: str
    value: str
    sub_topology: int
    reads: tuple[str, ...]
    origins: tuple[str, ...]
    restored_from: str | None = None
    on_disk: bool = True
    window_size_ms: int | None = None
    retention_ms: int | None = None
    history_retention_ms: int | None = None
    types: tuple[str, str] | None = None
    retain_duplicates: bool = False
    time_ordered: bool = False
    sparse: bool = False
    caching: bool = False

    @property
    def is_kept(self) -> bool:
        """True if its contents outlive a run."""
        return self.on_disk or self.restored_from is not None


class TopologyFingerprint(msgspec.Struct, frozen=True, kw_only=True):
    """The stores and internal topics of a topology, and `notes` that an engine adds."""

    version: int = VERSION
    stores: tuple[StoreFingerprint, ...] = ()
    repartition_topics: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def internal_topics(self) -> tuple[str, ...]:
        """The names of repartition topics and changelogs, without the application's id."""
        changelogs = (store.restored_from for store in self.stores if store.restored_from == f"{store.name}-changelog")
        return (*self.repartition_topics, *(topic for topic in changelogs if topic is not None))


def fingerprint_of(topology: Topology, notes: Iterable[str] = ()) -> TopologyFingerprint:
    """Return the fingerprint of a topology.

    Examples
    --------
    >>> from kstreams.dsl.builder import StreamsBuilder
    >>> builder = StreamsBuilder()
    >>> counts = builder.stream("words", key=str, value=str).group_by_key().count("counts")
    >>> fingerprint = fingerprint_of(builder.build())
    >>> fingerprint.internal_topics, fingerprint.stores[0].value, fingerprint.stores[0].origins
    (('counts-changelog',), 'IntSerde()', ('words',))
    """
    parts = topology.sub_topologies
    internal = {topic.name for topic in topology.repartition_topics}
    stores = (
        _store(store, part, _origins(part, parts, internal))
        for part in parts
        if not part.is_global
        for store in part.stores
    )
    return TopologyFingerprint(stores=tuple(stores), repartition_topics=tuple(sorted(internal)), notes=tuple(notes))


def encode_fingerprint(fingerprint: TopologyFingerprint) -> bytes:
    """Return the fingerprint as JSON."""
    return msgspec.json.format(msgspec.json.encode(fingerprint), indent=2)


def decode_fingerprint(raw: bytes, place: str) -> TopologyFingerprint:
    """Decode the result of `encode_fingerprint`; `place` names the file in errors.

    Raises
    ------
    StateError
        If it is damaged, or a newer version wrote it.
    """
    try:
        fingerprint = decode_json(raw, TopologyFingerprint)
    except msgspec.DecodeError as error:
        raise StateError(f"{place} cannot be read: {error}. Delete it to continue without a check.") from error
    if fingerprint.version > VERSION:
        raise StateError(f"{place} was written by a newer version of kstreams: use that one.")
    return fingerprint


def _store(store: StoreBuilder, part: SubTopology, origins: set[str]) -> StoreFingerprint:
    return StoreFingerprint(
        name=store.name,
        kind=store.kind.name,
        key=_shown(store.key),
        value=_values(store),
        sub_topology=part.id,
        reads=tuple(sorted(_topics(part))),
        origins=tuple(sorted(origins)),
        restored_from=store.source_topic or (f"{store.name}-changelog" if store.logging else None),
        on_disk=store.store == "rocksdb",
        window_size_ms=store.window_size_ms,
        retention_ms=store.retention_ms,
        history_retention_ms=store.history_retention_ms,
        types=_types(store),
        retain_duplicates=store.retain_duplicates,
        time_ordered=store.time_ordered,
        sparse=store.sparse,
        caching=store.caching,
    )


def _types(store: StoreBuilder) -> tuple[str, str] | None:
    """Return the type names to read the store's rows; None if a function shows them, or the kind has settings."""
    key = type_name(store.key)
    value = type_name(store.value)
    is_plain = store.result is None and store.right_value is None and not store.options
    return (key, value) if key is not None and value is not None and is_plain else None


def format_of(store: StoreBuilder) -> str:
    """Return the format of a store's bytes: its kind and its serdes.

    Examples
    --------
    >>> from kstreams.state import Stores
    >>> format_of(Stores.key_value("totals", key=str, value=int))
    'key-value StringSerde() IntSerde()'
    """
    return f"{store.kind.name} {_shown(store.key)} {_values(store)}"


def _values(store: StoreBuilder) -> str:
    return _shown(store.value) + ("" if store.right_value is None else f", {_shown(store.right_value)}")


def _shown(serde: Serde | None) -> str:
    return "BytesSerde()" if serde is None else repr(serde)


def _topics(part: SubTopology) -> set[str]:
    fixed = {topic for source in part.sources for topic in source.topics}
    return fixed | {source.pattern.pattern for source in part.sources if source.pattern is not None}


def _origins(part: SubTopology, parts: Iterable[SubTopology], internal: set[str]) -> set[str]:
    """Return the user's topics that a part reads, and those whose records reach it through internal topics."""
    parts = list(parts)
    visited = {part.id}
    pending = [part]
    names: set[str] = set()
    while pending:
        read = _topics(pending.pop())
        names |= read - internal
        writers = [other for other in parts if any(sink.topic in read & internal for sink in other.sinks)]
        pending += [other for other in writers if other.id not in visited]
        visited |= {other.id for other in writers}
    return names


class FingerprintChange(NamedTuple):
    """A difference; `keeps` is True if the state can still be used."""

    keeps: bool
    text: str

    def __str__(self) -> str:
        return f"{'goes on' if self.keeps else 'refused'}: {self.text}"


def changes(old: TopologyFingerprint, new: TopologyFingerprint, *, by_number: bool = False) -> list[FingerprintChange]:
    """Return all differences that concern state, first those that make it unusable.

    Parameters
    ----------
    old : TopologyFingerprint
        The topology that wrote the state.
    new : TopologyFingerprint
        The topology that starts now.
    by_number : bool
        True if state is bound to the number of its sub-topology, as on Spark.
    """
    before = {store.name: store for store in old.stores if store.is_kept}
    after = {store.name: store for store in new.stores}
    removed = [store for name, store in before.items() if name not in after]
    added = [store for name, store in after.items() if name not in {store.name for store in old.stores}]
    differences = [
        change for name in before.keys() & after.keys() for change in _of_store(before[name], after[name], old)
    ]
    differences += _moved(before, after, set() if by_number else moves(old, new).keys(), by_number)
    differences += _removed_and_added(removed, added)
    differences += _without_state(added, {store.sub_topology for store in old.stores}) if by_number else []
    differences += _notes(old, new)
    return sorted(differences)


def moves(old: TopologyFingerprint, new: TopologyFingerprint) -> dict[int, int]:
    """Return the sub-topologies whose id has changed while their stores stayed together: old id to new id."""
    pairs = [
        (before.sub_topology, after.sub_topology)
        for before in old.stores
        for after in new.stores
        if before.name == after.name
    ]
    to = {source: {new_id for old_id, new_id in pairs if old_id == source} for source, _ in pairs}
    origins = {target: {old_id for old_id, new_id in pairs if new_id == target} for _, target in pairs}
    clean = {source: next(iter(targets)) for source, targets in to.items() if len(targets) == 1}
    return {source: target for source, target in clean.items() if source != target and origins[target] == {source}}


def refusal(differences: Iterable[FingerprintChange], where: str) -> str | None:
    """Return the error text if a change makes the state unusable, else None."""
    differences = list(differences)
    if all(change.keeps for change in differences):
        return None
    listed = "\n".join(f"  {change}" for change in differences)
    return (
        f"The topology does not fit the state in {where}:\n{listed}\n"
        "Take back what is refused, start anew with --reset, or give the application another id. "
        "`kstreams check old.py new.py` compares topologies beforehand."
    )


def _of_store(old: StoreFingerprint, new: StoreFingerprint, whole: TopologyFingerprint) -> Iterator[FingerprintChange]:
    store = f"store {old.name!r}"
    for attribute in ("kind", "key", "value", "window_size_ms"):
        if getattr(old, attribute) != getattr(new, attribute):
            values = f"{getattr(old, attribute)} -> {getattr(new, attribute)}"
            yield FingerprintChange(False, f"{store} holds another {_WORDS[attribute]}: {values}")
    for attribute in ("retention_ms", "history_retention_ms"):
        if getattr(old, attribute) != getattr(new, attribute):
            yield FingerprintChange(
                True, f"{store} keeps for {getattr(new, attribute)} ms, before {getattr(old, attribute)} ms"
            )
    yield from _of_places(store, old, new)
    lost = (set(old.reads) - set(new.reads)) & set(whole.repartition_topics)
    for topic in sorted(lost):
        yield FingerprintChange(
            False, f"{store} no longer reads the internal topic {topic}: what waits there would be lost"
        )
    if old.origins and new.origins and not set(old.origins) & set(new.origins):
        fed = f"{', '.join(old.origins)} -> {', '.join(new.origins)}"
        yield FingerprintChange(False, f"{store} is filled from other topics: {fed}")


_WORDS = {
    "kind": "kind of entries",
    "key": "type of key",
    "value": "type of value",
    "window_size_ms": "size of windows",
}


def _of_places(store: str, old: StoreFingerprint, new: StoreFingerprint) -> Iterator[FingerprintChange]:
    if old.restored_from != new.restored_from and new.restored_from is not None:
        origin = old.restored_from or "the local disk alone"
        yield FingerprintChange(False, f"{store} would be restored from {new.restored_from}, before from {origin}")
    elif old.restored_from != new.restored_from:
        yield FingerprintChange(new.on_disk, f"{store} is no longer restored from {old.restored_from}")
    elif old.restored_from is None and not new.on_disk:
        yield FingerprintChange(False, f"{store} moves to memory, but is restored from nowhere")


def _moved(
    before: Mapping[str, StoreFingerprint],
    after: Mapping[str, StoreFingerprint],
    whole: Collection[int],
    by_number: bool,
) -> Iterator[FingerprintChange]:
    """Yield the stores that move to another sub-topology: with all its other stores, or through their changelogs."""
    for name in before.keys() & after.keys():
        old = before[name]
        new = after[name]
        if old.sub_topology != new.sub_topology:
            keeps = old.sub_topology in whole or (new.restored_from is not None and not by_number)
            text = f"store {name!r} moves from sub-topology {old.sub_topology} to {new.sub_topology}"
            yield FingerprintChange(keeps, text)


def _removed_and_added(
    removed: Iterable[StoreFingerprint], added: Iterable[StoreFingerprint]
) -> Iterator[FingerprintChange]:
    candidates = list(added)
    for old in removed:
        twin = next((new for new in candidates if _alike(old, new)), None)
        if twin is None:
            yield FingerprintChange(True, f"store {old.name!r} is removed: what it holds stays unused")
            continue
        candidates.remove(twin)
        yield FingerprintChange(
            False,
            f"store {old.name!r} is renamed to {twin.name!r}, which would begin empty: "
            f'give it its old name, as in materialized="{old.name}"',
        )
    for new in candidates:
        yield FingerprintChange(
            True, f"store {new.name!r} is added: it begins empty, with the records that come from now on"
        )


def _without_state(added: Iterable[StoreFingerprint], stateful: Collection[int]) -> Iterator[FingerprintChange]:
    for store in added:
        if store.sub_topology not in stateful:
            text = f"sub-topology {store.sub_topology} has no state yet to add the store {store.name!r} to"
            yield FingerprintChange(False, text)


def _alike(old: StoreFingerprint, new: StoreFingerprint) -> bool:
    is_equal = all(
        getattr(old, attribute) == getattr(new, attribute) for attribute in ("kind", "key", "value", "window_size_ms")
    )
    return is_equal and old.origins == new.origins


def _notes(old: TopologyFingerprint, new: TopologyFingerprint) -> Iterator[FingerprintChange]:
    for note in sorted({*old.notes} ^ {*new.notes}):
        yield FingerprintChange(False, f"{note} {'no longer' if note in old.notes else 'now'}")
