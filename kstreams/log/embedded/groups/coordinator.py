"""`GroupCoordinator`: a group in the catalogue, to which the members' processes apply events, one at a time."""

from __future__ import annotations

import logging
from contextlib import ExitStack

from kstreams.log.embedded.catalogue.catalogue import group_version, read_group, store_group
from kstreams.log.embedded.groups.member_files import (
    AppendingMemberError,
    SessionMonitor,
    append_lock_file,
    remove_files,
    without_appends,
)
from kstreams.log.embedded.resources import LogResources
from kstreams.log.groups.group import Group, GroupState
from kstreams.log.groups.transitions import Action, ActionKind, DeadlineCheck, Event, GroupStep, Leave, next_step
from kstreams.os.stopped_holders import HeldLock

_logger = logging.getLogger("kstreams.groups")
CLOSED = "it was closed"
# an append becomes visible within microseconds, unless its process is suspended
_APPEND_S = 1.0
_PAUSE_S = 0.001
_WAITING = (GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE)


class GroupCoordinator:
    """A group as one member reads and changes it; for one thread.

    Parameters
    ----------
    home : LogResources
    name : str
        The group's name.
    """

    def __init__(self, home: LogResources, name: str) -> None:
        self._home = home
        self._name = name
        self._group = Group(name)
        self._version = -1
        self._sessions = SessionMonitor(home.folder)

    def group(self) -> Group:
        """Return the group as it is now."""
        version = group_version(self._home.catalogue, self._name)
        if version != self._version:
            self._group = read_group(self._home.catalogue, self._name)
            self._version = version
        return self._group

    def apply(self, event: Event) -> Group:
        """Apply an event, and return the group after it.

        Raises
        ------
        AppendingMemberError
            A member that the event removes is in the middle of an append; the group is not changed.
        """
        waited_s = 0.0
        while True:
            try:
                step = self._changed(event)
                break
            except AppendingMemberError:
                if waited_s >= _APPEND_S:
                    raise
            self._home.clock.sleep(_PAUSE_S)
            waited_s += _PAUSE_S
        for action in step.actions:
            self._log_action(action)
        return step.group

    def _changed(self, event: Event) -> GroupStep:
        """Change the group; removed members are kept from appending until the change is visible."""
        with ExitStack() as locks, self._home.catalogue.write() as database:
            before = read_group(self._home.catalogue, self._name)
            step = next_step(before, event, self._home.clock.uptime_ms())
            for member in before.members.keys() - step.group.members.keys():
                locks.enter_context(without_appends(self._home.folder, member))
            if step.group != before:
                store_group(database, step.group)
        return step

    def remove_dead(self, observer: str) -> None:
        """Remove members that are dead or miss a deadline; `observer` is the member that checks."""
        group = self.group()
        now_ms = self._home.clock.uptime_ms()
        other_members = [member for member in group.members.values() if member.id != observer]
        for member, reason in self._sessions.dead(other_members, now_ms):
            try:
                group = self.apply(Leave(member, reason))
            except AppendingMemberError:  # removed at a later check
                lock = HeldLock(str(append_lock_file(self._home.folder, member)), "READ")
                lock.kill_stopped(lock.stopped_holders())
        if group.state in _WAITING and now_ms >= group.deadline_ms:
            self.apply(DeadlineCheck())

    def _log_action(self, action: Action) -> None:
        if action.kind in (ActionKind.REMOVED, ActionKind.REPLACED):
            remove_files(self._home.folder, action.subject)
        reason = f": {action.reason}" if action.reason else ""
        level = logging.WARNING if action.kind is ActionKind.REMOVED and action.reason != CLOSED else logging.INFO
        _logger.log(level, "Group %s: %s %s%s", self._name, action.kind.value, action.subject, reason)
