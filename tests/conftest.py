"""Being here puts this folder on the import path: tests import `oracles` and `architectures` (data and helpers)
by name.
"""
