"""The folder of the package kstreams, as it is installed here."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).parent
