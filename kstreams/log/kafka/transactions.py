"""`Transactions`: the transactions of one producer, each call with a deadline of our own.

Librdkafka's calls were seen to block long past their time-out after a broker had died. What did not end by then has an
unknown outcome: the producer is not used again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic
from typing import Any

from confluent_kafka import KafkaException

from kstreams.errors import LogError, UncertainCommitError
from kstreams.log.api import GroupMetadata
from kstreams.log.kafka.connection import TIMEOUT_S, Connection
from kstreams.log.kafka.failures import PRODUCER_FENCED, raised, reason_of
from kstreams.log.kafka.offset_commits import Offsets, commit_refused, metadata_bytes, places_of

_GRACE_S = 5.0  # for a call that should have ended by itself


class Transactions:
    """The transactions of one client.

    Parameters
    ----------
    client : confluent_kafka.Producer
    name : str
        Its `transactional.id`.
    timeout_s : float
        How long a call may take.
    connection : Connection
    """

    def __init__(self, client: Any, name: str, timeout_s: float, connection: Connection) -> None:
        self._client = client
        self._name = name
        self._timeout_s = timeout_s
        self._connection = connection
        self._lost: LogError | None = None
        self.is_open = False
        # Nothing depends on it yet: it may wait for the cluster, which ends what an earlier producer left open.
        self._call("init_transactions", client.init_transactions, max(timeout_s, TIMEOUT_S))

    @property
    def is_lost(self) -> bool:
        """Whether the producer is fenced, or the outcome of a call unknown: it can do nothing more."""
        return self._lost is not None

    def begin(self) -> None:
        """Start a transaction."""
        self._require_sound()
        if self.is_open:
            raise LogError("A transaction is open already: commit or abort it before the next one begins.")
        try:
            self._client.begin_transaction()
        except KafkaException as error:
            raise self._failed("begin_transaction", error) from None
        self.is_open = True

    def require_open(self) -> None:
        """Raise unless a transaction is open."""
        self._require_sound()
        if not self.is_open:
            raise LogError("No transaction is open: call begin_transaction first.")

    def commit(self, offsets: Offsets, committer: GroupMetadata) -> None:
        """Make what was sent and the offsets visible as one."""
        self.require_open()
        if offsets:
            metadata = metadata_bytes(_checked(committer))
            send = self._client.send_offsets_to_transaction
            self._call(
                "send_offsets_to_transaction",
                lambda timeout: send(places_of(offsets), metadata, timeout),
                failure=lambda error: commit_refused(committer, error),
            )
        self._call("commit_transaction", self._client.commit_transaction)
        self.is_open = False

    def abort(self) -> None:
        """Drop what was sent."""
        self.require_open()
        self.is_open = False
        self._call("abort_transaction", self._client.abort_transaction)

    def uncertain(self, name: str, why: str) -> UncertainCommitError:
        """The error for a call without an answer; from now on every call raises it."""
        lost = UncertainCommitError(
            f"{name} of {self._name!r} gave no answer within {self._timeout_s:g} s ({why}): nobody knows whether it "
            "counts. Open another producer with this transactional.id and read what was committed."
        )
        self._lost = lost
        return lost

    def _call(
        self,
        name: str,
        call: Callable[[float], Any],
        timeout_s: float | None = None,
        failure: Callable[[BaseException], LogError] | None = None,
    ) -> None:
        """Call, again while the client says that it may be tried again, until the deadline."""
        until = monotonic() + (timeout_s or self._timeout_s)
        while True:
            error = self._outcome(name, call, max(0.1, until - monotonic()))
            if error is None:
                return
            reason = reason_of(error)
            if reason is None or not reason.retriable():
                raise self._failed(name, error, failure) from None
            if monotonic() > until:
                raise self.uncertain(name, str(error)) from None

    def _outcome(self, name: str, call: Callable[[float], Any], timeout: float) -> Exception | None:
        """Call in a thread of its own, which is left behind if the call does not return."""
        found: list[Exception | None] = []

        def run() -> None:
            try:
                call(timeout)
                found.append(None)
            except Exception as error:
                found.append(error)

        worker = threading.Thread(target=run, name=f"kafka-{name}", daemon=True)
        worker.start()
        worker.join(timeout + _GRACE_S)
        if not found:
            raise self.uncertain(name, "the client did not return")
        return found[0]

    def failed_for_good(self) -> LogError:
        """Why the client can do nothing more: mostly it is fenced."""
        try:
            self._call("abort_transaction", self._client.abort_transaction)
        except LogError as failure:
            return failure
        return self.uncertain("a transaction", "the client failed")

    def _failed(
        self, name: str, error: BaseException, failure: Callable[[BaseException], LogError] | None = None
    ) -> LogError:
        reason = reason_of(error)
        is_fenced = reason is not None and reason.code() in PRODUCER_FENCED
        failed = (
            failure(error)
            if failure is not None and not is_fenced
            else raised(f"{name} of {self._name!r} failed", error)
        )
        if is_fenced or (reason is not None and reason.fatal()):
            self._lost = failed
        return failed

    def _require_sound(self) -> None:
        if self._lost is not None:
            raise self._lost


def _checked(committer: GroupMetadata) -> GroupMetadata:
    """Who commits, so that the cluster refuses a member that has not joined: without a generation it does not check."""
    return committer._replace(generation=max(0, committer.generation)) if committer.member else committer
