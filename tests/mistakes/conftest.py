"""The hand that types commands, as the tests of the command line have it."""

from __future__ import annotations

from tests.cli.conftest import kstreams

__all__ = ["kstreams"]
