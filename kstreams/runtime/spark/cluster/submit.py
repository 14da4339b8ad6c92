"""`submit`: runs an application on a Spark cluster by `spark-submit`, in client mode, with this interpreter.

The driver runs here, with the application's file as it lies; workers get kstreams as a zip and the user's functions by
value. What kstreams depends on (pyarrow, msgspec, ...) must be installed where the workers run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kstreams.errors import EngineUnavailableError
from kstreams.package_folder import PACKAGE
from kstreams.runtime.spark.cluster.session import COMMON, DELTA, quiet, require_java, require_pyspark, with_jars
from kstreams.runtime.spark.settings import OWN, SparkSettings

_READ_BY_US = (OWN, "spark.hadoop.")


def submit(
    app: str | Path,
    master: str,
    settings: Mapping[str, Any] | None = None,
    *,
    until_end: bool = False,
    once: bool = False,
    arguments: Sequence[str] = (),
    say: Callable[[str], None] = quiet,
) -> int:
    """Run an application on a cluster and wait for it; its output and progress go where this process's go.

    Parameters
    ----------
    app : str or Path
        `app.py`, or `app.py:name`.
    master : str
        The cluster: `spark://host:port`, `yarn`, `k8s://...`.
    settings : mapping, optional
        Settings that win over the application's own; `spark.*` among them go to `spark-submit`.
    until_end, once : bool
        As for `kstreams run`.
    arguments : sequence of str
        Passed on to `spark-submit`, such as `--executor-memory 2g`.
    say : callable
        Gets a line for everything that takes seconds.

    Returns
    -------
    int
        The exit status of the application.

    Raises
    ------
    EngineUnavailableError
        When Java, PySpark or the jars are missing.
    """
    require_pyspark()
    require_java()
    with tempfile.TemporaryDirectory(prefix="kstreams-submit-") as folder:
        package = package_kstreams(Path(folder, "kstreams.zip"))
        command = submit_command(master, settings or {}, package, arguments, say)
        command += [str(PACKAGE / "__main__.py"), "run", str(app), "--engine", "spark"]
        command += ["--until-end"] * until_end + ["--once"] * once + _ours(settings or {})
        return subprocess.run(command, env=submit_environment(), check=False).returncode


def submit_command(
    master: str, settings: Mapping[str, Any], package: Path, arguments: Sequence[str], say: Callable[[str], None]
) -> list[str]:
    """The call of `spark-submit` up to the script."""
    read = SparkSettings.of(settings)
    given = COMMON | (DELTA if read.delta is not None else {}) | _of_loopback(master) | dict(read.conf)
    conf = with_jars(given, read, say)
    options = [option for key, value in sorted(conf.items()) for option in ("--conf", f"{key}={value}")]
    command = [str(_spark_home() / "bin" / "spark-submit"), "--master", master, "--deploy-mode", "client"]
    return [*command, "--name", "kstreams", "--py-files", str(package), *options, *arguments]


def submit_environment() -> dict[str, str]:
    """The environment of `spark-submit`: driver and workers run this interpreter, unless the user said otherwise."""
    environment = dict(os.environ)
    environment.setdefault("PYSPARK_PYTHON", sys.executable)
    environment["PYSPARK_DRIVER_PYTHON"] = sys.executable
    environment["SPARK_HOME"] = str(_spark_home())
    roots = [str(PACKAGE.parent), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, roots))
    return environment


def package_kstreams(target: Path) -> Path:
    """A zip of kstreams as it runs here."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(PACKAGE.rglob("*.py")):
            archive.write(file, file.relative_to(PACKAGE.parent))
    return target


def _of_loopback(master: str) -> dict[str, str]:
    """A cluster on this machine alone must not reach for the machine's public name."""
    if urlsplit(master).hostname not in ("127.0.0.1", "localhost"):
        return {}
    return {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def _ours(settings: Mapping[str, Any]) -> list[str]:
    """Settings for the driver, as its command line takes them; Spark's own are on that of `spark-submit` already.

    Those of file systems go to both: kstreams reads checkpoints with the same credentials.
    """
    ours = {
        key: value for key, value in settings.items() if not key.startswith("spark.") or key.startswith(_READ_BY_US)
    }
    return [option for key, value in ours.items() for option in ("--config", f"{key}={value}")]


def _spark_home() -> Path:
    if "SPARK_HOME" in os.environ:
        return Path(os.environ["SPARK_HOME"])
    import pyspark

    home = Path(pyspark.__file__).parent
    if not (home / "bin" / "spark-submit").is_file():
        raise EngineUnavailableError(f"There is no spark-submit in {home}: set SPARK_HOME to a Spark installation.")
    return home
