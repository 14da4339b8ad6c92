"""A client of HTTP that costs little: many kept connections in one thread over epoll, one request at a time on each."""

from __future__ import annotations

import selectors
import socket
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from itertools import cycle
from multiprocessing import get_context
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

_LONGEST_WAIT_S = 0.5


class Load(NamedTuple):
    """What is asked.

    Parameters
    ----------
    address : tuple of str and int
    requests : list of bytes
        In turn, from the beginning again after the last.
    connections : int
    seconds : float
    rate : float or None
        Requests a second, at even times; None: the next one when an answer is there, for which it does not sleep.
    """

    address: tuple[str, int]
    requests: list[bytes]
    connections: int
    seconds: float
    rate: float | None = None


class Answered(NamedTuple):
    """What came of it.

    Parameters
    ----------
    rate : float
        Answers with status 200, a second.
    failed : int
        Other answers.
    times_ms : list of float
        From when each was to be asked, whether a connection was free then or not.
    """

    rate: float
    failed: int
    times_ms: list[float]

    def percentile(self, percent: float) -> float:
        """Milliseconds within which so many of a hundred answers came."""
        return float(np.percentile(self.times_ms, percent))


@contextmanager
def another_process() -> Iterator[Callable[[Load], Future[Answered]]]:
    """Loads are made by a process of its own, one after the other."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield lambda load: pool.submit(asked, load)


def asked(load: Load) -> Answered:
    """Ask until the time is over."""
    client = _Client(load)
    try:
        return client.run()
    finally:
        client.close()


class _Client:
    def __init__(self, load: Load) -> None:
        self._load, self._requests = load, cycle(load.requests)
        self._selector, self._times = selectors.DefaultSelector(), list[float]()
        self._failed, self._due_s = 0, dict[socket.socket, float]()
        self._idle = deque(self._connection() for _ in range(load.connections))

    def _connection(self) -> socket.socket:
        made = socket.create_connection(self._load.address, timeout=60)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._selector.register(made, selectors.EVENT_READ)
        return made

    def run(self) -> Answered:
        start = next_s = perf_counter()
        end = start + self._load.seconds
        step = 1 / self._load.rate if self._load.rate else 0.0
        while (now := perf_counter()) < end or self._due_s:
            while self._idle and now < end and (not step or next_s <= now):
                self._send(self._idle.popleft(), next_s if step else now)
                next_s += step
            for key, _ in self._selector.select(min(max(next_s - now, 0), _LONGEST_WAIT_S) if step else 0):
                self._receive(key.fileobj)
        return Answered((len(self._times) - self._failed) / (perf_counter() - start), self._failed, self._times)

    def _send(self, connection: socket.socket, due_s: float) -> None:
        self._due_s[connection] = due_s
        connection.sendall(next(self._requests))

    def _receive(self, connection: Any) -> None:
        answer = connection.recv(65_536)
        head, _, body = answer.partition(b"\r\n\r\n")
        length = int(head[head.index(b"content-length: ") + 16 :].partition(b"\r\n")[0])
        while len(body) < length:
            body += connection.recv(65_536)
        self._times.append((perf_counter() - self._due_s.pop(connection)) * 1_000)
        self._failed += not answer.startswith(b"HTTP/1.1 200")
        self._idle.append(connection)

    def close(self) -> None:
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        self._selector.close()
