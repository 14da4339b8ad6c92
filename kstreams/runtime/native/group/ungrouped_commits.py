"""`UngroupedCommits`: the commits of a bounded run, which shares its tasks with no other process."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kstreams.errors import StateError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import Admin, GroupMetadata, Log, OffsetAndMetadata
from kstreams.runtime.native.group.assignment_topic import AssignmentTopic, assignment_topic
from kstreams.runtime.native.group.fencing import fence_process
from kstreams.runtime.native.group.messages import ProcessState


def require_stopped(admin: Admin, application_id: str) -> None:
    """Raise StateError if processes run the application."""
    members = admin.describe_group(application_id).members
    if members:
        raise StateError(
            f"{len(members)} processes run the application {application_id!r}: stop them first "
            f"(`kstreams groups describe {application_id}` names them)."
        )


class UngroupedCommits:
    """The commits of a run without a group. The next start aborts transactions that it leaves open.

    Parameters
    ----------
    log : Log
    admin : Admin
    application_id : str
    process : ProcessState
    transactional : bool
        True under exactly once.

    Raises
    ------
    StateError
        If processes run the application.
    """

    def __init__(
        self, log: Log, admin: Admin, application_id: str, process: ProcessState, *, transactional: bool
    ) -> None:
        self._log = log
        self._admin = admin
        self._application_id = application_id
        self._process = process.process
        self._transactional = transactional
        require_stopped(admin, application_id)
        if transactional or assignment_topic(application_id) in admin.topics():
            self._take_over(process)

    def owner(self) -> GroupMetadata:
        """Return metadata without a member: no other process has the tasks."""
        return GroupMetadata(self._application_id)

    def commit(self, commit: Callable[[GroupMetadata], None]) -> None:
        """Call `commit` with metadata of the group without a member."""
        commit(GroupMetadata(self._application_id))

    def commit_offsets(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit offsets."""
        self._admin.commit(self._application_id, offsets)

    def close(self) -> None:
        """Remove the state of this process, which leaves no transaction open."""
        if self._transactional:
            with AssignmentTopic(self._log, self._application_id) as topic:
                topic.remove(self._process)

    def _take_over(self, process: ProcessState) -> None:
        """Abort transactions of former processes, and write the state of this process for the next start."""
        with AssignmentTopic(self._log, self._application_id) as topic:
            for state in list(topic.states.values()):
                fence_process(self._log, self._application_id, topic, state)
            if self._transactional:
                topic.write_state(process)
