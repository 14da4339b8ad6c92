"""Schedules: the latest record of each key is forwarded again at every time of a schedule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kstreams.processor.api.punctuation import NEVER
from kstreams.processor.context.operator_context import ClosureOperator, OperatorContext
from kstreams.processor.operators.waiting.records import WaitingRecords
from kstreams.processor.topology.operator import Forward
from kstreams.state.kinds.waiting_records import WaitingRecordStore


@dataclass(frozen=True, slots=True)
class ScheduleOperator(ClosureOperator):
    """Forwards the latest record of each key at every time of a schedule, with that time as its timestamp.

    A record without a value ends the schedule of its key. Times that passed while the task did not run are made up by
    one record per key.

    Parameters
    ----------
    store : str
        Holds the latest record of each key.
    next_after : callable
        `next_after(time_ms)`: the first time of the schedule after a time, in milliseconds.
    """

    store: str
    next_after: Callable[[int], int]

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        store: WaitingRecordStore = context.state_store(self.store)
        records = WaitingRecords(store, context.current)
        clock = context.task.application.clock
        current = context.current
        next_after = self.next_after
        next_ms = -1

        def take(key: object, value: object, timestamp: int) -> None:
            nonlocal next_ms
            row = store.key_bytes(key)
            if row is None:
                context.dropped("null key")
            elif value is None:
                store.remove(row)
            else:
                now_ms = clock.wall_ms()
                store.put_record(row, records.of_current(key, value, timestamp, since_ms=now_ms, due_ms=0))
                if timer.deadline_ms == NEVER:
                    next_ms = next_after(now_ms)
                    timer.set(next_ms)

        def forward_all(now_ms: int) -> None:
            nonlocal next_ms
            due_ms = next_ms
            any_record = False
            for _, record in context.sending_meanwhile(store.records()):
                any_record = True
                held = records.to_forward(record)._replace(timestamp=due_ms)
                current.forward_held(forward, held, held.value)
            next_ms = next_after(now_ms) if any_record else -1
            timer.set(next_ms if any_record else NEVER)

        timer = context.timer(forward_all)
        next_ms = context.keep_in_metadata("next", lambda: next_ms)
        if next_ms < 0 and next(store.records(), None) is not None:
            next_ms = next_after(clock.wall_ms())
        if next_ms >= 0:
            timer.set(next_ms)
        return take
