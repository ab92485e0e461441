"""Formats that carry the command of another tool: jobs, tasks, manifests and services."""
