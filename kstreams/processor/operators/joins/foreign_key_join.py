"""Foreign-key join of two tables: left rows subscribe to keys of the right table, and are answered.

Left side: `SubscriptionSendOperator` turns changes of left rows into subscriptions, which are sent to the partition of
their foreign key. There `SubscriptionReceiveOperator` stores them, `SubscriptionJoinOperator` answers each at once, and
`ForeignTableJoinOperator` answers all of them whenever the right row changes. Back on the left side,
`ResponseJoinOperator` joins the responses with the left rows, unless those have changed since.

Two things are done that Kafka Streams does not do, where results stay for ever whose rows are gone:

- An inner join asks for no answer where a row was new, or kept its foreign key: what had no result has none to lose.
  That is so when no response is in flight. But a response "nothing" for a row that has changed since may be the only
  one that would have taken an earlier result back. So `ResponseJoinOperator` asks once more for the row as it is then,
  to be answered in any case.
- `SubscriptionJoinOperator` responds with the right row as it is, also when it waits in the record cache, which never
  emits a row that came and went between two commits. So the operator looks again at the commit.

While answers come in time, neither changes an update.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from kstreams.processor.context.operator_context import ClosureOperator, OperatorContext
from kstreams.processor.context.table_view import TableView, ValueGetter
from kstreams.processor.operators.tables.rows import OUT_OF_ORDER
from kstreams.processor.topology.operator import Forward
from kstreams.record import ValueAndTimestamp
from kstreams.serdes import Serde
from kstreams.serdes.subscriptions import Instruction, Subscription, SubscriptionResponse, subscribers_prefix

_MASK = 0xFFFFFFFFFFFFFFFF
_C1 = 0x87C37B91114253D5
_C2 = 0x4CF5AD432745937F
SEED = 104729
"""The one that Kafka Streams uses."""
_BLOCK = struct.Struct("<QQ")
_HASH = struct.Struct(">QQ")


def hash128(data: bytes, seed: int = SEED) -> bytes:
    """The 16 bytes of the hash: both of its halves, big endian.

    Examples
    --------
    >>> hash128(b"kafka").hex()
    'c1ba8801115a620ca8402311f6596740'
    """
    h1 = h2 = seed
    whole = len(data) & ~15
    # All steps stand here and not in functions of their own: a call costs more than what it would do.
    for word1, word2 in _BLOCK.iter_unpack(data[:whole]):
        k1 = word1 * _C1 & _MASK
        k2 = word2 * _C2 & _MASK
        h1 ^= ((k1 << 31 | k1 >> 33) & _MASK) * _C2 & _MASK
        h1 = (((h1 << 27 | h1 >> 37) & _MASK) + h2) * 5 + 0x52DCE729 & _MASK
        h2 ^= ((k2 << 33 | k2 >> 31) & _MASK) * _C1 & _MASK
        h2 = (((h2 << 31 | h2 >> 33) & _MASK) + h1) * 5 + 0x38495AB5 & _MASK
    if whole < len(data):
        word1, word2 = _BLOCK.unpack(data[whole:].ljust(16, b"\0"))
        k1 = word1 * _C1 & _MASK
        k2 = word2 * _C2 & _MASK
        h1 ^= ((k1 << 31 | k1 >> 33) & _MASK) * _C2 & _MASK
        h2 ^= ((k2 << 33 | k2 >> 31) & _MASK) * _C1 & _MASK
    h1 = h1 ^ len(data)
    h2 = h2 ^ len(data)
    h1 = h1 + h2 & _MASK
    h2 = h2 + h1 & _MASK
    h1 = _finished(h1)
    h2 = _finished(h2)
    h1 = h1 + h2 & _MASK
    return _HASH.pack(h1, h2 + h1 & _MASK)


def _finished(bits: int) -> int:
    bits = (bits ^ bits >> 33) * 0xFF51AFD7ED558CCD & _MASK
    bits = (bits ^ bits >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return bits ^ bits >> 33


NULL_FOREIGN_KEY = "null foreign key"
_DELETIONS = (Instruction.DELETE_NO_PROPAGATE, Instruction.DELETE_AND_PROPAGATE)

Ask = Callable[[Any, Any, int], None]
"""`ask(key, row, timestamp)`: subscribe to the foreign key of a left row, to be answered in any case."""


class SubscriptionRequester:
    """What `SubscriptionSendOperator` and `ResponseJoinOperator` of one join share in a task.

    Attributes
    ----------
    ask : callable
        Asks once more.
    """

    __slots__ = ("_unanswered", "_write_key", "ask")

    ask: Ask

    def __init__(self) -> None:
        self._unanswered = set[bytes]()

    def asks_by(self, ask: Ask) -> None:
        """The left side was bound: this asks."""
        self.ask = ask

    def writes_keys_by(self, write_key: Callable[[Any], bytes]) -> None:
        """The right side was bound: this serializes the keys of left rows."""
        self._write_key = write_key

    def deletion_asked(self, key: object) -> None:
        """The deletion of a left row was sent, and will be answered."""
        self._unanswered.add(self._write_key(key))

    def deletion_answered(self, key: object) -> None:
        """The answer has come."""
        self._unanswered.discard(self._write_key(key))

    def is_deletion_unanswered(self, key: object) -> bool:
        """Whether the answer to a deletion is still to come."""
        return self._write_key(key) in self._unanswered


def inner_subscriptions(old_key: object, new_key: object, *, is_same_key: bool) -> Iterator[tuple[object, Instruction]]:
    """What an inner join asks for when the foreign key of a row changes; None where it had or has none.

    Examples
    --------
    >>> [(key, asked.name) for key, asked in inner_subscriptions("a", "b", is_same_key=False)]
    [('a', 'DELETE_NO_PROPAGATE'), ('b', 'PROPAGATE_NULL_IF_NO_MATCH')]
    """
    if new_key is None:
        if old_key is not None:
            yield old_key, Instruction.DELETE_AND_PROPAGATE
    elif old_key is None or is_same_key:  # there is no earlier result that would have to be deleted
        yield new_key, Instruction.PROPAGATE_ONLY_IF_MATCH
    else:
        yield old_key, Instruction.DELETE_NO_PROPAGATE
        yield new_key, Instruction.PROPAGATE_NULL_IF_NO_MATCH


def left_subscriptions(old_key: object, new_key: object, *, is_same_key: bool) -> Iterator[tuple[object, Instruction]]:
    """What a left join asks for: it needs an answer in any case, also for a row without foreign key."""
    if old_key is not None and not is_same_key:
        yield old_key, Instruction.DELETE_NO_PROPAGATE
    yield new_key, Instruction.PROPAGATE_NULL_IF_NO_MATCH


@dataclass(frozen=True, slots=True)
class SubscriptionSendOperator(ClosureOperator):
    """Turns each change of a left row into subscriptions.

    Parameters
    ----------
    foreign_key : callable
        `foreign_key(key, row)` gives a key of the right table, or None.
    key_serde, row_serde : Serde
        Of foreign keys, and of left rows.
    left : bool
        Whether rows without a partner have a result.
    join : str
        Names the join: `ResponseJoinOperator` has the same.
    versioned : bool
        Whether the left table has a history: an update that comes after a later one changes nothing.
    """

    foreign_key: Callable[[Any, Any], Any]
    key_serde: Serde
    row_serde: Serde
    left: bool
    join: str
    versioned: bool = False

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        shared = context.shared(self.join, SubscriptionRequester)
        shared.asks_by(self._asking(context, forward))
        foreign_key = self.foreign_key
        is_left = self.left
        versioned = self.versioned
        is_same = self._is_same
        write_row = self.row_serde.serialize
        partition = context.task.partition
        subscriptions = left_subscriptions if is_left else inner_subscriptions

        def subscribe(key: Any, change: Any, timestamp: int) -> None:
            new, old, is_latest = change
            if versioned and not is_latest:
                context.dropped(OUT_OF_ORDER)
                return
            if new is None and old is None:
                return
            old_key = None if old is None else foreign_key(key, old)
            new_key = None if new is None else foreign_key(key, new)
            if new is not None and new_key is None and not is_left:
                context.dropped(NULL_FOREIGN_KEY)
            is_same_key = is_same(old_key, new_key)
            row_hash = None if new is None else hash128(write_row(new))
            for asked_key, instruction in subscriptions(old_key, new_key, is_same_key=is_same_key):
                if new is None:
                    shared.deletion_asked(key)
                forward(asked_key, Subscription(row_hash, instruction, key, partition), timestamp)

        return subscribe

    def _is_same(self, old_key: object, new_key: object) -> bool:
        """Whether two foreign keys are the same, by their bytes."""
        write = self.key_serde.serialize
        return old_key is not None and new_key is not None and write(old_key) == write(new_key)

    def _asking(self, context: OperatorContext, forward: Forward) -> Ask:
        foreign_key = self.foreign_key
        write_row = self.row_serde.serialize
        partition = context.task.partition
        in_any_case = Instruction.PROPAGATE_NULL_IF_NO_MATCH

        def ask(key: object, row: object, timestamp: int) -> None:
            forward(
                foreign_key(key, row), Subscription(hash128(write_row(row)), in_any_case, key, partition), timestamp
            )

        return ask


@dataclass(frozen=True, slots=True)
class SubscriptionReceiveOperator(ClosureOperator):
    """Keeps or deletes the subscriptions to a foreign key, and passes them on.

    Parameters
    ----------
    store : str
        By foreign key and key of the left row.
    foreign_key, primary_key : Serde
    """

    store: str
    foreign_key: Serde[object]
    primary_key: Serde[object]

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        put_row = context.state_store(self.store).put
        write = self.primary_key.serialize
        write_foreign = self.foreign_key.serialize

        def receive(key: object, subscription: Subscription, timestamp: int) -> None:
            if key is not None:
                place = subscribers_prefix(write_foreign(key)) + write(subscription.primary_key)
                gone = subscription.instruction in _DELETIONS
                put_row(place, None if gone else ValueAndTimestamp(subscription, timestamp))
            elif subscription.instruction is not Instruction.PROPAGATE_NULL_IF_NO_MATCH:
                context.dropped(NULL_FOREIGN_KEY)
                return
            forward(key, subscription, timestamp)

        return receive


@dataclass(frozen=True, slots=True)
class SubscriptionJoinOperator(ClosureOperator):
    """Answers a subscription with the right row as it is now, if an answer is asked for.

    Parameters
    ----------
    right : TableView
    store : str
        The subscriptions.
    foreign_key : Serde
    """

    right: TableView
    store: str
    foreign_key: Serde[object]

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        look_up = self.right.bind(context)
        answered = self._taking_back(context, look_up, forward) if context.caching else _is_final

        def answer(key: object, subscription: Subscription, timestamp: int) -> None:
            row_hash, instruction, primary_key, partition = subscription
            row = None if key is None else look_up(key)
            if instruction is Instruction.DELETE_NO_PROPAGATE:
                return
            if row is None:
                if instruction is Instruction.PROPAGATE_ONLY_IF_MATCH:
                    return
                value = None
            else:
                value = row[0]
                timestamp = max(timestamp, row[1])
                answered(key)
            if instruction is Instruction.DELETE_AND_PROPAGATE:
                value = None
            forward(primary_key, SubscriptionResponse(row_hash, value, partition), timestamp)

        return answer

    def _taking_back(self, context: OperatorContext, look_up: ValueGetter, forward: Forward) -> Callable[[Any], None]:
        """At the commit, take rows back that were there for an answer, and are not any more."""
        scan = context.state_store(self.store).prefix_scan
        write = self.foreign_key.serialize
        answers = dict[bytes, Any]()

        def answered(key: object) -> None:
            answers[write(key)] = key

        def take_back() -> None:
            gone = [data for data, key in answers.items() if look_up(key) is None]
            answers.clear()
            for data in gone:
                for _, (subscription, timestamp) in list(scan(subscribers_prefix(data))):
                    forward(
                        subscription.primary_key,
                        SubscriptionResponse(subscription.hash, None, subscription.partition),
                        timestamp,
                    )

        context.at_flush(take_back)
        return answered


def _is_final(key: object) -> None:
    """Without the record cache every change of a right row is emitted."""


@dataclass(frozen=True, slots=True)
class ForeignTableJoinOperator(ClosureOperator):
    """Answers all who subscribed to a right row that changes.

    Parameters
    ----------
    store : str
        The subscriptions.
    foreign_key : Serde
    versioned : bool
        Whether the right table has a history: an update that comes after a later one changes nothing.
    """

    store: str
    foreign_key: Serde
    versioned: bool = False

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        scan = context.state_store(self.store).prefix_scan
        write = self.foreign_key.serialize
        versioned = self.versioned

        def answer_all(key: Any, change: Any, timestamp: int) -> None:
            if versioned and not change.is_latest:
                context.dropped(OUT_OF_ORDER)
                return
            for _, (subscription, _) in scan(subscribers_prefix(write(key))):
                answer = SubscriptionResponse(subscription.hash, change.new, subscription.partition)
                forward(subscription.primary_key, answer, timestamp)

        return answer_all


@dataclass(frozen=True, slots=True)
class ResponseJoinOperator(ClosureOperator):
    """Joins a response with the left row that asked; when that row has changed since, another response follows.

    Parameters
    ----------
    left_table : TableView
    row_serde : Serde
        Of left rows.
    joiner : callable
        `joiner(key, left, right)`.
    left : bool
        Whether left rows without a partner have a result.
    foreign_key : callable
        As that of `SubscriptionSendOperator`.
    key_serde : Serde
        Of keys of left rows.
    join : str
        Names the join: `SubscriptionSendOperator` has the same.
    """

    left_table: TableView
    row_serde: Serde[object]
    joiner: Callable[[Any, Any, Any], Any]
    left: bool
    foreign_key: Callable[[Any, Any], Any]
    key_serde: Serde[object]
    join: str

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        look_up = self.left_table.bind(context)
        write = self.row_serde.serialize
        joiner = self.joiner
        is_left = self.left
        too_late = self._asking_again(context, look_up, forward)
        shared = context.shared(self.join, SubscriptionRequester)
        shared.writes_keys_by(self.key_serde.serialize)

        def resolve(key: object, response: SubscriptionResponse, timestamp: int) -> None:
            row_hash, right, _ = response
            if row_hash is None:
                shared.deletion_answered(key)
            right_row = look_up(key)
            row = None if right_row is None else right_row[0]
            if row_hash != (None if row is None else hash128(write(row))):
                if right is None:
                    too_late(key, timestamp)
                return
            unmatched = right is None and (row is None or not is_left)
            forward(key, None if unmatched else joiner(key, row, right), timestamp)

        return resolve

    def _asking_again(
        self, context: OperatorContext, look_up: ValueGetter, forward: Forward
    ) -> Callable[[Any, int], None]:
        """At the commit, ask once more for rows of which "nothing" came too late.

        In a left join, each change of a row is answered in any case: there only what is gone must have no result. The
        answer to a deletion that is on its way takes the result back.
        """
        foreign_key = self.foreign_key
        write_key = self.key_serde.serialize
        shared = context.shared(self.join, SubscriptionRequester)
        is_left = self.left
        rows = dict[bytes, tuple[Any, int]]()

        def too_late(key: object, timestamp: int) -> None:
            rows[write_key(key)] = key, timestamp

        def ask_again() -> None:
            subscriptions = list(rows.values())
            rows.clear()
            for key, timestamp in subscriptions:
                row = look_up(key)
                if row is None and shared.is_deletion_unanswered(key):
                    continue
                if row is None or (not is_left and foreign_key(key, row[0]) is None):
                    forward(key, None, timestamp)
                elif not is_left:
                    shared.ask(key, row[0], row[1])

        context.at_flush(ask_again)
        return too_late
