"""`RetryingRegistry`: the schema registry of an application. It retries with backoff while a server is unavailable."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Literal, TypeVar

from kstreams.errors import RegistryUnavailableError
from kstreams.kernel.clock import Clock, SystemClock
from kstreams.schemas.registry import RegisteredSchema, Schema, SchemaRegistry

logger = logging.getLogger(__name__)

T = TypeVar("T")
_MIN_WAIT_MS = 10
_is_waiting_allowed = ContextVar("_is_waiting_allowed", default=True)


@contextmanager
def without_waiting() -> Iterator[None]:
    """Let requests of this thread fail at once while a registry is unavailable, since the caller retries itself."""
    token = _is_waiting_allowed.set(False)
    try:
        yield
    finally:
        _is_waiting_allowed.reset(token)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Timeout and backoff of requests to a registry that does not answer.

    Parameters
    ----------
    timeout_ms : int
        Time from the first failed request until the error is raised. 0 means no retry.
    first_wait_ms : int
        Wait before the first retry. Each further wait is twice as long.
    longest_wait_ms : int
    stopped : Event
        All waits end when this event is set.
    """

    timeout_ms: int
    first_wait_ms: int
    longest_wait_ms: int
    stopped: Event = field(default_factory=Event)

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> RetryPolicy:
        """Read timeout and backoff from a configuration.

        Examples
        --------
        >>> from kstreams.config import Config
        >>> RetryPolicy.of(Config.of(task_timeout_ms=60_000)).timeout_ms
        60000
        """
        return cls(
            timeout_ms=config["task.timeout.ms"],
            first_wait_ms=max(_MIN_WAIT_MS, config["schema.registry.retries.wait.ms"]),
            longest_wait_ms=max(_MIN_WAIT_MS, config["schema.registry.retries.max.wait.ms"]),
        )


class RetryingRegistry(SchemaRegistry):
    """A schema registry that retries while the wrapped registry does not answer, so that an outage fails no record.

    Schemas in the cache of the wrapped registry are returned at once.

    Parameters
    ----------
    registry : SchemaRegistry
        The wrapped registry. `close` closes it.
    policy : RetryPolicy
    clock : Clock or None
        Default: the clock of the machine.
    """

    def __init__(self, registry: SchemaRegistry, policy: RetryPolicy, clock: Clock | None = None) -> None:
        self._registry = registry
        self._policy = policy
        self._clock = clock or SystemClock()
        self._backoff_ms = policy.first_wait_ms
        self._retry_at_ms = 0
        self._failure = ""

    def schema(self, number: int) -> RegisteredSchema:
        return self._with_retries(lambda: self._registry.schema(number))

    def schema_of_guid(self, guid: str) -> RegisteredSchema:
        return self._with_retries(lambda: self._registry.schema_of_guid(guid))

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        return self._with_retries(lambda: self._registry.register(subject, schema, normalize=normalize))

    def lookup(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        return self._with_retries(lambda: self._registry.lookup(subject, schema, normalize=normalize))

    def version(self, subject: str, version: int | Literal["latest"] = "latest") -> RegisteredSchema:
        return self._with_retries(lambda: self._registry.version(subject, version))

    def subjects(self) -> Sequence[str]:
        return self._with_retries(self._registry.subjects)

    def versions(self, subject: str) -> Sequence[int]:
        return self._with_retries(lambda: self._registry.versions(subject))

    def incompatibilities(self, subject: str, schema: Schema) -> Sequence[str]:
        return self._with_retries(lambda: self._registry.incompatibilities(subject, schema))

    def compatibility(self, subject: str | None = None) -> str:
        return self._with_retries(lambda: self._registry.compatibility(subject))

    def set_compatibility(self, rule: str, subject: str | None = None) -> None:
        self._with_retries(lambda: self._registry.set_compatibility(rule, subject))

    def delete(self, subject: str, version: int | None = None, *, permanent: bool = False) -> Sequence[int]:
        """Delete without a retry, since a person is waiting for the result."""
        return self._registry.delete(subject, version, permanent=permanent)

    def close(self) -> None:
        self._registry.close()

    def __repr__(self) -> str:
        return f"RetryingRegistry({self._registry!r})"

    def _with_retries(self, request: Callable[[], T]) -> T:
        """Return the answer of a request. Raise the last error after the timeout."""
        if not _is_waiting_allowed.get():
            return self._without_retries(request)
        clock = self._clock
        policy = self._policy
        start_ms = clock.uptime_ms()
        wait_ms = policy.first_wait_ms
        while True:
            try:
                return request()
            except RegistryUnavailableError as error:
                remaining_ms = policy.timeout_ms - (clock.uptime_ms() - start_ms)
                if remaining_ms <= 0 or policy.stopped.is_set():
                    raise
                logger.warning(
                    "waiting for the schema registry, for another %.0f s at most: %s", remaining_ms / 1000, error
                )
            clock.sleep(min(wait_ms, remaining_ms) / 1000, policy.stopped)
            wait_ms = min(2 * wait_ms, policy.longest_wait_ms)

    def _without_retries(self, request: Callable[[], T]) -> T:
        """Send a request without retries. During the backoff after a failure, raise the last error instead.

        Many partitions may wait for the registry, and each of them tries again by itself.
        """
        now_ms = self._clock.uptime_ms()
        if now_ms < self._retry_at_ms:
            raise RegistryUnavailableError(self._failure)
        try:
            answer = request()
        except RegistryUnavailableError as error:
            self._retry_at_ms = self._clock.uptime_ms() + self._backoff_ms
            self._failure = str(error)
            self._backoff_ms = min(2 * self._backoff_ms, self._policy.longest_wait_ms)
            raise
        self._backoff_ms = self._policy.first_wait_ms
        return answer
