"""The translation of offsets, whatever gaps both sides have: exact, and never too high when old syncs are dropped."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kstreams.mirror import offset_syncs
from kstreams.mirror.offset_syncs import OffsetSyncs, syncs_of
from tests.support.examples import examples

GAPS = st.lists(st.integers(0, 2), min_size=1, max_size=6)
TRANSACTIONS = st.lists(st.tuples(GAPS, st.integers(0, 2)), min_size=1, max_size=30)
"""For each transaction: the gaps before its records in the source, and the gap before it in the target."""


def copied(transactions: list[tuple[list[int], int]]) -> tuple[OffsetSyncs, list[int], list[int]]:
    """The syncs of transactions, and the offsets of their records on both sides."""
    syncs = OffsetSyncs()
    sources: list[int] = []
    targets: list[int] = []
    for gaps, target_gap in transactions:
        first = targets[-1] + 1 + target_gap if targets else 0
        for gap in gaps:
            sources.append(sources[-1] + 1 + gap if sources else gap)
        targets += range(first, first + len(gaps))
        list(syncs.add(syncs_of(np.array(sources[-len(gaps) :]), first)))
    return syncs, sources, targets


@given(TRANSACTIONS)
@settings(max_examples=examples(300))
def test_an_offset_becomes_that_of_the_first_record_at_or_after_it(transactions) -> None:
    syncs, sources, targets = copied(transactions)
    assert syncs.position == sources[-1] + 1
    for offset in range(sources[-1] + 3):
        record = bisect_left(sources, offset)
        translated = syncs.translate(offset)
        assert translated is not None
        assert bisect_left(targets, translated) == record


@given(TRANSACTIONS)
@settings(max_examples=examples(300))
def test_no_record_is_skipped_when_syncs_were_dropped(transactions) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(offset_syncs, "MAX_BLOCKS", 4)
        syncs, sources, targets = copied(transactions)
        while syncs.thinned():
            pass
    assert syncs.position == sources[-1] + 1
    for offset in range(sources[-1] + 3):
        translated = syncs.translate(offset)
        assert translated is not None
        assert bisect_left(targets, translated) <= bisect_left(sources, offset)


def test_nothing_is_translated_before_a_record_is_copied() -> None:
    assert OffsetSyncs().translate(5) is None
