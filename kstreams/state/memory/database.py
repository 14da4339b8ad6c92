"""`MemoryColumnFamily`: the column family of a store in memory: it keeps no bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kstreams.state.column_family import ByteRows, Chunk


class MemoryColumnFamily:
    """Nothing is persisted: after a restart the changelog is all there is."""

    frozen = False
    durable = False

    def __init__(self) -> None:
        self.offset: int | None = None
        self.observed_ms = -1

    def get(self, key: bytes) -> bytes | None:
        return None

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        return [None] * len(keys)

    def chunks(self, low: bytes, high: bytes | None, reverse: bool = False) -> Iterator[Chunk]:
        return iter((Chunk(low, high, [], []),))

    def first_from(self, low: bytes) -> bytes | None:
        return None

    def write(self, rows: ByteRows, offset: int | None, observed_ms: int) -> None:
        self.offset = self.offset if offset is None else offset
        self.observed_ms = observed_ms

    def restore(self, rows: ByteRows, offset: int, observed_ms: int) -> None:
        self.write(rows, offset, observed_ms)

    def delete_range(self, low: bytes, high: bytes) -> None:
        """Nothing to forget."""

    def estimated_rows(self) -> int:
        return 0

    def estimated_bytes(self) -> int:
        return 0

    def properties(self, names: Iterable[str]) -> dict[str, int]:
        return {}
