"""`UngroupedCommits`: a run that shares its tasks with no other process: one that ends with its input."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kstreams.errors import StateError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import Admin, GroupMetadata, Log, OffsetAndMetadata
from kstreams.runtime.native.group.assignment_topic import AssignmentTopic, assignment_topic
from kstreams.runtime.native.group.fencing import bury
from kstreams.runtime.native.group.messages import ProcessState


def require_stopped(admin: Admin, application_id: str) -> None:
    """Raise StateError while processes run the application."""
    members = admin.describe_group(application_id).members
    if members:
        raise StateError(
            f"The application {application_id!r} is run by {len(members)} processes: stop them first "
            f"(`kstreams groups describe {application_id}` names them)."
        )


class UngroupedCommits:
    """The commits of a run that is alone; whoever starts next ends the transactions that it leaves.

    Parameters
    ----------
    log : Log
    admin : Admin
    application_id : str
    process : ProcessState
    transactional : bool
        Whether it writes in transactions.

    Raises
    ------
    StateError
        While processes run the application.
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
            self._succeed(process)

    def owner(self) -> GroupMetadata:
        """Nobody in the group: no other process has the tasks."""
        return GroupMetadata(self._application_id)

    def commit(self, commit: Callable[[GroupMetadata], None]) -> None:
        """Commit for the group."""
        commit(GroupMetadata(self._application_id))

    def commit_offsets(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit offsets."""
        self._admin.commit(self._application_id, offsets)

    def close(self) -> None:
        """End in order: nothing is left open."""
        if self._transactional:
            with AssignmentTopic(self._log, self._application_id) as topic:
                topic.forget(self._process)

    def _succeed(self, process: ProcessState) -> None:
        """End what others have left, and let the next one know what to end."""
        with AssignmentTopic(self._log, self._application_id) as topic:
            for state in list(topic.states.values()):
                bury(self._log, self._application_id, topic, state)
            if self._transactional:
                topic.tell(process)
