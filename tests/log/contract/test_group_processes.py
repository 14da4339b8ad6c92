"""Members of a group in several processes, some of which are killed or hang: everything is copied once."""

import random
from pathlib import Path

import pytest

from kstreams.log import Log
from kstreams.log.api import Ability
from tests.log.contract.copiers import PARTITIONS, ROWS, Copiers, assert_copied_once, copied, fill_words, wait_until

pytestmark = pytest.mark.needs(Ability.GROUPS)


@pytest.mark.parametrize("strategy", ["cooperative-sticky", "range"])
def test_when_members_are_killed_others_go_on_and_everything_is_read_once(
    log: Log, address: str, tmp_path: Path, strategy: str
) -> None:
    chosen = random.Random(5)
    fill_words(log)
    with Copiers(log, address, tmp_path, strategy) as copiers:
        for _ in range(3):
            copiers.start()
        for life in range(1, 7):
            wait_until(lambda life=life: copied(log) >= life * 250)
            copiers.kill(chosen.choice(sorted(copiers.running)))
            copiers.start()
        wait_until(lambda: copied(log) == ROWS * PARTITIONS)
        copiers.finish()
        assert_copied_once(log)
        wait_until(lambda: log.admin().describe_group("copiers").members == ())


def test_a_member_that_hangs_loses_its_partitions_and_what_it_does_later_is_refused(
    log: Log, address: str, tmp_path: Path
) -> None:
    fill_words(log)
    with Copiers(log, address, tmp_path, "cooperative-sticky") as copiers:
        hung = copiers.start(pause=0.3)
        wait_until(lambda: copied(log) >= 100)
        copiers.hang(hung)
        copiers.start()
        wait_until(lambda: copied(log) == ROWS * PARTITIONS)
        copiers.go_on(hung)
        wait_until(lambda: len(log.admin().describe_group("copiers").members) == 2)
        said = copiers.finish()
        assert "!" in said[hung]
        assert_copied_once(log)


def test_a_killed_member_that_is_removed_gives_its_partitions_away_at_once(
    log: Log, address: str, tmp_path: Path
) -> None:
    fill_words(log)
    with Copiers(log, address, tmp_path, "cooperative-sticky") as copiers:
        killed = copiers.start(pause=0.3)
        wait_until(lambda: copied(log) >= 100)
        (member,) = log.admin().describe_group("copiers").members
        copiers.kill(killed)
        log.admin().remove_member("copiers", member.id)
        assert log.admin().describe_group("copiers").members == ()
        log.admin().remove_member("copiers", member.id)
        log.admin().remove_member("nobody", "nowhere")
