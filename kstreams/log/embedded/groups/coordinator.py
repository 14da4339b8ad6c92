"""`GroupCoordinator`: a group in the catalogue, changed by one event at a time, whichever process brings it."""

from __future__ import annotations

import logging
from contextlib import ExitStack, suppress

from kstreams.log.embedded.catalogue.group_rows import group_version, read_group, store_group
from kstreams.log.embedded.groups.member_files import AppendingMemberError, LifeSigns, no_appends, remove_files
from kstreams.log.embedded.resources import LogResources
from kstreams.log.groups.group import Group, GroupState
from kstreams.log.groups.transitions import Action, ActionKind, Elapse, Event, GroupStep, Leave, after

_logger = logging.getLogger("kstreams.groups")
CLOSED = "it was closed"
# an append becomes visible within microseconds, unless its process stands still
_APPEND_S = 1.0
_PAUSE_S = 0.001
_WAITING = (GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE)


class GroupCoordinator:
    """A group as one member sees and changes it; for one thread.

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
        self._signs = LifeSigns(home.folder)

    def look(self) -> Group:
        """The group as it is now."""
        version = group_version(self._home.catalogue, self._name)
        if version != self._version:
            self._group = read_group(self._home.catalogue, self._name)
            self._version = version
        return self._group

    def bring(self, event: Event) -> Group:
        """The group after an event, as all see it.

        Raises
        ------
        AppendingMemberError
            A member that the event takes out is in the middle of an append, and stays there.
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
            self._happened(action)
        return step.group

    def _changed(self, event: Event) -> GroupStep:
        """Change the group; who is taken out is kept from appending until the change is visible."""
        with ExitStack() as kept_out, self._home.catalogue.write() as database:
            before = read_group(self._home.catalogue, self._name)
            step = after(before, event, self._home.clock.uptime_ms())
            for member in before.members.keys() - step.group.members.keys():
                kept_out.enter_context(no_appends(self._home.folder, member))
            if step.group != before:
                store_group(database, step.group)
        return step

    def care(self, but: str) -> None:
        """Take out who is dead or late; `but` is the one that looks."""
        group = self.look()
        now_ms = self._home.clock.uptime_ms()
        others = [member for member in group.members.values() if member.id != but]
        for member, reason in self._signs.dead(others, now_ms):
            with suppress(AppendingMemberError):  # at the next look
                group = self.bring(Leave(member, reason))
        if group.state in _WAITING and now_ms >= group.deadline_ms:
            self.bring(Elapse())

    def _happened(self, action: Action) -> None:
        gone = action.kind in (ActionKind.REMOVED, ActionKind.REPLACED)
        if gone:
            remove_files(self._home.folder, action.subject)
        reason = f": {action.reason}" if action.reason else ""
        level = logging.WARNING if action.kind is ActionKind.REMOVED and action.reason != CLOSED else logging.INFO
        _logger.log(level, "Group %s: %s %s%s", self._name, action.kind.value, action.subject, reason)
