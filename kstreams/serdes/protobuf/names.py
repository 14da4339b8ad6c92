"""Names in the style of Protobuf, and the Python expressions of fields."""

from __future__ import annotations

import keyword
import re

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORD_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def is_identifier(name: str) -> bool:
    """True if a name is valid in a `.proto` file.

    Examples
    --------
    >>> is_identifier("order_id"), is_identifier("größe"), is_identifier("a-b")
    (True, False, False)
    """
    return _IDENTIFIER.fullmatch(name) is not None


def snake_case(name: str) -> str:
    """Return a name in snake case.

    Examples
    --------
    >>> snake_case("OrderItem"), snake_case("HTTPCall")
    ('order_item', 'http_call')
    """
    return _WORD_BOUNDARY.sub("_", name).lower()


def without_prefix(name: str, enum: str) -> str:
    """Remove the name of the enum from the name of a value. `.proto` files use it as a prefix.

    Examples
    --------
    >>> without_prefix("ORDER_STATUS_PAID", "OrderStatus"), without_prefix("PAID", "OrderStatus")
    ('PAID', 'PAID')
    """
    return name.removeprefix(f"{snake_case(enum).upper()}_")


def attribute(owner: str, name: str) -> str:
    """Return the Python expression that reads the field of a message.

    Examples
    --------
    >>> attribute("m", "id"), attribute("m", "from")
    ('m.id', "getattr(m, 'from')")
    """
    return f"getattr({owner}, {name!r})" if keyword.iskeyword(name) else f"{owner}.{name}"
