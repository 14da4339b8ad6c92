"""How commands print: JSON lines when asked, a table on a terminal, tab-separated text into a pipe."""

from __future__ import annotations

import os
import select
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import log
from typing import Any, TextIO

import msgspec


def counted(number: int, noun: str) -> str:
    """A number and a noun, in the plural but for one.

    Examples
    --------
    >>> counted(1, "record"), counted(2_000, "record")
    ('1 record', '2,000 records')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def size(number: float) -> str:
    """So many bytes.

    Examples
    --------
    >>> size(0), size(2_500), size(5 * 1024**3)
    ('0 B', '2.4 KiB', '5.0 GiB')
    """
    if number < 1024:
        return f"{number:.0f} B"
    power = min(int(log(number, 1024)), 3)
    return f"{number / 1024**power:,.1f} {('KiB', 'MiB', 'GiB')[power - 1]}"


INTERRUPTED = 130
TERMINATED = 143


_encode = msgspec.json.Encoder(enc_hook=str).encode  # lines of the user's code, say, are shown as text


def json_line(value: object) -> str:
    """One JSON object and a newline.

    Examples
    --------
    >>> json_line({"topic": "flights"})
    '{"topic":"flights"}\\n'
    """
    return _encode(value).decode() + "\n"


def print_rows(rows: Iterable[Mapping[str, Any]], *, as_json: bool, title: str = "") -> None:
    """Print rows that all have the same keys.

    Parameters
    ----------
    rows : iterable of mapping
        The keys of the first row become the headings.
    as_json : bool
        One JSON object a line instead.
    title : str
        Stands over the table on a terminal.
    """
    if as_json:
        sys.stdout.writelines(map(json_line, rows))
        return
    if sys.stdout.isatty():
        _print_table(title, list(rows))
    else:
        sys.stdout.writelines(_tabbed(rows))


def reader_is_gone(stream: TextIO) -> bool:
    """Whether a stream is a pipe that nobody reads any more: then a write would fail, but there may be none to come.

    Examples
    --------
    >>> read, write = os.pipe()
    >>> os.close(read)
    >>> with os.fdopen(write, "w") as stream:
    ...     reader_is_gone(stream)
    True
    """
    try:
        fd = stream.fileno()
        if not stat.S_ISFIFO(os.fstat(fd).st_mode):
            return False
    except (OSError, ValueError):  # a stream without a file, as in tests
        return False
    poll = select.poll()
    poll.register(fd, 0)  # errors are reported in any case
    return any(events & select.POLLERR for _, events in poll.poll(0))


def end_output() -> None:
    """Write out what standard output still holds; where that fails, nothing is tried again when Python ends."""
    try:
        sys.stdout.flush()
    except OSError:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        raise


def _tabbed(rows: Iterable[Mapping[str, object]]) -> Iterator[str]:
    for number, row in enumerate(rows):
        if number == 0:
            yield "\t".join(row) + "\n"
        yield "\t".join(map(_text, row.values())) + "\n"


def _print_table(title: str, rows: Sequence[Mapping[str, object]]) -> None:
    from rich.console import Console
    from rich.table import Table

    if not rows:
        sys.stderr.write("no rows\n")
        return
    table = Table(title=title or None, title_justify="left")
    for name, value in rows[0].items():
        table.add_column(name, justify="right" if isinstance(value, int | float) else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(_text, row.values()))
    Console().print(table)


def _text(value: object) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{key}={item}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)
