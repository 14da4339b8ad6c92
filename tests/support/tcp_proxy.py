"""A proxy before brokers that knows where an answer begins and ends: single ones are lost, held back, or cut off.

with KafkaCluster(proxied=True) as cluster:
    cluster.proxy.lose(Request.END_TXN)
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, IntEnum


class Request(IntEnum):
    """What clients ask, by Kafka's numbers."""

    PRODUCE = 0
    OFFSET_COMMIT = 8
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    TXN_OFFSET_COMMIT = 28


class _How(Enum):
    LOST = "lost"
    CUT = "cut"
    HELD = "held"


@dataclass
class Fault:
    """What becomes of the next answer to a request: `done` is set when there was one, `place` is that of its port."""

    request: Request
    how: _How
    place: int = -1
    done: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)

    def let_go(self) -> None:
        self.over.set()


class TcpProxy:
    """Ports on loopback that lead to other ports.

    Parameters
    ----------
    targets : iterable of int
    """

    def __init__(self, targets: Iterable[int]) -> None:
        self._mutex = threading.Lock()
        self._faults: list[Fault] = []
        self._sockets: list[socket.socket] = []
        self._closed = False
        self.ports = [self._listen(place, target) for place, target in enumerate(targets)]

    def lose(self, request: Request) -> Fault:
        """The next answer never comes, and the connection stays."""
        return self._add(Fault(request, _How.LOST))

    def cut(self, request: Request) -> Fault:
        """In place of the next answer the connection ends."""
        return self._add(Fault(request, _How.CUT))

    def hold(self, request: Request) -> Fault:
        """The next answer, and what follows it on its connection, waits until it is let go."""
        return self._add(Fault(request, _How.HELD))

    def close(self) -> None:
        with self._mutex:
            self._closed = True
            for fault in self._faults:
                fault.let_go()
            for each in self._sockets:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
                each.close()

    def _add(self, fault: Fault) -> Fault:
        with self._mutex:
            self._faults.append(fault)
        return fault

    def _next_fault(self, request: int | None, place: int) -> Fault | None:
        with self._mutex:
            for fault in self._faults:
                if fault.request == request and not fault.done.is_set():
                    fault.place = place
                    fault.done.set()
                    return fault
        return None

    def _listen(self, place: int, target: int) -> int:
        server = socket.create_server(("127.0.0.1", 0))
        self._sockets.append(server)
        threading.Thread(target=self._accept, args=(server, place, target), daemon=True).start()
        return int(server.getsockname()[1])

    def _accept(self, server: socket.socket, place: int, target: int) -> None:
        with suppress(OSError):
            while True:
                client, _ = server.accept()
                threading.Thread(target=self._connect, args=(client, place, target), daemon=True).start()

    def _connect(self, client: socket.socket, place: int, target: int) -> None:
        """Lead one connection; what was asked is known by the number that answers repeat."""
        try:
            broker = socket.create_connection(("127.0.0.1", target))
        except OSError:
            client.close()
            return
        with self._mutex:
            self._sockets += [client, broker]
            if self._closed:
                return
        asked: dict[int, int] = {}
        threading.Thread(target=self._requests, args=(client, broker, asked), daemon=True).start()
        self._answers(broker, client, asked, place)

    def _requests(self, client: socket.socket, broker: socket.socket, asked: dict[int, int]) -> None:
        with suppress(OSError):
            while frame := _frame(client):
                request, _, number = struct.unpack_from(">hhi", frame, 4)
                asked[number] = request
                broker.sendall(frame)
        _end(client, broker)

    def _answers(self, broker: socket.socket, client: socket.socket, asked: dict[int, int], place: int) -> None:
        with suppress(OSError):
            while frame := _frame(broker):
                fault = self._next_fault(asked.pop(struct.unpack_from(">i", frame, 4)[0], None), place)
                if fault is None:
                    client.sendall(frame)
                elif fault.how is _How.CUT:
                    break
                elif fault.how is _How.HELD:
                    fault.over.wait()
                    client.sendall(frame)
        _end(client, broker)


def _frame(source: socket.socket) -> bytes:
    """A request or an answer, with its length before it; nothing at the end."""
    head = _bytes(source, 4)
    return head + _bytes(source, struct.unpack(">i", head)[0]) if head else b""


def _bytes(source: socket.socket, count: int) -> bytes:
    found = bytearray()
    while len(found) < count:
        part = source.recv(min(count - len(found), 1 << 20))
        if not part:
            return b""
        found += part
    return bytes(found)


def _end(*sockets: socket.socket) -> None:
    for each in sockets:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
