"""Updates of a table that are held back."""

from __future__ import annotations

from dataclasses import dataclass, field

from kstreams.dsl.graph.node import Node
from kstreams.dsl.materialized import Materialized
from kstreams.dsl.tables.suppressed import Suppressed


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Suppress(Node):
    """The last update of each key, once its time has come. As a table it is a view of its parent."""

    suppressed: Suppressed
    store: str
    materialized: Materialized = field(default_factory=Materialized)
