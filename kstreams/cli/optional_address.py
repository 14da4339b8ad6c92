"""`ServingCommand`: a command whose option `--serve` has an optional value, which Typer does not support."""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperCommand

OPTION = "--serve"
ANY_PORT = "127.0.0.1:0"
_ADDRESS = re.compile(r"((\[[^\]]*\]|[^:\s]*):)?\d+")


class ServingCommand(TyperCommand):
    """A command whose option `--serve` has the value `ANY_PORT` if no address follows it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        parsed: list[str] = super().parse_args(ctx, with_addresses(args))
        return parsed


def with_addresses(arguments: list[str]) -> list[str]:
    """Return the arguments of a command, with an address after each `--serve`.

    Examples
    --------
    >>> with_addresses(["--serve", "app.py"])
    ['--serve=127.0.0.1:0', 'app.py']
    >>> with_addresses(["app.py", "--serve", "0.0.0.0:8080"])
    ['app.py', '--serve', '0.0.0.0:8080']
    >>> with_addresses(["app.py:topology", "--serve=[::1]:8080"])
    ['app.py:topology', '--serve=[::1]:8080']
    """
    followers = [*arguments, ""][1:]
    return [
        f"{OPTION}={ANY_PORT}" if argument == OPTION and not _ADDRESS.fullmatch(follower) else argument
        for argument, follower in zip(arguments, followers, strict=True)
    ]
