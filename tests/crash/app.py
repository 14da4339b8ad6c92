"""The application that the crash tests kill: counts by word, and by word and window, behind repartition topics."""

import kstreams as ks

topology = ks.StreamsBuilder()

words = topology.stream("lines", key=str, value=str).flat_map_values(lambda line: line.split(), value=str)
by_word = words.group_by(lambda _, word: word, key=str)

by_word.count(materialized="counts").to_stream().to("counts", key=str, value=int)

windows = by_word.windowed_by(ks.TimeWindows(size=1000, grace=10**9)).count(materialized="windows")
windows.to_stream(lambda key, _: f"{key.key}@{key.window.start_ms}", key=str).to("windows", key=str, value=int)
