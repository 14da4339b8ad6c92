"""Where nothing fails, policies change nothing: recorded cases of Kafka Streams, with every one of them on."""

from __future__ import annotations

import pytest

from tests.conformance import recorded
from tests.conformance.test_driver import FAMILIES, differences

pytestmark = recorded.needed

POLICIES = {
    "PROCESSING_EXCEPTION_HANDLER": "continue",
    "DESERIALIZATION_EXCEPTION_HANDLER": "continue",
    "PRODUCTION_EXCEPTION_HANDLER": "continue",
    "ERRORS_DEADLETTERQUEUE_TOPIC_NAME": "letters",
    "ERRORS_DEADLETTERQUEUE_DROPPED_RECORDS": "true",
}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_sample_with_every_policy_on(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in POLICIES.items():
        monkeypatch.setenv(f"KSTREAMS_{name}", value)
    sample = recorded.cases(family)[2::10]
    assert {case["name"]: differences(case, 7) for case in sample} == {case["name"]: [] for case in sample}
