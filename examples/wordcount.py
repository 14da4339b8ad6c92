"""Counts the words of the topic `lines`: `kstreams run examples/wordcount.py --until-end`."""

import re

import kstreams as ks

config = {"application.id": "wordcount"}
topology = ks.StreamsBuilder()

lines = topology.stream("lines", key=str, value=str)
words = lines.flat_map_values(lambda line: re.findall(r"\w+", line.lower()), value=str)
counts = words.group_by(lambda key, word: word, key=str).count(materialized="counts")
counts.to_stream().to("word-counts")
