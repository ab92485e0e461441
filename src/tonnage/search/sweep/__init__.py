"""A sweep: every combination of a file's choices estimated, in chunks, on local processes or on Ray, into a Parquet
dataset.
"""
