"""The sessions are those that a loop over the sorted clicks of each visitor makes."""

from itertools import groupby

import data
from app import Session, Visit, topology

HALF_AN_HOUR_MS = 1_800_000


def sessions_of(visitor, rows):
    sessions = [[rows[0]]]
    for row in rows[1:]:
        if row[2] - sessions[-1][-1][2] > HALF_AN_HOUR_MS:
            sessions.append([])
        sessions[-1].append(row)
    for clicks in sessions:
        pages = [click["page"] for _, click, _ in clicks]
        visit = Visit(len(clicks), pages[0], pages[-1], sum(click["cents"] for _, click, _ in clicks))
        yield visitor, Session(clicks[0][2], clicks[-1][2], visit)


def test_each_session_is_reported_when_it_is_over(topology_test_driver):
    driver = topology_test_driver(topology)
    clicks = driver.create_input_topic("clicks", key=str, value=dict)
    for visitor, click, time_ms in data.clicks():
        clicks.pipe_input(visitor, click, timestamp=time_ms)
    driver.end_of_input()

    sessions = driver.create_output_topic("sessions", key=str, value=Session).read_key_values()
    by_visitor = groupby(sorted(data.clicks(), key=lambda row: (row[0], row[2])), key=lambda row: row[0])
    expected = [session for visitor, rows in by_visitor for session in sessions_of(visitor, list(rows))]
    assert sorted(sessions, key=str) == sorted(expected, key=str)
