"""The boot of this machine: what was written in an earlier one may not have reached the disk as a whole."""

from __future__ import annotations

import functools
from pathlib import Path


@functools.cache
def boot_id() -> bytes:
    """16 bytes that change with every boot; zeros where the system does not say."""
    try:
        return bytes.fromhex(Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", ""))
    except (OSError, ValueError):
        return bytes(16)
