"""Sinks: other systems that take the records of a stream or a topic. Public as `ks.sinks`."""

from __future__ import annotations

__all__: list[str] = []
