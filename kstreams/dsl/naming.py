"""Names of operators, from one counter per builder exactly as Kafka Streams: internal topics are named after them."""

from __future__ import annotations

import re

from kstreams.errors import TopologyError
from kstreams.kernel.source_line import declared_at

_VALID = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_GENERATED = re.compile(r"KSTREAM.*-[0-9]{10}-repartition")


def validate_name(name: str) -> str:
    """The name, if a topic could carry it.

    Raises
    ------
    TopologyError
        When it is empty, `.`, `..`, longer than 249 characters, or has others than letters, digits, `.`, `_` and `-`.
    """
    if name in {".", ".."} or not _VALID.fullmatch(name):
        raise TopologyError(
            f"{name!r} cannot be a name: use 1 to 249 letters, digits, '.', '_' and '-', and neither '.' nor '..'"
        )
    return name


def check_topic(topic: object, operator: str) -> None:
    """Raise a TopologyError, which names the operator and its line, unless a topic may have this name."""
    if not isinstance(topic, str):
        raise TopologyError(f"{operator} at {declared_at()} takes the name of a topic, not {topic!r}")
    if topic in {".", ".."} or not _VALID.fullmatch(topic):
        raise TopologyError(
            f"{operator} at {declared_at()} is given {topic!r}, which no topic can be called: use 1 to 249 letters, "
            "digits, '.', '_' and '-'"
        )


class Names:
    """Hands out names from one counter. An operator takes its number even when the user names it.

    Examples
    --------
    >>> names = Names()
    >>> names.next("KSTREAM-SOURCE-"), names.next("KSTREAM-FILTER-")
    ('KSTREAM-SOURCE-0000000000', 'KSTREAM-FILTER-0000000001')
    """

    def __init__(self) -> None:
        self._next = 0
        self.generated: set[str] = set()
        """What was made up so far."""

    def next(self, prefix: str) -> str:
        """The next generated name."""
        number = self._next
        self._next += 1
        return self._made_up(f"{prefix}{number:010d}")

    def sibling(self, generated: str, prefix: str) -> str:
        """Another name with the number of a generated one; it takes none itself."""
        return self._made_up(f"{prefix}{generated[-10:]}")

    def given_or_next(self, name: str | None, prefix: str) -> str:
        """The user's name, or the generated one; the number is taken in both cases."""
        generated = self.next(prefix)
        return generated if name is None else validate_name(name)

    def _made_up(self, name: str) -> str:
        self.generated.add(name)
        return name


def repartition_topic(prefix: str) -> str:
    """The repartition topic of a prefix, without the application id."""
    validate_name(prefix)
    return prefix if prefix.endswith("-repartition") else f"{prefix}-repartition"


def repartition_nodes(names: Names, topic: str) -> tuple[str, str, str]:
    """Names of the sink, the filter and the source around a repartition topic; they always take three numbers."""
    generated = names.next("KSTREAM-SINK-"), names.next("KSTREAM-FILTER-"), names.next("KSTREAM-SOURCE-")
    if _GENERATED.fullmatch(topic):
        return generated
    return f"{topic}-sink", f"{topic}-filter", f"{topic}-source"
