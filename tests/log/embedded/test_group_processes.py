"""A member whose process is killed is missed at once: its lock on its file is gone."""

from pathlib import Path

from kstreams.log import open_log
from tests.log.contract.copiers import PARTITIONS, Copiers, fill_words, wait_until


def test_a_killed_member_is_missed_at_once_whatever_its_session_time_out(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    with open_log(folder) as log, Copiers(log, f"log:{folder}", tmp_path, "cooperative-sticky") as copiers:
        fill_words(log)
        victim = copiers.start(pause=1_000)  # it gets everything and never commits
        wait_until(lambda: bool(log.admin().describe_group("copiers").members))
        with log.consumer({"group.id": "copiers", "session.timeout.ms": 10**9}) as heir:
            heir.subscribe(["words"])
            wait_until(lambda: not heir.poll(0.01) and len(log.admin().describe_group("copiers").members) == 2)
            copiers.kill(victim)
            wait_until(lambda: not heir.poll(0.01) and len(heir.assignment()) == PARTITIONS)
