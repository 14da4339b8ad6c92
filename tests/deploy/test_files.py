"""The files in `deploy/` are valid for the programs that read them, and the guide and the alerts say the same."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import promql_parser
import pytest
import yaml

from tests.docs.pages import ROOT

DEPLOY = ROOT / "deploy"
UNIT = DEPLOY / "systemd" / "kstreams@.service"
KUBERNETES = "1.33"
GRACE_S = 25
"""The default of shutdown.timeout.ms."""


def documents(path: Path) -> Iterator[Any]:
    yield from yaml.safe_load_all(path.read_text())


@pytest.mark.parametrize("name", ["shop.yaml", "autoscaler.yaml"])
def test_manifests_fit_the_schemas_of_kubernetes(name: str) -> None:
    for manifest in documents(DEPLOY / "kubernetes" / name):
        assert kubernetes_validate.validate(manifest, KUBERNETES, strict=True)


def test_pods_are_given_the_time_to_stop_and_keep_their_state() -> None:
    [stateful] = [each for each in documents(DEPLOY / "kubernetes" / "shop.yaml") if each["kind"] == "StatefulSet"]
    pod = stateful["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] > GRACE_S
    [container] = pod["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}["state"] == "/state"
    assert [claim["metadata"]["name"] for claim in stateful["spec"]["volumeClaimTemplates"]] == ["state"]


def test_compose_waits_for_the_time_to_stop() -> None:
    [compose] = documents(DEPLOY / "compose.yaml")
    application = compose["services"]["application"]
    assert int(application["stop_grace_period"].removesuffix("s")) > GRACE_S
    assert application["read_only"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_finds_no_fault_in_the_unit(tmp_path: Path) -> None:
    """The folder and the program of the application are not on this machine."""
    text = UNIT.read_text().replace("/srv/%i/.venv/bin/kstreams", "/bin/true").replace("=/srv/%i", "=/")
    unit = tmp_path / "kstreams@shop.service"
    unit.write_text(text)
    checked = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_the_unit_gives_the_time_to_stop() -> None:
    [seconds] = re.findall(r"^TimeoutStopSec=(\d+)$", UNIT.read_text(), re.MULTILINE)
    assert int(seconds) > GRACE_S


def test_prometheus_can_parse_each_alert_and_the_guide_has_the_same_ones() -> None:
    [rules] = [group["rules"] for group in next(documents(DEPLOY / "prometheus" / "alerts.yaml"))["groups"]]
    for rule in rules:
        promql_parser.parse(rule["expr"])
    guide = (ROOT / "docs" / "how-to" / "operations.md").read_text().partition("## Alerts worth having")[2]
    table = guide.partition("\n## ")[0]
    shown = re.findall(r"^\| [^|]+ \| `([^`]+)`(?:[^|]* for (\d+) minutes)?", table, re.MULTILINE)
    assert [(rule["expr"], rule.get("for", "").removesuffix("m")) for rule in rules] == shown
