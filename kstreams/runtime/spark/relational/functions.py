"""`F`: Spark's functions over columns, imported at the first call: plans are made without Spark."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import functions as F
else:

    class _Functions:
        """The module `pyspark.sql.functions`."""

        def __getattr__(self, name: str) -> Any:
            return getattr(import_module("pyspark.sql.functions"), name)

    F = _Functions()

__all__ = ["F"]
