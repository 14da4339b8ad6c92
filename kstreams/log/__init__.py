"""Topics: one interface (`api`), two homes: the embedded log and Kafka.

A home is loaded when it is first asked for: who only needs the interface does not wait for it.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import kstreams.errors  # noqa: F401 (tells whose files these are)
from kstreams.kernel.clock import Clock
from kstreams.log.api import (
    Admin,
    Consumer,
    Delivery,
    Log,
    OffsetAndMetadata,
    OnDelivery,
    Producer,
    TopicDescription,
    TransactionCoordinator,
)
from kstreams.log.homes import TopicHome, home_at, home_of, register_home

if TYPE_CHECKING:
    from kstreams.log.embedded.disk import Disk
    from kstreams.log.embedded.home import EmbeddedHome
    from kstreams.log.embedded.log import EmbeddedLog
    from kstreams.log.embedded.upkeep.dump import dump
    from kstreams.log.embedded.upkeep.verify import verify

__all__ = [
    "Admin",
    "Consumer",
    "Delivery",
    "EmbeddedLog",
    "Log",
    "OffsetAndMetadata",
    "OnDelivery",
    "Producer",
    "TopicDescription",
    "TopicHome",
    "TransactionCoordinator",
    "dump",
    "home_at",
    "home_of",
    "open_log",
    "register_home",
    "verify",
]

_LATER = {"EmbeddedLog": "log", "dump": "upkeep.dump", "verify": "upkeep.verify"}


def open_log(
    location: str | Path, *, clock: Clock | None = None, durability: str = "os", disk: Disk | None = None
) -> Log:
    """Open a home of topics, made if it is not there.

    Parameters
    ----------
    location : str or Path
        A folder for the embedded log, or an address: `log:/data/log`, `kafka:localhost:9092`.
    clock : Clock or None
        The machine's clock unless given.
    durability : {"os", "fsync", "none"}
        What an acknowledged record survives: `os` the death of any process, `fsync` a power failure too, `none`
        promises nothing. On Kafka, the topics decide.
    disk : Disk or None
        What writes files; tests give one that fails.

    Raises
    ------
    ConfigError
        For a location or durability that cannot be.
    LogFormatError
        When a newer kstreams wrote the folder.

    Examples
    --------
    >>> import tempfile
    >>> with open_log(tempfile.mkdtemp()) as log, log.admin() as admin:
    ...     admin.create_topic("words", partitions=2)
    ...     admin.topics()["words"].partitions
    2
    """
    home = home_at(location)
    settings = {"log.durability": durability}
    if disk is None:
        return home.open(settings, clock=clock)
    return cast("EmbeddedHome", home).open(settings, clock=clock, disk=disk)


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"kstreams.log.embedded.{_LATER[name]}"), name)
