"""Consumer groups, free of any home of topics: who reads which partition (assignors), and the states of a group."""
