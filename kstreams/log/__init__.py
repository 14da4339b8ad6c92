"""Topics: one interface (`api`), and two homes, the embedded log and Kafka, which are imported at the first use."""

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

_LAZY = {"EmbeddedLog": "log", "dump": "upkeep.dump", "verify": "upkeep.verify"}


def open_log(
    location: str | Path, *, clock: Clock | None = None, durability: str = "os", disk: Disk | None = None
) -> Log:
    """Open a home of topics. An embedded log is created if it does not exist.

    Parameters
    ----------
    location : str or Path
        A folder for the embedded log, or an address: `log:/data/log`, `kafka:localhost:9092`.
    clock : Clock or None
        Default: the machine's clock.
    durability : {"os", "fsync", "none"}
        The failures that an acknowledged record survives: with `os` the death of any process, with `fsync` a power
        failure too, with `none` no failure. On Kafka, the settings of the topics decide.
    disk : Disk or None
        Writes the files of an embedded log. Tests use a disk that fails.

    Raises
    ------
    ConfigError
        If the location or the durability is illegal.
    LogFormatError
        If a newer version of kstreams has written the folder.

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
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"kstreams.log.embedded.{_LAZY[name]}"), name)
