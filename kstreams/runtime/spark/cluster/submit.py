"""`submit`: runs an application on a Spark cluster by `spark-submit`.

In client mode, the driver runs on this machine with this interpreter and the application's file. In cluster mode, it
runs on the cluster, and the file is sent along. Workers get kstreams as a zip, and the user's functions by value. The
packages that kstreams needs (pyarrow, msgspec, ...) must be installed on the workers' machines, or be in an archive.
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
    """Join our items and those of an option of the user to a comma-separated list, and return the other arguments too.

    Examples
    --------
    >>> joined_lists(["k.zip"], ["--py-files", "a.py", "--executor-memory", "2g"], "--py-files")
    ('k.zip,a.py', ['--executor-memory', '2g'])
    >>> joined_lists(["k.zip"], ["--py-files=a.py"], "--py-files")
    ('k.zip,a.py', [])
    """
    items = list(ours)
    other_arguments = list[str]()
    remaining = iter(arguments)
    for argument in remaining:
        if argument == option:
            items.append(next(remaining, ""))
        elif argument.startswith(f"{option}="):
            items.append(argument.partition("=")[2])
        else:
            other_arguments.append(argument)
    return ",".join(filter(None, items)), other_arguments


def archive_options(archive: str | None, driver: str | None) -> list[str]:
    """Return the options by which workers run the Python of a packed environment.

    Parameters
    ----------
    archive : str or None
        The packed environment.
    driver : str or None
        The interpreter of the driver, if it is not that of the environment.

    Raises
    ------
    ConfigError
        If the archive does not exist.
    """
    if archive is None:
        return []
    path, _, folder = archive.partition("#")
    require_files([path], "--archives")
    python = f"./{folder or ENVIRONMENT}/bin/python"
    driver_options = [] if driver is None else ["--conf", f"spark.pyspark.driver.python={driver}"]
    options = ["--archives", f"{path}#{folder or ENVIRONMENT}", "--conf", f"spark.pyspark.python={python}"]
    return [*options, *driver_options]


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
            f"Spark cannot run a Python driver on {master} itself: leave out --deploy-mode cluster, so that the driver "
            "runs here, or submit to YARN or Kubernetes."
        )


_READ_BY_KSTREAMS = (OWN, "spark.hadoop.")
"""The prefixes of Spark's settings that kstreams reads too: checkpoints need the settings of file systems."""


class Submission(NamedTuple):
    """The options of a submission.

    Parameters
    ----------
    master : str
        The cluster: `spark://host:port`, `yarn`, `k8s://...`.
    deploy_mode : {"client", "cluster"}
        Where the driver runs.
    archive : str or None
        A packed environment of venv-pack or conda-pack for the workers, and for the driver in cluster mode.
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
        Settings that override those of the application. Keys `spark.*` are passed to `spark-submit`.
    until_end, once : bool
        As for `kstreams run`.
    master, deploy_mode, archive, arguments
        See `Submission`.
    say : callable
        Called with a line of text before each part that takes seconds.

    Returns
    -------
    int
        The exit status of the application.

    Raises
    ------
    EngineUnavailableError
        If Java, PySpark or the jars are missing, or the cluster cannot run a Python driver.
    ConfigError
        If a file to be sent does not exist.
    """
    require_pyspark()
    require_java()
    submission = Submission(master, deploy_mode, archive, tuple(arguments))
    with tempfile.TemporaryDirectory(prefix="kstreams-submit-") as folder:
        package = package_kstreams(Path(folder, "kstreams.zip"))
        command = submit_command(submission, settings or {}, package, say)
        command += _script_and_arguments(str(app), submission, Path(folder))
        command += ["--until-end"] * until_end + ["--once"] * once + _driver_options(settings or {})
        return subprocess.run(command, env=submit_environment(submission), check=False).returncode


def submit_command(
    submission: Submission, settings: Mapping[str, object], package: Path, say: Callable[[str], None] = quiet
) -> list[str]:
    """Return the command of `spark-submit` up to the script.

    Parameters
    ----------
    submission : Submission
    settings : mapping
    package : Path
        The zip of kstreams.
    say : callable
        Called with a line of text before each part that takes seconds.
    """
    require_deployable(submission.master, submission.deploy_mode)
    conf = _conf(submission, SparkSettings.of(settings), say)
    python_files, other_arguments = joined_lists([str(package)], submission.arguments, "--py-files")
    jars, other_arguments = joined_lists(conf.pop("spark.jars", "").split(","), other_arguments, "--jars")
    require_files(jars.split(","), "spark.jars or --jars")
    require_files(python_files.split(","), "--py-files")
    options = [option for key, value in sorted(conf.items()) for option in ("--conf", f"{key}={value}")]
    command = [str(_spark_home() / "bin" / "spark-submit"), "--master", submission.master]
    command += ["--deploy-mode", submission.deploy_mode, "--name", "kstreams", "--py-files", python_files]
    command += [*(["--jars", jars] if jars else []), *options]
    driver = sys.executable if submission.deploy_mode == "client" else None
    return [*command, *archive_options(submission.archive, driver), *other_arguments]


def _conf(submission: Submission, settings: SparkSettings, say: Callable[[str], None]) -> dict[str, str]:
    """Return Spark's settings of a submission, with the required jars."""
    log_conf = {"spark.driver.extraJavaOptions": QUIET} if submission.deploy_mode == "client" else {}
    delta_conf = {} if settings.delta is None else DELTA
    conf = COMMON | log_conf | delta_conf | _loopback_conf(submission.master) | dict(settings.conf)
    return with_jars(conf, settings, say)


def _script_and_arguments(app: str, submission: Submission, folder: Path) -> list[str]:
    """Return the script and its arguments; in cluster mode the script contains the user's modules as text."""
    if submission.deploy_mode == "client":
        return [str(PACKAGE / "__main__.py"), "run", app, "--engine", "spark"]
    target, _, attribute = app.partition(":")
    place = place_of(target)
    script = folder / "kstreams_driver.py"
    script.write_text(driver_script(place, attribute))
    return [str(script), "run", "--engine", "spark"]


def driver_script(place: Place, attribute: str) -> str:
    """Return the text of a script that writes the modules of an application to files and runs the command line.

    The folder of the modules keeps its name, since the application may be named after it.
    """
    file = place.file.resolve()
    code = compile(file.read_bytes(), str(file), "exec", dont_inherit=True)
    with imports_from(place):
        sources = sources_of([(code, place.package)])
    texts = {_file_in_root(name, source): source.text for name, source in sources.items()}
    app_file = str(file.relative_to(place.root))
    texts[app_file] = file.read_text()
    app = f"{app_file}:{attribute}" if attribute else app_file
    return _DRIVER.format(texts=texts, root=place.root.name or "app", app=app)


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
raise SystemExit(main([command, str(root / {app!r}), *others]))
"""


def submit_environment(submission: Submission) -> dict[str, str]:
    """Return the environment of `spark-submit`; driver and workers run this interpreter unless the user chose one."""
    environment = dict(os.environ)
    if submission.archive is not None:
        environment.pop("PYSPARK_PYTHON", None)  # it would override the setting
    elif submission.deploy_mode == "client":
        environment.setdefault("PYSPARK_PYTHON", sys.executable)
    if submission.deploy_mode == "client":
        environment["PYSPARK_DRIVER_PYTHON"] = sys.executable
    environment["SPARK_HOME"] = str(_spark_home())
    roots = [str(PACKAGE.parent), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, roots))
    return environment


def package_kstreams(target: Path) -> Path:
    """Write a zip of the running kstreams."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(PACKAGE.rglob("*.py")):
            archive.write(file, file.relative_to(PACKAGE.parent))
    return target


def _loopback_conf(master: str) -> dict[str, str]:
    """Return the settings by which a local cluster does not resolve the machine's public name."""
    if urlsplit(master).hostname not in ("127.0.0.1", "localhost"):
        return {}
    return {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def _driver_options(settings: Mapping[str, object]) -> list[str]:
    """Return the settings that kstreams reads as options of `kstreams run`; `spark-submit` gets Spark's settings."""
    read_by_kstreams = {
        key: value
        for key, value in settings.items()
        if not key.startswith("spark.") or key.startswith(_READ_BY_KSTREAMS)
    }
    return [option for key, value in read_by_kstreams.items() for option in ("--config", f"{key}={value}")]


def _spark_home() -> Path:
    if "SPARK_HOME" in os.environ:
        return Path(os.environ["SPARK_HOME"])
    import pyspark

    home = Path(pyspark.__file__).parent
    if not (home / "bin" / "spark-submit").is_file():
        raise EngineUnavailableError(f"There is no spark-submit in {home}: set SPARK_HOME to a Spark installation.")
    return home
