"""Whether an application that is closed leaves its group: dynamic members, and static ones."""

from __future__ import annotations

from pathlib import Path

import pytest

import kstreams as ks
from kstreams.errors import ConfigError
from kstreams.runtime.native.lifecycle import State
from tests.native.world import World, until

STATIC = {"consumer.group.instance.id": "one"}


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.create("in")
    return world


def members_after(world: World, leave_group: bool | None, **settings: str) -> int:
    """How many members the group has when the application is closed."""
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).to("out")
    streams = world.streams(builder.build(), **settings)
    streams.start()
    until(lambda: streams.state is State.RUNNING)
    try:
        assert streams.close(leave_group=leave_group)
    finally:
        streams.close()
    with world.log() as log, log.admin() as admin:
        return len(admin.describe_group(world.settings["application.id"]).members)


@pytest.mark.parametrize("leave_group", [None, True])
def test_a_member_leaves(world: World, leave_group: bool | None) -> None:
    assert members_after(world, leave_group) == 0


@pytest.mark.parametrize(("leave_group", "members"), [(None, 1), (False, 1), (True, 0)])
def test_a_static_member_remains_unless_it_is_to_leave(world: World, leave_group: bool | None, members: int) -> None:
    assert members_after(world, leave_group, **STATIC) == members


def test_only_a_static_member_can_remain(world: World) -> None:
    with pytest.raises(ConfigError, match=r"set consumer\.group\.instance\.id, or leave out leave_group=False"):
        members_after(world, False)
