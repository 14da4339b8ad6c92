"""`kstreams submit`: runs an application on a Spark cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from kstreams.cli.options import AppFile, LogDir, Settings, settings_of


def submit(
    app: AppFile,
    master: Annotated[str, typer.Option(metavar="URL", help="The cluster, such as `spark://host:7077`.")],
    until_end: Annotated[bool, typer.Option("--until-end", help="As for `run`.")] = False,
    once: Annotated[bool, typer.Option("--once", help="As for `run`.")] = False,
    log_dir: LogDir = None,
    config: Settings = None,
    spark_arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[-- ARGUMENT...]", help="Arguments for `spark-submit`.")
    ] = None,
) -> None:
    """Package the application and kstreams, and run them with `spark-submit` in client mode and this interpreter.

    Example: `kstreams submit app.py --master spark://localhost:7077 --until-end -- --executor-memory 2g`
    """
    from kstreams.runtime.spark.cluster.submit import submit as spark_submit

    settings = settings_of(config) | ({"log.dir": str(log_dir)} if log_dir else {})
    status = spark_submit(app, master, settings, until_end=until_end, once=once, arguments=spark_arguments or [])
    raise typer.Exit(status)
