"""`OpenHomes`: the homes of topics that this process keeps open between tasks, and between runs.

Spark's Python workers live on, and a driver may run one application after another: of the homes that nobody uses, the
one used longest ago is closed first.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kstreams.log import home_at
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
            unused = [key for key, each in self._homes.items() if not each.users]
            for key in unused[: max(0, len(unused) - self._most)]:
                self._homes.pop(key).log.close()


OPEN_HOMES = OpenHomes(MOST_UNUSED)
"""Those of this process."""
