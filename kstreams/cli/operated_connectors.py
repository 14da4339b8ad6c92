"""`OperatedConnectors`: the connectors of an application, as its topics and groups tell from any machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from kstreams.cli.active_groups import require_inactive
from kstreams.cli.commands.run import overrides
from kstreams.cli.options import EngineName
from kstreams.errors import ConnectorError
from kstreams.log.naming import did_you_mean

if TYPE_CHECKING:
    from kstreams.connectors.assigned_tasks import AssignedTask
    from kstreams.connectors.committed_offsets import CommittedOffsets
    from kstreams.connectors.connector import SinkConnector, SourceConnector
    from kstreams.connectors.connectors_topic import ConnectorControl, ConnectorRecords
    from kstreams.log.api import GroupDescription, Log
    from kstreams.log.homes import TopicHome

    AnyConnector: TypeAlias = SourceConnector | SinkConnector


@dataclass(frozen=True, slots=True)
class OperatedConnectors:
    """The connectors of an application, and what its topics and groups say about them now.

    Parameters
    ----------
    application_id : str
    home : TopicHome
    log : Log
    by_name : mapping
        The connectors by their names.
    records : mapping of str to ConnectorRecords
        By the group of the connectors.
    groups : mapping
        The consumer groups, by id.
    partitions : mapping of str to int
        The number of partitions of each topic that exists.
    """

    application_id: str
    home: TopicHome
    log: Log
    by_name: Mapping[str, AnyConnector]
    records: Mapping[str, ConnectorRecords]
    groups: Mapping[str, GroupDescription]
    partitions: Mapping[str, int]

    @property
    def is_running(self) -> bool:
        """True if a process runs connectors of the application."""
        return any(self.groups[connector.id].members for connector in self.by_name.values())

    def named(self, names: Iterable[str]) -> list[AnyConnector]:
        """Return connectors by their names. Raises ConnectorError for an unknown name."""
        for name in names:
            if name not in self.by_name:
                raise ConnectorError(
                    f"{self.application_id} has no connector {name!r}.{did_you_mean(name, self.by_name)} "
                    f"It has {', '.join(self.by_name)}."
                )
        return [self.by_name[name] for name in dict.fromkeys(names)]

    def tasks(self, connector: AnyConnector) -> list[AssignedTask]:
        """Return the tasks of a connector."""
        from kstreams.connectors.assigned_tasks import assigned_tasks

        count = self.partitions.get(connector.task_topic, 0)
        return assigned_tasks(connector.name, count, self.records[connector.group], self.groups[connector.id])

    def control(self, connector: AnyConnector) -> ConnectorControl:
        """Return how a connector is to run."""
        return self.records[connector.group].control(connector.name)

    def offsets(self, connector: AnyConnector) -> CommittedOffsets:
        """Return the committed positions of a source, or offsets of a sink."""
        from kstreams.connectors.committed_offsets import SinkOffsets, SourcePositions
        from kstreams.connectors.connector import SourceConnector

        if isinstance(connector, SourceConnector):
            return SourcePositions(self.log, connector)
        return SinkOffsets(self.log, connector)

    def require_closed(self, connector: AnyConnector) -> None:
        """Raise LogError if a task of a connector may be open: a sink must be stopped, a source at least be paused."""
        from kstreams.connectors.connector import SourceConnector
        from kstreams.connectors.task_status import TaskState

        refusal = f"the offsets of {connector.name} cannot be altered now"
        may_be_paused = isinstance(connector, SourceConnector)
        if may_be_paused and all(task.state is TaskState.PAUSED for task in self.tasks(connector)):
            return
        if may_be_paused and self.is_running:
            raise ConnectorError(
                f"{refusal}: pause it first with `kstreams connectors pause`, until `status` shows all its tasks PAUSED"
            )
        with self.log.admin() as admin:
            require_inactive(self.home, admin.describe_group(connector.id), refusal)
            require_inactive(self.home, admin.describe_group(self.application_id), refusal)

    def change(self, connector: AnyConnector, change: Callable[[ConnectorControl], ConnectorControl]) -> None:
        """Change the control of a connector, which all processes of the application then obey."""
        from kstreams.connectors.connectors_topic import change_control

        change_control(self.log, connector.group, connector.name, change)


@contextmanager
def operated_connectors(
    app: str, engine: EngineName, log_dir: Path | None, config: list[str] | None
) -> Iterator[OperatedConnectors]:
    """Load an application and open its home. Raises ConnectorError if the application has no connectors."""
    from kstreams import app as application
    from kstreams.connectors.connectors_topic import read_connectors
    from kstreams.log import home_of

    loaded = application.load_app(app, overrides(config, None, None, log_dir))
    name = loaded.config.application_id
    declared = application.connectors_of(loaded, engine.value).all()
    if not declared:
        raise ConnectorError(f"{name} has no connectors: no stream() or table() takes a source, and no to() a sink")
    home = home_of(loaded.config)
    home.check()
    with home.open(loaded.config) as log, log.admin() as admin:
        yield OperatedConnectors(
            application_id=name,
            home=home,
            log=log,
            by_name={connector.name: connector for connector in declared},
            records={group: read_connectors(log, group) for group in {connector.group for connector in declared}},
            groups=admin.describe_groups([connector.id for connector in declared]),
            partitions={topic: description.partitions for topic, description in admin.topics().items()},
        )
