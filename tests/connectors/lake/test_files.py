"""Files hold the committed rows exactly once, and nothing else looks like a file of rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pandas
import polars
import pyarrow.dataset
import pyarrow.parquet
import pytest

import kstreams as ks
from kstreams.connectors import Sink
from kstreams.errors import ConnectorError, ConnectorUnavailableError, FencedError
from kstreams.testing.connectors import Order, SinkContract
from tests.connectors.lake.driving import TASK, batch_of, commit, commit_all, trades
from tests.connectors.running import copy_in, copy_out, log_with_topics
from tests.connectors.systems import Numbered, orders
from tests.spark.s3_server import S3Server, s3_server


def numbers_in(folder: Path) -> list[int]:
    """The numbers of trades that DuckDB reads."""
    if not list(folder.rglob("*.parquet")):
        return []
    rows = duckdb.sql(f"SELECT number FROM '{folder}/**/*.parquet' ORDER BY number").fetchall()
    return [number for (number,) in rows]


def orders_read(folder: Path, suffix: str) -> list[Order]:
    if not list(folder.rglob(f"*{suffix}")):
        return []
    rows = duckdb.sql(f"SELECT id, name, amount FROM '{folder}/**/*{suffix}'").fetchall()
    return [Order(*row) for row in rows]


class TestParquet(SinkContract):
    def sink(self, folder: Path) -> Sink:
        return ks.sinks.files(folder / "out", partition_by={"hour": "%H"})

    def orders(self, folder: Path) -> list[Order]:
        return orders_read(folder / "out", ".parquet")


class TestJsonLines(SinkContract):
    def sink(self, folder: Path) -> Sink:
        return ks.sinks.files(folder / "out", format="json", compression="gzip")

    def orders(self, folder: Path) -> list[Order]:
        return orders_read(folder / "out", ".json.gz")


class TestCsv(SinkContract):
    def sink(self, folder: Path) -> Sink:
        return ks.sinks.files(folder / "out", format="csv", roll_rows=2)

    def orders(self, folder: Path) -> list[Order]:
        return orders_read(folder / "out", ".csv")


class TestParquetOnS3(SinkContract):
    server: S3Server

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _server(cls) -> Iterator[None]:
        with s3_server("lake") as cls.server:
            yield

    def sink(self, folder: Path) -> Sink:
        return ks.sinks.files(self.server.location(folder.name), options=s3_options(self.server.endpoint))

    def orders(self, folder: Path) -> list[Order]:
        options = {
            "aws_endpoint_url": self.server.endpoint,
            "aws_access_key_id": "test",
            "aws_secret_access_key": "test",
            "aws_region": "us-east-1",
            "aws_allow_http": "true",
        }
        try:
            table = polars.read_parquet(self.server.location(folder.name) + "/**/*.parquet", storage_options=options)
        except polars.exceptions.ComputeError:  # there are no files yet
            return []
        return [Order(**row) for row in table.to_dicts()]


def s3_options(endpoint: str) -> dict[str, object]:
    return {
        "endpoint": endpoint,
        "access_key_id": "test",
        "secret_access_key": "test",
        "region": "us-east-1",
        "client_options": {"allow_http": True},
        "retry_config": {"max_retries": 0, "retry_timeout": timedelta(seconds=5)},
    }


def test_partition_columns_become_folders_that_every_library_reads(tmp_path: Path) -> None:
    sink = ks.sinks.files(tmp_path, partition_by={"sym": "sym", "day": "%Y-%m-%d"}, key="id", timestamp="at")
    commit_all(sink, trades(0, 50))
    folders = {path.parent.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.parquet")}
    assert folders == {f"sym=S{number}/day=1970-01-0{day}" for number in range(3) for day in (1, 2, 3)} - {
        f"sym=S{number}/day=1970-01-03" for number in range(3) if number not in {48 % 3, 49 % 3}
    }
    expected = [(n, n * 0.5, n, f"S{n % 3}") for n in range(50)]
    pattern = f"{tmp_path}/**/*.parquet"
    assert duckdb.sql(f"SELECT id, price, number, sym FROM '{pattern}' ORDER BY number").fetchall() == expected
    columns = ["id", "price", "number", "sym"]
    assert polars.read_parquet(pattern, hive_partitioning=True).sort("number").select(columns).rows() == expected
    frame = pandas.read_parquet(tmp_path).sort_values("number")
    assert list(frame[columns].itertuples(index=False, name=None)) == expected
    assert frame["at"].iloc[30].to_pydatetime() == datetime(1970, 1, 2, 6, tzinfo=UTC)
    assert pyarrow.dataset.dataset(tmp_path, partitioning="hive").count_rows() == 50


def test_partition_columns_by_expression(tmp_path: Path) -> None:
    size = ks.when(ks.col("price") >= 5.0).then("large").otherwise("small")
    commit_all(ks.sinks.files(tmp_path, partition_by={"size": size}), trades(0, 20))
    rows = duckdb.sql(f"SELECT size, count(*) FROM '{tmp_path}/**/*.parquet' GROUP BY ALL ORDER BY ALL").fetchall()
    assert rows == [("large", 10), ("small", 10)]


def test_any_text_can_be_a_partition_and_null_is_the_one_of_hive(tmp_path: Path) -> None:
    texts = ["a/b", "50 %", "ü=x", "..", "", None]
    sink = ks.sinks.files(tmp_path, partition_by="text")
    commit_all(sink, batch_of([{"text": text, "n": number} for number, text in enumerate(texts)]))
    table = pyarrow.dataset.dataset(tmp_path, partitioning="hive").to_table().sort_by("n")
    assert table["text"].to_pylist() == texts
    assert {path.name for path in tmp_path.iterdir()} >= {"text=a%2Fb", "text=__HIVE_DEFAULT_PARTITION__"}


def test_a_file_ends_by_rows_and_by_bytes(tmp_path: Path) -> None:
    commit_all(ks.sinks.files(tmp_path / "rows", roll_rows=4), trades(0, 10))
    files = sorted((tmp_path / "rows").glob("*.parquet"))
    assert [pyarrow.parquet.read_metadata(path).num_rows for path in files] == [4, 4, 2]
    assert [path.name for path in files] == [
        "trades-0-000000000000-000000000003.parquet",
        "trades-0-000000000004-000000000007.parquet",
        "trades-0-000000000008-000000000009.parquet",
    ]
    batches = [trades(first, first + 1_000) for first in range(0, 5_000, 1_000)]
    with closing(ks.sinks.files(tmp_path / "bytes", format="csv", roll_bytes=50_000).open(TASK)) as writer:
        writer.next_offset()
        for batch in batches:
            writer.write(batch)
        writer.commit(5_000)
    assert len(list((tmp_path / "bytes").glob("*.csv"))) == 2


def test_a_worker_commits_after_the_interval_of_the_sink(tmp_path: Path) -> None:
    sink = ks.sinks.files(tmp_path, roll_rows=123, roll_interval=timedelta(seconds=90))
    assert (sink.commit_rows, sink.commit_interval_ms) == (123, 90_000)


def test_records_without_value_are_left_out(tmp_path: Path) -> None:
    commit_all(ks.sinks.files(tmp_path), trades(0, 5, deleted=[1, 4]), trades(5, 6, deleted=[5]))
    assert numbers_in(tmp_path) == [0, 2, 3]
    with closing(ks.sinks.files(tmp_path).open(TASK)) as writer:
        assert writer.next_offset() == 6


def test_values_without_fields_and_nested_values(tmp_path: Path) -> None:
    commit_all(ks.sinks.files(tmp_path / "plain", format="json"), batch_of(["a", 'b "c"', None, "ü\n"]))
    lines = next((tmp_path / "plain").glob("*.json")).read_text().splitlines()
    assert [json.loads(line) for line in lines] == [{"value": "a"}, {"value": 'b "c"'}, {"value": "ü\n"}]
    nested = [{"list": [1, 2], "sub": {"x": None}, "f": float("nan"), "b": b"\0\1", "t": datetime(2024, 5, 6, 7, 8, 9)}]
    commit_all(ks.sinks.files(tmp_path / "json", format="json"), batch_of(nested))
    assert json.loads(next((tmp_path / "json").glob("*.json")).read_text()) == {
        "list": [1, 2], "sub": {"x": None}, "f": None, "b": "AAE=", "t": "2024-05-06T07:08:09.000000",
    }  # fmt: skip
    commit_all(ks.sinks.files(tmp_path / "csv", format="csv"), batch_of(nested))
    assert next((tmp_path / "csv").glob("*.csv")).read_text().splitlines()[0] == '"list","sub","f","b","t"'


def test_values_whose_fields_change_go_to_files_of_their_own(tmp_path: Path) -> None:
    batches = [batch_of([{"a": 1}, {"a": 2}]), batch_of([{"a": 3, "b": "x"}], first=2)]
    with closing(ks.sinks.files(tmp_path).open(TASK)) as writer:
        writer.next_offset()
        for batch in batches:
            writer.write(batch)
        writer.commit(3)
    rows = duckdb.sql(f"SELECT a, b FROM read_parquet('{tmp_path}/*.parquet', union_by_name=true) ORDER BY a")
    assert rows.fetchall() == [(1, None), (2, None), (3, "x")]


def test_a_writer_that_ended_between_commit_and_move_is_completed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files are moved one by one: the process ends after the first."""
    sink = ks.sinks.files(tmp_path, roll_rows=4)
    with closing(sink.open(TASK)) as writer, monkeypatch.context() as patched:
        ends_at_second_move(patched)
        with pytest.raises(InterruptedError):
            commit(writer, trades(0, 10))
    assert numbers_in(tmp_path) == list(range(4))
    with closing(sink.open(TASK)) as writer:
        assert writer.next_offset() == 10
        assert numbers_in(tmp_path) == list(range(10))
        commit(writer, trades(10, 12))
    assert numbers_in(tmp_path) == list(range(12))


def ends_at_second_move(monkeypatch: pytest.MonkeyPatch) -> None:
    moves = []

    def replace(source: Path, target: Path) -> Path:
        moves.append(target)
        if sum(target.suffix == ".parquet" for target in moves) == 2:
            raise InterruptedError
        source.rename(target)
        return target

    monkeypatch.setattr(Path, "replace", replace)


def test_opening_a_writer_fences_earlier_ones_before_it_deletes_their_files(tmp_path: Path) -> None:
    sink = ks.sinks.files(tmp_path)
    with closing(sink.open(TASK)) as former:
        former.write(trades(0, 5))
        former.flush()
        with closing(sink.open(TASK)) as present:
            with pytest.raises(FencedError, match=r"trades-0\.state was replaced by another writer"):
                former.commit(5)
            commit(present, trades(0, 3))
    assert numbers_in(tmp_path) == [0, 1, 2]
    assert list(tmp_path.rglob("*.staged/*")) == []


def test_merging_replaces_small_files_while_the_sink_writes(tmp_path: Path) -> None:
    sink = ks.sinks.files(tmp_path, partition_by="sym")
    with closing(sink.open(TASK)) as writer:
        writer.next_offset()
        for first in range(0, 40, 10):
            commit(writer, trades(first, first + 10))
        assert ks.sinks.merge_files(tmp_path) == 12
        commit(writer, trades(40, 50))
    assert numbers_in(tmp_path) == list(range(50))
    assert len(list(tmp_path.rglob("*.parquet"))) == 6
    assert ks.sinks.merge_files(tmp_path, target_bytes=100) == 0


def test_a_merge_that_ended_in_the_middle_is_finished_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit_all(ks.sinks.files(tmp_path), *(trades(first, first + 5) for first in range(0, 20, 5)))
    unlink = Path.unlink

    def unlink_once(path: Path, missing_ok: bool = False) -> None:
        unlink(path, missing_ok)
        raise InterruptedError

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", unlink_once)
        with pytest.raises(InterruptedError):
            ks.sinks.merge_files(tmp_path)
    ks.sinks.merge_files(tmp_path)
    assert numbers_in(tmp_path) == list(range(20))
    assert len(list(tmp_path.glob("*.parquet"))) == 1


def test_merging_in_an_object_store(tmp_path: Path) -> None:
    with s3_server("lake") as server:
        options = s3_options(server.endpoint)
        sink = ks.sinks.files("s3://lake/merged", options=options)
        commit_all(sink, *(trades(first, first + 5) for first in range(0, 20, 5)))
        assert ks.sinks.merge_files("s3://lake/merged", options=options) == 4
        names = [name for name in sink.folder().sizes() if name.endswith(".parquet")]
        with sink.folder().open(*names) as file:
            assert sorted(pyarrow.parquet.read_table(file)["number"].to_pylist()) == list(range(20))


def test_a_topic_goes_through_workers_into_files_once(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with log_with_topics(tmp_path) as log, ExitStack():
        for count in (2_000, 3_000):
            copy_in(log, Numbered(count, ["a"]))
            copy_out(log, ks.sinks.files(out))
            assert sorted(orders_read(out, ".parquet"), key=lambda order: order.id) == orders(count)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"format": "xml"}, "no file format 'xml': take one of parquet, json, csv"),
        ({"format": "csv", "compression": "snappy"}, "csv files have no compression 'snappy': take one of none, gzip"),
        ({"roll_rows": 0}, "roll_rows and roll_bytes are to be 1 or more"),
    ],
)
def test_a_wrong_declaration_says_what_to_write(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ConnectorError, match=message):
        ks.sinks.files("out", **arguments)


def test_a_partition_column_that_the_rows_lack_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConnectorError, match="partition_by names the column 'country', but the rows have sym, price"):
        commit_all(ks.sinks.files(tmp_path, partition_by="country"), trades(0, 2))
    expression = ks.col("land").str.upper()
    with pytest.raises(ConnectorError, match=r"ks\.col\('land'\) cannot be read for a row of a sink"):
        commit_all(ks.sinks.files(tmp_path, partition_by={"c": expression}), trades(0, 2))


def test_an_object_store_that_is_away_is_tried_again_and_shows_no_credentials() -> None:
    options = s3_options("http://127.0.0.1:1") | {"secret_access_key": "very-secret"}
    sink = ks.sinks.files("s3://lake/x", options=options)
    with pytest.raises(ConnectorUnavailableError, match=r"s3://lake/x/_kstreams.* does not answer") as raised:
        sink.open(TASK)
    assert "very-secret" not in f"{raised.value}{sink!r}"
