"""A program under plain PySpark, in a process that cannot import kstreams."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from kstreams.runtime.spark.cluster.jars import DELTA_AND_KAFKA, spark_jars

_WITHOUT_KSTREAMS = (
    "import runpy, sys; sys.modules['kstreams'] = None; sys.argv = sys.argv[1:]; "
    "runpy.run_path(sys.argv[0], run_name='__main__')"
)


def run_program(program: Path) -> subprocess.CompletedProcess[str]:
    """Run a program until it has read what its topics hold now."""
    jars = ",".join(str(jar) for jar in spark_jars(DELTA_AND_KAFKA))
    conf = {
        "spark.jars": jars,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    }
    settings = " ".join(f"--conf '{key}={value}'" for key, value in conf.items())
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["PYSPARK_SUBMIT_ARGS"] = f"--master local[2] --driver-memory 1g {settings} pyspark-shell"
    environment["PYSPARK_PYTHON"] = sys.executable
    command = [sys.executable, "-c", _WITHOUT_KSTREAMS, str(program), "--once"]
    return subprocess.run(
        command, cwd=program.parent, env=environment, capture_output=True, text=True, check=False, timeout=900
    )
