"""`submit`: runs an application on a Spark cluster by `spark-submit`.

In client mode the driver runs here with this interpreter and the application's file as it lies; in cluster mode on the
cluster, which gets the file too. Workers get kstreams as a zip and the user's functions by value. What kstreams depends
on (pyarrow, msgspec, ...) must be installed where the workers run, or come with an archive.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from kstreams.errors import ConfigError, EngineUnavailableError
from kstreams.modules.app_module import Place, imports_from, place_of
from kstreams.modules.installed import PACKAGE
from kstreams.modules.user_modules import Source, sources_of
from kstreams.runtime.spark.cluster.session import COMMON, DELTA, QUIET, quiet, require_java, require_pyspark, with_jars
from kstreams.runtime.spark.settings import OWN, SparkSettings

ENVIRONMENT = "environment"
"""The folder in which executors unpack the archive."""


def joined_lists(ours: Sequence[str], arguments: Sequence[str], option: str) -> tuple[str, list[str]]:
    """A comma-separated list of what is ours and what an option of the user's names; and the other arguments.

    Examples
    --------
    >>> joined_lists(["k.zip"], ["--py-files", "a.py", "--executor-memory", "2g"], "--py-files")
    ('k.zip,a.py', ['--executor-memory', '2g'])
    >>> joined_lists(["k.zip"], ["--py-files=a.py"], "--py-files")
    ('k.zip,a.py', [])
    """
    named = list(ours)
    other_arguments = list[str]()
    remaining = iter(arguments)
    for argument in remaining:
        if argument == option:
            named.append(next(remaining, ""))
        elif argument.startswith(f"{option}="):
            named.append(argument.partition("=")[2])
        else:
            other_arguments.append(argument)
    return ",".join(filter(None, named)), other_arguments


def archive_options(archive: str | None, driver: str | None) -> list[str]:
    """The options by which workers run the Python of a packed environment; `driver`, where another runs the driver.

    Raises
    ------
    ConfigError
        If there is no such file.
    """
    if archive is None:
        return []
    path, _, folder = archive.partition("#")
    require_files([path], "--archives")
    python = f"./{folder or ENVIRONMENT}/bin/python"
    of_driver = [] if driver is None else ["--conf", f"spark.pyspark.driver.python={driver}"]
    return ["--archives", f"{path}#{folder or ENVIRONMENT}", "--conf", f"spark.pyspark.python={python}", *of_driver]


def require_files(paths: Iterable[str], named_by: str) -> None:
    """Raise ConfigError for the first local file that does not exist."""
    for path in filter(None, paths):
        local = urlsplit(path)
        if local.scheme in ("", "file") and "*" not in path and not Path(local.path).exists():
            raise ConfigError(f"there is no file {path}, which {named_by} names")


def require_deployable(master: str, deploy_mode: str) -> None:
    """Raise EngineUnavailableError if Spark cannot run a driver in Python in this mode."""
    if deploy_mode == "cluster" and master.startswith(("spark://", "local")):
        raise EngineUnavailableError(
            f"Spark runs no driver in Python on {master} itself: leave out --deploy-mode cluster, so that the driver "
            "runs here, or submit to YARN or Kubernetes."
        )


_READ_BY_US = (OWN, "spark.hadoop.")


class Submission(NamedTuple):
    """The options of a submission.

    Parameters
    ----------
    master : str
        The cluster: `spark://host:port`, `yarn`, `k8s://...`.
    deploy_mode : {"client", "cluster"}
        The place of the driver, `client` or `cluster`.
    archive : str or None
        A packed environment, as venv-pack and conda-pack make them, for the workers (and the driver in cluster mode).
    arguments : tuple of str
        Passed on to `spark-submit`, such as `--executor-memory 2g`.
    """

    master: str
    deploy_mode: str = "client"
    archive: str | None = None
    arguments: tuple[str, ...] = ()


def submit(
    app: str | Path,
    master: str,
    settings: Mapping[str, object] | None = None,
    *,
    until_end: bool = False,
    once: bool = False,
    deploy_mode: str = "client",
    archive: str | None = None,
    arguments: Sequence[str] = (),
    say: Callable[[str], None] = quiet,
) -> int:
    """Run an application on a cluster, and wait for it. In client mode its output goes to the output of this process.

    Parameters
    ----------
    app : str or Path
        `app.py`, or `app.py:name`.
    settings : mapping, optional
        Settings that win over the application's own; `spark.*` among them go to `spark-submit`.
    until_end, once : bool
        As for `kstreams run`.
    master, deploy_mode, archive, arguments
        See `Submission`.
    say : callable
        Gets a line for everything that takes seconds.

    Returns
    -------
    int
        The exit status of the application.

    Raises
    ------
    EngineUnavailableError
        If Java, PySpark or the jars are missing, or the cluster runs no driver in Python.
    ConfigError
        If a file that is to be shipped is not there.
    """
    require_pyspark()
    require_java()
    how = Submission(master, deploy_mode, archive, tuple(arguments))
    with tempfile.TemporaryDirectory(prefix="kstreams-submit-") as folder:
        package = package_kstreams(Path(folder, "kstreams.zip"))
        command = submit_command(how, settings or {}, package, say)
        command += _application(str(app), how, Path(folder))
        command += ["--until-end"] * until_end + ["--once"] * once + _ours(settings or {})
        return subprocess.run(command, env=submit_environment(how), check=False).returncode


def submit_command(
    how: Submission, settings: Mapping[str, object], package: Path, say: Callable[[str], None] = quiet
) -> list[str]:
    """Write the files to ship, and return the command of `spark-submit` up to the script."""
    require_deployable(how.master, how.deploy_mode)
    read = SparkSettings.of(settings)
    log = {"spark.driver.extraJavaOptions": QUIET} if how.deploy_mode == "client" else {}
    spark_conf = COMMON | log | (DELTA if read.delta is not None else {}) | _of_loopback(how.master) | dict(read.conf)
    conf = with_jars(spark_conf, read, say)
    python_files, other_arguments = joined_lists([str(package)], how.arguments, "--py-files")
    jars, other_arguments = joined_lists(conf.pop("spark.jars", "").split(","), other_arguments, "--jars")
    require_files(jars.split(","), "spark.jars or --jars")
    require_files(python_files.split(","), "--py-files")
    options = [option for key, value in sorted(conf.items()) for option in ("--conf", f"{key}={value}")]
    command = [str(_spark_home() / "bin" / "spark-submit"), "--master", how.master, "--deploy-mode", how.deploy_mode]
    command += ["--name", "kstreams", "--py-files", python_files, *(["--jars", jars] if jars else []), *options]
    driver = sys.executable if how.deploy_mode == "client" else None
    return [*command, *archive_options(how.archive, driver), *other_arguments]


def _application(app: str, how: Submission, folder: Path) -> list[str]:
    """Return the script and its arguments; in cluster mode the script contains the user's modules as text."""
    if how.deploy_mode == "client":
        return [str(PACKAGE / "__main__.py"), "run", app, "--engine", "spark"]
    target, _, attribute = app.partition(":")
    place = place_of(target)
    script = folder / "kstreams_driver.py"
    script.write_text(driver_script(place, attribute))
    return [str(script), "run", "--engine", "spark"]


def driver_script(place: Place, attribute: str) -> str:
    """Return the text of a script that writes the modules of an application to files and runs the command line.

    They lie in a folder of the same name as here, after which an application may be called.
    """
    file = place.file.resolve()
    code = compile(file.read_bytes(), str(file), "exec", dont_inherit=True)
    with imports_from(place):
        sources = sources_of([(code, place.package)])
    texts = {_file_in_root(name, source): source.text for name, source in sources.items()}
    own = str(file.relative_to(place.root))
    texts[own] = file.read_text()
    named = f"{own}:{attribute}" if attribute else own
    return _DRIVER.format(texts=texts, root=place.root.name or "app", named=named)


def _file_in_root(name: str, source: Source) -> str:
    path = Path(*name.split("."))
    return str(path / "__init__.py" if source.is_package else path.with_suffix(".py"))


_DRIVER = """
import sys
import tempfile
from pathlib import Path

from kstreams.cli import main

TEXTS = {texts!r}

root = Path(tempfile.mkdtemp(prefix="kstreams-"), {root!r})
for name, text in TEXTS.items():
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
command, *others = sys.argv[1:]
raise SystemExit(main([command, str(root / {named!r}), *others]))
"""


def submit_environment(how: Submission) -> dict[str, str]:
    """Return the environment of `spark-submit`; driver and workers run this interpreter unless the user chose one."""
    environment = dict(os.environ)
    if how.archive is not None:
        environment.pop("PYSPARK_PYTHON", None)  # it would win over the setting
    elif how.deploy_mode == "client":
        environment.setdefault("PYSPARK_PYTHON", sys.executable)
    if how.deploy_mode == "client":
        environment["PYSPARK_DRIVER_PYTHON"] = sys.executable
    environment["SPARK_HOME"] = str(_spark_home())
    roots = [str(PACKAGE.parent), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, roots))
    return environment


def package_kstreams(target: Path) -> Path:
    """Write a zip of the kstreams that runs here."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(PACKAGE.rglob("*.py")):
            archive.write(file, file.relative_to(PACKAGE.parent))
    return target


def _of_loopback(master: str) -> dict[str, str]:
    """Return the settings by which a local cluster does not resolve the machine's public name."""
    if urlsplit(master).hostname not in ("127.0.0.1", "localhost"):
        return {}
    return {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def _ours(settings: Mapping[str, object]) -> list[str]:
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
