"""The options, declared once: a module for each subject."""
