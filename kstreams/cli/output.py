"""The output of commands: JSON lines with `--json`, a table on a terminal, tab-separated text into a pipe."""

from __future__ import annotations

import os
import select
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import log
from typing import TextIO

import msgspec


def counted(number: int, noun: str) -> str:
    """Return a number with a noun in the singular or plural.

    Examples
    --------
    >>> counted(1, "record"), counted(2_000, "record")
    ('1 record', '2,000 records')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def size(number: float) -> str:
    """Return a number of bytes in a readable unit.

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


_encode = msgspec.json.Encoder(
    enc_hook=str
).encode  # other objects, such as lines of the user's code, are shown as text


def json_line(value: object) -> str:
    """Return a JSON object and a newline.

    Examples
    --------
    >>> json_line({"topic": "flights"})
    '{"topic":"flights"}\\n'
    """
    return _encode(value).decode() + "\n"


def print_rows(rows: Iterable[Mapping[str, object]], *, as_json: bool, title: str = "") -> None:
    """Print rows that all have the same keys.

    Parameters
    ----------
    rows : iterable of mapping
        The keys of the first row become the headings.
    as_json : bool
        True to print one JSON object per line.
    title : str
        The title of the table on a terminal.
    """
    if as_json:
        sys.stdout.writelines(map(json_line, rows))
        return
    if sys.stdout.isatty():
        _print_table(title, list(rows))
    else:
        sys.stdout.writelines(_tabbed(rows))


def reader_is_gone(stream: TextIO) -> bool:
    """Return whether a stream is a pipe whose reader has closed it, without a write.

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
    """Flush standard output. If that fails, redirect it, so that Python does not flush it again at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        with open(os.devnull, "w") as null_device:
            os.dup2(null_device.fileno(), sys.stdout.fileno())
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
