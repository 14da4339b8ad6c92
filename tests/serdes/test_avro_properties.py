"""Whatever the schema: what was written is read back, and fastavro writes and reads the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from kstreams.errors import SerdeError
from kstreams.serdes.avro.kinds import PLAIN
from kstreams.serdes.avro.reading import AvroReader
from kstreams.serdes.avro.schema import parsed
from kstreams.serdes.avro.writing import AvroWriter
from kstreams.serdes.typed import same_value
from tests.support.avro_schemas import by_fastavro, read_by_fastavro, schema_and_values, schema_pairs
from tests.support.examples import examples

QUICK = settings(
    max_examples=examples(600),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@QUICK
@given(schema_and_values())
def test_what_was_written_is_read_back_and_fastavro_agrees(case: tuple[Any, list[Any]]) -> None:
    schema, rows = case
    ours = parsed(json.dumps(schema))
    writer, reader = AvroWriter(ours, PLAIN), AvroReader(ours, ours, PLAIN)
    data = writer.many(rows)
    assert data == [writer.one(row) for row in rows]
    for row, read, bytes_of_row in zip(rows, reader.many(data), data, strict=True):
        assert same_value(row, read)
        assert same_value(read, reader.one(bytes_of_row))
        assert same_value(read_by_fastavro(bytes_of_row, schema), read)
        assert same_value(reader.one(by_fastavro(schema, row)), row)


@QUICK
@given(schema_pairs())
def test_another_schema_reads_what_it_reads_for_fastavro(case: tuple[Any, Any, Any]) -> None:
    written, wanted, value = case
    data = by_fastavro(written, value)
    try:
        expected = read_by_fastavro(data, written, wanted)
    except Exception:
        with pytest.raises(SerdeError):
            AvroReader(parsed(json.dumps(written)), parsed(json.dumps(wanted)), PLAIN).one(data)
    else:
        assert same_value(
            AvroReader(parsed(json.dumps(written)), parsed(json.dumps(wanted)), PLAIN).one(data), expected
        )
