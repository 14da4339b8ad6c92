"""`kstreams quotas`: lists, sets and removes the quotas of client ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated

import typer

from kstreams.cli.home import open_home
from kstreams.cli.options import AsJson, LogDir
from kstreams.cli.output import print_rows
from kstreams.config.kinds import SIZE
from kstreams.errors import LogError
from kstreams.log.api import CONSUMER_BYTE_RATE, PRODUCER_BYTE_RATE, QUOTAS
from kstreams.log.naming import did_you_mean

quotas = typer.Typer(no_args_is_help=True)


def _rate(text: str) -> int:
    try:
        rate = SIZE.read(text)
    except ValueError as expected:
        raise typer.BadParameter(f"{text!r} is no rate: {expected}") from None
    if not isinstance(rate, int) or rate < 1:
        raise typer.BadParameter(f"{text!r} is no rate: give at least 1 byte per second")
    return rate


ClientId = Annotated[
    str | None,
    typer.Argument(metavar="[CLIENT_ID]", help="The `client.id`; for an application, its `client.id` or its id."),
]
Default = Annotated[bool, typer.Option("--default", help="The default of all client ids without a quota of their own.")]


@quotas.command("list")
def list_(as_json: AsJson = False, log_dir: LogDir = None) -> None:
    """List the quotas of client ids, in bytes per second; the row without a client id is the default.

    Example: `kstreams quotas list --json`
    """
    with open_home(log_dir).admin() as admin:
        print_rows(_rows(admin.client_quotas()), as_json=as_json, title="Quotas")


@quotas.command("set")
def set_(
    client_id: ClientId = None,
    default: Default = False,
    producer_byte_rate: Annotated[
        int | None,
        typer.Option(metavar="BYTES", parser=_rate, help="Bytes per second that its producers send, such as `1MiB`."),
    ] = None,
    consumer_byte_rate: Annotated[
        int | None,
        typer.Option(metavar="BYTES", parser=_rate, help="Bytes per second that its consumers read, such as `2MiB`."),
    ] = None,
    log_dir: LogDir = None,
) -> None:
    """Set quotas of a client id, or the default. Clients that run follow at once; those above the rate are delayed.

    Examples: `kstreams quotas set reports --producer-byte-rate 1MiB --consumer-byte-rate 2MiB`,
    `kstreams quotas set --default --consumer-byte-rate 10MiB`
    """
    rates = {PRODUCER_BYTE_RATE: producer_byte_rate, CONSUMER_BYTE_RATE: consumer_byte_rate}
    changed = {name: rate for name, rate in rates.items() if rate is not None}
    if not changed:
        raise typer.BadParameter("name a quota", param_hint="--producer-byte-rate or --consumer-byte-rate")
    entity = _entity(client_id, is_default=default)
    with open_home(log_dir, create=True).admin() as admin:
        admin.alter_client_quotas(entity, changed)
    typer.echo(f"set {', '.join(f'{name}={rate}' for name, rate in changed.items())} of {_name(entity)}", err=True)


@quotas.command()
def remove(
    client_id: ClientId = None,
    default: Default = False,
    quota: Annotated[
        list[str] | None,
        typer.Option("--quota", "-q", metavar="NAME", help="Only this quota; may be repeated. Default: all quotas."),
    ] = None,
    log_dir: LogDir = None,
) -> None:
    """Remove quotas of a client id, or the default.

    Examples: `kstreams quotas remove reports`, `kstreams quotas remove --default --quota consumer_byte_rate`
    """
    entity = _entity(client_id, is_default=default)
    if unknown := [name for name in quota or () if name not in QUOTAS]:
        raise typer.BadParameter(f"there is no quota {unknown[0]!r}.{did_you_mean(unknown[0], QUOTAS)}")
    with open_home(log_dir).admin() as admin:
        present = admin.client_quotas()
        removed = [name for name in quota or QUOTAS if name in present.get(entity, {})]
        if not removed:
            hint = "" if entity is None else did_you_mean(entity, [name for name in present if name])
            raise LogError(f"there is no such quota of {_name(entity)}.{hint}")
        admin.alter_client_quotas(entity, dict.fromkeys(removed))
    typer.echo(f"removed {', '.join(removed)} of {_name(entity)}", err=True)


def _entity(client_id: str | None, *, is_default: bool) -> str | None:
    if is_default == (client_id is not None):
        raise typer.BadParameter("name a client id, or give --default", param_hint="CLIENT_ID")
    return client_id


def _name(entity: str | None) -> str:
    return "the default" if entity is None else entity


def _rows(quotas: Mapping[str | None, Mapping[str, float]]) -> Iterator[dict[str, object]]:
    for client_id, rates in sorted(quotas.items(), key=lambda item: item[0] or ""):
        yield {"client_id": client_id} | {name: _whole(rates.get(name)) for name in QUOTAS}


def _whole(rate: float | None) -> float | None:
    return int(rate) if rate is not None and rate == int(rate) else rate
