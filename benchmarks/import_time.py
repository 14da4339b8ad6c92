"""How long `import kstreams` takes in a fresh interpreter, beside the interpreter itself."""

from __future__ import annotations

import subprocess
import sys
import time


def run() -> dict[str, float]:
    """Seconds of wall time, the best of five."""
    bare, whole = _seconds("pass"), _seconds("import kstreams")
    pyarrow = _seconds("import pyarrow, pyarrow.compute, numpy, msgspec")
    return {
        "interpreter alone (s)": bare,
        "import pyarrow, numpy, msgspec (s)": pyarrow - bare,
        "import kstreams, with these (s)": whole - bare,
    }


def _seconds(statement: str) -> float:
    return min(_once(statement) for _ in range(5))


def _once(statement: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return time.perf_counter() - start
