"""`kstreams query`: queries a store of a running application, or the last commit of a stopped one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kstreams.cli.output import json_line, print_rows
from kstreams.cli.running import require_running, running, settings_of_application, with_state
from kstreams.config import Config

if TYPE_CHECKING:
    from kstreams.processor.topology.topology import Topology

ApplicationId = Annotated[
    str | None,
    typer.Option("--application-id", "-a", metavar="ID", help="Which application; default: the only one that answers."),
]
StateDir = Annotated[
    Path | None, typer.Option(help="Folder of the state stores, which also lists the running instances.")
]
AsJsonOrTable = Annotated[bool, typer.Option("--json/--table", help="Print one JSON object per line, or a table.")]


def query(
    store: Annotated[str, typer.Argument(metavar="STORE", help="Name of the store.")],
    key: Annotated[str | None, typer.Argument(metavar="[KEY]", help="The key, as text or JSON.")] = None,
    prefix: Annotated[str | None, typer.Option(help="The keys that begin with this text.")] = None,
    span: Annotated[
        tuple[str, str] | None,
        typer.Option("--range", metavar="LOW HIGH", help="The keys between these two, both included."),
    ] = None,
    window: Annotated[
        tuple[int, int] | None,
        typer.Option(metavar="FROM TO", help="Windows, sessions and versions of this time, in milliseconds."),
    ] = None,
    as_of: Annotated[
        int | None, typer.Option(metavar="MS", help="The version, windows and sessions of a time, in milliseconds.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All rows.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Print each change, until Ctrl-C.")] = False,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Greatest number of rows, or of changes with --watch.")
    ] = None,
    current: Annotated[bool, typer.Option("--current", help="Also read changes that are not committed yet.")] = False,
    stale: Annotated[bool, typer.Option("--stale", help="Also read standbys, which lag behind.")] = False,
    as_json: AsJsonOrTable = False,
    app: Annotated[
        str | None, typer.Option(metavar="APP", help="The application's file: also reads a stopped one.")
    ] = None,
    application_id: ApplicationId = None,
    state_dir: StateDir = None,
) -> None:
    """Query a store with `queryable=True` of a running application, started with `kstreams run --serve`.

    If the application is stopped, `--state-dir` reads its last commit, from stores of built-in types. `--app app.py`
    reads any store.

    Examples: `kstreams query counts anna`, `kstreams query counts --prefix an --watch`,
    `kstreams query visits-by-hour anna --window 1357000000000 1357100000000 --json`
    """
    _require_selection(key, many=everything or prefix is not None or span is not None, timed=(window, as_of))
    low, high = span or (None, None)
    first, last = window or (None, None)
    parts = {"prefix": prefix, "low": low, "high": high, "from": first, "to": last, "as_of": as_of}
    parameters = {name: str(value) for name, value in parts.items() if value is not None}
    reads = {"isolation": "read_uncommitted" if current else "read_committed", "stale": "true" if stale else "false"}
    config = settings_of_application(application_id, app, state_dir)
    if watch:
        of_key = {} if key is None else {"key": key}
        return _show_changes(islice(require_running(config).watch(store, parameters | reads | of_key), limit))
    application = running(config) if app is not None or state_dir is not None else require_running(config)
    if application is not None:
        rows: Iterable[dict[str, object]] = application.rows(store, key, parameters | reads, limit)
    else:
        rows = islice(_stopped(app, config, store, parameters, key), limit)
    print_rows(rows, as_json=as_json, title=store)


def _require_selection(key: str | None, *, many: bool, timed: tuple[object, object]) -> None:
    if key is None and not many and timed == (None, None):
        raise typer.BadParameter("name a key, --prefix, --range, --window, --as-of or --all", param_hint="KEY")
    if key is not None and many:
        raise typer.BadParameter("a key stands without --prefix, --range and --all", param_hint="KEY")


def _show_changes(events: Iterable[dict[str, object]]) -> None:
    for event in events:
        typer.echo(json_line(event), nl=False)


def _stopped(
    app: str | None, config: Config, store: str, parameters: dict[str, str], key: str | None
) -> Iterable[dict[str, object]]:
    from kstreams.app import load_app

    if app is not None:
        return _of_app(load_app(app).topology, config, store, parameters, key)
    return _of_folder(with_state(config), store, parameters, key)


def _of_folder(config: Config, store: str, parameters: dict[str, str], key: str | None) -> Iterator[dict[str, object]]:
    from kstreams.log.schema_registries import ApplicationRegistry
    from kstreams.runtime.native.state.stopped_stores import DescribedStores
    from kstreams.server.stopped import stopped_rows

    with closing(ApplicationRegistry(config.replace({"task.timeout.ms": 0}))) as registry:
        yield from stopped_rows(DescribedStores(config, registry), config, store, parameters, key)


def _of_app(
    topology: Topology, config: Config, store: str, parameters: dict[str, str], key: str | None
) -> Iterator[dict[str, object]]:
    from kstreams.processor.topology.topology import bound_while
    from kstreams.runtime.native.state.stopped_stores import DeclaredStores
    from kstreams.server.stopped import stopped_rows

    with bound_while(topology, config) as bound:
        yield from stopped_rows(DeclaredStores(bound), config, store, parameters, key)
