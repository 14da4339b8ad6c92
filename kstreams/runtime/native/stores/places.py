"""`StorePlaces`: in which processes of an application the partitions of stores are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kstreams.log.readable_ends import readable_ends
from kstreams.processor.topology.layout import TaskPlan
from kstreams.processor.topology.sub_topologies import TaskId
from kstreams.runtime.native.group.member import GroupMember
from kstreams.runtime.native.runtime_context import RuntimeContext
from kstreams.runtime.native.state.restore import changelog_of
from kstreams.runtime.native.stores.metadata import HostInfo, LagInfo, PartitionHolders
from kstreams.runtime.native.tasks.task_manager import TaskManager
from kstreams.runtime.native.thread.stream_thread import StreamThread
from kstreams.state.api import StoreBuilder


@dataclass(frozen=True, slots=True)
class StorePlaces:
    """Knows the places of stores, as the processes of the application have told.

    Parameters
    ----------
    context : RuntimeContext
    manager : TaskManager
    member : GroupMember or None
        None where this process shares its tasks with nobody.
    threads : sequence of StreamThread
    """

    context: RuntimeContext
    manager: TaskManager
    member: GroupMember | None
    threads: Sequence[StreamThread]

    def holders(self, store: StoreBuilder) -> dict[int, PartitionHolders]:
        """Who has each partition of a store, by number; -1 for a global store, which all have."""
        own = HostInfo.of(self.context.environment.config["application.server"] or "")
        if store.name in self.context.topology.global_tables.stores:
            return {-1: PartitionHolders(own, ())}
        tasks = [plan for plan in self.context.topology.layout.tasks if store in plan.sub_topology.stores]
        if self.member is None:
            return {plan.partition: PartitionHolders(own, ()) for plan in tasks}
        owners, states = self.member.known()
        servers = {member: HostInfo.of(state.server) for member, state in states.items()}
        standbys = {member: set(state.standby) for member, state in states.items()}
        return {plan.partition: self._holders(plan, owners, servers, standbys) for plan in tasks}

    @staticmethod
    def _holders(
        plan: TaskPlan,
        owners: Mapping[TaskId, str],
        servers: Mapping[str, HostInfo | None],
        standbys: Mapping[str, set[str]],
    ) -> PartitionHolders:
        standby_hosts = [servers[member] for member, tasks in standbys.items() if str(plan.id) in tasks]
        active = servers.get(owners.get(plan.id, ""))
        return PartitionHolders(active, tuple(sorted(host for host in standby_hosts if host is not None)))

    def hosts(self) -> set[HostInfo]:
        """Where processes of the application answer, as far as they have told."""
        addresses = [] if self.member is None else [state.server for state in self.member.known()[1].values()]
        hosts = (
            HostInfo.of(address)
            for address in (*addresses, self.context.environment.config["application.server"] or "")
        )
        return {host for host in hosts if host is not None}

    def local_lags(self) -> dict[str, dict[int, LagInfo]]:
        """How far the stores of this process are in their changelogs, by store and partition."""
        tasks = [task for thread in self.threads for task in list(thread.tasks)]
        states = [(task.plan, task.state) for task in tasks]
        states += [(standby.plan, standby.state) for standby in self.manager.standby_tasks()]
        places = {
            (store.name, plan.partition): (source, state.changelog_offset(store.name) or 0)
            for plan, state in states
            for store in plan.sub_topology.stores
            if (source := changelog_of(store, plan, self.context.environment.application_id)) is not None
        }
        offsets = dict(places.values())
        ends = readable_ends(self.context.environment.log, offsets, self.context.environment.admin.end_offsets(offsets))
        lags: dict[str, dict[int, LagInfo]] = {}
        for (name, number), (source, offset) in sorted(places.items()):
            lags.setdefault(name, {})[number] = LagInfo(offset, ends[source])
        return lags
