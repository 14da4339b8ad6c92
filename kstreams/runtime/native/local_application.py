"""`LocalApplication`: the settings and the state of an application in this process, whether it runs or not."""

from __future__ import annotations

import threading
from collections.abc import Collection

from kstreams.config import Config
from kstreams.errors import ConfigError
from kstreams.log.api import Ability
from kstreams.log.schema_registries import ApplicationRegistry
from kstreams.processor.topology.topology import Topology
from kstreams.runtime.native.lifecycle import Lifecycle, State
from kstreams.runtime.native.runtime_context import consumer_settings
from kstreams.runtime.native.uncaught_exceptions import UncaughtExceptionHandler, shut_down_client


class LocalApplication:
    """An application in this process, whether it runs or not.

    Parameters
    ----------
    topology : Topology
    config : Config

    Attributes
    ----------
    topology : Topology
        The topology, with serdes that know their topics.
    registry : ApplicationRegistry
        The schema registry of the serdes.
    lifecycle : Lifecycle
        The state, and the listener of state changes.
    paused : Event
        Set while the application is paused.
    exception_handler : callable
        Called when an error ends a thread.
    error : BaseException or None
        The error that ended the application in state ERROR.
    leaves_for_good : bool
        True if a static member leaves the group when the application is closed.
    """

    def __init__(self, topology: Topology, config: Config) -> None:
        self.registry = ApplicationRegistry(config)
        named = topology.with_connector_topics(config.application_id)
        self.topology = named.bound(config, self.registry)
        self.config = config
        self.lifecycle = Lifecycle()
        self.paused = threading.Event()
        self.exception_handler: UncaughtExceptionHandler = shut_down_client
        self.error: BaseException | None = None
        self.leaves_for_good = False

    def close(self, leave_group: bool | None, abilities: Collection[Ability]) -> bool:
        """Begin to close. Return False if the application is closing or closed.

        Parameters
        ----------
        leave_group : bool or None
            Whether a static member leaves the group. None keeps what an earlier call has chosen.
        abilities : collection of Ability
            The abilities of the home of topics.
        """
        if leave_group is not None:
            self._check_leave(leave_group, abilities)
            self.leaves_for_good = leave_group
        is_first = self.lifecycle.move(State.PENDING_SHUTDOWN)
        if is_first:
            self.registry.give_up()
        return is_first

    def _check_leave(self, leave_group: bool, abilities: Collection[Ability]) -> None:
        instance = consumer_settings(self.config, "main").get("group.instance.id")
        if not leave_group and instance is None:
            raise ConfigError(
                "only a static member remains in the group of its application when it closes: set "
                "consumer.group.instance.id, or leave out leave_group=False"
            )
        if leave_group and instance is not None and Ability.LEAVES_OF_STATIC_MEMBERS not in abilities:
            raise ConfigError(
                f"the static member {instance!r} cannot leave the group of its application: Kafka's client has no "
                "request for it. Leave out leave_group=True: its session ends after session.timeout.ms"
            )
