"""Files become records: CSV, JSON lines, text and Parquet, compressed or not, on a disk or in an object store."""

import bz2
import csv
import gzip
import io
import tempfile
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kstreams as ks
from kstreams.connectors import Source
from kstreams.testing.connectors import SourceContract, read_all
from tests.native.world import World


class Trade(msgspec.Struct):
    id: int
    symbol: str
    price: float | None = None
    at: datetime | None = None


ROWS = [
    {"id": n, "symbol": f"S{n % 3}", "price": n * 0.5, "at": datetime(2024, 1, 1, 0, n % 60, tzinfo=UTC)}
    for n in range(40)
]


def as_csv(rows: list[dict[str, Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: "" if value is None else value for name, value in row.items()} for row in rows)
    return text.getvalue().encode()


def as_lines(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def values_of(source: Source) -> list[Any]:
    batches = [batch for split in sorted(source.splits()) for batch in read_all(source, split)]
    return [row for batch in batches for row in batch.values.to_pylist()]


class FilesContract(SourceContract):
    """The rows 0 to 40 in two files."""

    def rows(self, folder: Path) -> list[Any]:
        return ROWS


class TestCsv(FilesContract):
    def source(self, folder: Path) -> Source:
        (folder / "a.csv").write_bytes(as_csv(ROWS[:25]))
        (folder / "b.csv.gz").write_bytes(gzip.compress(as_csv(ROWS[25:35])))
        (folder / "c.csv.zst").write_bytes(zstd(as_csv(ROWS[35:])))
        return ks.sources.csv(folder / "*.csv*", Trade, key="id", timestamp="at")


class TestJsonLines(FilesContract):
    def source(self, folder: Path) -> Source:
        (folder / "a.jsonl").write_bytes(as_lines(ROWS[:25]))
        (folder / "b.jsonl.bz2").write_bytes(bz2.compress(as_lines(ROWS[25:])))
        return ks.sources.json_lines(folder, Trade, key=["id", "symbol"])


class TestParquet(FilesContract):
    def source(self, folder: Path) -> Source:
        table = pa.Table.from_pylist(ROWS)
        pq.write_table(table.slice(0, 25), folder / "a.parquet", row_group_size=10)
        pq.write_table(table.slice(25), folder / "b.parquet")
        return ks.sources.parquet(folder, Trade, key="symbol", timestamp="at")


class TestText(SourceContract):
    def source(self, folder: Path) -> Source:
        (folder / "book.txt").write_text("".join(f"line {n}\n" for n in range(30)) + "the end")
        return ks.sources.text(folder / "book.txt")

    def rows(self, folder: Path) -> list[Any]:
        return [*(f"line {n}" for n in range(30)), "the end"]


def test_blocks_end_between_records_also_where_values_have_newlines(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("kstreams.connectors.files.lines._BLOCK_BYTES", 50)
    rows = [{"id": str(n), "note": 'a "quoted"\nnote, ' * (n % 4) + "x"} for n in range(60)]
    (tmp_path / "notes.csv").write_bytes(as_csv(rows))
    source = ks.sources.csv(tmp_path / "notes.csv")
    assert values_of(source) == rows
    batches = read_all(source, "notes.csv")
    assert len(batches) > 20
    for number, batch in enumerate(batches):
        rest = [row for later in batches[number + 1 :] for row in later.values.to_pylist()]
        later_batches = read_all(source, "notes.csv", batch.position)
        assert [row for later in later_batches for row in later.values.to_pylist()] == rest


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), min_size=1)
CSV_ROWS = st.fixed_dictionaries({"a": TEXTS, "b": st.integers(-(2**63), 2**63 - 1)})


@given(st.lists(CSV_ROWS, min_size=1, max_size=20))
@settings(max_examples=60, deadline=None)
def test_what_the_csv_module_writes_is_read(rows: list[dict[str, Any]]) -> None:
    class Row(msgspec.Struct):
        a: str
        b: int

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "rows.csv").write_bytes(as_csv(rows))
        assert values_of(ks.sources.csv(Path(folder, "rows.csv"), Row, null_values=())) == rows


def test_a_file_that_is_appended_to_is_read_line_by_line(tmp_path: Path) -> None:
    log = tmp_path / "app.jsonl"
    log.write_text('{"n":1}\n{"n"')
    source = ks.sources.json_lines(log, follow=True)
    with closing(source.open("app.jsonl", None)) as reader:
        first = reader.read()
        assert first is not None
        assert first.values.to_pylist() == [{"n": 1}]
        assert reader.read() is None
        with log.open("a") as file:
            file.write(':2}\n{"n":3}\n')
        second = reader.read()
        assert second is not None
        assert second.values.to_pylist() == [{"n": 2}, {"n": 3}]
    with closing(source.open("app.jsonl", first.position)) as reader:
        again = reader.read()
        assert again is not None
        assert again.values.to_pylist() == [{"n": 2}, {"n": 3}]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (ks.sources.csv, "id,symbol\n1,A\ntwo,B\n3,C\n"),
        (ks.sources.json_lines, '{"id":1,"symbol":"A"}\nno JSON\n{"id":3,"symbol":"C"}\n'),
    ],
)
def test_bad_records_are_left_out_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, make: Callable[..., Source], text: str
) -> None:
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "a.x").write_text(text)
    rows = values_of(make(tmp_path / "rows" / "*.x", Trade, on_error="skip"))
    assert [(row["id"], row["symbol"]) for row in rows] == [(1, "A"), (3, "C")]
    assert "is skipped" in caplog.text


def test_times_without_a_zone_are_utc_and_nulls_are_texts_that_say_so(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,symbol,price,at\n1,A,NA,2024-01-01 10:00:00\n2,,1.5,2024-01-01 11:00:00\n")
    rows = values_of(ks.sources.csv(tmp_path / "a.csv", Trade, null_values=["NA"]))
    assert rows == [
        {"id": 1, "symbol": "A", "price": None, "at": datetime(2024, 1, 1, 10, tzinfo=UTC)},
        {"id": 2, "symbol": "", "price": 1.5, "at": datetime(2024, 1, 1, 11, tzinfo=UTC)},
    ]


def test_hidden_files_of_a_folder_are_left_out(tmp_path: Path) -> None:
    for name in ("a.txt", "_SUCCESS", ".crc", "sub/b.txt", "_temporary/c.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"{name}\n")
    assert sorted(ks.sources.text(tmp_path).splits()) == ["a.txt", "sub/b.txt"]


def test_a_file_that_was_read_to_its_end_is_not_opened_again(tmp_path: Path) -> None:
    source = ks.sources.csv(tmp_path / "*.csv.gz", Trade)
    file = tmp_path / "old.csv.gz"
    file.write_bytes(gzip.compress(as_csv(ROWS)))
    end = read_all(source, file.name)[-1]
    file.write_bytes(b"no gzip file")
    (again,) = read_all(source, file.name, end.position)
    assert again.is_end
    assert again.position == end.position


def test_an_application_takes_files_that_are_added_later(tmp_path: Path) -> None:
    world = World(tmp_path)
    (tmp_path / "in").mkdir()
    builder = ks.StreamsBuilder()
    files = ks.sources.csv(tmp_path / "in" / "*.csv", Trade, key="symbol", timestamp="at")
    trades = builder.stream(files, name="trades")
    trades.group_by_key().count().to_stream().to("counts")
    for number, part in enumerate((ROWS[:10], ROWS[10:30], ROWS[30:])):
        (tmp_path / "in" / f"{number}.csv").write_bytes(as_csv(part))
        with ks.KafkaStreams(builder, world.settings) as streams:
            streams.start(until_end=True)
            streams.wait()
    counts = {row.key: row.value for rows in world.partitions("counts", str, int) for row in rows}
    assert counts == {"S0": 14, "S1": 13, "S2": 13}
