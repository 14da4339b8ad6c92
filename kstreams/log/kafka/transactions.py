"""`Transactions`: the transactions of one producer, with a deadline for each call.

After the death of a broker, calls of librdkafka were seen to block far beyond their timeout. The outcome of a call that
does not return in time is unknown, and the producer is not used again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic

from confluent_kafka import KafkaException
from confluent_kafka import Producer as Client

from kstreams.errors import LogError, UncertainCommitError
from kstreams.log.api import GroupMetadata
from kstreams.log.kafka.connection import TIMEOUT_S, Connection
from kstreams.log.kafka.failures import PRODUCER_FENCED, error_of, reason_of
from kstreams.log.kafka.offset_commits import Offsets, client_offsets, commit_refused, metadata_bytes

_GRACE_S = 5.0  # the time after the timeout of a call after which its thread is abandoned


class Transactions:
    """The transactions of one client.

    Parameters
    ----------
    client : confluent_kafka.Producer
    name : str
        Its `transactional.id`.
    timeout_s : float
        Time for each call.
    connection : Connection
    """

    def __init__(self, client: Client, name: str, timeout_s: float, connection: Connection) -> None:
        self._client = client
        self._name = name
        self._timeout_s = timeout_s
        self._connection = connection
        self._fatal_error: LogError | None = None
        self.is_open = False
        # The timeout is longer, because the cluster first ends the open transaction of an earlier producer.
        self._call("init_transactions", client.init_transactions, max(timeout_s, TIMEOUT_S))

    @property
    def has_failed(self) -> bool:
        """True if the producer cannot be used any more: it is fenced, or the outcome of a call is unknown."""
        return self._fatal_error is not None

    def begin(self) -> None:
        """Start a transaction."""
        self._require_usable()
        if self.is_open:
            raise LogError("A transaction is open already: commit or abort it before the next one begins.")
        try:
            self._client.begin_transaction()
        except KafkaException as error:
            raise self._failed("begin_transaction", error) from None
        self.is_open = True

    def require_open(self) -> None:
        """Raise unless a transaction is open."""
        self._require_usable()
        if not self.is_open:
            raise LogError("No transaction is open: call begin_transaction first.")

    def commit(self, offsets: Offsets, committer: GroupMetadata) -> None:
        """Commit the records and the offsets atomically."""
        self.require_open()
        if offsets:
            metadata = metadata_bytes(_checked(committer))
            send = self._client.send_offsets_to_transaction
            self._call(
                "send_offsets_to_transaction",
                lambda timeout: send(client_offsets(offsets), metadata, timeout),
                failure=lambda error: commit_refused(committer, error),
            )
        self._call("commit_transaction", self._client.commit_transaction)
        self.is_open = False

    def abort(self) -> None:
        """Abort the transaction."""
        self.require_open()
        self.is_open = False
        self._call("abort_transaction", self._client.abort_transaction)

    def no_answer(self, name: str, reason: str) -> UncertainCommitError:
        """Return the error for a call without an answer. Every later call raises it."""
        error = UncertainCommitError(
            f"{name} of {self._name!r} gave no answer within {self._timeout_s:g} s ({reason}): it is unknown whether "
            "it took effect. Open another producer with this transactional.id and read what was committed."
        )
        self._fatal_error = error
        return error

    def _call(
        self,
        name: str,
        call: Callable[[float], object],
        timeout_s: float | None = None,
        failure: Callable[[BaseException], LogError] | None = None,
    ) -> None:
        """Call until the call succeeds. Retry after retriable errors, within the timeout."""
        deadline = monotonic() + (timeout_s or self._timeout_s)
        while True:
            error = self._call_in_thread(name, call, max(0.1, deadline - monotonic()))
            if error is None:
                return
            reason = reason_of(error)
            if reason is None or not reason.retriable():
                raise self._failed(name, error, failure) from None
            if monotonic() > deadline:
                raise self.no_answer(name, str(error)) from None

    def _call_in_thread(self, name: str, call: Callable[[float], object], timeout: float) -> Exception | None:
        """Call in a new thread, and return the error of the call. If it does not return, abandon the thread."""
        outcomes: list[Exception | None] = []

        def run() -> None:
            try:
                call(timeout)
                outcomes.append(None)
            except Exception as error:
                outcomes.append(error)

        worker = threading.Thread(target=run, name=f"kafka-{name}", daemon=True)
        worker.start()
        worker.join(timeout + _GRACE_S)
        if not outcomes:
            raise self.no_answer(name, "the client did not return")
        return outcomes[0]

    def fatal_error(self) -> LogError:
        """Return the error of a client that cannot be used any more, usually because it is fenced."""
        try:
            self._call("abort_transaction", self._client.abort_transaction)
        except LogError as failure:
            return failure
        return self.no_answer("a transaction", "the client failed")

    def _failed(
        self, name: str, error: BaseException, failure: Callable[[BaseException], LogError] | None = None
    ) -> LogError:
        reason = reason_of(error)
        is_fenced = reason is not None and reason.code() in PRODUCER_FENCED
        if failure is None or is_fenced:
            raised_error = error_of(f"{name} of {self._name!r} failed", error)
        else:
            raised_error = failure(error)
        if is_fenced or (reason is not None and reason.fatal()):
            self._fatal_error = raised_error
        return raised_error

    def _require_usable(self) -> None:
        if self._fatal_error is not None:
            raise self._fatal_error


def _checked(committer: GroupMetadata) -> GroupMetadata:
    """Return metadata with a generation, without which the cluster would not check a member that has not joined."""
    return committer._replace(generation=max(0, committer.generation)) if committer.member else committer
