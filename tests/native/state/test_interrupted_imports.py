"""An import whose process dies counts for nothing before it is whole, and for all of it after."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from kstreams.errors import StateError
from tests.native.bundles import export, exported, take, unlogged
from tests.native.world import World, counted, lines, word_count

KILLED = """
import os, sys
from kstreams.log.embedded.producer import EmbeddedProducer
from kstreams.runtime.native.state.topology_file import TopologyFile
from tests.native import bundles
from tests.native.world import World, word_count
from pathlib import Path

_, folder, topology, owner, function, calls = sys.argv
calls = [None] * int(calls)
works = getattr(eval(owner), function)

def dies(*arguments):
    calls.pop()
    return works(*arguments) if calls else os._exit(9)

setattr(eval(owner), function, dies)
bundles.take(World(Path(folder)), getattr(bundles, topology)())
"""


def kill(world: World, topology: str, owner: str, function: str, calls: int = 1) -> None:
    """Import in another process, which dies when it calls a function, the first time or later."""
    where = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", KILLED, str(world.folder), topology, owner, function, str(calls)]
    assert subprocess.run(command, env=where, check=False).returncode == 9


@pytest.mark.slow
@pytest.mark.parametrize("owner", ["EmbeddedProducer", "TopologyFile"], ids=["before it counts", "after"])
def test_a_store_without_a_changelog_counts_when_the_import_does(world: World, owner: str) -> None:
    world.create("in")
    world.write("in", [("k", "a", 0)])
    world.run(unlogged(), once=True)
    export(world, unlogged())
    kill(world, "unlogged", owner, {"EmbeddedProducer": "commit_transaction", "TopologyFile": "accept"}[owner])
    world.write("in", [("k", "b", 1)])
    world.run(unlogged(), once=True)
    from_the_beginning, going_on = ["None", "None", "a"], ["None", "a"]
    assert [row.value for row in world.rows("out")] == (going_on if owner == "TopologyFile" else from_the_beginning)


def test_of_an_interrupted_import_nothing_counts(world: World) -> None:
    exported(world)
    kill(world, "word_count", "bundles.Bundle", "rows", 4)
    copied = World(world.folder / "copy")
    shutil.copytree(world.folder, copied.folder, ignore=shutil.ignore_patterns("copy"))
    with pytest.raises(StateError, match="has state already: import with --replace"):
        take(world, word_count(), replace=False)
    take(world, word_count())
    world.write("lines", lines(30, 40))
    world.run(word_count(), once=True)
    assert world.table("counts", value=int) == counted(70)
    copied.run(word_count(), once=True, processing_guarantee="exactly_once_v2")  # without it: from the beginning
    assert [row.value for row in copied.rows("counts", value=int) if row.key == "all"][-1] == 40
