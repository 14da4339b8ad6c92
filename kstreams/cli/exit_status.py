"""Exit statuses of the command line.

0 success; 1 the command failed; 2 its arguments are wrong; 130 interrupted (Ctrl-C); 143 terminated (SIGTERM), but 0
where `run` is terminated: it stops and commits as it should.
"""

from __future__ import annotations

INTERRUPTED = 130
TERMINATED = 143
