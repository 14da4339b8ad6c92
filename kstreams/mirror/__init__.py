"""Mirrors: copies of topics from one home in another, with their settings and group offsets."""

from __future__ import annotations

from kstreams.mirror.mirror import Mirror
from kstreams.mirror.progress import MirrorProgress
from kstreams.mirror.settings import MirrorSettings, NameFilter, ReplicationPolicy

__all__ = ["Mirror", "MirrorProgress", "MirrorSettings", "NameFilter", "ReplicationPolicy"]
