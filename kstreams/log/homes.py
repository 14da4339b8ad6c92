"""`TopicHome`: what is known of a home of topics before it is opened; found by its address or in a configuration.

All code outside `kstreams.log` asks here, so that no more than one place knows which homes there are.
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
    """A place that keeps topics: its address, its settings, how it is opened, and what it can do.

    `str(home)` is its name in messages.
    """

    @property
    def address(self) -> str:
        """The text by which every process of the application finds it, such as `log:/data/log`."""
        ...

    @property
    def settings(self) -> tuple[str, ...]:
        """The keys of the configuration that `open` reads."""
        ...

    @property
    def folder(self) -> Path | None:
        """Where it keeps files on this machine; None when it keeps none."""
        ...

    @property
    def files(self) -> LogFiles | None:
        """The maintenance of its files; None when it keeps none."""
        ...

    def open(self, config: Mapping[str, Any] | None = None, *, clock: Clock | None = None) -> Log:
        """Open it, made if it is not there.

        Parameters
        ----------
        config : mapping or None
            Its `settings` are read; each has a default.
        clock : Clock or None
            The machine's clock unless given.
        """
        ...

    def check(self, *, create: bool = False) -> None:
        """Raise LogError when it cannot be opened, or when it is not there and is not to be made."""
        ...

    def topic_defaults(self) -> Mapping[str, str]:
        """The settings that a topic has when none are given."""
        ...

    def lock_file(self, application_id: str) -> Path | None:
        """The file that the process that runs an application locks; None when the home itself sees to that."""
        ...


class LogFiles(Protocol):
    """Maintenance of a home that keeps its topics in files: what `kstreams log` does."""

    def dump(self, topic: str | None = None, *, records: bool = False) -> Iterator[dict[str, Any]]:
        """Every frame as a dictionary; UnknownTopicError for a topic that is not there."""
        ...

    def verify(self) -> Sequence[NamedTuple]:
        """All damage; empty when there is none."""
        ...

    def repair(self) -> list[str]:
        """Repair the catalogue with possible loss; returns what was done, a sentence each."""
        ...

    def compact(self, topics: Sequence[str] = ()) -> Sequence[CleaningFigures]:
        """Compact these topics, or all that are compacted, up to their end."""
        ...

    def clean(self, topics: Sequence[str] = ()) -> Sequence[CleaningFigures]:
        """Apply retention and compaction to these topics, or to all."""
        ...

    def num_partitions(self) -> int:
        """How many partitions have files."""
        ...


class CleaningFigures(Protocol):
    """What the cleaning of one topic has freed."""

    @property
    def bytes(self) -> int: ...

    def _asdict(self) -> dict[str, Any]: ...


def _embedded(place: str) -> TopicHome:
    from kstreams.log.embedded.home import EmbeddedHome  # loaded when it is first asked for

    return EmbeddedHome(Path(place))


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


def register_home(scheme: str, at: Callable[[str], TopicHome]) -> None:
    """Make a kind of home known.

    Parameters
    ----------
    scheme : str
        What its addresses begin with, before the colon.
    at : callable
        Gives the home for the rest of an address.
    """
    _HOMES[scheme] = at


def home_at(address: str | Path) -> TopicHome:
    """The home with an address: `log:folder`, `kafka:host:port`, or the folder of an embedded log.

    Raises
    ------
    ConfigError
        For an address of a kind that is not known.

    Examples
    --------
    >>> home_at("log:/data/log").address, home_at("/data/log").address
    ('log:/data/log', 'log:/data/log')
    """
    found = _ADDRESS.fullmatch(str(address))
    if found and found[1] in _HOMES:
        return _HOMES[found[1]](found[2])
    if "://" in str(address):
        raise ConfigError(f"{address!r} cannot be opened yet: give the folder of an embedded log.")
    return _embedded(str(address))


def home_of(config: Mapping[str, Any]) -> TopicHome:
    """The home that a configuration names: `bootstrap.servers`, brokers or an address, else the folder `log.dir`.

    Examples
    --------
    >>> home_of({"bootstrap.servers": "log:/data/log"}).address, home_of({"log.dir": "/data/log"}).address
    ('log:/data/log', 'log:/data/log')
    """
    servers = config.get("bootstrap.servers")
    if not servers:
        return home_at(config["log.dir"])
    found = _ADDRESS.fullmatch(servers)
    return home_at(servers if found and found[1] in _HOMES else f"kafka:{servers}")
