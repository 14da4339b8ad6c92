"""`StreamsMetadataState`: the processes of an application that have each partition of its stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kstreams.log.readable_ends import readable_ends
from kstreams.processor.topology.layout import TaskPlan
from kstreams.processor.topology.sub_topologies import TaskId
from kstreams.runtime.native.group.member import GroupMember
from kstreams.runtime.native.runtime_context import RuntimeContext
from kstreams.runtime.native.state.restore import changelog_of
from kstreams.runtime.native.stores.metadata import HostInfo, LagInfo, PartitionHosts
from kstreams.runtime.native.tasks.task_manager import TaskManager
from kstreams.runtime.native.thread.stream_thread import StreamThread
from kstreams.state.api import StoreBuilder


@dataclass(frozen=True, slots=True)
class StreamsMetadataState:
    """The hosts of stores, from the metadata of the group.

    Parameters
    ----------
    context : RuntimeContext
    manager : TaskManager
    member : GroupMember or None
        None if this process shares its tasks with no other process.
    threads : sequence of StreamThread
    """

    context: RuntimeContext
    manager: TaskManager
    member: GroupMember | None
    threads: Sequence[StreamThread]

    def partition_hosts(self, store: StoreBuilder) -> dict[int, PartitionHosts]:
        """Return the hosts of each partition of a store. The partition of a global store, which all have, is -1."""
        own_host = HostInfo.of(self.context.environment.config["application.server"] or "")
        if store.name in self.context.topology.global_tables.stores:
            return {-1: PartitionHosts(own_host, ())}
        tasks = [plan for plan in self.context.topology.layout.tasks if store in plan.sub_topology.stores]
        if self.member is None:
            return {plan.partition: PartitionHosts(own_host, ()) for plan in tasks}
        owners, states = self.member.owners_and_states()
        hosts = {member: HostInfo.of(state.server) for member, state in states.items()}
        standby_tasks = {member: set(state.standby) for member, state in states.items()}
        return {plan.partition: self._hosts_of_task(plan, owners, hosts, standby_tasks) for plan in tasks}

    @staticmethod
    def _hosts_of_task(
        plan: TaskPlan,
        owners: Mapping[TaskId, str],
        hosts: Mapping[str, HostInfo | None],
        standby_tasks: Mapping[str, set[str]],
    ) -> PartitionHosts:
        standby_hosts = [hosts[member] for member, tasks in standby_tasks.items() if str(plan.id) in tasks]
        active_host = hosts.get(owners.get(plan.id, ""))
        return PartitionHosts(active_host, tuple(sorted(host for host in standby_hosts if host is not None)))

    def hosts(self) -> set[HostInfo]:
        """Return the addresses of the processes that have set `application.server`."""
        addresses = (
            [] if self.member is None else [state.server for state in self.member.owners_and_states()[1].values()]
        )
        own_address = self.context.environment.config["application.server"] or ""
        hosts = (HostInfo.of(address) for address in (*addresses, own_address))
        return {host for host in hosts if host is not None}

    def local_lags(self) -> dict[str, dict[int, LagInfo]]:
        """Return the changelog lag of the stores in this process, by store and partition."""
        environment = self.context.environment
        tasks = [task for thread in self.threads for task in list(thread.tasks)]
        states = [(task.plan, task.state) for task in tasks]
        states += [(standby.plan, standby.state) for standby in self.manager.standby_tasks()]
        changelogs = {
            (store.name, plan.partition): (changelog, state.changelog_offset(store.name) or 0)
            for plan, state in states
            for store in plan.sub_topology.stores
            if (changelog := changelog_of(store, plan, environment.application_id)) is not None
        }
        offsets = dict(changelogs.values())
        end_offsets = readable_ends(environment.log, offsets, environment.admin.end_offsets(offsets))
        lags: dict[str, dict[int, LagInfo]] = {}
        for (store_name, number), (changelog, offset) in sorted(changelogs.items()):
            lags.setdefault(store_name, {})[number] = LagInfo(offset, end_offsets[changelog])
        return lags
