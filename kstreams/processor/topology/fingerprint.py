"""The fingerprint of a topology: its stores and internal topics, stored beside the state as JSON."""

from __future__ import annotations

from collections.abc import Iterable

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
