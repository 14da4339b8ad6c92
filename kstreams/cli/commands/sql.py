"""`kstreams sql`: asks the stores of an application that runs, or as its last commit or a step on Spark left them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kstreams.cli.commands.query import ApplicationId
from kstreams.cli.commands.run import overrides
from kstreams.cli.options import AsJson, EngineName, LogDir, Settings
from kstreams.cli.output import print_rows
from kstreams.cli.running import require_running, running, settings_of_application

if TYPE_CHECKING:
    import pyarrow as pa
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kstreams.errors import StateError

if TYPE_CHECKING:
    import pyarrow as pa

    from kstreams.cli.running import RunningApplication


_TIMES = ("timestamp", "window_start", "window_end", "valid_from", "valid_to")


def answer_of(application: RunningApplication, query: str, as_of_ms: int | None) -> pa.Table:
    """The result of a SELECT over stores that are declared queryable.

    Each store that the query names is read page by page; a page is of one commit, and the next perhaps of a later one.

    Raises
    ------
    StateError
        When DuckDB is not installed or cannot answer, or a store cannot be read.
    """
    from kstreams.state.tables.sql import answer

    parameters = {} if as_of_ms is None else {"as_of": str(as_of_ms)}
    stores = [store["name"] for store in application.ask("/v1/stores")["stores"]]
    return answer(query, stores, lambda store: _table(application, store, parameters))


def _table(application: RunningApplication, store: str, parameters: Mapping[str, str]) -> pa.Table:
    import pyarrow as pa

    rows: list[dict[str, Any]] = list(application.rows(store, None, parameters, None))
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
            help="A SELECT over the stores, each a table of its name; before it the file of the application, which one "
            "that is stopped, or on Spark, needs.",
        ),
    ],
    as_of: Annotated[
        int | None,
        typer.Option(
            metavar="MS", help="A time: versions that held then; windows and sessions that contain it. In milliseconds."
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
    """Ask the stores of an application in SQL.

    A query alone asks a running application, started with `kstreams run --serve`: its stores that are `queryable=True`,
    on whichever instances they are. With its file before the query, it may be stopped: as of its last commit on this
    machine, after a crash perhaps an earlier one. With `--engine spark`, one on Spark, which may run: as of its last
    step, or of an earlier one that the checkpoint keeps.

    Each store is a table with the columns `key` and `value`; `timestamp` where it keeps one; `window_start` and
    `window_end` of windows and sessions; `valid_from` and `valid_to` of versions. It needs DuckDB. A program asks its
    own application by `KafkaStreams.sql`.

    Examples: `kstreams sql 'select value, count(*) from "visits" group by value'`,
    `kstreams sql app.py 'select max(value) from "visits"'`
    """
    *app, query = words
    if len(app) > 1 or query.endswith(".py"):
        raise typer.BadParameter("give a query, and before it perhaps one file", param_hint="QUERY")
    if app:
        table = _asked_by_file(app[0], overrides(config, None, state_dir, log_dir), query, as_of, engine, step)
    else:
        _refuse_of_stopped(engine, step)
        table = answer_of(require_running(settings_of_application(application_id, None, state_dir)), query, as_of)
    print_rows((row for batch in table.to_batches() for row in batch.to_pylist()), as_json=as_json)


def _refuse_of_stopped(engine: EngineName, step: int | None) -> None:
    if engine is not EngineName.NATIVE or step is not None:
        raise typer.BadParameter("name the file of the application before the query", param_hint="APP")


def _asked_by_file(
    file: str, settings: dict[str, Any], query: str, as_of_ms: int | None, engine: EngineName, step: int | None
) -> pa.Table:
    """The answer of the application in a file: of one that runs and answers, else as it has left its stores."""
    from kstreams import app as application

    app = application.load_app(file, settings)
    running_application = running(app.config) if engine is EngineName.NATIVE and step is None else None
    if running_application is not None:
        return answer_of(running_application, query, as_of_ms)
    return application.sql(app, query, as_of_ms, engine.value, step=step)
