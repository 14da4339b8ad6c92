"""`GroupMember`: a process in the group of its application. It writes its state, follows assignments, and may lead.

It has its own thread, so that a slow user function does not end the membership. The group of the home of topics knows
the members, and assigns the one partition of the assignment topic to one member, which is the leader.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from time import monotonic
from typing import Protocol, cast

import msgspec

from kstreams.errors import CommitFailedError, FencedError, LogError, RebalanceInProgressError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import Ability, GroupConsumer, GroupMetadata, Log, OffsetAndMetadata
from kstreams.log.groups.group_consumers import MEMBER_SETTINGS
from kstreams.processor.topology.sub_topologies import TaskId
from kstreams.runtime.native.assignment.clients import AssignmentRules
from kstreams.runtime.native.group.assignment_topic import AssignmentTopic
from kstreams.runtime.native.group.fencing import fence_process
from kstreams.runtime.native.group.former_member import FormerMember
from kstreams.runtime.native.group.messages import Assignment, ProcessShare, ProcessState, owners, pace_of
from kstreams.runtime.native.group.next_assignment import next_assignment
from kstreams.runtime.native.time_alignment.process_alignment import Pace, ProcessAlignment
from kstreams.runtime.native.uncaught_exceptions import ApplicationShutdownError

_LEASE_FACTOR = 0.9  # the lease is shorter than the session, because records arrive some time after they are sent


class Lease:
    """The time until the session of a member ends, from the last request that the group has confirmed.

    The clock continues while the machine sleeps, because the broker does not sleep.

    Parameters
    ----------
    session_s : float
        `session.timeout.ms`, in seconds.

    Examples
    --------
    >>> lease = Lease(session_s=45.0)
    >>> lease.is_valid()
    False
    >>> lease.renew(sent_s=lease.now_s())
    >>> lease.is_valid()
    True
    """

    def __init__(self, session_s: float) -> None:
        self._session_s = session_s
        self._until_s = float("-inf")

    @staticmethod
    def now_s() -> float:
        """Return the time of the clock of leases."""
        return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()

    def is_valid(self) -> bool:
        """Return True while the session cannot have ended, so that no other process has the tasks."""
        return self.now_s() < self._until_s

    def renew(self, sent_s: float) -> None:
        """Extend the lease: the group has confirmed a request that was sent at this time."""
        self._until_s = max(self._until_s, sent_s + _LEASE_FACTOR * self._session_s)


logger = logging.getLogger(__name__)

_TICK_S = 0.02
_MEMBERS_MAX_AGE_S = 1.0  # the longest time between two requests of a leader for the members of the group
_BACKOFF_S = 1.0  # the backoff after an error of the home of topics
_ERROR_TIMEOUT_S = 300.0  # the time of errors after which the membership ends
_SESSION_MS = MEMBER_SETTINGS["session.timeout.ms"].default
_COMMIT_TIMEOUT_S = 30.0  # the longest wait of a commit for a rebalance of the group


OwnersAndStates = tuple[dict[TaskId, str], dict[str, ProcessState]]
"""The owner of each task, and the state of each member."""


class TaskRunner(Protocol):
    """The part of a process that runs its tasks."""

    @property
    def tasks(self) -> Mapping[TaskId, bool]:
        """All tasks of the topology, with True for those that have state."""
        ...

    @property
    def alignment(self) -> ProcessAlignment:
        """The slices for the writers of repartition topics."""
        ...

    def assign(self, active: Collection[TaskId], standby: Collection[TaskId]) -> None:
        """Run the `active` tasks and no others, and keep the stores of `standby` tasks up to date."""
        ...

    def lose(self) -> None:
        """Revoke all tasks without a commit, because other processes may have them already."""
        ...

    def active(self) -> frozenset[TaskId]:
        """Return the tasks that are not released."""
        ...

    def standby(self) -> frozenset[TaskId]:
        """Return the standby tasks."""
        ...

    def lags(self) -> Mapping[TaskId, int]:
        """Return the changelog lag of standby tasks in records."""
        ...


class GroupMember:
    """The membership of this process, from the first call of `serve` to `close`.

    Parameters
    ----------
    log : Log
    application_id : str
    settings : mapping
        The settings of its consumer in the group, without `group.id`.
    process : ProcessState
        The constant part of the state of the process.
    rules : AssignmentRules
    on_failure : callable
        Called with the error that ends the membership.
    former_member : FormerMember
        The member of the last process on the state folder.
    """

    def __init__(
        self,
        log: Log,
        application_id: str,
        settings: Mapping[str, object],
        process: ProcessState,
        rules: AssignmentRules,
        on_failure: Callable[[BaseException], None],
        *,
        former_member: FormerMember,
    ) -> None:
        self._log = log
        self._application_id = application_id
        self._rules = rules
        self._is_fenced = Ability.FENCED_APPENDS in log.abilities
        self._lease = Lease(int(cast(str, settings.get("session.timeout.ms", _SESSION_MS))) / 1000)
        self._runner: TaskRunner  # from the first call of `serve` on
        self._on_failure = on_failure
        self._former_member = former_member
        # A static member takes the place of its former self.
        self._is_static = settings.get("group.instance.id") is not None
        self._lock = threading.Lock()
        self._process = process
        self._written_state = process
        self._id = ""
        self._version = 0
        self._is_lost = False
        self._members = frozenset[str]()
        self._members_generation = -1
        self._members_read_s = 0.0
        self._owners_and_states: tuple[Assignment, list[ProcessState], OwnersAndStates] = (Assignment(), [], ({}, {}))
        # The last inputs of `next_assignment` for which there was no next assignment.
        self._settled_inputs: tuple[int, Mapping[TaskId, bool], Mapping[str, ProcessState]] | None = None
        self._stopped = threading.Event()
        with ExitStack() as opening:
            self._topic = opening.enter_context(AssignmentTopic(log, application_id))
            self._admin = opening.enter_context(log.admin())
            if not self._is_static:
                former_member.remove(self._admin, application_id)
            group = {**settings, "group.id": application_id, "auto.offset.reset": "earliest"}
            self._consumer = cast(GroupConsumer, opening.enter_context(log.consumer(group)))
            self._resources = opening.pop_all()
        self._consumer.subscribe([self._topic.name], on_assigned=self._consumer.pause)
        self._thread = threading.Thread(target=self._run, name=f"{application_id}-group", daemon=True)

    def close(self, *, for_good: bool) -> None:
        """Leave the group when no task runs any more. Other members get the tasks immediately.

        Parameters
        ----------
        for_good : bool
            True if a static member leaves too. Otherwise it stays a member until its session ends.
        """
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()
        with self._resources:
            self._topic.remove(self._process.process)
            if for_good:
                self._consumer.leave()
        self._former_member.left()

    def serve(self, runner: TaskRunner) -> None:
        """Pass the assignments to a runner of tasks. A former runner has released all tasks."""
        with self._lock:
            self._runner = runner
            self._version = 0
        if not self._thread.is_alive():
            self._thread.start()

    def resize(self, threads: int) -> None:
        """Set the number of threads."""
        with self._lock:
            self._process = msgspec.structs.replace(self._process, capacity=threads)

    def owners_and_states(self) -> OwnersAndStates:
        """Return the owner of each task, and the state of each member. The same object until something changes."""
        latest = self._topic.latest
        current_states = list(self._topic.states.values())
        cached_latest, cached_states, result = self._owners_and_states
        if latest is not cached_latest or current_states != cached_states:
            states = {state.member: state for state in current_states}
            result = owners(latest, states), states
            self._owners_and_states = latest, current_states, result
        return result

    def shut_down_others(self) -> None:
        """Request a stop of all other processes of the application."""
        with self._lock:
            self._topic.shut_down(self._process.process)

    def owner(self) -> GroupMetadata:
        """Return the member to which the tasks of this process were assigned, even if the process has another id now.

        If the home of topics does not fence appends, the membership is confirmed when the lease has ended.

        Raises
        ------
        CommitFailedError
            If this process is out of its group, so that other processes may have the tasks.
        """
        if not self._is_fenced and not self._lease.is_valid():
            self._confirm()
        return GroupMetadata(self._application_id, self._id)

    def commit(self, commit: Callable[[GroupMetadata], None]) -> None:
        """Commit a transaction for the tasks of this process. Retry during a rebalance, if the home allows it.

        Parameters
        ----------
        commit : callable
            Called with the group metadata of the committer.

        Raises
        ------
        CommitFailedError
            If the process was out of the group since the tasks were assigned, so that other processes may have them.
        """
        self._commit(commit, again=Ability.REFUSED_TRANSACTIONS_STAY_OPEN in self._log.abilities)

    def commit_offsets(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit offsets for the tasks of this process. Retry during a rebalance. Raises as `commit`."""
        self._commit(lambda _: self._consumer.commit(offsets), again=True)

    def _confirm(self) -> None:
        """Confirm the membership by a commit: the group accepts commits of members only.

        Raises
        ------
        CommitFailedError
        """
        deadline = monotonic() + _ERROR_TIMEOUT_S
        while True:
            try:
                return self.commit_offsets(self._topic.position())
            except (CommitFailedError, RebalanceInProgressError, FencedError):
                raise
            except LogError as error:  # the home does not answer, so that records cannot be sent either
                if monotonic() > deadline or self._stopped.wait(_BACKOFF_S):
                    raise
                logger.warning("the membership in the group of %s is checked again: %s", self._application_id, error)

    def _commit(self, commit: Callable[[GroupMetadata], None], *, again: bool) -> None:
        deadline = monotonic() + _COMMIT_TIMEOUT_S
        while True:
            sent_s = self._lease.now_s()
            committer = self._consumer.group_metadata()
            if committer.member != self._id:
                raise CommitFailedError("This process was out of its group: others may have its tasks by now.")
            try:
                commit(committer)
                return self._lease.renew(sent_s)
            except (CommitFailedError, RebalanceInProgressError):
                if not again or monotonic() > deadline or self._stopped.wait(_TICK_S):
                    raise

    def _run(self) -> None:
        last_success_s = monotonic()
        while not self._stopped.is_set():
            try:
                with self._lock:
                    was_busy = self._tick()
                last_success_s = monotonic()
            except BaseException as error:
                is_retriable = isinstance(error, LogError) and not isinstance(error, FencedError)
                if not is_retriable or monotonic() - last_success_s > _ERROR_TIMEOUT_S:
                    return self._on_failure(error)
                logger.warning("the group of %s is tried again: %s", self._application_id, error)
                was_busy = bool(self._stopped.wait(_BACKOFF_S))
            if not was_busy:
                self._runner.alignment.changed.wait(_TICK_S)
                self._runner.alignment.changed.clear()

    def _tick(self) -> bool:
        """Read the topic, follow the assignment, write the state, and lead. Return True if something has changed."""
        self._consumer.poll(0.0)
        self._topic.read()
        if self._topic.shut_down_by not in (None, self._process.process):
            raise ApplicationShutdownError(
                f"process {self._topic.shut_down_by} of {self._application_id} asked all processes to stop after an "
                "error there"
            )
        return self._is_member() and (self._follow_assignment() | self._write_state() | self._lead())

    def _is_member(self) -> bool:
        """Return whether the process is in the group by the id that has its tasks. Otherwise revoke them first."""
        committer = self._consumer.group_metadata()
        if committer.member == self._id:
            return True
        if self._id and not self._is_lost:
            self._runner.lose()
        self._is_lost = bool(self._runner.active())
        if committer.generation < 0 or self._is_lost:
            return False
        self._id = committer.member
        if not self._is_static:
            self._former_member.replace(self._id)
        return True

    def _follow_assignment(self) -> bool:
        """Follow the latest assignment and the latest slices. Return True if the assignment is new."""
        latest = self._topic.latest
        self._runner.alignment.follow(dict(self._topic.slices), self._paces(self._topic.states.values()))
        if latest.version == self._version:
            return False
        if self._id in latest.shares or self._runner.active():
            share = latest.shares.get(self._id, ProcessShare())
            logger.info(
                "%s: assignment %d: this process runs %s and has standbys of %s",
                self._application_id,
                latest.version,
                ", ".join(share.active),
                ", ".join(share.standby),
            )
            self._runner.assign(frozenset(map(TaskId.parse, share.active)), frozenset(map(TaskId.parse, share.standby)))
        self._version = latest.version
        return True

    def _paces(self, states: Collection[ProcessState]) -> dict[int, Pace | None]:
        """Return the pace of all writers of each sub-topology, in all processes."""
        return {sub: pace_of(states, tasks) for sub, tasks in self._runner.alignment.writers.items()}

    def _write_state(self) -> bool:
        """Write the state of this process if it has changed. Return True if it has."""
        state = self._state()
        if state == self._written_state and state.process in self._topic.states:
            return False
        self._topic.write_state(state)
        self._topic.catch_up()
        self._written_state = state
        return True

    def _state(self) -> ProcessState:
        active = self._runner.active()
        return msgspec.structs.replace(
            self._process,
            member=self._id,
            version=self._version,
            active=tuple(map(str, sorted(active))),
            standby=tuple(map(str, sorted(self._runner.standby()))),
            lags={str(task): self._rounded(lag) for task, lag in self._runner.lags().items()},
            paces=self._runner.alignment.paces(active),
        )

    def _rounded(self, lag: int) -> int:
        """Round a lag, so that the state of the process changes rarely."""
        return 0 if lag <= self._rules.acceptable_recovery_lag else 1 << lag.bit_length()

    def _lead(self) -> bool:
        """If this process is the leader, assign the tasks to the members. Return True if something has changed."""
        if TopicPartition(self._topic.name, 0) not in self._consumer.assignment():
            return False
        states = list(self._topic.states.values())
        members = self._current_members({state.member for state in states})
        dead = [state for state in states if state.member not in members]
        for state in dead:
            logger.warning(
                "process %s of %s is no longer there: others get its tasks", state.process, self._application_id
            )
            fence_process(self._log, self._application_id, self._topic, state)
        alive = {state.member: state for state in states if state.member in members}
        without_paces = {member: msgspec.structs.replace(state, paces={}) for member, state in alive.items()}
        assignment = self._next_assignment(without_paces)
        if assignment is not None:
            self._topic.assign(assignment, self._process.process)
        has_new_slices = self._begin_slices(alive.values())
        if assignment is not None or dead or has_new_slices:
            self._topic.catch_up()
        return assignment is not None or has_new_slices

    def _begin_slices(self, states: Collection[ProcessState]) -> bool:
        """Begin the next slice of each sub-topology whose writers are all at the end of their slice.

        Return True if a slice begins.
        """
        next_slices = self._runner.alignment.next_slices(self._topic.slices, self._paces(states))
        for sub, slice_ in next_slices.items():
            self._topic.begin_slice(sub, slice_, self._process.process)
        return bool(next_slices)

    def _next_assignment(self, states: Mapping[str, ProcessState]) -> Assignment | None:
        """Return the next assignment. It is computed only if its inputs have changed."""
        inputs = self._topic.latest.version, self._runner.tasks, states
        if inputs == self._settled_inputs:
            return None
        assignment = next_assignment(self._topic.latest, states, self._runner.tasks, self._rules)
        self._settled_inputs = inputs if assignment is None else None
        return assignment

    def _current_members(self, announced_members: Collection[str]) -> frozenset[str]:
        """Return the members, which are read after a rebalance, at intervals, and if an announced one is missing."""
        generation = self._consumer.group_metadata().generation
        age_s = monotonic() - self._members_read_s
        is_old = generation != self._members_generation or age_s > _MEMBERS_MAX_AGE_S
        if is_old or not self._members.issuperset(announced_members):
            members = self._admin.describe_group(self._application_id).members
            self._members = frozenset(member.id for member in members)
            self._members_generation = generation
            self._members_read_s = monotonic()
        return self._members
