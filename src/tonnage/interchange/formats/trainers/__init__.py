"""Formats of training frameworks."""
