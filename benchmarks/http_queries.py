"""What look-ups over HTTP cost, idle and busy, beside what uvicorn answers with an application that does nothing.

The application is that of `benchmarks.queries`, with its server in the same process; who asks is another process on
the same machine, so with two cores asking and answering have one each. While it asks as fast as it can it does not
sleep: to wake a sleeping process costs the one that answers a third of its time.
"""

from __future__ import annotations

import random
import socket
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, process_time, sleep
from typing import Any

import uvicorn

import kstreams as ks
from benchmarks.http_client import Answered, Load, another_process
from benchmarks.queries import KEYS, feed, fill, processed, require_busy, topology, wait, wait_for_all
from kstreams.config import Config
from kstreams.os.garbage_collection import infrequent_garbage_collection
from kstreams.server import Server

SECONDS, QUIET_S = 4.0, 1.0
CONNECTIONS, RATE = (1, 4, 16, 64), 600.0
_BUSY = (("64 connections", 64, None), ("4,000 requests/s", 16, 4_000.0), ("600 requests/s", 16, RATE))
_TARGETS = [f"/v1/stores/rows/keys/k{number:07}" for number in random.Random(7).sample(range(KEYS), 20_000)]
_TOGETHER = [
    "/v1/stores/rows/keys?" + "&".join(f"key={each[-8:]}" for each in _TARGETS[n : n + 50]) for n in range(500)
]


def run() -> dict[str, float]:
    """Look-ups a second and their times, and which part of its rate a busy thread keeps."""
    with (
        infrequent_garbage_collection(),
        another_process() as ask,
        tempfile.TemporaryDirectory(prefix="kstreams-http-") as folder,
    ):
        with _bare() as address:
            before, load = process_time(), Load(address, requests("a" * 43), 16, SECONDS)
            alone = ask(load).result()
            figures = {"uvicorn alone, 16 connections (answers/s)": alone.rate}
            figures["uvicorn alone, CPU of an answer (us)"] = _each_us(before, alone)
        fill(Path(folder) / "log")
        settings = {"application.id": "queries", "log.dir": f"{folder}/log", "state.dir": f"{folder}/state"}
        settings["commit.interval.ms"] = "100"  # what is committed is behind by as much
        server, tokens = Server("127.0.0.1:0", Config.of(settings)), list[str]()
        with ks.KafkaStreams(topology(), server.config) as streams, server.serving(streams, tokens.append):
            streams.start()
            wait_for_all(streams)
            sleep(QUIET_S)

            def asked(connections: int, rate: float | None = None, targets: list[str] = _TARGETS) -> Future[Answered]:
                return ask(Load(server.address[:2], requests(tokens[0], targets), connections, SECONDS, rate))

            for connections in CONNECTIONS:
                before, found = process_time(), asked(connections).result()
                figures |= _figures(f"idle, {connections} connections", found)
            figures[f"idle, {CONNECTIONS[-1]} connections, CPU of an answer (us)"] = _each_us(before, found)
            figures |= _figures("idle, 50 keys in a request", asked(4, None, _TOGETHER).result())
            figures |= _figures("idle, 600 requests/s", asked(16, RATE).result())
            feed(Path(folder) / "log", (len(_BUSY) + 1) * (SECONDS + QUIET_S))
            wait(lambda: processed(streams) > KEYS)
            sleep(QUIET_S)
            undisturbed = _rate(streams, lambda: sleep(SECONDS))
            figures["records a second, nobody asks"] = undisturbed
            for name, connections, rate in _BUSY:
                loads: list[Answered] = []
                kept = _rate(streams, lambda: loads.append(asked(connections, rate).result()))  # noqa: B023
                figures |= _figures(f"busy, {name}", loads[0])
                figures[f"busy, {name}: part of the rate (ratio)"] = kept / undisturbed
            return figures


def requests(token: str, targets: list[str] = _TARGETS) -> list[bytes]:
    """As bytes."""
    end = f" HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
    return [f"GET {target}{end}".encode() for target in targets]


def _figures(name: str, answered: Answered) -> dict[str, float]:
    assert not answered.failed, f"{name}: {answered.failed} look-ups failed"
    percentiles = {f"{name}, p{percent} (ms)": answered.percentile(percent) for percent in (50, 99)}
    return {f"{name} (answers/s)": answered.rate, **percentiles}


def _each_us(before: float, answered: Answered) -> float:
    """CPU time of this process for an answer since then."""
    return (process_time() - before) * 1e6 / len(answered.times_ms)


def _rate(streams: ks.KafkaStreams, meanwhile: Any) -> float:
    """Records a second."""
    before, start = processed(streams), perf_counter()
    meanwhile()
    require_busy(streams)
    return (processed(streams) - before) / (perf_counter() - start)


@contextmanager
def _bare() -> Iterator[tuple[str, int]]:
    """Uvicorn with an application that answers at once."""

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"{}"})

    listening = socket.create_server(("127.0.0.1", 0))
    settings = {"http": "httptools", "loop": "uvloop", "lifespan": "off", "log_config": None, "access_log": False}
    server = uvicorn.Server(uvicorn.Config(application, **settings))  # type: ignore[arg-type]
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    try:
        wait(lambda: server.started)
        yield listening.getsockname()
    finally:
        server.should_exit = True
        thread.join()


if __name__ == "__main__":
    for figure, value in run().items():
        print(f"{figure}: {value:,.3f}")
