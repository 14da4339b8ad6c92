"""`Table`: a table of a connect file, which knows its place and refuses keys that nobody reads."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kstreams.errors import ConfigError
from kstreams.kernel.advice import nearest_name

_HEADING = re.compile(r"\s*\[+\s*([^\]]+?)\s*\]+\s*(?:#.*)?")
_VARIABLE = re.compile(r"\$\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a connect file, for errors and for `explain`.

    Parameters
    ----------
    file : str
        The file, with the number of a line if it is known.
    path : tuple of str
        The names that lead to the place.

    Examples
    --------
    >>> print(Place("trades.toml:12", ("sinks.large",)).at("transform 1").error("no"))
    trades.toml:12: sinks.large: transform 1: no
    """

    file: str
    path: tuple[str, ...] = ()

    def at(self, name: str) -> Place:
        """Return a place within this one."""
        return Place(self.file, (*self.path, name))

    def error(self, problem: object) -> ConfigError:
        """Return the error of this place."""
        return ConfigError(": ".join([self.file, *self.path, str(problem)]))

    def unknown(self, noun: str, name: str, names: Collection[str]) -> ConfigError:
        """Return the error for a name that does not exist, with the nearest one.

        Examples
        --------
        >>> print(Place("trades.toml").unknown("transform", "fitler", ["filter", "key"]))
        trades.toml: there is no transform 'fitler'; did you mean 'filter'? There are: filter, key
        """
        return self.error(unknown_name(noun, name, names))


def unknown_name(noun: str, name: str, names: Collection[str]) -> str:
    """Return the message for a name that does not exist, with the nearest one."""
    near = nearest_name(name, names)
    hint = "" if near is None else f"did you mean {near!r}? "
    return f"there is no {noun} {name!r}; {hint}There are: {', '.join(names)}"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a connect file.

    Parameters
    ----------
    place : Place
    entries : mapping of str to object
    """

    place: Place
    entries: Mapping[str, object]

    def require_keys(self, *keys: str) -> None:
        """Raise ConfigError if the table has any other key."""
        for name in self.entries:
            if name not in keys:
                raise self.place.unknown("key", name, keys)

    def text(self, key: str) -> str:
        """Return a text that the table must have."""
        if key not in self.entries:
            raise self.place.error(f"{key} is missing: write {key} = ...")
        return self._text(key, self.entries[key])

    def text_or(self, key: str, default: str) -> str:
        """Return a text, or a default."""
        return self._text(key, self.entries.get(key, default))

    def number(self, key: str) -> int | None:
        """Return a positive number. None if the table has no such key."""
        value = self.entries.get(key)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise self.place.error(f"{key} is a number above 0, not {value!r}")
        return value

    def texts(self, key: str) -> list[str]:
        """Return a list of texts; an empty one if the table has no such key."""
        return texts(self.entries.get(key, []), self.place.at(key))

    def table(self, key: str) -> Table:
        """Return a table in this one; an empty one if there is none."""
        return Table(self.place.at(key), as_table(self.entries.get(key, {}), self.place.at(key)))

    def without(self, *keys: str) -> Table:
        """Return the table without some keys."""
        return Table(self.place, {name: value for name, value in self.entries.items() if name not in keys})

    def _text(self, key: str, value: object) -> str:
        if not isinstance(value, str):
            raise self.place.error(f"{key} is a text in quotes, not {value!r}")
        return value


def as_table(value: object, place: Place) -> Mapping[str, object]:
    """Return a value that must be a table."""
    if not isinstance(value, Mapping):
        raise place.error(f"this is a table, such as {{ name = ... }}, not {value!r}")
    return value


def texts(value: object, place: Place) -> list[str]:
    """Return a value that must be a list of texts."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise place.error(f'this is a list of texts, such as ["symbol", "price"], not {value!r}')
    return value


def heading_lines(text: str) -> dict[str, int]:
    """Return the line of each heading of a TOML file.

    Examples
    --------
    >>> heading_lines('[application]\\nid = "a"\\n\\n[sinks."large"]  # all')
    {'application': 1, 'sinks.large': 4}
    """
    matches = ((number, _HEADING.fullmatch(line)) for number, line in enumerate(text.splitlines(), 1))
    return {match[1].replace('"', "").replace(" ", ""): number for number, match in matches if match is not None}


class Variables:
    """The variables of the environment in the texts of a connect file, as `${NAME}`. Their values are secrets.

    Parameters
    ----------
    environment : mapping of str to str
    place : Place

    Attributes
    ----------
    values : dict of str to str
        The variables that the file uses.
    """

    def __init__(self, environment: Mapping[str, str], place: Place) -> None:
        self._environment = environment
        self._place = place
        self.values: dict[str, str] = {}

    def filled(self, tree: object) -> object:
        """Return tables, lists and texts with the values of variables.

        Raises
        ------
        ConfigError
            If a variable is not set.

        Examples
        --------
        >>> Variables({"PASSWORD": "tiger"}, Place("a.toml")).filled({"url": ["postgresql://ada:${PASSWORD}@db"]})
        {'url': ['postgresql://ada:tiger@db']}
        """
        if isinstance(tree, str):
            return _VARIABLE.sub(self._value, tree)
        if isinstance(tree, Mapping):
            return {name: self.filled(value) for name, value in tree.items()}
        return [self.filled(value) for value in tree] if isinstance(tree, list) else tree

    def _value(self, match: re.Match[str]) -> str:
        name = match[1]
        if name not in self._environment:
            near = nearest_name(name, self._environment)
            hint = "set it" if near is None else f"did you mean ${{{near}}}?"
            raise self._place.error(f"the environment has no variable {name}: {hint}")
        self.values[name] = self._environment[name]
        return self.values[name]
