"""`PathChoices`: the paths that the settings choose for sub-topologies; an impossible choice is an error."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from kstreams.errors import ConfigError
from kstreams.kernel.advice import nearest_name
from kstreams.runtime.spark.settings import PATH, PathChoice, PathSettings

Reasons = dict[str, str | None]
"""By operator of a sub-topology: the reason why it cannot take the relational path."""


class Choice(NamedTuple):
    """The chosen path, and the setting that chooses it."""

    path: PathChoice
    key: str


class PathChoices:
    """The choices of the settings. A choice for an operator applies to its whole sub-topology, and to its whole query.

    Parameters
    ----------
    settings : PathSettings
    operators : mapping of int to collection of str
        The names of the operators of each sub-topology.
    before : mapping of int to collection of int
        By stateful sub-topology: the upstream sub-topologies, whose records it reads through repartition topics. A
        relational query includes them, so a choice for the query also applies to them, unless they have their own.

    Raises
    ------
    ConfigError
        If there is no such operator, or the choices for two operators of one sub-topology differ.
    """

    def __init__(
        self, settings: PathSettings, operators: Mapping[int, Collection[str]], before: Mapping[int, Collection[int]]
    ) -> None:
        self._settings = settings
        self._operators = operators
        for name in settings.operators:
            _require_operator(name, {name for names in operators.values() for name in names})
        self._choices = {number: self._choice(names) for number, names in operators.items()}
        explicit = {number: choice for number, choice in self._choices.items() if choice.key != PATH}
        for number, choice in explicit.items():
            if choice.path == "relational":
                self._choices |= {other: choice for other in before.get(number, ()) if other not in explicit}

    def __getitem__(self, number: int) -> Choice:
        """Return the choice for a sub-topology."""
        return self._choices[number]

    def require_relational(self, reasons: Mapping[int, Reasons]) -> None:
        """Raise ConfigError, with the reason, if the settings make an operator relational and it must run as a task."""
        for name in (name for name, path in self._settings.operators.items() if path == "relational"):
            for number in (number for number, names in self._operators.items() if name in names):
                refusals = {other: reason for other, reason in reasons[number].items() if reason}
                if refusals:
                    raise ConfigError(f"{PATH}.{name} cannot be relational: {_obstacle(name, refusals)}")

    def _choice(self, names: Collection[str]) -> Choice:
        """Return the choice for a sub-topology with these operators."""
        choices = [Choice(path, f"{PATH}.{name}") for name, path in self._settings.operators.items() if name in names]
        _require_one(choices)
        return choices[0] if choices else Choice(self._settings.application, PATH)


def _require_operator(name: str, operators: Collection[str]) -> None:
    if name not in operators:
        nearest = nearest_name(name, sorted(operators))
        hint = f"; the nearest is {nearest}" if nearest else ""
        raise ConfigError(f"{PATH}.{name}: there is no operator {name}{hint}; `kstreams explain` shows all")


def _require_one(choices: Sequence[Choice]) -> None:
    for other in choices[1:]:
        if other.path != choices[0].path:
            raise ConfigError(
                f"{choices[0].key} is {choices[0].path} and {other.key} is {other.path}, "
                "but they are in one sub-topology, which takes one path: a repartition between them makes two"
            )


def _obstacle(name: str, reasons: Mapping[str, str]) -> str:
    if name in reasons:
        return reasons[name]
    other, reason = next(iter(reasons.items()))
    return f"{other} is in the same sub-topology, and {reason}; a repartition between them makes two sub-topologies"
