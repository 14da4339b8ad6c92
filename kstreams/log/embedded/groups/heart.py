"""`Heart`: a member's thread, which shows that it lives and looks after the others, whatever its user's code does."""

from __future__ import annotations

import logging
import threading

from kstreams.log.embedded.groups.coordinator import GroupCoordinator
from kstreams.log.embedded.groups.presence import Presence
from kstreams.log.embedded.resources import LogResources
from kstreams.log.groups.transitions import Leave

_LOOK_S = 0.1  # so soon a death is noticed
_logger = logging.getLogger("kstreams.groups")


class Heart:
    """Beats from its making to `stop`.

    Parameters
    ----------
    home : LogResources
    group : str
    member : str
        The member's id.
    is_static : bool
        Whether a member that stops polling falls silent; others leave.
    beat_ms, poll_ms : int
        `heartbeat.interval.ms` and `max.poll.interval.ms`.
    """

    def __init__(
        self, home: LogResources, group: str, member: str, *, is_static: bool, beat_ms: int, poll_ms: int
    ) -> None:
        self._clock = home.clock
        self._member = member
        self._is_static = is_static
        self._beat_ms = beat_ms
        self._poll_ms = poll_ms
        self._coordinator = GroupCoordinator(home, group)
        self._polled_ms = self._beaten_ms = self._clock.uptime_ms()
        self._presence = Presence(home.folder, member, self._beaten_ms)
        self._complaint = ""
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"heart of {member}", daemon=True)
        self._thread.start()

    def polled(self) -> None:
        """The member's user has called `poll`."""
        self._polled_ms = self._clock.uptime_ms()

    def stop(self, *, leaves: bool) -> None:
        """Beat no more."""
        self._stopped.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()
        self._presence.close(leaves=leaves)

    def _run(self) -> None:
        while not self._stopped.wait(_LOOK_S):
            try:
                self._beat()
            except Exception as error:  # else the member would die of what may pass
                if str(error) != self._complaint:
                    _logger.warning("The heart of %s missed a beat: %s", self._member, error)
                self._complaint = str(error)

    def _beat(self) -> None:
        now_ms = self._clock.uptime_ms()
        if now_ms - self._polled_ms >= self._poll_ms:
            self._give_up(now_ms)
        elif now_ms - self._beaten_ms >= self._beat_ms:
            self._presence.give_sign(now_ms)
            self._beaten_ms = now_ms
        self._coordinator.care(but=self._member)

    def _give_up(self, now_ms: int) -> None:
        if not self._is_static and self._member in self._coordinator.look().members:
            reason = f"it did not poll for {now_ms - self._polled_ms} ms (max.poll.interval.ms)"
            self._coordinator.bring(Leave(self._member, reason))
