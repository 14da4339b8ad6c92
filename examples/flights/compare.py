"""Compares the results of both engines as final tables: exit status 1 and the rows, where they differ."""

from __future__ import annotations

import sys
from collections import Counter

from results import RESULTS, final_table, home, print_top

SHOWN = 10


def main() -> int:
    log, rows, different = home(), 0, False
    for result in RESULTS:
        native, spark = final_table(log, result), final_table(log, result, "spark-")
        print_top(result, spark, f"spark-{result.topic}")
        rows += len(native)
        for engine, only in (("native", Counter(native) - Counter(spark)), ("spark", Counter(spark) - Counter(native))):
            for row in list(only.elements())[:SHOWN]:
                print(f"only {engine} has: {row}")
            if only.total() > SHOWN:
                print(f"... and {only.total() - SHOWN:,} more")
            different |= bool(only)
    print("native != spark" if different else f"native == spark: {rows:,} rows")
    return int(different)


if __name__ == "__main__":
    sys.exit(main())
