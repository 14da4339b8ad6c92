"""Nexmark: 23 queries over persons, auctions and bids, each answer compared with DuckDB's over the same events.

`generator.py` makes the events, `queries.py` has the queries, `answers.py` their meaning as SQL and the comparison.
`python -m benchmarks.nexmark` measures; RESULTS.md has the figures.
"""
