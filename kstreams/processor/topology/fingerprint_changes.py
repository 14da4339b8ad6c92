"""The differences between two fingerprints, and whether the state of the old topology fits the new one. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from kstreams.processor.topology.fingerprint import StoreFingerprint, TopologyFingerprint


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
