"""The script that `spark-submit` runs as the driver: loads the application and runs it, telling how it goes."""

from __future__ import annotations

import json
import sys
from typing import Any

from kstreams import app as application
from kstreams.errors import KStreamsError


def main(request: dict[str, Any]) -> int:
    """Run what was asked for; the exit status."""
    try:
        loaded = application.load_app(request["app"], request["settings"])
        application.run(loaded, engine="spark", once=request["once"], until_end=request["until_end"], on_progress=tell)
    except KStreamsError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


def tell(progress: Any) -> None:
    """One line for every step."""
    written = sum(progress.records_out.values())
    dropped = sum(progress.dropped.values())
    line = f"in {progress.records_in:,}, out {written:,}, dropped {dropped:,}, lag {progress.lag:,}"
    print(line, file=sys.stderr, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
