"""`kstreams explain`: shows how an engine would run an application, operator by operator, without a start."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from kstreams.cli.options import AppFile, AsJson, EngineName, Settings, settings_of
from kstreams.errors import ConfigError

_NARROWEST = 40
_FURTHER = ("decided_by",)
"""Further values of some engines."""


def explain(
    app: AppFile,
    engine: Annotated[EngineName, typer.Option(help="The engine to explain.")] = EngineName.NATIVE,
    as_json: AsJson = False,
    code: Annotated[bool, typer.Option("--code", help="Print the application as a program of plain PySpark.")] = False,
    config: Settings = None,
) -> None:
    """Show the path of every operator, and the reason.

    The native engine runs an operator on columns or record by record. Spark runs it on the relational path or in tasks.
    For Spark, the command also shows the setting that decided.
    A reason that applies to consecutive operators is printed below the last of them.

    With `--code`, it prints what expressions and Spark's own aggregations and joins can say as a program that runs by
    itself, from topics of Kafka to topics of Kafka, and names what it leaves out.

    Example: `kstreams explain app.py --engine spark`
    """
    from kstreams import app as application
    from kstreams.cli.output import json_line

    if code and (as_json or engine is not EngineName.SPARK):
        raise ConfigError("--code prints a program of PySpark: give --engine spark with it, and leave --json out")
    loaded = application.load_app(app, settings_of(config))
    if code:
        sys.stdout.write(application.code(loaded))
        return
    rows = application.explain(loaded, engine=engine.value)
    if as_json:
        sys.stdout.writelines(json_line(row._asdict()) for row in rows)
        return
    width = max(shutil.get_terminal_size().columns, _NARROWEST)
    sys.stdout.writelines(f"{line}\n" for line in _lines(f"{loaded.path.name} on {engine.value}", rows, width))


def _lines(title: str, rows: Sequence[Any], width: int) -> Iterator[str]:
    """Yield a line per operator with path, name and source line, and the reasons below."""
    counts = Counter(row.path for row in rows)
    yield f"{title}: " + ", ".join(f"{count} {path}" for path, count in counts.items())
    indent = " " * (max(map(len, counts), default=0) + 2)
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        yield _operator(row, len(indent), width)
        if following is None or _reasons(following) != _reasons(row):
            for reason in _reasons(row)[1:]:
                text = reason.removeprefix(f"{row.operator} ")
                yield from _wrapped(text, width, f"{indent}  ")


def _reasons(row: Any) -> list[str]:
    """Return the path of an operator, its reason, and further values of the engine."""
    values = row._asdict()
    details = (f"{name.replace('_', ' ')}: {values[name]}" for name in _FURTHER if values.get(name))
    return [row.path, row.why, *details]


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


def _operator(row: Any, name_at: int, width: int) -> str:
    """Return `columns  KSTREAM-FILTER-0000000005   app.py:103`, on two lines if one is too short."""
    start = f"{row.path:{name_at}}{row.operator}"
    if row.declared_at is None:
        return start
    place = Path(row.declared_at).name
    space = width - len(start) - len(place)
    return f"{start}{' ' * space}{place}" if space > 0 else f"{start}\n{place:>{width}}"
