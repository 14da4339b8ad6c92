"""Applications: load an `app.py`, run it on an engine, explain it, reset it, as the command line does."""

from __future__ import annotations

import importlib
import logging
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from kstreams.config import Config
from kstreams.errors import ConfigError, KStreamsError, TopologyError
from kstreams.kernel.advice import nearest_name
from kstreams.modules.app_module import Place, import_from, place_of, shadowing
from kstreams.os.stop_signals import stop_signals
from kstreams.processor.topology.topology import Topology
from kstreams.runtime.connectors import ApplicationConnectors
from kstreams.runtime.deletions import Deletion
from kstreams.state.bundle import Bundle

logger = logging.getLogger(__name__)

ENGINES = {"native": "kstreams.runtime.native.engine", "spark": "kstreams.runtime.spark.engine"}
"""Each engine is a module with the functions of `EngineModule`; only the chosen one is imported."""

_GENERAL_NAMES = ("app", "main", "topology", "__init__", "__main__")


@dataclass(frozen=True, slots=True)
class App:
    """A loaded application.

    Parameters
    ----------
    topology : Topology
    config : Config
        The configuration. `application.id` is by default the name of the file, or of its folder for an `app.py`.
    path : Path
        The file of the module.
    """

    topology: Topology
    config: Config
    path: Path


class EngineModule(Protocol):
    """The functions of the module of an engine."""

    def run(
        self,
        topology: Topology,
        config: Config,
        *,
        once: bool,
        until_end: bool,
        on_progress: Callable[[Any], None] | None,
        stop: threading.Event | None,
    ) -> None:
        """Run until `stop` is set, or until the input ends."""
        ...

    def reset(self, topology: Topology, config: Config, *, dry_run: bool) -> list[Deletion]:
        """Delete everything except the inputs and outputs of the application."""
        ...

    def explain(self, topology: Topology, config: Config) -> list[Any]:
        """Return a named tuple per operator: its path and the reason."""
        ...

    def connectors_of(self, topology: Topology, config: Config) -> ApplicationConnectors:
        """Return the sources and sinks with their groups and topics."""
        ...

    def export_state(self, topology: Topology, config: Config, folder: Path) -> Bundle:
        """Write state and positions into a folder."""
        ...

    def import_state(self, topology: Topology, config: Config, folder: Path, *, replace: bool) -> Bundle:
        """Load the state that an engine has exported."""
        ...

    def sql(self, topology: Topology, config: Config, query: str, as_of_ms: int | None, step: int | None) -> Any:
        """Return the result of a SELECT from the stores as an Arrow table."""
        ...


def load_app(name: str | Path, overrides: Mapping[str, Any] | None = None) -> App:
    """Load an application by its file or by the name of its module, or from a connect file.

    A file in a package is imported as part of the package. The module has a `topology` (a StreamsBuilder, a Topology,
    or a function that returns one) and optionally a `config` (a mapping or a Config). The environment and
    `kstreams.toml` set other settings.

    Parameters
    ----------
    name : str or Path
        `app.py`, `pkg/app.py` or `pkg.app`; `app.py:flow` or `pkg.app:flow` if the topology has another name. Or
        `trades.toml`, a connect file.
    overrides : mapping, optional
        Settings that override all others.

    Raises
    ------
    TopologyError
        If the module does not exist, cannot be imported, or has no such topology.
    ConfigError
        If a setting is unknown or wrong.
    """
    target, _, attribute = str(name).partition(":")
    if target.endswith(".toml"):
        return _connect_app(Path(target), overrides)
    place = place_of(target)
    with _own_errors(place, "loaded"):
        module = import_from(place)
    config = _config(module, place.file).replace(overrides).over({"application.id": _id_of(place.file)})
    with _own_errors(place, "called"):
        topology = _topology(module, target, attribute or "topology", config)
    return App(topology, config, place.file)


def run(
    app: App,
    engine: str = "native",
    *,
    once: bool = False,
    until_end: bool = False,
    on_progress: Callable[[Any], None] | None = None,
    around: Callable[[Any], AbstractContextManager[None]] | None = None,
) -> signal.Signals | None:
    """Run an application until SIGINT or SIGTERM, or until its input ends.

    Parameters
    ----------
    app : App
    engine : str
        `native` or `spark`.
    once : bool
        Process the records that the topics have now, then stop; windows stay open.
    until_end : bool
        Process the records that the topics have now, close all windows, then stop.
    on_progress : callable, optional
        Takes the progress about once a second, and once at the end.
    around : callable, optional
        Takes the `KafkaStreams` of a native run, and returns the context in which it runs.

    Returns
    -------
    signal.Signals or None
        The signal that stopped the run, after its last commit; None if the input has ended.

    Raises
    ------
    KStreamsError
        The error that ended the application.
    """
    runner = engine_of(engine)
    with stop_signals() as stop:
        options = {} if around is None else {"around": around}
        runner.run(
            app.topology, app.config, once=once, until_end=until_end, on_progress=on_progress, stop=stop, **options
        )
    return stop.signal


def reset(app: App, engine: str = "native", *, dry_run: bool = False) -> list[Deletion]:
    """Delete offsets, state and internal topics, so that the next run processes all records again.

    Parameters
    ----------
    app : App
    engine : str
        The engine that ran it.
    dry_run : bool
        Return the deletions without deleting.

    Returns
    -------
    list of Deletion

    Raises
    ------
    StateError
        If the application is running.
    """
    return engine_of(engine).reset(app.topology, app.config, dry_run=dry_run)


def explain(app: App, engine: str = "native") -> list[Any]:
    """Return how an engine runs the application: a named tuple per operator, with its path and the reason."""
    return engine_of(engine).explain(app.topology, app.config)


def connectors_of(app: App, engine: str = "native") -> ApplicationConnectors:
    """Return the sources and sinks of an application, with the groups and topics that they have on an engine."""
    return engine_of(engine).connectors_of(app.topology, app.config)


def code(app: App) -> str:
    """Return the text of a PySpark program that computes what an application writes to topics of Kafka.

    Plain PySpark runs it, without kstreams. Python functions, and operators for which Spark has no form with the same
    results, are left out: the text says which, and why. Topics are those of `bootstrap.servers`.

    Raises
    ------
    TopologyError
        If nothing of the topology can be written as PySpark.
    """
    engine: Any = engine_of("spark")
    text: str = engine.code(app.topology, app.config)
    return text


def export_state(app: App, folder: str | Path, engine: str = "native") -> Bundle:
    """Write the state of an application and the positions in its input into a folder.

    Any engine can continue exactly from there: see `import_state`. The native engine first processes the records of
    repartition topics, but no input.

    Parameters
    ----------
    app : App
    folder : str or Path
        A new or empty folder.
    engine : str
        The engine that ran it.

    Raises
    ------
    StateError
        If the application runs or has no state, or the folder is not empty.
    TopologyError
        If the topology does not fit the state, or Spark itself stores a part of it (`spark.kstreams.path=relational`).
    """
    return engine_of(engine).export_state(app.topology, app.config, Path(folder))


def import_state(app: App, folder: str | Path, engine: str = "native", *, replace: bool = False) -> Bundle:
    """Load the state of an application from a folder, on an engine.

    All checks come before the first change. If the import is interrupted, the application has no state.

    Parameters
    ----------
    app : App
    folder : str or Path
        A folder that `export_state` has written.
    engine : str
        The engine that will run it.
    replace : bool
        Replace existing state on this engine.

    Raises
    ------
    StateError
        If the application runs, or has state on this engine and `replace` is false; if the folder is damaged, or of
        another application or log.
    TopologyError
        If the topology, or the number of partitions of its topics, does not fit the state.
    """
    return engine_of(engine).import_state(app.topology, app.config, Path(folder), replace=replace)


def sql(app: App, query: str, as_of_ms: int | None = None, engine: str = "native", *, step: int | None = None) -> Any:
    """Return the result of a SELECT from the stores of an application as of its last commit, or of a step on Spark.

    The native engine must be stopped; `KafkaStreams.sql` queries a running one.

    Parameters
    ----------
    app : App
    query : str
        A SELECT.
    as_of_ms : int, optional
        Query the versions at this time, and the windows and sessions that contain it.
    engine : str
        The engine that ran it.
    step : int, optional
        A step on Spark, counted from 0; by default the last one.

    Raises
    ------
    StateError
        If the application runs, has no state or no such step, or DuckDB reports an error.
    """
    return engine_of(engine).sql(app.topology, app.config, query, as_of_ms, step)


def engine_of(name: str) -> EngineModule:
    """Return the module of an engine; raise ConfigError if there is no such engine."""
    if name not in ENGINES:
        raise ConfigError(f"there is no engine {name!r}; there are: {', '.join(ENGINES)}")
    engine: Any = importlib.import_module(ENGINES[name])
    return engine  # type: ignore[no-any-return]


@contextmanager
def _own_errors(place: Place, action: str) -> Iterator[None]:
    """Turn errors of the code of an application into one sentence that names the line."""
    try:
        yield
    except KStreamsError:
        raise
    except SystemExit as error:
        raise TopologyError(
            f"{_line(error, place.file)} ends the process by sys.exit() while {place.file.name} is loaded: leave it "
            'out, or put it below if __name__ == "__main__":'
        ) from error
    except Exception as error:
        text = f"{_line(error, place.file)} cannot be {action}: {type(error).__name__}: {error}"
        file = shadowing(place, error)
        hint = "" if file is None else f"; {file} is imported in place of Python's own module {file.stem}: rename it"
        raise TopologyError(f"{text}{hint}") from error


def _connect_app(path: Path, overrides: Mapping[str, Any] | None) -> App:
    """Load the application of a connect file, which is processed exactly once by default."""
    from kstreams.connect.connect_file import load_connect_file

    file = load_connect_file(path)
    try:
        declared = Config.load(file.settings)
    except ConfigError as error:
        raise ConfigError(f"{path}: application: {error}") from error
    defaults = {"application.id": _id_of(path), "processing.guarantee": "exactly_once_v2"}
    config = declared.replace(overrides).over(defaults)
    return App(file.topology.build(config), config, path)


def _config(module: ModuleType, path: Path) -> Config:
    declared = getattr(module, "config", None)
    if declared is not None and not isinstance(declared, Mapping):
        raise ConfigError(
            f"'config' in {path} is a {type(declared).__name__}, not a mapping: write config = {{\"application.id\": "
            '"...", ...}'
        )
    return Config.load(declared)


def _line(error: BaseException, path: Path) -> str:
    """Return the line of the application that raised an error, such as `app.py:12`, or the file."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path.resolve())]
    return f"{path}:{lines[-1]}" if lines else str(path)


def _topology(module: ModuleType, target: str, attribute: str, config: Config) -> Topology:
    flow = getattr(module, attribute, None)
    if flow is None:
        names = [name for name in vars(module) if not name.startswith("_")]
        near = nearest_name(attribute, names)
        hint = f"did you mean {target}:{near}?" if near else f"name another one as {target}:name"
        raise TopologyError(f"{target} holds no {attribute!r}; {hint}")
    if callable(flow) and not hasattr(flow, "build"):
        flow = flow()
    if hasattr(flow, "build"):
        flow = flow.build(config)
    if not isinstance(flow, Topology):
        raise TopologyError(
            f"{attribute!r} in {target} is a {type(flow).__name__}: a StreamsBuilder, a Topology, "
            "or a function that returns one is needed"
        )
    return flow


def _id_of(path: Path) -> str:
    stem = path.resolve().parent.name if path.stem in _GENERAL_NAMES else path.stem
    letters = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in stem)
    return letters or "app"
