"""`kstreams log`: looks into the files of the embedded log."""

from __future__ import annotations

import typer

log = typer.Typer(no_args_is_help=True, help="Look into the files of the embedded log.")
