"""`TopicHome`: a home of topics that is not open, and functions that return it for an address or a configuration.

Code outside `kstreams.log` uses these functions, so that this module is the only one that depends on all homes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from kstreams.errors import ConfigError
from kstreams.kernel.clock import Clock
from kstreams.log.api import Log


class TopicHome(Protocol):
    """A home of topics: its address, its settings, and how it is opened. `str(home)` is its name in messages."""

    @property
    def address(self) -> str:
        """The address by which every process of the application finds it, such as `log:/data/log`."""
        ...

    @property
    def settings(self) -> tuple[str, ...]:
        """The keys of the configuration that `open` uses."""
        ...

    @property
    def folder(self) -> Path | None:
        """The folder of its files on this machine. None if it has none."""
        ...

    @property
    def files(self) -> LogFiles | None:
        """The maintenance of its files. None if it has none on this machine."""
        ...

    def open(self, config: Mapping[str, Any] | None = None, *, clock: Clock | None = None) -> Log:
        """Open the home. An embedded log is created if it does not exist.

        Parameters
        ----------
        config : mapping or None
            The keys in `settings` are used. Each has a default.
        clock : Clock or None
            Default: the machine's clock.
        """
        ...

    def check(self, *, create: bool = False) -> None:
        """Raise LogError if the home cannot be opened, or if it does not exist and `create` is false."""
        ...

    def topic_defaults(self) -> Mapping[str, str]:
        """Return the default settings of topics."""
        ...

    def lock_file(self, application_id: str) -> Path | None:
        """Return the file that the process of an application locks. None if the home has no files on this machine."""
        ...


class LogFiles(Protocol):
    """The maintenance of topics in files: the commands of `kstreams log`."""

    def dump(self, topic: str | None = None, *, records: bool = False) -> Iterator[dict[str, object]]:
        """Yield every frame as a dictionary. Raises UnknownTopicError if the topic does not exist."""
        ...

    def verify(self) -> Sequence[NamedTuple]:
        """Return all damage."""
        ...

    def repair(self) -> list[str]:
        """Repair the catalogue, which may lose data. Return one sentence for each change."""
        ...

    def compact(self, topics: Sequence[str] = ()) -> Sequence[CleaningFigures]:
        """Compact topics up to their end. Default: all topics whose policy is `compact`."""
        ...

    def clean(self, topics: Sequence[str] = ()) -> Sequence[CleaningFigures]:
        """Apply retention and compaction to topics. Default: all topics."""
        ...

    def num_partitions(self) -> int:
        """Return the number of partitions that have files."""
        ...


class CleaningFigures(Protocol):
    """The result of cleaning one topic."""

    @property
    def bytes(self) -> int: ...

    def _asdict(self) -> dict[str, object]: ...


def _embedded(folder: str) -> TopicHome:
    from kstreams.log.embedded.home import EmbeddedHome  # imported at the first use

    return EmbeddedHome(Path(folder))


def _kafka(servers: str) -> TopicHome:
    try:
        from kstreams.log.kafka.home import KafkaHome
    except ModuleNotFoundError as error:
        if error.name != "confluent_kafka":
            raise
        raise ConfigError(
            f"Kafka's client is needed for the topics of {servers}: install it with `pip install 'kstreams-dsl[kafka]'`"
        ) from None
    return KafkaHome(servers)


_HOMES: dict[str, Callable[[str], TopicHome]] = {"log": _embedded, "kafka": _kafka}
_ADDRESS = re.compile(r"([a-z][a-z0-9+]+):(.+)", re.DOTALL)


def register_home(scheme: str, create: Callable[[str], TopicHome]) -> None:
    """Register a kind of home.

    Parameters
    ----------
    scheme : str
        The part of an address before the colon.
    create : callable
        Returns the home for the part of an address after the colon.
    """
    _HOMES[scheme] = create


def home_at(address: str | Path) -> TopicHome:
    """Return the home with an address: `log:folder`, `kafka:host:port`, or the folder of an embedded log.

    Raises
    ------
    ConfigError
        If the address is of an unknown kind.

    Examples
    --------
    >>> home_at("log:/data/log").address, home_at("/data/log").address
    ('log:/data/log', 'log:/data/log')
    """
    match = _ADDRESS.fullmatch(str(address))
    if match and match[1] in _HOMES:
        return _HOMES[match[1]](match[2])
    if "://" in str(address):
        raise ConfigError(
            f"{str(address)!r} is no address of a home of topics: give log:FOLDER, kafka:HOST:PORT, or a folder."
        )
    return _embedded(str(address))


def home_of(config: Mapping[str, Any]) -> TopicHome:
    """Return the home of a configuration: `bootstrap.servers` (brokers or an address), else the folder `log.dir`.

    Examples
    --------
    >>> home_of({"bootstrap.servers": "log:/data/log"}).address, home_of({"log.dir": "/data/log"}).address
    ('log:/data/log', 'log:/data/log')
    """
    servers = config.get("bootstrap.servers")
    if not servers:
        return home_at(config["log.dir"])
    match = _ADDRESS.fullmatch(servers)
    return home_at(servers if match and match[1] in _HOMES else f"kafka:{servers}")
