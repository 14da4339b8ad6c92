"""Topologies as Mermaid flowcharts: names that mean something to Mermaid."""

from __future__ import annotations

import re

import kstreams as ks
from kstreams.diagram.mermaid import as_mermaid

ODD = 'a "quoted" <b>name</b> & `more` #1'


def test_names_of_nodes_end_no_label_and_no_box() -> None:
    topology = (
        ks.Topology().add_source(ODD, "words", key=str, value=str).add_sink("end", "out", ODD, key=str, value=str)
    )
    text = as_mermaid(topology)
    labels = re.findall(r'\(\["(.*?)"\]\)', text)
    assert labels == ["a #34;quoted#34; #60;b#62;name#60;/b#62; #38; #96;more#96; #35;1", "end"]
    assert [line for line in text.splitlines() if line.strip() == "end"] == ["  end"]
    assert not re.search(r"(-->|^) *end\b *(-->|\(|$)", text.replace("\n  end\n", "\n"), re.M)
