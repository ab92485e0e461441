"""Programs that start others, containers, and the machines that they say: found and counted in one place."""
