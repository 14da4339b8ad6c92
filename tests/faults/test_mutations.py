"""Mistakes in kstreams are caught by the fault runs: `python -m tests.faults.mutations` tries all."""

from __future__ import annotations

import pytest

from tests.faults.judged_run import ROOT
from tests.faults.mutations import MUTATIONS, Mutation, seeds_until_caught


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("mutation", MUTATIONS, ids=[mutation.name for mutation in MUTATIONS])
def test_a_mistake_is_caught(mutation: Mutation) -> None:
    assert seeds_until_caught(mutation, seeds=10) is not None


@pytest.mark.parametrize("mutation", MUTATIONS, ids=[mutation.name for mutation in MUTATIONS])
def test_a_mutation_fits_the_code(mutation: Mutation) -> None:
    assert (ROOT / mutation.file).read_text().count(mutation.correct) == 1
