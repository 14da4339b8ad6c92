"""An application between HTTP services is killed at random moments, also between an answer and the commit."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.connectors.http.feeds import Feed
from tests.connectors.http.serving import free_port, serving
from tests.connectors.http.test_sink import Receiver

ROOT = Path(__file__).parents[3]
APPLICATION = """
import sys
import kstreams as ks
from kstreams.testing.connectors import Order
folder, source_url, port, sink_url = sys.argv[1:]
sources = {
    "poll": lambda: ks.sources.http(source_url, Order, key="id", cursor=ks.sources.LastField("id"), interval=20),
    "webhook": lambda: ks.sources.webhook("/orders", Order, key="id", port=int(port), timeout=2_000),
}
builder = ks.StreamsBuilder()
orders = builder.stream(sources["webhook" if source_url == "-" else "poll"](), name="orders")
orders.to(ks.sinks.http(sink_url, batch_rows=1, concurrency=8), name="copy")
settings = {
    "application.id": "app", "log.dir": folder + "/log", "state.dir": folder + "/state", "commit.interval.ms": 50,
    "processing.guarantee": "exactly_once_v2",
}
with ks.KafkaStreams(builder, settings) as streams:
    streams.start()
    streams.wait()
"""


class KilledApplication:
    """An application that is killed and started again."""

    def __init__(self, folder: Path, *addresses: str) -> None:
        self._command = [sys.executable, "-c", APPLICATION, str(folder), *addresses]
        self._process = self._start()

    def kill(self) -> None:
        assert self._process.poll() is None, "it had ended before"
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def restart(self) -> None:
        self.kill()
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self._command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})


@contextmanager
def running(folder: Path, *addresses: str) -> Iterator[KilledApplication]:
    application = KilledApplication(folder, *addresses)
    try:
        yield application
    finally:
        application.kill()


def kill_until(application: KilledApplication, kills: int, receiver: Receiver, rows: int) -> None:
    """Kill at random moments while rows arrive, then wait for the rest. The seed is printed for a failed test."""
    seed = int(os.environ.get("KSTREAMS_TEST_SEED", time.time_ns() % 2**32))
    print(f"repeat with KSTREAMS_TEST_SEED={seed}")
    moments = random.Random(seed)
    for kill in range(kills):
        share = rows * (kill + moments.random()) / (kills + 1)
        wait_for(receiver, int(share))
        application.restart()
    wait_for(receiver, rows)


def wait_for(receiver: Receiver, rows: int) -> None:
    deadline = time.monotonic() + 240
    while len(receiver.by_key) < rows:
        assert time.monotonic() < deadline, f"{len(receiver.by_key)} of {rows} rows arrived"
        time.sleep(0.005)


SLOW = [pytest.mark.slow, pytest.mark.timeout(1_200)]


@pytest.mark.parametrize(("kills", "rows"), [(1, 100), pytest.param(30, 20_000, marks=SLOW)])
def test_a_polled_service_arrives_once_by_idempotency_key(tmp_path: Path, kills: int, rows: int) -> None:
    feed, receiver = Feed(rows, page=max(rows // 100, 10)), Receiver()
    with (
        serving(feed.handle) as source,
        serving(receiver.handle) as target,
        running(tmp_path, f"{source.url}/after", "0", target.url) as application,
    ):
        kill_until(application, kills, receiver, rows)
        time.sleep(1)
    assert sorted(receiver.ids()) == list(range(rows))


@pytest.mark.parametrize(("kills", "rows"), [pytest.param(1, 100, marks=SLOW), pytest.param(30, 6_000, marks=SLOW)])
def test_requests_that_are_repeated_until_they_are_answered_200_arrive_once(
    tmp_path: Path, kills: int, rows: int
) -> None:
    receiver = Receiver()
    port = free_port()
    with serving(receiver.handle) as target, ThreadPoolExecutor(8) as senders, httpx.Client(timeout=5) as client:

        def send(number: int) -> None:
            order = {"id": number, "name": f"order {number}", "amount": 1.0}
            while True:
                try:
                    headers = {"idempotency-key": f"order-{number}"}
                    response = client.post(f"http://127.0.0.1:{port}/orders", json=order, headers=headers)
                except httpx.TransportError:
                    time.sleep(0.05)
                    continue
                if response.status_code == 200:
                    return
                assert response.status_code == 503

        with running(tmp_path, "-", str(port), target.url) as application:
            sent = [senders.submit(send, number) for number in range(rows)]
            kill_until(application, kills, receiver, rows)
            assert all(future.result(60) is None for future in sent)
            time.sleep(1)
    assert sorted(receiver.ids()) == list(range(rows))
