"""An object store that is away at random moments, and a catalogue in Postgres: each row is written once."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars
import pytest
from pyiceberg.catalog import load_catalog

import kstreams as ks
from kstreams.connectors import Sink
from tests.connectors.lake.driving import appended, fill
from tests.connectors.lake.test_delta import s3_options as delta_options
from tests.connectors.lake.test_files import s3_options as file_options
from tests.spark.s3_server import s3_server
from tests.support.postgres import NEEDED, Postgres, can_run
from tests.support.switched_proxy import SwitchedProxy

ROWS = 6_000
LOCATION = "s3://lake/trades"


def files_at(endpoint: str) -> Sink:
    return ks.sinks.files(LOCATION, options=file_options(endpoint))


def numbers_in_files(endpoint: str) -> list[int]:
    options = {key.lower(): value for key, value in delta_options(endpoint).items() if key.startswith("AWS")}
    numbers: list[int] = polars.read_parquet(f"{LOCATION}/*.parquet", storage_options=options)["number"].to_list()
    return numbers


@contextmanager
def outages(proxy: SwitchedProxy) -> Iterator[None]:
    """Switch the proxy off and on at random moments while the block runs. The seed is printed."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    moments = random.Random(seed)
    over = threading.Event()

    def switch() -> None:
        while not over.wait(moments.uniform(0.05, 0.5)):
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
def test_a_store_that_is_away_at_random_moments() -> None:
    with s3_server("lake") as server, SwitchedProxy(server.endpoint.removeprefix("http://")) as proxy:
        command = [sys.executable, "-m", "tests.connectors.lake.test_outages", proxy.url]
        with outages(proxy):
            writer = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True)
        assert int(writer.stdout) > 0, "the store was never away: write more rows"
        assert sorted(numbers_in_files(server.endpoint)) == sorted(appended(ROWS) * 2)


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


def main(endpoint: str) -> None:
    """Write all rows, and print how often the store did not answer."""
    sink = files_at(endpoint)
    print(sum(fill(sink, ROWS, 100, keys=500, partition=partition) for partition in (0, 1)))


if __name__ == "__main__":
    main(*sys.argv[1:])
