"""An application whose state is exported and imported natively."""

from __future__ import annotations

from typing import Any

import kstreams as ks
from kstreams.app import App, export_state, import_state
from kstreams.config import Config
from kstreams.state.bundle import Bundle
from tests.native.world import World, lines, word_count


def application(world: World, topology: ks.Topology, **settings: Any) -> App:
    given = {key.replace("_", "."): value for key, value in settings.items()}
    return App(topology, Config.of({**world.settings, **given}), world.folder / "app.py")


def export(world: World, topology: ks.Topology, name: str = "bundle", **settings: Any) -> Bundle:
    return export_state(application(world, topology, **settings), world.folder / name)


def take(world: World, topology: ks.Topology, name: str = "bundle", replace: bool = True, **settings: Any) -> None:
    import_state(application(world, topology, **settings), world.folder / name, replace=replace)


def exported(world: World, rows: int = 40) -> Bundle:
    """The state of a word count over two partitions that has run."""
    world.create("lines", 2)
    world.write("lines", lines(rows))
    world.run(word_count(), once=True)
    return export(world, word_count())


def unlogged() -> ks.Topology:
    topology = ks.Topology().add_source("in", "in", key=str, value=str).add_processor("keep", Keep, "in")
    kept = ks.Stores.key_value("kept", key=str, value=str, logging=False)
    return topology.add_state_store(kept, "keep").add_sink("out", "out", "keep", key=str, value=str)


class Keep(ks.Processor):
    """Forwards what it was given for the key before."""

    def init(self, context: Any) -> None:
        self.context, self.kept = context, context.get_state_store("kept")

    def process(self, record: Any) -> None:
        self.context.forward(record.with_value(str(self.kept.get(record.key))))
        self.kept.put(record.key, record.value)
