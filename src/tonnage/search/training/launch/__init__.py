"""Settings and commands that start a plan."""
