"""Sources: the data of other systems as the input of a stream, a table or a topic. Public as `ks.sources`."""

from __future__ import annotations

__all__: list[str] = []
