"""One rule per logical node, for the relational path. Importing this package fills the rule book."""

from kstreams.runtime.spark.relational.rules import joins, stateless, windowed

__all__ = ["joins", "stateless", "windowed"]
