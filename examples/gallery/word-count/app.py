"""Counts words: the first application that everybody writes."""

import kstreams as ks

config = {"application.id": "word-count"}
topology = ks.StreamsBuilder()

lines = topology.stream("lines", key=str, value=str)
words = lines.flat_map_values(ks.value.str.lower().str.split(" "), value=str)
counts = words.group_by(lambda line, word: word, key=str).count(materialized="counts")
counts.to_stream().to("word-counts")
