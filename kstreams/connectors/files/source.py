"""`FileSource`: the files of a folder or a pattern as splits, on the local disk or in an object store."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import cached_property
from typing import Any

import pyarrow as pa

from kstreams.connectors.api import Position, Source, SourceBatch, UnreadableRow
from kstreams.connectors.files.folders import Folder, StorageOptions, open_folder
from kstreams.connectors.files.readers import FileReading, Rows
from kstreams.connectors.source_columns import key_column, type_of_key
from kstreams.errors import ConnectorError

logger = logging.getLogger("kstreams.connectors")

_EXCERPT_BYTES = 80
_WILDCARDS = re.compile(r"[*?\[]")
_SPECIAL = re.compile(r"\*\*/|\*\*|\*|\?|\[[^\]]+\]")
_PATTERNS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


class FileSource(Source):
    """Files of one format. See `ks.sources.csv` and its siblings.

    Parameters
    ----------
    location : str
        A file, a folder, or a pattern with `*`, `?`, `[...]` and `**`; a path or a URI of an object store.
    reading : FileReading
    value : type
    key : tuple of str
        The columns of keys.
    key_type : type or None
        None for the type of the field.
    timestamp : str
        The column of event times. Empty for the time of reading.
    grows : bool
        True if files are appended to.
    skips : bool
        True to leave out records that do not fit the type.
    tasks : int
    options : mapping
        The options of the object store.
    """

    is_finished_in_turn = True
    has_deletes = False

    def __init__(
        self,
        location: str,
        reading: FileReading,
        *,
        value: Any,
        key: tuple[str, ...] = (),
        key_type: Any = None,
        timestamp: str = "",
        grows: bool = False,
        skips: bool = False,
        tasks: int = 1,
        options: StorageOptions | None = None,
    ) -> None:
        super().__init__(key=key_type or type_of_key(key, value), value=value, tasks=tasks)
        self.location = location
        self._base, self._pattern = _parts(location)
        self.reading = reading
        self.key_columns = key
        self.timestamp_column = timestamp
        self.grows = grows
        self.skips = skips
        self._options = dict(options or {})

    def splits(self) -> Iterator[str]:
        """Return the names of the files, below the folder without wildcards."""
        names = sorted(self.folder.sizes())
        matches = re.compile(_regex(self._pattern)).fullmatch if self._pattern else _is_data
        return (name for name in names if matches(name))

    def open(self, split: str, position: Position | None) -> FileReader:
        """Return a reader of a file."""
        return FileReader(self, split, position)

    @cached_property
    def folder(self) -> Folder:
        """The folder without wildcards."""
        return open_folder(self._base, self._options)

    def __repr__(self) -> str:
        return f"FileSource({self.location!r})"


def _parts(location: str) -> tuple[str, str]:
    """Return the folder before the first wildcard, and the pattern below it; without a pattern, all its files.

    Examples
    --------
    >>> _parts("in/2024/*.csv"), _parts("s3://bucket/in/"), _parts("in/trades.csv")
    (('in/2024', '*.csv'), ('s3://bucket/in', ''), ('in', 'trades.csv'))
    """
    match = _WILDCARDS.search(location)
    fixed = location if match is None else location[: match.start()]
    if match is None and (location.endswith("/") or "." not in location.rpartition("/")[2]):
        return location.rstrip("/") or "/", ""
    folder, slash, _ = fixed.rpartition("/")
    return folder or ("/" if slash else "."), location[len(folder) + len(slash) :]


def _regex(pattern: str) -> str:
    """Return the regular expression of a pattern.

    Examples
    --------
    >>> _regex("**/[ab]*.csv")
    '(?:.*/)?[ab][^/]*\\\\.csv'
    """
    parts = []
    end = 0
    for match in _SPECIAL.finditer(pattern):
        parts += [re.escape(pattern[end : match.start()]), _PATTERNS.get(match[0], match[0])]
        end = match.end()
    return "".join([*parts, re.escape(pattern[end:])])


def _is_data(name: str) -> bool:
    """Return whether a file is none of those that Spark and others hide by their first character."""
    return not any(part.startswith(("_", ".")) for part in name.split("/"))


class FileReader:
    """Reads one file. It is open from the first read to its end, so that many files wait without being open."""

    def __init__(self, source: FileSource, name: str, position: Position | None) -> None:
        self._source = source
        self._name = name
        self._position = position
        self._resources = ExitStack()
        self._rows: list[Rows] = []

    def read(self) -> SourceBatch | None:
        """Return the next rows, or the end of a file that does not grow."""
        if _is_end(self._position):
            return _end(self._position)
        rows = self._opened()
        read = rows.next()
        if read is None:
            return None if self._source.grows else _end({"end": rows.position})
        unreadable = self._skipped(read.unreadable) if self._source.skips else read.unreadable
        values = read.values
        if not len(values):
            return SourceBatch(values, rows.position, unreadable=unreadable)
        columns = {} if not values.type.num_fields else dict(zip(_names(values), values.flatten(), strict=True))
        timestamps = self._column(columns, self._source.timestamp_column) if self._source.timestamp_column else None
        for name in self._source.key_columns:
            self._column(columns, name)
        keys = key_column(self._source.key_columns, columns)
        return SourceBatch(values, rows.position, keys, timestamps, unreadable=unreadable)

    def _skipped(self, rows: Sequence[UnreadableRow]) -> Sequence[UnreadableRow]:
        for row in rows:
            content = row.content[:_EXCERPT_BYTES]
            logger.warning("%s at %s: %r is skipped: %s", self._name, row.position, content, row.error)
        return ()

    def committed(self, position: Position) -> None:
        """Do nothing: files stay."""

    def close(self) -> None:
        """Close the file."""
        self._rows.clear()
        self._resources.close()

    def _opened(self) -> Rows:
        if not self._rows:
            file = self._resources.enter_context(self._source.folder.open(self._name))
            self._rows.append(self._source.reading.open(file, self._name, self._position, grows=self._source.grows))
        return self._rows[0]

    def _column(self, columns: dict[str, Any], name: str) -> Any:
        if name not in columns:
            raise ConnectorError(f"{self._name} has no column {name!r}; it has: {', '.join(columns)}.")
        return columns[name]


def _is_end(position: Position | None) -> bool:
    return isinstance(position, dict) and "end" in position


def _end(position: Position) -> SourceBatch:
    return SourceBatch(pa.nulls(0), position, is_end=True)


def _names(values: Any) -> Sequence[str]:
    return [field.name for field in values.type]
