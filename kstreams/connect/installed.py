"""Sources and sinks by their names: those of kstreams, and those that installed packages bring as entry points."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Generic, TypeVar

from kstreams import sinks, sources
from kstreams.connect.tables import unknown_name
from kstreams.connectors.api import Sink, Source
from kstreams.errors import ConnectorError

C = TypeVar("C", Source, Sink)


@dataclass(frozen=True, slots=True)
class InstalledConnectors(Generic[C]):
    """The functions that make connectors of one kind. Kafka Connect: the plugins of a worker.

    A package brings a function by an entry point, under the name that files and commands use:

        [project.entry-points."kstreams.sources"]
        mqtt = "kstreams_mqtt:mqtt_source"

    Parameters
    ----------
    kind : type
        `Source` or `Sink`.
    module : module
        The functions of kstreams: `kstreams.sources` or `kstreams.sinks`. It is also the group of entry points.

    Examples
    --------
    >>> SOURCES.function("csv")("in/*.csv")
    FileSource('in/*.csv')
    """

    kind: type[C]
    module: ModuleType

    @property
    def noun(self) -> str:
        """The kind in errors: "source" or "sink"."""
        return self.kind.__name__.lower()

    def names(self) -> list[str]:
        """Return the names of all functions, in alphabetical order.

        Examples
        --------
        >>> SINKS.names()[:3]
        ['delta', 'files', 'http']
        """
        return sorted({*self._own_names(), *(entry.name for entry in self._entries())})

    def function(self, name: str) -> Callable[..., C]:
        """Return the function of a name. A function of kstreams goes before that of a package.

        Raises
        ------
        ConnectorError
            If no function has this name, or its package cannot be imported.
        """
        if name in self._own_names():
            function: Callable[..., C] = getattr(self.module, name)
            return function
        for entry in self._entries():
            if entry.name == name:
                return self._imported(entry)
        raise ConnectorError(unknown_name(self.noun, name, self.names()))

    def _own_names(self) -> list[str]:
        return [name for name, member in vars(self.module).items() if self._makes_connectors(name, member)]

    def _makes_connectors(self, name: str, member: object) -> bool:
        if name.startswith("_") or not inspect.isfunction(member):
            return False
        return str(inspect.signature(member).return_annotation).endswith(self.kind.__name__)

    def _entries(self) -> list[EntryPoint]:
        return list(entry_points(group=self.module.__name__))

    def _imported(self, entry: EntryPoint) -> Callable[..., C]:
        package = "a package" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
        try:
            function: Callable[..., C] = entry.load()
        except (ImportError, AttributeError) as error:
            raise ConnectorError(
                f"the {self.noun} {entry.name!r} of {package} cannot be imported from {entry.value}: {error}"
            ) from error
        if not callable(function):
            raise ConnectorError(f"the {self.noun} {entry.name!r} of {package} is no function: {entry.value}")
        return function


SOURCES = InstalledConnectors(Source, sources)
"""The functions that make sources: of `ks.sources`, and of the entry points `kstreams.sources`."""

SINKS = InstalledConnectors(Sink, sinks)
"""The functions that make sinks: of `ks.sinks`, and of the entry points `kstreams.sinks`."""
