"""`load_connect_file`: a connect file as the topology and the settings of an application.

A file has the tables `[application]`, `[sources.NAME]` and `[sinks.NAME]`. Each source is a stream with transforms, and
each sink is `to()` after its own transforms, so that the file runs as any application does.
"""

from __future__ import annotations

import os
import string
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from kstreams.config.config import flat_keys, without_passwords
from kstreams.connect.installed import SINKS, SOURCES
from kstreams.connect.settings import called_with
from kstreams.connect.tables import Place, Table, Variables, heading_lines
from kstreams.connect.transforms import TypedStream, transformed
from kstreams.connect.types import PythonType, TypeReader, require_field_name
from kstreams.connectors.api import Source
from kstreams.dsl.builder import StreamsBuilder
from kstreams.errors import ConfigError, ConnectorError, KStreamsError, SerdeError, TopologyError
from kstreams.expressions import col, literal, type_of
from kstreams.kernel.advice import nearest_name
from kstreams.kernel.source_line import declared_by
from kstreams.row_change import RowChange
from kstreams.serdes.connect import ConnectJson
from kstreams.serdes.debezium import Debezium

_TABLES = ("application", "sources", "sinks")
_OF_SOURCE = ("type", "topic", "partitions", "transforms")
_OF_SINK = ("type", "from", "transforms")
_FORMATS = ("json", "connect-json", "debezium")
_SHORTEST_SECRET = 4
"""Values of variables that are shorter are not masked in errors, since they would be parts of other words."""


@dataclass(frozen=True, slots=True)
class ConnectFile:
    """The application of a connect file.

    Parameters
    ----------
    topology : StreamsBuilder
    settings : mapping of str to object
        The settings of `[application]`.
    """

    topology: StreamsBuilder
    settings: Mapping[str, object]


def load_connect_file(path: Path, environment: Mapping[str, str] | None = None) -> ConnectFile:
    """Return the application of a connect file.

    Parameters
    ----------
    path : Path
    environment : mapping of str to str, optional
        The values of `${NAME}`. Default: the environment of the process.

    Raises
    ------
    ConfigError
        If the file cannot be read, or any part of it is unknown or does not fit. Values of variables are masked.
    TopologyError
        If the topology cannot be built.
    """
    text = _text_of(path)
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error
    variables = Variables(os.environ if environment is None else environment, Place(str(path)))
    try:
        return _ConnectFileReader(path, variables.filled(tree), heading_lines(text)).read()  # type: ignore[arg-type]
    except (ConfigError, ConnectorError, SerdeError, TopologyError) as error:
        raise _masked(error, variables.values.values()) from error


def _text_of(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        near = nearest_name(path.name, [file.name for file in path.parent.glob("*.toml")])
        hint = "name the file that holds sources and sinks" if near is None else f"did you mean {path.with_name(near)}?"
        raise ConfigError(f"there is no file {path}: {hint}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error


def _masked(error: KStreamsError, values: Any) -> KStreamsError:
    text = str(error)
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= _SHORTEST_SECRET:
            text = text.replace(value, "****")
    return type(error)(without_passwords(text))


class _ConnectFileReader:
    """Reads the tables of one file into a topology.

    Parameters
    ----------
    path : Path
    tree : mapping
    lines : mapping of str to int
        The line of each heading.
    """

    def __init__(self, path: Path, tree: Mapping[str, object], lines: Mapping[str, int]) -> None:
        self._path = path
        self._lines = lines
        self._file = Table(Place(str(path)), tree)
        self._types = TypeReader(path.resolve().parent)
        self._topology = StreamsBuilder()
        self._streams: dict[str, TypedStream] = {}

    def read(self) -> ConnectFile:
        """Return the application."""
        self._file.require_keys(*_TABLES)
        sources = self._tables("sources")
        sinks = self._tables("sinks")
        self._require_connected(sources, sinks)
        for name, table in sources.items():
            with declared_by(table.place.file):
                self._streams[name] = self._source(name, table)
        for name, table in sinks.items():
            with declared_by(table.place.file):
                self._sink(name, table)
        settings = dict(flat_keys(self._file.table("application").entries))
        named = {"application.id": settings.pop("id")} if "id" in settings else {}
        return ConnectFile(self._topology, {**settings, **named})

    def _tables(self, kind: str) -> dict[str, Table]:
        """Return the tables of a kind by their names, each with its line."""
        group = self._file.table(kind)
        if not group.entries:
            raise self._file.place.error(f"there is no table [{kind}.NAME]: write at least one source and one sink")
        return {name: self._at_line(f"{kind}.{name}", group.table(name)) for name in group.entries}

    def _at_line(self, heading: str, table: Table) -> Table:
        line = self._lines.get(heading)
        file = str(self._path) if line is None else f"{self._path}:{line}"
        return replace(table, place=Place(file, (heading,)))

    def _require_connected(self, sources: Mapping[str, Table], sinks: Mapping[str, Table]) -> None:
        """Raise ConfigError if names are not clear, or do not lead from a source to a sink or a topic."""
        for name, table in sinks.items():
            if name in sources:
                raise table.place.error(f"a source is called {name} as well: give one of them another name")
            if table.text("from") not in sources:
                raise table.place.unknown("source", table.text("from"), list(sources))
        read = {table.entries.get("from") for table in sinks.values()}
        for name, table in sources.items():
            if name not in read and "topic" not in table.entries:
                raise table.place.error(f'no sink reads it: write from = "{name}" in a sink, or topic = ... here')

    def _source(self, name: str, table: Table) -> TypedStream:
        kind = table.text("type")
        if kind == "topic":
            return self._topic_source(name, table)
        source = called_with(_named(SOURCES, table), table.without(*_OF_SOURCE), self._types, name=name)
        topic = table.text_or("topic", "")
        has_transforms = bool(table.entries.get("transforms"))
        if topic and not has_transforms:
            source = source.to_topic(topic, table.number("partitions"))
        stream = self._transformed(self._stream_of(source, name, is_shared=bool(topic)), name, table)
        if topic and has_transforms:
            stream.stream.to(topic, name=f"{name}-topic")
        return stream

    def _stream_of(self, source: Source, name: str, *, is_shared: bool) -> TypedStream:
        """Return the stream of a source. Others may write null values to a shared topic."""
        stream = self._topology.stream(source, name=name)
        return TypedStream(stream, source.key, source.value, source.has_deletes or is_shared)

    def _topic_source(self, name: str, table: Table) -> TypedStream:
        table.require_keys("type", "topic", "key", "value", "format", "transforms")
        topic = table.text("topic")
        declared = table.entries.get("value", "dict")
        value = self._types.read(declared, table.place.at("value"), name)
        key = None
        if "key" in table.entries:
            key = self._types.read(table.entries["key"], table.place.at("key"), f"{name}_key")
        form = _format(table)
        stream = self._topology.stream(
            topic,
            key=_serde(form, bytes if key is None else key),
            value=_serde(form, value, has_changes=True),
            name=name,
        )
        if form != "debezium":
            return self._transformed(TypedStream(stream, key, value), name, table)
        rows = cache(lambda: self._rows_of(topic, key, value, name, table))
        changes = TypedStream(stream, key, RowChange[value], rows=rows if key is not None else None)  # type: ignore[valid-type]
        return self._transformed(changes, name, table)

    def _rows_of(self, topic: str, key: PythonType, value: PythonType, name: str, table: Table) -> TypedStream:
        """Return the stream of the rows that the changes in a topic make."""
        with declared_by(table.place.file):
            rows = self._topology.table(topic, key=_serde("debezium", key), value=Debezium(value), name=f"{name}-rows")
            return TypedStream(rows.to_stream(name=f"{name}-unwrap"), key, value)

    def _sink(self, name: str, table: Table) -> None:
        kind = table.text("type")
        stream = self._transformed(self._streams[table.text("from")], name, table)
        if kind == "topic":
            self._topic_sink(name, table, stream)
        else:
            sink = called_with(_named(SINKS, table), table.without(*_OF_SINK), self._types, name=name)
            stream.stream.to(sink, key=stream.key, value=stream.value, name=name)

    def _topic_sink(self, name: str, table: Table, stream: TypedStream) -> None:
        table.require_keys(*_OF_SINK, "topic", "values", "other", "format")
        route = _Route(table.text("topic"), table.place.at("topic"), stream)
        form = _format(table, "json", "connect-json")
        types = {"key": _serde(form, stream.key), "value": _serde(form, stream.value)}
        values = table.texts("values")
        if not values:
            stream.stream.to(route.topic(), name=name, **types)
            return
        field = route.field()
        for value in values:
            rows = stream.stream.filter(field == value, name=f"{name}-{value}-filter")
            rows.to(route.topic_of(value), name=f"{name}-{value}", **types)
        others = stream.stream.filter(~field.is_in(values) | field.is_null(), name=f"{name}-other-filter")
        others.to(table.text("other"), name=f"{name}-other", **types)

    def _transformed(self, stream: TypedStream, name: str, table: Table) -> TypedStream:
        declarations = table.entries.get("transforms", [])
        return transformed(stream, declarations, table.place, name=name, types=self._types)


@dataclass(frozen=True, slots=True)
class _Route:
    """The topic of a sink, with fields in braces: `orders-{region}`.

    Parameters
    ----------
    text : str
    place : Place
    stream : TypedStream
    """

    text: str
    place: Place
    stream: TypedStream

    def topic(self) -> Any:
        """Return the topic: a text, or the expression that names it for each record."""
        parts = self._parts()
        if all(field is None for _, field in parts):
            return self.text
        texts = [piece for before, field in parts for piece in (literal(before), field) if piece is not None]
        name = texts[0]
        for piece in texts[1:]:
            name = name + piece
        return name

    def topic_of(self, value: str) -> str:
        """Return the topic of a value of the field."""
        return "".join(before + (value if field is not None else "") for before, field in self._parts())

    def field(self) -> Any:
        """Return the only field."""
        fields = [field for _, field in self._parts() if field is not None]
        if len(fields) != 1:
            raise self.place.error(f"values need a topic with one field in braces, not {self.text!r}")
        return fields[0]

    def _parts(self) -> list[tuple[str, Any]]:
        try:
            parts = list(string.Formatter().parse(self.text))
        except ValueError as error:
            raise self.place.error(f"{self.text!r} is no name of topics: {error}") from error
        return [(before, None if name is None else self._column(name)) for before, name, _, _ in parts]

    def _column(self, name: str) -> Any:
        require_field_name(name, self.place)
        if self.stream.fields is not None and name not in self.stream.fields:
            raise self.place.unknown("field", name, list(self.stream.fields))
        kind = type_of(col(name), self.stream.schema).kind
        if kind not in (str, Any):
            raise self.place.error(f"{name} is {kind.__name__}: cast it to str first")
        return col(name)


def _serde(form: str, kind: PythonType, *, has_changes: bool = False) -> Any:
    """Return what declares the type of keys or values in a format."""
    if form == "json":
        return kind
    if form == "debezium" and has_changes:
        return Debezium(kind)
    is_known = kind not in (dict, bytes, None)
    return ConnectJson(kind if is_known else None, schemas=is_known)


def _format(table: Table, *forms: str) -> str:
    form = table.text_or("format", "json")
    if form not in (forms or _FORMATS):
        raise table.place.unknown("format", form, forms or _FORMATS)
    return form


def _named(connectors: Any, table: Table) -> Any:
    """Return the function of the connector that `type` names."""
    try:
        return connectors.function(table.text("type"))
    except ConnectorError as error:
        raise table.place.error(str(error)) from error
