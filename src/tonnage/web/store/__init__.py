"""Saved plans and their history, in SQLite or PostgreSQL: nothing else is ever kept."""
