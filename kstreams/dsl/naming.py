"""Names of operators, from one counter per builder as in Kafka Streams, since internal topics have these names."""

from __future__ import annotations

import re

from kstreams.errors import TopologyError
from kstreams.kernel.source_line import declared_at

_VALID = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_GENERATED = re.compile(r"KSTREAM.*-[0-9]{10}-repartition")


def validate_name(name: str) -> str:
    """Return the name if it is a valid name of a topic.

    Raises
    ------
    TopologyError
        If it is empty, `.`, `..`, longer than 249 characters, or has other characters than letters, digits, `.`, `_`
        and `-`.
    """
    if name in {".", ".."} or not _VALID.fullmatch(name):
        raise TopologyError(
            f"{name!r} cannot be a name: use 1 to 249 letters, digits, '.', '_' and '-', and neither '.' nor '..'"
        )
    return name


def check_topic(topic: object, operator: str) -> None:
    """Raise a TopologyError that names the operator and its line, unless the name is valid for a topic."""
    if not isinstance(topic, str):
        raise TopologyError(f"{operator} at {declared_at()} takes the name of a topic, not {topic!r}")
    if topic in {".", ".."} or not _VALID.fullmatch(topic):
        raise TopologyError(
            f"{operator} at {declared_at()} is given {topic!r}, which no topic can be called: use 1 to 249 letters, "
            "digits, '.', '_' and '-'"
        )


class Names:
    """Generates names from one counter. An operator takes a number even if the user names it.

    Examples
    --------
    >>> names = Names()
    >>> names.next("KSTREAM-SOURCE-"), names.next("KSTREAM-FILTER-")
    ('KSTREAM-SOURCE-0000000000', 'KSTREAM-FILTER-0000000001')
    """

    def __init__(self) -> None:
        self._next = 0
        self.generated: set[str] = set()
        """The names that are generated so far."""

    def next(self, prefix: str) -> str:
        """Return the next generated name."""
        number = self._next
        self._next += 1
        return self._generated(f"{prefix}{number:010d}")

    def sibling(self, generated: str, prefix: str) -> str:
        """Return another name with the number of a generated name."""
        return self._generated(f"{prefix}{generated[-10:]}")

    def given_or_next(self, name: str | None, prefix: str) -> str:
        """Return the name of the user, or else a generated one; both take a number."""
        generated = self.next(prefix)
        return generated if name is None else validate_name(name)

    def _generated(self, name: str) -> str:
        self.generated.add(name)
        return name


def repartition_topic(prefix: str) -> str:
    """Return the name of a repartition topic, without the application id."""
    validate_name(prefix)
    return prefix if prefix.endswith("-repartition") else f"{prefix}-repartition"


def repartition_nodes(names: Names, topic: str) -> tuple[str, str, str]:
    """Return the names of the sink, filter and source of a repartition topic; they always take three numbers."""
    generated = names.next("KSTREAM-SINK-"), names.next("KSTREAM-FILTER-"), names.next("KSTREAM-SOURCE-")
    if _GENERATED.fullmatch(topic):
        return generated
    return f"{topic}-sink", f"{topic}-filter", f"{topic}-source"
