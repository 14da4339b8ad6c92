"""`CsvRows`: the rows of CSV files with a header, with typed columns."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import IO, NamedTuple

from kstreams.errors import KStreamsError

_SAMPLE = 1_000
_LONGEST_FIELD = 1 << 27
_OTHER_DELIMITERS = (";", "\t", "|")

Read = Callable[[str], object]


class Row(NamedTuple):
    """A row: its line in the file, and by column its cells as texts and as values."""

    line: int
    cells: dict[str, str]
    values: dict[str, object]


def _bool(cell: str) -> bool:
    return {"true": True, "false": False}[cell.lower()]


_TYPES: dict[str, tuple[re.Pattern[str], Read]] = {
    "int": (re.compile(r"-?(0|[1-9]\d{0,17})"), int),
    "float": (re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?"), float),
    "bool": (re.compile("true|false", re.IGNORECASE), _bool),
    "str": (re.compile(r".*", re.DOTALL), str),
}
"""The types of columns: the pattern of the cells, and the function that reads them. The first that fits is used."""


class CsvRows:
    """The rows of several files that have the same header.

    The first thousand rows determine the type of each column, unless the caller sets it: `int`, `float`, `bool` or
    `str`. An empty cell is null, or an empty text in a column of texts.

    Parameters
    ----------
    files : iterable of binary file
    delimiter : str
    types : mapping of str to str
        The types that the caller sets, by column.

    Raises
    ------
    KStreamsError
        If the first file has no header, or lacks a column of `types`.

    Examples
    --------
    >>> rows = CsvRows([io.BytesIO(b"city,wind\\nEWR,7\\nJFK,\\n")], ",", {})
    >>> rows.types, [row.values for row in rows]
    ({'city': 'str', 'wind': 'int'}, [{'city': 'EWR', 'wind': 7}, {'city': 'JFK', 'wind': None}])
    """

    def __init__(self, files: Iterable[IO[bytes]], delimiter: str, types: dict[str, str]) -> None:
        csv.field_size_limit(_LONGEST_FIELD)
        self._delimiter = delimiter
        self.columns: list[str] = []
        lines = self._lines(files)
        first = list(islice(lines, 1))  # reads the header
        require_columns(types, self.columns)
        sample = first + list(islice(lines, _SAMPLE - 1))
        self.types = {name: types.get(name) or _type_of(cells[name] for _, cells in sample) for name in self.columns}
        self._rows = chain(sample, lines)

    def __iter__(self) -> Iterator[Row]:
        readers = {name: _TYPES[kind] for name, kind in self.types.items()}
        for line, cells in self._rows:
            values = {name: self._value(line, name, cells[name], *readers[name]) for name in self.columns}
            yield Row(line, cells, values)

    def _value(self, line: int, name: str, cell: str, pattern: re.Pattern[str], read: Read) -> object:
        kind = self.types[name]
        if not cell and kind != "str":
            return None
        if pattern.fullmatch(cell) is None:
            raise _refused(line, f"{name} is {cell!r}, and no {kind}: name another type, as --column {name}=str")
        return read(cell)

    def _lines(self, files: Iterable[IO[bytes]]) -> Iterator[tuple[int, dict[str, str]]]:
        for file in files:
            text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
            reader = csv.reader(text, delimiter=self._delimiter, strict=True)
            try:
                self._take_header(next(reader, []))
                for cells in reader:
                    if cells:
                        yield reader.line_num, self._by_column(reader.line_num, cells)
            except csv.Error as error:
                raise _refused(reader.line_num, str(error)) from None
            except UnicodeDecodeError as error:
                raise _refused(
                    reader.line_num + 1,
                    f"it is not UTF-8 text ({error.reason}): convert it, for example by `iconv -f latin1 -t utf-8`",
                ) from None
            finally:
                if not file.closed:
                    text.detach()  # the caller closes the file

    def _take_header(self, header: Sequence[str]) -> None:
        names = [name.strip() for name in header]
        if not self.columns:
            _check_header(names, self._delimiter)
            self.columns = names
        if names != self.columns:
            raise KStreamsError(
                f"the files differ in their headers: {', '.join(self.columns)} and {', '.join(names)}; give files with "
                "the same header"
            )

    def _by_column(self, line: int, cells: list[str]) -> dict[str, str]:
        if len(cells) != len(self.columns):
            raise _refused(line, f"it has {len(cells)} cells, and the header {len(self.columns)}")
        return dict(zip(self.columns, cells, strict=True))


def require_columns(named: Iterable[str], columns: Sequence[str]) -> None:
    """Raise KStreamsError if the header lacks one of the columns."""
    for name in named:
        if name not in columns:
            raise KStreamsError(f"there is no column {name!r}; the header has: {', '.join(columns)}")


def checked_type(name: str) -> str:
    """Return the type of a column. Raises KStreamsError for an unknown type."""
    if name not in _TYPES:
        raise KStreamsError(f"{name!r} is no type of a column: use one of {', '.join(_TYPES)}")
    return name


def _check_header(names: list[str], delimiter: str) -> None:
    if not names:
        raise KStreamsError("the file is empty: its first line must name the columns")
    if "" in names or len(set(names)) < len(names):
        raise KStreamsError(f"the header names a column twice, or not at all: {', '.join(names)}")
    other = next((other for other in _OTHER_DELIMITERS if other in names[0] and other != delimiter), None)
    if len(names) == 1 and other is not None:
        raise KStreamsError(
            f"the header is one column, {names[0]!r}: name the character between columns, as --delimiter {other!r}"
        )


def _type_of(cells: Iterable[str]) -> str:
    distinct = {cell for cell in cells if cell}
    fitting = (kind for kind, (pattern, _) in _TYPES.items() if all(map(pattern.fullmatch, distinct)))
    return next(fitting) if distinct else "str"


def _refused(line: int, why: str) -> KStreamsError:
    return KStreamsError(f"line {line} of the input was not written, nor what follows it: {why}")
