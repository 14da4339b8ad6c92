"""The embedded log's TransactionCoordinator: what several producers have prepared is one change of the catalogue."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kstreams.batch import TopicPartition
from kstreams.errors import LogError
from kstreams.log.api import OffsetAndMetadata
from kstreams.log.embedded.catalogue import transactions
from kstreams.log.embedded.resources import LogResources


class EmbeddedCoordinator:
    """See `kstreams.log.api.TransactionCoordinator`.

    Parameters
    ----------
    home : LogResources
    transactional_id : str
        Taken over: the transactions of whoever had it are aborted.
    """

    def __init__(self, home: LogResources, transactional_id: str) -> None:
        self._catalogue = home.catalogue
        self._identity = transactions.open_producer(self._catalogue, transactional_id)

    @property
    def token(self) -> str:
        """What a producer joins with: the identity under which it writes."""
        return transactions.token_of(self._identity)

    def commit(
        self,
        prepared: Collection[str],
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        group: str | None = None,
    ) -> None:
        """Make the records of prepared transactions and the group's offsets visible as one; abort all others.

        Raises
        ------
        FencedError
            When a newer coordinator has the transactional id, or one of the transactions was aborted, by its timeout
            or by the producer itself. Nothing is committed then.
        """
        if offsets and group is None:
            raise LogError("Offsets are committed for a group: name it.")
        numbers = [int(name) for name in prepared]
        self._identity = transactions.commit_prepared(self._catalogue, numbers, self._identity, offsets or {}, group)

    def close(self) -> None:
        """Abort what is not committed, and fence whoever still writes it."""
        transactions.abort_all(self._catalogue, self._identity)

    def __enter__(self) -> EmbeddedCoordinator:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
