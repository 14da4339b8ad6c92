"""`EmbeddedLog`: a folder with a catalogue and topics, shared by any number of processes on one machine."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from kstreams.errors import ConfigError, LogError, UnknownTopicError
from kstreams.kernel.clock import Clock, SystemClock
from kstreams.log.api import Ability, Consumer, Producer
from kstreams.log.embedded.admin import EmbeddedAdmin
from kstreams.log.embedded.catalogue.catalogue import Catalogue, Topic
from kstreams.log.embedded.catalogue.transactions import abort_of_earlier_boots
from kstreams.log.embedded.consumer import EmbeddedConsumer
from kstreams.log.embedded.disk import Disk, boot_id, refuse_links
from kstreams.log.embedded.producer import EmbeddedCoordinator, EmbeddedProducer
from kstreams.log.embedded.resources import LogResources
from kstreams.log.embedded.segments.topic_settings import TopicSettings
from kstreams.log.embedded.upkeep.consistency import check_against_segments
from kstreams.log.embedded.upkeep.housekeeping import CleaningResult, Housekeeper, clean_topic
from kstreams.log.interceptors import consumer_with, producer_with
from kstreams.log.settings import choice
from kstreams.os.forks import of_one_process
from kstreams.os.private import make_folder

_logger = logging.getLogger("kstreams.log")


class EmbeddedLog:
    """A home of topics in a folder of the local disk.

    Parameters
    ----------
    folder : Path
        Created with mode 0700 if it does not exist.
    clock : Clock or None
        The source of record timestamps, segment ages and timeouts. Default: the machine's clock.
    durability : {"os", "fsync", "none"}
        Failures that an acknowledged record survives: `os` the death of any process (the operating system has the
        record), `fsync` a power failure too (the record is on the disk; one disk is one copy), `none` no failure.
    disk : Disk
        Writes the files; tests use one that fails.

    Raises
    ------
    LogFormatError
        When a newer kstreams wrote the folder.

    Examples
    --------
    >>> import tempfile
    >>> from kstreams.kernel.batch import TopicPartition
    >>> with EmbeddedLog(Path(tempfile.mkdtemp())) as log:
    ...     with log.admin() as admin:
    ...         admin.create_topic("words", partitions=2)
    ...     with log.producer() as producer:
    ...         producer.send("words", b"hello", b"world", partition=1)
    ...     with log.consumer() as consumer:
    ...         consumer.assign([TopicPartition("words", 1)])
    ...         [row.value for batch in consumer.poll() for row in batch.rows()]
    [b'world']
    """

    def __init__(
        self, folder: Path, *, clock: Clock | None = None, durability: str = "os", disk: Disk | None = None
    ) -> None:
        try:
            choice("os", "fsync", "none").read(durability)
        except ValueError as expected:
            raise ConfigError(f"The durability of a log is {expected}, not {durability!r}.") from None
        make_folder(folder / "topics")
        refuse_links(folder / "topics", folder / "quotas")
        disk = disk or Disk()
        catalogue = Catalogue(folder, durability, disk)
        try:
            check_against_segments(catalogue, folder, durability)
            abort_of_earlier_boots(catalogue, boot_id())
        except BaseException:
            catalogue.close()
            raise
        self._home = LogResources(
            folder, catalogue, clock or SystemClock(), durability, disk, self._after_roll, self.do_housekeeping
        )
        self._housekeeper = Housekeeper(self._home)
        of_one_process(self, "This log", LogError)

    @property
    def abilities(self) -> frozenset[Ability]:
        """All features."""
        return frozenset(Ability)

    @property
    def catalogue(self) -> Catalogue:
        """The catalogue, which also has schemas."""
        return self._home.catalogue

    def producer(self, config: Mapping[str, Any] | None = None) -> Producer:
        """Return a new producer; see `kstreams.log.api.Log`."""
        return producer_with(config, lambda settings: EmbeddedProducer(self._home, settings))

    def consumer(self, config: Mapping[str, Any] | None = None) -> Consumer:
        """Return a new consumer; see `kstreams.log.api.Log`."""
        return consumer_with(config, lambda settings: EmbeddedConsumer(self._home, settings))

    def coordinator(self, transactional_id: str) -> EmbeddedCoordinator:
        """Return a new coordinator; see `kstreams.log.api.Log`."""
        return EmbeddedCoordinator(self._home, transactional_id)

    def admin(self) -> EmbeddedAdmin:
        """Return a new admin."""
        return EmbeddedAdmin(self._home)

    def do_housekeeping(self) -> bool:
        """Do a part of the housekeeping that is due; return False if none is due. Idle threads call it."""
        return self._housekeeper.clean_next()

    def clean(self, topic: str | None = None) -> list[CleaningResult]:
        """Apply retention and compaction now, to one topic or to all. Active segments stay as they are.

        Parameters
        ----------
        topic : str or None
            None for all topics.

        Returns
        -------
        list of CleaningResult
            The freed segments and bytes of each topic.

        Raises
        ------
        UnknownTopicError
        """
        catalogue = self._home.catalogue
        if topic is not None:
            return [clean_topic(self._home, catalogue.topic(topic), eager=True)]
        cleaned = []
        for existing in catalogue.topics().values():
            with suppress(UnknownTopicError):  # it was deleted meanwhile
                cleaned.append(clean_topic(self._home, existing, eager=True))
        return cleaned

    def compact(self, topic: str) -> CleaningResult:
        """Compact a topic now, up to its end.

        Raises
        ------
        UnknownTopicError
        LogError
            If its `cleanup.policy` is not `compact`.

        Examples
        --------
        >>> import tempfile
        >>> with EmbeddedLog(Path(tempfile.mkdtemp())) as log:
        ...     log.admin().create_topic("table", config={"cleanup.policy": "compact"})
        ...     with log.producer() as producer:
        ...         for value in (b"1", b"2", b"3"):
        ...             producer.send("table", b"key", value)
        ...             producer.flush()
        ...     log.compact("table").bytes > 0
        True
        """
        description = self._home.catalogue.topic(topic)
        if not TopicSettings.of(description.config).compact:
            raise LogError(f"The topic {topic!r} is not compacted: its `cleanup.policy` is not `compact`.")
        return clean_topic(self._home, description, eager=True, roll=True)

    def close(self) -> None:
        """Close the catalogue; producers and consumers must be closed before."""
        self._home.catalogue.close()

    def __enter__(self) -> EmbeddedLog:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _after_roll(self, topic: Topic) -> None:
        # The append that rolled the segment has succeeded: an error here must not make it fail.
        try:
            clean_topic(self._home, topic)
        except UnknownTopicError:
            pass  # it was deleted meanwhile
        except Exception as error:
            _logger.error("The topic %s could not be cleaned: %s", topic.name, error)
