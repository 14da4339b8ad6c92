"""An object store that is away at random moments, and a catalogue in Postgres: each row is written once."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import polars
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

import kstreams as ks
from kstreams.connectors import Sink
from tests.connectors.lake.driving import appended, fill
from tests.connectors.lake.test_delta import s3_options as delta_options
from tests.connectors.lake.test_files import s3_options as file_options
from tests.spark.s3_server import s3_server
from tests.support.postgres import NEEDED, Postgres, can_run
from tests.support.switched_proxy import SwitchedProxy

ROWS = {"files": 6_000, "delta": 3_000}
LOCATION = "s3://lake/trades"


def files_at(endpoint: str) -> Sink:
    return ks.sinks.files(LOCATION, options=file_options(endpoint))


def delta_at(endpoint: str) -> Sink:
    return ks.sinks.delta(LOCATION, options=delta_options(endpoint))


SINKS = {"files": files_at, "delta": delta_at}


def numbers_in_files(endpoint: str) -> list[int]:
    options = {key.lower(): value for key, value in delta_options(endpoint).items() if key.startswith("AWS")}
    numbers: list[int] = polars.read_parquet(f"{LOCATION}/*.parquet", storage_options=options)["number"].to_list()
    return numbers


def numbers_in_delta(endpoint: str) -> list[int]:
    table = DeltaTable(LOCATION, storage_options=delta_options(endpoint))
    numbers: list[int] = table.to_pyarrow_table()["number"].to_pylist()
    return numbers


@contextmanager
def outages(proxy: SwitchedProxy) -> Iterator[None]:
    """Switch the proxy off and on at random moments while the block runs. The seed is printed."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    moments = random.Random(seed)
    over = threading.Event()

    def switch() -> None:
        while not over.wait(moments.uniform(0.3, 1.5)):
            proxy.off()
            over.wait(moments.uniform(0.01, 0.1))
            proxy.on()

    thread = threading.Thread(target=switch)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("kind", "numbers_in"), [("files", numbers_in_files), ("delta", numbers_in_delta)])
def test_a_store_that_is_away_at_random_moments(kind: str, numbers_in: Callable[[str], list[int]]) -> None:
    """The writer is a process of its own, since deltalake holds the lock of the interpreter in some requests."""
    with s3_server("lake") as server, SwitchedProxy(server.endpoint.removeprefix("http://")) as proxy:
        command = [sys.executable, "-m", "tests.connectors.lake.test_outages", kind, proxy.url]
        with outages(proxy):
            writer = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True)
        assert int(writer.stdout) > 0, "the store was never away: write more rows"
        assert sorted(numbers_in(server.endpoint)) == sorted(appended(ROWS[kind]) * 2)


@pytest.mark.skipif(not can_run(), reason=NEEDED)
def test_an_iceberg_catalogue_in_postgres_that_is_killed(tmp_path: Path) -> None:
    with Postgres() as server:
        uri = server.url.replace("postgresql:", "postgresql+psycopg:")
        catalog = {"type": "sql", "uri": uri, "warehouse": f"file://{tmp_path}"}
        sink = ks.sinks.iceberg(catalog, "db.trades")
        threads = [
            threading.Thread(target=fill, args=(sink, 1_000, 250), kwargs={"keys": 50, "partition": partition})
            for partition in (0, 1)
        ]
        for thread in threads:
            thread.start()
        server.kill()
        server.launch()
        for thread in threads:
            thread.join()
        numbers = load_catalog("default", **catalog).load_table("db.trades").scan().to_polars()["number"]
        assert sorted(numbers) == sorted(appended(1_000) * 2)


def main(kind: str, endpoint: str) -> None:
    """Write all rows, and print how often the store did not answer."""
    sink = SINKS[kind](endpoint)
    print(sum(fill(sink, ROWS[kind], 100, keys=500, partition=partition) for partition in (0, 1)))


if __name__ == "__main__":
    main(*sys.argv[1:])
