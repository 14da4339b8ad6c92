"""`kstreams sql`: queries stores of a running application, of its last commit, or of a step on Spark, in SQL."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kstreams.cli.commands.query import ApplicationId
from kstreams.cli.commands.run import overrides
from kstreams.cli.options import AsJson, EngineName, LogDir, Settings
from kstreams.cli.output import print_rows
from kstreams.cli.running import require_running, running, settings_of_application
from kstreams.errors import StateError

if TYPE_CHECKING:
    import pyarrow as pa

    from kstreams.cli.running import RunningApplication

_TIMES = ("timestamp", "window_start", "window_end", "valid_from", "valid_to")


def answer_of(application: RunningApplication, query: str, as_of_ms: int | None) -> pa.Table:
    """Return the result of a SELECT over queryable stores.

    Each store in the query is read page by page. The pages of a store may be of different commits.

    Raises
    ------
    StateError
        If DuckDB is not installed or cannot run the query, or a store cannot be read.
    """
    from kstreams.state.tables.sql import answer

    parameters = {} if as_of_ms is None else {"as_of": str(as_of_ms)}
    stores = [store["name"] for store in application.ask("/v1/stores")["stores"]]
    return answer(query, stores, lambda store: _table(application, store, parameters))


def _table(application: RunningApplication, store: str, parameters: Mapping[str, str]) -> pa.Table:
    import pyarrow as pa

    rows: list[dict[str, object]] = list(application.rows(store, None, parameters, None))
    if not rows:
        return pa.table({"key": pa.nulls(0), "value": pa.nulls(0)} | {name: pa.nulls(0, pa.int64()) for name in _TIMES})
    try:
        return pa.Table.from_pylist(rows)
    except pa.ArrowException as error:
        raise StateError(
            f"the values of the store {store!r} are of several types, which no table holds: {error}"
        ) from None


def sql(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[APP] QUERY",
            help="A SELECT over the stores, which are tables. A stopped application, or one on Spark, needs its file "
            "before the query.",
        ),
    ],
    as_of: Annotated[
        int | None,
        typer.Option(
            metavar="MS",
            help="A time in milliseconds: reads the versions at this time, and windows and sessions that contain it.",
        ),
    ] = None,
    engine: Annotated[EngineName, typer.Option(help="The engine that ran it.")] = EngineName.NATIVE,
    step: Annotated[
        int | None, typer.Option(metavar="N", help="A step on Spark, counted from 0; default: the last one.")
    ] = None,
    as_json: AsJson = False,
    application_id: ApplicationId = None,
    state_dir: Annotated[Path | None, typer.Option(help="Folder of the state stores.")] = None,
    log_dir: LogDir = None,
    config: Settings = None,
) -> None:
    """Query the stores of an application in SQL.

    Without a file, the query reads the stores with `queryable=True` of a running application (`kstreams run --serve`),
    on all its instances. With a file, the application may be stopped: the query reads its last commit on this machine,
    or an earlier one after a crash. With `--engine spark`, the query reads the last step, or an earlier step that the
    checkpoint retains; the application may run.

    Each store is a table with the columns `key` and `value`, and depending on its kind `timestamp`, `window_start` and
    `window_end`, or `valid_from` and `valid_to`. The command needs DuckDB. A program can query its own application by
    `KafkaStreams.sql`.

    Examples: `kstreams sql 'select value, count(*) from "visits" group by value'`,
    `kstreams sql app.py 'select max(value) from "visits"'`
    """
    *app, query = words
    if len(app) > 1 or query.endswith(".py"):
        raise typer.BadParameter("give a query, and before it perhaps one file", param_hint="QUERY")
    if app:
        table = _answer_by_file(app[0], overrides(config, None, state_dir, log_dir), query, as_of, engine, step)
    else:
        _refuse_options_of_stopped(engine, step)
        table = answer_of(require_running(settings_of_application(application_id, None, state_dir)), query, as_of)
    print_rows((row for batch in table.to_batches() for row in batch.to_pylist()), as_json=as_json)


def _refuse_options_of_stopped(engine: EngineName, step: int | None) -> None:
    if engine is not EngineName.NATIVE or step is not None:
        raise typer.BadParameter("name the file of the application before the query", param_hint="APP")


def _answer_by_file(
    file: str, settings: dict[str, object], query: str, as_of_ms: int | None, engine: EngineName, step: int | None
) -> pa.Table:
    """Return the result for the application in a file: from the running application, or from its stores."""
    from kstreams import app as application

    app = application.load_app(file, settings)
    running_application = running(app.config) if engine is EngineName.NATIVE and step is None else None
    if running_application is not None:
        return answer_of(running_application, query, as_of_ms)
    return application.sql(app, query, as_of_ms, engine.value, step=step)
