"""Consumer groups, independent of the home of topics: assignors, states and transitions."""
