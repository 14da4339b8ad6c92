"""Consumer groups, independent of the home of topics: assignors, and the states and transitions of a group."""
