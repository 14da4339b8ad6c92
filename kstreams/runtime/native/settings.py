"""`ThreadSettings`: the settings of stream threads, read once from the configuration."""

from __future__ import annotations

from dataclasses import dataclass

from kstreams.config import Config, MemoryShares


@dataclass(frozen=True, slots=True)
class ThreadSettings:
    """The settings of each stream thread.

    Parameters
    ----------
    name : str
        `client.id`, or the application id. The names of threads begin with it.
    commit_interval_ms : int
        `commit.interval.ms`.
    first_commit_interval_ms : int
        `first.commit.interval.ms`.
    poll_s : float
        `poll.ms` in seconds: the longest wait of a thread for input.
    max_poll_records : int
        `max.poll.records`: the greatest number of records of one poll, and of one run of a task.
    max_buffered_records : int
        `buffered.records.per.partition`: a partition with more buffered records is paused.
    max_task_idle_ms : int
        `max.task.idle.ms`: the longest wait of a task for an empty input.
    task_timeout_ms : int
        `task.timeout.ms`: the longest time for retries of a send, and the time after which a task without progress is
        logged.
    summary_interval_ms : int
        `log.summary.interval.ms`.
    purge_interval_ms : int
        `repartition.purge.interval.ms`.
    production_handler : object
        `production.exception.handler`.
    uncommitted_bytes : int
        The thread's share of the memory for uncommitted changes.
    buffered_bytes : int
        The thread's share of the memory for buffered input and output.

    Examples
    --------
    >>> settings = ThreadSettings.of(Config.of({"application.id": "shop", "poll.ms": 50}))
    >>> settings.poll_s, settings.stream_thread(1)
    (0.05, 'shop-StreamThread-1')
    """

    name: str
    commit_interval_ms: int
    first_commit_interval_ms: int
    poll_s: float
    max_poll_records: int
    max_buffered_records: int
    max_task_idle_ms: int
    task_timeout_ms: int
    summary_interval_ms: int
    purge_interval_ms: int
    production_handler: object
    uncommitted_bytes: int
    buffered_bytes: int

    @classmethod
    def of(cls, config: Config) -> ThreadSettings:
        """Read the settings from a configuration."""
        memory = MemoryShares.of(config)
        threads = int(config["num.stream.threads"])
        return cls(
            name=config["client.id"] or config.application_id,
            commit_interval_ms=config["commit.interval.ms"],
            first_commit_interval_ms=config["first.commit.interval.ms"],
            poll_s=config["poll.ms"] / 1000,
            max_poll_records=config["max.poll.records"],
            max_buffered_records=config["buffered.records.per.partition"],
            max_task_idle_ms=config["max.task.idle.ms"],
            task_timeout_ms=config["task.timeout.ms"],
            summary_interval_ms=config["log.summary.interval.ms"],
            purge_interval_ms=config["repartition.purge.interval.ms"],
            production_handler=config["production.exception.handler"],
            uncommitted_bytes=max(1, memory.uncommitted // threads),
            buffered_bytes=max(1, memory.buffered // threads),
        )

    def stream_thread(self, number: int) -> str:
        """Return the name of a stream thread."""
        return f"{self.name}-StreamThread-{number}"

    @property
    def global_thread(self) -> str:
        """The name of the thread that updates global tables."""
        return f"{self.name}-GlobalStreamThread"
