"""The command line as `python -m kstreams`; also what `spark-submit` starts as the driver."""

import sys

from kstreams.cli import main

if __name__ == "__main__":
    sys.exit(main())
