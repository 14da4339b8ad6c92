"""`F`: Spark's functions of columns. They are imported at the first call, since paths are planned without Spark."""

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
