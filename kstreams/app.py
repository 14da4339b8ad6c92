"""Applications: load an `app.py`, run it on an engine, explain it, reset it. What the command line calls."""

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
        With `application.id`: its own, or the name of the file (of its folder for an `app.py`).
    path : Path
        The file.
    """

    topology: Topology
    config: Config
    path: Path


class EngineModule(Protocol):
    """What the module of an engine offers."""

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
        """Forget everything but the application's inputs and outputs."""
        ...

    def explain(self, topology: Topology, config: Config) -> list[Any]:
        """Named tuples, one per operator: which path it takes and why."""
        ...

    def export_state(self, topology: Topology, config: Config, folder: Path) -> Bundle:
        """Write state and positions into a folder."""
        ...

    def import_state(self, topology: Topology, config: Config, folder: Path, *, replace: bool) -> Bundle:
        """Go on from what an engine has exported."""
        ...

    def sql(self, topology: Topology, config: Config, query: str, as_of_ms: int | None, step: int | None) -> Any:
        """An Arrow table: the answer of the stores to a SELECT."""
        ...


def load_app(name: str | Path, overrides: Mapping[str, Any] | None = None) -> App:
    """Load an application by its file or by the name of its module.

    A file in a package is imported as a part of it, under the name by which others import it. The module holds a
    `topology` (a StreamsBuilder, a Topology, or a function that returns one) and, if it likes, a `config` (a mapping or
    a Config). The environment and `kstreams.toml` fill in what it does not say.

    Parameters
    ----------
    name : str or Path
        `app.py`, `pkg/app.py` or `pkg.app`; `app.py:flow` or `pkg.app:flow` when the topology has another name.
    overrides : mapping, optional
        Settings that win over all others.

    Raises
    ------
    TopologyError
        When the module does not exist, cannot be imported, or holds no such topology.
    ConfigError
        When a setting is unknown or wrong.
    """
    target, _, attribute = str(name).partition(":")
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
        Process what the topics hold now, then stop; what is open stays open.
    until_end : bool
        Process what the topics hold now as if nothing ever followed: close what is open, then stop.
    on_progress : callable, optional
        Called with the progress about once a second, and once at the end.
    around : callable, optional
        Gives, of the `KafkaStreams` that runs natively, what is entered before its start and left after its end.

    Returns
    -------
    signal.Signals or None
        What stopped it, when all that was processed has been committed; None: its input has ended.

    Raises
    ------
    KStreamsError
        What ended the application.
    """
    runner = engine_of(engine)
    with stop_signals() as stop:
        options = {} if around is None else {"around": around}
        runner.run(
            app.topology, app.config, once=once, until_end=until_end, on_progress=on_progress, stop=stop, **options
        )
    return stop.signal


def reset(app: App, engine: str = "native", *, dry_run: bool = False) -> list[Deletion]:
    """Forget offsets, state and internal topics, so that the next run processes everything again.

    Parameters
    ----------
    app : App
    engine : str
        The one that ran it.
    dry_run : bool
        Delete nothing.

    Returns
    -------
    list of Forgotten
        What was deleted, or would be.

    Raises
    ------
    StateError
        When the application is running.
    """
    return engine_of(engine).reset(app.topology, app.config, dry_run=dry_run)


def explain(app: App, engine: str = "native") -> list[Any]:
    """How an engine would run the application: named tuples, one per operator, with the path it takes and why."""
    return engine_of(engine).explain(app.topology, app.config)


def export_state(app: App, folder: str | Path, engine: str = "native") -> Bundle:
    """Write the state of an application, with the positions in its input that it stands for, into a folder.

    Any engine goes on from there, exactly: see `import_state`. On the native engine, records on their way between tasks
    are processed first, and none of the input.

    Parameters
    ----------
    app : App
    folder : str or Path
        Not there yet, or empty.
    engine : str
        The one that ran it.

    Raises
    ------
    StateError
        When the application runs or has processed nothing, or the folder holds something.
    TopologyError
        When the topology does not fit the state, or Spark itself keeps a part of it (`spark.kstreams.path=relational`).
    """
    return engine_of(engine).export_state(app.topology, app.config, Path(folder))


def import_state(app: App, folder: str | Path, engine: str = "native", *, replace: bool = False) -> Bundle:
    """Let an application go on from the state in a folder, on an engine.

    Everything is checked before anything changes. Until all is there, nothing counts: after an interruption the
    application has no state.

    Parameters
    ----------
    app : App
    folder : str or Path
        What `export_state` has written.
    engine : str
        The one that is to run it.
    replace : bool
        Forget the state that it has there.

    Raises
    ------
    StateError
        When it runs, or has state there and `replace` is not given; when the folder's content is damaged, or of another
        application or log.
    TopologyError
        When the topology, or the number of partitions of its topics, does not fit the state.
    """
    return engine_of(engine).import_state(app.topology, app.config, Path(folder), replace=replace)


def sql(app: App, query: str, as_of_ms: int | None = None, engine: str = "native", *, step: int | None = None) -> Any:
    """An Arrow table: what the stores of an application answer, as its last commit or a step on Spark left them.

    On the native engine the application has to be stopped; `KafkaStreams.sql` asks a running one.

    Parameters
    ----------
    app : App
    query : str
        A SELECT.
    as_of_ms : int, optional
        Versions that held at this time; windows and sessions that contain it.
    engine : str
        The one that ran it.
    step : int, optional
        Of Spark, counted from 0; by default the last one.

    Raises
    ------
    StateError
        When it runs, has no state, does not keep the step, or DuckDB cannot answer.
    """
    return engine_of(engine).sql(app.topology, app.config, query, as_of_ms, step)


def engine_of(name: str) -> EngineModule:
    """The module of an engine; raises ConfigError for one that does not exist."""
    if name not in ENGINES:
        raise ConfigError(f"there is no engine {name!r}; there are: {', '.join(ENGINES)}")
    engine: Any = importlib.import_module(ENGINES[name])
    return engine  # type: ignore[no-any-return]


@contextmanager
def _own_errors(place: Place, doing: str) -> Iterator[None]:
    """What the code of an application raises becomes one sentence that names its line."""
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
        text = f"{_line(error, place.file)} cannot be {doing}: {type(error).__name__}: {error}"
        file = shadowing(place, error)
        hint = "" if file is None else f"; {file} is imported in place of Python's own module {file.stem}: rename it"
        raise TopologyError(f"{text}{hint}") from error


def _config(module: ModuleType, path: Path) -> Config:
    declared = getattr(module, "config", None)
    if declared is not None and not isinstance(declared, Mapping):
        raise ConfigError(
            f"'config' in {path} is a {type(declared).__name__}, not a mapping: write config = {{\"application.id\": "
            '"...", ...}'
        )
    return Config.load(declared)


def _line(error: BaseException, path: Path) -> str:
    """`app.py:12`: the line of the application where an error arose, or the file alone."""
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
