"""`kstreams submit`: runs an application on a Spark cluster."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from kstreams.cli.options import AppFile, LogDir, Settings, settings_of


class DeployMode(StrEnum):
    """The place where the driver runs."""

    CLIENT = "client"
    CLUSTER = "cluster"


def submit(
    app: AppFile,
    master: Annotated[str, typer.Option(metavar="URL", help="The cluster, such as `spark://host:7077`.")],
    until_end: Annotated[bool, typer.Option("--until-end", help="As for `run`.")] = False,
    once: Annotated[bool, typer.Option("--once", help="As for `run`.")] = False,
    deploy_mode: Annotated[
        DeployMode, typer.Option(help="Where the driver runs: here, or on the cluster (YARN, Kubernetes).")
    ] = DeployMode.CLIENT,
    archives: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="A packed environment (venv-pack, conda-pack) whose Python the workers run."),
    ] = None,
    log_dir: LogDir = None,
    config: Settings = None,
    spark_arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[-- ARGUMENT...]", help="Arguments for `spark-submit`.")
    ] = None,
) -> None:
    """Package the application and kstreams, and run them with `spark-submit`.

    Workers run this interpreter, or that of the packed environment. Arguments after `--` are passed to `spark-submit`.

    Examples: `kstreams submit app.py --master spark://localhost:7077 --until-end -- --executor-memory 2g`,
    `kstreams submit app.py --master yarn --deploy-mode cluster --archives environment.tar.gz`
    """
    from kstreams.runtime.spark.cluster.submit import submit as spark_submit

    settings = settings_of(config) | ({"log.dir": str(log_dir)} if log_dir else {})
    status = spark_submit(
        app,
        master,
        settings,
        until_end=until_end,
        once=once,
        deploy_mode=deploy_mode.value,
        archive=archives,
        arguments=spark_arguments or [],
    )
    raise typer.Exit(status)
