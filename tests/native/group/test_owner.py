"""Who sends at least once where the home does not check it: the group is asked when a session has passed in silence."""

from __future__ import annotations

from typing import Any

import pytest

from kstreams.errors import CommitFailedError
from kstreams.log.api import Ability
from kstreams.log.embedded.groups.coordinator import GroupCoordinator
from kstreams.log.groups.transitions import Leave
from kstreams.runtime.native.group import member as member_module
from kstreams.runtime.native.group.member import Lease
from kstreams.runtime.native.running_client import RunningClient
from kstreams.runtime.native.streams import KafkaStreams
from tests.native.world import WAIT_S, World, tasks_of, until, word_count


class Unfenced:
    """A log that takes whatever is sent, as Kafka's brokers do."""

    def __init__(self, log: Any) -> None:
        self._log = log

    @property
    def abilities(self) -> frozenset[Ability]:
        return self._log.abilities - {Ability.FENCED_APPENDS}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


def test_a_process_asks_when_a_session_has_passed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.create("lines", 2)
    world.create("counts", 1)
    monkeypatch.setattr(member_module, "_COMMIT_TIMEOUT_S", 0.1)
    with world.log() as log:
        streams = KafkaStreams(word_count(), world.settings, log=Unfenced(log))
        streams.start()
        until(lambda: len(tasks_of(streams)) == 4)
        assert isinstance(streams._client, RunningClient)
        member = streams._client.member
        assert member is not None
        who = member.owner()  # the group confirms it
        with member._lock:  # the thread that keeps it in the group stands still
            GroupCoordinator(log._home, "app").apply(Leave(who.member, "no sign of life"))
            assert member.owner() == who
            passed_s = Lease.now_s() + 46
            monkeypatch.setattr(Lease, "now_s", staticmethod(lambda: passed_s))
            with pytest.raises(CommitFailedError):
                member.owner()
            monkeypatch.undo()
        until(lambda: member.owner().member != who.member and len(tasks_of(streams)) == 4)
        assert streams.close(WAIT_S)


def test_a_lease_ends_before_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 1_000.0
    monkeypatch.setattr(Lease, "now_s", staticmethod(lambda: now_s))
    lease = Lease(session_s=10.0)
    assert not lease.is_valid()
    lease.renew(sent_s=999.0)
    now_s = 1_007.9
    assert lease.is_valid()
    now_s = 1_008.1
    assert not lease.is_valid()
    lease.renew(sent_s=1_008.0)
    lease.renew(sent_s=1_001.0)  # an older answer that comes late
    assert lease.is_valid()
