"""`connector_places`: chooses for each connector whether its tasks run in the driver or on the executors."""

from __future__ import annotations

from collections.abc import Mapping

from kstreams.errors import ConfigError
from kstreams.log.naming import did_you_mean
from kstreams.processor.topology.connectors import Connector, DeclaredSource
from kstreams.processor.topology.topology import Topology
from kstreams.runtime.spark.settings import CONNECTORS, ConnectorPlace, ConnectorSettings


def connector_places(topology: Topology, settings: ConnectorSettings) -> Mapping[str, ConnectorPlace]:
    """Return the place of each connector, by its name.

    The choice for the application holds for connectors that can run on executors. A task there runs until its source
    or topic has nothing more, and is started anew later. So a source that keeps a connection open stays in the driver.

    Raises
    ------
    ConfigError
        If the settings name a connector that does not exist, or that cannot run on executors.
    """
    connectors = {connector.name: connector for connector in topology.connectors}
    for name, place in settings.connectors.items():
        if name not in connectors:
            raise ConfigError(f"{CONNECTORS}.{name}: there is no connector {name!r}.{did_you_mean(name, connectors)}")
        connector = connectors[name]
        if place == "executors" and isinstance(connector, DeclaredSource) and not _ends(connector):
            raise ConfigError(
                f"{CONNECTORS}.{name} cannot be 'executors': {connector.source!r} stays open between reads, and tasks "
                "on executors end. Files can be read there."
            )
    defaults = {name: _default(connector, settings) for name, connector in connectors.items()}
    return {**defaults, **settings.connectors}


def _default(connector: Connector, settings: ConnectorSettings) -> ConnectorPlace:
    stays_open = isinstance(connector, DeclaredSource) and not _ends(connector)
    return "driver" if stays_open else settings.application


def _ends(declared: DeclaredSource) -> bool:
    return declared.source.is_finished_in_turn
