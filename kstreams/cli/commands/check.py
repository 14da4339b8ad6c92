"""`kstreams check`: checks a new version of an application against the state of the old one, and its schemas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import typer

from kstreams.app import App
from kstreams.cli.options import AsJson, Settings, settings_of


class _Row(NamedTuple):
    fits: bool
    text: str


def check(
    old: Annotated[
        str,
        typer.Argument(
            metavar="OLD",
            help="The application that wrote the state: its file or module, or `app.py:name`. Without NEW, the "
            "application whose schemas are checked.",
        ),
    ],
    new: Annotated[str | None, typer.Argument(metavar="[NEW]", help="The new version of the application.")] = None,
    as_json: AsJson = False,
    config: Settings = None,
) -> None:
    """Show what a new version of an application would do to the state of the old version, and to schemas.

    Stores that are renamed, change their types or are filled from other topics cannot be kept: the exit status is 1,
    and a start would be refused. Stores may be added, removed or moved.

    If topics are written with schemas in a registry, the command checks the schemas by the rules of compatibility of
    their subjects. It prints every reason against a schema, and the exit status is 1. Nothing is registered.

    Examples: `git show HEAD:app.py > before.py && kstreams check before.py app.py`, `kstreams check app.py`
    """
    from kstreams.app import load_app
    from kstreams.cli.output import print_rows

    loaded = [load_app(name, settings_of(config)) for name in (old, new) if name is not None]
    state = _state(*loaded) if new is not None else []
    app = loaded[-1]
    schemas = _schemas(app)
    has_schemas = _has_schemas(app)
    rows = ({"state": "goes on" if row.fits else "refused", "change": row.text} for row in (*state, *schemas))
    print_rows(rows, as_json=as_json)
    if new is not None:
        _report_state(state)
    if has_schemas:
        _report("the registry takes the schemas", "the registry does not take the schemas", schemas)
    elif new is None:
        typer.echo("nothing is written with a schema in a registry; name OLD and NEW to compare their state", err=True)
    if not all(row.fits for row in (*state, *schemas)):
        raise typer.Exit(1)


def _state(before: App, after: App) -> Sequence[_Row]:
    """Return the changes of the state."""
    from kstreams.processor.topology.fingerprint import changes, fingerprint_of

    differences = changes(fingerprint_of(before.topology), fingerprint_of(after.topology))
    return [_Row(change.keeps, change.text) for change in differences]


def _has_schemas(app: App) -> bool:
    sinks = (sink for part in app.topology.sub_topologies for sink in part.sinks)
    return any(serde is not None and serde.asks_registry for sink in sinks for serde in (sink.key, sink.value))


def _schemas(app: App) -> Sequence[_Row]:
    """Return the registry's checks of the schemas, without waiting for a registry that does not answer."""
    from kstreams.processor.topology.output_schemas import schema_findings
    from kstreams.processor.topology.topology import bound_while

    if not _has_schemas(app):
        return []
    with bound_while(app.topology, app.config.replace({"task.timeout.ms": 0})) as bound:
        return [_Row(*finding) for finding in schema_findings(bound)]


def _report_state(state: Sequence[_Row]) -> None:
    if not state:
        typer.echo("nothing that is kept has changed", err=True)
    _report("the state can be kept", "the state cannot be kept", state)


def _report(good: str, bad: str, rows: Sequence[_Row]) -> None:
    typer.echo(good if all(row.fits for row in rows) else bad, err=True)
