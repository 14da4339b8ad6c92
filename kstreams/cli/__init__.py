"""The command line: `kstreams`. One command per file; engines are imported only when a command needs them."""

from kstreams.cli.main import main

__all__ = ["main"]
