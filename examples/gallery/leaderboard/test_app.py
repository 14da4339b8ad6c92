"""The leaders of each day are the first five of the sorted sums."""

from collections import Counter, defaultdict

import data
from app import Player, topology

DAY_MS = 86_400_000


def test_the_best_of_each_day_lead(topology_test_driver):
    driver = topology_test_driver(topology)
    games = driver.create_input_topic("games", key=str, value=dict)
    points = defaultdict(Counter)
    for player, game, time_ms in data.games():
        games.pipe_input(player, game, timestamp=time_ms)
        points[time_ms // DAY_MS * DAY_MS][player] += game["points"]

    leaders = driver.create_output_topic("leaders", key=int, value=list[Player]).read_key_values_to_map()
    assert leaders.keys() == points.keys()
    for day, best in leaders.items():
        assert [player.points for player in best] == [total for _, total in points[day].most_common(5)]
        assert all(points[day][player.name] == player.points for player in best)
