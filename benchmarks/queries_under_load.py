"""Two hundred slow clients and full scans over a store of a million keys, while records flow and keys are looked up.

What is compared is the rate of the application beside them with its rate alone, in the same process: it counts ten
thousand keys in one thread. Of the slow clients, some send headers byte by byte, some read their pages slowly, and some
watch keys; those that are cut off come again. All clients run in processes of their own on the same machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
import tempfile
from collections.abc import Awaitable, Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from time import monotonic, perf_counter, sleep
from typing import Any

import kstreams as ks
from benchmarks.http_client import Answered, Load, asked
from benchmarks.http_queries import requests
from benchmarks.queries import KEYS, feed, fill, processed, require_busy, topology, wait, wait_for_all
from kstreams.config import Config
from kstreams.os.garbage_collection import infrequent_garbage_collection
from kstreams.server import Server

DRIPPING, READING_SLOWLY, WATCHING, SCANNING = 80, 60, 60, 4
SECONDS, WARM_S, LOOKUPS = 20.0, 4.0, 200.0
_PAUSE_S, _PAGE = 0.25, "/v1/stores/rows/rows?limit=1000"

Address = tuple[str, int]


def run() -> dict[str, float]:
    """Rates, times of look-ups, and memory, with and without the clients."""
    with (
        tempfile.TemporaryDirectory(prefix="kstreams-load-") as folder,
        ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool,
        infrequent_garbage_collection(),
    ):
        fill(Path(folder) / "log")
        settings = {"application.id": "load", "log.dir": f"{folder}/log", "state.dir": f"{folder}/state"}
        settings["commit.interval.ms"] = "100"
        server, tokens = Server("127.0.0.1:0", Config.of(settings)), list[str]()
        with ks.KafkaStreams(topology(), server.config) as streams, server.serving(streams, tokens.append):
            streams.start()
            wait_for_all(streams)
            feed(Path(folder) / "log", 2 * SECONDS + 3 * WARM_S)
            wait(lambda: processed(streams) > KEYS)
            sleep(WARM_S)
            alone = _rate(streams, SECONDS / 2)
            address, keys = server.address[:2], requests(tokens[0])
            crowd = pool.submit(besieged, address, tokens[0], SECONDS + 2 * WARM_S)
            looked_up = pool.submit(asked, Load(address, keys, 8, SECONDS + WARM_S, LOOKUPS))
            sleep(WARM_S)
            halves = [(_rate(streams, SECONDS / 2), _resident_mib()) for _ in range(2)]
            beside = sum(rate for rate, _ in halves) / 2
            figures = {"records a second, alone": alone, "records a second, beside all clients": beside}
            figures["part of the rate (ratio)"] = beside / alone
            figures |= {"memory in the middle (MiB)": halves[0][1], "memory at the end (MiB)": halves[1][1]}
            return figures | _looked_up(looked_up.result()) | crowd.result()


def _looked_up(answered: Answered) -> dict[str, float]:
    times = {f"look-ups, p{percent} (ms)": answered.percentile(percent) for percent in (50, 99)}
    return {"look-ups (answers/s)": answered.rate, "look-ups that failed (count)": float(answered.failed), **times}


def _rate(streams: ks.KafkaStreams, seconds: float) -> float:
    before, start = processed(streams), perf_counter()
    sleep(seconds)
    require_busy(streams)
    return (processed(streams) - before) / (perf_counter() - start)


def _resident_mib() -> float:
    gc.collect()
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("the kernel does not say how much memory is used")


def besieged(address: Address, token: str, seconds: float) -> dict[str, float]:
    """Ask in all slow ways, and scan; what came of it."""
    return asyncio.run(_Crowd(address, token, monotonic() + seconds).run())


class _Crowd:
    def __init__(self, address: Address, token: str, end_s: float) -> None:
        self._address, self._token, self._end_s = address, token, end_s
        self._cut = self._events = self._pages = self._rows = self._refused = 0

    async def run(self) -> dict[str, float]:
        kinds: list[tuple[int, Callable[[], Awaitable[None]]]] = [
            (DRIPPING, self._drip), (READING_SLOWLY, self._read_slowly), (WATCHING, self._watch), (SCANNING, self._scan)
        ]  # fmt: skip
        await asyncio.gather(*(self._again(kind) for count, kind in kinds for _ in range(count)))
        return {
            "slow clients (count)": DRIPPING + READING_SLOWLY + WATCHING, "connections cut off (count)": self._cut,
            "events of watches (count)": self._events, "pages of scans (count)": self._pages,
            "rows of scans (count)": self._rows, "pages and watches refused for now (count)": self._refused,
        }  # fmt: skip

    async def _again(self, ask: Callable[[], Awaitable[None]]) -> None:
        await asyncio.sleep(random.random())
        while self._is_on():
            try:
                await ask()
            except (OSError, asyncio.IncompleteReadError):
                self._cut += 1
            await asyncio.sleep(_PAUSE_S)

    def _is_on(self) -> bool:
        return monotonic() < self._end_s

    async def _drip(self) -> None:
        """Headers, a byte at a time."""
        async with self._connected() as (_, writer):
            for byte in self._request("/v1/status"):
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(_PAUSE_S)
                if not self._is_on():
                    return

    async def _read_slowly(self) -> None:
        """A page, some kilobytes at a time."""
        async with self._connected() as (reader, writer):
            writer.write(self._request(_PAGE))
            while self._is_on() and await reader.read(4_096):
                await asyncio.sleep(_PAUSE_S)

    async def _watch(self) -> None:
        async with self._connected() as (reader, writer):
            writer.write(self._request(f"/v1/stores/rows/watch?key=k{random.randrange(KEYS):07}"))
            if b" 200 " not in await reader.readline():
                self._refused += 1
                return
            while self._is_on():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(reader.readuntil(b"\n\n"), 1.0)
                    self._events += 1

    async def _scan(self) -> None:
        """All rows, page after page."""
        async with self._connected() as (reader, writer):
            cursor = b""
            while self._is_on():
                writer.write(self._request(_PAGE + (f"&cursor={cursor.decode()}" if cursor else "")))
                head = await reader.readuntil(b"\r\n\r\n")
                body = await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]))
                if not head.startswith(b"HTTP/1.1 200"):
                    self._refused += 1
                    await asyncio.sleep(_PAUSE_S)
                    continue
                self._pages, self._rows = self._pages + 1, self._rows + body.count(b'"timestamp"')
                cursor = body.rpartition(b'"next":')[2].strip(b'"}').replace(b"null", b"")

    def _request(self, target: str) -> bytes:
        return f"GET {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self._token}\r\n\r\n".encode()

    @contextlib.asynccontextmanager
    async def _connected(self) -> Any:
        reader, writer = await asyncio.open_connection(*self._address)
        try:
            yield reader, writer
        finally:
            writer.close()


if __name__ == "__main__":
    for figure, value in run().items():
        print(f"{figure}: {value:,.3f}")
