"""Foreign-key join of two tables: left rows subscribe to keys of the right table, which responds with its rows.

On the left side, `SubscriptionSendOperator` turns changes of left rows into subscriptions, which are sent to the
partition of their foreign key. On the right side, `SubscriptionReceiveOperator` stores the subscriptions,
`SubscriptionJoinOperator` responds to each at once, and `ForeignTableJoinOperator` responds to all subscriptions of a
right row that changes. Back on the left side, `ResponseJoinOperator` joins the responses with the left rows, unless
the left rows have changed since.

In Kafka Streams, a result may stay for ever though its rows were deleted. Two additions prevent this:

- An inner join does not ask for a response "no match" if the left row is new or kept its foreign key, because there is
  no earlier result to delete. This is wrong while a response is in flight: a "no match" that arrives after the left row
  has changed is ignored, and may have been the only response that would have deleted an earlier result. So
  `ResponseJoinOperator` subscribes once more with the row as it is then, and asks for a response in any case.
- `SubscriptionJoinOperator` responds with the right row as it is, even if the record cache holds the row back. The
  cache never emits a row that is written and deleted between two commits. So the operator reads the right row again at
  the commit, and deletes the results if the row no longer exists.

Neither addition changes an update if responses arrive in time.
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
"""The seed that Kafka Streams uses."""
_BLOCK = struct.Struct("<QQ")
_HASH = struct.Struct(">QQ")


def hash128(data: bytes, seed: int = SEED) -> bytes:
    """Return the MurmurHash3 of Kafka Streams in 128 bits, big endian.

    Examples
    --------
    >>> hash128(b"kafka").hex()
    'c1ba8801115a620ca8402311f6596740'
    """
    h1 = h2 = seed
    whole = len(data) & ~15
    # The steps are repeated here, because a call of a function would cost more than the step.
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
    h1 = _final_mix(h1)
    h2 = _final_mix(h2)
    h1 = h1 + h2 & _MASK
    return _HASH.pack(h1, h2 + h1 & _MASK)


def _final_mix(bits: int) -> int:
    bits = (bits ^ bits >> 33) * 0xFF51AFD7ED558CCD & _MASK
    bits = (bits ^ bits >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return bits ^ bits >> 33


NULL_FOREIGN_KEY = "null foreign key"
_DELETIONS = (Instruction.DELETE_NO_PROPAGATE, Instruction.DELETE_AND_PROPAGATE)

Resubscribe = Callable[[Any, Any, int], None]
"""`resubscribe(key, row, timestamp)`: subscribe a left row to its foreign key, and ask for a response in any case."""


class SubscriptionRequester:
    """The state that `SubscriptionSendOperator` and `ResponseJoinOperator` of one join share in a task.

    Attributes
    ----------
    resubscribe : Resubscribe
        Set when the `SubscriptionSendOperator` is bound.
    write_key : callable
        Serializes the keys of left rows. Set when the `ResponseJoinOperator` is bound.
    """

    __slots__ = ("_pending_deletions", "resubscribe", "write_key")

    resubscribe: Resubscribe
    write_key: Callable[[Any], bytes]

    def __init__(self) -> None:
        self._pending_deletions = set[bytes]()

    def note_deletion_sent(self, key: object) -> None:
        """Note that the deletion of a left row was sent, and that a response will follow."""
        self._pending_deletions.add(self.write_key(key))

    def note_deletion_response(self, key: object) -> None:
        """Note the response to the deletion of a left row."""
        self._pending_deletions.discard(self.write_key(key))

    def is_deletion_pending(self, key: object) -> bool:
        """Return whether the response to the deletion of a left row has not arrived yet."""
        return self.write_key(key) in self._pending_deletions


def inner_subscriptions(old_key: object, new_key: object, *, is_same_key: bool) -> Iterator[tuple[object, Instruction]]:
    """Yield the instructions of an inner join for a change of a row's foreign key; None stands for no foreign key.

    Examples
    --------
    >>> [(key, instruction.name) for key, instruction in inner_subscriptions("a", "b", is_same_key=False)]
    [('a', 'DELETE_NO_PROPAGATE'), ('b', 'PROPAGATE_NULL_IF_NO_MATCH')]
    """
    if new_key is None:
        if old_key is not None:
            yield old_key, Instruction.DELETE_AND_PROPAGATE
    elif old_key is None or is_same_key:  # there is no earlier result to delete
        yield new_key, Instruction.PROPAGATE_ONLY_IF_MATCH
    else:
        yield old_key, Instruction.DELETE_NO_PROPAGATE
        yield new_key, Instruction.PROPAGATE_NULL_IF_NO_MATCH


def left_subscriptions(old_key: object, new_key: object, *, is_same_key: bool) -> Iterator[tuple[object, Instruction]]:
    """Yield the instructions of a left join, which needs a response in any case, even without a foreign key."""
    if old_key is not None and not is_same_key:
        yield old_key, Instruction.DELETE_NO_PROPAGATE
    yield new_key, Instruction.PROPAGATE_NULL_IF_NO_MATCH


@dataclass(frozen=True, slots=True)
class SubscriptionSendOperator(ClosureOperator):
    """Turns each change of a left row into subscriptions.

    Parameters
    ----------
    foreign_key : callable
        `foreign_key(key, row)` returns a key of the right table, or None.
    key_serde, row_serde : Serde
        The serdes of foreign keys, and of left rows.
    left : bool
        True for a left join: left rows without a partner have a result.
    join : str
        The name of the join, which its `ResponseJoinOperator` has too.
    versioned : bool
        True if the left table is versioned: an out-of-order update is then ignored.
    """

    foreign_key: Callable[[Any, Any], Any]
    key_serde: Serde
    row_serde: Serde
    left: bool
    join: str
    versioned: bool = False

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        shared = context.shared(self.join, SubscriptionRequester)
        shared.resubscribe = self._resubscriber(context, forward)
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
            for subscribed_key, instruction in subscriptions(old_key, new_key, is_same_key=is_same_key):
                if new is None:
                    shared.note_deletion_sent(key)
                forward(subscribed_key, Subscription(row_hash, instruction, key, partition), timestamp)

        return subscribe

    def _is_same(self, old_key: object, new_key: object) -> bool:
        """Return whether two foreign keys have the same bytes."""
        write = self.key_serde.serialize
        return old_key is not None and new_key is not None and write(old_key) == write(new_key)

    def _resubscriber(self, context: OperatorContext, forward: Forward) -> Resubscribe:
        foreign_key = self.foreign_key
        write_row = self.row_serde.serialize
        partition = context.task.partition
        always_respond = Instruction.PROPAGATE_NULL_IF_NO_MATCH

        def resubscribe(key: object, row: object, timestamp: int) -> None:
            subscription = Subscription(hash128(write_row(row)), always_respond, key, partition)
            forward(foreign_key(key, row), subscription, timestamp)

        return resubscribe


@dataclass(frozen=True, slots=True)
class SubscriptionReceiveOperator(ClosureOperator):
    """Stores or deletes the subscriptions to a foreign key, and forwards them.

    Parameters
    ----------
    store : str
        The store of subscriptions by foreign key and key of the left row.
    foreign_key, primary_key : Serde
        The serdes of foreign keys, and of the keys of left rows.
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
                store_key = subscribers_prefix(write_foreign(key)) + write(subscription.primary_key)
                is_deletion = subscription.instruction in _DELETIONS
                put_row(store_key, None if is_deletion else ValueAndTimestamp(subscription, timestamp))
            elif subscription.instruction is not Instruction.PROPAGATE_NULL_IF_NO_MATCH:
                context.dropped(NULL_FOREIGN_KEY)
                return
            forward(key, subscription, timestamp)

        return receive


@dataclass(frozen=True, slots=True)
class SubscriptionJoinOperator(ClosureOperator):
    """Responds to a subscription with the current right row, if the subscription asks for a response.

    Parameters
    ----------
    right : TableView
        The right table.
    store : str
        The store of subscriptions.
    foreign_key : Serde
        The serde of foreign keys.
    """

    right: TableView
    store: str
    foreign_key: Serde[object]

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        look_up = self.right.bind(context)
        note_response = self._retractor(context, look_up, forward) if context.caching else _note_nothing

        def respond(key: object, subscription: Subscription, timestamp: int) -> None:
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
                note_response(key)
            if instruction is Instruction.DELETE_AND_PROPAGATE:
                value = None
            forward(primary_key, SubscriptionResponse(row_hash, value, partition), timestamp)

        return respond

    def _retractor(self, context: OperatorContext, look_up: ValueGetter, forward: Forward) -> Callable[[Any], None]:
        """Return a function that notes the right row of a response.

        At the next commit, a second response "no match" is sent for each such row that no longer exists.
        """
        scan = context.state_store(self.store).prefix_scan
        write = self.foreign_key.serialize
        sent_keys = dict[bytes, Any]()

        def note_response(key: object) -> None:
            sent_keys[write(key)] = key

        def retract() -> None:
            deleted_keys = [key_bytes for key_bytes, key in sent_keys.items() if look_up(key) is None]
            sent_keys.clear()
            for key_bytes in deleted_keys:
                for _, (subscription, timestamp) in list(scan(subscribers_prefix(key_bytes))):
                    response = SubscriptionResponse(subscription.hash, None, subscription.partition)
                    forward(subscription.primary_key, response, timestamp)

        context.at_flush(retract)
        return note_response


def _note_nothing(key: object) -> None:
    """Do nothing: without the record cache, every change of a right row is emitted."""


@dataclass(frozen=True, slots=True)
class ForeignTableJoinOperator(ClosureOperator):
    """Responds to all subscriptions of a right row that changes.

    Parameters
    ----------
    store : str
        The store of subscriptions.
    foreign_key : Serde
        The serde of foreign keys.
    versioned : bool
        True if the right table is versioned: an out-of-order update is then ignored.
    """

    store: str
    foreign_key: Serde
    versioned: bool = False

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        scan = context.state_store(self.store).prefix_scan
        write = self.foreign_key.serialize
        versioned = self.versioned

        def respond_to_all(key: Any, change: Any, timestamp: int) -> None:
            if versioned and not change.is_latest:
                context.dropped(OUT_OF_ORDER)
                return
            for _, (subscription, _) in scan(subscribers_prefix(write(key))):
                response = SubscriptionResponse(subscription.hash, change.new, subscription.partition)
                forward(subscription.primary_key, response, timestamp)

        return respond_to_all


@dataclass(frozen=True, slots=True)
class ResponseJoinOperator(ClosureOperator):
    """Joins a response with the left row that subscribed. A response for an older left row is ignored.

    Parameters
    ----------
    left_table : TableView
    row_serde : Serde
        The serde of left rows.
    joiner : callable
        `joiner(key, left, right)`.
    left : bool
        True for a left join: left rows without a partner have a result.
    foreign_key : callable
        The same function as in the `SubscriptionSendOperator`.
    key_serde : Serde
        The serde of keys of left rows.
    join : str
        The name of the join, which its `SubscriptionSendOperator` has too.
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
        note_outdated = self._resubscriber(context, look_up, forward)
        shared = context.shared(self.join, SubscriptionRequester)
        shared.write_key = self.key_serde.serialize

        def resolve(key: object, response: SubscriptionResponse, timestamp: int) -> None:
            row_hash, right, _ = response
            if row_hash is None:
                shared.note_deletion_response(key)
            right_row = look_up(key)
            row = None if right_row is None else right_row[0]
            if row_hash != (None if row is None else hash128(write(row))):
                if right is None:
                    note_outdated(key, timestamp)
                return
            has_no_result = right is None and (row is None or not is_left)
            forward(key, None if has_no_result else joiner(key, row, right), timestamp)

        return resolve

    def _resubscriber(
        self, context: OperatorContext, look_up: ValueGetter, forward: Forward
    ) -> Callable[[Any, int], None]:
        """Return a function that notes a left row for which an outdated response "no match" arrived.

        At the next commit, an inner join subscribes once more for each such row that has a foreign key. A left join
        need not: it gets a response to every change of a row. The result of a row that no longer exists is deleted,
        unless the response to its deletion will do that.
        """
        foreign_key = self.foreign_key
        write_key = self.key_serde.serialize
        shared = context.shared(self.join, SubscriptionRequester)
        is_left = self.left
        outdated = dict[bytes, tuple[Any, int]]()

        def note_outdated(key: object, timestamp: int) -> None:
            outdated[write_key(key)] = key, timestamp

        def resubscribe_outdated() -> None:
            keys = list(outdated.values())
            outdated.clear()
            for key, timestamp in keys:
                row = look_up(key)
                if row is None and shared.is_deletion_pending(key):
                    continue
                if row is None or (not is_left and foreign_key(key, row[0]) is None):
                    forward(key, None, timestamp)
                elif not is_left:
                    shared.resubscribe(key, row[0], row[1])

        context.at_flush(resubscribe_outdated)
        return note_outdated
