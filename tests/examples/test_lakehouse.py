"""The lakehouse example: Delta and Iceberg equal SQL over the source tables, after changes and kills."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

from tests.examples.conftest import EXAMPLES, Terminal
from tests.support.postgres import NEEDED, Postgres, can_run

polars = pytest.importorskip("polars")
psycopg = pytest.importorskip("psycopg")
catalogs = pytest.importorskip("pyiceberg.catalog")
pytest.importorskip("deltalake")
pytest.importorskip("duckdb")

pytestmark = pytest.mark.skipif(not can_run(), reason=NEEDED)

EXAMPLE = EXAMPLES / "lakehouse"
JOINED = "orders JOIN products ON products.id = product_id"
ORDERS = f"SELECT orders.id, name, category, quantity, quantity * price, ordered_at FROM {JOINED}"
SALES_BY_HOUR = f"""
SELECT category, date_trunc('hour', ordered_at) AS hour, count(*), sum(quantity), sum(quantity * price)
FROM {JOINED} GROUP BY category, hour
"""


class Shop:
    """The database, and what its application has written."""

    def __init__(self, terminal: Terminal, server: Postgres) -> None:
        self.terminal = terminal
        self.url = server.url
        terminal.environment["SHOP"] = server.url

    def start(self, *command: object) -> subprocess.Popen[str]:
        arguments = [sys.executable, *map(str, command)]
        log = (self.terminal.folder / "log.txt").open("a")
        with log:
            return subprocess.Popen(
                arguments, cwd=self.terminal.folder, env=self.terminal.environment, stdout=log, stderr=log, text=True
            )

    def changes(self, seed: int) -> subprocess.Popen[str]:
        """Change rows until an interrupt."""
        return self.started(self.start(EXAMPLE / "load.py", "inf", seed), "created products and orders")

    def application(self) -> subprocess.Popen[str]:
        return self.started(self.start("-m", "kstreams", "run", EXAMPLE / "app.py"), "topics in .kstreams/log")

    def started(self, process: subprocess.Popen[str], line: str) -> subprocess.Popen[str]:
        """Wait until a process has written its first line."""
        count = self.log().count(line)
        while self.log().count(line) == count:
            assert process.poll() is None, self.log()
            time.sleep(0.05)
        return process

    def read_to_the_end(self) -> None:
        self.terminal.run("kstreams", "run", str(EXAMPLE / "app.py"), "--until-end")

    def commits(self) -> int:
        """Return how many commits the tables of the lakehouse have."""
        lake = self.terminal.folder / "lake"
        return sum(len(list(lake.glob(pattern))) for pattern in ("orders/_delta_log/*.json", "**/*.metadata.json"))

    def await_commit(self) -> None:
        """Wait for the first rows of the lakehouse."""
        deadline = time.monotonic() + 120
        while not self.commits() and time.monotonic() < deadline:
            time.sleep(0.05)

    def log(self) -> str:
        return (self.terminal.folder / "log.txt").read_text()

    def check_with_polars(self) -> None:
        lake = self.terminal.folder / "lake"
        orders = polars.read_delta(str(lake / "orders"))
        columns = ["id", "product", "category", "quantity", "amount", "ordered_at"]
        assert Counter(orders.select(columns).rows()) == self.rows(ORDERS)
        catalog = catalogs.load_catalog("default", type="sql", uri=f"sqlite:///{lake}/catalog.db")
        sales = polars.scan_iceberg(catalog.load_table("shop.sales_by_hour")).collect()
        columns = ["category", "hour", "orders", "quantity", "amount"]
        assert Counter(sales.select(columns).rows()) == self.rows(SALES_BY_HOUR)

    def check_with_duckdb(self) -> None:
        """Check with the program of the example."""
        orders = self.rows(ORDERS).total()
        hours = self.rows(SALES_BY_HOUR).total()
        printed = self.terminal.python("lakehouse/compare.py")
        assert printed == f"orders: {orders:,} equal rows\nsales_by_hour: {hours:,} equal rows\n"

    def check_that_a_difference_is_shown(self) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("INSERT INTO products VALUES (-1, 'late', 'late', 1.25)")
            connection.execute("INSERT INTO orders VALUES (-1, -1, 3, '2026-11-30 10:20Z')")
        printed = self.terminal.python("lakehouse/compare.py", status=1)
        assert "orders: only Postgres has (-1, 'late', 'late', 3, Decimal('3.75'), datetime" in printed
        assert "orders: 1 differences\nsales_by_hour: only Postgres has ('late', datetime" in printed

    def rows(self, query: str) -> Counter[tuple[object, ...]]:
        with psycopg.connect(self.url, options="-c timezone=UTC") as connection:
            rows = Counter(connection.execute(query).fetchall())
        assert rows
        return rows


@pytest.mark.parametrize("kills", [0, pytest.param(10, marks=[pytest.mark.slow, pytest.mark.timeout(600)])])
def test_the_lakehouse_equals_sql_however_often_the_application_is_killed(terminal: Terminal, kills: int) -> None:
    seed = int(os.environ.get("KSTREAMS_TEST_SEED", time.time_ns() % 2**32))
    print(f"repeat with KSTREAMS_TEST_SEED={seed}")
    moments = random.Random(seed)
    with Postgres() as server:
        shop = Shop(terminal, server)
        changes = shop.changes(seed)
        for number in range(kills):
            application = shop.application()
            if number == 0:
                shop.await_commit()
            time.sleep(moments.uniform(0, 6))
            assert application.poll() is None, shop.log()
            application.kill()
            application.wait()
        time.sleep(0.5)
        changes.send_signal(signal.SIGINT)
        assert changes.wait() == 0, shop.log()
        print(f"{shop.commits():,} commits before the last start")
        shop.read_to_the_end()
        shop.check_with_duckdb()
        if kills:
            shop.check_with_polars()
            shop.check_that_a_difference_is_shown()
