"""Shipped programs to trace; each file is given to the tracer as FILE.py:program."""
