"""Texts of what is read of other tools' logs."""
