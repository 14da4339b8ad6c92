"""`Materialized`: the name and settings of the store of a table."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import ClassVar

from kstreams.dsl.naming import validate_name
from kstreams.errors import TopologyError
from kstreams.kernel.advice import Advised, Advising
from kstreams.kernel.durations import Duration, to_ms
from kstreams.kernel.source_line import declared_at


@dataclass(frozen=True, slots=True, init=False)
class Materialized(Advised, metaclass=Advising):
    """The name and settings of the store of a table. Kafka Streams: `Materialized`.

    Parameters
    ----------
    name : str, optional
        Name of the store: it can then be queried, and does not change with the topology.
    store : {"rocksdb", "memory"}, optional
        Where rows are stored; `default.dsl.store` by default, which is RocksDB.
    caching : bool
        True if the record cache combines the updates of a key between two commits.
    logging : bool or mapping of str to str
        True if the store has a changelog topic from which it is restored; a mapping has settings of this topic.
    retention : timedelta or int (ms), optional
        How long windows are retained, at least size + grace. Only for aggregates by window.
    history_retention : timedelta or int (ms), optional
        Makes the store versioned, with a history of this length. Only for tables that are no aggregates.
    queryable : bool
        True if the query server (`kstreams.server`) may read the store. Queries in the process are always possible.

    Raises
    ------
    TopologyError
        If the name is not valid.
    ValueError
        If `store` is neither "rocksdb" nor "memory", or a duration is negative.

    Examples
    --------
    >>> Materialized("counts", caching=False).name
    'counts'
    """

    _spellings: ClassVar[Mapping[str, str]] = {
        "as_": "Materialized(name), or the name alone",
        "with_": "key= and value= at the operator",
        "with_key_serde": "key= at the operator",
        "with_value_serde": "value= at the operator",
        "with_retention": "Materialized(name, retention=...)",
        "with_logging_disabled": "Materialized(name, logging=False)",
        "with_caching_disabled": "Materialized(name, caching=False)",
    }

    name: str | None
    store: str | None
    caching: bool
    logging: bool
    changelog_config: Mapping[str, str] = field(hash=False)
    retention_ms: int | None
    history_retention_ms: int | None
    queryable: bool

    def __init__(
        self,
        name: str | None = None,
        *,
        store: str | None = None,
        caching: bool = True,
        logging: bool | Mapping[str, str] = True,
        retention: Duration | None = None,
        history_retention: Duration | None = None,
        queryable: bool = False,
    ) -> None:
        if store not in {None, "rocksdb", "memory"}:
            raise ValueError(f'a store is kept in "rocksdb" or "memory", not in {store!r}')
        set_field = object.__setattr__
        set_field(self, "name", None if name is None else validate_name(name))
        set_field(self, "store", store)
        set_field(self, "caching", caching)
        set_field(self, "logging", bool(logging) or isinstance(logging, Mapping))
        set_field(self, "changelog_config", dict(logging) if isinstance(logging, Mapping) else {})
        set_field(self, "retention_ms", _not_negative("retention", retention))
        set_field(self, "history_retention_ms", _not_negative("history_retention", history_retention))
        set_field(self, "queryable", queryable)

    def named(self, name: str) -> Materialized:
        """Return these settings with a name, unless they have one."""
        if self.name is not None:
            return self
        named = copy(self)
        object.__setattr__(named, "name", name)
        return named

    @staticmethod
    def of(materialized: str | Materialized | None, *, windows: bool = False, history: bool = False) -> Materialized:
        """Return the settings for the argument `materialized=`: a name, a Materialized, or None.

        Parameters
        ----------
        windows, history : bool
            True if the store holds windows, or may be versioned: other stores have no such retention.

        Raises
        ------
        TopologyError
            If the argument is of another type, or has a setting that does not apply to the store.
        """
        if not isinstance(materialized, Materialized):
            if not isinstance(materialized, str | None):
                raise TopologyError(
                    f"materialized= at {declared_at()} takes a store's name or a Materialized, not {materialized!r}"
                )
            return Materialized(materialized)
        if materialized.retention_ms is not None and not windows:
            raise TopologyError(
                f"retention= of the Materialized at {declared_at()} says how long windows are kept, and this table has "
                "none: its rows stay until they are deleted. Leave retention= out, or aggregate with windowed_by()"
            )
        if materialized.history_retention_ms is not None and not history:
            raise TopologyError(
                f"history_retention= of the Materialized at {declared_at()} has no effect: an aggregate keeps no "
                "history. Leave it out, or write .to_stream().to_table(materialized=Materialized(history_retention=…))"
            )
        return materialized


def _not_negative(name: str, duration: Duration | None) -> int | None:
    duration_ms = None if duration is None else to_ms(duration)
    if duration_ms is not None and duration_ms < 0:
        raise ValueError(f"{name} must not be negative, but is {duration_ms} ms")
    return duration_ms
