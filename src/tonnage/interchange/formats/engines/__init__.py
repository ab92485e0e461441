"""Formats of serving engines."""
