"""HDFS on this machine: Hadoop's own cluster for tests, a name node and a data node in one process."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kstreams.runtime.spark.cluster.jars import Coordinate, JarSet, spark_jars

MINICLUSTER = JarSet(
    folder="hdfs-for-tests",
    purpose="tests on HDFS",
    without="leave them out",
    coordinates=(
        Coordinate("org.apache.hadoop", "hadoop-client-minicluster", "3.5.0"),
        Coordinate("org.junit.jupiter", "junit-jupiter-api", "5.12.2"),
    ),
    artifact_ids=("hadoop-client-minicluster", "junit-jupiter-api", "junit-platform-commons", "opentest4j"),
)


@contextmanager
def hdfs_cluster(folder: Path) -> Iterator[str]:
    """The address of a name node, `hdfs://127.0.0.1:<port>`, while the block runs."""
    import pyspark

    ours = (Path(pyspark.__file__).parent / "jars").glob("*.jar")
    jars = ":".join(map(str, [*spark_jars(MINICLUSTER), *ours]))
    details = folder / "details.json"
    command = ["java", "-Xmx256m", "-cp", jars, "org.apache.hadoop.test.MiniDFSClusterManager"]
    command += ["-format", "-datanodes", "1", "-writeDetails", str(details), "-D", "dfs.replication=1"]
    with (folder / "out.txt").open("wb") as out:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + 300
        while not details.exists() or not details.stat().st_size:
            alive = process.poll() is None and time.monotonic() < deadline
            assert alive, f"HDFS does not start: {(folder / 'out.txt').read_text()[-2000:]}"
            time.sleep(0.1)
        yield f"hdfs://127.0.0.1:{json.loads(details.read_text())['namenode_port']}"
    finally:
        process.kill()
        process.wait()
