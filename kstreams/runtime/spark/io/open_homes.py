"""`OpenHomes`: the homes of topics that this process keeps open between tasks, and between runs; `HomePlace` names one.

Spark's Python workers live on, and a driver may run one application after another: of the homes that nobody uses, the
one used longest ago is closed first.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from kstreams.log import home_at, home_of
from kstreams.log.api import Log

MOST_UNUSED = 4

HomeSettings = tuple[tuple[str, Any], ...]
"""Settings of a home of topics by name, in order."""


@dataclass
class _OpenHome:
    log: Log
    users: int = 0


class OpenHomes:
    """Threads may share it.

    Parameters
    ----------
    most_unused : int
        How many stay open while nobody uses them.

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

    def __init__(self, most_unused: int) -> None:
        self._most = most_unused
        self._homes: OrderedDict[Hashable, _OpenHome] = OrderedDict()
        self._mutex = threading.Lock()

    def __len__(self) -> int:
        return len(self._homes)

    @contextmanager
    def log(self, address: str, settings: HomeSettings = ()) -> Iterator[Log]:
        """The home with an address, which stays open while the block lasts."""
        home = self._entered(address, settings)
        try:
            yield home.log
        finally:
            self._left(home)

    def _entered(self, address: str, settings: HomeSettings) -> _OpenHome:
        key = (address, settings)
        with self._mutex:
            home = self._homes.get(key)
            if home is None:
                home = self._homes[key] = _OpenHome(home_at(address).open(dict(settings)))
            self._homes.move_to_end(key)
            home.users += 1
            return home

    def _left(self, home: _OpenHome) -> None:
        with self._mutex:
            home.users -= 1
            unused = [key for key, entry in self._homes.items() if not entry.users]
            for key in unused[: max(0, len(unused) - self._most)]:
                self._homes.pop(key).log.close()


OPEN_HOMES = OpenHomes(MOST_UNUSED)
"""Those of this process."""


class HomePlace(NamedTuple):
    """A home of topics as driver and executors find it.

    Parameters
    ----------
    address : str
        A folder is on a file system that all of them share.
    settings : tuple of (str, object)
        What it is opened with, such as a login; sorted.
    """

    address: str
    settings: HomeSettings = ()

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> HomePlace:
        """The home that a configuration names."""
        plain = ((key, config[key]) for key in sorted(config))
        return cls(home_of(config).address, tuple(item for item in plain if isinstance(item[1], str | int | float)))

    def opened(self) -> AbstractContextManager[Log]:
        """The home, which this process keeps open while the block lasts."""
        return OPEN_HOMES.log(*self)
