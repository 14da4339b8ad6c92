"""`kstreams explain`: how an engine would run an application, operator by operator, before anything starts."""

from __future__ import annotations

from typing import Annotated

import typer

from kstreams.cli.engine import Engine
from kstreams.cli.options import AppFile, AsJson, Settings, settings_of


def explain(
    app: AppFile,
    engine: Annotated[Engine, typer.Option(help="The engine that is asked.")] = Engine.NATIVE,
    as_json: AsJson = False,
    config: Settings = None,
) -> None:
    """Say for every operator which path it takes, and why.

    The native engine runs it on columns or record by record; Spark on the relational path or in tasks.

    Example: `kstreams explain app.py --engine spark`
    """
    from kstreams import app as application
    from kstreams.cli.output import print_rows

    loaded = application.load_app(app, settings_of(config))
    rows = application.explain(loaded, engine=engine.value)
    print_rows((row._asdict() for row in rows), as_json=as_json, title=f"{loaded.path.name} on {engine.value}")
