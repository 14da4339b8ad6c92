"""Errors of object stores and folders that no retry heals end a connector at once, with what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from moto.core import set_initial_no_auth_action_count

import kstreams as ks
from kstreams.connectors import Sink, Source
from kstreams.testing.connectors import Order
from tests.connectors.ending import assert_sink_ends, assert_source_ends
from tests.connectors.lake.test_delta import s3_options as delta_options
from tests.connectors.lake.test_files import s3_options as file_options
from tests.spark.s3_server import S3Server, s3_server

NO_BUCKET = r"s3://nowhere.*Create the bucket, or correct its name|The Iceberg table.*Create the bucket"
NO_RIGHTS = r"refused.*Check the (credentials|options) and the rights"


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server("lake") as server:
        yield server


def catalogue(server: S3Server, bucket: str, folder: Path) -> Mapping[str, str]:
    return {
        "type": "sql",
        "uri": f"sqlite:///{folder}/catalogue.db",
        "warehouse": f"s3://{bucket}/warehouse",
        "s3.endpoint": server.endpoint,
        "s3.access-key-id": "test",
        "s3.secret-access-key": "very-secret",
        "s3.region": "us-east-1",
    }


def files_in(bucket: str, server: S3Server, folder: Path) -> Sink:
    return ks.sinks.files(f"s3://{bucket}/orders", options=file_options(server.endpoint))


def delta_in(bucket: str, server: S3Server, folder: Path) -> Sink:
    return ks.sinks.delta(f"s3://{bucket}/orders", options=delta_options(server.endpoint))


def iceberg_in(bucket: str, server: S3Server, folder: Path) -> Sink:
    return ks.sinks.iceberg(catalogue(server, bucket, folder), "db.orders")


def source_in(bucket: str, server: S3Server) -> Source:
    return ks.sources.csv(f"s3://{bucket}/in/*.csv", Order, key="id", options=file_options(server.endpoint))


SINKS = [files_in, delta_in, pytest.param(iceberg_in, marks=pytest.mark.slow)]


@pytest.mark.parametrize("sink", SINKS)
def test_a_bucket_that_does_not_exist(sink: type[Sink], server: S3Server, tmp_path: Path) -> None:
    assert_sink_ends(tmp_path, sink("nowhere", server, tmp_path), NO_BUCKET)


@pytest.mark.parametrize("sink", SINKS)
def test_credentials_that_are_refused(sink: type[Sink], server: S3Server, tmp_path: Path) -> None:
    set_initial_no_auth_action_count(0)(assert_sink_ends)(tmp_path, sink("lake", server, tmp_path), NO_RIGHTS)


def test_a_source_in_a_bucket_that_does_not_exist_or_refuses(server: S3Server, tmp_path: Path) -> None:
    assert_source_ends(tmp_path, source_in("nowhere", server), NO_BUCKET)
    set_initial_no_auth_action_count(0)(assert_source_ends)(tmp_path, source_in("lake", server), NO_RIGHTS)


def test_a_catalogue_in_a_database_that_refuses(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/catalogue.db"
    (tmp_path / "catalogue.db").write_text("this is no database, but a text of some length " * 9)
    sink = ks.sinks.iceberg({"type": "sql", "uri": uri, "warehouse": f"file://{tmp_path}/w"}, "db.orders")
    assert_sink_ends(tmp_path, sink, "The catalogue of db.orders fails: .*file is not a database")


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    refused = r"file.* is refused: (Not a directory|File exists). Check the path and its rights"
    assert_sink_ends(tmp_path, ks.sinks.files(tmp_path / "file"), refused)
    assert_sink_ends(tmp_path, ks.sinks.delta(tmp_path / "file"), "file is no Delta table.*Name the folder of a table")


def test_a_log_that_is_no_delta_log(tmp_path: Path) -> None:
    (tmp_path / "table" / "_delta_log").mkdir(parents=True)
    (tmp_path / "table" / "_delta_log" / f"{0:020}.json").write_text("no JSON")
    assert_sink_ends(tmp_path, ks.sinks.delta(tmp_path / "table"), "table is no Delta table: ")
