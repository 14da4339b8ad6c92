"""The command line: `kstreams`. One command per file; engines are imported only when a command needs them."""

import sys

from kstreams.own_files import damage

if _damage := damage():

    def main() -> int:
        """Print why no command can run."""
        sys.stderr.write(f"kstreams: {_damage}\n")
        return 1

else:
    from kstreams.cli.main import main

__all__ = ["main"]
