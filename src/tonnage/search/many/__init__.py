"""Many questions at once: rows of models, machines and options in, columns of figures out, by the walk of a single
answer over arrays.
"""
