"""`kstreams check`: whether an application can continue with the state of an older version."""

from __future__ import annotations

from typing import Annotated

import typer

from kstreams.cli.options import AsJson, Settings, settings_of


def check(
    old: Annotated[
        str,
        typer.Argument(
            metavar="OLD", help="The application that wrote the state: its file or module, or `app.py:name`."
        ),
    ],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The new version of the application.")],
    as_json: AsJson = False,
    config: Settings = None,
) -> None:
    """Show what a new version of an application would do to the state of the old version.

    Stores that are renamed, change their types or are filled from other topics cannot be kept: the exit status is 1,
    and a start would be refused. Stores may be added, removed or moved.

    Example: `git show HEAD:app.py > before.py && kstreams check before.py app.py`
    """
    from kstreams.app import load_app
    from kstreams.cli.output import print_rows
    from kstreams.processor.topology.fingerprint import fingerprint_of
    from kstreams.processor.topology.fingerprint_changes import changes

    before, after = (load_app(name, settings_of(config)).topology for name in (old, new))
    found = changes(fingerprint_of(before), fingerprint_of(after))
    keeps = all(change.keeps for change in found)
    rows = ({"state": "goes on" if change.keeps else "refused", "change": change.text} for change in found)
    print_rows(rows, as_json=as_json)
    if not found:
        typer.echo("nothing that is kept has changed", err=True)
    typer.echo("the state can be kept" if keeps else "the state cannot be kept", err=True)
    if not keeps:
        raise typer.Exit(1)
