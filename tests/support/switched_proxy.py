"""A port on loopback that leads to another one, and can be switched off and on: a server that is away, and comes back.

with SwitchedProxy(server.address) as proxy:
    proxy.off()
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType


class SwitchedProxy:
    """Connections to `address` are led to `target`; switched off, they end, and new ones are closed at once.

    Parameters
    ----------
    target : str
        Host and port.
    """

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = host, int(port)
        self._mutex = threading.Lock()
        self._is_on = True
        self._open = set[socket.socket]()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        self.refused = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def off(self) -> None:
        """End all connections, and take no more."""
        with self._mutex:
            self._is_on = False
            connections = list(self._open)
        for each in connections:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def on(self) -> None:
        """Lead connections again."""
        with self._mutex:
            self._is_on = True

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                threading.Thread(target=self._lead, args=(client,), daemon=True).start()

    def _lead(self, client: socket.socket) -> None:
        with client:
            if not self._is_on:
                self.refused += 1
                return
            with socket.create_connection(self._target) as server:
                pair = {client, server}
                with self._mutex:
                    self._open |= pair
                back = threading.Thread(target=_copy, args=(server, client), daemon=True)
                back.start()
                _copy(client, server)
                back.join()
                with self._mutex:
                    self._open -= pair

    def close(self) -> None:
        self.off()
        self._server.close()

    def __enter__(self) -> SwitchedProxy:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Lead one direction until either side ends."""
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    for each in (source, target):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
