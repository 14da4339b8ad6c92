"""Messages of the plug-in `pgoutput` (protocol version 1), parsed for many messages at once.

A message of a row has a tuple per row: for each column a kind, and for a text its length and bytes. `read_tuples` moves
one cursor per message over one column after the other, so that the work in Python depends on the number of columns and
not on the number of rows.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kstreams.errors import ConnectorError

Octets: TypeAlias = "np.typing.NDArray[np.uint8]"
Numbers: TypeAlias = "np.typing.NDArray[np.int64]"
Offsets: TypeAlias = "np.typing.NDArray[np.int32]"
Flags: TypeAlias = "np.typing.NDArray[np.bool_]"

HEADER_SIZE = 25
"""The bytes of XLogData before the message: its tag, two log sequence numbers, and the time of sending."""

BEGIN = ord("B")
COMMIT = ord("C")
RELATION = ord("R")
INSERT = ord("I")
UPDATE = ord("U")
DELETE = ord("D")
TRUNCATE = ord("T")

OLD_KEY = ord("K")
OLD_ROW = ord("O")
NEW_ROW = ord("N")

NULL = ord("n")
TEXT = ord("t")
UNCHANGED = ord("u")

_PADDING = bytes(16)  # so that fields that a tuple does not have can be read, too
_SHORT_TEXT = 48
_POSTGRES_EPOCH_US = 946_684_800_000_000


@dataclass(frozen=True, slots=True)
class Relation:
    """The columns of a table, as the server announces them before the first change and after they have changed.

    Parameters
    ----------
    identifier : int
    name : str
        With the schema.
    identity : str
        `relreplident`.
    columns : tuple of str
    type_ids : tuple of int
        The object identifiers of the types of the columns.
    """

    identifier: int
    name: str
    identity: str
    columns: tuple[str, ...]
    type_ids: tuple[int, ...]

    @classmethod
    def of_message(cls, message: bytes) -> Relation:
        """Parse a message without the header."""
        identifier = struct.unpack_from(">I", message, 1)[0]
        schema, name, rest = message[5:].split(b"\0", 2)
        identity = chr(rest[0])
        count = struct.unpack_from(">H", rest, 1)[0]
        columns = []
        type_ids = []
        at = 3
        for _ in range(count):
            end = rest.index(b"\0", at + 1)  # after a byte of flags
            columns.append(rest[at + 1 : end].decode())
            type_ids.append(struct.unpack_from(">I", rest, end + 1)[0])
            at = end + 9
        full_name = f"{schema.decode() or 'pg_catalog'}.{name.decode()}"
        return cls(identifier, full_name, identity, tuple(columns), tuple(type_ids))


class Messages:
    """Consecutive messages, as the server has sent them.

    Parameters
    ----------
    messages : sequence of bytes-like
        XLogData with headers.
    """

    def __init__(self, messages: Sequence[bytes | memoryview]) -> None:
        lengths = np.fromiter(map(len, messages), np.int64, len(messages))
        self.octets: Octets = np.frombuffer(b"".join([*messages, _PADDING]), np.uint8)
        self.starts: Numbers = np.cumsum(lengths) - lengths + HEADER_SIZE
        self.kinds: Octets = self.octets[self.starts]
        self._begins = np.maximum.accumulate(np.where(self.kinds == BEGIN, np.arange(len(messages)), -1))
        self.is_change: Flags = np.isin(self.kinds, (INSERT, UPDATE, DELETE, TRUNCATE))

    def __len__(self) -> int:
        return len(self.starts)

    def message(self, number: int) -> bytes:
        """Return one message without its header."""
        end = self.starts[number + 1] - HEADER_SIZE if number + 1 < len(self) else len(self.octets) - len(_PADDING)
        return self.octets[self.starts[number] : end].tobytes()

    def lsns(self, numbers: Numbers) -> Numbers:
        """Return the log sequence numbers of messages."""
        return self._long(self.starts[numbers] - HEADER_SIZE + 1)

    def relation_ids(self, numbers: Numbers) -> Numbers:
        """Return the identifiers of the tables of changes of rows."""
        return self._int(self.starts[numbers] + 1)

    def commit_lsns(self, numbers: Numbers) -> Numbers:
        """Return the log sequence numbers of the commit records of the transactions to which messages belong."""
        return self._long(self.starts[self._begins[numbers]] + 1)

    def commit_times_us(self, numbers: Numbers) -> Numbers:
        """Return the times of the commits, in microseconds since 1970."""
        return self._long(self.starts[self._begins[numbers]] + 9) + _POSTGRES_EPOCH_US

    def transactions(self, numbers: Numbers) -> Numbers:
        """Return the numbers of the transactions to which messages belong, with 32 bits."""
        return self._int(self.starts[self._begins[numbers]] + 17)

    def begin(self, number: int) -> int:
        """Return the number of the message that begins the transaction of a message."""
        return int(self._begins[number])

    def end_lsns(self, commits: Numbers) -> Numbers:
        """Return the log sequence numbers after commit records."""
        return self._long(self.starts[commits] + 10)

    def changes_in_transactions(self) -> Numbers:
        """Return for each message the number of changes of its transaction, up to and with this message."""
        changes = np.cumsum(self.is_change)
        return changes - changes[self._begins]

    def read_tuples(self, cursors: Numbers, count: int) -> tuple[TextColumns, Numbers]:
        """Read a tuple of `count` columns at each cursor. Return the columns and the cursors behind the tuples.

        Raises
        ------
        ConnectorError
            If a tuple has another number of columns.
        """
        if (self._short(cursors) != count).any():
            raise ConnectorError("The server has sent a row that does not fit the columns that it has announced")
        columns = TextColumns(self.octets, count, len(cursors))
        cursors = cursors + 2
        for number in range(count):
            kinds = self.octets[cursors]
            has_text = kinds == TEXT
            lengths = np.where(has_text, self._int(cursors + 1), 0)
            columns.set(number, kinds, cursors + 5, lengths)
            cursors = cursors + np.where(has_text, lengths + 5, 1)
        return columns, cursors

    def _short(self, at: Numbers) -> Numbers:
        return (self.octets[at].astype(np.int64) << 8) | self.octets[at + 1]

    def _int(self, at: Numbers) -> Numbers:
        return (self._short(at) << 16) | self._short(at + 2)

    def _long(self, at: Numbers) -> Numbers:
        return (self._int(at) << 32) | self._int(at + 4)


class TextColumns:
    """The columns of some rows: for each value its kind, and the place of its text in the octets of the messages.

    Parameters
    ----------
    octets : numpy uint8 array
    count : int
        The number of columns.
    rows : int
    """

    def __init__(self, octets: Octets, count: int, rows: int) -> None:
        self._octets = octets
        self._rows = rows
        self.kinds = np.full((count, rows), NULL, np.uint8)
        self._starts = np.zeros((count, rows), np.int64)
        self._lengths = np.zeros((count, rows), np.int64)

    def __len__(self) -> int:
        return self._rows

    def set(self, number: int, kinds: Octets, starts: Numbers, lengths: Numbers) -> None:
        """Set a column."""
        self.kinds[number] = kinds
        self._starts[number] = starts
        self._lengths[number] = lengths

    def take(self, rows: Numbers) -> TextColumns:
        """Return some of the rows."""
        taken = TextColumns(self._octets, len(self.kinds), len(rows))
        taken.kinds = self.kinds[:, rows]
        taken._starts = self._starts[:, rows]
        taken._lengths = self._lengths[:, rows]
        return taken

    def fill_unchanged(self, rows: Numbers, old: TextColumns) -> None:
        """Take the values of old rows for values that an update has not changed and therefore does not contain.

        Parameters
        ----------
        rows : numpy int64 array, shape (n,)
            The rows that have an old row.
        old : TextColumns
            The n old rows.
        """
        is_unchanged = (self.kinds[:, rows] == UNCHANGED) & (old.kinds == TEXT)  # an old key has no other columns
        self._starts[:, rows] = np.where(is_unchanged, old._starts, self._starts[:, rows])
        self._lengths[:, rows] = np.where(is_unchanged, old._lengths, self._lengths[:, rows])
        self.kinds[:, rows] = np.where(is_unchanged, old.kinds, self.kinds[:, rows])

    def texts(self, number: int) -> pa.Array:
        """Return a column as text. Null and unchanged values are null."""
        lengths = self._lengths[number]
        offsets = np.zeros(self._rows + 1, np.int32)
        np.cumsum(lengths, out=offsets[1:])
        has_text = self.kinds[number] == TEXT
        buffers = [None, pa.py_buffer(offsets), self._text_buffer(self._starts[number], lengths, offsets)]
        if not has_text.all():
            buffers[0] = pa.py_buffer(np.packbits(has_text, bitorder="little"))
        return pa.Array.from_buffers(pa.string(), self._rows, buffers)

    def _text_buffer(self, starts: Numbers, lengths: Numbers, offsets: Offsets) -> pa.Buffer:
        size = int(offsets[-1])
        if size > _SHORT_TEXT * self._rows:  # slices cost per row, indices per byte
            octets = self._octets.data
            ends = (starts + lengths).tolist()
            return pa.py_buffer(b"".join([octets[at:end] for at, end in zip(starts.tolist(), ends, strict=True)]))
        indices = np.arange(size) + np.repeat(starts - offsets[:-1], lengths)
        return pa.py_buffer(self._octets[indices])


def truncated_tables(message: bytes) -> list[int]:
    """Return the identifiers of the tables of a TRUNCATE."""
    count = struct.unpack_from(">I", message, 1)[0]
    return list(struct.unpack_from(f">{count}I", message, 6))


def differ(left: Sequence[pa.Array], right: Sequence[pa.Array]) -> Flags:
    """Return for each row whether one of the columns differs."""
    differences = np.zeros(len(left[0]), bool)
    for one_side, other_side in zip(left, right, strict=True):
        differences |= pc.fill_null(pc.not_equal(one_side, other_side), True).to_numpy(zero_copy_only=False)
    return differences
