"""Without PySpark, the engine can be imported and explains an application, and a run says how to install PySpark."""

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


EXPLAIN = """
import sys
sys.modules["pyspark"] = None
import kstreams as ks
import kstreams.runtime.spark.engine as engine
from kstreams.config import Config
builder = ks.StreamsBuilder()
builder.stream("words", key=str, value=str).map_values(str.upper, value=str, name="upper").to("loud")
rows = engine.explain(builder.build(), Config.of({"application.id": "app"}))
print({row.operator: row.path for row in rows}["upper"])
"""


def test_an_application_is_explained_without_pyspark() -> None:
    done = subprocess.run([sys.executable, "-c", EXPLAIN], capture_output=True, text=True, check=False)
    assert done.stdout == "task\n", done.stderr
