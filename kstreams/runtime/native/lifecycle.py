"""`Lifecycle`: the state of an application, the permitted transitions, and the state listener."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from enum import Enum

logger = logging.getLogger(__name__)


class State(Enum):
    """The state of an application. Kafka Streams: `KafkaStreams.State`."""

    CREATED = "CREATED"
    REBALANCING = "REBALANCING"
    RUNNING = "RUNNING"
    PENDING_SHUTDOWN = "PENDING_SHUTDOWN"
    NOT_RUNNING = "NOT_RUNNING"
    PENDING_ERROR = "PENDING_ERROR"
    ERROR = "ERROR"


class ThreadState(Enum):
    """The state of a stream thread. Kafka Streams: `StreamThread.State`, without the state PARTITIONS_REVOKED."""

    CREATED = "CREATED"
    STARTING = "STARTING"
    PARTITIONS_ASSIGNED = "PARTITIONS_ASSIGNED"
    """The tasks of the thread are restored and opened."""
    RUNNING = "RUNNING"
    PENDING_SHUTDOWN = "PENDING_SHUTDOWN"
    DEAD = "DEAD"


_TRANSITIONS = {
    State.CREATED: {State.REBALANCING, State.PENDING_SHUTDOWN, State.PENDING_ERROR},
    State.REBALANCING: {State.RUNNING, State.PENDING_SHUTDOWN, State.PENDING_ERROR},
    State.RUNNING: {State.REBALANCING, State.PENDING_SHUTDOWN, State.PENDING_ERROR},
    State.PENDING_SHUTDOWN: {State.NOT_RUNNING, State.PENDING_ERROR},
    State.PENDING_ERROR: {State.ERROR},
    State.NOT_RUNNING: set(),
    State.ERROR: set(),
}
TERMINAL = frozenset(state for state, next_states in _TRANSITIONS.items() if not next_states)

StateListener = Callable[[State, State], None]


class Lifecycle:
    """The state of an application. Any thread may change it and wait for it.

    Examples
    --------
    >>> lifecycle = Lifecycle()
    >>> lifecycle.move(State.REBALANCING), lifecycle.move(State.NOT_RUNNING), lifecycle.state.value
    (True, False, 'REBALANCING')
    """

    def __init__(self) -> None:
        self._state = State.CREATED
        self._changed = threading.Condition()
        self.listener: StateListener | None = None
        self.failure: BaseException | None = None
        """The first error of the listener."""

    @property
    def state(self) -> State:
        """The present state."""
        return self._state

    def is_alive(self) -> bool:
        """Return whether the application is starting or running."""
        return self._state in (State.REBALANCING, State.RUNNING)

    def move(self, new: State) -> bool:
        """Change to `new` and call the listener with (new, old). Return False if the transition is not permitted."""
        with self._changed:
            old = self._state
            if new not in _TRANSITIONS[old]:
                return False
            self._state = new
            self._changed.notify_all()
        if self.listener is not None:
            self._notify(self.listener, new, old)
        return True

    def _notify(self, listener: StateListener, new: State, old: State) -> None:
        """Call the listener. Its errors are stored, because threads and resources must be closed first."""
        try:
            listener(new, old)
        except BaseException as error:
            logger.error("the state listener failed at %s: %s", new.value, error)
            self.failure = self.failure or error

    def wait_for_end(self, timeout: float | None) -> bool:
        """Wait up to `timeout` seconds for NOT_RUNNING or ERROR. Return True if the state is reached."""
        with self._changed:
            return self._changed.wait_for(lambda: self._state in TERMINAL, timeout)
