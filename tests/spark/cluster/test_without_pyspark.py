"""Without PySpark, the engine can be imported, and a run says how to install PySpark."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
sys.modules["pyspark"] = None
import kstreams.runtime.spark.engine as engine
from kstreams.errors import EngineUnavailableError
try:
    engine.run(None, None)
except EngineUnavailableError as error:
    print(error)
"""


def test_a_run_without_pyspark_says_how_to_install_it() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("PySpark is not installed: install it with"), done.stderr
