"""`GroupMember`: a process in the group of its application; it tells what it has, follows assignments, and may lead.

A thread of its own does that, so that no user function, however long, keeps the process from being a member. The group
of the home of topics says who is in it, and gives the one partition of the assignment topic to one member, which leads.
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
from kstreams.runtime.native.group.fencing import bury
from kstreams.runtime.native.group.messages import Assignment, ProcessShare, ProcessState, owners, pace_of
from kstreams.runtime.native.group.next_assignment import next_assignment
from kstreams.runtime.native.time_alignment.process_alignment import ProcessAlignment
from kstreams.runtime.native.time_alignment.slices import Pace
from kstreams.runtime.native.uncaught_exceptions import ApplicationShutdownError

_MARGIN = 0.9  # of the session: what is sent now arrives a little later


class Lease:
    """The time for which the group waits for a sign of life, from the last one that it has confirmed.

    It is counted by a clock that goes on while the machine sleeps: a broker elsewhere does not sleep.

    Parameters
    ----------
    session_s : float
        `session.timeout.ms`, in seconds.

    Examples
    --------
    >>> lease = Lease(session_s=45.0)
    >>> lease.is_valid()
    False
    >>> lease.renew(asked_s=lease.now_s())
    >>> lease.is_valid()
    True
    """

    def __init__(self, session_s: float) -> None:
        self._session_s = session_s
        self._until_s = float("-inf")

    @staticmethod
    def now_s() -> float:
        """The time by which leases are counted."""
        return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()

    def is_valid(self) -> bool:
        """Whether the group cannot have given the tasks of this process to others."""
        return self.now_s() < self._until_s

    def renew(self, asked_s: float) -> None:
        """The group has confirmed the membership when it was asked at this time, or later."""
        self._until_s = max(self._until_s, asked_s + _MARGIN * self._session_s)


logger = logging.getLogger(__name__)

_TICK_S = 0.02
_MEMBERS_S = 1.0  # after so long a leader asks who is in the group, though nothing seems to have changed
# after an error of the topics that may pass; and when it does not
_PAUSE_S = 1.0
_GIVE_UP_S = 300.0
_SESSION_MS = MEMBER_SETTINGS["session.timeout.ms"].default
_COMMIT_S = 30.0  # for so long a commit waits for a group that takes others in


Known = tuple[dict[TaskId, str], dict[str, ProcessState]]


class TaskHolder(Protocol):
    """What runs the tasks of a process."""

    @property
    def tasks(self) -> Mapping[TaskId, bool]:
        """All tasks of the topology, and whether they have state."""
        ...

    @property
    def alignment(self) -> ProcessAlignment:
        """The slices that the writers of repartition topics follow."""
        ...

    def assign(self, active: Collection[TaskId], standby: Collection[TaskId]) -> None:
        """Run these and no others, and keep the stores of those up to date."""
        ...

    def lose(self) -> None:
        """Give up all tasks without a commit: others may have them already."""
        ...

    def active(self) -> frozenset[TaskId]:
        """The tasks that are not given back."""
        ...

    def standby(self) -> frozenset[TaskId]:
        """The tasks whose stores are kept up to date."""
        ...

    def lags(self) -> Mapping[TaskId, int]:
        """How many changelog records are lacking, of tasks whose stores are here."""
        ...


class GroupMember:
    """A member from the first call of `serve` to `close`.

    Parameters
    ----------
    log : Log
    application_id : str
    settings : mapping
        Of its consumer in the group, `group.id` aside.
    process : ProcessState
        What is constant for the process.
    rules : AssignmentRules
    on_failure : callable
        Called when the member cannot go on.
    """

    def __init__(
        self,
        log: Log,
        application_id: str,
        settings: Mapping[str, object],
        process: ProcessState,
        rules: AssignmentRules,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._log = log
        self._application_id = application_id
        self._rules = rules
        self._is_fenced = Ability.FENCED_APPENDS in log.abilities
        self._lease = Lease(int(cast(str, settings.get("session.timeout.ms", _SESSION_MS))) / 1000)
        self._holder: TaskHolder  # from the first call of `serve` on
        self._on_failure = on_failure
        self._turn = threading.Lock()
        self._process = process
        self._told = process
        self._id = ""
        self._version = 0
        self._is_lost = False
        self._members = frozenset[str]()
        self._members_of = -1
        self._asked_s = 0.0
        self._known: tuple[Assignment, list[ProcessState], Known] = Assignment(), [], ({}, {})
        self._final: tuple[int, Mapping[TaskId, bool], Mapping[str, ProcessState]] | None = None  # nothing follows from
        self._stopped = threading.Event()
        with ExitStack() as opening:
            self._topic = opening.enter_context(AssignmentTopic(log, application_id))
            self._admin = opening.enter_context(log.admin())
            group = {**settings, "group.id": application_id, "auto.offset.reset": "earliest"}
            self._consumer = cast(GroupConsumer, opening.enter_context(log.consumer(group)))
            self._resources = opening.pop_all()
        self._consumer.subscribe([self._topic.name], on_assigned=self._consumer.pause)
        self._thread = threading.Thread(target=self._run, name=f"{application_id}-group", daemon=True)

    def close(self, *, for_good: bool) -> None:
        """Leave the group, when no task is run any more: others get them at once.

        Parameters
        ----------
        for_good : bool
            Whether a static member leaves too; else its place stays until its session ends.
        """
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()
        with self._resources:
            self._topic.forget(self._process.process)
            if for_good:
                self._consumer.leave()

    def serve(self, holder: TaskHolder) -> None:
        """Let a holder follow the assignments; one before it has given everything back."""
        with self._turn:
            self._holder = holder
            self._version = 0
        if not self._thread.is_alive():
            self._thread.start()

    def resize(self, threads: int) -> None:
        """The process has so many threads from now on."""
        with self._turn:
            self._process = msgspec.structs.replace(self._process, capacity=threads)

    def known(self) -> Known:
        """The member that runs each task, or may begin to; and what each member has told last.

        It is the same object as long as nothing has changed.
        """
        latest = self._topic.latest
        current_states = list(self._topic.states.values())
        seen_latest, seen_told, alive = self._known
        if latest is not seen_latest or current_states != seen_told:
            states = {state.member: state for state in current_states}
            alive = owners(latest, states), states
            self._known = latest, current_states, alive
        return alive

    def shut_down_others(self) -> None:
        """Ask all other processes of the application to stop."""
        with self._turn:
            self._topic.shut_down(self._process.process)

    def owner(self) -> GroupMetadata:
        """The member for which this process has its tasks; not the one that it may be by now.

        Where appends are not fenced, the group is asked when a session has passed since it answered last.

        Raises
        ------
        CommitFailedError
            When this process is out of its group: others may have the tasks.
        """
        if not self._is_fenced and not self._lease.is_valid():
            self._confirm()
        return GroupMetadata(self._application_id, self._id)

    def commit(self, commit: Callable[[GroupMetadata], None]) -> None:
        """Commit a transaction for the tasks of this process; again while the group takes others in, where it can be.

        Parameters
        ----------
        commit : callable
            Called with who commits.

        Raises
        ------
        CommitFailedError
            When the process was out of the group since it was given its tasks: others may have them.
        """
        self._commit(commit, again=Ability.REFUSED_TRANSACTIONS_STAY_OPEN in self._log.abilities)

    def commit_offsets(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit offsets for the tasks of this process, again while the group takes others in; raises as `commit`."""
        self._commit(lambda _: self._consumer.commit(offsets), again=True)

    def _confirm(self) -> None:
        """Let the group say that this process is in it: it takes no commit of anybody else.

        Raises
        ------
        CommitFailedError
        """
        until = monotonic() + _GIVE_UP_S
        while True:
            try:
                return self.commit_offsets(self._topic.position())
            except (CommitFailedError, RebalanceInProgressError, FencedError):
                raise
            except LogError as error:  # no answer: nothing can be sent now, either
                if monotonic() > until or self._stopped.wait(_PAUSE_S):
                    raise
                logger.warning("the group of %s is asked again: %s", self._application_id, error)

    def _commit(self, commit: Callable[[GroupMetadata], None], *, again: bool) -> None:
        until = monotonic() + _COMMIT_S
        while True:
            asked_s = self._lease.now_s()
            committer = self._consumer.group_metadata()
            if committer.member != self._id:
                raise CommitFailedError("This process was out of its group: others may have its tasks by now.")
            try:
                commit(committer)
                return self._lease.renew(asked_s)
            except (CommitFailedError, RebalanceInProgressError):
                if not again or monotonic() > until or self._stopped.wait(_TICK_S):
                    raise

    def _run(self) -> None:
        works_s = monotonic()
        while not self._stopped.is_set():
            try:
                with self._turn:
                    was_busy = self._tick()
                works_s = monotonic()
            except BaseException as error:
                if (
                    isinstance(error, FencedError)
                    or not isinstance(error, LogError)
                    or monotonic() - works_s > _GIVE_UP_S
                ):
                    return self._on_failure(error)
                logger.warning("the group of %s is tried again: %s", self._application_id, error)
                was_busy = bool(self._stopped.wait(_PAUSE_S))
            if not was_busy:
                self._holder.alignment.changed.wait(_TICK_S)
                self._holder.alignment.changed.clear()

    def _tick(self) -> bool:
        """Do what is to be done now; whether there was anything."""
        self._consumer.poll(0.0)
        self._topic.read()
        if self._topic.shut_down_by not in (None, self._process.process):
            raise ApplicationShutdownError(
                f"process {self._topic.shut_down_by} of {self._application_id} asked all processes to stop after an "
                "error there"
            )
        return self._is_in() and (self._follow() | self._tell() | self._lead())

    def _is_in(self) -> bool:
        """Whether it is in the group under the id for which it has its tasks; else it gives them up first."""
        committer = self._consumer.group_metadata()
        if committer.member == self._id:
            return True
        if self._id and not self._is_lost:
            self._holder.lose()
        self._is_lost = bool(self._holder.active())
        if committer.generation < 0 or self._is_lost:
            return False
        self._id = committer.member
        return True

    def _follow(self) -> bool:
        """Take what the latest assignment gives, and the latest slices."""
        latest = self._topic.latest
        self._holder.alignment.follow(dict(self._topic.slices), self._paces(self._topic.states.values()))
        if latest.version == self._version:
            return False
        if self._id in latest.shares or self._holder.active():
            share = latest.shares.get(self._id, ProcessShare())
            logger.info(
                "%s: assignment %d: this process runs %s and has standbys of %s",
                self._application_id,
                latest.version,
                ", ".join(share.active),
                ", ".join(share.standby),
            )
            self._holder.assign(frozenset(map(TaskId.parse, share.active)), frozenset(map(TaskId.parse, share.standby)))
        self._version = latest.version
        return True

    def _paces(self, states: Collection[ProcessState]) -> dict[int, Pace | None]:
        """Return the pace of all writers of each sub-topology, in all processes."""
        return {sub: pace_of(states, tasks) for sub, tasks in self._holder.alignment.writers.items()}

    def _tell(self) -> bool:
        """Let the others know what has changed here."""
        state = self._state()
        if state == self._told and state.process in self._topic.states:
            return False
        self._topic.tell(state)
        self._topic.catch_up()
        self._told = state
        return True

    def _state(self) -> ProcessState:
        running = self._holder.active()
        active, standby = (tuple(map(str, sorted(tasks))) for tasks in (running, self._holder.standby()))
        lags = {str(task): self._rounded(lag) for task, lag in self._holder.lags().items()}
        changing = {"member": self._id, "version": self._version, "active": active, "standby": standby, "lags": lags}
        changing["paces"] = self._holder.alignment.paces(running)
        return msgspec.structs.replace(self._process, **changing)

    def _rounded(self, lag: int) -> int:
        """A lag as the others are told it: often the same, so that there is seldom something to tell."""
        return 0 if lag <= self._rules.acceptable_recovery_lag else 1 << lag.bit_length()

    def _lead(self) -> bool:
        """As the leader, assign the tasks to those that are in the group."""
        if TopicPartition(self._topic.name, 0) not in self._consumer.assignment():
            return False
        states = list(self._topic.states.values())
        members = self._current_members({state.member for state in states})
        dead = [state for state in states if state.member not in members]
        for state in dead:
            logger.warning(
                "process %s of %s is no longer there: others get its tasks", state.process, self._application_id
            )
            bury(self._log, self._application_id, self._topic, state)
        alive = {state.member: state for state in states if state.member in members}
        assignment = self._next({member: msgspec.structs.replace(state, paces={}) for member, state in alive.items()})
        if assignment is not None:
            self._topic.assign(assignment, self._process.process)
        has_cut = self._cut(alive.values())
        if assignment is not None or dead or has_cut:
            self._topic.catch_up()
        return assignment is not None or has_cut

    def _cut(self, states: Collection[ProcessState]) -> bool:
        """Begin the next slices of writers that are all at the end of their slice. Return whether there were some."""
        new = self._holder.alignment.next_slices(self._topic.slices, self._paces(states))
        for sub, slice_ in new.items():
            self._topic.cut(sub, slice_, self._process.process)
        return bool(new)

    def _next(self, states: Mapping[str, ProcessState]) -> Assignment | None:
        """The assignment that follows; worked out only when there is something new."""
        inputs = self._topic.latest.version, self._holder.tasks, states
        if inputs == self._final:
            return None
        assignment = next_assignment(self._topic.latest, states, self._holder.tasks, self._rules)
        self._final = inputs if assignment is None else None
        return assignment

    def _current_members(self, announced_members: Collection[str]) -> frozenset[str]:
        """The members of the group; asked for when one is not known, the group has changed, or now and then."""
        generation = self._consumer.group_metadata().generation
        is_old = generation != self._members_of or monotonic() - self._asked_s > _MEMBERS_S
        if is_old or not self._members.issuperset(announced_members):
            members = self._admin.describe_group(self._application_id).members
            self._members = frozenset(member.id for member in members)
            self._members_of = generation
            self._asked_s = monotonic()
        return self._members
