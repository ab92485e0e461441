"""Programs to trace that come along; each file is given to the tracer as FILE.py:program."""
