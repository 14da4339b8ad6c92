"""`kstreams check`: whether an application can go on with the state of an older version of itself."""

from __future__ import annotations

from typing import Annotated

import typer

from kstreams.cli.options import AsJson, Settings, settings_of


def check(
    old: Annotated[str, typer.Argument(metavar="OLD", help="The application as it ran: its file, or `app.py:name`.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The application as it is to run.")],
    as_json: AsJson = False,
    config: Settings = None,
) -> None:
    """Say what a new version of an application would do to the state of the old one.

    Stores that are renamed, retyped or filled from elsewhere cannot be kept: the exit status is then 1, and a start
    would be refused. Stores that are added, removed or moved can.

    Example: `git show HEAD:app.py > before.py && kstreams check before.py app.py`
    """
    from kstreams.app import load_app
    from kstreams.cli.output import print_rows
    from kstreams.processor.shape import shape_of
    from kstreams.processor.shape_changes import changes

    before, after = (load_app(name, settings_of(config)).topology for name in (old, new))
    found = changes(shape_of(before), shape_of(after))
    keeps = all(change.keeps for change in found)
    rows = ({"state": "goes on" if change.keeps else "refused", "change": change.text} for change in found)
    print_rows(rows, as_json=as_json)
    if not found:
        typer.echo("nothing that is kept has changed", err=True)
    typer.echo("the state can be kept" if keeps else "the state cannot be kept", err=True)
    if not keeps:
        raise typer.Exit(1)
