"""`OpenHomes`: a cache of the open homes of topics of this process; `HomeAddress`: the address of a home.

Spark reuses Python workers, and a driver may run several applications, so homes stay open between tasks and runs. The
least recently used homes without users are closed. So do consumers and producers of homes where opening them takes
requests to a server: a consumer goes on where the last step of its partition has ended.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

from kstreams.kernel.batch import TopicPartition
from kstreams.log import home_at, home_of
from kstreams.log.api import Ability, Consumer, Log, Producer

MAX_UNUSED = 4
MAX_IDLE_CLIENTS = 32
"""The maximum number of consumers and producers without users that stay open in a home."""


class _Client(Protocol):
    def close(self) -> None: ...


Client = TypeVar("Client", bound=_Client)

HomeSettings = tuple[tuple[str, object], ...]
"""Settings of a home of topics by name, in order."""


@dataclass
class _OpenHome:
    log: Log
    users: int = 0
    idle: OrderedDict[Hashable, _Client] = field(default_factory=OrderedDict)

    def close(self) -> None:
        """Close the idle clients, then the home."""
        while self.idle:
            self.idle.popitem()[1].close()
        self.log.close()


class OpenHomes:
    """The open homes. Thread-safe.

    Parameters
    ----------
    max_unused : int
        The maximum number of homes without users that stay open.

    Examples
    --------
    >>> import tempfile
    >>> homes = OpenHomes(1)
    >>> folders = [tempfile.mkdtemp() for _ in range(3)]
    >>> for folder in folders:
    ...     with homes.log(folder) as log, log.admin() as admin:
    ...         admin.create_topic("words")
    >>> len(homes)
    1
    """

    def __init__(self, max_unused: int) -> None:
        self._max_unused = max_unused
        self._homes: OrderedDict[Hashable, _OpenHome] = OrderedDict()
        self._mutex = threading.Lock()

    def __len__(self) -> int:
        return len(self._homes)

    @contextmanager
    def log(self, address: str, settings: HomeSettings = ()) -> Iterator[Log]:
        """Open the home at an address for the block, or reuse it."""
        home = self._acquire(address, settings)
        try:
            yield home.log
        finally:
            self._release(home)

    @contextmanager
    def client(
        self, address: str, settings: HomeSettings, key: Hashable, create: Callable[[Log], Client]
    ) -> Iterator[Client]:
        """Create a client of a home for the block, or reuse the one of the last block with this key.

        A client is closed if the block raises an error.
        """
        home = self._acquire(address, settings)
        try:
            client = self._pop_idle(home, key) or create(home.log)
            try:
                yield client
            except BaseException:
                client.close()
                raise
            self._push_idle(home, key, client)
        finally:
            self._release(home)

    def _pop_idle(self, home: _OpenHome, key: Hashable) -> Any:
        with self._mutex:
            return home.idle.pop(key, None)

    def _push_idle(self, home: _OpenHome, key: Hashable, client: _Client) -> None:
        """Keep a client for the next block, if opening another one takes requests to a server."""
        surplus = [client]
        if Ability.FRAMES not in home.log.abilities:
            with self._mutex:
                previous = home.idle.pop(key, None)
                home.idle[key] = client
                surplus = [] if previous is None else [previous]
                while len(home.idle) > MAX_IDLE_CLIENTS:
                    surplus.append(home.idle.popitem(last=False)[1])
        for unused in surplus:
            unused.close()

    def _acquire(self, address: str, settings: HomeSettings) -> _OpenHome:
        key = (address, settings)
        with self._mutex:
            home = self._homes.get(key)
            if home is None:
                home = self._homes[key] = _OpenHome(home_at(address).open(dict(settings)))
            self._homes.move_to_end(key)
            home.users += 1
            return home

    def _release(self, home: _OpenHome) -> None:
        with self._mutex:
            home.users -= 1
            unused = [key for key, entry in self._homes.items() if not entry.users]
            for key in unused[: max(0, len(unused) - self._max_unused)]:
                self._homes.pop(key).close()


OPEN_HOMES = OpenHomes(MAX_UNUSED)
"""The open homes of this process."""


class HomeAddress(NamedTuple):
    """The address and the settings of a home of topics, for driver and executors.

    Parameters
    ----------
    address : str
        If it is a folder, it must be on a file system that driver and executors share.
    settings : tuple of (str, object)
        The settings of the home, such as a login, in sorted order.
    """

    address: str
    settings: HomeSettings = ()

    @classmethod
    def of(cls, config: Mapping[str, object]) -> HomeAddress:
        """Return the home of a configuration."""
        settings = ((key, config[key]) for key in sorted(config))
        scalars = tuple((key, value) for key, value in settings if isinstance(value, str | int | float))
        return cls(home_of(config).address, scalars)

    @property
    def client_id(self) -> object:
        """The client id of the application, whose quotas hold: `client.id`, or its id. None outside an application."""
        settings = dict(self.settings)
        return settings.get("client.id") or settings.get("application.id")

    def opened(self) -> AbstractContextManager[Log]:
        """Open the home for a `with` block, or reuse it."""
        return OPEN_HOMES.log(*self)

    def reader(self, source: TopicPartition) -> AbstractContextManager[Consumer]:
        """Open a consumer for a `with` block that reads one partition, or reuse the last one."""
        settings = {"client.id": self.client_id, "auto.offset.reset": "none"}
        return OPEN_HOMES.client(*self, ("reader", source), lambda log: log.consumer(settings))

    def writer(self, settings: Mapping[str, object]) -> AbstractContextManager[Producer]:
        """Open a producer for a `with` block, or reuse the last one with these settings."""
        key = ("writer", *sorted(settings.items()))
        return OPEN_HOMES.client(*self, key, lambda log: log.producer({"client.id": self.client_id, **settings}))
